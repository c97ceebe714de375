//! The rows of a run folder: JSON, one object a line.
//!
//! Field names and their order are the format. A value that there is none of is `null`, never left out. Times are whole
//! microseconds since navigation start, sizes are bytes. All of it follows from the plan and the pages alone, so
//! that two machines write the same bytes; what belongs to the machine is in `environment.json`.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// How a load ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadOutcome {
    /// Every resource was fetched and used.
    Complete,
    /// Something is missing, for the reason beside it. `onload` may have fired all the same, but such a time is not
    /// compared with others: whatever is missing took no time.
    Incomplete,
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestOutcome {
    /// The whole response arrived.
    Complete,
    /// It never will, for the reason beside it.
    Failed,
    /// The load ended first.
    Pending,
}

/// Which load a row belongs to: the first four fields of every row of a load.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Key {
    /// The page's id.
    pub page: String,
    /// The network's name in the plan.
    pub network: String,
    /// `http1`, `spdy3.1`, …
    pub transport: String,
    /// From 0.
    pub run: u32,
}

/// One load of one page: `loads.jsonl`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LoadRow {
    /// Which load.
    #[serde(flatten)]
    pub key: Key,
    /// The seed of everything drawn in this load, hexadecimal; the same for every transport.
    pub seed: String,
    /// How it ended.
    pub outcome: LoadOutcome,
    /// Why it is incomplete.
    pub reason: Option<String>,
    /// Page load time: navigation start to `onload`.
    pub plt_us: Option<u64>,
    /// First paint.
    pub first_paint_us: Option<u64>,
    /// The main document is parsed (`DOMContentLoaded`).
    pub parsed_us: Option<u64>,
    /// First byte of the main document.
    pub first_byte_us: Option<u64>,
    /// The last resource is there, those after `onload` included.
    pub finished_us: Option<u64>,
    /// Requests made: rows in `requests.jsonl`.
    pub requests: u32,
    /// Requests that failed.
    pub failed: u32,
    /// Connections opened: rows in `connections.jsonl`.
    pub connections: u32,
    /// Names looked up.
    pub lookups: u32,
    /// IP bytes that entered the access link towards the client.
    pub bytes_down: u64,
    /// IP bytes that entered the access link towards the servers.
    pub bytes_up: u64,
    /// Packets that entered the access link towards the client.
    pub packets_down: u64,
    /// Packets that entered the access link towards the servers.
    pub packets_up: u64,
    /// Packets lost at random on the way down.
    pub lost_down: u64,
    /// Packets lost at random on the way up.
    pub lost_up: u64,
    /// Packets dropped by the queue on the way down.
    pub overflow_down: u64,
    /// Packets dropped by the queue on the way up.
    pub overflow_up: u64,
    /// Segments sent again, both ends.
    pub retransmits: u64,
    /// Retransmission timeouts, both ends.
    pub timeouts: u64,
    /// Time that the browser's main thread was busy.
    pub compute_us: u64,
    /// The longest queue towards the client, in bytes.
    pub queue_max_down_bytes: u64,
    /// Where the time to `onload` went; `null` if the load is incomplete. See [`crate::critical`].
    pub critical: Option<Phases>,
    /// What asking for things before the page came to them, and pushing them, has cost and brought; left out if nothing was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ahead: Option<AheadRow>,
    /// Connections that no waiting request had asked for; left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unasked: Option<UnaskedRow>,
}

/// Connections that no waiting request had asked for, and how many of them carried one in the end. The others were wasted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct UnaskedRow {
    /// Opened ahead of need.
    pub speculative: u32,
    /// Of those, that carried a request.
    pub speculative_used: u32,
    /// Opened beside one that took long.
    pub spare: u32,
    /// Of those, that carried a request.
    pub spare_used: u32,
    /// Opened to another address beside one that took long.
    pub alternate: u32,
    /// Of those, that carried a request.
    pub alternate_used: u32,
}

/// What was asked for, or came, before the page came to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AheadRow {
    /// Requests. What the page does not have is among them, and has no row in `requests.jsonl`.
    pub asked: u32,
    /// Pushes.
    pub pushed: u32,
    /// Of the requests those that the page came to, of the pushes those that answered a request.
    pub used: u32,
    /// Bytes of the others, as far as they came: heads and bodies.
    pub wasted_bytes: u64,
}

/// A page load time split into what it was spent on; the parts add up to it. What each part means is in
/// [`crate::critical`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Phases {
    /// Name look-ups.
    pub dns_us: u64,
    /// TCP handshakes.
    pub connect_us: u64,
    /// TLS handshakes.
    pub tls_us: u64,
    /// Waiting for a connection that may be used.
    pub queued_us: u64,
    /// From the first byte of a request to the first byte of its response.
    pub wait_us: u64,
    /// From the first byte of a response to the last one needed.
    pub receive_us: u64,
    /// The browser computes, or waits for its own turn.
    pub compute_us: u64,
}

/// One request: `requests.jsonl`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RequestRow {
    /// Which load.
    #[serde(flatten)]
    pub key: Key,
    /// The resource's index in its page.
    pub index: u32,
    /// Index of the resource that asked for it.
    pub parent: Option<u32>,
    /// URL.
    pub url: String,
    /// `document`, `style`, `script`, `image`, `font`, `xhr`, `media` or `other`.
    pub kind: String,
    /// Host, and port if it is not the scheme's own.
    pub host: String,
    /// The connection it was sent on: [`ConnectionRow::connection`].
    pub connection: Option<u32>,
    /// Status code of the response.
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: RequestOutcome,
    /// Why it failed.
    pub reason: Option<String>,
    /// The browser learns that it needs it.
    pub discovered_us: u64,
    /// A name look-up begins, on the request that waits for it; so are the next four.
    pub dns_start_us: Option<u64>,
    /// The address is known.
    pub dns_end_us: Option<u64>,
    /// SYN sent.
    pub connect_start_us: Option<u64>,
    /// The TCP handshake is done.
    pub connect_end_us: Option<u64>,
    /// The TLS handshake is done.
    pub tls_end_us: Option<u64>,
    /// The first byte of the request is handed to the transport.
    pub sent_us: Option<u64>,
    /// The first byte of the response is there.
    pub first_byte_us: Option<u64>,
    /// The last byte is there.
    pub complete_us: Option<u64>,
    /// Parsed, run or decoded.
    pub used_us: Option<u64>,
    /// Priority on the wire, 0 first; 0 where a transport has none.
    pub priority: u8,
    /// Bytes of the request's head as sent, compressed if the transport compresses.
    pub head_up_bytes: u64,
    /// Bytes of the response's head as sent.
    pub head_down_bytes: u64,
    /// Bytes of the response's body that arrived.
    pub body_bytes: u64,
    /// On a second visit, if the cache was used: `fresh`, it was not asked for; `validated`, the server said that it has not changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cache: Option<String>,
    /// If it was asked for before the page came to it: `hint` or `prefetch`. It is discovered when it is asked for then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ahead: Option<String>,
    /// When the page came to it, if it was asked for before; left out if it never did, and it was wasted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub needed_us: Option<u64>,
    /// `onload` does not wait for it.
    pub after_load: bool,
}

/// One connection: `connections.jsonl`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ConnectionRow {
    /// Which load.
    #[serde(flatten)]
    pub key: Key,
    /// From 0, in the order of opening.
    pub connection: u32,
    /// The first host it was opened for.
    pub host: String,
    /// The server's address.
    pub address: String,
    /// `http/1.1`, `spdy/3.1`, …
    pub protocol: String,
    /// SYN sent.
    pub opened_us: u64,
    /// The TCP handshake is done.
    pub connected_us: Option<u64>,
    /// The TLS handshake is done.
    pub secured_us: Option<u64>,
    /// Closed before the load ended.
    pub closed_us: Option<u64>,
    /// Requests sent on it.
    pub requests: u32,
    /// TCP payload towards the server.
    pub bytes_up: u64,
    /// TCP payload towards the client.
    pub bytes_down: u64,
    /// Segments towards the client.
    pub segments_down: u64,
    /// Segments sent again, both ends.
    pub retransmits: u64,
    /// Retransmission timeouts, both ends.
    pub timeouts: u64,
    /// What it was opened for, if not for a request that waited: `speculative` (ahead of need), `spare` (beside one that took
    /// long) or `alternate` (the same, to another address). Those of them with no `requests` were wasted. Left out otherwise, so
    /// that rows of old are as they were.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub purpose: Option<String>,
}

/// How a load of the live world was made: `live.jsonl`. Unlike the other rows it is as the machine was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LiveRow {
    /// Which load.
    #[serde(flatten)]
    pub key: Key,
    /// What of the plan the live world could not do, in words.
    pub unmet: Vec<String>,
    /// Settings of the kernel's TCP, read back.
    pub kernel: Vec<KnobRow>,
    /// How long the browser's thread was ready to run while other programs of the machine had the processor, ms.
    #[serde(default)]
    pub browser_waited_ms: Option<f64>,
    /// The same of the servers' thread.
    #[serde(default)]
    pub servers_waited_ms: Option<f64>,
    /// The emulated link towards the servers.
    pub up: LiveWayRow,
    /// The emulated link towards the client.
    pub down: LiveWayRow,
}

/// A setting of the kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KnobRow {
    /// `client` or `server`.
    pub end: String,
    /// A path below `/proc/sys/net`, or a metric of the route.
    pub name: String,
    /// What was asked for.
    pub asked: String,
    /// What the kernel had.
    pub got: String,
}

/// How exact the emulated link was in one direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LiveWayRow {
    /// Packets that it delivered.
    pub packets: u64,
    /// How late the median packet was, beyond the link's own delay.
    pub late_median_us: Option<f64>,
    /// How late 99 of 100 packets were at most.
    pub late_p99_us: Option<f64>,
    /// How late the latest was.
    pub late_max_us: Option<f64>,
}

/// One page of the run: `pages.jsonl`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PageRow {
    /// The page's id, unique in the run and safe as a file name.
    pub page: String,
    /// Title as recorded; may be empty.
    pub title: String,
    /// URL of the first request.
    pub url: String,
    /// Origins.
    pub hosts: u32,
    /// Resources.
    pub requests: u32,
    /// Bytes of all response bodies on a cold load.
    pub bytes: u64,
    /// Page load time as recorded.
    pub on_load_us: Option<u64>,
    /// The file as it was named, or `corpus:NAME`.
    pub source: String,
    /// FNV-1a and splitmix64 over the page as read, hexadecimal: tells whether a recording changed between two runs.
    pub fingerprint: String,
    /// What its reader had to assume.
    pub assumptions: Vec<AssumptionRow>,
}

/// Something that a recording did not say, and what was taken instead.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AssumptionRow {
    /// A stable short name.
    pub kind: String,
    /// A sentence without its full stop.
    pub detail: String,
    /// How many times.
    pub count: u32,
}

/// Some input that could not be raced: `problems.jsonl`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProblemRow {
    /// The file as it was named.
    pub file: String,
    /// Index of the entry within it, from 0.
    pub entry: Option<u64>,
    /// The field.
    pub field: Option<String>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for ProblemRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(entry) = self.entry {
            write!(f, "entry {entry}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// Appends a row and its line end.
///
/// # Panics
/// Never: a row has only string keys and finite numbers.
pub fn emit<T: Serialize>(row: &T, out: &mut Vec<u8>) {
    serde_json::to_writer(&mut *out, row).expect("rows serialise, and a vector takes every byte");
    out.push(b'\n');
}

/// The rows of a file, one at a time; an error names file and line. A file may be larger than memory.
pub struct Rows<T> {
    path: PathBuf,
    lines: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    row: std::marker::PhantomData<T>,
}

/// The longest line taken for a row. A URL is the only part without a bound of its own.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// Opens a file of rows.
pub fn rows<T: DeserializeOwned>(path: &Path) -> Result<Rows<T>, Error> {
    let file = File::open(path).map_err(|e| Error::io("cannot read", path, e))?;
    Ok(Rows {
        path: path.to_owned(),
        lines: BufReader::new(file),
        line: Vec::new(),
        number: 0,
        row: std::marker::PhantomData,
    })
}

impl<T: DeserializeOwned> Iterator for Rows<T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        use std::io::Read;
        self.line.clear();
        self.number += 1;
        let mut bounded = (&mut self.lines).take(LINE_BYTES_MAX);
        match bounded.read_until(b'\n', &mut self.line) {
            Err(e) => return Some(Err(Error::io("cannot read", &self.path, e))),
            Ok(0) => return None,
            Ok(_) => {}
        }
        let bad = |what: String| Error::Row { file: self.path.clone(), line: self.number, what };
        if self.line.last() != Some(&b'\n') {
            return Some(Err(bad("the line is cut off".to_owned())));
        }
        Some(serde_json::from_slice(&self.line).map_err(|e| bad(e.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_its_field_order_and_says_null_for_what_there_is_not() {
        let row = ProblemRow { file: "a.har".into(), entry: Some(3), field: None, what: "no".into() };
        let mut out = Vec::new();
        emit(&row, &mut out);
        assert_eq!(out, b"{\"file\":\"a.har\",\"entry\":3,\"field\":null,\"what\":\"no\"}\n");
        assert_eq!(row.to_string(), "a.har: entry 3: no");
    }

    #[test]
    fn a_bad_row_is_named_by_file_and_line() {
        let dir = crate::scratch::Dir::new("bad-row");
        let path = dir.path().join("problems.jsonl");
        std::fs::write(
            &path,
            "{\"file\":\"a\",\"entry\":null,\"field\":null,\"what\":\"w\"}\n{\"file\":1}\n{",
        )
        .unwrap();
        let mut rows = rows::<ProblemRow>(&path).unwrap();
        assert_eq!(rows.next().unwrap().unwrap().file, "a");
        let second = rows.next().unwrap().unwrap_err().to_string();
        assert!(second.contains("problems.jsonl:2: invalid type: integer `1`"), "{second}");
        let third = rows.next().unwrap().unwrap_err().to_string();
        assert!(third.contains("problems.jsonl:3: the line is cut off"), "{third}");
        assert!(rows.next().is_none());
    }
}
