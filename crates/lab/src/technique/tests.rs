use super::*;
use crate::network::Network;
use crate::plan::{FORMAT, Plan};
use crate::result::{ConnectionRow, Key};
use crate::setting::{Tls, TlsScope, World};

/// On a line where round trips are what a page waits for: on one that is full, what comes earlier changes who waits, and no more.
fn plan(transports: &[&str], tls: Tls, techniques: &[&str]) -> Plan {
    let mut network = Network::named("100000/100000/200").unwrap();
    network.tls = tls;
    network.tls_scope = TlsScope::Everywhere;
    Plan {
        format: FORMAT,
        world: World::Virtual,
        seed: 1,
        runs: 1,
        transports: transports.iter().map(ToString::to_string).collect(),
        pages: vec!["corpus:2012:2".into()],
        pages_max: None,
        techniques: techniques.iter().map(|t| t.parse().unwrap()).collect(),
        state: None,
        networks: vec![network],
    }
}

/// The load of the plan's first page over its first transport.
fn load(plan: &Plan) -> load::Load {
    plan.check().unwrap();
    let page = &crate::pages::collect(&plan.pages, None).pages[0];
    let setup = crate::record::setup(&plan.networks[0], plan.transports()[0], &plan.techniques).unwrap();
    let setup = remembering(&setup, &plan.techniques, page, 7);
    let load = sim::load(page, &setup, 7);
    assert_eq!(load.outcome, load::Outcome::Complete);
    load
}

fn plt(load: &load::Load) -> f64 {
    load.plt().unwrap().as_millis_f64()
}

#[test]
fn servers_that_are_named_in_no_way_are_refused_with_the_way_to_name_them() {
    for text in [
        "bad-pipeliners",
        "bad-pipeliners=stall",
        "bad-pipeliners=slow:0.1",
        "bad-pipeliners=stall:0",
        "bad-pipeliners=stall:1.5",
        "bad-pipeliners=stall:0.6+close:0.6",
        "bad-pipeliners=stall:localhost",
        "server-idle=close",
        "server-idle=close:0",
        "ipv6",
        "ipv6=near",
        "ipv6=lost:0",
        "happy-eyeballs=v3",
    ] {
        let says = text.parse::<Technique>().unwrap_err().to_string();
        assert!(says.contains("is not how") && says.contains(": "), "{says}");
    }
}

#[test]
fn hosts_are_green_if_that_is_said_and_after_visits_as_far_as_they_have_shown() {
    let page = &crate::pages::collect(&["corpus:2012:1".into()], None).pages[0];
    let standings = |techniques: &[&str]| {
        let plan = plan(&["http1"], Tls::None, techniques);
        plan.check().unwrap();
        let setup = crate::record::setup(&plan.networks[0], plan.transports()[0], &plan.techniques).unwrap();
        remembering(&setup, &plan.techniques, page, 7).memory.pipelining
    };
    assert!(standings(&["pipelining"]).is_empty(), "nothing was visited before");
    let green = standings(&["pipelining", "green-hosts"]);
    assert_eq!(green.len(), page.hosts.len());
    assert!(green.iter().all(|known| known.state == client::HostState::green()));
    let learned = standings(&["pipelining", "visits=2"]);
    assert!(!learned.is_empty() && learned.len() < page.hosts.len(), "of hosts that were asked enough");
    let grown = standings(&["pipelining", "visits=2", "green-hosts"]);
    assert!(grown.iter().any(|known| known.state.is_proven()));
}

#[test]
fn a_race_may_have_bad_pipeliners_and_families_that_race() {
    let with = |techniques: &[&str]| load(&plan(&["http1"], Tls::None, techniques));
    let good = with(&["pipelining", "green-hosts"]);
    let bad = with(&["pipelining", "green-hosts", "bad-pipeliners=close:1"]);
    assert!(bad.memory.pipelining.iter().any(|known| known.state.standing() == client::Standing::Red));
    assert!(bad.connections.len() > good.connections.len());
    let racing = with(&["happy-eyeballs", "ipv6=lost"]);
    let tried = racing.connections.iter().filter(|c| c.record.purpose == client::Purpose::Alternate);
    assert!(tried.count() > 0, "each first address is lost");
    assert!(plt(&racing) > plt(&with(&["ipv6=same"])) + 249.0);
}

#[test]
fn what_is_written_is_read() {
    let written = [
        "false-start",
        "preconnect=learned",
        "preconnect=successor",
        "preconnect=blind-two",
        "visits=3",
        "racing=250",
        "racing=12.5",
        "tls-wait",
        "pipelining=32",
        "pipelining-xhr",
        "green-hosts",
        "bad-pipeliners=stall:0.1",
        "bad-pipeliners=reorder:0.1+close:a.example,b.example+corrupt:0.25+ignore:0.5",
        "server-idle=close:5",
        "server-idle=408:0.5",
        "happy-eyeballs=rfc8305",
        "happy-eyeballs=chrome",
        "ipv6=lost",
        "ipv6=same:0.5",
        "ipv6=300:a.example",
        "retry=firefox",
        "retry=reloading",
        "timeouts",
        "spdy-hosts=page",
        "spdy-hosts=first-party",
        "spdy-hosts=a.example,b.example",
        "cert-checks=ocsp",
        "cert-checks=chain",
        "cert-checks=ocsp+chain",
        "cert-timeout=2000",
        "stapling",
        "pinned",
        "fault=refuse:cdn.example",
        "fault=refuse:once",
        "fault=reset:0.01@20000",
        "fault=reset",
        "fault=hang:a.example/app.js?v=1.2:once",
        "fault=hang:/app.js",
        "fault=vanish:a.example@2000",
        "fault=vanish:0.5",
        "blackhole=2000+3000",
        "network-change=3000:3g",
        "network-change=0:1000/500/40/1",
        "restart=1500",
        "revisit=0",
        "revisit=24.5",
        "cross-traffic=bulk",
        "cross-traffic=video",
        "spdy-without=priorities,compression",
        "push",
        "hints=subresources",
        "hints=preload",
        "prefetch",
        "kept-cwnd=32",
        "pooling",
        "owners=ebay.com+ebayimg.com,google.com+gstatic.com",
        "paused-media=60",
        "stalled=buffer",
        "stalled=kill",
        "stalled=block",
    ];
    for text in written {
        let technique: Technique = text.parse().unwrap();
        assert_eq!(technique.to_string(), text);
        assert!(!technique.about().is_empty(), "{text}");
    }
    assert_eq!("racing".parse(), Ok(Technique::RacingMs(250.0)));
    assert_eq!("pipelining".parse(), Ok(Technique::Pipelining(32)));
    assert_eq!("revisit".parse(), Ok(Technique::RevisitHours(0.0)));
    assert_eq!("hints".parse(), Ok(Technique::Hints(Form::Subresources)));
    assert_eq!("kept-cwnd".parse(), Ok(Technique::KeptCwnd(KEPT_CWND)));
}

#[test]
fn an_unknown_switch_or_value_is_named_beside_what_there_is() {
    let says = |text: &str| text.parse::<Technique>().unwrap_err().to_string();
    assert!(says("warp").starts_with("'warp' is no switch; there are false-start, preconnect, visits, "));
    assert_eq!(says("hnts=x"), "'hnts' is no switch; 'hints[=subresources|preload]' is one");
    for bad in ["preconnect", "preconnect=all", "racing=0", "racing=x", "visits", "visits=0", "visits=101"] {
        let name = bad.split('=').next().unwrap();
        assert!(says(bad).starts_with(&format!("'{bad}' is not how {name} is switched: {name}")), "{bad}");
    }
    for bad in [
        "fault",
        "fault=burn",
        "fault=refuse:/x",
        "fault=refuse:a.example@3",
        "fault=reset:once:0.5",
        "fault=reset:2",
        "fault=hang:a.example:b.example",
        "fault=vanish:once",
        "blackhole=2000",
        "blackhole=1+0",
        "network-change=3g",
        "restart",
        "restart=-1",
        "spdy-without=",
        "spdy-without=speed",
        "spdy-without=settings,settings",
        "owners=ebay",
        "push=1",
        "hints=early",
        "prefetch=yes",
        "kept-cwnd=0",
    ] {
        let name = bad.split('=').next().unwrap();
        assert!(says(bad).starts_with(&format!("'{bad}' is not how {name} is switched: {name}")), "{bad}");
    }
    for bad in [
        "false-start=1",
        "tls-wait=yes",
        "pipelining=65",
        "retry",
        "spdy-hosts=",
        "timeouts=1",
        "revisit=8761",
    ] {
        assert!(!says(bad).contains('\n'), "{bad}");
    }
}

#[test]
fn switches_that_contradict_each_other_or_have_nothing_to_act_on_are_refused() {
    let cases = [
        (&["http1"][..], Tls::Tls12, &["racing=1", "racing=2"][..], "'racing=2' contradicts 'racing=1'"),
        (&["http1"], Tls::Tls13, &["false-start"], "'100000/100000/200' has TLS '1.3'"),
        (&["http1"], Tls::None, &["tls-wait"], "'100000/100000/200' has TLS 'none'"),
        (&["spdy3.1"], Tls::Tls12, &["pipelining"], "it is for HTTP/1.1"),
        (&["spdy3.1"], Tls::Tls12, &["preconnect=blind-two"], "it is for HTTP/1.1"),
        (&["http1"], Tls::Tls12, &["spdy-hosts=page"], "no transport is SPDY"),
        (
            &["http1"],
            Tls::None,
            &["cert-checks=ocsp"],
            "TLS 'none', under which no server shows a certificate",
        ),
        (
            &["http1"],
            Tls::Tls13Resumed,
            &["cert-checks=chain"],
            "TLS '1.3-resumed', under which no server shows",
        ),
        (&["http1"], Tls::Tls12, &["stapling"], "'stapling' has nothing to act on: nobody asks whether"),
        (&["http1"], Tls::Tls12, &["stapling", "cert-checks=chain"], "nobody asks whether"),
        (&["http1"], Tls::Tls12, &["pinned"], "nobody asks about certificates"),
        (&["http1"], Tls::Tls12, &["cert-timeout=1"], "nobody asks about certificates"),
        (&["http1"], Tls::Tls12, &["push"], "no transport is SPDY"),
        (&["spdy3"], Tls::Tls12, &["stalled=kill"], "everything is read as it comes"),
        (
            &["spdy3"],
            Tls::Tls12,
            &["stalled=kill", "paused-media=9"],
            "no transport is SPDY without flow control",
        ),
        (&["http1"], Tls::Tls12, &["pooling"], "no transport is SPDY"),
        (&["http1"], Tls::Tls12, &["kept-cwnd"], "no transport is SPDY"),
        (&["spdy3"], Tls::Tls12, &["kept-cwnd", "spdy-without=settings"], "it is kept in them"),
        (&["spdy3.1"], Tls::None, &["pooling"], "hosts share a session by their certificate (--tls 1.2)"),
        (&["spdy3.1"], Tls::Tls12, &["owners=a.example+b.example"], "nobody asks whose a host is"),
        (&["http1"], Tls::Tls12, &["spdy-without=priorities"], "no transport is SPDY"),
        (&["spdy2"], Tls::Tls12, &["spdy-without=flow-control"], "SPDY/2 has no flow control"),
        (&["spdy3"], Tls::Tls12, &["push", "spdy-without=multiplexing"], "'push' contradicts"),
        (&["http1"], Tls::Tls12, &["visits=2"], "nothing learns from visits"),
        (&["http1"], Tls::None, &["green-hosts"], "nobody pipelines (--with pipelining)"),
        (&["http1"], Tls::None, &["pipelining-xhr"], "nobody pipelines (--with pipelining)"),
        (&["http1"], Tls::None, &["bad-pipeliners=stall:0.1"], "nobody pipelines (--with pipelining)"),
        (
            &["http1"],
            Tls::None,
            &["happy-eyeballs"],
            "no host has addresses of two families (--with ipv6=lost",
        ),
        (&["spdy3.1"], Tls::None, &["server-idle=close:5"], "it is for HTTP/1.1"),
        (&["http1"], Tls::Tls12, &["preconnect=blind-two", "visits=2"], "nothing learns from visits"),
        (&["http1"], Tls::Tls12, &["fault=hang:once", "fault=hang:once"], "contradicts"),
        (&["http1"], Tls::Tls12, &["restart=1", "restart=2"], "'restart=2' contradicts 'restart=1'"),
        (&["http1"], Tls::Tls12, &["network-change=5:5g"], "unknown network '5g'"),
        (&["http1"], Tls::Tls12, &["retry=reloading", "timeouts"], "has limits of its own"),
    ];
    for (transports, tls, techniques, says) in cases {
        let error = plan(transports, tls, techniques).check().unwrap_err();
        assert!(error.starts_with("techniques: ") && error.contains(says), "{error}");
    }
}

/// Old plans keep their bytes, and so the names of their folders.
#[test]
fn a_plan_without_techniques_does_not_mention_them() {
    let mut plan = plan(&["http1"], Tls::Tls12, &[]);
    assert!(!plan.emit().contains("techniques"));
    plan.techniques = vec![Technique::FalseStart];
    assert!(plan.emit().contains("techniques = [\"false-start\"]"));
    assert_eq!(Plan::parse(&plan.emit(), "p").unwrap(), plan);
}

/// RFC 7918: a request goes a round trip earlier on every connection.
#[test]
fn false_start_is_faster_by_at_least_a_round_trip() {
    let without = plan(&["http1"], Tls::Tls12, &[]);
    let with = plan(&["http1"], Tls::Tls12, &["false-start"]);
    assert!(plt(&load(&without)) - plt(&load(&with)) >= without.networks[0].rtt_ms);
}

#[test]
fn learned_preconnect_is_faster_and_what_it_opens_is_used() {
    let (without, with) = (
        load(&plan(&["http1"], Tls::Tls13, &[])),
        load(&plan(&["http1"], Tls::Tls13, &["preconnect=learned"])),
    );
    assert!(plt(&without) - plt(&with) > 200.0, "{} → {}", plt(&without), plt(&with));
    let speculative = with.connections.iter().filter(|c| c.record.purpose == client::Purpose::Speculative);
    let (used, wasted): (Vec<_>, Vec<_>) = speculative.partition(|c| c.record.requests > 0);
    assert!(used.len() > wasted.len(), "{} used, {} wasted", used.len(), wasted.len());
    assert!(without.connections.iter().all(|c| c.record.purpose == client::Purpose::Request));
}

#[test]
fn what_was_learned_depends_on_the_visits_before_and_on_nothing_else() {
    let learned = |visits: &str| load(&plan(&["http1"], Tls::Tls13, &["preconnect=learned", visits])).memory;
    assert_eq!(learned("visits=2"), learned("visits=2"));
    assert_ne!(learned("visits=2"), learned("visits=3"));
    let loads = learned("visits=3").learned.iter().map(|row| row.page_loads).max();
    assert_eq!(loads, Some(4), "three visits before the measured one");
}

#[test]
fn the_successor_and_two_to_every_host_open_connections_ahead_too() {
    for policy in ["preconnect=successor", "preconnect=blind-two"] {
        let load = load(&plan(&["http1"], Tls::None, &[policy]));
        assert!(
            load.connections.iter().any(|c| c.record.purpose == client::Purpose::Speculative),
            "{policy}"
        );
    }
}

/// Six handshakes at once are six full ones; held back, all but the first resume, and fewer bytes come down.
#[test]
fn handshakes_that_wait_resume() {
    let parallel = load(&plan(&["http1"], Tls::Tls12, &["preconnect=blind-two"]));
    let waiting = load(&plan(&["http1"], Tls::Tls12, &["preconnect=blind-two", "tls-wait"]));
    let held = |load: &load::Load| {
        load.connections.iter().filter(|c| c.record.handshake > c.record.connected).count()
    };
    assert_eq!(held(&parallel), 0);
    assert!(held(&waiting) > 0);
    assert!(waiting.down.bytes_in < parallel.down.bytes_in);
}

#[test]
fn pipelining_sends_requests_before_the_last_answer_is_there() {
    let plain = load(&plan(&["http1"], Tls::None, &[]));
    let pipelined = load(&plan(&["http1"], Tls::None, &["pipelining"]));
    let overlaps = |load: &load::Load| {
        let sent = |r: &browser::Request| Some((r.connection?, r.timing?.sent?, r.record.complete?));
        let all: Vec<_> = load.requests.iter().filter_map(sent).collect();
        let behind = |b: &(u32, base::Instant, base::Instant)| {
            all.iter().any(|a| a.0 == b.0 && a.1 < b.1 && b.1 < a.2)
        };
        all.iter().filter(|b| behind(b)).count()
    };
    assert_eq!(overlaps(&plain), 0);
    assert!(overlaps(&pipelined) > 0);
}

#[test]
fn a_lost_syn_is_raced() {
    let mut without = plan(&["http1"], Tls::None, &[]);
    let mut with = plan(&["http1"], Tls::None, &["racing=250"]);
    for plan in [&mut without, &mut with] {
        plan.networks[0].loss_up_pct = 10.0;
        plan.networks[0].syn_timeout_ms = 3_000.0;
    }
    assert!(load(&without).connections.iter().all(|c| c.record.purpose != client::Purpose::Spare));
    assert!(load(&with).connections.iter().any(|c| c.record.purpose == client::Purpose::Spare));
}

/// The page's own host has one session; the others keep their connections.
#[test]
fn hosts_that_have_not_upgraded_speak_http() {
    let all = load(&plan(&["spdy3.1"], Tls::None, &[]));
    let one = load(&plan(&["spdy3.1"], Tls::None, &["spdy-hosts=page"]));
    let most = |load: &load::Load, host| load.connections.iter().filter(|c| c.record.host == host).count();
    assert_eq!(most(&all, 0), 1);
    assert_eq!(most(&one, 0), 1);
    assert!(one.connections.len() > all.connections.len());
}

/// Look-ups, in the order of a load's rows: the paths of those who were asked.
fn asked(load: &load::Load) -> Vec<u32> {
    let beside = load.requests.iter().filter(|r| r.timing.is_some_and(|t| t.complete.is_some()));
    beside.filter_map(|r| r.connection).collect()
}

fn one_host(techniques: &[&str]) -> load::Load {
    let mut plan = plan(&["http1"], Tls::Tls12, techniques);
    plan.pages = vec!["corpus:2012:1".into()];
    plan.check().unwrap();
    let page = page::Page::new(
        "one",
        vec![page::Host { scheme_tls: true, port: 443, ..page::Host::new("www.a.example") }],
        vec![page::Resource {
            body_len: 4_000,
            ..page::Resource::get("/", page::Kind::Document, page::Cause::Root)
        }],
    );
    let page = page.unwrap();
    let setup = crate::record::setup(&plan.networks[0], plan.transports()[0], &plan.techniques).unwrap();
    let setup = remembering(&setup, &plan.techniques, &page, 7);
    let load = sim::load(&page, &setup, 7);
    assert_eq!(load.outcome, load::Outcome::Complete);
    load
}

/// A round trip each for the name and TCP of the authority's two hosts, for TCP again as each closes after an answer, and for every
/// answer: 3 for the issuer's certificate, 3 for one status, 2 for the other.
#[test]
fn a_certificate_that_is_asked_about_costs_its_look_ups_one_after_the_other() {
    let rtts = |techniques: &[&str]| {
        let more = plt(&one_host(techniques)) - plt(&one_host(&[]));
        (more / 200.0).round()
    };
    assert_eq!(rtts(&["cert-checks=ocsp"]), 5.0);
    assert_eq!(rtts(&["cert-checks=chain"]), 3.0);
    assert_eq!(rtts(&["cert-checks=ocsp+chain"]), 8.0);
    assert_eq!(asked(&one_host(&["cert-checks=ocsp+chain"])).len(), 4, "the page, and three look-ups");
}

#[test]
fn staples_pins_and_what_is_remembered_spare_the_look_ups() {
    let none = plt(&one_host(&[]));
    for spared in [
        &["cert-checks=ocsp", "stapling"][..],
        &["cert-checks=ocsp+chain", "pinned"],
        &["cert-checks=ocsp+chain", "visits=1"],
    ] {
        let load = one_host(spared);
        assert_eq!(asked(&load).len(), 1, "{spared:?}");
        assert!((plt(&load) - none).abs() < 5.0, "{spared:?}: {} for {none}", plt(&load));
    }
    let stapled = one_host(&["cert-checks=ocsp+chain", "stapling"]);
    assert_eq!(asked(&stapled).len(), 2, "a staple is no issuer");
}

#[test]
fn a_second_visit_asks_only_for_what_was_not_to_be_kept() {
    let first = load(&plan(&["http1"], Tls::None, &[]));
    let second = load(&plan(&["http1"], Tls::None, &["revisit"]));
    let asked = |load: &load::Load| load.requests.iter().filter(|r| r.cached.is_none()).count();
    assert_eq!(asked(&first), first.requests.len());
    // The corpus lets a browser keep its files for a year, and what is made for the request not at all.
    assert!((1..first.requests.len()).contains(&asked(&second)), "{}", asked(&second));
    assert!(plt(&second) < plt(&first));
    let later = load(&plan(&["http1"], Tls::None, &["revisit=8760"]));
    assert!(
        later.requests.iter().any(|r| r.cached == Some(browser::Cached::Validated)),
        "older than a year by its Age"
    );
    assert!(plt(&second) < plt(&later));
}

#[test]
fn a_transfer_beside_the_page_slows_it_and_a_video_hardly_does() {
    let on = |techniques: &[&str]| {
        let mut plan = plan(&["http1"], Tls::None, techniques);
        plan.networks = vec![Network::named("5000/1000/28").unwrap()];
        plan.networks[0].tls = Tls::None;
        load(&plan)
    };
    let (alone, bulk, video) = (on(&[]), on(&["cross-traffic=bulk"]), on(&["cross-traffic=video"]));
    assert!(plt(&bulk) > 1.1 * plt(&alone), "{} for {}", plt(&bulk), plt(&alone));
    assert!(plt(&video) > plt(&alone) && plt(&video) < plt(&bulk));
    assert!(bulk.requests.last().unwrap().body_bytes > 0, "it was under way");
    let blocks = video.requests.iter().filter(|r| r.body_bytes == 65_536).count() as f64;
    let due = plt(&video) / 419.43;
    assert!((blocks - due).abs() <= 2.0, "{blocks} blocks in {} ms", plt(&video));
}

/// Over HTTP/1.1 and SPDY alike, a hundred and more requests with all their dependencies: each is made once.
#[test]
fn hints_and_prefetch_ask_earlier_and_for_nothing_twice() {
    for transport in ["http1", "spdy2", "spdy3.1"] {
        let without = load(&plan(&[transport], Tls::None, &[]));
        for techniques in [&["hints"][..], &["hints=preload"], &["prefetch"], &["hints", "prefetch"]] {
            let with = load(&plan(&[transport], Tls::None, techniques));
            assert!(with.ahead.asked > 10 && with.ahead.used == with.ahead.asked, "{:?}", with.ahead);
            assert_eq!((&with.repeated, with.requests.len()), (&Vec::new(), without.requests.len()));
            let sent = |load: &load::Load| load.connections.iter().map(|c| c.record.requests).sum::<u32>();
            assert_eq!(sent(&with), sent(&without), "{transport} {techniques:?}");
        }
    }
}

/// One visit unless more are asked for; its page is remembered as it was needed.
#[test]
fn prefetch_goes_by_one_visit() {
    let of = |techniques: &[&str]| {
        let plan = plan(&["spdy3.1"], Tls::None, techniques);
        let page = &crate::pages::collect(&plan.pages, None).pages[0];
        let setup = crate::record::setup(&plan.networks[0], plan.transports()[0], &plan.techniques).unwrap();
        remembering(&setup, &plan.techniques, page, 7).memory.pages
    };
    assert_eq!(of(&[]), []);
    let once = of(&["prefetch"]);
    assert!(once.len() == 1 && once[0].resources.len() > 10);
    let of_more = of(&["prefetch", "visits=2"]);
    let sorted = |pages: &[load::KnownPage]| {
        let mut urls: Vec<_> = pages[0].resources.iter().map(|known| known.url.clone()).collect();
        urls.sort();
        urls
    };
    assert_eq!(sorted(&once), sorted(&of_more));
}

/// In a race of both, what is for one protocol must leave the other's loads as they are: they are what it is compared with.
#[test]
fn a_technique_of_one_protocol_changes_nothing_over_the_other() {
    let rows = |transport: &str, techniques: &[&str]| {
        let mut plan = plan(&["http1", "spdy3.1"], Tls::Tls12, techniques);
        // A line on which answers keep each other waiting for seconds.
        let Network { tls, tls_scope, .. } = plan.networks[0];
        plan.networks[0] = Network { tls, tls_scope, ..Network::named("seed").unwrap() };
        plan.check().unwrap();
        let transport = transport.parse().unwrap();
        let page = &crate::pages::collect(&plan.pages, None).pages[0];
        let setup = crate::record::setup(&plan.networks[0], transport, &plan.techniques).unwrap();
        let setup = remembering(&setup, &plan.techniques, page, 7);
        let key = Key { page: page.id.clone(), network: "seed".into(), transport: "both".into(), run: 0 };
        let load = sim::load(page, &setup, 7);
        crate::record::render(&key, 7, &setup, page, &load)
    };
    let all = |transport: &str, techniques: &[&str]| {
        let rows = rows(transport, techniques);
        let lines =
            |rows: Vec<u8>| String::from_utf8(rows).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
        // Whose hosts share a session, they share an address, and in HTTP/1.1 nothing more.
        let row =
            |line: String| ConnectionRow { address: String::new(), ..serde_json::from_str(&line).unwrap() };
        let connections: Vec<ConnectionRow> = lines(rows.connections).into_iter().map(row).collect();
        (lines(rows.load), lines(rows.requests), connections)
    };
    let plain = ["http1", "spdy3.1"].map(|transport| (transport, all(transport, &[])));
    for techniques in [
        &["pipelining"][..],
        &["pipelining", "green-hosts", "pipelining-xhr"],
        &["pipelining", "green-hosts", "bad-pipeliners=close:1"],
        &["pooling"],
        &["push"],
        &["kept-cwnd"],
        &["spdy-without=multiplexing,priorities,compression"],
    ] {
        let same: Vec<_> = plain
            .iter()
            .filter(|(name, rows)| all(name, techniques) == *rows)
            .map(|(name, _)| *name)
            .collect();
        let other = if techniques[0] == "pipelining" { "spdy3.1" } else { "http1" };
        assert_eq!(same, [other], "{techniques:?}");
    }
}
