//! The page: what is loaded, from where, and what waits for what.

use std::fmt;

use base::{Duration, Fields};
use bytes::Bytes;

/// Index into [`Page::resources`].
pub type ResourceId = u32;

/// One page as a recorder saw it, or as a generator drew it: all that a loader, an origin and a network model need.
///
/// The resources form a tree whose edges are [`Cause`]s; [`Page::validate`] states the invariants.
#[derive(Clone, PartialEq, Debug)]
pub struct Page {
    /// Unique among the pages of one reading, and safe as a file name: `[A-Za-z0-9._-]`, at most 100 characters.
    pub id: String,
    /// The title as recorded; may be empty.
    pub title: String,
    /// URL of the first request.
    pub url: String,
    /// Where the page comes from.
    pub source: Source,
    /// The origins that serve it, each once, in the order of their first use.
    pub hosts: Vec<Host>,
    /// What is loaded, parents before children.
    pub resources: Vec<Resource>,
    /// Computation between the end of the last resource that `onload` waits for and `onload` itself.
    pub tail: Duration,
    /// The recorder's own measurements. A loader does not use them; a report sets them beside its own.
    pub recorded: Recorded,
    /// What the reader had to assume, most frequent first.
    pub assumptions: Vec<Assumption>,
}

/// Where a page comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// The file as it was named, or `corpus:NAME`.
    pub file: String,
    /// The page's id in that file.
    pub page: String,
}

/// An origin: one scheme, name and port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Lower-case name, or an IP address literal.
    pub name: String,
    /// `https` rather than `http`.
    pub scheme_tls: bool,
    /// TCP port.
    pub port: u16,
    /// One round trip as recorded: the smallest TCP connect time that was measured whole.
    pub rtt: Option<Duration>,
    /// The longest name look-up recorded.
    pub dns: Option<Duration>,
    /// The server's address as recorded, without a port.
    pub address: Option<String>,
}

/// What kind of thing a resource is, which decides what blocks on it and how soon it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// HTML that is parsed: the page itself, or a frame.
    Document,
    /// A style sheet.
    Style,
    /// A script.
    Script,
    /// An image.
    Image,
    /// A web font.
    Font,
    /// Data that a script asked for: XHR, fetch, beacon, event stream.
    Xhr,
    /// Audio or video.
    Media,
    /// Anything else: favicon, manifest, ping, prefetch.
    Other,
}

/// How a script that the parser meets relates to the parser.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScriptMode {
    /// The parser waits for it.
    Sync,
    /// Runs as soon as it is there.
    Async,
    /// Runs in order when the document is parsed.
    Defer,
}

/// What made the loader ask for a resource. Every parent has a smaller index than its child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The navigation itself; resource 0 and no other.
    Root,
    /// The parent answered with a redirection to this resource.
    Redirect(ResourceId),
    /// The parser of `parent`, a document, met a reference to it.
    Parser {
        /// A document.
        parent: ResourceId,
        /// Where in the parent's body the reference stands: bytes as transferred, at most its `body_len`.
        offset: u64,
        /// For a script: how it relates to the parser. Without meaning for other kinds.
        script: ScriptMode,
    },
    /// Asked for `delay` after the parent was used: a style sheet's image or font, a script's request.
    Completion {
        /// Any kind of resource.
        parent: ResourceId,
        /// Time that the network does not explain: timers, layout, other computation.
        delay: Duration,
    },
    /// Asked for `delay` after `onload`, by nothing that can be named.
    Load {
        /// From `onload` to the request.
        delay: Duration,
    },
    /// Asked for beside the page by something that is no loader: the client that checks a certificate. Nothing of the page waits for
    /// it, and no recording has it.
    Beside,
}

/// The fetch priority that a browser gave a request, in Chrome's five steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Priority {
    /// Chrome's `VeryLow`.
    VeryLow,
    /// `Low`.
    Low,
    /// `Medium`.
    Medium,
    /// `High`.
    High,
    /// Chrome's `VeryHigh`.
    VeryHigh,
}

/// One request and its response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resource {
    /// Index into [`Page::hosts`].
    pub host: u32,
    /// `GET`, `POST`, …
    pub method: Bytes,
    /// Path and query, from the first `/`.
    pub path: Bytes,
    /// What it is.
    pub kind: Kind,
    /// Request fields as on a cold load: no `Host`, nothing conditional, nothing that a connection owns.
    pub request: Fields,
    /// Response fields as on a cold load, without those that a connection owns. `Content-Length` is the recorder's:
    /// whoever serves the page sets it to `body_len`.
    pub response: Fields,
    /// Status code as on a cold load.
    pub status: u16,
    /// Bytes of the request's body.
    pub request_body_len: u64,
    /// Bytes of the response's body as transferred on a cold load: after content coding, before any framing.
    pub body_len: u64,
    /// What the server takes from the end of the request to its first byte, beyond the network.
    pub think: Duration,
    /// What made the loader ask for it.
    pub cause: Cause,
    /// Computation when it is used: a script runs, a style sheet is applied, a document is parsed (spread evenly over
    /// its bytes).
    pub exec: Duration,
    /// `onload` does not wait for it: recorded as asked for after `onload`, or as still loading when that fired.
    pub after_load: bool,
    /// An inline script inserted the reference, so that the preload scanner does not see it. Only for
    /// [`Cause::Parser`].
    pub scripted: bool,
    /// The priority recorded, if any.
    pub priority: Option<Priority>,
}

/// Measurements that the recorder made.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Recorded {
    /// Navigation start to `onload`.
    pub on_load: Option<Duration>,
    /// Navigation start to `DOMContentLoaded`.
    pub on_content_load: Option<Duration>,
    /// Navigation start to first paint.
    pub first_paint: Option<Duration>,
    /// The program that wrote the recording, with its version; empty if it does not say.
    pub recorder: String,
    /// The browser it recorded, with its version; empty if it does not say.
    pub browser: String,
}

/// Something that the recording did not say, and what was taken instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assumption {
    /// A stable short name: `size-from-content`.
    pub kind: String,
    /// A sentence without its full stop.
    pub detail: String,
    /// How many times in this page.
    pub count: u32,
}

/// An invariant of [`Page`] that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Invalid {
    /// No resources.
    Empty,
    /// Resource 0 is not [`Cause::Root`], or another one is.
    Root(ResourceId),
    /// The resource's parent does not come before it.
    Parent(ResourceId),
    /// The resource's parser parent is no document.
    ParserParent(ResourceId),
    /// The resource's offset lies beyond its parent's body.
    Offset(ResourceId),
    /// The resource's host does not exist.
    Host(ResourceId),
    /// The resource's status is not between 100 and 999, or is 1xx.
    Status(ResourceId),
    /// The resource's path does not begin with `/`, or holds a byte that no request line can carry.
    Path(ResourceId),
    /// The resource's method, or a field of it, holds what no head can carry.
    Head(ResourceId),
    /// The page's id is not fit for a file name.
    Id,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Invalid::Empty => write!(f, "the page has no resources"),
            Invalid::Root(id) => write!(f, "resource {id}: the first resource, and only it, is the root"),
            Invalid::Parent(id) => write!(f, "resource {id}: its parent does not come before it"),
            Invalid::ParserParent(id) => write!(f, "resource {id}: its parser's parent is no document"),
            Invalid::Offset(id) => write!(f, "resource {id}: its offset lies beyond its parent's body"),
            Invalid::Host(id) => write!(f, "resource {id}: its host does not exist"),
            Invalid::Status(id) => write!(f, "resource {id}: its status is not within 200–999"),
            Invalid::Path(id) => write!(f, "resource {id}: its path is no request path"),
            Invalid::Head(id) => {
                write!(f, "resource {id}: its method, or a field's name or value, is not writable")
            }
            Invalid::Id => write!(f, "the page's id is not fit for a file name"),
        }
    }
}

impl std::error::Error for Invalid {}

impl Cause {
    /// The resource that has to be there first; `None` for [`Cause::Root`], [`Cause::Load`] and [`Cause::Beside`].
    pub fn parent(&self) -> Option<ResourceId> {
        match *self {
            Cause::Redirect(parent) | Cause::Parser { parent, .. } | Cause::Completion { parent, .. } => {
                Some(parent)
            }
            Cause::Root | Cause::Load { .. } | Cause::Beside => None,
        }
    }
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 8] = [
        Kind::Document,
        Kind::Style,
        Kind::Script,
        Kind::Image,
        Kind::Font,
        Kind::Xhr,
        Kind::Media,
        Kind::Other,
    ];

    /// A lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Document => "document",
            Kind::Style => "style",
            Kind::Script => "script",
            Kind::Image => "image",
            Kind::Font => "font",
            Kind::Xhr => "xhr",
            Kind::Media => "media",
            Kind::Other => "other",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}×)", self.detail, self.count)
    }
}

impl Host {
    /// An `http` host on port 80 of which nothing more is known.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), scheme_tls: false, port: 80, rtt: None, dns: None, address: None }
    }

    /// `example.org`, or `example.org:8080` if the port is not the scheme's own.
    pub fn authority(&self) -> String {
        let own = if self.scheme_tls { 443 } else { 80 };
        if self.port == own { self.name.clone() } else { format!("{}:{}", self.name, self.port) }
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.scheme_tls { "https" } else { "http" }
    }
}

impl Resource {
    /// A GET on the page's first host, answered at once with 200, no fields and no body; change what should differ.
    ///
    /// ```
    /// use page::{Cause, Kind, Resource, ScriptMode};
    ///
    /// let found = Cause::Parser { parent: 0, offset: 100, script: ScriptMode::Sync };
    /// let image = Resource { body_len: 1_000, ..Resource::get("/a.png", Kind::Image, found) };
    /// assert_eq!((image.host, image.status), (0, 200));
    /// ```
    pub fn get(path: impl Into<Bytes>, kind: Kind, cause: Cause) -> Self {
        Self {
            host: 0,
            method: Bytes::from_static(b"GET"),
            path: path.into(),
            kind,
            request: Fields::new(),
            response: Fields::new(),
            status: 200,
            request_body_len: 0,
            body_len: 0,
            think: Duration::ZERO,
            cause,
            exec: Duration::ZERO,
            after_load: false,
            scripted: false,
            priority: None,
        }
    }
}

impl Page {
    /// A page made by hand, of which nothing was recorded.
    ///
    /// # Errors
    /// If it would not be [valid](Page::validate).
    pub fn new(id: impl Into<String>, hosts: Vec<Host>, resources: Vec<Resource>) -> Result<Self, Invalid> {
        let id = id.into();
        let mut page = Self {
            title: String::new(),
            url: String::new(),
            source: Source { file: "made by hand".into(), page: id.clone() },
            id,
            hosts,
            resources,
            tail: Duration::ZERO,
            recorded: Recorded::default(),
            assumptions: Vec::new(),
        };
        page.validate()?;
        page.url = page.resource_url(0);
        Ok(page)
    }

    /// The origin that serves a resource.
    ///
    /// # Panics
    /// If the page is not valid.
    pub fn host(&self, resource: &Resource) -> &Host {
        &self.hosts[resource.host as usize]
    }

    /// A resource's URL.
    ///
    /// # Panics
    /// If there is no such resource.
    pub fn resource_url(&self, id: ResourceId) -> String {
        let resource = &self.resources[id as usize];
        let host = self.host(resource);
        format!("{}://{}{}", host.scheme(), host.authority(), String::from_utf8_lossy(&resource.path))
    }

    /// Bytes of all response bodies.
    pub fn body_bytes(&self) -> u64 {
        self.resources.iter().map(|r| r.body_len).sum()
    }

    /// Checks what everything above relies on: resource 0 is the root and the only one; every parent comes before
    /// its child, so that there are no cycles; a parser's parent is a document, and the offset lies within its body;
    /// hosts exist; paths, statuses and the id can be written where they have to be.
    pub fn validate(&self) -> Result<(), Invalid> {
        let safe = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if self.id.is_empty() || self.id.len() > 100 || !self.id.chars().all(safe) || self.id.starts_with('.')
        {
            return Err(Invalid::Id);
        }
        if self.resources.is_empty() {
            return Err(Invalid::Empty);
        }
        for (id, resource) in (0..).zip(&self.resources) {
            self.validate_resource(id, resource)?;
        }
        Ok(())
    }

    fn validate_resource(&self, id: ResourceId, resource: &Resource) -> Result<(), Invalid> {
        if (id == 0) != (resource.cause == Cause::Root) {
            return Err(Invalid::Root(id));
        }
        if resource.cause.parent().is_some_and(|parent| parent >= id) {
            return Err(Invalid::Parent(id));
        }
        if let Cause::Parser { parent, offset, .. } = resource.cause {
            let parent = &self.resources[parent as usize];
            if parent.kind != Kind::Document {
                return Err(Invalid::ParserParent(id));
            }
            if offset > parent.body_len {
                return Err(Invalid::Offset(id));
            }
        }
        if resource.host as usize >= self.hosts.len() {
            return Err(Invalid::Host(id));
        }
        if !(200..=999).contains(&resource.status) {
            return Err(Invalid::Status(id));
        }
        if resource.path.first() != Some(&b'/') || resource.path.iter().any(|b| *b <= b' ' || *b == 0x7f) {
            return Err(Invalid::Path(id));
        }
        let token = |name: &[u8]| !name.is_empty() && name.iter().all(|b| b.is_ascii_graphic() && *b != b':');
        let value = |value: &[u8]| !value.iter().any(|b| matches!(b, b'\r' | b'\n' | 0));
        let mut fields = resource.request.iter().chain(&resource.response);
        if !token(&resource.method) || !fields.all(|f| token(&f.name) && value(&f.value)) {
            return Err(Invalid::Head(id));
        }
        Ok(())
    }
}
