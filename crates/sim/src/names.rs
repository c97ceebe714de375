//! Look-ups: a question and an answer that cross the access link like everything else, and are lost like everything else.
//!
//! The name server is where the link ends. It answers after what the setup's look-up time exceeds the link's round trip by; so
//! a look-up takes that time, and what queues and the line add. Where the setup's time is less than the round trip, somebody
//! nearer answers: nothing crosses the link, and a look-up takes that time.
//!
//! Where hosts have addresses of both families each name is asked for twice at once, first for those of IPv6 (RFC 8305 §3), and each
//! question goes its way; else it is asked for IPv4 alone.

use std::net::IpAddr;

use base::{Duration, Instant};
use client::Family;

/// How long the resolver waits for an answer before it asks again, and how often it asks.
const PATIENCE: Duration = Duration::from_secs(1);
const TRIES: u32 = 4;

/// Bytes of a question's packet beyond the name: IP 20, UDP 8, and of RFC 1035 the header 12, the name's first length and its end 2,
/// type and class 4.
const QUESTION: u32 = 20 + 8 + 12 + 2 + 4;

/// Bytes that an answer has beyond its question for a record, without the address: a pointer to the name 2, type, class, TTL and length 10.
const RECORD: u32 = 2 + 10;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Query {
    /// The host whose name it is.
    pub host: u32,
    /// The addresses that are wanted.
    pub family: Family,
}

/// Look-ups of one load.
pub(crate) struct Names {
    /// What the name server takes; `None` if nothing crosses the link.
    think: Option<Duration>,
    dns: Duration,
    /// By host and family.
    asked: Vec<[Asked; 2]>,
}

/// Where the look-up of a name stands.
#[derive(Clone, Copy, Default)]
struct Asked {
    /// How often it was asked for.
    times: u32,
    /// The answer has come, or nobody waits for it any more.
    over: bool,
    /// When to look again.
    again: Instant,
}

/// What is to be done about a look-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Send the question, and look again at this moment.
    Ask(Instant),
    /// Nothing crosses the link: the answer is there at this moment.
    Known(Instant),
    /// Nobody answers.
    GiveUp,
    /// The answer has come already.
    Done,
}

impl Names {
    /// Look-ups of the names of so many hosts that take `dns`, over a link with this round trip.
    pub(crate) fn new(dns: Duration, round_trip: Duration, hosts: usize) -> Self {
        let think = (dns >= round_trip && !dns.is_zero()).then(|| dns.saturating_sub(round_trip));
        Self { think, dns, asked: vec![[Asked::default(); 2]; hosts] }
    }

    /// On another network, of which this is said likewise: what is open there is asked for when it would have been asked for again, as if it
    /// never had been; and what is known is not.
    pub(crate) fn moved(mut self, dns: Duration, round_trip: Duration) -> Self {
        let asked = self.asked.iter_mut().flatten();
        asked.for_each(|asked| *asked = Asked { over: asked.over, ..Asked::default() });
        Self { asked: self.asked, ..Self::new(dns, round_trip, 0) }
    }

    /// Nobody waits for an answer any more.
    pub(crate) fn forget_all(&mut self) {
        self.asked.iter_mut().flatten().for_each(|asked| *asked = Asked { over: true, ..Asked::default() });
    }

    /// Whether it was asked for on this network, by whoever asks now.
    pub(crate) fn is_asked(&mut self, query: Query) -> bool {
        self.asked(query).times > 0
    }

    fn asked(&mut self, query: Query) -> &mut Asked {
        &mut self.asked[query.host as usize][query.family as usize]
    }

    /// The browser asks for a name: anew, if it had asked before and that came to its end.
    pub(crate) fn begin(&mut self, now: Instant, query: Query) -> Step {
        let asked = self.asked(query);
        if asked.over {
            *asked = Asked::default();
        }
        self.go_on(now, query)
    }

    /// A moment has come that an earlier step named; one of an earlier look-up has nothing to say to a later one.
    pub(crate) fn go_on(&mut self, now: Instant, query: Query) -> Step {
        let (is_near, dns) = (self.think.is_none(), self.dns);
        let asked = self.asked(query);
        if asked.over || (asked.times > 0 && now < asked.again) {
            return Step::Done;
        }
        if is_near {
            return Step::Known(now + dns);
        }
        if asked.times == TRIES {
            asked.over = true;
            return Step::GiveUp;
        }
        asked.times += 1;
        asked.again = now + PATIENCE;
        Step::Ask(asked.again)
    }

    /// When the server answers a question that reaches it now.
    pub(crate) fn answer_at(&self, now: Instant) -> Instant {
        now + self.think.unwrap_or_default()
    }

    /// Takes an answer; whether it is the first.
    pub(crate) fn take(&mut self, query: Query) -> bool {
        !std::mem::replace(&mut self.asked(query).over, true)
    }
}

/// Bytes of the packet with the question for a name.
pub(crate) fn question_len(name: &str) -> u32 {
    QUESTION + name.len() as u32
}

/// Bytes of the packet with its answer. One that there is no address of the family (RFC 2308 §2.2) is as long as the question: its server
/// leaves out whose zone it is.
pub(crate) fn answer_len(name: &str, address: Option<IpAddr>) -> u32 {
    let record = match address {
        Some(IpAddr::V4(_)) => RECORD + 4,
        Some(IpAddr::V6(_)) => RECORD + 16,
        None => 0,
    };
    question_len(name) + record
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Query = Query { host: 0, family: Family::V4 };

    fn names(dns_ms: u64) -> Names {
        Names::new(Duration::from_millis(dns_ms), Duration::from_millis(20), 1)
    }

    #[test]
    fn a_look_up_takes_a_round_trip_and_what_the_server_adds() {
        let mut names = names(50);
        assert_eq!(names.go_on(Instant::ZERO, FIRST), Step::Ask(Instant::ZERO + PATIENCE));
        assert_eq!(names.answer_at(Instant::ZERO), Instant::ZERO + Duration::from_millis(30));
        assert!(names.take(FIRST));
        assert!(!names.take(FIRST), "an answer that comes twice counts once");
        assert_eq!(names.go_on(Instant::ZERO + PATIENCE, FIRST), Step::Done);
    }

    #[test]
    fn a_question_that_is_lost_is_asked_again_and_at_last_given_up() {
        let mut names = names(20);
        let mut now = Instant::ZERO;
        for _ in 0..TRIES {
            assert_eq!(names.go_on(now, FIRST), Step::Ask(now + PATIENCE));
            now += PATIENCE;
        }
        assert_eq!(names.go_on(now, FIRST), Step::GiveUp);
        assert!(!names.take(FIRST), "who has given up does not listen");
    }

    #[test]
    fn a_name_that_was_given_up_can_be_asked_for_again_and_old_moments_do_not_count() {
        let mut names = names(20);
        let mut now = Instant::ZERO;
        for _ in 0..=TRIES {
            names.go_on(now, FIRST);
            now += PATIENCE;
        }
        let again = Instant::ZERO + Duration::from_millis(5_500);
        assert_eq!(names.begin(again, FIRST), Step::Ask(again + PATIENCE));
        assert_eq!(names.go_on(again + PATIENCE / 2, FIRST), Step::Done);
        assert_eq!(names.go_on(again + PATIENCE, FIRST), Step::Ask(again + PATIENCE * 2));
        assert!(names.take(FIRST));
    }

    /// An answer that is on its way to an address of old is none.
    #[test]
    fn on_another_network_what_is_open_is_asked_anew_and_what_is_known_when_it_is_wanted() {
        let (known, open) = (FIRST, Query { family: Family::V6, ..FIRST });
        let mut names = names(20);
        let again = Instant::ZERO + PATIENCE;
        assert_eq!([known, open].map(|query| names.begin(Instant::ZERO, query)), [Step::Ask(again); 2]);
        assert!(names.take(known));
        let mut names = names.moved(Duration::from_millis(500), Duration::from_millis(300));
        assert_eq!(names.answer_at(Instant::ZERO), Instant::ZERO + Duration::from_millis(200));
        assert!(!names.is_asked(known) && !names.is_asked(open));
        assert_eq!(names.go_on(again, known), Step::Done, "nobody has asked for it again");
        assert_eq!(names.go_on(again, open), Step::Ask(again + PATIENCE));
        assert_eq!(names.begin(again, known), Step::Ask(again + PATIENCE));
        assert!(names.is_asked(open) && names.take(open) && names.take(known));
    }

    #[test]
    fn who_begins_anew_waits_for_no_answer_of_old() {
        let mut names = names(20);
        names.begin(Instant::ZERO, FIRST);
        names.forget_all();
        assert!(!names.is_asked(FIRST) && !names.take(FIRST));
        assert_eq!(names.go_on(Instant::ZERO + PATIENCE, FIRST), Step::Done);
        assert_eq!(names.begin(Instant::ZERO, FIRST), Step::Ask(Instant::ZERO + PATIENCE));
    }

    #[test]
    fn what_takes_less_than_a_round_trip_does_not_cross_the_link() {
        let at = Instant::ZERO + Duration::from_millis(19);
        assert_eq!(names(19).go_on(Instant::ZERO, FIRST), Step::Known(at));
        assert_eq!(names(0).go_on(Instant::ZERO, FIRST), Step::Known(Instant::ZERO));
    }

    /// RFC 1035 §4.1: 12 + 15 + 4 bytes ask for `a.example.com`, 16 more answer with one address; UDP and IP add 28.
    #[test]
    fn packets_have_the_bytes_that_they_have() {
        let answer = |address: Option<&str>| answer_len("a.example.com", address.map(|a| a.parse().unwrap()));
        assert_eq!((question_len("a.example.com"), answer(Some("10.0.0.1"))), (28 + 31, 28 + 47));
        assert_eq!((answer(Some("2001:db8::1")), answer(None)), (28 + 59, 28 + 31));
    }

    #[test]
    fn what_is_asked_of_one_family_is_not_asked_of_the_other() {
        let (mut names, of_v6) = (names(20), Query { family: Family::V6, ..FIRST });
        assert_eq!(names.begin(Instant::ZERO, of_v6), Step::Ask(Instant::ZERO + PATIENCE));
        assert!(names.take(of_v6));
        assert_eq!(names.begin(Instant::ZERO, FIRST), Step::Ask(Instant::ZERO + PATIENCE));
        assert_eq!(names.go_on(Instant::ZERO + PATIENCE, of_v6), Step::Done);
    }
}
