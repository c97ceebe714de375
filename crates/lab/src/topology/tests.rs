use super::file::{emit, parse};
use super::*;
use crate::network::Network;
use crate::plan::{FORMAT, StateFile};
use crate::scratch::Dir;
use crate::setting::World;

fn plan(techniques: &[&str]) -> Plan {
    Plan {
        format: FORMAT,
        world: World::Virtual,
        seed: 1,
        runs: 1,
        transports: vec!["http1".into()],
        pages: vec!["corpus:2012:3".into()],
        pages_max: None,
        techniques: techniques.iter().map(|t| t.parse().unwrap()).collect(),
        state: None,
        networks: vec![Network::named("5000/1000/100").unwrap()],
    }
}

fn pages(plan: &Plan) -> Vec<Page> {
    crate::pages::collect(&plan.pages, plan.pages_max).pages
}

fn go_on(plan: &Plan, pages: &[Page], rounds: u32, state: &mut State) {
    learn(plan, pages, rounds, state, &AtomicBool::new(false), &|| ()).unwrap();
}

fn learned(technique: &str, rounds: u32) -> State {
    let plan = plan(&[technique]);
    let mut state = State::default();
    go_on(&plan, &pages(&plan), rounds, &mut state);
    state
}

#[test]
fn who_is_kept_and_taken_up_again_learns_what_it_would_have_learned_without_a_break() {
    for technique in ["preconnect=learned", "preconnect=successor"] {
        let plan = plan(&[technique]);
        let whole = learned(technique, 5);
        let mut parts = State::default();
        for rounds in [2, 3] {
            go_on(&plan, &pages(&plan), rounds, &mut parts);
            parts = parse(&emit(&parts)).unwrap();
        }
        assert_eq!(emit(&parts), emit(&whole));
        assert!(whole.pages.iter().all(|p| p.visits == 5 && p.last.len() == 5));
    }
}

#[test]
fn one_page_is_learned_as_the_visits_before_a_load_learn_it() {
    let plan = plan(&["preconnect=learned", "visits=4"]);
    let page = &pages(&plan)[..1];
    let mut state = State::default();
    go_on(&plan, page, 4, &mut state);
    let setup = crate::record::setup(&plan.networks[0], plan.transports()[0], &plan.techniques).unwrap();
    let seed = plan.load_seed(&page[0].id, &plan.networks[0].name, 0);
    let remembered = technique::remembering(&setup, &plan.techniques, &page[0], seed);
    assert_eq!(state.memory, remembered.memory);
}

#[test]
fn what_was_opened_is_used_or_wasted_and_the_first_visit_opens_one_beside_the_documents_own() {
    let state = learned("preconnect=learned", 3);
    for page in &state.pages {
        assert_eq!(page.last[0].tally.made, 1, "{page:?}");
        for visit in 0..3 {
            let tally = page.last[visit].tally;
            assert!(tally.used <= tally.made && tally.made <= tally.carried + tally.wasted());
        }
        let sum = |figure: fn(&Tally) -> u64| page.hosts.iter().map(|h| figure(&h.tally)).sum::<u64>();
        assert_eq!(sum(|t| t.made), page.last.iter().map(|v| v.tally.made).sum::<u64>());
        assert_eq!(sum(|t| t.carried), page.last.iter().map(|v| v.tally.carried).sum::<u64>());
    }
}

#[test]
fn what_is_shown_of_a_host_is_what_the_next_visit_opens() {
    let plan = plan(&["preconnect=learned"]);
    let mut state = learned("preconnect=learned", 6);
    let shown = Topology::of(&state);
    let page = &pages(&plan)[..1];
    go_on(&plan, page, 1, &mut state);
    let record = state.pages.last().unwrap();
    let view = shown.pages.iter().find(|p| p.page == record.page).unwrap();
    let opens: u64 = view.hosts.iter().flat_map(|h| &h.estimates).map(|e| u64::from(e.opens)).sum();
    assert!(opens > 1);
    // The document's request opens one of them itself.
    assert_eq!(record.last.last().unwrap().tally.made, opens - 1);
}

#[test]
fn a_file_that_is_no_memory_is_refused_with_what_is_wrong() {
    let text = String::from_utf8(emit(&learned("preconnect=learned", 2))).unwrap();
    let first = text.split("\"expected\": \"").nth(1).unwrap().split('"').next().unwrap();
    let cases = [
        ("[]".to_owned(), "is no client's memory: "),
        (
            text.replace("\"format\": 1", "\"format\": 3"),
            "format 3 is not 1 or 2, those that this version reads; name a file",
        ),
        (
            text.replace("\"format\": 1", "\"format\": 2"),
            "format 2 and its field 'pipelining' contradict each other",
        ),
        (text.replace("\"rounds\": 2", "\"rounds\": 2, \"colour\": 1"), "unknown field `colour`"),
        (text.replace("\"rounds\": 2", "\"rounds\": 4000000000"), "rounds: 4000000000 is not within"),
        (text.replace(first, "NaN"), "learned: expected 'NaN' of http"),
        (text.replace(first, "-1"), "is not within 0–1000"),
        (text.replace("http://", "gopher://"), "' is no origin"),
        (text.replace("\"used\": ", "\"used\": 9"), "connections were used, of"),
        (text[..text.len() / 2].to_owned(), "is no client's memory: EOF"),
        (" ".repeat(file::LEN_MAX as usize + 1), "is longer than"),
    ];
    for (text, says) in cases {
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(error.contains(says) && !error.contains('\n'), "{says}: {error}");
    }
    let twice = |name: &str| {
        let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut rows = rows;
        let first = rows[name][0].clone();
        rows[name].as_array_mut().unwrap().push(first);
        parse(rows.to_string().as_bytes()).unwrap_err()
    };
    assert!(twice("learned").contains("comes twice") && twice("pages").contains("comes twice"));
    let mut unmet = learned("preconnect=successor", 1);
    (unmet.memory.successor[0].hits, unmet.memory.successor[0].misses) = (0, 0);
    let error = parse(&emit(&unmet)).unwrap_err();
    assert!(error.starts_with("successor: no visit of http"), "{error}");
}

/// What three pages' hosts have shown of pipelining; some of them are no good at it.
fn pipelined(rounds: u32) -> State {
    let plan = plan(&["pipelining", "bad-pipeliners=close:0.5"]);
    let mut state = State::default();
    go_on(&plan, &pages(&plan), rounds, &mut state);
    state
}

#[test]
fn how_far_hosts_are_trusted_is_kept_shown_and_taken_up_again() {
    let whole = pipelined(4);
    let standings: Vec<_> = whole.memory.pipelining.iter().map(|known| known.state.standing()).collect();
    assert!(
        standings.contains(&client::Standing::Red) && standings.contains(&client::Standing::Green),
        "{standings:?}"
    );
    let text = String::from_utf8(emit(&whole)).unwrap();
    assert!(text.contains("\"format\": 2") && text.contains("\"standing\": \"red\""));
    assert_eq!(parse(text.as_bytes()).unwrap(), whole);
    let plan = plan(&["pipelining", "bad-pipeliners=close:0.5"]);
    let mut parts = parse(&emit(&pipelined(1))).unwrap();
    go_on(&plan, &pages(&plan), 3, &mut parts);
    assert_eq!(emit(&parts), emit(&whole), "as without a break");
    let shown = Topology::of(&whole);
    assert!(shown.knows_pipelining() && !Topology::of(&learned("preconnect=learned", 1)).knows_pipelining());
    let hosts = shown.pages.iter().flat_map(|page| &page.hosts);
    let said: std::collections::BTreeSet<_> = hosts.map(HostView::pipelining_in_words).collect();
    assert!(
        said.iter().any(|s| s.starts_with("red, owes ")) && said.iter().any(|s| s.starts_with("green")),
        "{said:?}"
    );
}

#[test]
fn a_file_of_the_format_before_pipelining_is_read_and_what_it_can_say_is_written_as_it_was() {
    let state = learned("preconnect=learned", 2);
    let text = String::from_utf8(emit(&state)).unwrap();
    assert!(text.contains("\"format\": 1") && !text.contains("pipelining"));
    assert_eq!(parse(text.as_bytes()).unwrap(), state);
}

#[test]
fn a_load_pipelines_by_the_memory_that_its_plan_names() {
    let dir = Dir::new("topology-pipelining");
    let path = dir.path().join("state.json");
    let named = |techniques: &[&str]| Plan {
        state: Some(StateFile::new(path.to_str().unwrap())),
        ..plan(techniques)
    };
    file::write(&path, &pipelined(2)).unwrap();
    named(&["pipelining"]).check().unwrap();
    assert_eq!(named(&["pipelining"]).memory().unwrap(), pipelined(2).memory);
    let both = named(&["pipelining", "green-hosts"]).memory().unwrap_err().to_string();
    assert!(both.contains("which green-hosts contradicts; leave one of them out"), "{both}");
    file::write(&path, &learned("preconnect=learned", 1)).unwrap();
    let none = named(&["pipelining"]).memory().unwrap_err().to_string();
    assert!(none.contains("holds nothing that pipelining=32 goes by"), "{none}");
    named(&["preconnect=learned", "pipelining"]).memory().expect("the predictor has something to go by");
}

#[test]
fn a_state_is_replaced_as_a_whole_and_one_that_is_not_there_is_none() {
    let dir = Dir::new("topology");
    let path = dir.path().join("state.json");
    assert_eq!(file::read(&path).unwrap(), None);
    for rounds in [1, 2] {
        let state = learned("preconnect=successor", rounds);
        file::write(&path, &state).unwrap();
        assert_eq!(file::read(&path).unwrap(), Some(state));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_load_goes_by_the_memory_that_its_plan_names_and_by_no_other() {
    let dir = Dir::new("topology-plan");
    let path = dir.path().join("state.json");
    file::write(&path, &learned("preconnect=learned", 3)).unwrap();
    let named = |techniques: &[&str]| Plan {
        state: Some(StateFile::new(path.to_str().unwrap())),
        ..plan(techniques)
    };
    let mut sealed = named(&["preconnect=learned"]);
    sealed.check().unwrap();
    sealed.seal().unwrap();
    let memory = sealed.memory().unwrap();
    assert!(!memory.learned.is_empty());
    let setup = Setup { memory: memory.clone(), ..setup(&sealed).unwrap() };
    let page = &pages(&sealed)[0];
    assert_eq!(
        technique::remembering(&setup, &sealed.techniques, page, 1).memory,
        memory,
        "no visits of its own"
    );
    assert_eq!(Plan::parse(&sealed.emit(), "p").unwrap(), sealed);
    let wrong = named(&["preconnect=successor"]).memory().unwrap_err().to_string();
    assert!(wrong.contains("holds nothing that preconnect=successor goes by"), "{wrong}");
    let ignored = named(&["preconnect=learned", "prefetch"]).check().unwrap_err();
    assert!(ignored.contains("of which a client's memory says nothing"), "{ignored}");
    let unused = named(&[]).check().unwrap_err();
    assert!(unused.contains("nothing goes by a client's memory"), "{unused}");
    file::write(&path, &learned("preconnect=learned", 4)).unwrap();
    let other = sealed.memory().unwrap_err().to_string();
    assert!(other.contains("is not the one that the plan was made with"), "{other}");
}

#[test]
fn a_plan_without_a_predictor_has_nothing_to_learn() {
    let plan = plan(&["preconnect=blind-two"]);
    let error = learn(&plan, &[], 1, &mut State::default(), &AtomicBool::new(false), &|| ()).unwrap_err();
    assert!(error.to_string().contains("nothing learns: there is preconnect=learned"), "{error}");
}
