//! A head in real bytes and a body of ten megabytes that nobody ever materialises, cut into packets.

use base::{Bitrate, BodyRange, Chunk, ChunkQueue};

fn main() {
    let rate = Bitrate::from_kbps(2_000).expect("not zero");
    let mut stream = ChunkQueue::new();
    stream.push(Chunk::from(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n".to_vec()));
    stream.push(Chunk::Body(BodyRange { source: 0, start: 0, len: 10_000_000 }));
    println!("{} bytes take {:?} at 2 Mbit/s", stream.len(), rate.time_to_send(stream.len()));
    let mut packets = 0;
    while stream.pop(1_448).is_some() {
        packets += 1;
    }
    println!("and are cut into {packets} pieces");
}
