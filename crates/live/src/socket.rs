//! What every TCP socket is set to, and what one can tell.

use std::io;
use std::os::fd::AsFd;

use socket2::SockRef;

/// Bytes that may wait unsent in the kernel's buffer before it stops taking more.
///
/// With the default, the buffer swallows megabytes of one response and no priority acts on them any more. 16 KiB is one TLS
/// record: enough to keep the link busy while the program wakes, as it is asked for more when less than this is left.
pub const NOTSENT_LOWAT: u32 = 16 * 1024;

/// Sets a connection up: no Nagle delay, and no more than [`NOTSENT_LOWAT`] unsent bytes out of the scheduler's reach.
pub fn prepare(socket: &impl AsFd) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_notsent_lowat(NOTSENT_LOWAT)?;
    Ok(())
}

/// Has the kernel hold back what does not fill a segment (`TCP_CORK`, tcp(7)), or send it.
pub(crate) fn cork(socket: &impl AsFd, on: bool) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return SockRef::from(socket).set_tcp_cork(on);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (socket, on);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Has the kernel pace what this socket sends, at the rate that TCP finds right (`SO_MAX_PACING_RATE`, socket(7)): any limit switches
/// pacing on, and this one limits nothing. Connections that a listening socket accepts inherit it.
///
/// # Errors
/// On systems other than Linux, and if the kernel does not keep the limit.
pub(crate) fn pace(socket: &impl AsFd) -> io::Result<()> {
    pacing::set(socket.as_fd())
}

/// The limit that [`pace`] sets, in bytes a second: a terabyte, and not the kernel's word for "unlimited", all ones.
#[cfg(target_os = "linux")]
pub(crate) const PACED: u64 = 1 << 40;

/// The rate that a socket is limited to, in bytes a second; `None` if it has no limit, and so is not paced on its own account.
///
/// # Errors
/// For what is no socket.
#[cfg(target_os = "linux")]
pub(crate) fn pacing_rate(socket: &impl AsFd) -> io::Result<Option<u64>> {
    pacing::get(socket.as_fd())
}

#[cfg(target_os = "linux")]
mod pacing {
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd};

    use super::PACED;

    const LEN: libc::socklen_t = size_of::<u64>() as libc::socklen_t;

    #[allow(unsafe_code, reason = "no library has this option")]
    pub fn set(socket: BorrowedFd<'_>) -> io::Result<()> {
        let (level, option, asked) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, PACED);
        // SAFETY: the kernel reads a number of `LEN` bytes.
        let result =
            unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const asked).cast(), LEN) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        match get(socket)? {
            Some(PACED) => Ok(()),
            // A kernel of 32 bits has no such figure.
            _ => Err(io::Error::other("the kernel keeps another pacing rate")),
        }
    }

    #[allow(unsafe_code, reason = "no library has this option")]
    pub fn get(socket: BorrowedFd<'_>) -> io::Result<Option<u64>> {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
        let (mut got, mut len) = (0u64, LEN);
        // SAFETY: the kernel writes a number of at most `len` bytes to `got`, and how many to `len`.
        let result =
            unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut got).cast(), &mut len) };
        match result {
            0 => Ok((got != u64::MAX).then_some(got)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod pacing {
    pub fn set(_: std::os::fd::BorrowedFd<'_>) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// What the kernel has counted on a TCP socket, as far as `TCP_INFO` (tcp(7)) tells: bytes, segments, retransmissions, timeouts, the
/// round-trip time, cwnd and ssthresh. The other counters stay zero, and so do those that an old kernel does not know.
///
/// # Errors
/// On systems other than Linux, and for what is no TCP socket.
pub fn tcp_stats(socket: &impl AsFd) -> io::Result<tcp::Stats> {
    info::read(socket.as_fd()).map(|info| info.stats())
}

/// The same, and how many segments are not acknowledged.
pub(crate) fn tcp_flight(socket: &impl AsFd) -> io::Result<(tcp::Stats, u32)> {
    info::read(socket.as_fd()).map(|info| (info.stats(), info.in_flight()))
}

#[cfg(target_os = "linux")]
mod info {
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd};

    use base::Duration;

    /// `struct tcp_info` of linux/tcp.h, as far as the kernel filled it in.
    pub struct Info {
        bytes: [u8; 256],
        len: usize,
    }

    #[allow(unsafe_code, reason = "no library reads as much of `struct tcp_info` as is needed here")]
    pub fn read(socket: BorrowedFd<'_>) -> io::Result<Info> {
        let mut info = Info { bytes: [0; 256], len: 0 };
        let mut len = info.bytes.len() as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes to `bytes`, which are as many, and how many to `len`.
        let result = unsafe {
            let to = info.bytes.as_mut_ptr().cast();
            libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &mut len)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        info.len = (len as usize).min(info.bytes.len());
        Ok(info)
    }

    /// What the kernel has for an infinite `ssthresh` (`TCP_INFINITE_SSTHRESH`).
    const INFINITE: u64 = 0x7fff_ffff;

    impl Info {
        /// The number of `N` bytes at an offset; 0 where the kernel wrote nothing.
        fn number<const N: usize>(&self, at: usize) -> u64 {
            let field = self.bytes[..self.len].get(at..at + N).unwrap_or_default();
            let mut wide = [0; 8];
            match cfg!(target_endian = "little") {
                true => wide[..field.len()].copy_from_slice(field),
                false => wide[8 - field.len()..].copy_from_slice(field),
            }
            u64::from_ne_bytes(wide)
        }

        pub fn in_flight(&self) -> u32 {
            self.number::<4>(24) as u32 // tcpi_unacked
        }

        pub fn stats(&self) -> tcp::Stats {
            let rtt = self.number::<4>(68); // tcpi_rtt
            let ssthresh = self.number::<4>(76); // tcpi_snd_ssthresh
            tcp::Stats {
                segments_sent: self.number::<4>(136),     // tcpi_segs_out
                segments_received: self.number::<4>(140), // tcpi_segs_in
                bytes_sent: self.number::<8>(200),        // tcpi_bytes_sent
                bytes_received: self.number::<8>(128),    // tcpi_bytes_received
                retransmits: self.number::<4>(100),       // tcpi_total_retrans
                timeouts: self.number::<2>(240),          // tcpi_total_rto, since Linux 6.7
                srtt: (rtt > 0).then(|| Duration::from_micros(rtt)),
                cwnd: self.number::<4>(80) as u32, // tcpi_snd_cwnd
                ssthresh: (ssthresh < INFINITE).then_some(ssthresh as u32),
                ..tcp::Stats::default()
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod info {
    use std::io;
    use std::os::fd::BorrowedFd;

    pub struct Info;

    pub fn read(_: BorrowedFd<'_>) -> io::Result<Info> {
        Err(io::ErrorKind::Unsupported.into())
    }

    impl Info {
        pub fn in_flight(&self) -> u32 {
            0
        }

        pub fn stats(&self) -> tcp::Stats {
            tcp::Stats::default()
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_socket_tells_what_went_over_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut b, _) = listener.accept().unwrap();
        a.write_all(&[1; 5_000]).unwrap();
        b.read_exact(&mut [0; 5_000]).unwrap();
        b.write_all(b"x").unwrap();
        a.read_exact(&mut [0]).unwrap();
        let (sent, received) = (tcp_stats(&a).unwrap(), tcp_stats(&b).unwrap());
        assert_eq!((sent.bytes_sent, received.bytes_received), (5_000, 5_000));
        assert_eq!((sent.retransmits, sent.timeouts, sent.ssthresh), (0, 0, None));
        assert!(sent.segments_sent > 0 && sent.cwnd >= 10 && sent.srtt.is_some());
        assert!(tcp_stats(&std::fs::File::open("/dev/null").unwrap()).is_err(), "no socket");
    }

    #[test]
    fn a_socket_is_paced_and_so_is_what_it_accepts_and_nothing_else() {
        let connect = |paced: bool| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            assert_eq!(pacing_rate(&listener).unwrap(), None);
            if paced {
                pace(&listener).unwrap();
            }
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            [pacing_rate(&near), pacing_rate(&listener), pacing_rate(&listener.accept().unwrap().0)]
                .map(Result::unwrap)
        };
        assert_eq!(connect(true), [None, Some(PACED), Some(PACED)]);
        assert_eq!(connect(false), [None; 3]);
        let none = std::fs::File::open("/dev/null").unwrap();
        assert!(pace(&none).is_err() && pacing_rate(&none).is_err());
    }
}
