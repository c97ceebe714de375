//! What programs inside see of the file system that differs from outside: their own `/proc`, names of both ends, a name server.

use std::fs;
use std::io;
use std::path::Path;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};

/// A directory that every system has, to put a file system on for a moment.
const SPOT: &str = "/tmp";

/// Keeps what is mounted from here on to this mount namespace.
pub(super) fn make_private() -> io::Result<()> {
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

/// Mounts the process table of this process' own namespace. Containers that hide parts of theirs forbid it; then programs see the
/// one from outside, in which they have other numbers.
pub(super) fn proc() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", "/proc", "proc", flags, None)?)
}

/// Shows programs `text` where they look for `path`. A path that does not exist stays so.
pub(super) fn replace(files: &[(&str, String)]) -> io::Result<()> {
    let files: Vec<_> = files.iter().filter(|(path, _)| Path::new(path).exists()).collect();
    if files.is_empty() {
        return Ok(());
    }
    // A file must be mounted from somewhere. So it is written to a file system in memory that has a place for as long as that takes;
    // what was mounted from it stays.
    mount("tmpfs", SPOT, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None)?;
    let result = files.iter().enumerate().try_for_each(|(i, (path, text))| {
        let file = format!("{SPOT}/{i}");
        fs::write(&file, text)?;
        Ok(mount_bind(&file, *path)?)
    });
    unmount(SPOT, UnmountFlags::DETACH)?;
    result
}
