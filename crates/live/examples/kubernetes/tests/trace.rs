//! What the trace prints.

use base::{Chunk, Fields, Instant};
use spdy::{Config, Opening, Session};

use crate::trace::{Viewer, Way};

const REQUEST: &[u8] =
    b"POST /exec?command=date HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
    Authorization: Bearer swordfish\r\n\r\n";

#[test]
fn heads_and_frames_are_shown_however_they_are_cut_and_secrets_are_not() {
    let mut client = Session::client(Config::spdystream());
    let mut fields = Fields::new();
    fields.push("streamType", "stdin");
    let id = client.open(&fields, Opening::default()).unwrap();
    client.reset(id, spdy::Status::CANCEL);
    let mut bytes = REQUEST.to_vec();
    while let Some(Chunk::Bytes(more)) = client.poll_transmit(Instant::ZERO, 1 << 14) {
        bytes.extend_from_slice(&more);
    }
    for size in [1, 7, bytes.len()] {
        let mut viewer = Viewer::new(1, Way::ToServer);
        let shown: String = bytes.chunks(size).map(|piece| viewer.see(piece)).collect();
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0], "1 > POST /exec?command=date HTTP/1.1");
        assert_eq!(lines[4], "1 > Authorization: (not shown)");
        assert!(lines[5].starts_with("1 > SYN_STREAM id=1 "), "{shown}");
        assert_eq!(lines[6..], ["1 >     streamtype: stdin", "1 > RST_STREAM id=1 status=CANCEL"]);
    }
}

#[test]
fn what_is_no_upgrade_or_no_spdy_is_passed_on_unseen() {
    let mut viewer = Viewer::new(2, Way::ToClient);
    let shown = viewer.see(b"HTTP/1.1 403 Forbidden\r\n\r\n\x80\x03\x00\x06");
    let note = "no upgrade to SPDY/3.1: what follows is passed on unseen";
    assert_eq!(shown, format!("2 < HTTP/1.1 403 Forbidden\n2 < {note}\n"));
    assert_eq!(viewer.see(b"anything"), "");

    let mut viewer = Viewer::new(3, Way::ToClient);
    assert_eq!(viewer.see(b"HTTP/1.1 101 Yes\r\n\r\n"), "3 < HTTP/1.1 101 Yes\n");
    // A PING of version 2.
    assert!(viewer.see(&[0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1]).starts_with("3 < no SPDY: "));

    let mut viewer = Viewer::new(4, Way::ToClient);
    assert_eq!(viewer.see(&[b'x'; 100_000]), "");
    assert_eq!(viewer.see(b"\r\n\r\n"), "", "given up");
}
