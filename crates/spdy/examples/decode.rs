//! Prints the frames of one direction of a connection, from a file or from standard input.
//!
//! `cargo run -p velodrome-spdy --example decode -- spdy/3.1 [--hex] [FILE]`
//!
//! The input must begin where the connection's frames begin, as header blocks build on one another: behind a TLS handshake
//! or an `Upgrade`. With `--hex` it is hexadecimal digits, in any lines. The recorded vectors of the tests can be read so:
//! `… -- spdy/3 --hex crates/spdy/tests/vectors/spdystream-v0.5.1-version-3.hex`.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Read, Write};

use bytes::Bytes;
use spdy::trace::Decoder;
use spdy::{Limits, Version};

const USAGE: &str = "usage: decode spdy/2|spdy/3|spdy/3.1 [--hex] [FILE]";

fn main() -> Result<(), Box<dyn Error>> {
    let (mut version, mut hex, mut file) = (None, false, None);
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--hex" => hex = true,
            _ if version.is_none() => {
                version = Some(arg.parse::<Version>().map_err(|e| format!("{arg}: {e}"))?)
            }
            _ if file.is_none() => file = Some(arg),
            _ => return Err(USAGE.into()),
        }
    }
    let version = version.ok_or(USAGE)?;
    let mut input: Box<dyn Read> = match &file {
        Some(path) => Box::new(File::open(path).map_err(|e| format!("{path}: {e}"))?),
        None => Box::new(std::io::stdin()),
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut decoder = Decoder::new(version, Limits::default());
    let mut buffer = vec![0; 1 << 16];
    let mut digits = Digits::default();
    loop {
        let read = input.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        let bytes =
            if hex { digits.bytes(&buffer[..read])? } else { Bytes::copy_from_slice(&buffer[..read]) };
        decoder.handle_input(bytes.into());
        while let Some(frame) = decoder.poll_frame()? {
            writeln!(out, "{:>8}  {frame:#}", frame.offset)?;
        }
    }
    out.flush()?;
    if decoder.is_amid_frame() {
        return Err("the input ends in the middle of a frame".into());
    }
    Ok(())
}

/// Hexadecimal digits on their way into bytes; a byte may be cut between two reads.
#[derive(Default)]
struct Digits {
    high: Option<u8>,
}

impl Digits {
    fn bytes(&mut self, text: &[u8]) -> Result<Bytes, String> {
        let mut out = Vec::with_capacity(text.len() / 2 + 1);
        for c in text.iter().filter(|c| !c.is_ascii_whitespace()) {
            let digit = char::from(*c)
                .to_digit(16)
                .ok_or_else(|| format!("{:?} is no hexadecimal digit", char::from(*c)))?;
            match self.high.take() {
                Some(high) => out.push(high << 4 | digit as u8),
                None => self.high = Some(digit as u8),
            }
        }
        Ok(out.into())
    }
}
