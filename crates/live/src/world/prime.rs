//! Sessions to resume: a handshake with each host before the load, at the far end and so without crossing the link.

use std::io;
use std::net::SocketAddr;

use base::{Duration, Instant};
use mio::net::TcpStream;
use page::Page;

use super::Error;
use super::stage::Stage;
use crate::Reactor;
use crate::tls::{Session, TlsStream};

/// How long a handshake over the loopback may take before something is wrong.
const PATIENCE: Duration = Duration::from_secs(10);

/// What no recording has and no fault is counted by. BoringSSL's server sends tickets of TLS 1.3 with the first bytes of its own, and over
/// HTTP/1.1 it has none unless it is asked for something; a SPDY server begins with its settings.
const PROMPT: &[u8] = b"GET /.velodrome/ticket HTTP/1.1\r\nHost: ticket.invalid\r\nConnection: close\r\n\r\n";

/// A session with every host that is secured.
pub(super) fn sessions(page: &Page, stage: &Stage) -> Result<Vec<Option<Session>>, Error> {
    let far = stage.link().far();
    let session = |host: u32| -> io::Result<Option<Session>> {
        let entry = &page.hosts[host as usize];
        let (Some(secured), Some(addresses)) = (stage.secured(host), stage.addresses(&entry.name)) else {
            return Ok(None);
        };
        let mut reactor = Reactor::new()?;
        let mut tcp = TcpStream::connect(SocketAddr::new(addresses.v4.into(), entry.port))?;
        reactor.register(&mut tcp, 0)?;
        let end = reactor.now() + PATIENCE;
        wait(&mut reactor, end)?; // for TCP's handshake
        let tls = secured.connector.connect(&secured.name, tcp, None);
        let mut tls = tls.map_err(|e| io::Error::other(e.to_string()))?;
        let mut prompt = if secured.protocol == client::Transport::Http1.protocol() { PROMPT } else { &[] };
        loop {
            if let Some(session) = step(&mut tls, &mut prompt, || secured.connector.take_session())? {
                return Ok(Some(session));
            }
            wait(&mut reactor, end)?;
        }
    };
    let all = || (0..page.hosts.len() as u32).map(session).collect::<io::Result<Vec<_>>>();
    far.run(all).map_err(Error::machine("get a TLS session to resume"))
}

/// Goes on with the handshake, and reads for the ticket that follows it in TLS 1.3, once the server is prompted.
fn step(
    tls: &mut TlsStream,
    prompt: &mut &[u8],
    ticket: impl Fn() -> Option<Session>,
) -> io::Result<Option<Session>> {
    let blocks = |e: io::Error| if e.kind() == io::ErrorKind::WouldBlock { Ok(()) } else { Err(e) };
    let is_done = tls.handshake().map(|()| true).or_else(|e| blocks(e).map(|()| false))?;
    if let Some(session) = ticket() {
        return Ok(Some(session));
    }
    if is_done && !prompt.is_empty() {
        let written = tls.write(prompt).or_else(|e| blocks(e).map(|()| 0))?;
        *prompt = &prompt[written..];
    }
    tls.read(&mut [0; 64]).map(|_| ()).or_else(blocks)?;
    Ok(ticket())
}

fn wait(reactor: &mut Reactor, end: Instant) -> io::Result<()> {
    reactor.wait(Some(end))?;
    if reactor.now() >= end {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "a server does not answer its own network"));
    }
    Ok(())
}
