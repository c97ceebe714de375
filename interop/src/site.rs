//! Our server in the matrix: the library's own, over a site with the resources that every peer has.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use base::{BodyRange, Chunk, Duration, Fields, RequestHead, ResponseHead};
use bytes::{Bytes, BytesMut};
use live::serve::{self, Content, Event, Server};
use origin::{Answer, Push, Site};
use spdy::{Priority, Version};

use crate::contract::{self, CELL_MS, ENDLESS_MAX, LARGE, MODULUS, PUSHED, PUSHER, SMALL};

/// What the site's bodies are ranges of: the pattern, for what ends and for what does not.
const PATTERN: u32 = 0;
const ENDLESS: u32 = 1;

/// What was seen on the server's side.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    /// Requests answered.
    pub answers: u64,
    /// Bytes of `/endless` that were handed to its connection.
    pub endless: u64,
    /// Bodies of requests that were not the pattern.
    pub faults: Vec<String>,
    /// Why connections ended.
    pub closed: Vec<String>,
}

/// The resources of the contract. `/goaway` shuts the server down, which on SPDY is a GOAWAY.
#[derive(Debug)]
pub struct Resources {
    seen: Arc<Mutex<Seen>>,
    stop: Option<serve::Handle>,
}

impl Resources {
    /// The resources; whoever asks for `/goaway` makes `stop` shut its server down.
    pub fn new(stop: Option<serve::Handle>) -> Self {
        Self { seen: Arc::default(), stop }
    }
}

/// A request's body, which is looked at as it comes and not kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Upload {
    len: u64,
    crc: u32,
    /// The first byte that is not the pattern's.
    wrong: Option<u64>,
}

impl Site for Resources {
    type Upload = Upload;

    fn begin(&mut self, _: &RequestHead) -> Upload {
        Upload::default()
    }

    fn upload(&mut self, upload: &mut Upload, chunk: &Chunk) {
        let Chunk::Bytes(bytes) = chunk else { unreachable!("sockets bring bytes") };
        for (at, byte) in (upload.len..).zip(bytes) {
            if u64::from(*byte) != at % MODULUS {
                upload.wrong = upload.wrong.or(Some(at));
            }
        }
        upload.len += bytes.len() as u64;
        let mut crc = crc32fast::Hasher::new_with_initial(upload.crc);
        crc.update(bytes);
        upload.crc = crc.finalize();
    }

    fn answer(&mut self, request: &RequestHead, upload: Upload) -> Answer {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.answers += 1;
        if let Some(at) = upload.wrong {
            seen.faults.push(format!("byte {at} of an upload is not the pattern's"));
        }
        let path = String::from_utf8_lossy(&request.path);
        match path.split('/').collect::<Vec<_>>()[..] {
            ["", "small"] => ok(Bytes::from_static(SMALL).into()),
            ["", "bytes", n] => n.parse().map_or(Answer::bare(404), |n| ok(range(PATTERN, n))),
            ["", "upload"] => ok(contract::receipt(upload.len, upload.crc).into_bytes().into()),
            ["", "push"] => {
                let body = range(PATTERN, PUSHED);
                let path = Bytes::from_static(b"/pushed");
                let request = RequestHead { path, ..request.clone() };
                let push = Push { request, head: head(&body), body, priority: Priority::LOWEST };
                Answer { pushes: vec![push], ..ok(Bytes::from_static(PUSHER).into()) }
            }
            ["", "pushed"] => ok(range(PATTERN, PUSHED)),
            ["", "goaway"] => {
                if let Some(stop) = &self.stop {
                    stop.shut_down();
                }
                ok(range(PATTERN, LARGE))
            }
            ["", "endless"] => {
                Answer::new(ResponseHead { status: 200, fields: Fields::new() }, range(ENDLESS, ENDLESS_MAX))
            }
            _ => Answer::bare(404),
        }
    }
}

fn head(body: &Chunk) -> ResponseHead {
    let mut fields = Fields::new();
    fields.push("content-length", body.len().to_string());
    ResponseHead { status: 200, fields }
}

fn ok(body: Chunk) -> Answer {
    Answer::new(head(&body), body)
}

fn range(source: u32, len: u64) -> Chunk {
    BodyRange { source, start: 0, len }.into()
}

impl Content for Resources {
    fn read(&mut self, range: BodyRange, out: &mut BytesMut) -> io::Result<()> {
        contract::pattern(range.start, range.len, out);
        if range.source == ENDLESS {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).endless += range.len;
        }
        Ok(())
    }
}

/// A server in a thread of its own, on a free port of loopback. Dropping it shuts it down.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    handle: serve::Handle,
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts one that takes version 3 on the wire for `version`.
    ///
    /// # Errors
    /// If the system has no port or no thread.
    pub fn start(version: Version, config: serve::Config) -> io::Result<Self> {
        let version_3 = if version == Version::V3 { Version::V3 } else { Version::V3_1 };
        // Peers that have got what they wanted just go, so that nobody is waited for; whoever is still served is not cut off.
        let grace = Duration::from_millis(CELL_MS);
        let config = serve::Config { version_3, grace, ..config };
        let server = Server::bind(&[SocketAddr::from(([127, 0, 0, 1], 0))], config)?;
        let (address, handle) = (server.addresses()?[0], server.handle());
        let mut resources = Resources::new(Some(handle.clone()));
        let seen = resources.seen.clone();
        let log = seen.clone();
        let thread = std::thread::Builder::new().name("server".into()).spawn(move || {
            let mut note = |_, event: &Event<'_>| {
                if let Event::Closed { why, .. } = event {
                    log.lock().unwrap_or_else(PoisonError::into_inner).closed.push((*why).to_owned());
                }
            };
            if let Err(e) = server.run(&mut resources, &mut note) {
                resources.seen.lock().unwrap_or_else(PoisonError::into_inner).faults.push(e.to_string());
            }
        })?;
        Ok(Self { address, handle, seen, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Shuts it down and tells what it saw.
    pub fn stop(mut self) -> Seen {
        self.shut_down();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn shut_down(&mut self) {
        self.handle.shut_down();
        if let Some(thread) = self.thread.take() {
            // If it panicked, its client has seen that.
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shut_down();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_its_length_and_checksum_however_it_is_cut() {
        let body = contract::body(1_000);
        let mut site = Resources::new(None);
        for cut in [1, 7, 1_000] {
            let mut upload = Upload::default();
            for part in body.chunks(cut) {
                site.upload(&mut upload, &Bytes::copy_from_slice(part).into());
            }
            assert_eq!(upload, Upload { len: 1_000, crc: crc32fast::hash(&body), wrong: None });
        }
        let mut upload = Upload::default();
        site.upload(&mut upload, &Bytes::from_static(b"\0\x01x").into());
        assert_eq!(upload.wrong, Some(2));
    }
}
