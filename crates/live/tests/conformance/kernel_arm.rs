//! A scenario over the kernel's TCP: sockets in two networks, and between them the same [`Track`] in real time.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use base::{Duration, Instant};
use live::emulator::{Config, Ends};
use live::namespace::{Block, HEADER, Privilege, Tun};
use live::world::Kernel;
use live::{Clock, Reactor};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::conformance::scenario::{Exchange, Outcome, Scenario};
use crate::conformance::track::{Client, Header, Note, Server, Side, Track};

/// No socket waits longer than that for anything.
const PATIENCE: StdDuration = StdDuration::from_secs(60);
const PORT: u16 = 80;

/// Runs a scenario; `None` where the system gives us no networks, and then says so.
///
/// # Panics
/// If it comes to nothing.
pub fn run(scenario: &Scenario) -> Option<Outcome> {
    let ends = match Privilege::acquire().and_then(|privilege| Ends::new(privilege, Block::WHOLE)) {
        Ok(ends) => ends,
        Err(e) if std::env::var_os("CI").is_none() => {
            println!("skipped: the kernel's arm needs the capabilities SYS_ADMIN and NET_ADMIN: {e}");
            return None;
        }
        Err(e) => panic!("in CI this must run: {e}"),
    };
    // Each packet by itself, not in the large pieces in which the kernel would pass them on.
    let (near, far) =
        ends.devices(&Config { each_packet: true, ..Config::perfect() }).expect("two TUN devices");
    let block = ends.block();
    let mut kernel = Kernel::default();
    let near_to_far = kernel.set("client", ends.near(), (block.far(), 32), &scenario.client);
    let far_to_near = kernel.set("server", ends.far(), (block.near(), 32), &scenario.server);
    let unmet = [near_to_far.expect("TCP at the client"), far_to_near.expect("TCP at the server")];
    assert_eq!(unmet, [[""; 0]; 2], "{}: the kernel does as the scenario says", scenario.name);
    let listener = ends.far().run(|| TcpListener::bind((block.far(), PORT))).expect("a listener");
    let over = AtomicBool::new(false);
    let (notes, stats) = std::thread::scope(|scope| {
        let wire = scope.spawn(|| carry(scenario, [&near, &far], &over));
        let servers = scope.spawn(|| serve(&listener, &scenario.connections));
        let clients: Vec<_> = scenario
            .connections
            .iter()
            .map(|script| scope.spawn(|| ends.near().run(|| ask((block.far(), PORT), script))))
            .collect();
        let asked: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        let served = servers.join();
        over.store(true, Ordering::SeqCst);
        let notes = wire.join().expect("the wire lasts").expect("packets pass");
        asked.into_iter().for_each(|client| client.expect("a client").expect("every answer came"));
        (notes, served.expect("the servers").expect("every question came"))
    });
    Some(Outcome::new(scenario, notes, stats))
}

fn ask(to: (Ipv4Addr, u16), script: &[Exchange]) -> io::Result<()> {
    let mut stream = TcpStream::connect(to)?;
    prepare(&stream)?;
    for exchange in script {
        if !exchange.pause.is_zero() {
            let mut clock = Reactor::new()?;
            clock.wait(Some(clock.now() + exchange.pause))?;
        }
        stream.write_all(&vec![0; exchange.request as usize])?;
        take(&mut stream, exchange.response)?;
    }
    Ok(())
}

/// Serves all connections; gives what their TCP has counted, in the order in which they came.
fn serve(listener: &TcpListener, connections: &[Vec<Exchange>]) -> io::Result<Vec<tcp::Stats>> {
    std::thread::scope(|scope| {
        let mut all = Vec::new();
        for script in connections {
            let (mut stream, _) = listener.accept()?;
            all.push(scope.spawn(move || {
                prepare(&stream)?;
                for exchange in script {
                    take(&mut stream, exchange.request)?;
                    stream.write_all(&vec![0; exchange.response as usize])?;
                }
                let end = stream.read(&mut [0])?;
                assert_eq!(end, 0, "no more was to come");
                live::tcp_stats(&stream)
            }));
        }
        all.into_iter().map(|server| server.join().expect("a server")).collect()
    })
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    live::prepare(stream)
}

fn take(stream: &mut TcpStream, mut len: u64) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    while len > 0 {
        let want = buffer.len().min(len as usize);
        match stream.read(&mut buffer[..want])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => len -= n as u64,
        }
    }
    Ok(())
}

/// Carries packets between the devices until all is over; gives a note of each.
fn carry(scenario: &Scenario, tuns: [&Tun; 2], over: &AtomicBool) -> io::Result<Vec<Note>> {
    // Where one may: a packet that is due waits for no program that only computes.
    let _ = rustix::process::setpriority_process(None, -20);
    let (clock, mut track, mut flows) = (Clock::start(), Track::new(&scenario.network), Flows::default());
    let mut buffer = vec![0; HEADER + 2_000];
    while !over.load(Ordering::SeqCst) {
        for (tun, from) in tuns.into_iter().zip([Client, Server]) {
            for _ in 0..16 {
                match tun.read(&mut buffer) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) => return Err(e),
                    Ok(len) => {
                        let packet = buffer[..len].to_vec();
                        if let Some((connection, header)) = flows.read(&packet[HEADER..], from) {
                            let wire_len = (len - HEADER) as u32;
                            track.send(clock.now(), connection, from, header, wire_len, packet);
                        }
                    }
                }
            }
            while let Some((_, from, packet)) = track.deliver(clock.now()) {
                tuns[1 - from as usize].write(&packet)?;
            }
        }
        sleep(clock, track.next_time(), tuns)?;
    }
    Ok(track.notes)
}

/// Until a packet comes or is due, and no longer than a moment, so that the end is seen.
fn sleep(clock: Clock, due: Option<Instant>, tuns: [&Tun; 2]) -> io::Result<()> {
    let moment = Duration::from_millis(20);
    let nanos = due.map_or(moment, |due| due.since(clock.now()).min(moment)).as_nanos();
    let timeout = Timespec { tv_sec: 0, tv_nsec: nanos as _ };
    let mut fds = tuns.map(|tun| PollFd::new(tun, PollFlags::IN));
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Connections by the client's port, and where their numbers start.
#[derive(Default)]
struct Flows {
    known: BTreeMap<u16, Flow>,
}

struct Flow {
    number: usize,
    /// By end: the number of its SYN, and how far it scales its windows.
    start: [Option<u32>; 2],
    scale: [u32; 2],
}

impl Flows {
    /// What an IPv4 packet with TCP says; `None` for any other.
    fn read(&mut self, ip: &[u8], from: Side) -> Option<(usize, Header)> {
        let tcp = ip
            .get(usize::from(ip.first()? & 15) * 4..)
            .filter(|_| ip[0] >> 4 == 4 && ip.get(9) == Some(&6))?;
        let options = tcp.get(20..usize::from(tcp.get(12)? >> 4) * 4)?;
        let flags = tcp[13];
        let (syn, ack) = (flags & 2 != 0, flags & 16 != 0);
        let half = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let word = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
        let port = if from == Client { half(0) } else { half(2) };
        let new = Flow { number: self.known.len(), start: [None; 2], scale: [0; 2] };
        let flow = self.known.entry(port).or_insert(new);
        let mut header = Header {
            syn,
            fin: flags & 1 != 0,
            rst: flags & 4 != 0,
            psh: flags & 8 != 0,
            len: (tcp.len() - 20 - options.len()) as u64,
            ..Header::default()
        };
        for (kind, value) in each_option(options) {
            match kind {
                3 if syn => flow.scale[from as usize] = u32::from(*value.first()?),
                5 => header.sacks = value.len() / 8,
                _ => {}
            }
        }
        if syn {
            flow.start[from as usize] = Some(word(4));
        }
        // No scenario sends 4 GB.
        let relative = |word: u32, side: Side| {
            flow.start[side as usize].map(|start| u64::from(word.wrapping_sub(start)))
        };
        let other = if from == Client { Server } else { Client };
        header.seq = relative(word(4), from)?;
        header.ack = if ack { relative(word(8), other)? } else { 0 };
        let scaled = if syn || flow.scale.contains(&0) { 0 } else { flow.scale[from as usize] };
        header.window = u64::from(half(14)) << scaled;
        Some((flow.number, header))
    }
}

/// The options of a TCP header (RFC 9293 §3.1).
fn each_option(mut options: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        loop {
            match *options {
                [1, ref rest @ ..] => options = rest,
                [kind, len, ..] if kind > 1 && len >= 2 && options.len() >= usize::from(len) => {
                    let (option, rest) = options.split_at(usize::from(len));
                    options = rest;
                    return Some((kind, &option[2..]));
                }
                _ => return None,
            }
        }
    })
}
