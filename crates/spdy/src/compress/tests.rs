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
