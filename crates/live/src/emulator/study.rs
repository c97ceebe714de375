//! How good the emulator is, measured from outside: through the kernel's own stack at both ends, and by the kernel's clock and counters.
//!
//! * Delay: datagrams are stamped by the program that sends them and by the kernel that receives them (`SIOCGSTAMPNS`, socket(7)). What
//!   lies between is the way through the sender's stack, the emulator, and the delay that was asked for.
//! * Rate and loss: the receiving device's packet counter, while datagrams of one length come.
//! * Throughput: one TCP connection, as fast as it goes.
//!
//! What sends or counts gets its [`Turn`] as the emulator does, lest its own waiting is measured. Each figure is of one direction and of a link made for it. The machine is part of what is measured: whatever else runs on it shows.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;

use base::{Bitrate, Duration, Instant};
use link::{LossConfig, PathConfig, QueueConfig, Rate};
use rustix::time::{ClockId, clock_gettime};

use super::{Config, DEVICE, Ends, Lateness, Link};
use crate::Clock;
use crate::namespace::{Block, Net, Privilege, Turn, received_at};
use crate::timer::{Policy, Timer};

/// What links are made with.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    /// The right to make them.
    pub privilege: Privilege,
    /// How exactly packets keep to their time.
    pub policy: Policy,
    /// For how long to spin at most before a packet is due.
    pub spin: Duration,
    /// The seed of loss.
    pub seed: u64,
}

/// Errors of delays, and how many packets they are of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delays {
    /// Packets received.
    pub packets: usize,
    /// Half of them were less off.
    pub median: Duration,
    /// 99 of 100 were less off.
    pub p99: Duration,
    /// The most that one was off.
    pub worst: Duration,
    /// 99 of 100 were less off as the program that reads them saw it, which has to wake up for it.
    pub p99_read: Duration,
}

/// A rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rated {
    /// What was asked for, bits a second.
    pub asked_bps: f64,
    /// What the receiving device counted, bits a second.
    pub achieved_bps: f64,
    /// What was offered, bits a second; below what was asked for, the sender was too slow and nothing is shown.
    pub offered_bps: f64,
    /// How late packets were written.
    pub lateness: Lateness,
}

/// A share of packets lost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lost {
    /// Packets sent.
    pub sent: u64,
    /// Packets that the receiving device did not count.
    pub lost: u64,
    /// The share that was asked for.
    pub asked: f64,
    /// Where it lies for 95 of 100 links with the loss asked for.
    pub interval: (f64, f64),
}

/// What the datagrams' headers take.
const HEADERS: usize = 28;

/// A port where datagrams are sent to.
const PORT: u16 = 9;

impl Bench {
    fn link(&self, path: PathConfig, each_packet: bool) -> io::Result<Link> {
        let config = Config {
            up: path,
            policy: self.policy,
            spin: self.spin,
            seed: self.seed,
            each_packet,
            ..Config::perfect()
        };
        Ends::new(self.privilege, Block::WHOLE)
            .and_then(|ends| ends.join(&config, None))
            .map_err(io::Error::other)
    }

    /// How far off the delay of single packets is, each of `bytes` (at least 64) and sent `period` after the one before.
    pub fn delay(&self, asked: Duration, packets: u32, bytes: usize, period: Duration) -> io::Result<Delays> {
        let link = self.link(PathConfig { delay: asked, ..PathConfig::default() }, true)?;
        let (near, far) = sockets(&link)?;
        far.set_read_timeout(Some(std::time::Duration::from_secs(2)))?;
        let (sent_at, received) = std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                Turn::soonest();
                let mut timer = Timer::new(Clock::start(), Policy::Precise)?.spinning(Duration::ZERO);
                let mut datagram = vec![0; bytes - HEADERS];
                let mut sent_at = Vec::with_capacity(packets as usize);
                for n in 0..packets {
                    timer.wait_until(Instant::ZERO + period * u64::from(n))?;
                    datagram[..4].copy_from_slice(&n.to_ne_bytes());
                    sent_at.push(wall());
                    near.send(&datagram)?;
                }
                Ok::<_, io::Error>(sent_at)
            });
            let received = receive(&far, packets as usize, bytes)?;
            let sent_at = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok::<_, io::Error>((sent_at, received))
        })?;
        let off = |n: u32, at: u64| {
            let took = at.saturating_sub(sent_at[n as usize]);
            Duration::from_nanos(took.abs_diff(asked.as_nanos()))
        };
        let mut kernel: Vec<_> = received.iter().map(|(n, stamp, _)| off(*n, *stamp)).collect();
        let mut read: Vec<_> = received.iter().map(|(n, _, read)| off(*n, *read)).collect();
        kernel.sort_unstable();
        read.sort_unstable();
        let quantile = |sorted: &[Duration], pct: usize| {
            sorted.get((sorted.len() * pct).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
        };
        Ok(Delays {
            packets: kernel.len(),
            median: quantile(&kernel, 50),
            p99: quantile(&kernel, 99),
            worst: quantile(&kernel, 100),
            p99_read: quantile(&read, 99),
        })
    }

    /// How much comes through a link of a certain rate that is offered a tenth more, counted for `span` once the queue has filled a little.
    pub fn rate(&self, asked: Bitrate, span: Duration) -> io::Result<Rated> {
        let queue = QueueConfig::sized_for(&Rate::Constant(asked), Duration::from_millis(200));
        let path = PathConfig { rate: Rate::Constant(asked), queue, ..PathConfig::default() };
        let link = self.link(path, true)?;
        let (near, _far) = sockets(&link)?;
        // Packets of 8 ms, so that one more or less makes no difference, and of a full frame at most.
        let bytes = (asked.bytes_in(Duration::from_millis(8)) as usize).clamp(64, 1_500);
        let bps = asked.as_bps() as f64 * 1.1;
        let warm = Duration::from_millis(500);
        let packets = (bps * (warm + span).as_secs_f64() / (8 * bytes) as f64) as u64;
        let (counted, offered) = std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                Turn::soonest();
                blast(&near, packets, bytes, bps)
            });
            let counter = scope.spawn(|| {
                Turn::soonest();
                link.far().enter()?;
                let clock = Clock::start();
                let mut timer = Timer::new(clock, Policy::Precise)?;
                let mut count = |at: Instant| -> io::Result<(u64, Instant)> {
                    timer.wait_until(at)?;
                    let (before, counts) = (clock.now(), counts(link.far())?);
                    Ok((counts, before + clock.now().since(before) / 2))
                };
                let start = Instant::ZERO + warm;
                let (first, from) = count(start)?;
                // A little before the last is sent.
                let (last, to) = count(start + span.mul_f64(0.95))?;
                Ok::<_, io::Error>((last - first, to.since(from)))
            });
            let counted = counter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            let offered = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok::<_, io::Error>((counted, offered))
        })?;
        let (check, _) = link.finish()?;
        let bits = |packets: u64| (packets * 8 * bytes as u64) as f64;
        Ok(Rated {
            asked_bps: asked.as_bps() as f64,
            achieved_bps: bits(counted.0) / counted.1.as_secs_f64(),
            offered_bps: bits(packets) / offered.as_secs_f64(),
            lateness: check.up.lateness().ok_or_else(|| io::Error::other("no packet was delivered"))?,
        })
    }

    /// How many of `packets` are lost.
    pub fn loss(&self, asked: LossConfig, packets: u64) -> io::Result<Lost> {
        let link = self.link(PathConfig { loss: asked, ..PathConfig::default() }, true)?;
        let (near, _far) = sockets(&link)?;
        blast(&near, packets, 64, 64.0 * 8.0 * 20_000.0)?;
        // The last ones are on their way for as long as the emulator takes to wake.
        let clock = Clock::start();
        let mut timer = Timer::new(clock, Policy::Precise)?;
        timer.wait_until(clock.now() + Duration::from_millis(100))?;
        let received = counts(link.far())?;
        let (check, _) = link.finish()?;
        let (_, interval) = check.up.loss().ok_or_else(|| io::Error::other("no packet came"))?;
        let sent = check.up.received.packets;
        Ok(Lost { sent, lost: sent - received, asked: asked.mean(), interval })
    }

    /// What one TCP connection carries over a link that does nothing, bits of payload a second; packet by packet, or in the large pieces in
    /// which such a link carries them.
    pub fn throughput(&self, span: Duration, each_packet: bool) -> io::Result<f64> {
        let link = self.link(PathConfig::default(), each_packet)?;
        let far = link.block().far();
        let listener = link.far().run(|| TcpListener::bind((far, PORT)))?;
        let mut stream = link.near().run(|| TcpStream::connect((far, PORT)))?;
        let clock = Clock::start();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let (mut served, _) = listener.accept()?;
                let mut buffer = vec![0; 1 << 18];
                let mut bytes = 0u64;
                loop {
                    match served.read(&mut buffer)? {
                        0 => return Ok::<_, io::Error>((bytes, clock.now())),
                        n => bytes += n as u64,
                    }
                }
            });
            let start = clock.now();
            let piece = vec![7; 1 << 18];
            while clock.now() < start + span {
                stream.write_all(&piece)?;
            }
            drop(stream);
            let (bytes, end) = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((8 * bytes) as f64 / end.since(start).as_secs_f64())
        })
    }
}

/// A socket at either end, the near one connected to the far one.
fn sockets(link: &Link) -> io::Result<(UdpSocket, UdpSocket)> {
    let to = link.block().far();
    let far = link.far().run(|| UdpSocket::bind((to, PORT)))?;
    let near = link.near().run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
    near.connect((to, PORT))?;
    Ok((near, far))
}

/// Packets that the far end's device has received.
fn counts(far: &Net) -> io::Result<u64> {
    far.counts(DEVICE).map(|counts| counts.received).map_err(io::Error::other)
}

/// Number, moment of receipt and moment of reading of each datagram, until they are as many as asked for or none comes for long.
fn receive(socket: &UdpSocket, packets: usize, bytes: usize) -> io::Result<Vec<(u32, u64, u64)>> {
    // The first question for a stamp is what turns stamps on.
    let _ = received_at(socket.as_fd());
    let mut received = Vec::with_capacity(packets);
    let mut buffer = vec![0; bytes];
    while received.len() < packets {
        match socket.recv(&mut buffer) {
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
            len => len?,
        };
        let now = wall();
        let number = u32::from_ne_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
        received.push((number, received_at(socket.as_fd())?, now));
    }
    Ok(received)
}

/// Sends datagrams that take `bytes` on the wire at a rate, in bursts of up to 200 µs; for how long.
fn blast(socket: &UdpSocket, packets: u64, bytes: usize, bps: f64) -> io::Result<Duration> {
    let clock = Clock::start();
    let mut timer = Timer::new(clock, Policy::Precise)?.spinning(Duration::ZERO);
    let datagram = vec![0; bytes - HEADERS];
    let period = (8 * bytes) as f64 / bps;
    let burst = ((200e-6 / period) as u64).max(1);
    for n in 0..packets {
        if n % burst == 0 {
            timer.wait_until(Instant::ZERO + Duration::from_millis_f64(n as f64 * period * 1e3))?;
        }
        socket.send(&datagram)?;
    }
    Ok(clock.now().since(Instant::ZERO))
}

/// The time by the wall clock, which the kernel's stamps are of, nanoseconds.
fn wall() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures are of this machine and no test's business; that each is one of what happened is.
    #[test]
    fn every_measurement_is_of_packets_that_crossed() {
        let Some(privilege) = crate::namespace::tests::privilege() else { return };
        let bench = Bench { privilege, policy: Policy::Precise, spin: Duration::ZERO, seed: 1 };
        let delays = bench.delay(Duration::from_millis(5), 20, 100, Duration::from_millis(1)).unwrap();
        assert_eq!(delays.packets, 20);
        assert!(delays.median <= delays.p99 && delays.p99 <= delays.worst && delays.worst > Duration::ZERO);
        let rated = bench.rate(Bitrate::from_kbps(1_000).unwrap(), Duration::from_millis(500)).unwrap();
        assert!(rated.achieved_bps > 0.0 && rated.offered_bps > 0.0, "{rated:?}");
        let lost = bench.loss(LossConfig::Bernoulli { p: 0.1 }, 2_000).unwrap();
        assert!(lost.sent == 2_000 && lost.lost > 100 && lost.lost < 300, "{lost:?}");
        assert!(bench.throughput(Duration::from_millis(100), false).unwrap() > 1e6);
    }
}
