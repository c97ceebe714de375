//! What stands between a browser and a world: the first things that a browser asks for, and what it says when a world answers.
//!
//! `cargo run -p velodrome-load --example door`

use base::Instant;
use client::Transport;
use load::Setup;

fn main() {
    let pages = page::corpus::generate("2012", 1, 1).expect("a built-in corpus");
    let setup = Setup::new(Transport::Spdy(spdy::Version::V3_1));
    let mut browser = setup.browser(&pages[0], |_| None);
    let now = Instant::ZERO;
    browser.start(now);
    while let Some(action) = browser.poll_action() {
        println!("{action:?}");
        match action {
            client::Action::Resolve { host } => browser.handle_resolved(now, host, true),
            client::Action::Connect { connection, .. } => browser.handle_connected(now, connection),
            client::Action::Close { .. } => {}
        }
    }
    while let Some(connection) = browser.poll_dirty() {
        while let Some(chunk) = browser.poll_transmit(now, connection, 1_448) {
            println!("connection {connection} sends {} bytes", chunk.len());
        }
    }
}
