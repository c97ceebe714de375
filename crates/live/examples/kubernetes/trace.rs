//! Between a client and a server: passes on what they say, and prints it as HTTP heads and SPDY frames.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use bytes::Bytes;
use spdy::trace::Decoder;
use spdy::{Limits, Version};

/// Bytes of a head that is waited for; what has none in so many is passed on unseen.
const HEAD_MAX: usize = 64 * 1024;

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    ToServer,
    ToClient,
}

/// What is expected next.
enum Expect {
    Head(Vec<u8>),
    Frames(Box<Decoder>),
    /// Nothing that can be shown.
    Anything,
}

/// Looks at one direction of a connection.
pub struct Viewer {
    connection: usize,
    way: Way,
    expect: Expect,
}

/// Serves for ever.
pub fn run(listen: SocketAddr, target: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(listen)?;
    println!("listening {}", listener.local_addr()?);
    let mut connections = 0;
    loop {
        let client = listener.accept()?.0;
        connections += 1;
        let relayed = TcpStream::connect(target).and_then(|server| relay(connections, client, server));
        if let Err(e) = relayed {
            eprintln!("{target}: {e}");
        }
    }
}

/// Both ways, on threads of their own.
fn relay(connection: usize, client: TcpStream, server: TcpStream) -> io::Result<()> {
    for tcp in [&client, &server] {
        tcp.set_nodelay(true)?;
    }
    let ways = [(Way::ToServer, client.try_clone()?, server.try_clone()?), (Way::ToClient, server, client)];
    for (way, from, to) in ways {
        thread::Builder::new().spawn(move || {
            let mut viewer = Viewer::new(connection, way);
            if pass(&from, &to, &mut viewer).is_err() {
                // One that is gone takes the other with it.
                let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            }
        })?;
    }
    Ok(())
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, viewer: &mut Viewer) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = from.read(&mut buffer)?;
        let mut lines = viewer.see(&buffer[..n]);
        if n == 0 {
            lines.push_str(&viewer.line("closes"));
        }
        io::stdout().lock().write_all(lines.as_bytes())?;
        if n == 0 {
            return to.shutdown(Shutdown::Write);
        }
        to.write_all(&buffer[..n])?;
    }
}

impl Viewer {
    pub fn new(connection: usize, way: Way) -> Self {
        Self { connection, way, expect: Expect::Head(Vec::new()) }
    }

    /// `text`, with where it comes from before each of its lines.
    fn line(&self, text: &str) -> String {
        let arrow = if self.way == Way::ToServer { '>' } else { '<' };
        text.lines().map(|line| format!("{} {arrow} {line}\n", self.connection)).collect()
    }

    /// What to print of what came next.
    pub fn see(&mut self, bytes: &[u8]) -> String {
        match &mut self.expect {
            Expect::Anything => String::new(),
            Expect::Frames(_) => self.see_frames(bytes),
            Expect::Head(head) => {
                head.extend_from_slice(bytes);
                let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") else {
                    if head.len() > HEAD_MAX {
                        self.expect = Expect::Anything;
                    }
                    return String::new();
                };
                let rest = head.split_off(end + 4);
                let text = String::from_utf8_lossy(&head[..end]).into_owned();
                let is_upgrade = match self.way {
                    Way::ToServer => text.to_ascii_lowercase().contains("\nupgrade: spdy/3.1"),
                    Way::ToClient => text.starts_with("HTTP/1.1 101 "),
                };
                let mut lines = self.line(&without_secrets(&text));
                if is_upgrade {
                    self.expect = Expect::Frames(Box::new(Decoder::new(Version::V3_1, Limits::default())));
                    lines.push_str(&self.see_frames(&rest));
                } else {
                    lines.push_str(&self.line("no upgrade to SPDY/3.1: what follows is passed on unseen"));
                    self.expect = Expect::Anything;
                }
                lines
            }
        }
    }

    fn see_frames(&mut self, bytes: &[u8]) -> String {
        let Expect::Frames(decoder) = &mut self.expect else { return String::new() };
        decoder.handle_input(Bytes::copy_from_slice(bytes).into());
        let mut lines = Vec::new();
        loop {
            match decoder.poll_frame() {
                Ok(Some(frame)) => lines.push(format!("{frame:#}")),
                Ok(None) => break,
                Err(e) => {
                    lines.push(format!("no SPDY: {e:?}"));
                    self.expect = Expect::Anything;
                    break;
                }
            }
        }
        lines.iter().map(|frame| self.line(frame)).collect()
    }
}

/// A head whose credentials are not shown.
fn without_secrets(head: &str) -> String {
    let shown = head.lines().map(|line| match line.split_once(':') {
        Some((name, _)) if ["authorization", "cookie"].contains(&&*name.to_ascii_lowercase()) => {
            format!("{name}: (not shown)")
        }
        _ => line.escape_debug().to_string(),
    });
    shown.collect::<Vec<_>>().join("\n")
}
