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

/// A session with every host that is secured.
pub(super) fn sessions(page: &Page, stage: &Stage) -> Result<Vec<Option<Session>>, Error> {
    let far = stage.link().far();
    let session = |host: u32| -> io::Result<Option<Session>> {
        let entry = &page.hosts[host as usize];
        let (Some(secured), Some(address)) = (stage.secured(host), stage.address(&entry.name)) else {
            return Ok(None);
        };
        let mut reactor = Reactor::new()?;
        let mut tcp = TcpStream::connect(SocketAddr::new(address.into(), entry.port))?;
        reactor.register(&mut tcp, 0)?;
        let end = reactor.now() + PATIENCE;
        wait(&mut reactor, end)?; // for TCP's handshake
        let tls = secured.connector.connect(&secured.name, tcp, None);
        let mut tls = tls.map_err(|e| io::Error::other(e.to_string()))?;
        loop {
            if let Some(session) = step(&mut tls, || secured.connector.take_session())? {
                return Ok(Some(session));
            }
            wait(&mut reactor, end)?;
        }
    };
    let all = || (0..page.hosts.len() as u32).map(session).collect::<io::Result<Vec<_>>>();
    far.run(all).map_err(Error::machine("get a TLS session to resume"))
}

/// Goes on with the handshake, and reads for the ticket that follows it in TLS 1.3.
fn step(tls: &mut TlsStream, ticket: impl Fn() -> Option<Session>) -> io::Result<Option<Session>> {
    let blocks = |e: io::Error| if e.kind() == io::ErrorKind::WouldBlock { Ok(()) } else { Err(e) };
    tls.handshake().or_else(blocks)?;
    if let Some(session) = ticket() {
        return Ok(Some(session));
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
