//! TLS in a build without it: nothing of it can be made.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use mio::net::TcpStream;

use super::{ClientConfig, Error, Negotiated, ServerConfig};

fn absent() -> Error {
    Error("this build of velodrome has no TLS: build it with `--features tls` (needs cmake, a C++ compiler, libclang)".into())
}

/// A certificate chain and its key; in this build there is none.
#[derive(Clone, Debug)]
pub struct Identity(Infallible);

impl Identity {
    /// Fails.
    pub fn read(_: &Path, _: &Path) -> Result<Self, Error> {
        Err(absent())
    }

    /// Fails.
    pub fn self_signed(_: &[String]) -> Result<Self, Error> {
        Err(absent())
    }

    /// Cannot be called.
    pub fn certificate_pem(&self) -> Result<Vec<u8>, Error> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn key_pem(&self) -> Result<Vec<u8>, Error> {
        match self.0 {}
    }
}

/// A certificate authority; in this build there is none.
#[derive(Debug)]
pub struct Authority(Infallible);

impl Authority {
    /// Fails.
    pub fn new(_: tls::Signature) -> Result<Self, Error> {
        Err(absent())
    }

    /// Cannot be called.
    pub fn root_pem(&self) -> Result<Vec<u8>, Error> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn intermediate_pem(&self) -> Result<Vec<u8>, Error> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn issue(&self, _: &[String], _: u32, _: bool) -> Result<(Identity, u32), Error> {
        match self.0 {}
    }
}

/// A server's side of TLS; in this build there is none.
#[derive(Clone, Debug)]
pub struct Acceptor(Infallible);

impl Acceptor {
    /// Fails.
    pub fn new(_: &ServerConfig) -> Result<Self, Error> {
        Err(absent())
    }

    /// Cannot be called.
    pub fn accept(&self, _: TcpStream) -> Result<TlsStream, Error> {
        match self.0 {}
    }
}

/// A client's side of TLS; in this build there is none.
#[derive(Clone, Debug)]
pub struct Connector(Infallible);

/// A session to resume; in this build there is none.
#[derive(Clone)]
pub struct Session(Infallible);

impl Connector {
    /// Fails.
    pub fn new(_: &ClientConfig) -> Result<Self, Error> {
        Err(absent())
    }

    /// Cannot be called.
    pub fn connect(&self, _: &str, _: TcpStream, _: Option<&Session>) -> Result<TlsStream, Error> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn take_session(&self) -> Option<Session> {
        match self.0 {}
    }
}

/// A connection under TLS; in this build there is none.
#[derive(Debug)]
pub struct TlsStream(Infallible);

impl TlsStream {
    /// Cannot be called.
    pub fn hold_certificate(&mut self) {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn poll_certificate(&mut self) -> bool {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn verified(&mut self) {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn handshake(&mut self) -> io::Result<()> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn close_notify(&mut self) -> io::Result<()> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn negotiated(&self) -> Negotiated {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn record(&self) -> usize {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn chunk(&self) -> Option<u64> {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn is_false_started(&self) -> bool {
        match self.0 {}
    }

    /// Cannot be called.
    pub fn tcp(&mut self) -> &mut TcpStream {
        match self.0 {}
    }
}
