//! A run folder on the disk: made, filled, left and taken up again.
//!
//! Rows are appended load by load, a load's requests and connections before the load itself, so that a row in
//! `loads.jsonl` says that the others are there. Whatever was cut off, by ctrl-C, a full disk or a lost process, a later
//! run finds the last whole load, cuts what follows it, and goes on; the folder ends as if nothing had happened.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::pages::Collected;
use crate::plan::Plan;
use crate::result::{Key, LoadRow, emit};
use crate::setting::World;
use crate::technique::Technique;

/// The plan.
pub const PLAN: &str = "plan.toml";
/// What ran it, where. The only file that differs between machines, with the report, which quotes it.
pub const ENVIRONMENT: &str = "environment.json";
/// [`crate::result::LoadRow`]s.
pub const LOADS: &str = "loads.jsonl";
/// [`crate::result::RequestRow`]s.
pub const REQUESTS: &str = "requests.jsonl";
/// [`crate::result::ConnectionRow`]s.
pub const CONNECTIONS: &str = "connections.jsonl";
/// [`crate::result::PageRow`]s.
pub const PAGES: &str = "pages.jsonl";
/// [`crate::result::ProblemRow`]s.
pub const PROBLEMS: &str = "problems.jsonl";
/// [`crate::result::LiveRow`]s, of a run in the live world.
pub const LIVE: &str = "live.jsonl";
/// [`crate::trouble::TroublesRow`]s, of a run in which things break or a browser tries again.
pub const TROUBLES: &str = "troubles.jsonl";
/// [`crate::topology::KnownRow`]s, of a run whose browser goes by what it has learned.
pub const KNOWN: &str = "known.jsonl";
/// The [`crate::summary::Summary`].
pub const SUMMARY: &str = "summary.json";

/// What ran a plan, where: kept beside the results, and no part of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Environment {
    /// Says that this file may differ where the others may not.
    pub note: String,
    /// The program's version.
    pub velodrome: String,
    /// The commit it was built from, if that was known.
    pub commit: Option<String>,
    /// The compiler's version.
    pub rustc: Option<String>,
    /// What it was built for.
    pub target: String,
    /// Cores of the machine.
    pub cores: u32,
}

impl Environment {
    /// The sentence in [`Environment::note`].
    pub const NOTE: &str = "what ran the plan; no other file here depends on the machine, but for report.html, which quotes this one";
}

/// The rows of one load as bytes, ready to append.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rendered {
    /// Its line in `loads.jsonl`.
    pub load: Vec<u8>,
    /// Its lines in `requests.jsonl`.
    pub requests: Vec<u8>,
    /// Its lines in `connections.jsonl`.
    pub connections: Vec<u8>,
    /// Its line in `live.jsonl`, if it was made in the live world.
    pub live: Vec<u8>,
    /// Its line in `troubles.jsonl`; of no use where there is no such file.
    pub troubles: Vec<u8>,
    /// Its line in `known.jsonl`, likewise.
    pub known: Vec<u8>,
}

/// A run folder open for appending.
#[derive(Debug)]
pub struct Folder {
    dir: PathBuf,
    done: u64,
    loads: File,
    requests: File,
    connections: File,
    /// In the live world.
    live: Option<File>,
    /// Where there may be any.
    troubles: Option<File>,
    /// Where the browser goes by what it has learned.
    known: Option<File>,
}

impl Folder {
    /// Makes the folder of a new run. One that holds a run of this very plan is begun anew; one that holds anything
    /// else is left alone.
    pub fn create(dir: &Path, plan: &Plan, pages: &Collected, env: &Environment) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(|e| Error::io("cannot make", dir, e))?;
        match read_plan(dir)? {
            Some(there) if there == plan.emit() => {}
            Some(_) => {
                return Err(folder(dir, "holds the run of another plan; choose another folder with --out"));
            }
            None if is_empty(dir)? => {}
            None => {
                return Err(folder(dir, "is not empty and holds no run; choose another folder with --out"));
            }
        }
        // The plan last: a folder without one is no run.
        write(dir, ENVIRONMENT, &json(env))?;
        write(dir, PAGES, &lines(pages.rows()))?;
        write(dir, PROBLEMS, &lines(pages.problems.iter()))?;
        for rows in [LOADS, REQUESTS, CONNECTIONS].into_iter().chain(beside(plan)) {
            write(dir, rows, b"")?;
        }
        write(dir, PLAN, plan.emit().as_bytes())?;
        Self::open(dir, plan, 0)
    }

    /// Takes up the run in `dir`. The plan, the pages and the program must be those with which it began. `keys` are
    /// those of the plan's loads, in order.
    pub fn resume(
        dir: &Path,
        plan: &Plan,
        pages: &Collected,
        env: &Environment,
        keys: impl Iterator<Item = Key>,
    ) -> Result<Self, Error> {
        match read_plan(dir)? {
            None => return Err(folder(dir, "holds no run to resume")),
            Some(there) if there != plan.emit() => {
                return Err(folder(
                    dir,
                    "holds the run of another plan, which cannot be resumed with this one",
                ));
            }
            Some(_) => {}
        }
        if read(dir, PAGES)? != lines(pages.rows()) || read(dir, PROBLEMS)? != lines(pages.problems.iter()) {
            return Err(folder(dir, "was begun with other pages: a recording has changed since"));
        }
        let began: Environment = serde_json::from_slice(&read(dir, ENVIRONMENT)?).map_err(|e| {
            Error::Row { file: dir.join(ENVIRONMENT), line: e.line() as u64, what: e.to_string() }
        })?;
        if (&began.velodrome, &began.commit) != (&env.velodrome, &env.commit) {
            let build = |e: &Environment| match &e.commit {
                Some(commit) => format!("{} ({commit})", e.velodrome),
                None => e.velodrome.clone(),
            };
            let what = format!("was begun by velodrome {}, and this is {}", build(&began), build(env));
            return Err(folder(dir, &what));
        }
        let done = cut(dir, plan, keys)?;
        Self::open(dir, plan, done)
    }

    fn open(dir: &Path, plan: &Plan, done: u64) -> Result<Self, Error> {
        let append = |name: &str| {
            let path = dir.join(name);
            OpenOptions::new().append(true).open(&path).map_err(|e| Error::io("cannot write", &path, e))
        };
        Ok(Self {
            dir: dir.to_owned(),
            done,
            loads: append(LOADS)?,
            requests: append(REQUESTS)?,
            connections: append(CONNECTIONS)?,
            live: live_file(plan).map(append).transpose()?,
            troubles: troubles_file(plan).map(append).transpose()?,
            known: known_file(plan).map(append).transpose()?,
        })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How many loads it holds, the first of the plan.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Appends the next load.
    pub fn append(&mut self, rows: &Rendered) -> Result<(), Error> {
        let files = [
            Some((&mut self.requests, REQUESTS, &rows.requests)),
            Some((&mut self.connections, CONNECTIONS, &rows.connections)),
            self.live.as_mut().map(|file| (file, LIVE, &rows.live)),
            self.troubles.as_mut().map(|file| (file, TROUBLES, &rows.troubles)),
            self.known.as_mut().map(|file| (file, KNOWN, &rows.known)),
            Some((&mut self.loads, LOADS, &rows.load)),
        ];
        for (file, name, bytes) in files.into_iter().flatten() {
            file.write_all(bytes).map_err(|e| Error::io("cannot write", &self.dir.join(name), e))?;
        }
        self.done += 1;
        Ok(())
    }
}

/// Reads a whole file of a run folder.
pub fn read(dir: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let path = dir.join(name);
    fs::read(&path).map_err(|e| Error::io("cannot read", &path, e))
}

/// Writes a whole file of a run folder.
pub fn write(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let path = dir.join(name);
    fs::write(&path, bytes).map_err(|e| Error::io("cannot write", &path, e))
}

/// A value as a JSON file: indented, for people who look into it.
///
/// # Panics
/// Never: what is kept has only string keys and finite numbers.
pub fn json<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = serde_json::to_vec_pretty(value).expect("string keys and finite numbers");
    out.push(b'\n');
    out
}

fn lines<T: Serialize>(rows: impl Iterator<Item = T>) -> Vec<u8> {
    let mut out = Vec::new();
    rows.for_each(|row| emit(&row, &mut out));
    out
}

fn folder(dir: &Path, what: &str) -> Error {
    Error::Folder { dir: dir.to_owned(), what: what.to_owned() }
}

fn read_plan(dir: &Path) -> Result<Option<String>, Error> {
    let path = dir.join(PLAN);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("cannot read", &path, e)),
    }
}

fn is_empty(dir: &Path) -> Result<bool, Error> {
    let mut entries = fs::read_dir(dir).map_err(|e| Error::io("cannot read", dir, e))?;
    Ok(entries.next().is_none())
}

/// The file that a run has beyond the others if it is one of the live world.
fn live_file(plan: &Plan) -> Option<&'static str> {
    (plan.world == World::Live).then_some(LIVE)
}

/// The file that a run has if it is to say what was missing and what was tried.
fn troubles_file(plan: &Plan) -> Option<&'static str> {
    plan.techniques.iter().any(Technique::makes_trouble).then_some(TROUBLES)
}

/// The file that a run has if its browser goes by what it has learned.
fn known_file(plan: &Plan) -> Option<&'static str> {
    plan.techniques.iter().any(Technique::learns).then_some(KNOWN)
}

/// The files with one row a load that a run has beyond its loads.
fn beside(plan: &Plan) -> impl Iterator<Item = &'static str> {
    [live_file(plan), troubles_file(plan), known_file(plan)].into_iter().flatten()
}

/// Cuts the files of rows behind the last load that all of them hold whole, and returns how many remain.
fn cut(dir: &Path, plan: &Plan, keys: impl Iterator<Item = Key>) -> Result<u64, Error> {
    let mut loads = Whole::open(dir, LOADS)?;
    let mut requests = Whole::open(dir, REQUESTS)?;
    let mut connections = Whole::open(dir, CONNECTIONS)?;
    let mut beside = beside(plan).map(|name| Whole::open(dir, name)).collect::<Result<Vec<_>, _>>()?;
    let mut done = 0;
    for key in keys {
        let Some(load) = loads.next::<LoadRow>()? else { break };
        if load.key != key
            || !requests.take(load.requests, &key)?
            || !connections.take(load.connections, &key)?
            || !take_one(&mut beside, &key)?
        {
            break;
        }
        done += 1;
        for file in [&mut loads, &mut requests, &mut connections].into_iter().chain(&mut beside) {
            file.kept = file.read;
        }
    }
    for file in [loads, requests, connections].into_iter().chain(beside) {
        file.cut()?;
    }
    Ok(done)
}

/// Whether each of the files with one row a load has that of `key` next.
fn take_one(files: &mut [Whole], key: &Key) -> Result<bool, Error> {
    for file in files {
        if !file.take(1, key)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A file of rows, read until the first line that is not one.
struct Whole {
    path: PathBuf,
    lines: BufReader<File>,
    line: Vec<u8>,
    /// Bytes read, and how many of them stay.
    read: u64,
    kept: u64,
}

impl Whole {
    fn open(dir: &Path, name: &str) -> Result<Self, Error> {
        let path = dir.join(name);
        let file = File::open(&path).map_err(|e| Error::io("cannot read", &path, e))?;
        Ok(Self { path, lines: BufReader::new(file), line: Vec::new(), read: 0, kept: 0 })
    }

    fn next<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, Error> {
        self.line.clear();
        let n = self.lines.read_until(b'\n', &mut self.line);
        self.read += n.map_err(|e| Error::io("cannot read", &self.path, e))? as u64;
        let whole = self.line.last() == Some(&b'\n');
        Ok(if whole { serde_json::from_slice(&self.line).ok() } else { None })
    }

    /// Whether the next `n` rows are there and belong to `key`.
    fn take(&mut self, n: u32, key: &Key) -> Result<bool, Error> {
        for _ in 0..n {
            if self.next::<Key>()?.as_ref() != Some(key) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn cut(self) -> Result<(), Error> {
        let file = OpenOptions::new().write(true).open(&self.path);
        file.and_then(|f| f.set_len(self.kept)).map_err(|e| Error::io("cannot write", &self.path, e))
    }
}
