//! `velodrome capture` as a user meets it. What is in the file is tested in `lab`.

use std::fs;

mod common;

use common::{Dir, stderr, stdout, velodrome};

#[test]
fn a_capture_is_a_file_and_a_line_about_it() {
    let dir = Dir::new("capture");
    let asked = ["capture", "corpus:2012:1", "--network", "3g", "--transport", "spdy3.1", "--seed", "7"];
    let out = velodrome(&dir, &[&asked[..], &["--out", "a.pcap"]].concat());
    assert_eq!((out.status.code(), stderr(&out)), (Some(0), ""));
    assert!(stdout(&out).starts_with("a.pcap: ") && stdout(&out).lines().count() == 1, "{}", stdout(&out));
    let out = velodrome(&dir, &[&asked[..], &["--out", "b.pcap", "--json"]].concat());
    let said: serde_json::Value = serde_json::from_str(stdout(&out)).unwrap();
    let [a, b] = ["a.pcap", "b.pcap"].map(|file| fs::read(dir.0.join(file)).unwrap());
    assert!(a == b && a.starts_with(&[0x4d, 0x3c, 0xb2, 0xa1]), "the same command, the same bytes");
    let figure = |name: &str| said[name].as_u64().unwrap();
    assert_eq!(a.len() as u64, 24 + 16 * figure("packets") + figure("bytes"));
    assert!(figure("connections") > 0 && figure("duration_us") > 0);
    let out = velodrome(&dir, &[&asked[..], &["--out", "c.pcap", "--at", "server"]].concat());
    assert_eq!(out.status.code(), Some(0));
    assert!(fs::read(dir.0.join("c.pcap")).unwrap() != a, "another end");
}

#[test]
fn what_is_not_one_load_is_refused() {
    let dir = Dir::new("capture-refused");
    dir.write("empty.har", "{}");
    let refused = |arguments: &[&str]| {
        let out = velodrome(&dir, &[&["capture", "--out", "a.pcap"], arguments].concat());
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        assert!(!dir.0.join("a.pcap").exists(), "{arguments:?}");
        stderr(&out).to_owned()
    };
    for (arguments, says) in [
        (&["corpus:2012:2"][..], "a capture is of one page, and here are 2: --page says which"),
        (&["corpus:2012:2", "--page", "3"], "--page 3: there is no such page, the last one is 2"),
        (&["empty.har"], "there is no page to load"),
        (
            &["corpus:2012:1", "--at", "router"],
            "'router' is no end of a connection; there are client, server",
        ),
        (&["corpus:2012:1", "--transport", "http1,spdy3.1"], "unknown transport 'http1,spdy3.1'"),
        (
            &["corpus:2012:1", "--network", "3g", "--network", "lte"],
            "'--network <NETWORK>' cannot be used multiple times",
        ),
        (&["corpus:2012:1", "--with", "tabs=2:at-once"], "needs other pages, and a capture is of one"),
    ] {
        let said = refused(arguments);
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    let page = ["capture", "corpus:2012:2", "--page", "2", "--out", "b.pcap"];
    assert_eq!(velodrome(&dir, &page).status.code(), Some(0));
    let nowhere = velodrome(&dir, &["capture", "corpus:2012:1", "--out", "none/a.pcap"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(stderr(&nowhere).contains("cannot write none/a.pcap: "), "{}", stderr(&nowhere));
}
