//! Loads side by side.

use super::*;

fn ask(client: &mut Client, id: RequestId, host: u32, load: LoadId, priority: Priority) {
    client.ask(at(0), id, Ask { load, ..Ask::new(host, head(), priority) });
}

#[test]
fn a_loads_class_weighs_before_a_requests_priority() {
    let mut client = client(Transport::Http1, 1);
    client.set_load(at(0), 1, LoadClass::Background);
    ask(&mut client, 0, 0, 1, priority::SCRIPT);
    ask(&mut client, 1, 0, 2, priority::IMAGE);
    client.handle_resolved(at(1), 0, true);
    connects(&mut client);
    client.handle_connected(at(2), 0);
    assert_eq!(client.request(1).unwrap().connection, Some(0));
    assert_eq!(client.request(0).unwrap().connection, None);
}

#[test]
fn at_the_limit_on_all_connections_hosts_of_the_load_in_front_go_first() {
    let config = Config { connections_max: 1, ..Config::new(Transport::Http1) };
    let hosts = (0..3).map(|i| Host { name: format!("10.0.0.{i}"), tls: false });
    let mut client = Client::new(config, hosts.collect());
    client.set_load(at(0), 1, LoadClass::Background);
    ask(&mut client, 0, 0, 0, priority::DOCUMENT);
    ask(&mut client, 1, 1, 1, priority::DOCUMENT);
    ask(&mut client, 2, 2, 0, priority::IMAGE);
    client.handle_connected(at(2), 0);
    actions(&mut client);
    answer(&mut client, at(3), 0, "");
    let next = Action::Connect { connection: 1, host: 2, resume: false };
    assert_eq!(actions(&mut client), [Action::Close { connection: 0 }, next]);
}

#[test]
fn a_load_that_comes_to_the_front_overtakes() {
    let mut client = client(Transport::Http1, 1);
    client.set_load(at(0), 1, LoadClass::Background);
    ask(&mut client, 0, 0, 0, priority::IMAGE);
    ask(&mut client, 1, 0, 1, priority::SCRIPT);
    client.set_load(at(0), 1, LoadClass::Foreground);
    client.handle_resolved(at(1), 0, true);
    connects(&mut client);
    client.handle_connected(at(2), 1);
    assert_eq!(client.request(1).unwrap().connection, Some(1));
}

#[test]
fn in_a_session_the_background_has_the_last_priorities() {
    let (mut client, mut server) = session(1, spdy::Config::chrome_2013(spdy::Version::V3_1));
    client.set_load(at(0), 1, LoadClass::Background);
    ask(&mut client, 1, 0, 1, priority::DOCUMENT);
    ask(&mut client, 2, 0, 0, priority::PREFETCH);
    carry(&mut client, 0, &mut server);
    let priorities = std::iter::from_fn(|| server.poll_event()).filter_map(|e| match e {
        spdy::Event::Request { priority, .. } => Some(priority.level()),
        _ => None,
    });
    assert_eq!(priorities.collect::<Vec<_>>(), [3, 5, 4]);
}
