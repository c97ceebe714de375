//! `velodrome link` as a user meets it. Each test makes networks of its own, by the user's own right where that is allowed; where it is
//! not, the program says so in one line, and that line is what is tested.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

mod common;

use common::{Dir, command, stderr, stdout, velodrome};

/// Says why a test is not run; in CI it has to be.
fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "in CI this has to run: {why}");
    println!("skipped: {why}");
}

/// Whether this machine gives us a link; if not, that it says what to do about it.
fn has_link(dir: &Dir) -> bool {
    let output = velodrome(dir, &["link", "--quiet", "--", "true"]);
    if output.status.success() {
        return true;
    }
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.starts_with("velodrome: ") && said.lines().count() == 1, "{said}");
    skip(&format!("this needs user namespaces (or root) and /dev/net/tun: {said}"));
    false
}

/// Runs a link, if there can be one.
fn link(dir: &Dir, arguments: &[&str]) -> Option<Output> {
    let all: Vec<_> = ["link"].iter().chain(arguments).copied().collect();
    has_link(dir).then(|| velodrome(dir, &all))
}

/// This very test program, which serves as a command inside: see [`inside`].
fn this_program() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

/// What runs inside when a test asks for it by a variable; no test otherwise.
#[test]
fn inside() {
    match std::env::var("VELODROME_TEST").as_deref() {
        // Says where it is and waits to be told to end.
        Ok("wait") => {
            println!("\nready {}", std::process::id());
            std::io::stdout().flush().unwrap();
            let _ = std::io::stdin().read(&mut [0]);
        }
        // Asks `host` for what a server of the machine says.
        Ok("ask") => {
            let port: u16 = std::env::var("VELODROME_TEST_PORT").unwrap().parse().unwrap();
            let mut stream = TcpStream::connect(("host", port)).unwrap();
            stream.write_all(b"?").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            println!("\nanswer {answer}");
        }
        _ => {}
    }
}

fn asks(port: u16) -> [(&'static str, String); 2] {
    [("VELODROME_TEST", "ask".into()), ("VELODROME_TEST_PORT", port.to_string())]
}

/// A server on the machine's loopback address that says from how many it was asked already.
fn server(times: usize) -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        for n in 0..times {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0]).unwrap();
            write!(stream, "number {n}").unwrap();
        }
    };
    (port, std::thread::spawn(serve))
}

#[test]
fn the_exit_code_is_the_commands_and_its_output_is_untouched() {
    let dir = Dir::new("link-exit");
    let Some(output) = link(&dir, &["3g", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]) else {
        return;
    };
    assert_eq!((output.status.code(), stdout(&output)), (Some(7), "out\n"));
    assert!(stderr(&output).starts_with("err\nvelodrome: link ran "), "{}", stderr(&output));
    let killed = link(&dir, &["--quiet", "--", "sh", "-c", "kill -KILL $$"]).unwrap();
    assert_eq!((killed.status.code(), stderr(&killed)), (Some(128 + 9), ""));
    // A folder on the way that may not be read would be a different matter.
    let none = command(&dir, &["link", "--quiet", "--", "no-such-command"])
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    assert_eq!(
        (none.status.code(), stderr(&none)),
        (Some(127), "velodrome: command not found: no-such-command\n")
    );
    let dir_as_command = link(&dir, &["--quiet", "--", "/"]).unwrap();
    assert_eq!(dir_as_command.status.code(), Some(126), "{}", stderr(&dir_as_command));
}

#[test]
fn what_is_wrong_is_one_line_and_125() {
    let dir = Dir::new("link-wrong");
    for (arguments, says) in [
        (vec!["tin-can"], "unknown network 'tin-can'; known are seed"),
        (vec!["trace:/none,/none/80"], "cannot read /none: "),
        (vec!["--loss", "60", "--burst", "1.1"], "cannot come in runs of 1.1 packets"),
    ] {
        let all: Vec<_> = ["link"].into_iter().chain(arguments).chain(["--", "true"]).collect();
        let output = velodrome(&dir, &all);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(
            said.starts_with("velodrome: ") && said.lines().count() == 1 && said.contains(says),
            "{said}"
        );
    }
    if has_link(&dir) {
        let output = velodrome(&dir, &["link", "--log", "/none/log.csv", "--", "true"]);
        assert_eq!(output.status.code(), Some(125));
        assert!(
            stderr(&output).starts_with("velodrome: cannot write /none/log.csv: "),
            "{}",
            stderr(&output)
        );
    }
}

/// Both ends have their addresses, names lead to them, and one end's devices are all there is.
#[test]
fn the_command_sees_the_link_and_nothing_else() {
    let dir = Dir::new("link-sees");
    let script = "cat /proc/net/dev; getent hosts near far host; echo $VELODROME_NEAR $VELODROME_FAR";
    let Some(output) = link(&dir, &["--quiet", "--", "sh", "-c", script]) else { return };
    let text = stdout(&output);
    let devices: Vec<_> = text.lines().filter_map(|line| line.trim().split_once(':')).map(|d| d.0).collect();
    assert_eq!(devices, ["lo", "link0"], "{text}");
    for line in ["100.64.0.2", "100.64.0.1", "100.64.0.3", "100.64.0.2 100.64.0.1\n"] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_server_of_the_machine_is_reached_as_host() {
    let dir = Dir::new("link-host");
    if !has_link(&dir) {
        return;
    }
    let (port, served) = server(1);
    let program = this_program();
    let output = command(
        &dir,
        &["link", "--delay", "5", "--json", "--", &program, "inside", "--exact", "--nocapture"],
    )
    .envs(asks(port))
    .output()
    .unwrap();
    assert!(stdout(&output).contains("\nanswer number 0\n"), "{output:?}");
    served.join().unwrap();
    let report: serde_json::Value = serde_json::from_str(stderr(&output)).unwrap();
    for way in ["down", "up"] {
        let way = &report[way];
        assert!(way["packets_out"].as_u64().unwrap() > 2 && way["delay"]["asked_ms"] == 5.0, "{report}");
        assert!(way["delay"]["achieved_ms"].as_f64().unwrap() >= 5.0, "never early: {report}");
        assert_eq!(way["rate"]["verdict"], "unknown", "there was too little to tell");
    }
}

/// Packets of the inner link cross the outer one as well: each counts them, and the delays add up.
#[test]
fn a_link_within_a_link_passes_packets_through_both() {
    let dir = Dir::new("link-nested");
    if !has_link(&dir) {
        return;
    }
    let (port, served) = server(1);
    let (program, velodrome) = (this_program(), env!("CARGO_BIN_EXE_velodrome"));
    let inner =
        [velodrome, "link", "--delay", "4", "--json", "--", &program, "inside", "--exact", "--nocapture"];
    let all: Vec<_> = ["link", "--delay", "3", "--json", "--"].into_iter().chain(inner).collect();
    let output = command(&dir, &all).envs(asks(port)).output().unwrap();
    assert!(stdout(&output).contains("\nanswer number 0\n"), "{output:?}");
    served.join().unwrap();
    let reports: Vec<serde_json::Value> =
        stderr(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [inner, outer] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(
        (&inner["up"]["delay"]["asked_ms"], &outer["up"]["delay"]["asked_ms"]),
        (&4.0.into(), &3.0.into())
    );
    // The last packets of a connection may still be between the two when the inner link ends.
    for report in [inner, outer] {
        for way in ["down", "up"] {
            assert!(report[way]["packets_out"].as_u64().unwrap() > 2, "{reports:?}");
        }
    }
}

/// The far command is up before the near one starts.
#[test]
fn a_server_at_the_far_end_is_reached_as_far() {
    let dir = Dir::new("link-far");
    if !has_link(&dir) {
        return;
    }
    dir.write("hello.txt", "hello from afar");
    fs::create_dir(dir.0.join("www")).unwrap();
    fs::copy(dir.0.join("hello.txt"), dir.0.join("www/hello.txt")).unwrap();
    let velodrome = env!("CARGO_BIN_EXE_velodrome");
    let far = format!("exec {velodrome} serve www --listen 0.0.0.0:8080 --quiet");
    let all = ["link", "3g", "--quiet", "--far", &far, "--", velodrome, "fetch", "http://far:8080/hello.txt"];
    let output = command(&dir, &all).output().unwrap();
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "hello from afar"), "{output:?}");
    let gone = command(&dir, &["link", "--quiet", "--far", "exit 3", "--", "true"]).output().unwrap();
    assert_eq!(gone.status.code(), Some(125));
    assert_eq!(stderr(&gone), "velodrome: far command 1 has ended already, with exit code 3\n");
}

#[test]
fn the_log_has_every_packet_and_the_queue_drops_what_it_cannot_hold() {
    let dir = Dir::new("link-log");
    if !has_link(&dir) {
        return;
    }
    let velodrome = env!("CARGO_BIN_EXE_velodrome");
    fs::create_dir(dir.0.join("www")).unwrap();
    fs::write(dir.0.join("www/large"), vec![b'x'; 300_000]).unwrap();
    let far = format!("exec {velodrome} serve www --listen 0.0.0.0:8080 --quiet");
    let shape = ["--rate", "20000", "--delay", "5", "--queue", "9000", "--log", "log.csv", "--json"];
    let rest = ["--far", &far, "--", velodrome, "fetch", "--output", "got", "http://far:8080/large"];
    let all: Vec<_> = ["link"].into_iter().chain(shape).chain(rest).collect();
    let output = command(&dir, &all).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(fs::metadata(dir.0.join("got")).unwrap().len(), 300_000);
    let report: serde_json::Value =
        serde_json::from_str(stderr(&output).lines().find(|line| line.starts_with('{')).unwrap()).unwrap();
    let log = fs::read_to_string(dir.0.join("log.csv")).unwrap();
    let fates = |way: &str, fate: &str| {
        let all = log.lines().filter(|line| line.starts_with(way) && line.ends_with(fate));
        all.count() as u64
    };
    for way in ["down", "up"] {
        let count = |what: &str| report[way][what].as_u64().unwrap();
        assert_eq!(fates(way, ",delivered"), count("packets_out"));
        assert_eq!(fates(way, ",full"), count("dropped_full"));
        assert_eq!(fates(way, ""), count("packets_in"));
    }
    assert!(
        fates("down", ",delivered") > 200 && report["down"]["queue_bytes_most"].as_u64().unwrap() <= 9_000
    );
    assert_eq!(report["log"]["lost"], 0);
}

/// A link with a command that waits, and what the kernel has of it.
struct Waiting {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    /// Where to find it and everything that it has started.
    marker: String,
}

impl Waiting {
    fn start(dir: &Dir, name: &str, arguments: &[&str]) -> Self {
        let marker = format!("{name}-{}", std::process::id());
        let program = this_program();
        let inside = ["--", &program, "inside", "--exact", "--nocapture"];
        let all: Vec<_> = ["link"].into_iter().chain(arguments.iter().copied()).chain(inside).collect();
        // Whoever runs the tests may ignore signals (`nohup`, a shell's `&`), and programs inherit that; `env` takes it back.
        let mut child = Command::new("env");
        child.arg("--default-signal").arg(env!("CARGO_BIN_EXE_velodrome")).args(&all).current_dir(&dir.0);
        let mut child = child
            .env("VELODROME_TEST", "wait")
            .env("VELODROME_TEST_MARKER", &marker)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("ready ") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the command did not start");
        }
        Self { child, output, marker }
    }

    fn signal(&self, pid: u32, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits until the command's output ends, which it does when the last process that holds it is gone.
    fn end(mut self) -> (std::process::ExitStatus, String) {
        let _ = self.output.read_to_string(&mut String::new());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }
}

/// Processes that carry a marker in their environment, as /proc shows them, and their network namespaces.
fn processes(marker: &str) -> Vec<(u32, PathBuf)> {
    let marker = format!("VELODROME_TEST_MARKER={marker}");
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let is_marked = environment.split(|b| *b == 0).any(|variable| variable == marker.as_bytes());
        is_marked.then(|| Some((pid, fs::read_link(entry.path().join("ns/net")).ok()?)))?
    })
    .collect()
}

/// Network namespaces that any process is in or holds open.
fn networks() -> BTreeSet<PathBuf> {
    let links = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    all.flat_map(|process| std::iter::once(process.join("ns/net")).chain(links(process.join("fd"))))
        .filter_map(|link| fs::read_link(link).ok())
        .filter(|target| target.to_string_lossy().starts_with("net:["))
        .collect()
}

fn devices() -> BTreeSet<String> {
    let all = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Waits until something is gone, in reason.
fn gone(what: &str, is_left: impl Fn() -> bool) {
    let clock = live::Clock::start();
    while is_left() {
        assert!(clock.now().as_micros() < 60_000_000, "{what} is left");
        std::thread::yield_now();
    }
}

/// Whichever of a link's processes is killed, and however, all of them go, and the networks that only they had with them.
#[test]
fn nothing_is_left_behind_whoever_is_killed() {
    let dir = Dir::new("link-killed");
    if !has_link(&dir) {
        return;
    }
    let before = devices();
    // Program, keeper, init, command; a far shell and its child.
    for victim in 0..6 {
        let far = ["--far", "sleep 1000 & wait", "--wait", "0", "--quiet"];
        let waiting = Waiting::start(&dir, &format!("victim{victim}"), &far);
        // The far shell starts its child in its own time.
        gone("a shell without a child", || processes(&waiting.marker).len() < 6);
        let mut all = processes(&waiting.marker);
        all.sort();
        assert_eq!(all.len(), 6, "{all:?}");
        let ours = fs::read_link("/proc/self/ns/net").unwrap();
        let made: BTreeSet<_> = all.iter().map(|p| p.1.clone()).filter(|net| *net != ours).collect();
        assert_eq!(made.len(), 2, "a near and a far network: {all:?}");
        let (pid, _) = all[victim];
        // A far command's death ends nothing else: then the link is asked to end.
        let command_line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        waiting.signal(pid, "KILL");
        if command_line.contains("sleep") && !command_line.contains("--far") {
            waiting.signal(waiting.child.id(), "TERM");
        }
        let marker = waiting.marker.clone();
        let (status, _) = waiting.end();
        assert!(!status.success(), "victim {victim}: {status}");
        // The kernel ends and frees one after the other.
        gone(&format!("victim {victim}: a process"), || !processes(&marker).is_empty());
        gone(&format!("victim {victim}: a network"), || !networks().is_disjoint(&made));
    }
    assert_eq!(devices(), before);
    let left: Vec<_> = fs::read_dir(&dir.0).unwrap().flatten().map(|entry| entry.path()).collect();
    assert_eq!(left, Vec::<PathBuf>::new(), "files");
}

#[test]
fn a_signal_goes_to_the_command_and_sigusr1_asks_for_counters() {
    let dir = Dir::new("link-signals");
    if !has_link(&dir) {
        return;
    }
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("USR2", 12)] {
        let waiting = Waiting::start(&dir, name, &["--quiet"]);
        waiting.signal(waiting.child.id(), name);
        let (status, said) = waiting.end();
        assert_eq!((status.code(), said.as_str()), (Some(128 + number), ""), "{name}");
    }
    let mut waiting = Waiting::start(&dir, "USR1", &["--quiet"]);
    waiting.signal(waiting.child.id(), "USR1");
    let mut errors = BufReader::new(waiting.child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("down 0 packets in, 0 out, 0 lost") && line.contains("; up 0 "), "{line}");
    drop(waiting.child.stdin.take());
    assert!(waiting.child.wait().unwrap().success());
}

/// Two links at once, each with its own server at the same address and port, and its own loss.
#[test]
fn links_side_by_side_do_not_disturb_each_other() {
    let dir = Dir::new("link-two");
    if !has_link(&dir) {
        return;
    }
    let velodrome = env!("CARGO_BIN_EXE_velodrome");
    let start = |name: &str, delay: &str| {
        fs::create_dir(dir.0.join(name)).unwrap();
        fs::write(dir.0.join(name).join("who"), name).unwrap();
        let far = format!("exec {velodrome} serve {name} --listen 0.0.0.0:80 --quiet");
        let fetch = ["--", velodrome, "fetch", "http://far/who"];
        let all: Vec<_> =
            ["link", "--delay", delay, "--json", "--far", &far].into_iter().chain(fetch).collect();
        command(&dir, &all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let links = [("one", "7", start("one", "7")), ("two", "11", start("two", "11"))];
    for (name, delay, child) in links {
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), name), "{output:?}");
        let said = stderr(&output);
        let report: serde_json::Value =
            serde_json::from_str(said.lines().find(|line| line.starts_with('{')).unwrap()).unwrap();
        assert_eq!(report["up"]["delay"]["asked_ms"].as_f64().unwrap().to_string(), delay);
        assert_eq!((&report["up"]["dropped_full"], &report["up"]["refused"]), (&0.into(), &0.into()));
    }
}

/// What privileges are missing is told with the remedy, without them being really missing: a command may not make namespaces if
/// there may be none.
#[test]
fn missing_privileges_are_one_line_with_the_remedy() {
    let dir = Dir::new("link-privileges");
    if !has_link(&dir) || !Path::new("/proc/sys/user/max_user_namespaces").exists() {
        return;
    }
    // In a user namespace of its own, a program may forbid itself more of them.
    let velodrome = env!("CARGO_BIN_EXE_velodrome");
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps -all --ambient-caps -all {velodrome} link -- true"
    );
    let output = Command::new("unshare").args(["--user", "--map-root-user", "sh", "-c", &script]).output();
    match output {
        Ok(output) if !stderr(&output).contains("setpriv") && output.status.code() == Some(125) => {
            let said = stderr(&output);
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(said.contains("user namespaces") && said.contains("user.max_user_namespaces"), "{said}");
        }
        other => {
            skip(&format!("this needs unshare and setpriv of util-linux, and a user namespace: {other:?}"));
        }
    }
}
