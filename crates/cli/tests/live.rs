//! `velodrome serve` and `velodrome fetch` as a user meets them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};

mod common;

use common::{Dir, command, stderr, stdout, velodrome};

/// A server that is stopped when the test ends.
struct Server {
    child: Child,
    address: String,
    /// Lines that it prints after its address.
    log: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start(dir: &Dir, arguments: &[&str]) -> Self {
        let mut all = vec!["serve"];
        all.extend(arguments);
        all.extend(["--listen", "127.0.0.1:0", "--json"]);
        let mut child = command(dir, &all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        log.read_line(&mut first).unwrap();
        let address = first.split('"').nth(3).unwrap_or_else(|| panic!("no address in {first:?}")).to_owned();
        Self { child, address, log }
    }

    fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://{}{path}", self.address)
    }

    /// Asks it to end, as a service manager does, and gives what it still said.
    fn stop(mut self) -> (ExitStatus, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with two files.
fn site(name: &str) -> Dir {
    let dir = Dir::new(name);
    std::fs::create_dir(dir.0.join("www")).unwrap();
    dir.write("www/index.html", "<p>hello");
    std::fs::write(dir.0.join("www/large"), vec![7; 400_000]).unwrap();
    dir
}

#[test]
fn a_body_goes_to_standard_output_and_nothing_else_does() {
    let dir = site("fetch-body");
    let server = Server::start(&dir, &["www"]);
    for arguments in [&["--protocols", "spdy/3.1"][..], &["--protocols", "spdy2"], &["--upgrade"], &[]] {
        let mut all = vec!["fetch"];
        all.extend(arguments);
        let url = server.url("http", "/");
        all.extend([url.as_str(), "-v", "--timing"]);
        let output = velodrome(&dir, &all);
        assert_eq!(stdout(&output), "<p>hello", "{arguments:?}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(0));
        assert!(stderr(&output).contains("receive"), "--timing prints phases");
    }
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "SIGTERM ends it in order");
    let spoken: Vec<_> = log.lines().filter(|l| l.contains("\"status\":200")).collect();
    assert_eq!(spoken.len(), 4, "{log}");
}

#[test]
fn every_frame_is_printed_both_ways() {
    let dir = site("fetch-verbose");
    let server = Server::start(&dir, &["www"]);
    let url = server.url("http", "/large");
    let output = velodrome(&dir, &["fetch", "-v", "--protocols", "spdy/3.1", "-p", "2", "-o", "got", &url]);
    let log = stderr(&output);
    for wanted in
        ["> SYN_STREAM id=1 pri=2 fin", ":path: /large", "< SYN_REPLY id=1", ":status: 200", "> GOAWAY"]
    {
        let (mark, rest) = wanted.split_once(' ').unwrap();
        let found = log.lines().any(|l| match mark {
            ">" | "<" => l.starts_with(mark) && l.contains(rest),
            _ => l.trim().starts_with(wanted),
        });
        assert!(found, "{wanted} is not in\n{log}");
    }
    let data = log.lines().filter(|l| l.starts_with('<') && l.contains("DATA id=1"));
    let len =
        |l: &str| -> u64 { l.split("len=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap() };
    assert_eq!(data.map(len).sum::<u64>(), 400_000);
    assert_eq!(std::fs::read(dir.0.join("got")).unwrap(), vec![7; 400_000]);
}

#[test]
fn several_urls_share_a_connection_and_are_saved_by_name() {
    let dir = site("fetch-several");
    let server = Server::start(&dir, &["www"]);
    let (a, b, c) = (server.url("http", "/"), server.url("http", "/large"), server.url("http", "/none"));
    let output = velodrome(
        &dir,
        &["fetch", "--protocols", "spdy/3.1", "--json", "-o", "out", "-p", "0,3,7", &a, &b, &c],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows: Vec<serde_json::Value> =
        stdout(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let column = |name: &str| rows.iter().map(|r| r[name].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(column("status"), [200, 200, 404]);
    assert_eq!(column("connection"), [0, 0, 0]);
    assert_eq!(column("stream"), [1, 3, 5]);
    assert_eq!(column("priority"), [0, 3, 7]);
    assert_eq!(std::fs::read(dir.0.join("out/index.html")).unwrap(), b"<p>hello");
    assert_eq!(std::fs::read(dir.0.join("out/large")).unwrap().len(), 400_000);
}

#[test]
fn uploads_are_counted_where_they_are_taken_and_refused_elsewhere() {
    let dir = site("fetch-upload");
    for (flag, expected) in [
        (Some("--uploads"), format!("400000 {:08x}\n", crc32fast::hash(&[7; 400_000]))),
        (None, String::new()),
    ] {
        let mut arguments = vec!["www"];
        arguments.extend(flag);
        let server = Server::start(&dir, &arguments);
        let url = server.url("http", "/");
        let output = velodrome(&dir, &["fetch", "--protocols", "spdy/3.1", "-d", "@www/large", &url]);
        assert_eq!(stdout(&output), expected, "{}", stderr(&output));
    }
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let dir = site("live-errors");
    let server = Server::start(&dir, &["www"]);
    let taken = server.address.clone();
    let refused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = format!("http://{refused}/");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["serve", "nowhere"], 2, "nowhere: no such folder or recording"),
        (&["serve", "www", "--listen", &taken], 2, "another program listens there"),
        (&["serve", "www", "--listen", "127.0.0.1:0", "--tls-only"], 2, "without --tls or --cert"),
        (&["fetch", "ftp://a.example/"], 2, "give an http or https URL"),
        (&["fetch", "http://"], 2, "http://"),
        (&["fetch", &refused], 1, "refused"),
        (&["fetch", "http://name.invalid/"], 1, "name.invalid cannot be resolved"),
        (&["fetch", "--protocols", "h2", "http://a.example/"], 2, "known are spdy/3.1"),
        (&["fetch", "-p", "1,2", "http://a.example/"], 2, "give one, or one each"),
        (&["fetch", "-H", "nonsense", "http://a.example/"], 2, "give NAME: VALUE"),
        (&["fetch", "-d", "@missing", "http://a.example/"], 2, "missing"),
        (&["fetch", "http://a.example/", "https://a.example/"], 2, "--protocols"),
    ];
    for (arguments, code, wanted) in cases {
        let output = velodrome(&dir, arguments);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{arguments:?}: {}", stderr(&output));
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_build_without_tls_says_how_to_get_one() {
    if live::tls::PRESENT {
        return println!("skipped: another package of this build has the feature `tls` of velodrome-live");
    }
    let dir = site("live-no-tls");
    for arguments in
        [&["serve", "www", "--tls", "--listen", "127.0.0.1:0"][..], &["fetch", "https://127.0.0.1:1/"]]
    {
        let output = velodrome(&dir, arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("--features tls"), "{}", stderr(&output));
    }
}

#[cfg(feature = "tls")]
#[test]
fn protocols_are_negotiated_under_tls() {
    let dir = site("live-tls");
    let server = Server::start(&dir, &["www", "--tls", "--write-cert", "cert.pem"]);
    let url = server.url("https", "/");
    let cases = [
        (&[][..], "TLSv1.3", "spdy/3.1 by ALPN"),
        (&["--negotiate", "npn"], "TLSv1.2", "spdy/3.1 by NPN"),
        (&["--negotiate", "npn", "--protocols", "spdy/2,spdy/3.1"], "TLSv1.2", "spdy/2 by NPN"),
        (&["--tls", "1.2"], "TLSv1.2", "by ALPN, False Start"),
        (&["--protocols", "http1"], "TLSv1.3", "http/1.1 by ALPN"),
    ];
    for (arguments, version, protocol) in cases {
        let mut all = vec!["fetch", "-v", "--cacert", "cert.pem"];
        all.extend(arguments);
        all.push(&url);
        let output = velodrome(&dir, &all);
        assert_eq!(stdout(&output), "<p>hello", "{arguments:?}: {}", stderr(&output));
        let agreed = stderr(&output).lines().any(|l| l.contains(version) && l.contains(protocol));
        assert!(agreed, "{arguments:?}: {}", stderr(&output));
    }
    let output = velodrome(&dir, &["fetch", &url]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("certificate not accepted"), "{}", stderr(&output));
}

/// A recording of a document with a style sheet and an image.
const RECORDING: &str = r#"{"log":{"version":"1.2","creator":{"name":"test","version":"1"},
"pages":[{"startedDateTime":"2012-05-01T10:00:00.000Z","id":"p","title":"A page","pageTimings":{"onLoad":900}}],
"entries":[
{"pageref":"p","startedDateTime":"2012-05-01T10:00:00.000Z","time":100,"request":{"method":"GET","url":"http://a.example/","httpVersion":"HTTP/1.1","headers":[],"headersSize":-1,"bodySize":0},
 "response":{"status":200,"httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type","value":"text/html"}],"content":{"size":15,"mimeType":"text/html","text":"<p>as recorded."},"headersSize":-1,"bodySize":15},"timings":{"send":0,"wait":50,"receive":50}},
{"pageref":"p","startedDateTime":"2012-05-01T10:00:00.200Z","time":100,"request":{"method":"GET","url":"http://a.example/s.css?v=1","httpVersion":"HTTP/1.1","headers":[],"headersSize":-1,"bodySize":0},
 "_initiator":{"type":"parser","url":"http://a.example/"},
 "response":{"status":200,"httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type","value":"text/css"},{"name":"Cache-Control","value":"max-age=86400"}],"content":{"size":900,"mimeType":"text/css"},"headersSize":-1,"bodySize":900},"timings":{"send":0,"wait":50,"receive":50}},
{"pageref":"p","startedDateTime":"2012-05-01T10:00:00.300Z","time":100,"request":{"method":"GET","url":"http://b.example/i.png","httpVersion":"HTTP/1.1","headers":[],"headersSize":-1,"bodySize":0},
 "response":{"status":200,"httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type","value":"image/png"}],"content":{"size":5000,"mimeType":"image/png"},"headersSize":-1,"bodySize":5000},"timings":{"send":0,"wait":50,"receive":50}}
]}}"#;

#[test]
fn a_recording_is_served_with_all_its_hosts_on_one_port_and_pushes() {
    let dir = Dir::new("serve-har");
    dir.write("page.har", RECORDING);
    let server = Server::start(&dir, &["page.har", "--push", "auto", "--think", "none"]);
    let port = server.address.rsplit(':').next().unwrap();
    let at = |host: &str, path: &str| format!("http://{host}:{port}{path}");
    let (a, b) = (at("a.example", "/"), at("b.example", "/i.png"));
    let near = at("a.example", "/s.css?v=2");
    let output = velodrome(
        &dir,
        &[
            "fetch",
            "--protocols",
            "spdy/3.1",
            "--resolve",
            "a.example:127.0.0.1",
            "--resolve",
            "b.example:127.0.0.1",
            "--json",
            "-o",
            "out",
            &a,
            &b,
            &near,
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows: Vec<serde_json::Value> =
        stdout(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let sizes: Vec<_> = rows.iter().map(|r| r["body_bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [15, 5_000, 900, 900], "document, image, near style sheet, pushed style sheet");
    assert_eq!(rows[3]["pushed_with"], 0);
    assert_eq!(std::fs::read(dir.0.join("out/index.html")).unwrap(), b"<p>as recorded.");
    let (_, log) = server.stop();
    let near = log.lines().find(|l| l.contains("v=2")).expect("it is in the log");
    assert!(!near.contains("\"matched\":\"exact\""), "{near}");
}

#[test]
fn a_recording_is_served_with_hints_to_those_who_want_them() {
    use std::io::{Read, Write};
    let dir = Dir::new("serve-hints");
    dir.write("page.har", RECORDING);
    for (form, field, wanted) in [
        ("subresources", "", None),
        ("subresources", "X-Subresource: enabled\r\n", Some("X-Subresources: text/css; /s.css?v=1\r\n")),
        ("preload", "", Some("Link: </s.css?v=1>; rel=preload; as=style\r\n")),
    ] {
        let server = Server::start(&dir, &["page.har", "--hints", form, "--think", "none"]);
        let mut socket = std::net::TcpStream::connect(&server.address).unwrap();
        write!(socket, "GET / HTTP/1.1\r\nHost: a.example\r\n{field}Connection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("as recorded."), "{answer}");
        match wanted {
            Some(line) => assert!(answer.contains(line), "{answer}"),
            None => assert!(!answer.contains("ubresource"), "{answer}"),
        }
    }
    let dir = site("serve-hints-of-a-folder");
    let output = velodrome(&dir, &["serve", "www", "--listen", "127.0.0.1:0", "--hints", "preload"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("serve a recording"), "{}", stderr(&output));
}

#[test]
fn push_rules_of_a_folder_push_its_files_and_bad_ones_are_refused() {
    let dir = site("serve-push");
    let rule = "/ -> /large";
    let server = Server::start(&dir, &["www", "--push", rule]);
    let url = server.url("http", "/");
    let output = velodrome(&dir, &["fetch", "--protocols", "spdy/2", "--json", &url]);
    let rows: Vec<serde_json::Value> =
        stdout(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(rows.len(), 2, "{}", stderr(&output));
    assert_eq!((rows[1]["pushed_with"].as_u64(), rows[1]["body_bytes"].as_u64()), (Some(0), Some(400_000)));
    for (bad, wanted) in [("/ -> /none", "/none"), ("/ > /large", "cannot read"), ("auto", "give rules")] {
        let output = velodrome(&dir, &["serve", "www", "--listen", "127.0.0.1:0", "--push", bad]);
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(said.contains(wanted) || said.contains("No such file"), "{said}");
    }
}
