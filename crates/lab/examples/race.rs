//! Races ten generated pages over HTTP/1.1 and SPDY/3.1 and prints where their time went.

use std::sync::atomic::AtomicBool;

use lab::folder::Environment;
use lab::network::Network;
use lab::plan::{FORMAT, Plan};

fn main() -> Result<(), lab::Error> {
    let plan = Plan {
        world: lab::setting::World::Virtual,
        format: FORMAT,
        seed: 1,
        runs: 1,
        transports: vec!["http1".into(), "spdy3.1".into()],
        pages: vec!["corpus:2012:10".into()],
        pages_max: None,
        techniques: Vec::new(),
        state: None,
        networks: vec![Network::named("seed")?, Network::named("3g")?],
    };
    let pages = lab::pages::collect(&plan.pages, None);
    let dir = std::env::temp_dir().join(format!("velodrome-example-{}", plan.short_hash()));
    let environment = Environment {
        note: Environment::NOTE.into(),
        velodrome: env!("CARGO_PKG_VERSION").into(),
        commit: None,
        rustc: None,
        target: std::env::consts::ARCH.into(),
        cores: 2,
    };
    let options = lab::race::Options {
        track: &lab::world::Track::VIRTUAL,
        dir: &dir,
        resume: false,
        threads: 2,
        environment: &environment,
        cancel: &AtomicBool::new(false),
        progress: &|_| {},
    };
    let summary = lab::race::race(&plan, &pages, options)?;
    for network in &summary.networks {
        println!("{}", network.network);
        for transport in &network.transports {
            let plt = transport.plt_ms.map_or(0.0, |e| e.value);
            let phases: Vec<_> =
                transport.phases.iter().map(|p| format!("{} {:.0}", p.phase, p.ms)).collect();
            println!("  {:8} median PLT {plt:.0} ms; mean, ms: {}", transport.transport, phases.join(", "));
        }
    }
    println!("results: {}", dir.display());
    Ok(())
}
