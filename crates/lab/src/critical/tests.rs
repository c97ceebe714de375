use base::Duration;
use page::{Resource, ScriptMode};

use super::*;
use crate::result::Key;
use crate::scratch;

/// A page whose root document refers to what follows.
struct Load {
    page: Page,
    rows: Vec<RequestRow>,
}

/// Milliseconds at which a request was discovered, sent, answered, complete and used.
type Times = [u64; 5];

impl Load {
    fn new(document: Times) -> Self {
        let mut load = Load { page: scratch::page("p"), rows: Vec::new() };
        load.page.resources.clear();
        load.with(Kind::Document, Cause::Root, document)
    }

    fn with(mut self, kind: Kind, cause: Cause, times: Times) -> Self {
        let key = Key { page: "p".into(), network: "n".into(), transport: "t".into(), run: 0 };
        let [discovered, sent, first_byte, complete, used] = times.map(|ms| ms * 1_000);
        let mut row = scratch::request_row(&key, self.rows.len() as u32, discovered);
        row.sent_us = Some(sent);
        row.first_byte_us = Some(first_byte);
        row.complete_us = Some(complete);
        row.used_us = Some(used);
        self.rows.push(row);
        self.page.resources.push(Resource { kind, cause, ..scratch::page("p").resources[0].clone() });
        self
    }

    /// What the last request waited for, in milliseconds.
    fn waiting(mut self, dns: (u64, u64), connect: (u64, u64), tls_end: Option<u64>) -> Self {
        let row = self.rows.last_mut().unwrap();
        (row.dns_start_us, row.dns_end_us) = (Some(dns.0 * 1_000), Some(dns.1 * 1_000));
        (row.connect_start_us, row.connect_end_us) = (Some(connect.0 * 1_000), Some(connect.1 * 1_000));
        row.tls_end_us = tls_end.map(|ms| ms * 1_000);
        self
    }

    /// dns, connect, tls, queued, wait, receive, compute in milliseconds.
    fn split(&self, plt_ms: u64) -> [u64; 7] {
        let phases = split(&self.page, &self.rows, plt_ms * 1_000).unwrap();
        assert_eq!(phases.total_us(), plt_ms * 1_000, "{phases:?}");
        let Phases { dns_us, connect_us, tls_us, queued_us, wait_us, receive_us, compute_us } = phases;
        [dns_us, connect_us, tls_us, queued_us, wait_us, receive_us, compute_us].map(|us| us / 1_000)
    }
}

fn found_at(offset: u64) -> Cause {
    Cause::Parser { parent: 0, offset, script: ScriptMode::Sync }
}

#[test]
fn a_single_document_is_the_phases_of_its_request() {
    let load = Load::new([0, 260, 400, 450, 470]).waiting((0, 50), (50, 150), Some(250));
    //                                dns con tls que wait rec compute
    assert_eq!(load.split(500), [50, 100, 100, 10, 140, 50, 50]);
}

/// The image was found when its reference arrived, 20 ms into the document; the document's end does not matter.
#[test]
fn an_image_follows_the_byte_that_refers_to_it() {
    let load = Load::new([0, 0, 100, 400, 400]).with(Kind::Image, found_at(1), [120, 320, 420, 600, 600]);
    assert_eq!(load.split(600), [0, 0, 0, 200, 200, 200, 0]);
}

/// A handshake that had begun for somebody else is counted from when this request needed it.
#[test]
fn set_up_is_counted_only_as_far_as_the_request_waited_for_it() {
    let load = Load::new([0, 0, 100, 200, 200])
        .with(Kind::Image, found_at(1), [150, 180, 280, 300, 300])
        .waiting((10, 20), (20, 170), None);
    assert_eq!(load.split(300), [0, 20, 0, 10, 200, 70, 0]);
}

/// The script was there at 200 and had to wait for the style sheet (400), which ran to 410; then it ran to 450.
#[test]
fn a_script_that_waits_for_a_style_sheet_passes_the_path_to_it() {
    let load = Load::new([0, 0, 100, 110, 460])
        .with(Kind::Style, found_at(1), [105, 105, 205, 400, 410])
        .with(Kind::Script, found_at(2), [105, 105, 190, 200, 450]);
    // 460 ← 450 ← 410 ← 400 compute; 400 ← 205 receive; 205 ← 105 wait; 105 ← 100 receive; 100 ← 0 wait.
    assert_eq!(load.split(460), [0, 0, 0, 0, 200, 200, 60]);
}

/// Nothing computes. The second script and the document's end were let go by the first script, at the same moment.
#[test]
fn of_things_that_end_at_one_moment_the_last_to_arrive_let_the_others_go() {
    let load = Load::new([0, 0, 100, 150, 400])
        .with(Kind::Script, found_at(1), [105, 105, 205, 400, 400])
        .with(Kind::Script, found_at(2), [105, 105, 205, 300, 400]);
    assert_eq!(load.split(400), [0, 0, 0, 0, 200, 200, 0]);
}

/// A deferred script waits for its document's last byte, at 300; a synchronous one would not.
#[test]
fn a_deferred_script_waits_for_its_document() {
    let cause = Cause::Parser { parent: 0, offset: 1, script: ScriptMode::Defer };
    let load = Load::new([0, 0, 100, 300, 320]).with(Kind::Script, cause, [110, 110, 210, 220, 310]);
    assert_eq!(load.split(320), [0, 0, 0, 0, 100, 200, 20]);
}

/// The script asks for data 30 ms after it has run, which goes through a busy connection.
#[test]
fn what_a_script_asks_for_hangs_on_its_use() {
    let cause = Cause::Completion { parent: 1, delay: Duration::from_millis(30) };
    let load = Load::new([0, 0, 100, 100, 250])
        .with(Kind::Script, found_at(1), [100, 100, 200, 220, 250])
        .with(Kind::Xhr, cause, [280, 300, 390, 400, 400]);
    assert_eq!(load.split(400), [0, 0, 0, 20, 290, 30, 60]);
}

/// An inline script wrote the reference; the parser got there when the script before it had run, at 300.
#[test]
fn a_reference_that_a_script_wrote_hangs_on_what_the_parser_waited_for() {
    let mut load = Load::new([0, 0, 100, 110, 310])
        .with(Kind::Script, found_at(1), [105, 105, 205, 290, 300])
        .with(Kind::Image, found_at(2), [305, 305, 405, 410, 410]);
    load.page.resources[2].scripted = true;
    assert_eq!(load.split(410), [0, 0, 0, 0, 300, 95, 15]);
}

#[test]
fn a_redirection_puts_two_requests_in_a_row() {
    let load =
        Load::new([0, 0, 100, 100, 100]).with(Kind::Document, Cause::Redirect(0), [100, 130, 250, 260, 260]);
    assert_eq!(load.split(260), [0, 0, 0, 30, 220, 10, 0]);
}

/// The script came out of the cache when it was found, at 110, and ran until 150.
#[test]
fn what_is_in_the_cache_is_there_when_it_is_found() {
    let mut load =
        Load::new([0, 0, 100, 120, 160]).with(Kind::Script, found_at(1), [110, 110, 110, 110, 150]);
    (load.rows[1].sent_us, load.rows[1].first_byte_us) = (None, None);
    load.rows[1].cache = Some("fresh".into());
    assert_eq!(load.split(160), [0, 0, 0, 0, 100, 10, 50]);
}

#[test]
fn what_onload_does_not_wait_for_is_not_on_the_path() {
    let mut load = Load::new([0, 0, 100, 150, 160]).with(Kind::Image, found_at(1), [120, 120, 150, 155, 155]);
    load = load.with(Kind::Image, found_at(2), [120, 120, 130, 165, 165]);
    load.rows[2].after_load = true;
    assert_eq!(load.split(170), [0, 0, 0, 0, 100, 50, 20]);
}

#[test]
fn a_row_that_lacks_a_moment_gives_no_split_instead_of_a_wrong_one() {
    let mut load = Load::new([0, 0, 100, 150, 160]);
    load.rows[0].sent_us = None;
    assert_eq!(split(&load.page, &load.rows, 160_000), None);
}

/// The image was asked for with the document and there at 200; the byte that refers to it came at 300, which is what it waited for.
#[test]
fn what_was_there_before_the_page_came_to_it_waited_for_the_page() {
    let mut load = Load::new([0, 0, 100, 400, 450]).with(Kind::Image, found_at(1), [0, 10, 110, 200, 310]);
    load.rows[1].needed_us = Some(300_000);
    // 310 ← 300 compute; 300 ← 100 the document's receive; 100 ← 0 its wait.
    assert_eq!(load.split(310), [0, 0, 0, 0, 100, 200, 10]);
    load.rows[1].needed_us = Some(150_000);
    // Under way when the page came to it: its own phases. 310 ← 200 compute; 200 ← 110 receive; 110 ← 10 wait; 10 ← 0 queued.
    assert_eq!(load.split(310), [0, 0, 0, 10, 100, 90, 110]);
}
