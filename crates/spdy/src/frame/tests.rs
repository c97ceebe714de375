//! Vectors written out by hand from the drafts' diagrams, a table a version.

use super::*;

type Frame = Control<Bytes>;

fn block() -> Bytes {
    Bytes::from_static(b"block")
}

fn syn_stream(priority: u8, slot: u8) -> Frame {
    Control::SynStream {
        id: 5,
        associated: 1,
        priority: Priority::new(priority),
        slot,
        fin: true,
        unidirectional: true,
        block: block(),
    }
}

fn settings() -> Frame {
    let cwnd = Setting { id: Setting::CURRENT_CWND, flags: Setting::PERSIST, value: 10 };
    Control::Settings { clear: true, entries: vec![cwnd, Setting::new(0x01_0203, 0xffff_ffff)] }
}

/// Frames that all versions write alike but for the version, whose low byte is left as 0.
fn common() -> Vec<(Frame, &'static [u8])> {
    vec![
        (Control::RstStream { id: 1, status: Status::CANCEL }, b"\x80\0\0\x03\0\0\0\x08\0\0\0\x01\0\0\0\x05"),
        (Control::Ping { id: 0xfffffffe }, b"\x80\0\0\x06\0\0\0\x04\xff\xff\xff\xfe"),
        (Control::WindowUpdate { id: 0, delta: 65_536 }, b"\x80\0\0\x09\0\0\0\x08\0\0\0\0\0\x01\0\0"),
    ]
}

fn version_2() -> Vec<(Frame, &'static [u8])> {
    vec![
        (syn_stream(2, 0), b"\x80\0\0\x01\x03\0\0\x0f\0\0\0\x05\0\0\0\x01\x40\0block"),
        (
            Control::SynReply { id: 5, fin: true, block: block() },
            b"\x80\0\0\x02\x01\0\0\x0b\0\0\0\x05\0\0block",
        ),
        (
            Control::Headers { id: 5, fin: false, block: block() },
            b"\x80\0\0\x08\0\0\0\x0b\0\0\0\x05\0\0block",
        ),
        (
            settings(),
            b"\x80\0\0\x04\x01\0\0\x14\0\0\0\x02\x05\0\0\x01\0\0\0\x0a\x03\x02\x01\0\xff\xff\xff\xff",
        ),
        (Control::Noop, b"\x80\0\0\x05\0\0\0\0"),
        (Control::GoAway { last_good_id: 7, status: GoAwayStatus::OK }, b"\x80\0\0\x07\0\0\0\x04\0\0\0\x07"),
    ]
}

/// SPDY/3 §2.6.9, which 3.1 dropped.
fn credential() -> (Frame, &'static [u8]) {
    let (proof, certificates) =
        (Bytes::from_static(b"proof"), Bytes::from_static(b"\0\0\0\x02c1\0\0\0\x01c"));
    let wire = b"\x80\0\0\x0a\0\0\0\x16\0\x02\0\0\0\x05proof\0\0\0\x02c1\0\0\0\x01c";
    (Control::Credential { slot: 2, proof, certificates }, wire)
}

fn version_3() -> Vec<(Frame, &'static [u8])> {
    let goaway = Control::GoAway { last_good_id: 7, status: GoAwayStatus::INTERNAL_ERROR };
    vec![
        (syn_stream(3, 9), b"\x80\0\0\x01\x03\0\0\x0f\0\0\0\x05\0\0\0\x01\x60\x09block"),
        (Control::SynReply { id: 5, fin: true, block: block() }, b"\x80\0\0\x02\x01\0\0\x09\0\0\0\x05block"),
        (Control::Headers { id: 5, fin: true, block: block() }, b"\x80\0\0\x08\x01\0\0\x09\0\0\0\x05block"),
        (
            settings(),
            b"\x80\0\0\x04\x01\0\0\x14\0\0\0\x02\x01\0\0\x05\0\0\0\x0a\0\x01\x02\x03\xff\xff\xff\xff",
        ),
        (goaway, b"\x80\0\0\x07\0\0\0\x08\0\0\0\x07\0\0\0\x02"),
    ]
}

fn parse(version: Version, wire: &[u8]) -> Result<Frame, Misbehaviour> {
    let Head::Control { kind, flags, len, version: written } = Head::parse(wire[..8].try_into().unwrap())
    else {
        panic!("a data frame");
    };
    assert_eq!(written, version.on_wire());
    assert_eq!(len as usize, wire.len() - 8);
    Control::parse(version, kind, flags, Bytes::copy_from_slice(&wire[8..]), &Limits::default())
}

#[test]
fn every_frame_of_every_version_is_written_and_read_as_its_draft_draws_it() {
    for version in [Version::V2, Version::V3, Version::V3_1] {
        let own = match version {
            Version::V2 => version_2(),
            Version::V3 => version_3().into_iter().chain([credential()]).collect(),
            Version::V3_1 => version_3(),
        };
        for (frame, vector) in common().into_iter().chain(own) {
            let mut wire = vector.to_vec();
            wire[1] = version.on_wire() as u8;
            let mut emitted = Vec::new();
            frame.emit(version, &mut emitted);
            assert_eq!(emitted, wire, "{version} {frame:?}");
            assert_eq!(parse(version, &wire), Ok(frame), "{version}");
        }
    }
}

/// §2.2.2.
#[test]
fn data_frames_have_a_stream_a_flag_and_a_length() {
    for (fin, compress, flags) in [(false, false, 0), (true, false, 1), (false, true, 2), (true, true, 3)] {
        let head = Head::Data { id: 0x7fff_ffff, fin, compress, len: 0xff_ffff };
        assert_eq!(head.emit(), [0x7f, 0xff, 0xff, 0xff, flags, 0xff, 0xff, 0xff]);
        assert_eq!(Head::parse(head.emit()), head);
    }
}

#[test]
fn a_length_that_does_not_fit_the_type_is_an_error_and_not_a_panic() {
    use kind::*;
    for version in [Version::V2, Version::V3, Version::V3_1] {
        let unused = if version == Version::V2 { 2 } else { 0 };
        let goaway = if version == Version::V2 { 4 } else { 8 };
        let least = [
            (SYN_STREAM, 10),
            (SYN_REPLY, 4 + unused),
            (RST_STREAM, 8),
            (SETTINGS, 4),
            (PING, 4),
            (GOAWAY, goaway),
            (HEADERS, 4 + unused),
            (WINDOW_UPDATE, 8),
        ];
        for (kind, least) in least {
            for len in 0..24 {
                let outcome = Control::parse(version, kind, 0xff, vec![0; len].into(), &Limits::default());
                let exact = matches!(kind, SETTINGS | PING | WINDOW_UPDATE);
                let fits = if exact { len == least } else { len >= least };
                assert_eq!(outcome.is_ok(), fits, "{version}, type {kind}, length {len}");
            }
        }
    }
}

/// What node-spdy sends beyond the text, and reserved bits.
#[test]
fn what_peers_add_is_let_pass() {
    let limits = Limits::default();
    let rst = Control::parse(Version::V3, 3, 0, Bytes::from_static(b"\x80\0\0\x01\0\0\0\x05gone"), &limits);
    assert_eq!(rst, Ok(Control::RstStream { id: 1, status: Status::CANCEL }));
    let goaway = Control::parse(Version::V2, 7, 0, Bytes::from_static(b"\x80\0\0\x03\0\0\0\x02"), &limits);
    assert_eq!(goaway, Ok(Control::GoAway { last_good_id: 3, status: GoAwayStatus::INTERNAL_ERROR }));
    for (version, kind) in
        [(Version::V2, 0xf000), (Version::V3, kind::NOOP), (Version::V3_1, kind::CREDENTIAL)]
    {
        let unknown = Control::parse(version, kind, 0, Bytes::from_static(b"abc"), &limits);
        assert_eq!(unknown, Ok(Control::Unknown { kind, len: 3 }));
    }
}

/// A count whose entries' length does not fit 32 bits, for a caller who set no bound.
#[test]
fn a_settings_count_near_its_largest_is_an_error_and_not_a_panic() {
    let limits = Limits { settings: u32::MAX, ..Limits::default() };
    for payload in [&b"\xff\xff\xff\xff"[..], b"\x20\0\0\0", b"\x20\0\0\x01\0\0\0\0\0\0\0\0"] {
        let outcome = Control::parse(Version::V3, kind::SETTINGS, 0, Bytes::from_static(payload), &limits);
        let len = payload.len() as u32;
        assert_eq!(outcome, Err(Misbehaviour::FrameLength { kind: kind::SETTINGS, len }));
    }
}

/// The proof must fit the frame, and so must each certificate.
#[test]
fn a_credential_whose_lengths_do_not_add_up_is_an_error() {
    let whole = &credential().1[8..];
    for len in 0..whole.len() {
        let cut = Bytes::copy_from_slice(&whole[..len]);
        let outcome = Control::parse(Version::V3, kind::CREDENTIAL, 0, cut, &Limits::default());
        // It may end after the proof or between two certificates.
        assert_eq!(outcome.is_ok(), [11, 17].contains(&len), "{len} bytes: {outcome:?}");
    }
    let huge = Bytes::from_static(b"\0\x02\xff\xff\xff\xffproof");
    assert!(Control::parse(Version::V3, kind::CREDENTIAL, 0, huge, &Limits::default()).is_err());
}
