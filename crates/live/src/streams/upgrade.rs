//! From HTTP/1.1 to SPDY (RFC 9110 §7.8): what the client asks and the server answers.

use base::{Chunk, Fields, Instant, RequestHead, ResponseHead};
use bytes::{Bytes, BytesMut};
use http1::{Framing, client, server};
use url::Url;

use super::{Error, PROTOCOL};

/// The name in `Upgrade`. It says 3.1, although nothing of 3.1 is used but its frames.
const UPGRADE: &str = "SPDY/3.1";

/// Bytes of a refusal's body that are kept.
const REFUSAL_MAX: usize = 4096;

/// What a client asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// `http` or `https`.
    pub url: Url,
    /// POST is what kubectl says; GET means the same.
    pub method: Bytes,
    /// Fields besides `Host` and those of the upgrade: `Authorization`, say.
    pub fields: Fields,
    /// Protocols to offer, preferred first.
    pub protocols: Vec<String>,
}

impl Request {
    /// A POST that offers these protocols.
    pub fn new(url: Url, protocols: &[&str]) -> Self {
        let protocols = protocols.iter().map(|p| (*p).to_owned()).collect();
        Self { url, method: Bytes::from_static(b"POST"), fields: Fields::new(), protocols }
    }

    /// As it is sent. Go's servers want each protocol in a field of its own, or take a list; its clients send fields.
    fn head(&self) -> RequestHead {
        let url = &self.url;
        let host = url.host_str().unwrap_or_default();
        let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let path =
            url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let mut fields = self.fields.clone();
        fields.push("Upgrade", UPGRADE);
        for protocol in &self.protocols {
            fields.push(PROTOCOL, protocol.clone());
        }
        RequestHead {
            method: self.method.clone(),
            scheme: url.scheme().to_owned().into(),
            authority: authority.into(),
            path: path.into(),
            fields,
        }
    }
}

/// The elements of every field of this name, in order.
fn list<'f>(fields: &'f Fields, name: &'f str) -> impl Iterator<Item = String> + 'f {
    let of = fields.iter().filter(|f| f.name.eq_ignore_ascii_case(name.as_bytes()));
    let elements = of.flat_map(|f| f.value.split(|b| *b == b','));
    elements.map(|e| String::from_utf8_lossy(e.trim_ascii()).into_owned()).filter(|e| !e.is_empty())
}

fn upgrades(fields: &Fields) -> bool {
    list(fields, "upgrade").any(|name| name.eq_ignore_ascii_case(UPGRADE))
}

/// What the connection goes on with: bytes that still belong to HTTP, to be sent first, and input that does not.
pub(super) struct Switch<T> {
    pub said: T,
    pub rest: Vec<Bytes>,
}

/// The client's end until the answer is there.
pub(super) struct Asking {
    http: client::Connection,
    /// An answer that is not 101, as far as it is there.
    refusal: Option<(ResponseHead, BytesMut)>,
}

impl Asking {
    pub fn new(request: &Request) -> Result<Self, Error> {
        let mut http = client::Connection::new();
        http.request(&request.head(), None).map_err(Error::Request)?;
        Ok(Self { http, refusal: None })
    }

    pub fn transmit(&mut self, max: u64) -> Option<Chunk> {
        self.http.poll_transmit(max)
    }

    /// Takes input; gives the 101 when it is there.
    pub fn handle_input(
        &mut self,
        now: Instant,
        bytes: Bytes,
    ) -> Result<Option<Switch<ResponseHead>>, Error> {
        let read = self.http.handle_input(now, bytes.into()).map_err(Error::Http);
        while let Some(event) = self.http.poll_event() {
            match event {
                client::Event::Response { head, body: Framing::Tunnel, .. } => {
                    if !upgrades(&head.fields) {
                        return Err(Error::OtherProtocol(
                            list(&head.fields, "upgrade").collect::<Vec<_>>().join(", "),
                        ));
                    }
                    let rest = std::iter::from_fn(|| match self.http.poll_event()? {
                        client::Event::Body(Chunk::Bytes(bytes)) => Some(bytes),
                        _ => None,
                    });
                    return Ok(Some(Switch { said: head, rest: rest.collect() }));
                }
                client::Event::Response { head, .. } => self.refusal = Some((head, BytesMut::new())),
                client::Event::Body(Chunk::Bytes(bytes)) => {
                    let Some((_, body)) = &mut self.refusal else { continue };
                    let room = REFUSAL_MAX - body.len();
                    body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                    if body.len() == REFUSAL_MAX {
                        return Err(self.refused());
                    }
                }
                client::Event::Complete { .. } => return Err(self.refused()),
                client::Event::Body(_) | client::Event::Informational(_) | client::Event::Trailers(_) => {}
            }
        }
        read.map(|()| None)
    }

    /// The server closed: with its answer, if that has no other end.
    pub fn handle_eof(&mut self) -> Error {
        let end = self.http.handle_eof();
        match end {
            Err(e) if self.refusal.is_none() => Error::Http(e),
            _ => self.refused(),
        }
    }

    fn refused(&mut self) -> Error {
        let nothing = || (ResponseHead { status: 0, fields: Fields::new() }, BytesMut::new());
        let (head, body) = self.refusal.take().unwrap_or_else(nothing);
        Error::Refused { status: head.status, fields: head.fields, body: body.freeze() }
    }
}

/// The protocol that the server chose.
pub(super) fn chosen(head: &ResponseHead) -> Option<String> {
    list(&head.fields, PROTOCOL).next()
}

/// The server's end until it has answered.
pub(super) struct Asked {
    http: server::Connection,
    head: Option<RequestHead>,
    has_body: bool,
    /// The request is with the caller, whose answer is awaited.
    pending: bool,
}

impl Asked {
    pub fn new(scheme: &'static str) -> Self {
        let http = server::Connection::with(Bytes::from_static(scheme.as_bytes()), http1::Limits::default());
        Self { http, head: None, has_body: false, pending: false }
    }

    pub fn transmit(&mut self, max: u64) -> Option<Chunk> {
        self.http.poll_transmit(max)
    }

    pub fn wants_input(&self) -> bool {
        !self.pending
    }

    /// Takes input; gives the request, and the protocols that it offers, when it is there. What is to be refused without
    /// asking the caller is; send that before closing.
    pub fn handle_input(
        &mut self,
        now: Instant,
        bytes: Bytes,
    ) -> Result<Option<(RequestHead, Vec<String>)>, Error> {
        self.http.handle_input(now, bytes.into()).map_err(Error::Http)?;
        while let Some(event) = self.http.poll_event() {
            match event {
                server::Event::Request { head, .. } => self.head = Some(head),
                server::Event::Body(_) | server::Event::Trailers(_) => self.has_body = true,
                server::Event::RequestComplete => {
                    let Some(head) = self.head.take() else { continue };
                    self.pending = true;
                    // The engine reads on only if the request is not for an upgrade: `Connection` has to name it, too.
                    let offered = upgrades(&head.fields) && !self.http.wants_input();
                    if self.has_body || !offered {
                        let what = Bytes::from_static(b"ask for an upgrade to SPDY/3.1, without a body\n");
                        self.refuse(400, Fields::new(), what).map_err(Error::Http)?;
                        return Err(Error::NotAsked);
                    }
                    let protocols = list(&head.fields, PROTOCOL).collect();
                    return Ok(Some((head, protocols)));
                }
            }
        }
        Ok(None)
    }

    /// Answers with 101; gives its bytes.
    pub fn grant(&mut self, protocol: Option<&str>) -> Result<Switch<BytesMut>, http1::Error> {
        let mut fields = Fields::new();
        fields.push("Upgrade", UPGRADE);
        if let Some(protocol) = protocol {
            fields.push(PROTOCOL, protocol.to_owned());
        }
        self.http.respond(&ResponseHead { status: 101, fields }, None)?;
        let mut said = BytesMut::new();
        while let Some(Chunk::Bytes(bytes)) = self.http.poll_transmit(u64::MAX) {
            said.extend_from_slice(&bytes);
        }
        let rest = std::iter::from_fn(|| match self.http.poll_event()? {
            server::Event::Body(Chunk::Bytes(bytes)) => Some(bytes),
            _ => None,
        });
        Ok(Switch { said, rest: rest.collect() })
    }

    /// Answers with something else.
    pub fn refuse(&mut self, status: u16, mut fields: Fields, body: Bytes) -> Result<(), http1::Error> {
        fields.push("Connection", "close");
        self.http.respond(&ResponseHead { status, fields }, Some(body.len() as u64))?;
        self.http.send_body(body.into())
    }
}
