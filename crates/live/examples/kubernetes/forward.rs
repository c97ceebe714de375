//! Port-forward, both sides: `portforward.k8s.io`.
//!
//! For each connection at the near end the client opens two streams with the same `requestid`: one for errors, which it
//! ends at once, and, when that is accepted, one for data. The server connects to the `port`, and says on the error stream
//! if that fails.

mod client;
mod server;

use std::io::{self, Write};
use std::net::Shutdown;

use live::streams::Connection;
use mio::net::TcpStream;
use spdy::StreamId;

use crate::pump::{Outlet, Poured, pour};

pub use client::Client;
pub use server::Server;

/// The protocol spoken above SPDY.
pub const PROTOCOL: &str = "portforward.k8s.io";

/// A TCP connection and the stream that it is joined to.
struct Joint {
    tcp: TcpStream,
    connected: bool,
    /// From the stream to the connection.
    queue: Outlet,
    /// The stream's end was passed on.
    shut: bool,
    /// The connection's end was.
    ended: bool,
}

impl Joint {
    fn new(tcp: TcpStream, connected: bool, queue: Outlet) -> Self {
        Self { tcp, connected, queue, shut: false, ended: false }
    }

    /// Whether TCP is there.
    fn is_connected(&mut self) -> io::Result<bool> {
        if !self.connected {
            self.tcp.take_error()?.map_or(Ok(()), Err)?;
            match self.tcp.peer_addr() {
                Ok(_) => self.connected = true,
                Err(e) if e.kind() == io::ErrorKind::NotConnected => {}
                Err(e) => return Err(e),
            }
        }
        Ok(self.connected)
    }

    /// Moves what can be moved, both ways. Gives whether that was anything.
    fn pump(&mut self, id: StreamId, connection: &mut Connection) -> io::Result<bool> {
        if !self.is_connected()? {
            return Ok(false);
        }
        let mut moved = self.queue.drain(id, &mut self.tcp, connection)?;
        if self.queue.is_over() && !self.shut {
            self.tcp.flush()?;
            self.tcp.shutdown(Shutdown::Write)?;
            self.shut = true;
            moved = true;
        }
        if !self.ended {
            let poured = pour(&mut self.tcp, id, connection)?;
            self.ended = poured == Poured::End;
            moved |= poured != Poured::Nothing;
        }
        Ok(moved)
    }
}
