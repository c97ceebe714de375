//! A client that pipelines, at servers that do not like it.

use base::{Fields, RequestHead, ResponseHead};

use super::*;
use crate::Protocol;

/// Answers with the path, 10 ms after it was asked.
struct Slow;

impl Site for Slow {
    type Upload = ();

    fn begin(&mut self, _: &RequestHead) {}

    fn upload(&mut self, _: &mut (), _: &Chunk) {}

    fn answer(&mut self, request: &RequestHead, (): ()) -> crate::Answer {
        let head = ResponseHead { status: 200, fields: Fields::new() };
        let body = Chunk::Bytes(request.path.clone());
        crate::Answer { think: Duration::from_millis(10), head, body, ..crate::Answer::bare(200) }
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A connection accepted at 0 ms.
fn connection(behaviour: Behaviour) -> Connection<Slow> {
    Connection::new(&Protocol::HTTP1, "http".into()).with_behaviour(at(0), behaviour)
}

fn ask(connection: &mut Connection<Slow>, now: Instant, paths: &[&str]) {
    let text: String = paths.iter().map(|p| format!("GET {p} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    connection.handle_input(now, text.into_bytes().into(), &mut Slow).expect("sound requests");
}

/// What is sent at `now`: the paths that were answered, in order, and whatever else is not HTTP.
fn sent(connection: &mut Connection<Slow>, now: Instant) -> String {
    connection.handle_timeout(now, &mut Slow);
    let mut out = Vec::new();
    while let Some(chunk) = connection.poll_transmit(now, u64::MAX) {
        let Chunk::Bytes(bytes) = chunk else { panic!("paths are bytes") };
        out.extend_from_slice(&bytes);
    }
    let text = String::from_utf8_lossy(&out).replace("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "");
    text.trim_end().to_owned()
}

#[test]
fn who_is_well_behaved_answers_in_order_and_stays() {
    let mut connection = connection(Behaviour::default());
    ask(&mut connection, at(0), &["/a", "/b"]);
    assert_eq!(sent(&mut connection, at(10)), "/a/b");
    assert!(!connection.wants_close() && connection.poll_timeout().is_none());
}

#[test]
fn who_stalls_takes_longer_for_what_comes_behind() {
    let pipelines = Pipelines::Stalling(Duration::from_millis(500));
    let mut connection = connection(Behaviour { pipelines, ..Behaviour::default() });
    ask(&mut connection, at(0), &["/a", "/b"]);
    assert_eq!(sent(&mut connection, at(10)), "/a");
    assert_eq!(connection.poll_timeout(), Some(at(510)));
    assert_eq!(sent(&mut connection, at(510)), "/b");
    ask(&mut connection, at(600), &["/c"]);
    assert_eq!(sent(&mut connection, at(610)), "/c", "alone it is as quick as ever");
}

#[test]
fn who_reorders_answers_the_second_first() {
    let mut connection = connection(Behaviour { pipelines: Pipelines::Reordering, ..Behaviour::default() });
    ask(&mut connection, at(0), &["/a", "/b"]);
    assert_eq!(sent(&mut connection, at(10)), "/b/a");
}

#[test]
fn who_corrupts_sends_nonsense_behind_the_first_answer_and_closes() {
    let mut connection = connection(Behaviour { pipelines: Pipelines::Corrupting, ..Behaviour::default() });
    ask(&mut connection, at(0), &["/a", "/b"]);
    assert_eq!(sent(&mut connection, at(10)), "/a\0corrupted");
    assert!(connection.wants_close());
}

#[test]
fn who_refuses_answers_the_first_and_closes() {
    let mut connection = connection(Behaviour { pipelines: Pipelines::Refusing, ..Behaviour::default() });
    ask(&mut connection, at(0), &["/a", "/b"]);
    assert_eq!(sent(&mut connection, at(10)), "/a");
    assert!(connection.wants_close() && !connection.wants_input());
}

#[test]
fn who_ignores_answers_the_first_and_never_speaks_again() {
    let mut connection = connection(Behaviour { pipelines: Pipelines::Ignoring, ..Behaviour::default() });
    ask(&mut connection, at(0), &["/a", "/b", "/c"]);
    assert_eq!(sent(&mut connection, at(10)), "/a");
    ask(&mut connection, at(20), &["/d"]);
    assert_eq!(sent(&mut connection, at(60_000)), "");
    assert!(!connection.wants_close());
}

#[test]
fn who_closes_after_two_answers_says_nothing_of_it_and_drops_the_third() {
    let mut connection = connection(Behaviour { closes_after: Some(2), ..Behaviour::default() });
    ask(&mut connection, at(0), &["/a", "/b", "/c"]);
    assert!(!connection.wants_close());
    assert_eq!(sent(&mut connection, at(10)), "/a/b");
    assert!(connection.wants_close());
    ask(&mut connection, at(20), &["/d"]); // it crosses the close
    assert_eq!(sent(&mut connection, at(40)), "");
}

#[test]
fn an_idle_connection_is_closed_after_its_time_which_each_answer_begins_anew() {
    let idle = Idle::Closed(Duration::from_secs(5));
    let mut connection = connection(Behaviour { idle, ..Behaviour::default() });
    assert_eq!(connection.poll_timeout(), Some(at(5_000)), "one that was never used, too");
    ask(&mut connection, at(4_000), &["/a"]);
    assert_eq!(connection.poll_timeout(), Some(at(4_010)));
    assert_eq!(sent(&mut connection, at(4_010)), "/a");
    assert_eq!(connection.poll_timeout(), Some(at(9_010)));
    assert_eq!(sent(&mut connection, at(9_009)), "");
    assert!(!connection.wants_close());
    assert_eq!(sent(&mut connection, at(9_010)), "");
    assert!(connection.wants_close());
}

#[test]
fn an_idle_connection_is_answered_408_and_closed() {
    let idle = Idle::Answered408(Duration::from_secs(5));
    let mut connection = connection(Behaviour { idle, ..Behaviour::default() });
    assert!(sent(&mut connection, at(5_000)).starts_with("HTTP/1.1 408 "));
    assert!(connection.wants_close());
}
