//! Two connections and the bytes between them.
//!
//! What one end says, the other hears: bytes, the end of them in each direction, and a reset. What waits in between is bounded: here
//! [`ROOM`] bytes each way, in the kernel what its buffers hold, of which there are few towards the link
//! ([`prepare`](crate::prepare)) and few towards the machine itself ([`LOCAL_BUFFER`]).

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use mio::net::TcpStream;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Bytes that wait here, each way.
const ROOM: usize = 64 * 1024;

/// The kernel's buffer for what a server on this machine has sent. By default it may grow to megabytes, which the server would take for
/// sent.
const LOCAL_BUFFER: usize = 64 * 1024;

/// Reads and writes of one pair before others have their turn.
const TURN: usize = 32;

/// Starts connecting.
pub(super) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    if to.ip().is_loopback() {
        socket.set_recv_buffer_size(LOCAL_BUFFER)?;
    }
    match socket.connect(&to.into()) {
        Err(e) if e.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => Err(e),
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}

/// Whether a connection is made; an error if it will not be.
pub(super) fn is_made(stream: &TcpStream) -> io::Result<bool> {
    if let Some(e) = stream.take_error()? {
        return Err(e);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(e) => Err(e),
    }
}

/// Lets a connection end with a reset when it is closed (SO_LINGER of zero, socket(7)).
pub(super) fn reset(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// A connection at the far end and one outside.
pub(super) struct Pair {
    pub far: TcpStream,
    pub outer: TcpStream,
    /// Whether the outer one is made.
    made: bool,
    out: Pipe,
    back: Pipe,
}

/// What becomes of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// It waits for either end.
    Waits,
    /// It could go on.
    Over,
    /// Both directions have ended, or one end was reset and the other is now.
    Ended,
    /// The connection outside was refused.
    Refused,
}

/// One direction.
struct Pipe {
    buffer: Box<[u8]>,
    from: usize,
    to: usize,
    /// No more comes.
    ended: bool,
    /// And whoever reads knows.
    told: bool,
}

impl Pair {
    /// A pair of a connection accepted at the far end and one outside, which need not be made yet.
    pub fn new(far: TcpStream, outer: TcpStream) -> io::Result<Self> {
        crate::prepare(&far)?;
        Ok(Self { far, outer, made: false, out: Pipe::new(), back: Pipe::new() })
    }

    /// Carries what there is, for a turn.
    pub fn pump(&mut self) -> Turn {
        if !self.made {
            match is_made(&self.outer) {
                Ok(true) => self.made = true,
                Ok(false) => return Turn::Waits,
                Err(_) => {
                    self.reset();
                    return Turn::Refused;
                }
            }
        }
        let out = self.out.pump(&mut self.far, &mut self.outer);
        let back = self.back.pump(&mut self.outer, &mut self.far);
        match (out, back) {
            (Ok(_), Ok(_)) if self.out.told && self.back.told => Turn::Ended,
            (Ok(false), Ok(false)) => Turn::Waits,
            (Ok(_), Ok(_)) => Turn::Over,
            _ => {
                self.reset();
                Turn::Ended
            }
        }
    }

    fn reset(&self) {
        reset(&self.far);
        reset(&self.outer);
    }
}

impl Pipe {
    fn new() -> Self {
        Self { buffer: vec![0; ROOM].into(), from: 0, to: 0, ended: false, told: false }
    }

    /// Whether there may be more to do at once; an error if either end was reset.
    fn pump(&mut self, source: &mut impl Read, sink: &mut TcpStream) -> io::Result<bool> {
        for _ in 0..TURN {
            if self.from < self.to {
                match sink.write(&self.buffer[self.from..self.to]) {
                    Ok(n) => self.from += n,
                    Err(e) => return wait_or_fail(e),
                }
            } else if !self.ended {
                match source.read(&mut self.buffer) {
                    Ok(0) => self.ended = true,
                    Ok(n) => (self.from, self.to) = (0, n),
                    Err(e) => return wait_or_fail(e),
                }
            } else {
                if !self.told {
                    self.told = true;
                    sink.shutdown(Shutdown::Write)?;
                }
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn wait_or_fail(e: io::Error) -> io::Result<bool> {
    match e.kind() {
        io::ErrorKind::WouldBlock => Ok(false),
        io::ErrorKind::Interrupted => Ok(true),
        _ => Err(e),
    }
}
