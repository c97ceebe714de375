//! BoringSSL.

mod authority;
mod identity;
mod unbound;

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use boring::error::ErrorStack;
use boring::ssl::{
    AlpnError, ErrorCode, Ssl, SslContext, SslContextBuilder, SslMethod, SslMode, SslOptions, SslRef,
    SslSession, SslSessionCacheMode, SslStream, SslVerifyMode, SslVersion,
};
use boring::x509::X509;
use mio::net::TcpStream;

use crate::Clock;

use super::{By, ClientConfig, Common, Error, KeyLog, Negotiated, Offer, ServerConfig, Trust, Versions};

pub use authority::Authority;
pub use identity::Identity;

impl Offer {
    fn alpn(self) -> bool {
        self != Offer::Npn
    }

    fn npn(self) -> bool {
        self != Offer::Alpn
    }
}

impl KeyLog {
    /// A log that cannot be written spoils an analysis, not the connection.
    fn line(&self, line: &str) {
        if let Ok(mut file) = self.0.lock() {
            let _ = writeln!(file, "{line}");
        }
    }
}

impl Error {
    fn new(what: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }

    /// For what the library says without saying what it was about.
    fn about<E: fmt::Display>(what: &str) -> impl Fn(E) -> Self {
        move |why| Self::new(what, why)
    }
}

/// Protocols in the form of both extensions: each with its length before it.
fn wire_form(protocols: &[String]) -> Result<Vec<u8>, Error> {
    let mut wire = Vec::new();
    for name in protocols {
        let len = u8::try_from(name.len()).ok().filter(|len| *len > 0);
        let len = len.ok_or_else(|| Error::new(name, "a protocol's name has 1 to 255 bytes"))?;
        wire.push(len);
        wire.extend_from_slice(name.as_bytes());
    }
    Ok(wire)
}

fn builder(common: &Common) -> Result<SslContextBuilder, Error> {
    let about = Error::about("TLS");
    let mut context = SslContextBuilder::new(SslMethod::tls()).map_err(&about)?;
    let (min, max) = match common.versions {
        // NPN is not defined for TLS 1.3 (draft-agl-tls-nextprotoneg-04 §2 knows the encrypted handshake message of 1.2).
        Versions::Tls12To13 if common.offer == Offer::Npn => (SslVersion::TLS1_2, SslVersion::TLS1_2),
        Versions::Tls12To13 => (SslVersion::TLS1_2, SslVersion::TLS1_3),
        Versions::Tls12 => (SslVersion::TLS1_2, SslVersion::TLS1_2),
        Versions::Tls13 if common.offer == Offer::Npn => {
            return Err(Error("NPN needs TLS 1.2: allow it, or use ALPN".into()));
        }
        Versions::Tls13 => (SslVersion::TLS1_3, SslVersion::TLS1_3),
    };
    context.set_min_proto_version(Some(min)).map_err(&about)?;
    context.set_max_proto_version(Some(max)).map_err(&about)?;
    context.set_options(SslOptions::NO_COMPRESSION);
    // A wire keeps what was not taken, and may have moved it when it tries again.
    context.set_mode(
        SslMode::ENABLE_PARTIAL_WRITE | SslMode::ACCEPT_MOVING_WRITE_BUFFER | SslMode::RELEASE_BUFFERS,
    );
    if let Some(groups) = &common.groups {
        context.set_curves_list(groups).map_err(|e| Error::new(groups, reason(&e)))?;
    }
    if let Some(log) = common.key_log.clone() {
        context.set_keylog_callback(move |_, line| log.line(line));
    }
    if let Some(size) = common.record_size
        && !(512..=16384).contains(&size)
    {
        return Err(Error(format!("record size {size}: TLS records hold 512 to 16384 bytes here")));
    }
    Ok(context)
}

/// A server's side of TLS.
#[derive(Clone)]
pub struct Acceptor {
    context: SslContext,
    record_size: Option<u16>,
    sizing: ::tls::Sizing,
    ocsp: Option<Vec<u8>>,
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}

impl Acceptor {
    /// Checks and takes the configuration.
    pub fn new(config: &ServerConfig) -> Result<Self, Error> {
        let mut context = builder(&config.common)?;
        config.identity.install(&mut context)?;
        if !config.tickets {
            context.set_options(SslOptions::NO_TICKET);
        }
        context.set_session_id_context(b"velodrome").map_err(Error::about("TLS sessions"))?;
        let wire = wire_form(&config.common.protocols)?;
        if config.common.offer.npn() {
            unbound::advertise(&mut context, wire.clone());
        }
        if config.common.offer.alpn() {
            let ours = config.common.protocols.clone();
            context.set_alpn_select_callback(move |_, theirs| select(&ours, theirs).ok_or(AlpnError::NOACK));
        }
        Ok(Self {
            context: context.build(),
            record_size: config.common.record_size,
            sizing: config.common.sizing,
            ocsp: config.ocsp.clone(),
        })
    }

    /// Begins a handshake as server.
    pub fn accept(&self, tcp: TcpStream) -> Result<TlsStream, Error> {
        let about = Error::about("TLS connection");
        let mut ssl = Ssl::new(&self.context).map_err(&about)?;
        limit_records(&mut ssl, self.record_size);
        if let Some(response) = &self.ocsp {
            ssl.set_ocsp_status(response).map_err(&about)?;
        }
        let mut stream = TlsStream::new(ssl, tcp, End::Server, self.record_size)?;
        if self.sizing != ::tls::Sizing::Fixed {
            let most = self.record_size.unwrap_or(16_384).into();
            stream.sizer = Some(::tls::Sizer::new(self.sizing, most));
        }
        Ok(stream)
    }
}

/// The names of a list in wire form, as far as it is well formed.
fn names(mut wire: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (&len, rest) = wire.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(len))?;
        wire = rest;
        Some(name)
    })
}

/// The server's choice: its most preferred protocol that the client lists.
fn select<'t>(ours: &[String], theirs: &'t [u8]) -> Option<&'t [u8]> {
    ours.iter().find_map(|wanted| names(theirs).find(|name| *name == wanted.as_bytes()))
}

/// A client's side of TLS.
#[derive(Clone)]
pub struct Connector {
    context: SslContext,
    record_size: Option<u16>,
    verify: bool,
    /// Tickets that servers gave, to be taken by [`Connector::take_session`].
    sessions: Arc<Mutex<Vec<SslSession>>>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// A session that a later handshake with the same server can resume.
#[derive(Clone)]
pub struct Session(SslSession);

impl Connector {
    /// Checks and takes the configuration.
    pub fn new(config: &ClientConfig) -> Result<Self, Error> {
        let mut context = builder(&config.common)?;
        match &config.trust {
            Trust::System => {
                context.set_default_verify_paths().map_err(Error::about("the system's roots"))?
            }
            Trust::File(path) => {
                context.set_ca_file(path).map_err(|e| Error::new(path.display(), reason(&e)))?;
            }
            Trust::Roots(pem) => {
                let about = Error::about("trusted certificates");
                for root in X509::stack_from_pem(pem).map_err(&about)? {
                    context.cert_store_mut().add_cert(root).map_err(&about)?;
                }
            }
            Trust::Anybody => {}
        }
        let verify = config.trust != Trust::Anybody;
        context.set_verify(if verify { SslVerifyMode::PEER } else { SslVerifyMode::NONE });
        if config.ocsp {
            context.enable_ocsp_stapling();
        }
        if config.false_start {
            unbound::enable_false_start(&mut context);
        }
        let wire = wire_form(&config.common.protocols)?;
        if config.common.offer.npn() {
            unbound::select(&mut context, wire.clone());
        }
        if config.common.offer.alpn() {
            context.set_alpn_protos(&wire).map_err(Error::about("ALPN"))?;
        }
        let sessions: Arc<Mutex<Vec<SslSession>>> = Arc::default();
        context.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        let store = sessions.clone();
        context.set_new_session_callback(move |_, session| {
            if let Ok(mut sessions) = store.lock() {
                sessions.push(session);
            }
        });
        let record_size = config.common.record_size;
        Ok(Self { context: context.build(), record_size, verify, sessions })
    }

    /// Begins a handshake as client with the server of this name, or address, which its certificate must be for.
    pub fn connect(&self, name: &str, tcp: TcpStream, resume: Option<&Session>) -> Result<TlsStream, Error> {
        let about = Error::about("TLS connection");
        let mut ssl = Ssl::new(&self.context).map_err(&about)?;
        limit_records(&mut ssl, self.record_size);
        let address = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().ok();
        if address.is_none() {
            // RFC 6066 §3: literal addresses are no server names.
            ssl.set_hostname(name).map_err(&about)?;
        }
        if self.verify {
            let parameters = ssl.param_mut();
            match address {
                Some(address) => parameters.set_ip(address).map_err(&about)?,
                None => parameters.set_host(name).map_err(&about)?,
            }
        }
        if let Some(Session(session)) = resume {
            unbound::resume(&mut ssl, session).map_err(&about)?;
        }
        TlsStream::new(ssl, tcp, End::Client, self.record_size)
    }

    /// The latest session that a server has given; each is taken once, as tickets of TLS 1.3 should be used once.
    pub fn take_session(&self) -> Option<Session> {
        self.sessions.lock().ok()?.pop().map(Session)
    }
}

fn limit_records(ssl: &mut SslRef, size: Option<u16>) {
    if let Some(size) = size {
        unbound::set_max_send_fragment(ssl, size);
    }
}

/// The first thing that the library says went wrong, without its own file names.
fn reason(errors: &ErrorStack) -> String {
    let first = errors.errors().first().and_then(|e| e.reason()).unwrap_or("no reason given");
    first.to_lowercase().replace('_', " ")
}

#[derive(Clone, Copy, Debug)]
enum End {
    Client,
    Server,
}

/// How far a client has come with the server's certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// It has not come.
    ExpectCertificate,
    /// It has come, and nobody has been told.
    Due,
    /// Somebody asks about it.
    Asked,
    /// It is for the library to check, as nobody asks about it or all has been asked.
    Given,
}

/// A connection under TLS.
#[derive(Debug)]
pub struct TlsStream {
    inner: SslStream<TcpStream>,
    end: End,
    /// The handshake is done, at least as far as data can be sent.
    ready: bool,
    verdict: Verdict,
    /// Bytes of plaintext that a record holds at most, if that is not the library's most.
    record_size: Option<u16>,
    /// How large records are to be, if that changes.
    sizer: Option<::tls::Sizer>,
    /// Bytes of a record that was begun and that the socket did not take: they must be offered again.
    owed: usize,
    clock: Clock,
}

impl TlsStream {
    fn new(ssl: Ssl, tcp: TcpStream, end: End, record_size: Option<u16>) -> Result<Self, Error> {
        let inner = SslStream::new(ssl, tcp).map_err(Error::about("TLS connection"))?;
        let verdict = Verdict::Given;
        Ok(Self {
            inner,
            end,
            ready: false,
            verdict,
            record_size,
            sizer: None,
            owed: 0,
            clock: Clock::start(),
        })
    }

    /// Has a client's handshake wait when the server's certificate is there, as one does that asks an authority about it; until
    /// [`verified`](Self::verified). To be said before the handshake begins. A handshake that resumes a session shows no certificate.
    pub fn hold_certificate(&mut self) {
        self.verdict = Verdict::ExpectCertificate;
        unbound::hold_certificate(self.inner.ssl_mut(), true);
    }

    /// Whether the server's certificate has come, on a connection that [holds](Self::hold_certificate) there; true once.
    pub fn poll_certificate(&mut self) -> bool {
        let due = self.verdict == Verdict::Due;
        if due {
            self.verdict = Verdict::Asked;
        }
        due
    }

    /// All has been asked about the certificate: the next [`handshake`](Self::handshake) checks it, and goes on. Of no effect unless
    /// [`poll_certificate`](Self::poll_certificate) has said that it came.
    pub fn verified(&mut self) {
        if self.verdict == Verdict::Asked {
            self.verdict = Verdict::Given;
            unbound::hold_certificate(self.inner.ssl_mut(), false);
        }
    }

    /// Goes on with the handshake; done when it gives `Ok`.
    pub fn handshake(&mut self) -> io::Result<()> {
        if self.ready {
            return Ok(());
        }
        let done = match self.end {
            End::Client => self.inner.connect(),
            End::Server => self.inner.accept(),
        };
        match done {
            Ok(()) => {
                self.ready = true;
                if matches!(self.end, End::Server) {
                    unbound::flush_tickets(self.inner.ssl_mut());
                }
                Ok(())
            }
            Err(e) => {
                let waits = e.code() == ErrorCode::WANT_CERTIFICATE_VERIFY;
                if waits && self.verdict == Verdict::ExpectCertificate {
                    self.verdict = Verdict::Due;
                }
                Err(self.translate(e))
            }
        }
    }

    /// Reads into `buffer`; 0 is the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.ssl_read(buffer) {
            Ok(n) => Ok(n),
            Err(e) if e.code() == ErrorCode::ZERO_RETURN => Ok(0),
            // The peer closed TCP without saying so in TLS. Old servers do; whoever reads knows whether it had all.
            Err(e) if e.code() == ErrorCode::SYSCALL && e.io_error().is_none() && e.ssl_error().is_none() => {
                Ok(0)
            }
            Err(e) => Err(self.translate(e)),
        }
    }

    /// Writes from `buffer`; see [`crate::Stream::write`].
    pub fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.sizer.is_some() {
            return self.write_record(buffer);
        }
        self.inner.ssl_write(buffer).map_err(|e| self.translate(e))
    }

    /// Writes one record, as large as the rule for them has it now.
    fn write_record(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let now = self.clock.now();
        let len = self.record().min(buffer.len());
        let Some(sizer) = &mut self.sizer else { unreachable!("there is a rule") };
        let written = self.inner.ssl_write(&buffer[..len]);
        match &written {
            Ok(n) => {
                self.owed = 0;
                sizer.note(now, *n as u64);
            }
            Err(_) => self.owed = len,
        }
        written.map_err(|e| self.translate(e))
    }

    /// Sends close_notify; the peer's is not waited for.
    pub fn close_notify(&mut self) -> io::Result<()> {
        match self.inner.shutdown() {
            Ok(_) => Ok(()),
            Err(e) => Err(self.translate(e)),
        }
    }

    /// What was agreed on, as far as the handshake has come.
    pub fn negotiated(&self) -> Negotiated {
        let ssl = self.inner.ssl();
        let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let alpn = ssl.selected_alpn_protocol().map(|p| (name(p), By::Alpn));
        Negotiated {
            protocol: alpn.or_else(|| unbound::negotiated(ssl).map(|p| (name(p), By::Npn))),
            version: ssl.version_str(),
            cipher: ssl.current_cipher().map_or_else(String::new, |c| c.name().to_owned()),
            resumed: ssl.session_reused(),
            stapled: ssl.ocsp_status().is_some(),
        }
    }

    /// Whether the client may send although the server's Finished has not come (False Start).
    pub fn is_false_started(&self) -> bool {
        unbound::in_false_start(self.inner.ssl())
    }

    /// Bytes of plaintext that the next record holds at most: what one [`write`](Self::write) takes.
    pub fn record(&self) -> usize {
        match &self.sizer {
            None => self.record_size.unwrap_or(16_384).into(),
            Some(_) if self.owed > 0 => self.owed,
            Some(sizer) => sizer.limit(self.clock.now(), self.overhead()) as usize,
        }
    }

    /// What a record adds to its plaintext.
    fn overhead(&self) -> u32 {
        if self.inner.ssl().version_str() == "TLSv1.3" { 22 } else { 29 }
    }

    /// How many bytes are decided on at a time; see [`tls::Sizing::chunk`](::tls::Sizing::chunk).
    pub fn chunk(&self) -> Option<u64> {
        self.sizer.as_ref()?.sizing().chunk()
    }

    /// The socket.
    pub fn tcp(&mut self) -> &mut TcpStream {
        self.inner.get_mut()
    }

    fn translate(&self, error: boring::ssl::Error) -> io::Error {
        match error.code() {
            ErrorCode::WANT_READ | ErrorCode::WANT_WRITE | ErrorCode::WANT_CERTIFICATE_VERIFY => {
                io::ErrorKind::WouldBlock.into()
            }
            _ => {
                let verify = self.inner.ssl().verify_result();
                if let Some(stack) = error.ssl_error() {
                    let why = match verify {
                        Err(e) => format!("certificate not accepted: {}", e.error_string()),
                        Ok(()) => reason(stack),
                    };
                    return io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {why}"));
                }
                match error.into_io_error() {
                    Ok(e) => e,
                    Err(e) => io::Error::new(io::ErrorKind::ConnectionAborted, format!("TLS: {e}")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
