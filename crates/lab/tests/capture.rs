//! What `tshark` reads in a capture is what the load did: as many requests, as many segments sent again, nothing malformed.
//!
//! Without `tshark` the tests that need it say so and check nothing; with CI set they fail.

use std::path::{Path, PathBuf};
use std::process::Command;

use lab::capture::{Capture, Counts, End};
use lab::network::Network;
use lab::plan::{FORMAT, Plan};
use lab::setting::{Tls, World};

/// A page of 2012 over 2 Mbit/s with losses; in the clear unless said otherwise.
fn capture(transport: &str, tls: Tls) -> Capture {
    let mut network = Network::named("2000/386/100/2").unwrap();
    network.tls = tls;
    network.tls_scope = lab::setting::TlsScope::Everywhere;
    let plan = Plan {
        format: FORMAT,
        world: World::Virtual,
        seed: 1,
        runs: 1,
        transports: vec![transport.to_owned()],
        pages: vec!["corpus:2012:1".to_owned()],
        pages_max: None,
        techniques: Vec::new(),
        state: None,
        networks: vec![network],
    };
    plan.check().unwrap();
    Capture::make(&plan, &lab::pages::collect(&plan.pages, None).pages[0]).unwrap()
}

fn written(capture: &Capture, end: End) -> (Vec<u8>, Counts) {
    let mut file = Vec::new();
    let counts = capture.write(end, &mut file).unwrap();
    (file, counts)
}

/// `tshark`, if it is here; with CI set it has to be.
fn tshark() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("tshark")).find(|p| p.is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI checks this with tshark: xtask/tools.sh installs it");
        eprintln!("skipped: there is no tshark to read our captures; install your system's tshark package");
    }
    found
}

/// A file of a test's own, gone with it.
struct File(PathBuf);

impl File {
    fn new(name: &str, content: &[u8]) -> Self {
        let file = std::env::temp_dir().join(format!("velodrome-{}-{name}.pcap", std::process::id()));
        std::fs::write(&file, content).unwrap();
        Self(file)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The lines that `tshark` prints for a file.
fn lines(tshark: &Path, file: &File, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new(tshark);
    // -n: no names are looked up. What came out of order is read in order, as the receiver did.
    command.args(["-n", "-o", "tcp.reassemble_out_of_order:TRUE"]);
    command.args([
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "udp.check_checksum:TRUE",
    ]);
    let output = command.arg("-r").arg(&file.0).args(arguments).output().unwrap();
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// All by which `tshark` marks what cannot be so. That a picture is none is known: its bytes are filler.
const FAULTS: &str = "(_ws.malformed && !http.subdissector_failed) || _ws.expert.severity == error \
    || tcp.analysis.ack_lost_segment || tcp.analysis.reused_ports || ip.checksum.status == 0 \
    || tcp.checksum.status == 0 || udp.checksum.status == 0";

/// All by which it marks what was sent again: what fell into a gap that it knows of it calls out of order.
const AGAIN: &str = "(tcp.analysis.retransmission || tcp.analysis.out_of_order)";

#[test]
fn a_capture_is_the_same_each_time_and_has_every_byte_that_the_model_counts() {
    for (transport, tls) in [("http1", Tls::None), ("spdy3.1", Tls::Tls12), ("spdy3.1", Tls::Tls13)] {
        let capture = capture(transport, tls);
        let load = capture.load();
        for (end, up) in [(End::Client, true), (End::Server, false)] {
            let (file, counts) = written(&capture, end);
            assert!(file == written(&self::capture(transport, tls), end).0, "{transport} at the {end}");
            let passes = |p: &&load::Packet| p.up == up || p.arrived.is_some();
            let segments: Vec<_> = load.packets.iter().filter(passes).collect();
            let (mut packets, mut bytes) = (segments.len() as u64, 0);
            bytes += segments.iter().map(|p| u64::from(p.segment.wire_len())).sum::<u64>();
            if up {
                let all = load.up.packets_in + load.down.packets_out;
                packets = all; // with the names
                bytes = load.up.bytes_in + load.down.bytes_out;
            }
            assert_eq!((counts.packets, counts.bytes), (packets, bytes), "{transport} at the {end}");
            assert_eq!(file.len() as u64, 24 + 16 * packets + bytes);
            let own = |c: &load::Connection| if up { c.client.retransmits } else { c.server.retransmits };
            let sent_again: u64 = load.connections.iter().map(own).sum();
            assert!(sent_again > 0 && counts.connections == load.connections.len() as u64);
            assert_eq!(counts.retransmissions_sent, sent_again, "{transport} at the {end}");
        }
    }
}

#[test]
fn tshark_finds_nothing_wrong_and_as_many_retransmissions_and_requests_as_there_were() {
    let Some(tshark) = tshark() else { return };
    let capture = capture("http1", Tls::None);
    let requests: u64 = capture.load().connections.iter().map(|c| u64::from(c.record.requests)).sum();
    for (end, from) in [(End::Client, "ip.src == 192.168.0.2"), (End::Server, "ip.dst == 192.168.0.2")] {
        let (bytes, counts) = written(&capture, end);
        let file = File::new(&format!("http1-{end}"), &bytes);
        assert_eq!(lines(&tshark, &file, &["-Y", FAULTS]), [""; 0], "at the {end}");
        let again = lines(&tshark, &file, &["-Y", &format!("{AGAIN} && {from}")]);
        assert_eq!(again.len() as u64, counts.retransmissions_sent, "at the {end}");
        let asked =
            lines(&tshark, &file, &["-Y", "http.request", "-T", "fields", "-e", "http.request.method"]);
        let asked: usize = asked.iter().map(|line| line.split(',').count()).sum();
        assert_eq!(asked as u64, requests, "at the {end}");
    }
}

#[test]
fn tshark_reads_the_frames_of_spdy_in_the_clear() {
    let Some(tshark) = tshark() else { return };
    let capture = capture("spdy3.1", Tls::None);
    let whole = File::new("spdy", &written(&capture, End::Client).0);
    let mut opened = 0;
    for stream in 0..capture.load().connections.len() {
        // Its dissector of SPDY keeps inflated blocks by the stream's number for the whole file.
        let one = File::new(&format!("spdy-{stream}"), b"");
        let filter = format!("tcp.stream == {stream}");
        lines(&tshark, &whole, &["-Y", &filter, "-w", one.0.to_str().unwrap()]);
        let spdy = ["-d", "tcp.port==80,spdy"];
        assert_eq!(
            lines(&tshark, &one, &[&spdy[..], &["-Y", FAULTS]].concat()),
            [""; 0],
            "connection {stream}"
        );
        let frames = ["-Y", "spdy.type == 1", "-T", "fields", "-e", "spdy.type"];
        for line in lines(&tshark, &one, &[&spdy[..], &frames].concat()) {
            opened += line.split(',').filter(|kind| *kind == "1").count() as u64;
        }
    }
    let requests: u64 = capture.load().connections.iter().map(|c| u64::from(c.record.requests)).sum();
    assert_eq!(opened, requests, "SYN_STREAMs");
}

#[test]
fn tshark_reads_the_records_of_tls() {
    let Some(tshark) = tshark() else { return };
    for tls in [Tls::Tls12, Tls::Tls13] {
        let capture = capture("http1", tls);
        let file = File::new(&format!("tls-{tls}"), &written(&capture, End::Server).0);
        assert_eq!(lines(&tshark, &file, &["-Y", FAULTS]), [""; 0], "{tls}");
        let hellos =
            lines(&tshark, &file, &["-Y", "tls.handshake.type == 1 && !tcp.analysis.retransmission"]);
        assert_eq!(hellos.len(), capture.load().connections.len(), "{tls}: each connection has its hello");
    }
}
