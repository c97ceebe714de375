//! What every TCP socket is set to.

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
