//! What `fetch -v` prints: one line for each thing that happens, every frame both ways.
//!
//! `*` is what happens to a connection, `>` goes to the server, `<` comes from it; the figure is milliseconds since the
//! beginning.

use std::collections::BTreeMap;
use std::fmt::Display;

use base::{Fields, Instant};
use live::fetch::{Direction, Event, Exchange, Protocol};
use spdy::Limits;
use spdy::trace::Decoder;

use crate::print;

/// Prints.
#[derive(Default)]
pub struct Trace {
    /// By connection: what goes up, what comes down.
    decoders: BTreeMap<usize, [Decoder; 2]>,
    speaking: BTreeMap<usize, Protocol>,
}

impl Trace {
    /// Prints what happened.
    pub fn event(&mut self, now: Instant, event: &Event<'_>, exchanges: &[Exchange]) {
        let say = |mark: char, what: &dyn Display| line(now, mark, what);
        match event {
            Event::Resolved { host, addresses } => {
                let addresses: Vec<_> = addresses.iter().map(|a| a.ip().to_string()).collect();
                say('*', &format!("{host} is {}", addresses.join(", ")));
            }
            Event::Connecting { connection, address } => {
                say('*', &format!("connection {connection} to {address}"))
            }
            Event::NotConnected { connection, address, why } => {
                say('*', &format!("connection {connection}: {address}: {why}"));
            }
            Event::Connected { connection } => say('*', &format!("connection {connection}: TCP is there")),
            Event::Secured { connection, negotiated: n, false_start } => {
                let protocol =
                    n.protocol.as_ref().map_or("no protocol".into(), |(p, by)| format!("{p} by {by}"));
                let notes =
                    [(n.resumed, ", resumed"), (n.stapled, ", stapled"), (*false_start, ", False Start")];
                let notes: String = notes.iter().filter(|(is, _)| *is).map(|(_, note)| *note).collect();
                say('*', &format!("connection {connection}: {} {}, {protocol}{notes}", n.version, n.cipher));
            }
            Event::Speaking { connection, protocol } => {
                say('*', &format!("connection {connection}: {protocol}"));
                self.speaking.insert(*connection, *protocol);
                if let Protocol::Spdy(version) = protocol {
                    let decoder = || Decoder::new(*version, Limits::default());
                    self.decoders.insert(*connection, [decoder(), decoder()]);
                }
            }
            Event::Wire { connection, direction, bytes } => self.wire(now, *connection, *direction, bytes),
            Event::Sent { exchange } => self.sent(now, &exchanges[*exchange]),
            Event::Head { exchange } => self.head(now, &exchanges[*exchange]),
            Event::Pushed { exchange } => say('*', &format!("pushed: {}", exchanges[*exchange].request.url)),
            Event::Again { exchange, why } => {
                say('*', &format!("again, as {why}: {}", exchanges[*exchange].request.url));
            }
            Event::GoAway { connection, unprocessed } => {
                say(
                    '*',
                    &format!(
                        "connection {connection}: the server goes away, {unprocessed} requests unprocessed"
                    ),
                );
            }
            Event::Closed { connection, why } => say('*', &format!("connection {connection} is over: {why}")),
            Event::Data { .. } | Event::Done { .. } => {}
        }
    }

    /// SPDY shows itself frame by frame.
    fn wire(&mut self, now: Instant, connection: usize, direction: Direction, bytes: &[u8]) {
        let Some([up, down]) = self.decoders.get_mut(&connection) else { return };
        let (decoder, mark) = match direction {
            Direction::Up => (up, '>'),
            Direction::Down => (down, '<'),
        };
        decoder.handle_input(bytes.to_vec().into());
        loop {
            match decoder.poll_frame() {
                Ok(Some(frame)) => line(now, mark, &format!("{frame:#}")),
                Ok(None) => return,
                Err(why) => {
                    line(now, mark, &format!("what follows cannot be read: {why}"));
                    self.decoders.remove(&connection);
                    return;
                }
            }
        }
    }

    /// HTTP/1.1 has no frames: heads are shown as they were asked for and understood.
    fn sent(&self, now: Instant, exchange: &Exchange) {
        if self.is_http1(exchange) {
            let request = &exchange.request;
            let target = &request.url[live::fetch::Position::BeforePath..];
            let target = target.split('#').next().unwrap_or_default();
            line(now, '>', &format!("{} {target}", request.method.escape_ascii()));
            fields(&request.fields);
        }
    }

    fn head(&self, now: Instant, exchange: &Exchange) {
        if let Some(response) = exchange.response.as_ref().filter(|_| self.is_http1(exchange)) {
            line(now, '<', &format!("{} for {}", response.status, exchange.request.url));
            fields(&response.fields);
        }
    }

    fn is_http1(&self, exchange: &Exchange) -> bool {
        exchange.connection.and_then(|c| self.speaking.get(&c)) == Some(&Protocol::Http1)
    }
}

fn line(now: Instant, mark: char, what: &dyn Display) {
    print::err(&format!("{mark} {:9.3}  {what}\n", now.as_nanos() as f64 / 1e6));
}

fn fields(fields: &Fields) {
    for field in fields {
        print::err(&format!("    {}: {}\n", field.name.escape_ascii(), field.value.escape_ascii()));
    }
}
