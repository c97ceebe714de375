//! What crosses the wire: a segment without its bytes.

use std::fmt;
use std::ops::Range;

/// One TCP segment. Sequence numbers are 64 bits wide and start at 0: the SYN is number 0, byte `i` of the stream is
/// number `1 + i`, and the FIN takes one more at the end. So a trace reads like relative sequence numbers, and
/// nothing ever wraps.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN or FIN; of the next byte to come if the segment is empty.
    pub seq: u64,
    /// The next sequence number expected from the peer. It means something only when `flags.ack` is set.
    pub ack: u64,
    /// Bytes the sender of this segment will take from `ack` on, already scaled.
    pub window: u64,
    /// What has arrived beyond `ack`, and duplicates (RFC 2018, RFC 2883).
    pub sack: SackBlocks,
    /// Bytes of payload.
    pub len: u32,
    /// The timestamps option (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// The options that only a SYN carries.
    pub syn_options: Option<SynOptions>,
    /// Control bits.
    pub flags: Flags,
}

/// The control bits in use here.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// Opens the connection.
    pub syn: bool,
    /// The acknowledgement number is valid.
    pub ack: bool,
    /// The sender has no more bytes.
    pub fin: bool,
    /// The connection is gone.
    pub rst: bool,
    /// Nothing was waiting behind this segment when it was sent. For the reader of a trace; nothing depends on it.
    pub psh: bool,
}

/// Timestamps in microseconds. They wrap after 71 minutes and are compared modulo 2³². Linux counts milliseconds; the
/// finer tick costs nothing on the wire and lets [`crate::Endpoint`] measure short paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// When this segment was sent.
    pub value: u32,
    /// The `value` of the segment that this one answers.
    pub echo: u32,
}

/// What is agreed upon in the handshake: an option holds if both SYNs carry it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SynOptions {
    /// Largest payload the sender takes, without options (RFC 9293 §3.7.1).
    pub mss: u16,
    /// Selective acknowledgements are understood (RFC 2018 §2).
    pub sack_permitted: bool,
    /// Windows above 65,535 bytes are understood (RFC 7323 §2).
    pub window_scaling: bool,
}

impl Segment {
    /// Bytes on the wire: 20 of IPv4, 20 of TCP, the options as Linux lays them out, and the payload.
    pub fn wire_len(&self) -> u32 {
        40 + self.option_len() + self.len
    }

    /// Bytes of options, a multiple of 4. RFC 7323 appendix A and RFC 2018 §3 give the padding.
    fn option_len(&self) -> u32 {
        let timestamps = if self.timestamps.is_some() { TIMESTAMPS_LEN } else { 0 };
        match &self.syn_options {
            Some(syn) => {
                let scaling = if syn.window_scaling { 4 } else { 0 };
                // SACK-permitted fits in the padding of the timestamps.
                let sack = if syn.sack_permitted && timestamps == 0 { 4 } else { 0 };
                4 + timestamps + scaling + sack
            }
            None => timestamps + self.sack.option_len(),
        }
    }

    /// The sequence number after this segment: SYN and FIN count one each (RFC 9293 §3.4).
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.flags.syn) + u64::from(self.flags.fin)
    }

    /// The RST with which a host answers a segment that no connection of its own takes (RFC 9293 §3.5.2). `None` if
    /// the segment is itself a RST.
    pub fn refusal(&self) -> Option<Segment> {
        // It stands where the other end expects the next byte; to an end that has said nothing of it, it says what it answers.
        let (seq, ack) = if self.flags.ack { (self.ack, None) } else { (0, Some(self.end())) };
        (!self.flags.rst).then(|| Segment {
            seq,
            ack: ack.unwrap_or(0),
            flags: Flags { rst: true, ack: ack.is_some(), ..Flags::default() },
            ..Segment::default()
        })
    }
}

/// 10 bytes, padded to 12.
pub(crate) const TIMESTAMPS_LEN: u32 = 12;

/// One line, in the manner of tcpdump.
impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} seq {}", self.flags, self.seq)?;
        if self.len > 0 {
            write!(f, "..{} ({})", self.seq + u64::from(self.len), self.len)?;
        }
        if self.flags.ack {
            write!(f, " ack {}", self.ack)?;
        }
        write!(f, " win {}", self.window)?;
        if !self.sack.is_empty() {
            write!(f, " sack {:?}", self.sack)?;
        }
        Ok(())
    }
}

/// `S`, `F`, `R`, `P` and `.` for ACK, as tcpdump writes them.
impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = [(self.syn, "S"), (self.fin, "F"), (self.rst, "R"), (self.psh, "P"), (self.ack, ".")];
        bits.iter().filter(|(set, _)| *set).try_for_each(|(_, letter)| f.write_str(letter))
    }
}

/// Up to three ranges, inline. With timestamps there is no room for a fourth (RFC 2018 §3).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    starts: [u64; Self::MAX],
    lens: [u32; Self::MAX],
    count: u8,
}

impl SackBlocks {
    /// How many fit.
    pub const MAX: usize = 3;

    /// Appends a range; says whether there was room. No window is as long as 4 GB (RFC 7323 §2.3), so a length fits
    /// in 32 bits; a longer range is cut.
    pub fn push(&mut self, range: Range<u64>) -> bool {
        let at = usize::from(self.count);
        if at == Self::MAX {
            return false;
        }
        self.starts[at] = range.start;
        self.lens[at] = u32::try_from(range.end.saturating_sub(range.start)).unwrap_or(u32::MAX);
        self.count += 1;
        true
    }

    /// The ranges in order: the one that the newest segment fell into comes first (RFC 2018 §4).
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let count = usize::from(self.count);
        self.starts[..count]
            .iter()
            .zip(&self.lens[..count])
            .map(|(start, len)| *start..*start + u64::from(*len))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Bytes of the option, with its padding.
    pub(crate) fn option_len(&self) -> u32 {
        if self.count == 0 { 0 } else { 4 + 8 * u32::from(self.count) }
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_small_enough_to_copy() {
        assert!(size_of::<Segment>() <= 96, "{}", size_of::<Segment>());
    }

    /// The lengths that a capture of a Linux host shows: 60 and 60 for SYN and SYN/ACK, 52 for a pure ACK, 1500 for
    /// a full segment; 80 for an ACK with three SACK blocks.
    #[test]
    fn wire_lengths_are_those_of_a_capture() {
        let timestamps = Some(Timestamps::default());
        let syn_options = Some(SynOptions { mss: 1460, sack_permitted: true, window_scaling: true });
        let syn = Segment { syn_options, timestamps, ..Segment::default() };
        assert_eq!(syn.wire_len(), 60);
        assert_eq!(Segment { timestamps: None, ..syn }.wire_len(), 40 + 12);
        let mut ack = Segment { timestamps, ..Segment::default() };
        assert_eq!(ack.wire_len(), 52);
        assert_eq!(Segment { len: 1448, ..ack }.wire_len(), 1500);
        for i in 0..3 {
            assert!(ack.sack.push(i * 10..i * 10 + 5));
        }
        assert!(!ack.sack.push(50..60), "no fourth block fits beside timestamps");
        assert_eq!(ack.wire_len(), 80);
    }

    #[test]
    fn a_refusal_stands_where_an_acknowledgement_pointed_and_acknowledges_nothing_then() {
        let flags = Flags { ack: true, ..Flags::default() };
        let stray = Segment { seq: 7, len: 10, ack: 99, flags, ..Segment::default() };
        let rst = stray.refusal().unwrap();
        assert_eq!((rst.seq, rst.ack, rst.flags.rst, rst.flags.ack), (99, 0, true, false));
    }

    #[test]
    fn a_refusal_answers_a_syn_and_never_a_reset() {
        let flags = Flags { syn: true, ..Flags::default() };
        let rst = Segment { flags, ..Segment::default() }.refusal().unwrap();
        assert!(rst.flags.rst && rst.flags.ack && rst.ack == 1);
        assert_eq!(rst.refusal(), None);
    }

    #[test]
    fn a_trace_line_reads_like_tcpdump() {
        let flags = Flags { ack: true, psh: true, ..Flags::default() };
        let mut s = Segment { seq: 1, ack: 7, window: 100, len: 9, flags, ..Segment::default() };
        s.sack.push(20..30);
        assert_eq!(format!("{s:?}"), "P. seq 1..10 (9) ack 7 win 100 sack [20..30]");
    }
}
