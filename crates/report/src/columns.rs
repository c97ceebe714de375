//! The requests and the connections of one load as columns.
//!
//! Times are whole tenths of a millisecond, finer than any screen shows. A request's times are differences, each from
//! the last one known before it, and `discovered` from that of the request before: small numbers pack well.

use lab::result::{ConnectionRow, RequestOutcome, RequestRow};
use serde::Serialize;

/// Microseconds to the unit of the columns, rounded.
fn tick(us: u64) -> i64 {
    i64::try_from(us.saturating_add(50) / 100).unwrap_or(i64::MAX)
}

/// One element a request.
#[derive(Default, Serialize)]
pub(crate) struct Requests {
    /// Index into the page's resources.
    resource: Vec<u32>,
    connection: Vec<Option<u32>>,
    status: Vec<Option<u16>>,
    /// 0 complete, 1 failed, 2 pending.
    outcome: Vec<u8>,
    /// Position and reason, only where there is one.
    reason: Vec<(usize, String)>,
    discovered: Vec<i64>,
    /// DNS start and end, connect start and end, TLS end, sent, first byte, complete, used.
    times: [Vec<Option<i64>>; 9],
    priority: Vec<u8>,
    head_up: Vec<u64>,
    head_down: Vec<u64>,
    body: Vec<u64>,
    #[serde(skip)]
    last_discovered: i64,
}

impl Requests {
    /// Appends a request of the page's resource number `resource`.
    pub fn push(&mut self, resource: u32, row: RequestRow) {
        if let Some(reason) = row.reason {
            self.reason.push((self.resource.len(), reason));
        }
        self.resource.push(resource);
        self.connection.push(row.connection);
        self.status.push(row.status);
        self.outcome.push(match row.outcome {
            RequestOutcome::Complete => 0,
            RequestOutcome::Failed => 1,
            RequestOutcome::Pending => 2,
        });
        let discovered = tick(row.discovered_us);
        self.discovered.push(discovered - self.last_discovered);
        self.last_discovered = discovered;
        let times = [
            row.dns_start_us,
            row.dns_end_us,
            row.connect_start_us,
            row.connect_end_us,
            row.tls_end_us,
            row.sent_us,
            row.first_byte_us,
            row.complete_us,
            row.used_us,
        ];
        let mut last = discovered;
        for (column, us) in self.times.iter_mut().zip(times) {
            column.push(us.map(|us| {
                let now = tick(us);
                now - std::mem::replace(&mut last, now)
            }));
        }
        self.priority.push(row.priority);
        self.head_up.push(row.head_up_bytes);
        self.head_down.push(row.head_down_bytes);
        self.body.push(row.body_bytes);
    }
}

/// One element a connection; times are not differences here.
#[derive(Default, Serialize)]
pub(crate) struct Connections {
    id: Vec<u32>,
    host: Vec<String>,
    address: Vec<String>,
    protocol: Vec<String>,
    opened: Vec<i64>,
    connected: Vec<Option<i64>>,
    secured: Vec<Option<i64>>,
    closed: Vec<Option<i64>>,
    requests: Vec<u32>,
    bytes_up: Vec<u64>,
    bytes_down: Vec<u64>,
    segments_down: Vec<u64>,
    retransmits: Vec<u64>,
    timeouts: Vec<u64>,
    /// Position and purpose, only of those that no waiting request had asked for.
    purpose: Vec<(usize, String)>,
}

impl Connections {
    /// Appends a connection.
    pub fn push(&mut self, row: ConnectionRow) {
        if let Some(purpose) = row.purpose {
            self.purpose.push((self.id.len(), purpose));
        }
        self.id.push(row.connection);
        self.host.push(row.host);
        self.address.push(row.address);
        self.protocol.push(row.protocol);
        self.opened.push(tick(row.opened_us));
        self.connected.push(row.connected_us.map(tick));
        self.secured.push(row.secured_us.map(tick));
        self.closed.push(row.closed_us.map(tick));
        self.requests.push(row.requests);
        self.bytes_up.push(row.bytes_up);
        self.bytes_down.push(row.bytes_down);
        self.segments_down.push(row.segments_down);
        self.retransmits.push(row.retransmits);
        self.timeouts.push(row.timeouts);
    }
}
