//! What no library wraps safely: one `fork`, the calls that make a TUN device, when the kernel received a datagram, and how a thread is
//! scheduled.
#![allow(unsafe_code, reason = "these calls have no safe wrapper that fits; each use says why it is sound")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::unistd::{ForkResult, fork as nix_fork};
use rustix::ioctl;

/// Copies this process, which must have one thread: then the copy is as good as the original, and may do what it likes.
/// Gives the child's number to the parent.
pub(super) fn fork() -> io::Result<Option<i32>> {
    if !super::is_alone() {
        return Err(io::Error::other("there are threads"));
    }
    // SAFETY: the copy of a process with one thread has no lock that a thread which was not copied holds.
    match unsafe { nix_fork() }? {
        ForkResult::Parent { child } => Ok(Some(child.as_raw())),
        ForkResult::Child => Ok(None),
    }
}

/// `struct ifreq` of linux/if.h as far as `TUNSETIFF` looks at it: a name and flags, in 40 bytes.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;
/// The kernel may leave TCP and UDP checksums to whoever gets the packet.
const TUN_F_CSUM: usize = 1;
/// It may leave cutting TCP over IPv4 into segments to them too.
const TUN_F_TSO4: usize = 2;

// linux/if_tun.h: _IOW('T', 202, int), _IOW('T', 208, unsigned int).
const TUNSETIFF: ioctl::Opcode = ioctl::opcode::write::<i32>(b'T', 202);
const TUNSETOFFLOAD: ioctl::Opcode = ioctl::opcode::write::<u32>(b'T', 208);

/// Makes a network device of a descriptor of `/dev/net/tun`, and gives its name. `%d` in `name` stands for the first number that
/// is free. Each packet comes and goes with a `struct virtio_net_hdr` before it.
pub(super) fn make_tun(tun: BorrowedFd<'_>, name: &str, offload: bool) -> io::Result<String> {
    let mut request =
        InterfaceRequest { name: [0; 16], flags: IFF_TUN | IFF_NO_PI | IFF_VNET_HDR, rest: [0; 22] };
    // The last byte stays zero.
    let len = name.len().min(request.name.len() - 1);
    request.name[..len].copy_from_slice(&name.as_bytes()[..len]);
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, for which `InterfaceRequest` is large enough (40 bytes on 64-bit
    // systems, 32 on others) and of which it uses the fields that are declared.
    unsafe { ioctl::ioctl(tun.as_fd(), ioctl::Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request)) }?;
    let offloads = TUN_F_CSUM | if offload { TUN_F_TSO4 } else { 0 };
    // SAFETY: TUNSETOFFLOAD takes a number.
    unsafe { ioctl::ioctl(tun.as_fd(), ioctl::IntegerSetter::<TUNSETOFFLOAD>::new_usize(offloads)) }?;
    let end = request.name.iter().position(|b| *b == 0).unwrap_or(request.name.len());
    Ok(String::from_utf8_lossy(&request.name[..end]).into_owned())
}

// linux/sockios.h: SIOCGSTAMPNS_NEW, _IOR(0x89, 0x07, long long[2]).
const SIOCGSTAMPNS: ioctl::Opcode = ioctl::opcode::read::<[i64; 2]>(0x89, 0x07);

/// When the kernel received the datagram that was read last from a socket, by the wall clock, in nanoseconds. Datagrams are stamped from
/// the first call on; an error if there was none since.
pub(crate) fn received_at(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: SIOCGSTAMPNS writes two 64-bit numbers, seconds and nanoseconds.
    let [seconds, nanos] = unsafe { ioctl::ioctl(socket, ioctl::Getter::<SIOCGSTAMPNS, [i64; 2]>::new()) }?;
    Ok(seconds as u64 * 1_000_000_000 + nanos as u64)
}

/// `struct sched_attr` of linux/sched/types.h in its first version, 48 bytes.
#[repr(C)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Has the calling thread scheduled by `policy` of sched(7), with a real-time priority or a slice in nanoseconds.
pub(super) fn schedule(policy: u32, priority: u32, slice: u64) -> io::Result<()> {
    let size = size_of::<SchedulingAttributes>() as u32;
    let attributes = SchedulingAttributes {
        size,
        policy,
        flags: 0,
        nice: 0,
        priority,
        runtime: slice,
        deadline: 0,
        period: 0,
    };
    // SAFETY: sched_setattr(2) takes a thread (0: the calling one), a structure of the size that its first field says, which it only reads,
    // and flags.
    let done = unsafe { nix::libc::syscall(nix::libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
