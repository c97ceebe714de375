use super::*;

const ALL: [Policy; 3] = [Policy::Full, Policy::CookiesApart, Policy::Stored];

fn block_of(version: Version, fields: &[(&str, &str)]) -> Block {
    let mut block = Block::default();
    block.start(version);
    for (name, value) in fields {
        block.pair(name.as_bytes(), std::iter::once(value.as_bytes())).unwrap();
    }
    block.finish().unwrap();
    block
}

/// Inflates with zlib-rs, as a peer with zlib would.
struct Independent(zlib_rs::Inflate, &'static Dictionary);

impl Independent {
    fn new(version: Version) -> Self {
        Self(zlib_rs::Inflate::new(true, 15), dictionary(version))
    }

    fn inflate(&mut self, mut block: &[u8]) -> Vec<u8> {
        let mut out = vec![0; 1 << 22];
        let (before_in, before_out) = (self.0.total_in(), self.0.total_out());
        let flush = zlib_rs::InflateFlush::SyncFlush;
        match self.0.decompress(block, &mut out, flush) {
            Err(zlib_rs::InflateError::NeedDict { .. }) => {
                block = &block[(self.0.total_in() - before_in) as usize..];
                self.0.set_dictionary(self.1.bytes).unwrap();
                self.0.decompress(block, &mut out, flush).unwrap();
            }
            result => {
                result.unwrap();
            }
        }
        out.truncate((self.0.total_out() - before_out) as usize);
        out
    }
}

#[test]
fn an_independent_zlib_reads_every_policy_window_and_version() {
    for version in [Version::V2, Version::V3] {
        for policy in ALL {
            for window_bits in [9, 11, 15] {
                let mut ours = Compressor::new(version, Compression { policy, window_bits });
                let mut theirs = Independent::new(version);
                for i in 0..200_usize {
                    let cookie =
                        format!("sid={}; theme=dark; n={}; long={}", i / 50, i % 3, "x".repeat(i * 3));
                    let fields =
                        [(":path", format!("/a/{i}")), ("cookie", cookie), ("accept", "*/*".repeat(i))];
                    let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
                    let block = block_of(version, &fields);
                    let mut out = Vec::new();
                    ours.compress(&block, &mut out);
                    assert_eq!(
                        theirs.inflate(&out),
                        block.bytes(),
                        "{version} {policy:?} {window_bits} block {i}"
                    );
                }
            }
        }
    }
}

#[test]
fn our_decompressor_reads_an_independent_zlib_at_every_level_and_flush() {
    for level in 0..=9 {
        let mut theirs = zlib_rs::Deflate::new(level, true, 15);
        theirs.set_dictionary(dictionary::V3.bytes).unwrap();
        let mut ours = Decompressor::new(Version::V3);
        for i in 0..300_usize {
            let raw: Vec<u8> = (0..i * 7).map(|n| (n * n / (i + 1) % 61) as u8 + 40).collect();
            let mut out = vec![0; 8_192];
            let before = theirs.total_out();
            // Chrome ended a cookie's piece with PARTIAL_FLUSH, and the block with SYNC_FLUSH.
            let (first, second) = raw.split_at(raw.len() / 2);
            theirs.compress(first, &mut out, zlib_rs::DeflateFlush::PartialFlush).unwrap();
            let middle = (theirs.total_out() - before) as usize;
            theirs.compress(second, &mut out[middle..], zlib_rs::DeflateFlush::SyncFlush).unwrap();
            out.truncate((theirs.total_out() - before) as usize);
            assert_eq!(ours.inflate(&out, &Limits::default()).unwrap(), raw, "level {level}, block {i}");
        }
    }
}

#[test]
fn long_blocks_and_long_connections_keep_their_bounds() {
    let mut compressor = Compressor::new(Version::V3, Compression { policy: Policy::Full, window_bits: 11 });
    let mut decompressor = Decompressor::new(Version::V3);
    for i in 0..400_u32 {
        let value: String = (0..i * 40).map(|n| char::from(b'a' + (n * (i + n / 7) % 26) as u8)).collect();
        let block = block_of(Version::V3, &[("x", &value)]);
        let mut out = Vec::new();
        compressor.compress(&block, &mut out);
        assert_eq!(decompressor.inflate(&out, &Limits::default()).unwrap(), block.bytes(), "block {i}");
    }
    assert!(decompressor.buffer.len() <= KEPT, "{}", decompressor.buffer.len());
}

#[test]
fn what_is_no_zlib_stream_of_ours_is_an_error() {
    let mut compressor = Compressor::new(Version::V3, Compression { policy: Policy::Full, window_bits: 15 });
    let mut good = Vec::new();
    compressor.compress(&block_of(Version::V3, &[("a", "b")]), &mut good);
    let inflate = |version, bytes: &[u8]| Decompressor::new(version).inflate(bytes, &Limits::default());
    assert!(inflate(Version::V3, &good).is_ok());
    assert_eq!(inflate(Version::V2, &good), Err(Misbehaviour::BadCompression), "the other dictionary");
    for at in 0..6 {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        assert_eq!(inflate(Version::V3, &bad), Err(Misbehaviour::BadCompression), "byte {at}");
    }
    // A final block ends the stream, whether its checksum (of nothing: 1) is right or not.
    for checksum in [[0, 0, 0, 0], [0, 0, 0, 1]] {
        let id = dictionary::V3.adler32.to_be_bytes();
        let ended = [&[0x78, 0xbb][..], &id, &[0x03, 0x00], &checksum].concat();
        assert_eq!(inflate(Version::V3, &ended), Err(Misbehaviour::BadCompression));
    }
}

#[test]
fn without_a_dictionary_a_zlib_stream_is_read_as_it_is() {
    let mut theirs = zlib_rs::Deflate::new(6, true, 15);
    let mut out = vec![0; 1_024];
    theirs.compress(b"hello, hello", &mut out, zlib_rs::DeflateFlush::SyncFlush).unwrap();
    out.truncate(theirs.total_out() as usize);
    assert_eq!(
        Decompressor::new(Version::V3).inflate(&out, &Limits::default()),
        Ok(Bytes::from_static(b"hello, hello"))
    );
}

/// A cookie is matched whole or not at all, wherever it stands; nothing else matches it.
#[test]
fn cookies_match_only_as_a_whole() {
    let size = |cookies: [&str; 2]| {
        let mut compressor =
            Compressor::new(Version::V3, Compression { policy: Policy::CookiesApart, window_bits: 15 });
        let mut out = Vec::new();
        compressor.compress(&block_of(Version::V3, &[("cookie", cookies[0])]), &mut out);
        out.clear();
        compressor.compress(&block_of(Version::V3, &[("cookie", cookies[1])]), &mut out);
        out.len()
    };
    let whole = size(["a=1; sid=0123456789abcdef; z=1", "b=1; sid=0123456789abcdef; y=1"]);
    let partly = size(["a=1; sid=0123456789abcdef; z=1", "b=1; sid=0123456789abcdeX; y=1"]);
    let never = size(["a=1; sid=0123456789abcdef; z=1", "b=1; qqq=qqqqqqqqqqqqqqqq; y=1"]);
    assert_eq!(partly, never);
    assert!(whole + 15 < never, "{whole} bytes, {never} without a match");
    let long = "x".repeat(1_000);
    assert!(size([&long, &long]) < 40, "longer than a single match");
}

/// The window is what the header says: a decoder may keep no more (RFC 1950 §2.2).
#[test]
fn a_small_window_is_kept() {
    for (window_bits, fits) in [(9, 400), (11, 1_900), (15, 30_000)] {
        let compression = Compression { policy: Policy::Full, window_bits };
        for (gap, repeats) in [(fits - 100, true), (2 << window_bits, false)] {
            let mut compressor = Compressor::new(Version::V3, compression);
            let noise = |n: usize| -> String {
                let mut rng = base::Rng::new(n as u64);
                (0..n).map(|_| char::from(b'!' + rng.below(64) as u8)).collect()
            };
            let secret = noise(64);
            let mut out = Vec::new();
            compressor.compress(&block_of(Version::V3, &[("a", &secret)]), &mut out);
            compressor.compress(&block_of(Version::V3, &[("b", &noise(gap - 64))]), &mut out);
            assert_eq!(out[0] >> 4, window_bits - 8);
            out.clear();
            compressor.compress(&block_of(Version::V3, &[("a", &secret)]), &mut out);
            assert_eq!(out.len() < 40, repeats, "{window_bits} bits, {gap} bytes: {} bytes", out.len());
        }
    }
}
