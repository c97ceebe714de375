//! Servers that are no good at pipelines, over real sockets; what else uses the line; and sockets that are paced. What is held is what came,
//! in which order and by which way, and what was learned of it; how long it took is nobody's concern here.

use client::{Pipelining, SentOn, Standing};
use load::{BadPipeliners, HostStanding, Load, Which};
use origin::Pipelines;
use page::{Cause, Host, Kind, Resource, ScriptMode};

use super::*;

/// A document and 24 images, each of another length. Servers think for longer than a round trip takes, so that requests that follow
/// each other meet unanswered ones.
fn images() -> Page {
    let document = Resource { body_len: 10_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    let cause = Cause::Parser { parent: 0, offset: 100, script: ScriptMode::Sync };
    let image = |n: u64| Resource {
        body_len: 1_000 + n,
        think: Duration::from_millis(40),
        ..Resource::get(format!("/{n}.png"), Kind::Image, cause)
    };
    let resources = std::iter::once(document).chain((0..24).map(image)).collect();
    Page::new("images", vec![Host::new("a.example")], resources).expect("a valid page")
}

/// Loads the page from a host that is known as good at pipelines, and is not.
fn load(world: &World, page: &Page, pipelines: Pipelines) -> Load {
    let mut setup = Setup { think: origin::Think::Recorded, ..setup(Transport::Http1) };
    setup.techniques.pipelining = Some(Pipelining::FIREFOX);
    setup.memory.pipelining = page.hosts.iter().map(HostStanding::green).collect();
    setup.servers.bad_pipeliners = vec![BadPipeliners { pipelines, which: Which::Share(1.0) }];
    let run = world.load(page, &setup, 1).unwrap();
    assert_eq!((&run.load.outcome, run.unmet), (&Outcome::Complete, vec![]), "{pipelines:?}");
    run.load
}

fn pipelined(load: &Load) -> usize {
    load.requests.iter().filter(|r| r.sent_on == Some(SentOn::Pipelined)).count()
}

/// Lengths of bodies, in the order of the page's resources.
fn lengths(load: &Load) -> Vec<u64> {
    load.requests.iter().map(|r| r.body_bytes).collect()
}

fn expected(page: &Page) -> Vec<u64> {
    page.resources.iter().map(|r| r.body_len).collect()
}

/// What the browser says of the host afterwards: how it stands, and what is held against it.
fn known(load: &Load) -> (Standing, u32) {
    let [known] = &load.memory.pipelining[..] else { panic!("one host: {:?}", load.memory.pipelining) };
    assert_eq!(known.host, "http://a.example");
    (known.state.standing(), known.state.penalty())
}

#[test]
fn a_good_server_answers_a_pipeline_in_order_and_stays_trusted() {
    let (Some(world), page) = (world(), images()) else { return };
    let load = load(&world, &page, Pipelines::Well);
    assert_eq!((lengths(&load), known(&load)), (expected(&page), (Standing::Green, 0)));
    assert!(pipelined(&load) > 0 && load.connections.iter().any(|c| c.record.requests > 1));
}

/// It closes amid a pipeline, or sends nonsense and closes: what it has not answered is asked for again on other connections, each body
/// comes once, and the host is held for what it is. Corruption weighs 7,000 points, as in the virtual world.
#[test]
fn a_server_that_closes_or_corrupts_costs_its_connections_and_is_red() {
    let (Some(world), page) = (world(), images()) else { return };
    let well = load(&world, &page, Pipelines::Well);
    for (pipelines, least) in [(Pipelines::Refusing, 1), (Pipelines::Corrupting, 6_900)] {
        let load = load(&world, &page, pipelines);
        assert_eq!(lengths(&load), expected(&page), "{pipelines:?}");
        let (standing, penalty) = known(&load);
        assert!(standing == Standing::Red && penalty >= least, "{pipelines:?}: {standing:?}, {penalty}");
        assert!(load.connections.len() > well.connections.len(), "{pipelines:?}");
        assert!(load.connections.iter().any(|c| c.record.closed.is_some()), "{pipelines:?}");
    }
}

/// It takes two seconds longer for each request that it finds behind another: the pipeline is cancelled, and its requests go alone.
#[test]
fn a_server_that_stalls_is_not_waited_for_and_is_red() {
    let (Some(world), page) = (world(), images()) else { return };
    let load = load(&world, &page, Pipelines::Stalling(Duration::from_secs(2)));
    assert_eq!((lengths(&load), known(&load).0), (expected(&page), Standing::Red));
}

/// Nobody can tell that answers have changed places: the browser takes the one for the other. All come, and each once.
#[test]
fn answers_in_others_places_are_all_there() {
    let (Some(world), page) = (world(), images()) else { return };
    let load = load(&world, &page, Pipelines::Reordering);
    let (mut came, mut sent) = (lengths(&load), expected(&page));
    assert_ne!(came, sent, "some have another's place");
    came.sort_unstable();
    sent.sort_unstable();
    assert_eq!((came, known(&load).0), (sent, Standing::Green));
    assert!(pipelined(&load) > 0);
}

/// A transfer without end takes its part of the line until the page is there, and a video brings its blocks; neither is part of the page.
#[test]
fn what_else_uses_the_line_is_on_it() {
    let (Some(world), page) = (world(), page()) else { return };
    let run = |traffic| {
        let mut setup = setup(Transport::Http1);
        setup.techniques.traffic = traffic;
        let run = world.load(&page, &setup, 1).unwrap();
        assert_eq!((&run.load.outcome, run.unmet), (&Outcome::Complete, vec![]), "{traffic:?}");
        let own = page.resources.len();
        assert_eq!(lengths(&run.load)[..own], expected(&page), "{traffic:?}");
        let beside: Vec<u64> = lengths(&run.load)[own..].to_vec();
        (beside, run.load.down.bytes_out)
    };
    let (nothing, plain) = run(None);
    assert!(nothing.is_empty());
    let (bulk, with_bulk) = run(Some(load::Traffic::Bulk));
    assert!(bulk.len() == 1 && bulk[0] > 0 && with_bulk >= plain + bulk[0], "{bulk:?}, {with_bulk}");
    let (video, _) = run(Some(load::Traffic::Video));
    // The first block is asked for with the page, and the page is larger than it.
    assert_eq!((video[0], video.iter().all(|len| *len <= 65_536)), (65_536, true));
}

/// 100 kB from a server whose windows double over a line that is faster: half of each window stands in the queue, unless it is paced. The
/// first ten segments are not (`tcp_update_skb_after_send`). The emulator may be held up, so that it is once in three times.
#[test]
fn what_a_paced_server_sends_does_not_stand_in_the_queue() {
    let Some(world) = world() else { return };
    let document = Resource { body_len: 100_000, ..Resource::get("/", Kind::Document, Cause::Root) };
    let page = Page::new("large", vec![Host::new("a.example")], vec![document]).expect("a valid page");
    let mut setup = setup(Transport::Http1);
    for path in [&mut setup.up, &mut setup.down] {
        path.rate = link::Rate::Constant(Bitrate::from_kbps(50_000).unwrap());
        path.delay = Duration::from_millis(25);
        path.queue.limit_bytes = 1 << 22;
    }
    setup.dns = Duration::from_millis(50);
    let queue = |paced: bool| {
        let mut setup = setup.clone();
        (setup.client_tcp.pacing, setup.server_tcp.pacing) = (paced, paced);
        let run = world.load(&page, &setup, 1).unwrap();
        assert_eq!((&run.load.outcome, run.unmet), (&Outcome::Complete, vec![]));
        let knob = |end: &str| {
            let of_end = |k: &&Knob| (k.end, k.name.as_str()) == (end, "SO_MAX_PACING_RATE");
            run.kernel.knobs.iter().find(of_end).map(|k| k.got.clone())
        };
        let rate = paced.then(|| (1_u64 << 40).to_string());
        assert_eq!((knob("client"), knob("server")), (rate.clone(), rate), "as the sockets say");
        run.load.down.queue_bytes_max
    };
    let tries: Vec<_> = (0..3).map(|_| (queue(true), queue(false))).collect();
    assert!(tries.iter().any(|(paced, free)| paced < free), "{tries:?}");
}
