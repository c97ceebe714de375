//! Asks a recorded page's first host for its document, in real bytes, and prints the response's head.

use base::{Chunk, Instant};
use origin::{Protocol, Server, Think};

fn main() {
    let pages = page::corpus::generate("2012", 1, 1).expect("a built-in corpus");
    let mut server = Server::new(&pages[0], 0, Think::Recorded);
    let connection = server.accept(&Protocol::HTTP1);
    let path = String::from_utf8_lossy(&pages[0].resources[0].path);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", pages[0].hosts[0].name);
    server
        .handle_input(Instant::ZERO, connection, Chunk::from(request.into_bytes()))
        .expect("a well-formed request");
    let ready = server.poll_timeout(connection).unwrap_or(Instant::ZERO);
    println!("the server thinks until {ready:?}");
    server.handle_timeout(ready, connection);
    while let Some(chunk) = server.poll_transmit(ready, connection, u64::MAX) {
        match chunk {
            Chunk::Bytes(head) => print!("{}", String::from_utf8_lossy(&head)),
            Chunk::Body(body) => println!("({} bytes of body)", body.len),
        }
    }
}
