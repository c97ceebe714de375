//! The seeded generator.
//!
//! One seed a run; every other seed derives from it by *name*, so that adding a draw in one place moves no
//! other. The generator is xoshiro256++ 1.0 (Blackman and Vigna, "Scrambled Linear Pseudorandom Number
//! Generators", 2021), seeded through splitmix64 as its authors advise. Distributions are our own and few, because a
//! library that improves its sampling would change every recorded result.

/// A deterministic generator of pseudo-random numbers. Not for cryptography.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
    seed: u64,
}

impl Rng {
    /// A generator whose whole sequence follows from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        let state = std::array::from_fn(|_| splitmix64(&mut mix));
        Self { state, seed }
    }

    /// The substream called `name`: it depends on this generator's seed and the name, and not on what was drawn.
    pub fn substream(&self, name: &str) -> Rng {
        Rng::new(derive(self.seed, name.as_bytes()))
    }

    /// The seed this generator was made from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Uniform in [0, 1), in steps of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..`bound`; 0 for a bound of 0. The bias of the multiply-shift is below `bound` / 2⁶⁴.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// True with probability `p`, clamped to [0, 1].
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// A standard normal deviate (Marsaglia's polar method; the second deviate is discarded, so that one call
    /// never depends on whether another was made before it).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let r = x * x + y * y;
            if r > 0.0 && r < 1.0 {
                return x * (-2.0 * libm::log(r) / r).sqrt(); // not the platform's `ln`, whose last bit varies
            }
        }
    }

    /// An index into `weights`, drawn in proportion to them. Zero if all weights are zero or there are none.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = self.unit() * weights.iter().sum::<f64>();
        for (i, w) in weights.iter().enumerate() {
            if left < *w {
                return i;
            }
            left -= w;
        }
        weights.len().saturating_sub(1)
    }
}

/// The seed for `name` below `seed`: FNV-1a over the name, then splitmix64 with the parent seed, so that seeds of
/// near-by names are unrelated.
pub fn derive(seed: u64, name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in name {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let mut mix = seed ^ hash.rotate_left(32);
    splitmix64(&mut mix) ^ hash
}

/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first output of splitmix64 from zero is published with the algorithm; xoshiro256++ from the state
    /// 1, 2, 3, 4 gives 41943041 and 58720359 first.
    #[test]
    fn the_generators_match_their_published_vectors() {
        assert_eq!(splitmix64(&mut 0), 0xe220_a839_7b1d_cdaf);
        let mut rng = Rng { state: [1, 2, 3, 4], seed: 0 };
        assert_eq!((rng.next_u64(), rng.next_u64()), (41_943_041, 58_720_359));
    }

    #[test]
    fn a_substream_does_not_depend_on_what_was_drawn() {
        let mut a = Rng::new(7);
        let before = a.substream("loss").next_u64();
        a.next_u64();
        assert_eq!(a.substream("loss").next_u64(), before);
        assert_ne!(a.substream("loss.up").next_u64(), before);
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut rng = Rng::new(1);
        let n = 100_000;
        let mean = (0..n).map(|_| rng.unit()).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = rng.normal();
            sum += x;
            squares += x * x;
        }
        assert!((sum / n as f64).abs() < 0.01 && (squares / n as f64 - 1.0).abs() < 0.02);
        let hits = (0..n).filter(|_| rng.weighted(&[1.0, 3.0]) == 1).count();
        assert!((hits as f64 / n as f64 - 0.75).abs() < 0.01);
        assert!((0..1000).all(|_| rng.below(7) < 7));
    }
}
