//! What is hit, and what becomes of it.

use page::{Cause, Host, Kind, Resource};

use super::*;
use crate::{Protocol, Server, Think};

fn page() -> Page {
    let image = |n: usize| Resource {
        host: n as u32 % 2,
        body_len: 1_000,
        ..Resource::get(format!("/{n}"), Kind::Image, Cause::Load { delay: Duration::ZERO })
    };
    let root = Resource { body_len: 1_000, ..Resource::get("/0", Kind::Document, Cause::Root) };
    let hosts = vec![Host::new("a.example"), Host::new("b.example")];
    Page::new("test", hosts, std::iter::once(root).chain((1..200).map(image)).collect())
        .expect("a valid page")
}

fn faults(kind: FaultKind, whom: Whom, often: Often, seed: u64) -> Faults {
    Faults::new(vec![Fault { kind, whom, often }], Rng::new(seed))
}

/// The resources whose n-th answer is hit.
fn hit(faults: &Faults, n: u32) -> Vec<ResourceId> {
    let page = page();
    let body = |id: ResourceId| base::BodyRange { source: id, start: 0, len: 1_000 }.into();
    (0..200).filter(|id| faults.answer(&page, *id, &body(*id), n).is_some()).collect()
}

#[test]
fn what_is_hit_at_some_chance_is_hit_at_every_higher_one_and_each_time_is_drawn_anew() {
    let at = |share| faults(FaultKind::Hang, Whom::All, Often::Share(share), 7);
    let (few, many) = (hit(&at(0.1), 0), hit(&at(0.4), 0));
    assert!((10..35).contains(&few.len()) && (60..100).contains(&many.len()), "{few:?} {many:?}");
    assert!(few.iter().all(|id| many.contains(id)));
    assert_eq!(few, hit(&at(0.1), 0), "whatever was asked for in between");
    assert_ne!(few, hit(&at(0.1), 1));
    assert_ne!(few, hit(&faults(FaultKind::Hang, Whom::All, Often::Share(0.1), 8), 0));
}

#[test]
fn once_is_the_first_time_and_a_name_or_a_path_is_meant_alone() {
    let once = faults(FaultKind::Hang, Whom::Host("B.example".into()), Often::Once, 1);
    assert!(hit(&once, 0).iter().all(|id| id % 2 == 1) && hit(&once, 0).len() == 100);
    assert!(hit(&once, 1).is_empty());
    let path = |host: Option<&str>| Whom::Resource(host.map(str::to_owned), "/5".into());
    assert_eq!(hit(&faults(FaultKind::Hang, path(None), Often::Always, 1), 3), [5]);
    assert!(hit(&faults(FaultKind::Hang, path(Some("a.example")), Often::Always, 1), 3).is_empty());
    let refuse = faults(FaultKind::Refuse, Whom::Host("a.example".into()), Often::Once, 1);
    assert!(refuse.refuses("a.example", 0) && !refuse.refuses("a.example", 1));
    assert!(!refuse.refuses("b.example", 0));
    let at = Duration::from_secs(2);
    let gone = faults(FaultKind::Vanish { at }, Whom::Host("a.example".into()), Often::Always, 1);
    assert_eq!((gone.vanishes("a.example"), gone.vanishes("b.example")), (Some(Instant::ZERO + at), None));
}

#[test]
fn a_body_that_is_no_longer_than_the_cut_is_whole() {
    let cut = |after| faults(FaultKind::Reset { after }, Whom::All, Often::Always, 1);
    let of = |after| cut(after).answer(&page(), 1, &base::BodyRange::filler(1_000).into(), 0);
    assert_eq!(of(None), Some(Broken::Reset(500)));
    assert_eq!(of(Some(999)), Some(Broken::Reset(999)));
    assert_eq!(of(Some(1_000)), None);
    assert_eq!(cut(None).answer(&page(), 1, &base::BodyRange::filler(0).into(), 0), None);
}

const GET: &str = "GET /1 HTTP/1.1\r\nHost: b.example\r\n\r\n";

/// What a server of host 1 sends, in bytes of body, and whether it wants a reset afterwards.
fn sent(server: &mut Server<'_>, id: crate::ConnectionId, request: &str) -> (String, u64, bool) {
    server.handle_input(Instant::ZERO, id, request.as_bytes().to_vec().into()).expect("a sound request");
    let (mut head, mut body) = (String::new(), 0);
    while let Some(chunk) = server.poll_transmit(Instant::ZERO, id, 300) {
        match chunk {
            Chunk::Bytes(bytes) => head += std::str::from_utf8(&bytes).expect("heads are text"),
            Chunk::Body(range) => body += range.len,
        }
    }
    (head, body, server.wants_reset(id))
}

#[test]
fn a_connection_is_reset_after_so_many_bytes_of_the_body_and_the_answer_had_promised_all() {
    let page = page();
    let faults = faults(FaultKind::Reset { after: Some(700) }, Whom::All, Often::Once, 1);
    let mut server = Server::new(&page, 1, Think::Recorded).with_faults(faults);
    let id = server.accept(&Protocol::HTTP1);
    let (head, body, reset) = sent(&mut server, id, GET);
    assert!(head.contains("Content-Length: 1000"), "{head}");
    assert_eq!((body, reset), (700, true));
    let id = server.accept(&Protocol::HTTP1);
    let (_, body, reset) = sent(&mut server, id, GET);
    assert_eq!((body, reset), (1_000, false), "the second time it is whole");
}

#[test]
fn over_spdy_the_stream_is_cut_off_where_it_was_to_be_and_the_session_with_it() {
    let page = page();
    let faults = faults(FaultKind::Reset { after: Some(700) }, Whom::All, Often::Once, 1);
    let mut server = Server::new(&page, 1, Think::Recorded).with_faults(faults);
    let config = spdy::Config { keep_alive: None, ..spdy::Config::chrome_2013(spdy::Version::V3_1) };
    let id = server.accept(&Protocol::Spdy(config.clone()));
    let mut client = spdy::Session::client(config);
    let head = base::RequestHead {
        method: "GET".into(),
        scheme: "http".into(),
        authority: "b.example".into(),
        path: "/1".into(),
        fields: base::Fields::new(),
    };
    client.request(&head, spdy::Priority::new(1), true).expect("a first stream");
    let now = Instant::ZERO;
    while let Some(chunk) = client.poll_transmit(now, u64::MAX) {
        server.handle_input(now, id, chunk).expect("a sound client");
    }
    while let Some(chunk) = server.poll_transmit(now, id, 250) {
        client.handle_input(now, chunk).expect("a sound server");
    }
    assert!(server.wants_reset(id));
    let body = std::iter::from_fn(|| client.poll_event()).map(|event| match event {
        spdy::Event::Data { chunk, fin, .. } => {
            assert!(!fin);
            chunk.len()
        }
        _ => 0,
    });
    assert_eq!(body.sum::<u64>(), 700);
}

#[test]
fn a_request_that_is_not_answered_leaves_the_connection_as_it_is() {
    let page = page();
    let faults = faults(FaultKind::Hang, Whom::Resource(None, "/1".into()), Often::Always, 1);
    let mut server = Server::new(&page, 1, Think::Recorded).with_faults(faults);
    let id = server.accept(&Protocol::HTTP1);
    assert_eq!(sent(&mut server, id, GET), (String::new(), 0, false));
    assert!(!server.wants_close(id) && server.poll_timeout(id).is_none());
    assert_eq!(sent(&mut server, id, &GET.replace("/1 ", "/3 ")).1, 0, "nothing overtakes it");
    assert_eq!(server.repeats().count(), 0);
}

/// RFC 9110 §13.1.5, §14.2, §15.3.7.
#[test]
fn a_part_is_given_where_parts_are_offered_and_the_rest_is_still_the_same() {
    let mut page = page();
    page.resources[1].response.push("Accept-Ranges", "bytes");
    page.resources[1].response.push("ETag", "\"one\"");
    let mut server = Server::new(&page, 1, Think::Recorded);
    let id = server.accept(&Protocol::HTTP1);
    let mut ask = |path: &str, fields: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: b.example\r\n{fields}\r\n");
        let (head, body, _) = sent(&mut server, id, &request);
        (head[9..12].parse::<u16>().expect("a status"), body, head)
    };
    let (status, body, head) = ask("/1", "Range: bytes=400-\r\nIf-Range: \"one\"\r\n");
    assert_eq!((status, body), (206, 600));
    assert!(head.contains("Content-Range: bytes 400-999/1000"), "{head}");
    for fields in [
        "Range: bytes=400-\r\nIf-Range: \"other\"\r\n",
        "Range: bytes=400-\r\nIf-Range: W/\"one\"\r\n",
        "Range: bytes=1000-\r\n",
        "Range: bytes=1-2\r\n",
        "Range: lines=1-\r\n",
    ] {
        let (status, body, _) = ask("/1", fields);
        assert_eq!((status, body), (200, 1_000), "{fields}");
    }
    assert_eq!(ask("/3", "Range: bytes=400-\r\n").0, 200, "it offers no parts");
    assert_eq!(server.repeats().collect::<Vec<_>>(), [(1, 5)]);
}
