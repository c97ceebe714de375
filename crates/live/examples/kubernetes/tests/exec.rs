//! Exec and attach.

use std::io::{self, Cursor, Read, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use super::{connect, own, serving, until};
use crate::channel::{Size, Version};
use crate::exec::{Commands, Exec};
use crate::pump::{relay_from, relay_to};
use crate::remote::{Ends, Remote};
use crate::signals::Signals;
use crate::status::Outcome;

/// Where an output ends, for looking at.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// What came of a command.
#[derive(PartialEq, Eq, Debug)]
struct Ran {
    outcome: Outcome,
    stdout: String,
    stderr: String,
}

/// Runs a shell's line, whatever the client asks for.
fn shell(line: &str) -> Commands {
    Commands::Fixed(vec!["sh".into(), "-c".into(), line.into()])
}

const ALL: &str = "stdin=true&stdout=true&stderr=true";
const TERMINAL: &str = "stdin=true&stdout=true&tty=true";

struct Case {
    commands: Commands,
    query: &'static str,
    protocols: Vec<&'static str>,
    terminal: Option<fn() -> Option<Size>>,
    signals: Signals,
}

impl Case {
    fn new(line: &str) -> Self {
        let (query, protocols) = (ALL, Version::ALL.map(Version::name).to_vec());
        Self { commands: shell(line), query, protocols, terminal: None, signals: Signals::default() }
    }

    fn run(self, stdin: impl Read + Send + 'static) -> Ran {
        self.run_until(stdin, |_| {})
    }

    /// Runs it; `look` is shown its standard output from time to time.
    fn run_until(self, stdin: impl Read + Send + 'static, mut look: impl FnMut(&str)) -> Ran {
        let commands = Rc::new(self.commands);
        let (mut host, address) = serving(move || Exec::new(commands.clone()));
        let (stdout, stderr) = (Kept::default(), Kept::default());
        let ends = Ends {
            stdin: Some(relay_from(stdin).unwrap()),
            stdout: relay_to(stdout.clone()).unwrap(),
            stderr: self.terminal.is_none().then(|| relay_to(stderr.clone()).unwrap()),
            terminal: self.terminal,
        };
        let remote = Remote::new(ends, self.signals);
        let remote = connect(&mut host, address, self.query, &self.protocols, remote);
        until(&mut host, |host| {
            look(&stdout.text());
            host.is_empty()
        });
        let outcome = own(remote).finish();
        Ran { outcome, stdout: stdout.text(), stderr: stderr.text() }
    }
}

#[test]
fn input_outputs_and_exit_code_go_through() {
    let input = "the quick brown fox\n".repeat(20_000);
    let ran = Case::new("cat; echo done >&2; exit 3").run(Cursor::new(input.clone()));
    assert_eq!(ran.outcome, Outcome::Exit(3));
    assert!(ran.stdout == input, "{} bytes came back", ran.stdout.len());
    assert_eq!(ran.stderr, "done\n");
}

#[test]
fn a_command_that_reads_nothing_ends_all_the_same() {
    let ran = Case::new("exit 0").run(io::repeat(b'x'));
    assert_eq!(ran, Ran { outcome: Outcome::Exit(0), stdout: String::new(), stderr: String::new() });
}

#[test]
fn a_signal_is_an_exit_code_of_128_and_more() {
    let ran = Case::new("kill -TERM $$").run(io::empty());
    assert_eq!(ran.outcome, Outcome::Exit(128 + 15));
}

#[test]
fn a_command_that_is_not_there_is_an_error() {
    let mut case = Case::new("");
    case.commands = Commands::Fixed(vec!["/nonexistent/command".into()]);
    let Outcome::Failed(why) = case.run(io::empty()).outcome else { panic!("it ran") };
    assert!(why.contains("/nonexistent/command: No such file"), "{why}");
}

/// Before version 4 a failure is a sentence.
#[test]
fn every_version_runs_a_command_and_4_tells_the_exit_code() {
    for version in Version::ALL {
        let mut case = Case::new("cat; exit 7");
        case.protocols = vec!["v9.channel.k8s.io", version.name()];
        let ran = case.run(Cursor::new("hello"));
        assert_eq!(ran.stdout, "hello");
        let told = match version {
            Version::V4 => Outcome::Exit(7),
            _ => Outcome::Failed("command terminated with non-zero exit code: exit status 7".into()),
        };
        assert_eq!(ran.outcome, told, "{version:?}");

        let mut case = Case::new("exit 0");
        case.protocols = vec![version.name()];
        assert_eq!(case.run(io::empty()).outcome, Outcome::Exit(0), "{version:?}");
    }
}

#[test]
fn a_client_without_a_common_version_is_refused_with_the_list() {
    let mut case = Case::new("exit 0");
    case.protocols = vec!["v9.channel.k8s.io"];
    let Outcome::Failed(why) = case.run(io::empty()).outcome else { panic!("it ran") };
    assert!(why.contains("status 403") && why.contains("server takes [v4.channel.k8s.io, "), "{why}");
}

#[test]
fn a_request_for_no_stream_is_refused() {
    let mut case = Case::new("exit 0");
    case.query = "stdin=false";
    let Outcome::Failed(why) = case.run(io::empty()).outcome else { panic!("it ran") };
    assert!(why.contains("status 400: unable to upgrade: you must specify at least 1 of"), "{why}");
}

fn large() -> Option<Size> {
    Some(Size { columns: 132, rows: 43 })
}

/// The size is told before the input that the command waits for; the input's end is a key.
#[test]
fn a_terminal_has_the_size_of_the_clients_and_one_output() {
    let mut case = Case::new("read line; stty size; test -t 0 && echo input; echo errors >&2; cat; exit 4");
    case.query = TERMINAL;
    case.terminal = Some(large);
    case.signals.raise_resized();
    let ran = case.run(Cursor::new("go\nto the end\n"));
    assert_eq!(ran.outcome, Outcome::Exit(4));
    let lines: Vec<_> = ran.stdout.lines().collect();
    // What is typed is echoed, when it is typed.
    let said: Vec<_> = lines.into_iter().filter(|line| !matches!(*line, "go" | "to the end")).collect();
    assert_eq!(said, ["43 132", "input", "errors"], "{:?}", ran.stdout);
    assert!(ran.stdout.matches("to the end\r\n").count() == 2, "echo and cat: {:?}", ran.stdout);
}

/// Version 2 has no stream for the size.
#[test]
fn a_terminal_without_a_size_works_in_version_2() {
    let mut case = Case::new("read line; test -t 1 && echo terminal");
    case.query = TERMINAL;
    case.terminal = Some(large);
    case.protocols = vec![Version::V2.name()];
    let ran = case.run(Cursor::new("go\n"));
    assert_eq!(ran.outcome, Outcome::Exit(0));
    assert!(ran.stdout.ends_with("terminal\r\n"), "{:?}", ran.stdout);
}

#[test]
fn an_interrupt_leaves_in_order_and_the_command_ends() {
    let case = Case::new("echo $$; exec cat");
    let signals = case.signals.clone();
    // Nobody writes on it.
    let (stdin, _kept) = io::pipe().unwrap();
    let ran = case.run_until(stdin, |said| {
        if said.ends_with('\n') {
            signals.raise_stop();
        }
    });
    assert_eq!(ran.outcome, Outcome::Failed("interrupted; the command may go on".into()));
    let process = std::path::Path::new("/proc").join(ran.stdout.trim());
    assert!(ran.stdout.len() > 1 && !process.exists(), "{} is gone", process.display());
}

#[test]
fn sizes_are_read_as_they_come() {
    let mut said = b"{\"Width\":80,\"Height\":24}\n{\"Width\":81,\"Hei".to_vec();
    assert_eq!(Size::take(&mut said), Some(Size { columns: 80, rows: 24 }));
    assert_eq!(Size::take(&mut said), None);
    said.extend_from_slice(b"ght\":25}{}\n");
    assert_eq!(Size::take(&mut said), Some(Size { columns: 81, rows: 25 }));
    for nonsense in
        ["{\"Width\":-1,\"Height\":70000}", "]", "\"never ends", &"[".repeat(10_000), "\"\\ud800\""]
    {
        said.extend_from_slice(nonsense.as_bytes());
        assert_eq!(Size::take(&mut said), None, "{nonsense}");
        assert!(said.len() <= 1024, "{} bytes of nonsense are kept", said.len());
        said.clear();
    }
    let size = Size { columns: 1, rows: 65_535 };
    assert_eq!(Size::take(&mut size.emit().into_bytes()), Some(size));
}

/// As kubelets and runtimes have said them.
#[test]
fn statuses_of_servers_are_understood() {
    let failed = |why: &str| Outcome::Failed(why.into());
    let cases = [
        ("", Outcome::Exit(0)),
        (r#"{"metadata":{},"status":"Success"}"#, Outcome::Exit(0)),
        (
            r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"137"}]}}"#,
            Outcome::Exit(137),
        ),
        (
            r#"{"status":"Failure","message":"m","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"256"}]}}"#,
            failed("no exit code: m"),
        ),
        (
            r#"{"status":"Failure","message":"container not found (\"x\")","code":500}"#,
            failed("container not found (\"x\")"),
        ),
        (r#"{"status":"Perhaps"}"#, failed("no reason given")),
        ("not JSON", failed("no status: not JSON")),
    ];
    for (said, expected) in cases {
        assert_eq!(Outcome::parse(said.as_bytes(), Version::V4), expected, "{said}");
    }
    for version in Version::ALL {
        assert_eq!(Outcome::parse(Outcome::Exit(0).emit(version).as_bytes(), version), Outcome::Exit(0));
    }
}
