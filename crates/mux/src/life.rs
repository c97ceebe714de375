//! Which directions of a stream are still open.

/// A stream's two directions. What a protocol adds to this (idle, reserved, replied to) it keeps beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifecycle {
    send: bool,
    receive: bool,
}

impl Lifecycle {
    /// Both directions open: a request with a body, from either end.
    pub const BOTH: Lifecycle = Lifecycle { send: true, receive: true };
    /// Only this end sends: a push, seen by the server.
    pub const SEND_ONLY: Lifecycle = Lifecycle { send: true, receive: false };
    /// Only the peer sends: a push, seen by the client.
    pub const RECEIVE_ONLY: Lifecycle = Lifecycle { send: false, receive: true };

    /// Whether this end may still send.
    pub const fn can_send(self) -> bool {
        self.send
    }

    /// Whether the peer may still send.
    pub const fn can_receive(self) -> bool {
        self.receive
    }

    /// Whether both directions have ended.
    pub const fn is_closed(self) -> bool {
        !self.send && !self.receive
    }

    /// This end has sent its last byte.
    pub const fn end_send(&mut self) {
        self.send = false;
    }

    /// The peer's last byte has arrived.
    pub const fn end_receive(&mut self) {
        self.receive = false;
    }

    /// Both directions end at once: RST_STREAM, or the connection is gone.
    pub const fn reset(&mut self) {
        *self = Lifecycle { send: false, receive: false };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9113 §5.1; SPDY/3.1 §2.3.6 and §2.3.7.
    #[test]
    fn a_stream_closes_when_both_ends_have_finished_or_either_resets() {
        let mut life = Lifecycle::BOTH;
        life.end_receive();
        assert!(life.can_send() && !life.can_receive() && !life.is_closed());
        life.end_send();
        assert!(life.is_closed());

        let mut life = Lifecycle::SEND_ONLY;
        assert!(!life.can_receive());
        life.end_send();
        assert!(life.is_closed());

        let mut life = Lifecycle::RECEIVE_ONLY;
        life.reset();
        assert!(life.is_closed());
    }
}
