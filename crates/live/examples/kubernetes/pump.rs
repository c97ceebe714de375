//! Between a stream and a pipe or socket, as fast as both can.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use live::streams::Connection;
use mio::unix::pipe;
use spdy::StreamId;

/// Bytes on their way from a stream to something that is written without blocking. What it holds is not consumed yet, and so
/// bounded by the connection.
#[derive(Default)]
pub struct Outlet {
    queue: VecDeque<Bytes>,
    ended: bool,
}

impl Outlet {
    /// Takes what came on the stream; with `fin` it is the last.
    pub fn push(&mut self, bytes: Bytes, fin: bool) {
        if !bytes.is_empty() {
            self.queue.push_back(bytes);
        }
        self.ended |= fin;
    }

    /// Whether all has been written that will ever come.
    pub fn is_over(&self) -> bool {
        self.ended && self.queue.is_empty()
    }

    /// Writes what `to` takes. Gives whether that was anything.
    pub fn drain(
        &mut self,
        id: StreamId,
        to: &mut (impl Write + ?Sized),
        connection: &mut Connection,
    ) -> io::Result<bool> {
        let mut moved = false;
        while let Some(bytes) = self.queue.front_mut() {
            match to.write(bytes) {
                Ok(n) => {
                    connection.consume(id, n);
                    moved = true;
                    if n == bytes.len() {
                        self.queue.pop_front();
                    } else {
                        let _ = bytes.split_to(n);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(moved)
    }

    /// Throws away what is left: nobody wants it.
    pub fn abandon(&mut self, id: StreamId, connection: &mut Connection) {
        for bytes in self.queue.drain(..) {
            connection.consume(id, bytes.len());
        }
        self.ended = true;
    }

    /// What is left, once there is no connection any more.
    pub fn into_rest(self) -> impl Iterator<Item = Bytes> {
        self.queue.into_iter()
    }
}

/// What came of [`pour`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Poured {
    Nothing,
    Some,
    /// All there was, and there will be no more.
    End,
}

/// Sends what `from` has and the stream has room for.
pub fn pour(
    from: &mut (impl Read + ?Sized),
    id: StreamId,
    connection: &mut Connection,
) -> io::Result<Poured> {
    let mut buffer = [0; 16 * 1024];
    let mut poured = Poured::Nothing;
    loop {
        let room = connection.room(id).min(buffer.len());
        if room == 0 {
            return Ok(poured);
        }
        match from.read(&mut buffer[..room]) {
            Ok(0) => return Ok(Poured::End),
            Ok(n) => {
                connection.send(id, Bytes::copy_from_slice(&buffer[..n]), false).map_err(io::Error::other)?;
                poured = Poured::Some;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(poured),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// A pipe to read, into which a thread copies what it reads from `from`: standard input cannot be read without blocking
/// (it may be a file, and what it is set to, others that share it get, too).
pub fn relay_from(mut from: impl Read + Send + 'static) -> io::Result<pipe::Receiver> {
    let (sender, receiver) = pipe::new()?;
    sender.set_nonblocking(false)?;
    // It ends with its input, with the reader, or with the program; there is nobody to wait for it.
    thread::Builder::new().spawn(move || copy(&mut from, &sender))?;
    Ok(receiver)
}

/// A pipe to write, from which a thread copies to `to`. Close the pipe, then join the thread, so that all is written.
pub fn relay_to(
    mut to: impl Write + Send + 'static,
) -> io::Result<(pipe::Sender, JoinHandle<io::Result<()>>)> {
    let (sender, receiver) = pipe::new()?;
    receiver.set_nonblocking(false)?;
    let thread = thread::Builder::new().spawn(move || copy(&receiver, &mut to))?;
    Ok((sender, thread))
}

/// As [`io::copy`], but nothing waits in a buffer: there may be a prompt without a line's end.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => to.write_all(&buffer[..n]).and_then(|()| to.flush())?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
