//! The whole world against arithmetic: a link that is full carries its rate, and loses what it was asked to lose. The table
//! stands in `docs/closed-forms.md`; with `PRINT` set the test prints it.

use std::fmt::Write;

use base::{Bitrate, Duration};
use client::Transport;
use load::{Outcome, Setup};
use page::{Cause, Host, Kind, Page, Resource};

const HEAD: &str = "One download through the whole world. Utilisation: payload and headers that left the link between the first byte of \
the response and its last, against the rate. Loss: packets lost of those that entered, with the 99 % interval for the asked share.

| transport | down kbit/s, RTT ms | bytes | asked loss, % | utilisation, % | packets | lost, % | 99 % interval |
|---|---|---:|---:|---:|---:|---:|---|
";

/// A page that is one document of `len` bytes.
fn download(len: u64) -> Page {
    let document = Resource { body_len: len, ..Resource::get("/", Kind::Document, Cause::Root) };
    Page::new("download", vec![Host::new("a.example")], vec![document]).expect("a valid page")
}

fn row(out: &mut String, transport: Transport, (kbps, rtt_ms): (u64, u64), len: u64, loss_pct: f64) {
    let rate = Bitrate::from_kbps(kbps).expect("not zero");
    let rtt = Duration::from_millis(rtt_ms);
    let mut setup = Setup::new(transport);
    setup.give_up = Duration::from_secs(1_000_000);
    setup.down.rate = link::Rate::Constant(rate);
    setup.down.loss = link::LossConfig::Bernoulli { p: loss_pct / 100.0 };
    setup.down.queue.limit_bytes = rate.bytes_in(rtt) * 4;
    for path in [&mut setup.down, &mut setup.up] {
        path.delay = rtt / 2;
    }
    let load = sim::load(&download(len), &setup, 1);
    assert_eq!(load.outcome, Outcome::Complete);
    let first = load.moments.first_byte.expect("a first byte");
    let took = load.moments.load.expect("loaded").since(first);
    let full = rate.bytes_in(took) as f64;
    let utilisation = load.down.bytes_out as f64 / full * 100.0;
    let (packets, lost) = (load.down.packets_in as f64, load.down.dropped_loss as f64);
    let p = loss_pct / 100.0;
    let half = 2.576 * (p * (1.0 - p) / packets).sqrt() * 100.0;
    let share = lost / packets * 100.0;
    assert!((share - loss_pct).abs() <= half, "asked {loss_pct} %, lost {share} %");
    if loss_pct == 0.0 {
        assert!((99.0..=100.01).contains(&utilisation), "{transport} at {kbps}: {utilisation} %");
    }
    let interval = format!("{:.3}–{:.3}", (loss_pct - half).max(0.0), loss_pct + half);
    let utilisation = if loss_pct == 0.0 { format!("{utilisation:.2}") } else { "–".into() };
    writeln!(
        out,
        "| {transport} | {kbps}, {rtt_ms} | {len} | {loss_pct} | {utilisation} | {packets} | {share:.3} | {interval} |"
    )
    .expect("a string takes all");
}

fn table() -> String {
    let mut out = HEAD.to_owned();
    for transport in [Transport::Http1, Transport::Spdy(spdy::Version::V3_1)] {
        for (line, len) in [((400, 400), 20_000_000), ((2_000, 100), 20_000_000), ((20_000, 4), 50_000_000)] {
            row(&mut out, transport, line, len, 0.0);
        }
        for loss_pct in [0.1, 1.0, 5.0] {
            row(&mut out, transport, (20_000, 4), 200_000_000, loss_pct);
        }
    }
    out
}

#[test]
fn a_full_link_carries_its_rate_and_loses_what_it_was_asked_to() {
    let computed = table();
    if std::env::var_os("PRINT").is_some() {
        print!("{computed}");
        return;
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/closed-forms.md");
    let text = std::fs::read_to_string(file).expect("docs/closed-forms.md");
    let written = text.split_once("<!-- link -->\n").expect("the mark before the table").1;
    assert!(
        written.starts_with(&computed),
        "docs/closed-forms.md is not what `PRINT=1 cargo test -p velodrome-sim --test closed_forms` prints: put that in\n{computed}"
    );
}
