//! Where pages come from: HAR files, folders of them, and generated corpora.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use page::Page;

use crate::result::{AssumptionRow, PageRow, ProblemRow};

/// Pages in the order of their sources, and what could not be read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Collected {
    /// The pages; their ids are unique.
    pub pages: Vec<Page>,
    /// A fingerprint of each page's source.
    pub fingerprints: Vec<u64>,
    /// What could not be read.
    pub problems: Vec<ProblemRow>,
}

/// Pages of a corpus where no number is given.
pub const CORPUS_PAGES: usize = 300;

/// The most pages of a corpus.
pub const CORPUS_PAGES_MAX: usize = 100_000;

/// The seed of a corpus where none is given. It is not the plan's: another seed for chance leaves the pages alone.
pub const CORPUS_SEED: u64 = 1;

/// How deep folders are searched.
const DEPTH_MAX: u32 = 32;

/// Reads the pages of `sources`, at most `pages_max`: each a `.har` or `.har.gz` file, a folder, searched in the order
/// of its names, or `corpus:NAME[:COUNT[:SEED]]`. What cannot be read is a problem; the rest is read on.
pub fn collect(sources: &[String], pages_max: Option<u32>) -> Collected {
    let max = pages_max.map_or(usize::MAX, |max| max as usize);
    let mut out = Collected::default();
    for source in sources {
        if out.pages.len() >= max {
            break;
        }
        match source.strip_prefix("corpus:") {
            Some(corpus) => out.generate(source, corpus),
            None => out.read(Path::new(source), 0, max),
        }
    }
    out.pages.truncate(max);
    out.fingerprints.truncate(max);
    make_unique(&mut out.pages);
    out
}

impl Collected {
    /// The rows of `pages.jsonl`.
    pub fn rows(&self) -> impl Iterator<Item = PageRow> {
        self.pages.iter().zip(&self.fingerprints).map(|(page, print)| PageRow {
            page: page.id.clone(),
            title: page.title.clone(),
            url: page.url.clone(),
            hosts: page.hosts.len() as u32,
            requests: page.resources.len() as u32,
            bytes: page.body_bytes(),
            on_load_us: page.recorded.on_load.map(|d| d.as_micros()),
            source: page.source.file.clone(),
            fingerprint: format!("{print:016x}"),
            assumptions: page
                .assumptions
                .iter()
                .map(|a| AssumptionRow { kind: a.kind.clone(), detail: a.detail.clone(), count: a.count })
                .collect(),
        })
    }

    fn problem(&mut self, file: &Path, what: impl ToString) {
        let file = file.display().to_string();
        self.problems.push(ProblemRow { file, entry: None, field: None, what: what.to_string() });
    }

    fn refuse(&mut self, error: page::Error) {
        let page::Error { file, entry, url, field, fault } = error;
        let what = url.map_or_else(|| fault.to_string(), |url| format!("{fault} ({url})"));
        self.problems.push(ProblemRow {
            file,
            entry: entry.map(|e| e as u64),
            field: field.map(String::from),
            what,
        });
    }

    fn generate(&mut self, source: &str, corpus: &str) {
        let mut parts = corpus.split(':');
        let name = parts.next().unwrap_or_default();
        let count = parts.next().map_or(Some(CORPUS_PAGES), |s| s.parse().ok());
        let seed = parts.next().map_or(Some(CORPUS_SEED), |s| s.parse().ok());
        let (Some(count @ 1..=CORPUS_PAGES_MAX), Some(seed), None) = (count, seed, parts.next()) else {
            let what = format!(
                "a corpus is corpus:NAME, corpus:NAME:COUNT (1–{CORPUS_PAGES_MAX}) or corpus:NAME:COUNT:SEED"
            );
            return self.problem(Path::new(source), what);
        };
        match page::corpus::generate(name, count, seed) {
            Ok(pages) => {
                let print = |page: &Page| base::rng::derive(seed, page.id.as_bytes());
                self.fingerprints.extend(pages.iter().map(print));
                self.pages.extend(pages);
            }
            Err(error) => self.refuse(error),
        }
    }

    fn read(&mut self, path: &Path, depth: u32, max: usize) {
        match fs::metadata(path) {
            Err(e) => self.problem(path, e),
            Ok(meta) if meta.is_dir() => self.read_folder(path, depth, max),
            Ok(_) => self.read_file(path),
        }
    }

    fn read_folder(&mut self, folder: &Path, depth: u32, max: usize) {
        if depth >= DEPTH_MAX {
            return self.problem(folder, format!("folders are searched {DEPTH_MAX} deep"));
        }
        let entries = fs::read_dir(folder).and_then(|entries| entries.map(|e| Ok(e?.path())).collect());
        let mut paths: Vec<PathBuf> = match entries {
            Ok(paths) => paths,
            Err(e) => return self.problem(folder, e),
        };
        paths.sort();
        let (pages, problems) = (self.pages.len(), self.problems.len());
        for path in paths {
            if self.pages.len() >= max {
                return;
            }
            // A folder that is a link may lead back here.
            if path.is_dir() && !path.is_symlink() || is_har(&path) {
                self.read(&path, depth + 1, max);
            }
        }
        if depth == 0 && (pages, problems) == (self.pages.len(), self.problems.len()) {
            self.problem(folder, "no .har or .har.gz file in this folder");
        }
    }

    fn read_file(&mut self, path: &Path) {
        match page::har::read(path).map(|pages| (pages, fs::read(path))) {
            Err(error) => self.refuse(error),
            Ok((_, Err(e))) => self.problem(path, e),
            Ok((pages, Ok(bytes))) => {
                let print = base::rng::derive(0, &bytes);
                self.fingerprints
                    .extend(pages.iter().map(|p| base::rng::derive(print, p.source.page.as_bytes())));
                self.pages.extend(pages);
            }
        }
    }
}

fn is_har(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".har") || name.ends_with(".har.gz")
}

/// Two files may call their pages alike: the second of a name becomes `name-2`.
fn make_unique(pages: &mut [Page]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for page in pages {
        let name = page.id.clone();
        while seen.contains_key(&page.id) {
            let n = seen.entry(name.clone()).or_insert(1);
            *n += 1;
            let suffix = format!("-{n}");
            let keep = name.len().min(ID_MAX - suffix.len());
            page.id = format!("{}{suffix}", &name[..keep]);
        }
        seen.insert(page.id.clone(), 1);
    }
}

/// [`Page::validate`] takes no longer id.
const ID_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_named_and_the_rest_is_read() {
        let dir = crate::scratch::Dir::new("pages");
        let empty = dir.path().display().to_string();
        let sources =
            ["/none/a.har", &empty, "corpus:none", "corpus:2012:x", "corpus:2012:0", "corpus:2012:1:2:3"];
        let out = collect(&sources.map(String::from), None);
        let says: Vec<_> = out.problems.iter().map(ToString::to_string).collect();
        assert!(says[0].starts_with("/none/a.har: "), "{says:?}");
        assert!(says[1].ends_with("no .har or .har.gz file in this folder"), "{says:?}");
        assert!(says[2].starts_with("corpus:none: no such corpus; there are 2010"), "{says:?}");
        assert!(says[3..].iter().all(|s| s.contains("a corpus is corpus:NAME")), "{says:?}");
        assert_eq!(says.len(), 6);
        assert!(says.iter().all(|s| !s.contains('\n')));
    }
}
