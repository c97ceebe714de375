use base::Rng;

use super::*;

const FULL: u32 = 1000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// `n` segments of 1000 bytes, one a millisecond.
fn board(n: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for i in 0..n {
        board.push(i * u64::from(FULL), FULL, false, at(i));
    }
    board
}

fn blocks<const N: usize>(ranges: [std::ops::Range<u64>; N]) -> SackBlocks {
    let mut blocks = SackBlocks::default();
    for range in ranges {
        assert!(blocks.push(range.start * 1000..range.end * 1000));
    }
    blocks
}

fn sack(board: &mut Scoreboard, blocks: &SackBlocks) -> Delivery {
    let mut delivery = Delivery::new(Instant::MAX);
    board.sack(blocks, 0, &mut delivery);
    delivery
}

impl Scoreboard {
    /// The counters, counted again.
    fn recount(&self) {
        let count = |f: fn(&Sent) -> bool| self.sent.iter().filter(|sent| f(sent)).count() as u32;
        assert_eq!(self.sacked, count(|sent| sent.sacked));
        assert_eq!(self.lost, count(|sent| sent.lost));
        assert_eq!(self.resent, count(|sent| sent.resent));
        assert_eq!(count(|sent| sent.resent && !sent.lost || sent.sacked && sent.lost), 0);
        let pipe = count(|sent| !sent.sacked && !sent.lost || sent.resent);
        assert_eq!(self.in_flight(), pipe);
    }
}

/// RFC 6675 §4, `IsLost` with `DupThresh` 3.
#[test]
fn three_sacked_segments_above_make_a_segment_lost() {
    let mut board = board(10);
    sack(&mut board, &blocks([1..2, 4..5]));
    assert_eq!(board.lose_by_sacks(), 0);
    let delivery = sack(&mut board, &blocks([6..7, 4..5, 1..2]));
    assert_eq!((delivery.segments, delivery.sacked_sent), (1, Some(at(6))));
    assert_eq!(board.lose_by_sacks(), 1, "segment 0; segments 2 and 3 have only two above");
    sack(&mut board, &blocks([6..8, 4..5, 1..2]));
    assert_eq!(board.lose_by_sacks(), 2);
    assert_eq!(board.in_flight(), 10 - 4 - 3);
    let again: Vec<_> = std::iter::from_fn(|| board.resend(at(50))).map(|sent| sent.seq / 1000).collect();
    assert_eq!(again, [0, 2, 3]);
    board.recount();
}

/// RFC 8985 §6.2: what was sent before the newest delivered is lost, once; what was sent after it is not.
#[test]
fn by_time_each_transmission_is_lost_at_most_once() {
    let mut board = board(10);
    let (newest, _) = sack(&mut board, &blocks([4..5])).newest.unwrap();
    let rtt = Duration::from_millis(100);
    assert_eq!(board.lose_by_time(at(101), newest, rtt), (2, Some(at(102))), "0 and 1 had their time");
    assert_eq!(board.lose_by_time(at(104), newest, rtt), (2, None));
    assert_eq!(std::iter::from_fn(|| board.resend(at(104))).count(), 4);
    assert_eq!(board.lose_by_time(at(104), newest, rtt), (0, None), "they have just been sent again");
    let (newest, sent) = sack(&mut board, &blocks([1..2])).newest.unwrap();
    assert_eq!((newest, sent), (12, at(104)), "ten transmissions, then 0, then 1");
    // Segment 0 went out again before 1 did: lost again. 5 to 9 were sent before that too.
    assert_eq!(board.lose_by_time(at(300), newest, rtt).0, 1 + 5);
    board.recount();
}

/// RFC 8985 §6.2 step 2: what is delivered too soon after it was sent again was delivered by the first transmission, and
/// does not show that everything sent before the second is lost.
#[test]
fn a_retransmission_delivered_too_soon_is_no_reference() {
    for (believe_before, newest) in [(103, None), (104, Some((4, at(104))))] {
        let mut board = board(3);
        board.lose_first();
        board.resend(at(104));
        let mut delivery = Delivery::new(at(believe_before));
        board.acknowledge(1000, &mut delivery);
        assert_eq!((delivery.segments, delivery.ambiguous, delivery.newest), (1, true, newest));
    }
}

/// RFC 3522 §3.2: after a timeout that was spurious, what was lost by it is out as before, and can be lost in earnest.
#[test]
fn what_was_found_again_can_be_lost_again() {
    let rtt = Duration::from_millis(100);
    let mut board = board(3);
    assert_eq!(board.lose_by_time(at(200), 3, rtt), (2, None));
    board.unlose_all();
    assert_eq!(board.in_flight(), 3);
    assert_eq!(board.lose_by_time(at(200), 3, rtt), (2, None));
    board.recount();
}

/// RFC 2883 §4: a block below the acknowledgement tells of a duplicate, not of an arrival.
#[test]
fn a_duplicate_report_delivers_nothing() {
    let mut board = board(4);
    let mut delivery = Delivery::new(Instant::MAX);
    board.acknowledge(2000, &mut delivery);
    board.sack(&blocks([0..1, 3..4]), 2000, &mut delivery);
    assert_eq!((delivery.segments, delivery.acked, board.len(), board.sacked()), (3, 2, 2, 1));
}

#[test]
fn an_acknowledgement_inside_a_segment_leaves_its_rest() {
    let mut board = board(2);
    let mut delivery = Delivery::new(Instant::MAX);
    board.acknowledge(400, &mut delivery);
    let first = board.front().unwrap();
    assert_eq!((first.seq, first.len, board.len(), delivery.segments), (400, 600, 2, 0));
}

/// Any sequence of operations keeps the counters true and resends what is lost, in order, once.
#[test]
fn the_counters_stay_true_under_any_sequence_of_operations() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut board = Scoreboard::default();
        let (mut una, mut nxt) = (0, 0);
        for step in 0..200 {
            let now = at(step);
            let mut delivery = Delivery::new(now);
            match rng.below(9) {
                0..=2 => {
                    board.push(nxt, FULL, false, now);
                    nxt += 1000;
                }
                3 => {
                    una += rng.below((nxt - una) / 1000 + 1).min(3) * 1000;
                    board.acknowledge(una, &mut delivery);
                }
                4 | 5 if nxt > una => {
                    let start = una / 1000 + rng.below((nxt - una) / 1000);
                    let end = (start + 1 + rng.below(3)).min(nxt / 1000);
                    board.sack(&blocks([start..end]), una, &mut delivery);
                }
                6 if seed % 2 == 0 => drop(board.lose_by_sacks()),
                6 => drop(board.lose_by_time(now, board.order.saturating_sub(5), Duration::ZERO)),
                7 => {
                    let waits = board.must_resend();
                    let first = board.sent.iter().find(|sent| sent.lost && !sent.resent).map(|sent| sent.seq);
                    assert_eq!(board.resend(now).map(|sent| sent.seq), first);
                    assert_eq!(waits, first.is_some());
                }
                8 if rng.below(10) == 0 => board.lose_all(),
                8 if rng.below(10) == 0 => board.unlose_all(),
                _ => {
                    board.resend_last(now);
                }
            }
            board.recount();
        }
    }
}
