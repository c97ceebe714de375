//! Any bytes, cut anywhere.

use base::{Chunk, Instant};
use bytes::Bytes;
use spdy::frame::{Control, Head};
use spdy::trace::{Decoder, Frame};
use spdy::{Config, Error, Event, Limits, Mapping, Misbehaviour, Opening, Priority, Session, Version};

use super::Script;
use super::common::{Seen, Tap, body, fields, post};

/// A passive decoder, a client with streams open, and a server, each given any bytes cut anywhere. All see the same
/// wherever the cuts are, say no more than what they were given can provoke, and hold no more than they state.
pub fn input(data: &[u8]) {
    let mut script = Script(data);
    let config = script.config();
    let cut = 1 + usize::from(script.byte()) * 8;
    let data = script.0;
    let whole = decode(config.version, config.limits, data, data.len().max(1));
    assert_eq!(decode(config.version, config.limits, data, cut), whole);
    for frame in &whole.0 {
        assert!(!frame.to_string().contains('\n') && format!("{frame:#}").is_ascii());
    }
    frames_survive_a_round_trip(config.version, &config.limits, data);
    for make in [client as fn(&Config) -> Session, |config| Session::server(config.clone())] {
        let outcome = listen(&config, make(&config), data, data.len().max(1));
        assert_eq!(listen(&config, make(&config), data, cut), outcome, "the same wherever the cuts are");
        outcome.check(&config, data);
        memory_is_bounded(&config, make, data, cut);
    }
}

/// A client in the midst of things. What it opened is its own doing; it says and holds that beside the rest.
fn client(config: &Config) -> Session {
    let mut client = Session::client(config.clone());
    for i in 0..3 {
        let opened = match config.mapping {
            Mapping::Http => client.request(&post("/"), Priority::new(i), false),
            Mapping::Streams => client.open(&fields(&[("a", "b")]), Opening::default()),
        };
        if let Ok(id) = opened {
            _ = client.send(id, body(1, 300), i == 0);
        }
    }
    client
}

/// Every frame of `data`, and why there are no more.
fn decode(version: Version, limits: Limits, data: &[u8], cut: usize) -> (Vec<Frame>, Option<Misbehaviour>) {
    let mut decoder = Decoder::new(version, limits);
    let mut frames = Vec::new();
    for piece in data.chunks(cut) {
        decoder.handle_input(piece.to_vec().into());
        loop {
            match decoder.poll_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(why) => return (frames, Some(why)),
            }
        }
    }
    (frames, None)
}

/// A control frame that can be read comes out the same when it is written and read again.
fn frames_survive_a_round_trip(version: Version, limits: &Limits, mut data: &[u8]) {
    while let Some((head, rest)) = data.split_first_chunk::<8>() {
        let Head::Control { kind, flags, len, .. } = Head::parse(*head) else { return };
        let Some(payload) = rest.get(..len as usize) else { return };
        data = &rest[len as usize..];
        let Ok(frame) = Control::parse(version, kind, flags, Bytes::copy_from_slice(payload), limits) else {
            return;
        };
        // Version 2's has no room for the status that node-spdy sends with it.
        if matches!((version, &frame), (Version::V2, Control::GoAway { .. })) {
            continue;
        }
        let mut again = Vec::new();
        frame.emit(version, &mut again);
        let (head, payload) = again.split_first_chunk::<8>().expect("a header");
        let Head::Control { kind, flags, len, .. } = Head::parse(*head) else { panic!("a control frame") };
        assert_eq!(len as usize, payload.len());
        let payload = Bytes::copy_from_slice(payload);
        assert_eq!(Control::parse(version, kind, flags, payload, limits), Ok(frame));
    }
}

/// What a session made of its input: events with data joined, and frames without credit, as how much of it is worth a frame
/// depends on what has been read by then.
#[derive(PartialEq, Debug)]
struct Outcome {
    error: Option<Error>,
    events: Vec<Event>,
    frames: Vec<Seen>,
    open: usize,
}

fn listen(config: &Config, mut session: Session, data: &[u8], cut: usize) -> Outcome {
    let mut error = None;
    for piece in data.chunks(cut) {
        error = session.handle_input(Instant::ZERO, piece.to_vec().into()).err();
        if error.is_some() {
            break;
        }
    }
    let mut events: Vec<Event> = Vec::new();
    while let Some(event) = session.poll_event() {
        match (events.last_mut(), event) {
            (
                Some(Event::Data { id, chunk: Chunk::Bytes(before), fin }),
                Event::Data { id: next, chunk: Chunk::Bytes(more), fin: last },
            ) if *id == next && !*fin => {
                *before = [&before[..], &more].concat().into();
                *fin = last;
            }
            (_, event) => events.push(event),
        }
    }
    for event in &events {
        if let Event::Data { id, chunk, .. } = event {
            session.consume(*id, chunk.len());
        }
    }
    let frames = frames_of(config, &mut session, data.len() as u64);
    let open = session.open_streams();
    session.handle_eof();
    let interrupted = std::iter::from_fn(|| session.poll_event())
        .find_map(|event| if let Event::Closed { interrupted } = event { Some(interrupted) } else { None });
    assert_eq!((interrupted.map(|ids| ids.len()), session.open_streams()), (Some(open), 0));
    assert!(session.poll_transmit(Instant::ZERO, 1).is_none());
    Outcome { error, events, frames, open }
}

/// What a session says: whole frames, in proportion to what was said to it.
fn frames_of(config: &Config, session: &mut Session, given: u64) -> Vec<Seen> {
    let mut tap = Tap::new(config.version);
    let (mut said, mut frames) = (0, Vec::new());
    while let Some(chunk) = session.poll_transmit(Instant::ZERO, 1 << 16) {
        said += chunk.len();
        frames.extend(tap.feed(chunk));
    }
    assert!(tap.is_clean(), "whole frames");
    // An empty SYN_STREAM of 21 bytes can be answered 400 in 70; with a window of one byte, each of data in 32.
    assert!(said <= 10_000 + 64 * given, "{said} bytes said to {given}");
    frames.retain(|seen| !matches!(seen, Seen::Control { frame: Control::WindowUpdate { .. }, .. }));
    frames
}

impl Outcome {
    /// No data was made up, and no more streams are open than may be.
    fn check(&self, config: &Config, given: &[u8]) {
        let data: u64 =
            self.events.iter().map(|e| if let Event::Data { chunk, .. } = e { chunk.len() } else { 0 }).sum();
        assert!(data <= given.len() as u64, "{data} bytes of data in {}", given.len());
        assert!(self.open <= 3 + config.max_concurrent_streams as usize);
    }
}

/// What a client that opened three streams holds for them, in bytes.
const OWN: u64 = 8_192;

/// What the allocator gives a session stays below what it states, all events taken after each piece; whether the peer
/// reads what is said is up to the cut.
fn memory_is_bounded(config: &Config, make: fn(&Config) -> Session, data: &[u8], cut: usize) {
    let pieces: Vec<Bytes> = data.chunks(cut).map(Bytes::copy_from_slice).collect();
    let info = allocation_counter::measure(|| {
        let mut session = make(config);
        for piece in &pieces {
            let outcome = session.handle_input(Instant::ZERO, piece.clone().into());
            while let Some(event) = session.poll_event() {
                if let Event::Data { id, chunk, .. } = &event {
                    session.consume(*id, chunk.len());
                }
            }
            while cut.is_multiple_of(16) && session.poll_transmit(Instant::ZERO, 1 << 16).is_some() {}
            if outcome.is_err() {
                break;
            }
        }
    });
    let bound = config.peer_memory(cut as u64) + OWN;
    assert!(info.bytes_max <= bound, "{} bytes held, {bound} stated", info.bytes_max);
}
