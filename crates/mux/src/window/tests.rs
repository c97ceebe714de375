use super::*;

const MAX: i64 = i32::MAX as i64;

/// Feeds a window as fast as it allows and reads at once; gives every credit returned.
fn credits(policy: WindowPolicy, initial: u32, chunk: u64, chunks: usize) -> Vec<u64> {
    let mut peer = SendWindow::new(initial);
    let mut window = RecvWindow::new(policy, initial);
    let mut out = Vec::new();
    for _ in 0..chunks {
        let n = chunk.min(peer.available());
        peer.take(n);
        window.receive(n).unwrap();
        if let Some(credit) = window.consume(Instant::ZERO, n, None) {
            peer.credit(credit, MAX).unwrap();
            out.push(credit);
        }
    }
    out
}

#[test]
fn a_fixed_window_returns_credit_by_its_threshold() {
    assert_eq!(credits(WindowPolicy::FIXED_64K, 65_536, 16_384, 8), [32_768; 4]);
    assert_eq!(credits(WindowPolicy::FIXED_64K, 65_536, 1_000, 66), [33_000; 2]);
}

#[test]
fn a_half_window_returns_credit_once_half_is_consumed() {
    assert_eq!(credits(WindowPolicy::half(1 << 20), 1 << 20, 1 << 17, 16), [1 << 19; 4]);
}

#[test]
fn firefox_returns_64_kib_and_every_byte_once_a_mebibyte_is_left() {
    assert_eq!(credits(WindowPolicy::FIREFOX_256M, 1 << 28, 32_768, 4), [65_536; 2]);
    let mut window = RecvWindow::new(WindowPolicy::FIREFOX_256M, 1 << 28);
    window.receive((1 << 28) - (1 << 20)).unwrap();
    assert_eq!(window.consume(Instant::ZERO, 1, None), Some(1));
}

#[test]
fn a_threshold_larger_than_the_window_cannot_stall_it() {
    let policy = WindowPolicy { size: 1_000, ..WindowPolicy::FIXED_64K };
    assert_eq!(credits(policy, 1_000, 1_000, 3), [1_000; 3]);
    let policy = WindowPolicy { size: 1, ..WindowPolicy::half(1) };
    assert_eq!(credits(policy, 1, 1, 3), [1; 3]);
}

#[test]
fn unread_bytes_keep_the_window_closed_and_over_consumption_gives_nothing_more() {
    let mut window = RecvWindow::new(WindowPolicy::FIXED_64K, 65_536);
    window.receive(65_536).unwrap();
    assert_eq!(window.receive(1), Err(Exceeded));
    assert_eq!(window.unconsumed(), 65_536, "what was refused is not counted");
    assert_eq!(window.consume(Instant::ZERO, u64::MAX, None), Some(65_536));
    assert_eq!(window.consume(Instant::ZERO, u64::MAX, None), None);
    assert_eq!(window.limit(), 131_072);
}

/// SPDY/3.1 §2.6.8, "Reducing the Stream Window Size": the example of a client that has sent 60 KB when the server
/// makes the initial window 16 KB.
#[test]
fn a_sender_whose_window_went_negative_waits_until_it_is_positive_again() {
    let mut window = SendWindow::new(65_536);
    window.take(60 * 1024);
    window.shift(16 * 1024 - 65_536, MAX).unwrap();
    assert_eq!(window.available(), 0);
    window.credit(44 * 1024, MAX).unwrap();
    assert_eq!(window.available(), 0);
    window.credit(1, MAX).unwrap();
    assert_eq!(window.available(), 1);
}

#[test]
fn a_receiver_that_lowered_its_window_forgives_what_was_under_way_and_still_returns_credit() {
    let mut window = RecvWindow::new(WindowPolicy::half(16_384), 65_536);
    window.receive(60 * 1024).unwrap();
    assert_eq!(window.consume(Instant::ZERO, 60 * 1024, None), Some(60 * 1024));
    // A peer that knew from the start may send 16 KB and must hear of credit for them.
    let mut window = RecvWindow::new(WindowPolicy::half(16_384), 65_536);
    window.receive(16_384).unwrap();
    assert_eq!(window.consume(Instant::ZERO, 16_384, None), Some(16_384));
}

#[test]
fn a_window_that_no_setting_announces_is_granted_by_credit() {
    let (window, credit) = RecvWindow::granting(WindowPolicy::half(10 << 20), 65_536);
    assert_eq!((window.limit(), credit), (10 << 20, Some((10 << 20) - 65_536)));
    let (mut window, credit) = RecvWindow::granting(WindowPolicy::half(4_096), 65_536);
    assert_eq!((window.limit(), credit), (65_536, None));
    window.receive(65_536).unwrap();
    assert_eq!(window.consume(Instant::ZERO, 61_440, None), None, "the window closes to its size first");
    assert_eq!(window.consume(Instant::ZERO, 4_096, None), Some(4_096));
}

#[test]
fn overflow_is_reported_and_changes_nothing() {
    let mut window = SendWindow::new(i32::MAX as u32);
    assert_eq!(window.credit(1, MAX), Err(Overflow));
    assert_eq!(window.credit(u64::MAX, MAX), Err(Overflow));
    assert_eq!(window.shift(1, MAX), Err(Overflow));
    assert_eq!(window.shift(i64::MAX, i64::MAX), Err(Overflow));
    window.take(1);
    assert_eq!(window.credit(1, MAX), Ok(()));
    window.raise_to(5);
    assert_eq!(window.available(), i32::MAX as u64, "an absolute limit never goes back");
}

/// A 100 Mbit/s path of 80 ms holds 1 MB; a 64 KB window would carry 6.5 Mbit/s. The peer's bytes come evenly, or in one
/// burst a round trip.
#[test]
fn an_autotuned_window_grows_to_the_bandwidth_delay_product_and_stops() {
    let rtt = Duration::from_millis(80);
    let per_rtt = 1_000_000_u64;
    for parts in [20, 1] {
        let mut window = RecvWindow::new(WindowPolicy::autotuned(65_536, 8 << 20), 65_536);
        let mut peer = SendWindow::new(65_536);
        let mut now = Instant::ZERO;
        for _ in 0..40 * parts {
            now += rtt / parts;
            let burst = peer.available().min(per_rtt / parts);
            peer.take(burst);
            let chunks = std::iter::repeat_n(1_448, burst as usize / 1_448).chain([burst % 1_448]);
            for n in chunks {
                window.receive(n).unwrap();
                if let Some(credit) = window.consume(now, n, Some(rtt)) {
                    peer.credit(credit, MAX).unwrap();
                }
            }
        }
        assert!((per_rtt * 4 / 3..=per_rtt * 5 / 2).contains(&window.size()), "{}", window.size());
    }
    let mut capped = RecvWindow::new(WindowPolicy::autotuned(65_536, 100_000), 65_536);
    for step in 1..50 {
        capped.receive(65_536).unwrap();
        capped.consume(Instant::ZERO + rtt * step, 65_536, Some(rtt));
    }
    assert_eq!(capped.size(), 100_000);
}
