//! A TCP connection, in clear text or under TLS.

use std::io::{self, Read, Write};
use std::net::Shutdown;

use mio::net::TcpStream;

use crate::tls::{Negotiated, TlsStream};

/// A connection that never blocks: what cannot be done yet is [`io::ErrorKind::WouldBlock`].
#[derive(Debug)]
pub enum Stream {
    /// TCP alone.
    Clear(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Goes on with the TLS handshake, if there is one; done when it gives `Ok`.
    pub fn handshake(&mut self) -> io::Result<()> {
        match self {
            Stream::Clear(_) => Ok(()),
            Stream::Tls(tls) => tls.handshake(),
        }
    }

    /// Reads into `buffer`; 0 is the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Clear(tcp) => tcp.read(buffer),
            Stream::Tls(tls) => tls.read(buffer),
        }
    }

    /// Writes from `buffer`. After `WouldBlock` the next call must begin with the same bytes: TLS has sealed them already.
    pub fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Clear(tcp) => tcp.write(buffer),
            Stream::Tls(tls) => tls.write(buffer),
        }
    }

    /// Says that nothing more will be written. What the peer still sends can be read.
    pub fn close(&mut self) -> io::Result<()> {
        match self {
            Stream::Clear(tcp) => tcp.shutdown(Shutdown::Write),
            Stream::Tls(tls) => {
                tls.close_notify()?;
                tls.tcp().shutdown(Shutdown::Write)
            }
        }
    }

    /// What the TLS handshake agreed on; `None` in clear text.
    pub fn negotiated(&self) -> Option<Negotiated> {
        match self {
            Stream::Clear(_) => None,
            Stream::Tls(tls) => Some(tls.negotiated()),
        }
    }

    /// How many bytes one [`write`](Self::write) takes at most.
    pub fn record(&self) -> usize {
        match self {
            Stream::Clear(_) => usize::MAX,
            Stream::Tls(tls) => tls.record(),
        }
    }

    /// How many bytes are decided on at a time, if that is a matter of how TLS records are made.
    pub fn chunk(&self) -> Option<u64> {
        match self {
            Stream::Clear(_) => None,
            Stream::Tls(tls) => tls.chunk(),
        }
    }

    /// Whether data goes out although the TLS handshake is not over (False Start).
    pub fn is_false_started(&self) -> bool {
        match self {
            Stream::Clear(_) => false,
            Stream::Tls(tls) => tls.is_false_started(),
        }
    }

    /// The socket.
    pub fn tcp(&mut self) -> &mut TcpStream {
        match self {
            Stream::Clear(tcp) => tcp,
            Stream::Tls(tls) => tls.tcp(),
        }
    }
}
