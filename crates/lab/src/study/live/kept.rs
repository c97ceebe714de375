//! The live loads that are done, on the disk: a line each, behind one that says of what.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Options, Sample, Step, Task};
use crate::error::Error;

/// The file.
const FILE: &str = "live.jsonl";

/// What is kept of a load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    pub sample: Sample,
    pub unmet: Vec<String>,
    pub late_us: Option<f64>,
    pub waited_ms: Option<f64>,
}

/// The first line: lines behind another one are of other loads.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
struct Head {
    study: String,
    /// Of the study's file.
    fingerprint: String,
    minutes: f64,
    at_once: usize,
    loads: u64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    round: u64,
    repeat: u32,
    place: usize,
    arm: usize,
    n: u64,
    #[serde(flatten)]
    row: Row,
}

/// The loads that are done.
pub(super) struct Kept {
    path: PathBuf,
    file: File,
    pub rows: BTreeMap<Task, Row>,
}

impl Kept {
    /// Begins anew, or takes up what is there.
    pub fn open(options: Options<'_>, study: &str, file: &str, loads: u64) -> Result<Self, Error> {
        let Options { dir, resume, minutes, at_once, .. } = options;
        fs::create_dir_all(dir).map_err(|e| Error::io("cannot make", dir, e))?;
        let path = dir.join(FILE);
        let fingerprint = format!("{:016x}", base::rng::derive(0, file.as_bytes()));
        let head = Head { study: study.to_owned(), fingerprint, minutes, at_once, loads };
        let io = |action| {
            let path = path.clone();
            move |e| Error::Io { action, path, source: e }
        };
        let (mut rows, mut whole) = (BTreeMap::new(), 0);
        if resume && path.exists() {
            (rows, whole) = read(File::open(&path).map_err(io("cannot read"))?, &head)
                .map_err(|what| Error::Folder { dir: dir.to_owned(), what })?;
        }
        let file = OpenOptions::new().create(true).write(true).truncate(false).open(&path);
        let mut file = file.map_err(io("cannot write"))?;
        // What follows the last whole line was cut off.
        file.set_len(whole).map_err(io("cannot write"))?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).map_err(io("cannot write"))?;
        if whole == 0 {
            file.write_all(&line(&head)).map_err(io("cannot write"))?;
        }
        Ok(Self { path, file, rows })
    }

    pub fn keep(&mut self, task: Task, row: Row) -> Result<(), Error> {
        let Task { step: Step { round, repeat, place }, arm, n } = task;
        let text = line(&Line { round, repeat, place, arm, n, row: row.clone() });
        self.file.write_all(&text).map_err(|e| Error::io("cannot write", &self.path, e))?;
        self.rows.insert(task, row);
        Ok(())
    }
}

fn line<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = serde_json::to_vec(value).expect("string keys and finite numbers");
    out.push(b'\n');
    out
}

/// What a file holds of the run that `head` is of, and how many of its bytes are whole lines.
fn read(file: impl std::io::Read, head: &Head) -> Result<(BTreeMap<Task, Row>, u64), String> {
    let (mut lines, mut text) = (BufReader::new(file), Vec::new());
    let (mut rows, mut whole) = (BTreeMap::new(), 0);
    loop {
        text.clear();
        let length = lines.read_until(b'\n', &mut text).map_err(|e| e.to_string())?;
        if text.last() != Some(&b'\n') {
            return Ok((rows, whole));
        }
        if whole == 0 {
            let there: Option<Head> = serde_json::from_slice(&text).ok();
            if there.as_ref() != Some(head) {
                return Err("holds live loads of another run, which cannot be resumed with this command; leave out --resume".into());
            }
        } else {
            let Ok(Line { round, repeat, place, arm, n, row }) = serde_json::from_slice(&text) else {
                return Ok((rows, whole));
            };
            rows.insert(Task { step: Step { round, repeat, place }, arm, n }, row);
        }
        whole += length as u64;
    }
}
