//! One end of a connection.

use base::{BodyRange, Chunk, ChunkQueue, Duration, Instant};
use bytes::{BufMut, Bytes, BytesMut};

use crate::message::{Role, Script, script};
use crate::record::{
    ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER_LEN, Header, MAX_PLAINTEXT, Seal,
};
use crate::{Config, Error, Message, Mode, Packing, Sizer, Sizing};

/// A record is not cut shorter than this for want of room in the transport below, or its overhead would show.
const SMALL_RECORD: u64 = 1_024;
/// Longest handshake message read. Messages are counted and not kept, so this protects no memory; real stacks stop at
/// less (OpenSSL at a chain of 102,400 bytes), but post-quantum chains are there to be tried.
const MAX_MESSAGE: u32 = 1 << 21;

/// One end of a TLS connection, without its cryptography.
///
/// Give it what the transport received with [`handle_input`](Session::handle_input), take what is to be sent with
/// [`poll_transmit`](Session::poll_transmit) after every call that may cause output, and call `poll_transmit` again
/// at [`poll_timeout`](Session::poll_timeout).
#[derive(Clone, Debug)]
pub struct Session {
    config: Config,
    role: Role,
    handshake: Handshake,
    /// Handshake records to send, before any new record of data.
    flight: ChunkQueue,
    /// Data not yet in a record.
    pending: ChunkQueue,
    /// Bytes of `pending` that belong to the record begun.
    record_left: u64,
    /// The header or the trailer of the record begun.
    around: ChunkQueue,
    records_sealed: u64,
    sizer: Sizer,
    /// The proxy's last piece has begun to leave, and the next is not read before all of it has.
    draining: bool,
    /// Where headers are written; a piece is split off for each.
    headers: BytesMut,
    /// What came and is not yet a whole record.
    input: ChunkQueue,
    /// Bytes that `input` must hold before looking at it is worth while.
    need: u64,
    /// What came of handshake messages and is not yet a message's header.
    messages: ChunkQueue,
    /// The type of the message that is coming, and how much of it is still to come.
    incoming: Option<(u8, u32)>,
    /// Whether the last handshake record was protected.
    incoming_sealed: bool,
    plain: ChunkQueue,
    error: Option<Error>,
    closed: bool,
    stats: Stats,
}

/// Where a session stands in its handshake.
#[derive(Clone, Debug)]
struct Handshake {
    script: Script,
    /// Number of steps that make the handshake; what is after them comes after it.
    steps: usize,
    next: usize,
    /// Until when computation holds back the next flight.
    held_until: Option<Instant>,
    /// Whether this end has computed.
    computed: bool,
    /// What a client that verifies is waiting for.
    verdict: Verdict,
    finished_sent: bool,
    finished_received: bool,
    /// TLS 1.3: a ticket has come after the handshake.
    ticket_received: bool,
    /// TLS 1.2: whether the peer's records are protected.
    peer_sealed: bool,
    established_at: Option<Instant>,
}

/// How far a client has come with the server's certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// The certificate has not come, or nobody asks about it.
    ExpectCertificate,
    /// It has come, and nobody has been told.
    Due,
    /// Somebody asks about it.
    Asked,
    /// It is as good as it gets.
    Given,
}

/// What a session has counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Bytes given out for the transport, headers and all.
    pub bytes_sent: u64,
    /// Bytes that came from the transport.
    pub bytes_received: u64,
    /// Bytes of handshake records made, headers and all.
    pub handshake_sent: u64,
    /// Bytes of handshake records that came, headers and all.
    pub handshake_received: u64,
    /// Bytes of application data given out in records.
    pub data_sent: u64,
    /// Bytes of application data that came in complete records.
    pub data_received: u64,
    /// Records of application data begun.
    pub records_sent: u64,
    /// Records of application data that came.
    pub records_received: u64,
}

impl Session {
    /// The client's end; its ClientHello is ready to be sent.
    pub fn client(config: Config, now: Instant) -> Self {
        let mut session = Self::new(config, Role::Client);
        session.proceed(now);
        session
    }

    /// The server's end; it waits for a ClientHello.
    pub fn server(config: Config, now: Instant) -> Self {
        let mut session = Self::new(config, Role::Server);
        session.proceed(now);
        session
    }

    fn new(mut config: Config, role: Role) -> Self {
        config.record_size = config.record_size.clamp(1, MAX_PLAINTEXT);
        let (script, steps) = script(&config);
        let handshake = Handshake {
            script,
            steps,
            next: 0,
            held_until: None,
            computed: false,
            verdict: Verdict::ExpectCertificate,
            finished_sent: false,
            finished_received: false,
            ticket_received: false,
            peer_sealed: false,
            established_at: None,
        };
        let sizing = if role == Role::Server { config.sizing } else { Sizing::Fixed };
        Self {
            sizer: Sizer::new(sizing, config.record_size),
            draining: false,
            config,
            role,
            handshake,
            flight: ChunkQueue::new(),
            pending: ChunkQueue::new(),
            record_left: 0,
            around: ChunkQueue::new(),
            records_sealed: 0,
            headers: BytesMut::new(),
            input: ChunkQueue::new(),
            need: HEADER_LEN as u64,
            messages: ChunkQueue::new(),
            incoming: None,
            incoming_sealed: false,
            plain: ChunkQueue::new(),
            error: None,
            closed: false,
            stats: Stats::default(),
        }
    }

    /// Whether application data would be sent now. It may be written before: it is held.
    pub fn can_send(&self) -> bool {
        let early = self.config.is_early();
        match self.role {
            _ if self.handshake.established_at.is_some() => true,
            Role::Client => early || (self.handshake.finished_sent && self.config.is_false_start()),
            Role::Server => early && self.handshake.finished_sent,
        }
    }

    /// Whether the handshake is still going on. With False Start or early data, data is sent before it ends.
    pub fn is_handshaking(&self) -> bool {
        self.handshake.established_at.is_none()
    }

    /// Whether this client has what resumes a session with its server: the one that it resumes itself, or a ticket, which comes with
    /// the server's Finished in TLS 1.2 and after the handshake in TLS 1.3.
    pub fn has_ticket(&self) -> bool {
        let after = self.config.mode == Mode::Tls13Full;
        self.handshake.established_at.is_some() && (!after || self.handshake.ticket_received)
    }

    /// When the handshake ended.
    pub fn established_at(&self) -> Option<Instant> {
        self.handshake.established_at
    }

    /// Whether the peer has said that it will send no more (`close_notify`).
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Bytes of application data written and not yet given out.
    pub fn queued(&self) -> u64 {
        self.pending.len()
    }

    /// How many more bytes of application data the next call of [`poll_transmit`](Session::poll_transmit) at `now` with `max`
    /// could put in a record, or a proxy would read. Zero while no data can be sent, without room, and while something begun earlier must go
    /// out first. Write so much before each such call, and no more: what is written later can be chosen later.
    pub fn wants(&self, now: Instant, max: u64) -> u64 {
        if max == 0 || self.is_mid_output() || !self.can_send() || self.draining {
            return 0;
        }
        let most = if self.sizer.is_proxy() { Sizing::PROXY_CHUNK } else { self.capacity(now, max) };
        most.saturating_sub(self.pending.len())
    }

    /// What was counted so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Changes the most plaintext bytes that a record carries, from the next record on.
    pub fn set_record_size(&mut self, record_size: u32) {
        self.config.record_size = record_size.clamp(1, MAX_PLAINTEXT);
        self.sizer.set_fixed(record_size);
    }

    /// Takes what the transport received, in whatever pieces it came. Plaintext is there to [`read`](Session::read)
    /// once its record is complete, and is kept until it is read; of all else no more is kept than a record.
    pub fn handle_input(&mut self, now: Instant, chunk: Chunk) -> Result<(), Error> {
        self.stats.bytes_received += chunk.len();
        if let Some(error) = self.error {
            return Err(error);
        }
        self.input.push(chunk);
        while self.input.len() >= self.need {
            if let Err(error) = self.handle_record(now) {
                self.error = Some(error);
                self.input.clear();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Ends a computation that is over by `now`. [`poll_transmit`](Session::poll_transmit) does so too.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.handshake.held_until.is_some_and(|at| at <= now) {
            self.handshake.held_until = None;
            self.proceed(now);
        }
    }

    /// Whether the server's certificate has come, in a session that is to [verify](Config::verify) it; true once.
    pub fn poll_certificate(&mut self) -> bool {
        let due = self.handshake.verdict == Verdict::Due;
        if due {
            self.handshake.verdict = Verdict::Asked;
        }
        due
    }

    /// The certificate is accepted: the handshake goes on. Of no effect unless [`poll_certificate`](Self::poll_certificate) has said
    /// that it came.
    pub fn verified(&mut self, now: Instant) {
        if self.handshake.verdict == Verdict::Asked {
            self.handshake.verdict = Verdict::Given;
            self.proceed(now);
        }
    }

    /// When a computation will be over that holds back a flight.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.handshake.held_until
    }

    /// Hands over application data to be sent.
    pub fn write(&mut self, chunk: Chunk) {
        self.pending.push(chunk);
    }

    /// Takes a piece of the application data that came in complete records.
    pub fn read(&mut self) -> Option<Chunk> {
        self.plain.pop(u64::MAX)
    }

    /// Gives the next bytes to send, at most `max`; call again until it gives `None`.
    ///
    /// A record of application data is begun only when it is asked for. It takes what is written by then, as far as it
    /// fits `max` and the record size, but it is not cut below 1,024 bytes for want of room: then the rest of it comes
    /// with the next calls.
    pub fn poll_transmit(&mut self, now: Instant, max: u64) -> Option<Chunk> {
        self.handle_timeout(now);
        if !self.is_mid_output() {
            self.begin_record(now, max);
        }
        let chunk = if !self.around.is_empty() {
            self.around.pop(max)
        } else if self.record_left > 0 {
            let chunk = self.pending.pop(self.record_left.min(max));
            if let Some(chunk) = &chunk {
                self.record_left -= chunk.len();
                if self.record_left == 0 {
                    self.draining &= !self.pending.is_empty();
                    let trailer = Seal::of(self.config.mode).after(APPLICATION_DATA);
                    self.around.push(Bytes::from_static(trailer).into());
                }
            }
            chunk
        } else {
            self.flight.pop(max)
        }?;
        self.stats.bytes_sent += chunk.len();
        Some(chunk)
    }

    /// Whether there is something to send that is decided already.
    fn is_mid_output(&self) -> bool {
        !self.around.is_empty() || self.record_left > 0 || !self.flight.is_empty()
    }

    /// Plaintext bytes of a record made for `max` bytes of room.
    fn capacity(&self, now: Instant, max: u64) -> u64 {
        let overhead = Seal::of(self.config.mode).overhead();
        let limit = u64::from(self.sizer.limit(now, overhead as u32));
        if self.sizer.is_proxy() {
            return limit; // it knows nothing of room
        }
        max.saturating_sub(overhead).max(SMALL_RECORD).min(limit)
    }

    /// Begins a record of application data, if there is data that may be sent.
    fn begin_record(&mut self, now: Instant, max: u64) {
        if max == 0 || self.pending.is_empty() || !self.can_send() {
            return;
        }
        self.record_left = self.capacity(now, max).min(self.pending.len());
        self.sizer.note(now, self.record_left);
        self.draining = self.sizer.is_proxy();
        let header = self.header(APPLICATION_DATA, self.record_left, Seal::of(self.config.mode));
        self.around.push(header.into());
        self.stats.data_sent += self.record_left;
        self.stats.records_sent += 1;
    }

    /// A record's header, and what goes before its plaintext.
    fn header(&mut self, record_type: u8, plaintext: u64, seal: Seal) -> Bytes {
        let first = self.handshake.next == 0 && self.role == Role::Client;
        let header = Header {
            // RFC 8446 section 5.2: a protected record of TLS 1.3 says that it is application data.
            record_type: if seal == Seal::Tls13 { APPLICATION_DATA } else { record_type },
            // Appendix D.4 and RFC 5246 appendix E.1: the first ClientHello is sent as TLS 1.0.
            version: if first { 0x0301 } else { 0x0303 },
            len: (plaintext as usize + seal.expansion()) as u16,
        };
        if self.headers.capacity() < HEADER_LEN + seal.before() {
            self.headers.reserve(512);
        }
        self.headers.put_slice(&header.emit());
        if seal == Seal::Tls12 {
            // RFC 5288 section 3 leaves the nonce to the sender; all count.
            self.headers.put_u64(self.records_sealed);
            self.records_sealed += 1;
        }
        self.headers.split().freeze()
    }

    /// Goes on with the handshake as far as it is this end's turn.
    fn proceed(&mut self, now: Instant) {
        self.skip_peer_change_cipher_spec();
        let hs = &mut self.handshake;
        let mine = hs.script.get(hs.next).is_some_and(|(role, _)| *role == self.role);
        let verifies = self.role == Role::Client && self.config.verifies_behind().is_some();
        if mine && hs.next > 0 && verifies && hs.verdict != Verdict::Given {
            if hs.verdict == Verdict::ExpectCertificate {
                hs.verdict = Verdict::Due;
            }
            return;
        }
        if mine && hs.next > 0 && !hs.computed {
            hs.computed = true;
            let compute = match self.role {
                Role::Client => self.config.client_compute,
                Role::Server => self.config.server_compute,
            };
            if compute > Duration::ZERO {
                hs.held_until = Some(now + compute);
                return;
            }
        }
        if mine && hs.held_until.is_none() {
            self.send_flight();
            self.skip_peer_change_cipher_spec();
        }
        let hs = &mut self.handshake;
        if hs.next >= hs.steps && hs.established_at.is_none() {
            hs.established_at = Some(now);
        }
    }

    /// In TLS 1.3 a peer's ChangeCipherSpec means nothing (RFC 8446 section 5), and is not waited for.
    fn skip_peer_change_cipher_spec(&mut self) {
        let hs = &mut self.handshake;
        let peers = |step: &(Role, Message)| step.0 != self.role && step.1 == Message::ChangeCipherSpec;
        if self.config.mode.is_tls13() && hs.script.get(hs.next).is_some_and(peers) {
            hs.next += 1;
        }
    }

    /// Queues this end's messages up to the peer's next.
    fn send_flight(&mut self) {
        let mut packed = ChunkQueue::new();
        let mut seal = Seal::None;
        while let Some((role, message)) = self.handshake.script.get(self.handshake.next).copied() {
            if role != self.role {
                break;
            }
            let len = self.config.message_len(message);
            let message_seal =
                if message.is_sealed(self.config.mode) { Seal::of(self.config.mode) } else { Seal::None };
            let alone = match self.config.packing {
                Packing::Coalesced => false,
                Packing::CoalescedIfEnciphered => message_seal == Seal::None,
                Packing::PerMessage => true,
            };
            if message_seal != seal || alone {
                self.send_records(&mut packed, HANDSHAKE, seal);
                seal = message_seal;
            }
            match message.wire_type() {
                None => {
                    self.send_records(&mut packed, HANDSHAKE, seal);
                    packed.push(Bytes::from_static(&[1]).into());
                    self.send_records(&mut packed, CHANGE_CIPHER_SPEC, Seal::None);
                }
                Some(wire_type) if len > 0 => {
                    let body = len - 4;
                    packed.push(
                        Bytes::copy_from_slice(&(u32::from(wire_type) << 24 | body).to_be_bytes()).into(),
                    );
                    packed.push(BodyRange::filler(u64::from(body)).into());
                }
                Some(_) => {}
            }
            if message.ends_record() {
                self.send_records(&mut packed, HANDSHAKE, seal);
            }
            self.handshake.finished_sent |= message == Message::Finished;
            self.handshake.next += 1;
        }
        self.send_records(&mut packed, HANDSHAKE, seal);
    }

    /// Queues `plaintext` in as many records as it takes, and empties it.
    fn send_records(&mut self, plaintext: &mut ChunkQueue, record_type: u8, seal: Seal) {
        while !plaintext.is_empty() {
            let len = plaintext.len().min(u64::from(self.config.record_size));
            let header = self.header(record_type, len, seal);
            self.flight.push(header.into());
            transfer(plaintext, len, &mut self.flight);
            self.flight.push(Bytes::from_static(seal.after(record_type)).into());
            self.stats.handshake_sent += len + seal.overhead();
        }
    }

    /// Looks at the head of the input: a whole record, or a header that says how much is missing.
    fn handle_record(&mut self, now: Instant) -> Result<(), Error> {
        let bytes = self.input.peek::<HEADER_LEN>().ok_or(Error::Unreadable)?;
        let tls13 = self.config.mode.is_tls13();
        let seal = match bytes[0] {
            APPLICATION_DATA if tls13 => Seal::Tls13,
            _ if self.handshake.peer_sealed && !tls13 => Seal::Tls12,
            _ => Seal::None,
        };
        let header = Header::parse(bytes, seal)?;
        let whole = HEADER_LEN as u64 + u64::from(header.len);
        if self.input.len() < whole {
            self.need = whole;
            return Ok(());
        }
        self.need = HEADER_LEN as u64;
        discard(&mut self.input, (HEADER_LEN + seal.before()) as u64);
        let len = u64::from(header.len) - seal.expansion() as u64;
        if len > u64::from(MAX_PLAINTEXT) {
            return Err(Error::RecordTooLong(header.len));
        }
        let record_type = match seal {
            // The true type follows the plaintext (RFC 8446 section 5.2). Nobody pads here, so it is not zero.
            Seal::Tls13 => byte_at(&self.input, len).ok_or(Error::Unreadable)?,
            _ => header.record_type,
        };
        match record_type {
            APPLICATION_DATA => self.handle_data(len)?,
            HANDSHAKE => {
                self.stats.handshake_received += whole;
                // No empty fragments, no message across a change of keys (RFC 8446 section 5.1).
                let sealed = seal != Seal::None;
                if len == 0 || (self.is_mid_message() && sealed != self.incoming_sealed) {
                    return Err(Error::UnexpectedRecord(HANDSHAKE));
                }
                self.incoming_sealed = sealed;
                transfer(&mut self.input, len, &mut self.messages);
                self.handle_messages(now)?;
            }
            CHANGE_CIPHER_SPEC => {
                self.stats.handshake_received += whole;
                self.handle_change_cipher_spec(len, seal)?;
            }
            ALERT => self.handle_alert(len)?,
            other => return Err(Error::RecordType(other)),
        }
        discard(&mut self.input, (seal.expansion() - seal.before()) as u64);
        Ok(())
    }

    fn handle_data(&mut self, len: u64) -> Result<(), Error> {
        let early = self.role == Role::Server && self.config.is_early() && self.handshake.next > 0;
        if !(self.handshake.finished_received || early) || self.is_mid_message() {
            return Err(Error::UnexpectedRecord(APPLICATION_DATA));
        }
        transfer(&mut self.input, len, &mut self.plain);
        self.stats.data_received += len;
        self.stats.records_received += 1;
        Ok(())
    }

    fn handle_change_cipher_spec(&mut self, len: u64, seal: Seal) -> Result<(), Error> {
        let unexpected = Err(Error::UnexpectedRecord(CHANGE_CIPHER_SPEC));
        if len != 1 || seal != Seal::None || self.is_mid_message() {
            return unexpected;
        }
        discard(&mut self.input, len);
        if self.config.mode.is_tls13() {
            // Dropped without a thought, but not before the first message nor after the handshake (RFC 8446
            // section 5).
            return if self.handshake.next > 0 && !self.handshake.finished_received {
                Ok(())
            } else {
                unexpected
            };
        }
        if self.expect(|message| message == Message::ChangeCipherSpec).is_none() {
            return unexpected;
        }
        self.handshake.peer_sealed = true;
        Ok(())
    }

    fn handle_alert(&mut self, len: u64) -> Result<(), Error> {
        match self.input.peek::<2>() {
            Some([_, 0]) if len == 2 => {
                self.closed = true;
                discard(&mut self.input, len);
                Ok(())
            }
            Some([_, description]) if len == 2 => Err(Error::Alert(description)),
            _ => Err(Error::UnexpectedRecord(ALERT)),
        }
    }

    /// Whether a handshake message has begun and not ended. Nothing may come between (RFC 8446 section 5.1).
    fn is_mid_message(&self) -> bool {
        self.incoming.is_some() || !self.messages.is_empty()
    }

    fn handle_messages(&mut self, now: Instant) -> Result<(), Error> {
        loop {
            let (wire_type, left) = match self.incoming {
                Some(incoming) => incoming,
                None if self.messages.len() < 4 => return Ok(()),
                None => {
                    let bytes = self.messages.peek::<4>().ok_or(Error::Unreadable)?;
                    discard(&mut self.messages, 4);
                    let len = u32::from_be_bytes(bytes) & 0x00ff_ffff;
                    if len > MAX_MESSAGE {
                        return Err(Error::MessageTooLong(len));
                    }
                    (bytes[0], len)
                }
            };
            let here = u64::from(left).min(self.messages.len());
            discard(&mut self.messages, here);
            let left = left - here as u32;
            if left > 0 {
                self.incoming = Some((wire_type, left));
                return Ok(());
            }
            self.incoming = None;
            self.handle_message(now, wire_type)?;
        }
    }

    fn handle_message(&mut self, now: Instant, wire_type: u8) -> Result<(), Error> {
        if !self.is_handshaking() {
            let ticket = Message::NewSessionTicket.wire_type() == Some(wire_type);
            let may =
                ticket && self.role == Role::Client && self.incoming_sealed && self.config.mode.is_tls13();
            let error = Error::UnexpectedMessage { got: wire_type, expected: None };
            self.handshake.ticket_received |= may;
            return if may { Ok(()) } else { Err(error) };
        }
        let expected = self.handshake.script.get(self.handshake.next).map(|(_, message)| *message);
        let Some(message) = self.expect(|message| message.wire_type() == Some(wire_type)) else {
            return Err(Error::UnexpectedMessage { got: wire_type, expected });
        };
        if message.is_sealed(self.config.mode) != self.incoming_sealed {
            return Err(Error::UnexpectedRecord(HANDSHAKE));
        }
        self.handshake.finished_received |= message == Message::Finished;
        if self.role == Role::Client && self.config.verifies_behind() == Some(message) {
            self.handshake.verdict = Verdict::Due;
        }
        self.proceed(now);
        Ok(())
    }

    /// Takes the peer's next step if it is `wanted`, past such as may be missing.
    fn expect(&mut self, wanted: impl Fn(Message) -> bool) -> Option<Message> {
        let hs = &mut self.handshake;
        for (i, (role, message)) in hs.script.iter().enumerate().take(hs.steps).skip(hs.next) {
            if *role == self.role {
                break;
            }
            if wanted(*message) {
                hs.next = i + 1;
                return Some(*message);
            }
            if !message.is_optional() {
                break;
            }
        }
        None
    }
}

/// Moves the first `n` bytes of one queue to another.
fn transfer(from: &mut ChunkQueue, mut n: u64, to: &mut ChunkQueue) {
    while n > 0 {
        let chunk = from.pop(n).expect("the caller counted them");
        n -= chunk.len();
        to.push(chunk);
    }
}

/// Drops the first `n` bytes of a queue.
fn discard(queue: &mut ChunkQueue, mut n: u64) {
    while n > 0 {
        n -= queue.pop(n).expect("the caller counted them").len();
    }
}

/// The byte at `offset`, unless it belongs to a body.
fn byte_at(queue: &ChunkQueue, mut offset: u64) -> Option<u8> {
    for chunk in queue.iter() {
        if offset < chunk.len() {
            let Chunk::Bytes(bytes) = chunk else { return None };
            return Some(bytes[offset as usize]);
        }
        offset -= chunk.len();
    }
    None
}

#[cfg(test)]
mod tests;
