//! What tests need: a folder that is gone with them, and pages and rows about which nothing matters.

use std::path::{Path, PathBuf};

use page::{Cause, Host, Kind, Page, Resource};

use crate::folder::Rendered;
use crate::result::{ConnectionRow, Key, LoadOutcome, LoadRow, Phases, RequestOutcome, RequestRow, emit};

/// A folder below the system's temporary one; removed when dropped.
pub struct Dir(PathBuf);

impl Dir {
    /// A new, empty folder. `name` tells tests of one process apart.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("velodrome-lab-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the temporary folder can be written");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A page of one resource.
pub fn page(id: &str) -> Page {
    let document = Resource { body_len: 1_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    Page::new(id, vec![Host::new(format!("{id}.example"))], vec![document]).expect("a valid page")
}

/// A load row in which everything else is zero.
pub fn load_row(key: &Key, requests: u32, plt_us: Option<u64>) -> LoadRow {
    LoadRow {
        key: key.clone(),
        seed: String::new(),
        outcome: if plt_us.is_some() { LoadOutcome::Complete } else { LoadOutcome::Incomplete },
        reason: plt_us.is_none().then(|| "made up".into()),
        plt_us,
        first_paint_us: plt_us.map(|us| us / 2),
        parsed_us: None,
        first_byte_us: None,
        finished_us: None,
        requests,
        failed: 0,
        connections: 1,
        lookups: 1,
        bytes_down: 0,
        bytes_up: 0,
        packets_down: 0,
        packets_up: 0,
        lost_down: 0,
        lost_up: 0,
        overflow_down: 0,
        overflow_up: 0,
        retransmits: 0,
        timeouts: 0,
        compute_us: 0,
        queue_max_down_bytes: 0,
        critical: plt_us.map(|us| Phases { receive_us: us, ..Phases::default() }),
        ahead: None,
        unasked: None,
    }
}

/// A request row of the resource `index` that knows nothing but when it was discovered.
pub fn request_row(key: &Key, index: u32, discovered_us: u64) -> RequestRow {
    RequestRow {
        key: key.clone(),
        index,
        parent: None,
        url: String::new(),
        kind: String::new(),
        host: String::new(),
        connection: None,
        status: None,
        outcome: RequestOutcome::Complete,
        reason: None,
        discovered_us,
        dns_start_us: None,
        dns_end_us: None,
        connect_start_us: None,
        connect_end_us: None,
        tls_end_us: None,
        sent_us: None,
        first_byte_us: None,
        complete_us: None,
        used_us: None,
        priority: 0,
        head_up_bytes: 0,
        head_down_bytes: 0,
        body_bytes: 0,
        cache: None,
        ahead: None,
        needed_us: None,
        after_load: false,
    }
}

/// The rows of a load with so many requests and one connection.
pub fn rows(key: &Key, requests: u32, plt_us: Option<u64>) -> Rendered {
    let mut out = Rendered::default();
    emit(&load_row(key, requests, plt_us), &mut out.load);
    (0..requests).for_each(|index| emit(&request_row(key, index, 0), &mut out.requests));
    let connection = ConnectionRow {
        key: key.clone(),
        connection: 0,
        host: String::new(),
        address: String::new(),
        protocol: String::new(),
        opened_us: 0,
        connected_us: None,
        secured_us: None,
        closed_us: None,
        requests,
        bytes_up: 0,
        bytes_down: 0,
        segments_down: 0,
        retransmits: 0,
        timeouts: 0,
        purpose: None,
    };
    emit(&connection, &mut out.connections);
    out
}
