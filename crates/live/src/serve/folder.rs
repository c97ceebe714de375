//! A folder of files as a site.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use base::{BodyRange, Chunk, Fields, RequestHead, ResponseHead};
use bytes::BytesMut;
use origin::{Answer, BadPushRule, Push, PushRules, Site, push_priority};
use page::Kind;
use percent_encoding::percent_decode;

use super::Content;

/// What becomes of requests with a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Uploads {
    /// They get 405.
    Refused,
    /// They are read to the end and forgotten; the answer is text, `LENGTH CRC32` (decimal, and 8 hexadecimal digits of the
    /// CRC-32 of IEEE 802.3), by which the client sees that all of it came.
    Counted,
}

/// Files of at most this many bytes are read when they are asked for, larger ones as they are sent.
const SMALL: u64 = 64 * 1024;
/// Larger files that are kept open.
const OPEN_MAX: usize = 256;

/// Serves the files of a folder: GET and HEAD, `index.html` for folders, types by extension, nothing outside the folder.
/// What is a link to somewhere else is not followed.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    uploads: Uploads,
    pushes: PushRules,
    /// Large files asked for so far; a body's source is an index here.
    large: Vec<Large>,
    /// Indices of those that are open, the one longest unused first.
    open: Vec<u32>,
}

#[derive(Debug)]
struct Large {
    path: PathBuf,
    len: u64,
    file: Option<File>,
}

/// An upload that is being counted.
#[derive(Clone, Default, Debug)]
pub struct Upload {
    len: u64,
    crc: crc32fast::Hasher,
}

impl Folder {
    /// The folder at `root`.
    ///
    /// # Errors
    /// If it is not there, or is no folder.
    pub fn new(root: &Path, uploads: Uploads) -> io::Result<Self> {
        let root = root.canonicalize()?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root, uploads, pushes: PushRules::default(), large: Vec::new(), open: Vec::new() })
    }

    /// Pushes by these rules.
    ///
    /// # Errors
    /// A rule that names what is not in the folder.
    pub fn with_pushes(mut self, rules: PushRules) -> Result<Self, BadPushRule> {
        rules.check(|path| self.find(path.as_bytes()).is_ok())?;
        self.pushes = rules;
        Ok(self)
    }

    /// The file that a request's path names.
    fn find(&self, path: &[u8]) -> Result<PathBuf, u16> {
        let path = path.split(|b| *b == b'?').next().unwrap_or_default();
        let path: Vec<u8> = percent_decode(path).collect();
        let path = std::str::from_utf8(&path).map_err(|_| 400_u16)?;
        if path.contains('\0') {
            return Err(400);
        }
        let mut file = self.root.join(path.trim_start_matches('/'));
        if file.is_dir() {
            file.push("index.html");
        }
        // Whatever the path was made of (`..`, links), what counts is where it leads.
        let file = file.canonicalize().map_err(|_| 404_u16)?;
        if file.starts_with(&self.root) && file.is_file() { Ok(file) } else { Err(404) }
    }

    /// The file with what is pushed along.
    fn get(&mut self, request: &RequestHead) -> Answer {
        let mut answer = self.answer_to(&request.path);
        if answer.head.status == 200 && &*request.method == b"GET" {
            let paths: Vec<String> = self.pushes.pushes(&request.path).map(str::to_owned).collect();
            answer.pushes = paths.into_iter().filter_map(|path| self.push(path, request)).collect();
        }
        answer
    }

    /// A file that has gone since the rules were checked is not pushed.
    fn push(&mut self, path: String, request: &RequestHead) -> Option<Push> {
        let Answer { head, body, .. } = self.answer_to(path.as_bytes());
        let kind = match head.fields.get_str("content-type") {
            Some("text/css") => Kind::Style,
            Some(script) if script.ends_with("javascript") => Kind::Script,
            Some(image) if image.starts_with("image/") => Kind::Image,
            Some(font) if font.starts_with("font/") => Kind::Font,
            _ => Kind::Other,
        };
        let request = RequestHead { path: path.into(), fields: Fields::new(), ..request.clone() };
        (head.status == 200).then(|| Push { request, head, body, priority: push_priority(kind) })
    }

    fn answer_to(&mut self, path: &[u8]) -> Answer {
        match self.find(path).map(|file| self.open(&file)) {
            Ok(Ok(answer)) => answer,
            Ok(Err(e)) if e.kind() == io::ErrorKind::PermissionDenied => Answer::bare(403),
            Ok(Err(_)) => Answer::bare(404),
            Err(status) => Answer::bare(status),
        }
    }

    fn open(&mut self, path: &Path) -> io::Result<Answer> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut fields = Fields::new();
        let kind = mime_guess::from_path(path).first_or_octet_stream();
        fields.push("content-type", kind.essence_str().to_owned());
        fields.push("content-length", len.to_string());
        let head = ResponseHead { status: 200, fields };
        if len <= SMALL {
            let mut bytes = vec![0; len as usize];
            file.read_exact_at(&mut bytes, 0)?;
            return Ok(Answer::new(head, Chunk::from(bytes)));
        }
        let known = self.large.iter().position(|l| l.len == len && l.path == path);
        let source = known.unwrap_or_else(|| {
            self.large.push(Large { path: path.to_owned(), len, file: None });
            self.large.len() - 1
        }) as u32;
        self.keep(source, file);
        Ok(Answer::new(head, BodyRange { source, start: 0, len }.into()))
    }

    /// Keeps a file open, in place of the one longest unused.
    fn keep(&mut self, source: u32, file: File) {
        self.open.retain(|s| *s != source);
        if self.open.len() >= OPEN_MAX {
            let oldest = self.open.remove(0);
            self.large[oldest as usize].file = None;
        }
        self.open.push(source);
        self.large[source as usize].file = Some(file);
    }
}

impl Site for Folder {
    type Upload = Upload;

    fn begin(&mut self, _: &RequestHead) -> Upload {
        Upload::default()
    }

    fn upload(&mut self, upload: &mut Upload, chunk: &Chunk) {
        upload.len += chunk.len();
        if let Chunk::Bytes(bytes) = chunk {
            upload.crc.update(bytes);
        }
    }

    fn answer(&mut self, request: &RequestHead, upload: Upload) -> Answer {
        match &*request.method {
            b"GET" | b"HEAD" => self.get(request),
            b"POST" | b"PUT" if self.uploads == Uploads::Counted => {
                let text = format!("{} {:08x}\n", upload.len, upload.crc.finalize());
                let mut fields = Fields::new();
                fields.push("content-type", "text/plain");
                fields.push("content-length", text.len().to_string());
                Answer::new(ResponseHead { status: 200, fields }, text.into_bytes().into())
            }
            _ => {
                let mut answer = Answer::bare(405);
                let counted = if self.uploads == Uploads::Counted { ", POST, PUT" } else { "" };
                answer.head.fields.push("allow", format!("GET, HEAD{counted}"));
                answer
            }
        }
    }
}

impl Content for Folder {
    fn read(&mut self, range: BodyRange, out: &mut BytesMut) -> io::Result<()> {
        if range.source == BodyRange::FILLER {
            out.resize(out.len() + range.len as usize, 0);
            return Ok(());
        }
        let large = &self.large[range.source as usize];
        if large.file.is_none() {
            let file = File::open(&large.path)?;
            self.keep(range.source, file);
        }
        let from = out.len();
        out.resize(from + range.len as usize, 0);
        let file = self.large[range.source as usize].file.as_ref().expect("it was opened");
        file.read_exact_at(&mut out[from..], range.start).inspect_err(|_| out.truncate(from))
    }
}
