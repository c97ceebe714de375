//! What has been learned of a host: red, yellow, or green, and what it has to pay off (nsHttpConnectionMgr.cpp,
//! OnPipelineFeedbackInfo).
//!
//! *Yellow*: one connection may try a pipeline of two. If that goes well the host is *green*, else *red*. Green begins with
//! pipelines of six, as two may have been a lucky race; a good answer from the third place or deeper lifts that to what
//! is configured. Red has a penalty, which every good answer lowers by one and every sixteen seconds too; at nought the
//! host is yellow again. Lesser faults are counted a class, and shut that class out as long as they are not paid off.

use base::{Duration, Instant};

use super::Class;
use crate::ConnectionId;

/// `kPipelineRestricted`: of the trial.
const TRIAL_DEPTH: u32 = 2;
/// `kPipelineOpen`: of a host that has just become green.
const GREEN_DEPTH: u32 = 6;
/// From this place on a good answer shows that the host does pipeline.
const PROVEN_FROM: u32 = 3;
/// No penalty grows beyond it.
const PENALTY_MAX: u32 = 25_000;
/// Time pays off a point each time it has passed.
const CREDIT_EVERY: Duration = Duration::from_secs(16);

/// How far a host is trusted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Standing {
    /// Not at all.
    Red,
    /// With one trial.
    #[default]
    Yellow,
    /// As far as it has been proven.
    Green,
}

/// What was seen of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Feedback {
    /// It spoke HTTP/1.0.
    VersionTooLow,
    /// Its `Server` field is one that is known to fail.
    BannedServer,
    /// What came was no HTTP, or was cut off inside an answer.
    CorruptedContent,
    /// A pipeline had to be given up with requests in it.
    CanceledPipeline,
    /// It closes a connection that it had not said it would.
    ExplicitClose,
    /// It was silent for more than 400 ms beyond a round trip.
    SlowReadMinor,
    /// It was silent for 1500 ms beyond two.
    SlowReadMajor,
    /// An answer whose end is the connection's.
    InsufficientFraming,
    /// An answer larger than is to be in a pipeline.
    UnexpectedLarge,
    /// A head as it should be.
    ExpectedOk,
    /// An answer that was pipelined is complete, from this place.
    CompletedOk(u32),
}

impl Feedback {
    /// What it costs the host, which is red from then on.
    fn red(self) -> Option<u32> {
        match self {
            Feedback::VersionTooLow => Some(1_000),
            Feedback::BannedServer | Feedback::CorruptedContent => Some(7_000),
            Feedback::CanceledPipeline => Some(60),
            _ => None,
        }
    }

    /// What it costs the class.
    fn bad(self) -> Option<u32> {
        match self {
            Feedback::ExplicitClose => Some(250),
            Feedback::SlowReadMinor => Some(5),
            Feedback::SlowReadMajor => Some(25),
            Feedback::InsufficientFraming => Some(7_000),
            Feedback::UnexpectedLarge => Some(120),
            _ => None,
        }
    }
}

/// What has been learned of a host. It can be kept for the next run: [`HostState::for_later`], or, written down by its
/// getters, [`HostState::restored`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostState {
    standing: Standing,
    /// Deepest pipeline while green.
    green_depth: u32,
    penalty: u32,
    class_penalty: [u32; Class::ALL.len()],
    /// Until when time has paid off.
    last_credit: Option<Instant>,
    trial: Option<ConnectionId>,
    good: u32,
    bad: u32,
}

impl Default for HostState {
    fn default() -> Self {
        Self {
            standing: Standing::Yellow,
            green_depth: GREEN_DEPTH,
            penalty: 0,
            class_penalty: [0; Class::ALL.len()],
            last_credit: None,
            trial: None,
            good: 0,
            bad: 0,
        }
    }
}

impl HostState {
    /// A host of which nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that has passed its trial.
    pub fn green() -> Self {
        Self { standing: Standing::Green, ..Self::default() }
    }

    /// One that was written down: its getters say what.
    pub fn restored(
        standing: Standing,
        is_proven: bool,
        penalty: u32,
        class_penalties: impl IntoIterator<Item = (Class, u32)>,
    ) -> Self {
        let green_depth = if is_proven { u32::MAX } else { GREEN_DEPTH };
        let mut state = Self { standing, green_depth, penalty: penalty.min(PENALTY_MAX), ..Self::default() };
        for (class, penalty) in class_penalties {
            state.class_penalty[class as usize] = penalty.min(PENALTY_MAX);
        }
        state.for_later()
    }

    /// Whether it has answered well from the third place or deeper while green.
    pub fn is_proven(&self) -> bool {
        self.green_depth > GREEN_DEPTH
    }

    /// How far it is trusted.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// What it has to pay off before it is tried again, as a whole.
    pub fn penalty(&self) -> u32 {
        self.penalty
    }

    /// What it has to pay off before requests of a class are pipelined.
    pub fn class_penalty(&self, class: Class) -> u32 {
        self.class_penalty[class as usize]
    }

    /// What is worth knowing in a run to come, whose time begins anew.
    pub fn for_later(&self) -> Self {
        let owes = self.penalty > 0 || self.class_penalty.iter().any(|p| *p > 0);
        let last_credit = owes.then_some(Instant::ZERO);
        Self { last_credit, trial: None, good: 0, bad: 0, ..self.clone() }
    }

    /// Requests that a pipeline of `class` may have at most: less than two is none. Time that has passed is taken into
    /// account.
    pub(crate) fn depth(&mut self, now: Instant, class: Class) -> u32 {
        if self.allowed(class) == 0 {
            self.pay_off(now);
        }
        let busy = self.standing == Standing::Yellow && self.trial.is_some();
        if busy { 0 } else { self.allowed(class) }
    }

    fn allowed(&self, class: Class) -> u32 {
        match self.standing {
            _ if self.class_penalty[class as usize] > 0 => 0,
            Standing::Red => 0,
            Standing::Yellow => TRIAL_DEPTH,
            Standing::Green => self.green_depth,
        }
    }

    /// A pipeline is begun on a connection; for a yellow host it is the trial.
    pub(crate) fn begin(&mut self, connection: ConnectionId) {
        if self.standing == Standing::Yellow && self.trial.is_none() {
            self.trial = Some(connection);
            (self.good, self.bad) = (0, 0);
        }
    }

    /// A connection has nothing under way any more, or is gone: if it was the trial's, that is decided.
    pub(crate) fn end(&mut self, connection: ConnectionId) {
        if self.trial != Some(connection) {
            return;
        }
        self.trial = None;
        if self.standing == Standing::Yellow {
            let passed = self.good > 0 && self.bad == 0;
            self.green_depth = GREEN_DEPTH;
            self.standing = if passed { Standing::Green } else { Standing::Red };
        }
    }

    /// Something was seen of the host, on a connection of `class`.
    pub(crate) fn hear(&mut self, now: Instant, feedback: Feedback, class: Class) {
        let (red, bad) = (feedback.red(), feedback.bad());
        let is_bad = red.is_some() || bad.is_some();
        if self.standing == Standing::Yellow {
            *(if is_bad { &mut self.bad } else { &mut self.good }) += 1;
        }
        if let (Standing::Green, Feedback::CompletedOk(place)) = (self.standing, feedback)
            && place >= PROVEN_FROM
        {
            self.green_depth = u32::MAX; // what is configured still holds
        }
        if red.is_some() && self.standing != Standing::Red {
            self.standing = Standing::Red;
            self.penalty = 0;
        }
        if is_bad {
            self.last_credit.get_or_insert(now);
        }
        let of_class = &mut self.class_penalty[class as usize];
        if is_bad {
            self.penalty = (self.penalty + red.unwrap_or(0)).min(PENALTY_MAX);
            *of_class = (*of_class + bad.unwrap_or(0)).min(PENALTY_MAX);
        } else {
            self.penalty = self.penalty.saturating_sub(1);
            *of_class = of_class.saturating_sub(1);
        }
        self.try_again();
    }

    /// Takes off what time has paid since it was last looked at.
    fn pay_off(&mut self, now: Instant) {
        let Some(since) = self.last_credit else { return };
        let credits = now.since(since).as_nanos() / CREDIT_EVERY.as_nanos();
        if credits > 0 {
            let paid = u32::try_from(credits).unwrap_or(u32::MAX);
            self.penalty = self.penalty.saturating_sub(paid);
            self.class_penalty = self.class_penalty.map(|penalty| penalty.saturating_sub(paid));
            let owes = self.penalty > 0 || self.class_penalty.iter().any(|p| *p > 0);
            self.last_credit = owes.then_some(since + CREDIT_EVERY * credits);
        }
        self.try_again(); // a trial that failed has left no penalty of the host's behind
    }

    fn try_again(&mut self) {
        if self.standing == Standing::Red && self.penalty == 0 {
            self.standing = Standing::Yellow;
            self.trial = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn hear(state: &mut HostState, feedback: Feedback) {
        state.hear(Instant::ZERO, feedback, Class::Image);
    }

    #[test]
    fn a_host_starts_yellow_with_one_trial_of_depth_two() {
        let mut state = HostState::new();
        assert_eq!((state.standing(), state.depth(s(0), Class::Image)), (Standing::Yellow, 2));
        state.begin(7);
        assert_eq!(state.depth(s(0), Class::Image), 0, "while it is tried, nobody else is");
    }

    #[test]
    fn a_good_trial_makes_it_green_at_depth_six() {
        let mut state = HostState::new();
        state.begin(7);
        hear(&mut state, Feedback::ExpectedOk);
        state.end(8);
        assert_eq!(state.standing(), Standing::Yellow, "that was another connection");
        state.end(7);
        assert_eq!((state.standing(), state.depth(s(0), Class::Image)), (Standing::Green, 6));
    }

    #[test]
    fn a_trial_with_any_fault_or_without_an_answer_makes_it_red() {
        let mut state = HostState::new();
        state.begin(7);
        hear(&mut state, Feedback::ExpectedOk);
        hear(&mut state, Feedback::SlowReadMinor);
        state.end(7);
        assert_eq!((state.standing(), state.penalty()), (Standing::Red, 0));
        assert_eq!(state.depth(s(0), Class::Image), 0, "the class has to pay off five");
        assert_eq!(state.depth(s(0), Class::Script), 2, "it owes nothing as a whole: others may try again");
        let mut silent = HostState::new();
        silent.begin(7);
        silent.end(7);
        assert_eq!(silent.standing(), Standing::Red);
    }

    #[test]
    fn a_success_in_the_third_place_lifts_the_depth_to_what_is_configured() {
        let mut state = HostState::green();
        hear(&mut state, Feedback::CompletedOk(2));
        assert_eq!(state.depth(s(0), Class::Image), 6);
        hear(&mut state, Feedback::CompletedOk(3));
        assert_eq!(state.depth(s(0), Class::Image), u32::MAX);
    }

    #[test]
    fn faults_of_the_host_make_it_red_and_cost_it_their_price() {
        let prices = [
            (Feedback::VersionTooLow, 1_000),
            (Feedback::BannedServer, 7_000),
            (Feedback::CorruptedContent, 7_000),
            (Feedback::CanceledPipeline, 60),
        ];
        for (feedback, price) in prices {
            let mut state = HostState::green();
            hear(&mut state, feedback);
            assert_eq!((state.standing(), state.penalty()), (Standing::Red, price), "{feedback:?}");
        }
    }

    #[test]
    fn lesser_faults_cost_their_class_and_shut_it_out() {
        let prices = [
            (Feedback::ExplicitClose, 250),
            (Feedback::SlowReadMinor, 5),
            (Feedback::SlowReadMajor, 25),
            (Feedback::InsufficientFraming, 7_000),
            (Feedback::UnexpectedLarge, 120),
        ];
        for (feedback, price) in prices {
            let mut state = HostState::green();
            hear(&mut state, feedback);
            assert_eq!((state.standing(), state.class_penalty(Class::Image)), (Standing::Green, price));
            assert_eq!(state.depth(s(0), Class::Image), 0);
            assert_eq!(state.depth(s(0), Class::Script), 6, "only that class");
        }
    }

    #[test]
    fn penalties_are_capped_at_25_000() {
        let mut state = HostState::green();
        (0..5).for_each(|_| hear(&mut state, Feedback::CorruptedContent));
        assert_eq!(state.penalty(), 25_000);
    }

    #[test]
    fn each_good_event_pays_off_one_and_at_nought_the_host_is_tried_again() {
        let mut state = HostState::green();
        hear(&mut state, Feedback::CanceledPipeline);
        (0..59).for_each(|_| hear(&mut state, Feedback::ExpectedOk));
        assert_eq!((state.standing(), state.penalty()), (Standing::Red, 1));
        hear(&mut state, Feedback::ExpectedOk);
        assert_eq!(state.standing(), Standing::Yellow);
    }

    #[test]
    fn every_sixteen_seconds_pay_off_one() {
        let mut state = HostState::green();
        hear(&mut state, Feedback::CanceledPipeline);
        assert_eq!(state.depth(s(16 * 59 + 15), Class::Image), 0);
        assert_eq!(state.penalty(), 1);
        assert_eq!(state.depth(s(16 * 60), Class::Image), 2, "tried again");
    }

    #[test]
    fn what_is_kept_for_later_begins_to_be_paid_off_anew() {
        let mut state = HostState::green();
        state.hear(s(1_000), Feedback::CanceledPipeline, Class::Image);
        let classes = Class::ALL.map(|class| (class, state.class_penalty(class)));
        let written = HostState::restored(state.standing(), state.is_proven(), state.penalty(), classes);
        let mut later = state.for_later();
        assert_eq!(written, later);
        assert_eq!(later.depth(s(16 * 60), Class::Image), 2);
    }

    #[test]
    fn a_trial_that_failed_without_a_penalty_is_written_down_as_the_red_that_it_left() {
        let mut state = HostState::new();
        state.begin(7);
        state.end(7);
        let written = HostState::restored(state.standing(), state.is_proven(), state.penalty(), []);
        assert_eq!((written.standing(), &written), (Standing::Red, &state.for_later()));
    }
}
