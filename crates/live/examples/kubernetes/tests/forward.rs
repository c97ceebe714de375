//! Port-forward.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use base::Fields;
use live::Reactor;
use live::streams::{Connection, Event, Handler};
use spdy::{Opening, Status};

use super::{connect, own, serving, share, until};
use crate::forward::{Client, PROTOCOL, Server};
use crate::signals::Signals;

/// A server that sends back what comes, until it ends, on so many connections.
fn echo(connections: usize) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move || {
        let one = |tcp: TcpStream| thread::spawn(move || std::io::copy(&mut &tcp, &mut &tcp).map(drop));
        let all: Vec<_> = listener.incoming().take(connections).map(|tcp| one(tcp.unwrap())).collect();
        all.into_iter().for_each(|one| one.join().unwrap().unwrap());
    };
    (address, thread::spawn(serve))
}

/// Says all of `body`, ends, and gives what comes back.
fn call(address: SocketAddr, body: Vec<u8>) -> Vec<u8> {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let mut near = tcp.try_clone().unwrap();
    let said = thread::spawn(move || near.write_all(&body).and_then(|()| near.shutdown(Shutdown::Write)));
    let mut back = Vec::new();
    tcp.read_to_end(&mut back).unwrap();
    // A server that has gone may not have taken it all.
    let _ = said.join().unwrap();
    back
}

fn near_end() -> (SocketAddr, mio::net::TcpListener) {
    let listener = mio::net::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    (listener.local_addr().unwrap(), listener)
}

/// Port 9 is nobody's here: the server has a target for it.
const PORT: u16 = 9;

#[test]
fn many_connections_keep_their_bytes_apart_and_an_interrupt_ends_in_order() {
    const CONNECTIONS: usize = 30;
    let (target, served) = echo(CONNECTIONS);
    let (mut host, address) = serving(move || Server::new(Some(target)));
    let (near, listener) = near_end();
    let signals = Signals::default();
    let client = Client::new(vec![(listener, PORT)], signals.clone());
    let client = connect(&mut host, address, "", &[PROTOCOL], client);
    let calls: Vec<_> = (0..CONNECTIONS)
        .map(|i| {
            let body: Vec<u8> = (0..100_000 + 1_000 * i).map(|at| (at * (i + 1) % 251) as u8).collect();
            thread::spawn(move || assert!(call(near, body.clone()) == body, "connection {i}"))
        })
        .collect();
    until(&mut host, |_| calls.iter().all(JoinHandle::is_finished));
    calls.into_iter().for_each(|call| call.join().unwrap());
    signals.raise_stop();
    until(&mut host, |host| host.is_empty());
    assert_eq!(own(client).end, Some(Ok(())));
    served.join().unwrap();
}

#[test]
fn a_port_where_nobody_listens_costs_its_connection_and_no_other() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (target, served) = echo(1);
    let (mut host, address) = serving(|| Server::new(None));
    let ((dead_end, dead), (near, listener)) = (near_end(), near_end());
    let signals = Signals::default();
    let client = Client::new(vec![(dead, nobody.port()), (listener, target.port())], signals.clone());
    let client = connect(&mut host, address, "", &[PROTOCOL], client);
    let calls = thread::spawn(move || (call(dead_end, b"hello?".to_vec()), call(near, b"hello".to_vec())));
    until(&mut host, |_| calls.is_finished());
    assert_eq!(calls.join().unwrap(), (Vec::new(), b"hello".to_vec()));
    signals.raise_stop();
    until(&mut host, |host| host.is_empty());
    assert_eq!(own(client).end, Some(Ok(())));
    served.join().unwrap();
}

#[test]
fn another_protocol_is_refused_by_either_end() {
    let (mut host, address) = serving(|| Server::new(None));
    let client = Client::new(Vec::new(), Signals::default());
    let client = connect(&mut host, address, "", &["v4.channel.k8s.io"], client);
    until(&mut host, |host| host.is_empty());
    let Some(Err(why)) = own(client).end else { panic!("it was granted") };
    assert!(why.contains("status 403") && why.contains("server takes [portforward.k8s.io]"), "{why}");
}

/// Opens error streams and takes each back at once, so that no pair is ever whole.
struct Fickle {
    rounds: usize,
}

impl Handler for Fickle {
    fn event(&mut self, event: Event, connection: &mut Connection, _: &Reactor) {
        if let Event::Accepted { id, .. } = &event {
            connection.reset(*id, Status::CANCEL);
        }
        if !matches!(event, Event::Granted { .. } | Event::Accepted { .. }) {
            return;
        }
        if self.rounds == 0 {
            return connection.close();
        }
        self.rounds -= 1;
        let mut fields = Fields::new();
        fields.push("streamtype", "error");
        fields.push("port", "80");
        // Each another, and long.
        fields.push("requestid", format!("{:08000}", self.rounds));
        connection.open(&fields, Opening::default()).unwrap();
    }
}

#[test]
fn streams_that_are_taken_back_leave_nothing_behind() {
    let (server, handler) = share(Server::new(None));
    let mut handler = Some(handler);
    let (mut host, address) = serving(move || handler.take().expect("one client"));
    connect(&mut host, address, "", &[PROTOCOL], Fickle { rounds: 500 });
    let mut most = 0;
    until(&mut host, |host| {
        most = most.max(server.borrow().pairs());
        host.is_empty()
    });
    assert!(most <= 2, "{most} pairs were kept");
}
