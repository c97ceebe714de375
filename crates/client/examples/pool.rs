//! Eight requests to one host over HTTP/1.1 and over SPDY: what does the client want done?

use base::{Fields, Instant, RequestHead};
use client::{Client, Config, Host, Transport, priority};

fn main() {
    for transport in [Transport::Http1, Transport::Spdy(spdy::Version::V3_1)] {
        let host = Host { name: "a.example".into(), tls: false };
        let mut client = Client::new(Config::new(transport), vec![host]);
        for id in 0..8 {
            let head = RequestHead {
                method: "GET".into(),
                scheme: "http".into(),
                authority: "a.example".into(),
                path: format!("/{id}.png").into(),
                fields: Fields::new(),
            };
            client.fetch(Instant::ZERO, id, 0, head, 0, priority::IMAGE);
        }
        client.handle_resolved(Instant::ZERO, 0, true);
        println!("{transport}:");
        while let Some(action) = client.poll_action() {
            println!("  {action:?}");
        }
    }
}
