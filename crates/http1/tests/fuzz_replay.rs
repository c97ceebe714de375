//! The fuzz targets on seeded inputs, so that what they assert is checked wherever tests run.

mod fuzz;

use base::Rng;

/// Messages to mutate: each has what a parser can get wrong.
const SEEDS: &[&[u8]] = &[
    b"\x00HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"\xc0HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\nHTTP/1.1 304 x\r\n\r\nHTTP/1.0 200 OK\r\n\r\nrest",
    b"\x04HTTP/1.1 101 x\r\nUpgrade: spdy/3.1\r\n\r\n\x80\x03\x00\x01",
    b"\x00HTTP/1.1 200 OK\r\nA: b\r\n c\r\nB : c\nContent-Length: 1, 1\r\n\r\nx",
    b"GET / HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\nPOST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
    b"POST http://h:80/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0;x\r\nT: u\r\n\r\nHEAD * HTTP/1.0\r\n\r\n",
    b"CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n\x00\x01\x02OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
];

/// Pieces that change the meaning of a message.
const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b"0\r\n\r\n",
    b"chunked",
    b"Content-Length: 1\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"HTTP/1.0",
    b"ffffffffffffffff\r\n",
    b"\x00",
];

fn mutate(seed: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut data = seed.to_vec();
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(data.len() as u64 + 1) as usize;
        match rng.below(5) {
            0 if at < data.len() => data[at] ^= 1 << rng.below(8),
            1 => data.truncate(at),
            2 => drop(data.splice(at..at, WORDS[rng.below(WORDS.len() as u64) as usize].iter().copied())),
            3 if at < data.len() => drop(data.remove(at)),
            _ => {
                let other = SEEDS[rng.below(SEEDS.len() as u64) as usize];
                let from = rng.below(other.len() as u64) as usize;
                data.truncate(at);
                data.extend_from_slice(&other[from..]);
            }
        }
    }
    data
}

#[test]
fn responses_read_the_same_however_they_are_cut() {
    let mut rng = Rng::new(1);
    for i in 0..2_000 {
        fuzz::response(&mutate(SEEDS[i % SEEDS.len()], &mut rng));
    }
}

#[test]
fn requests_read_the_same_however_they_are_cut_and_as_httparse_reads_them() {
    let mut rng = Rng::new(2);
    for i in 0..2_000 {
        fuzz::request(&mutate(SEEDS[i % SEEDS.len()], &mut rng));
    }
}

#[test]
fn noise_is_refused_without_a_panic() {
    let mut rng = Rng::new(3);
    for _ in 0..300 {
        let data: Vec<u8> = (0..rng.below(300)).map(|_| rng.next_u64() as u8).collect();
        fuzz::response(&data);
        fuzz::request(&data);
        fuzz::pair_script(&data);
    }
}
