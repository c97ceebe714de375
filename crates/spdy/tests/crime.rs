//! CRIME (Rizzo and Duong, 2012), carried out: an attacker who can make a victim's client send what he likes beside its
//! cookie, and who sees how long the frames are, but not what is in them, recovers the cookie digit by digit. With headers
//! compressed in full he gets it; with cookies kept apart, or nothing compressed, every guess looks like every other.

mod common;

use base::{Fields, Rng};
use common::*;
use spdy::{Compression, Config, Policy, Priority, Session, Version};

/// What the cookie is known to begin with.
const NAME: &str = "session=";
const DIGITS: &str = "0123456789abcdef";
/// Digits of the secret.
const LEN: usize = 12;

/// Where the attacker's script, or his page's markup, can put what he likes.
const PLACES: [Place; 5] = [Place::Path, Place::Referer, Place::Field, Place::Name, Place::Cookie];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Path,
    Referer,
    /// The value of a field of his own.
    Field,
    /// Its name.
    Name,
    /// A cookie of his own, from a neighbouring host, that the client sends with the others.
    Cookie,
}

/// What the attacker sees: the length of the frame with his guess, on a connection that has carried the cookie once.
fn oracle(version: Version, policy: Policy, secret: &str, place: Place, guess: &str) -> usize {
    let compression = Compression { policy, window_bits: 15 };
    let mut client = Session::client(Config { compression, ..Config::new(version) });
    let cookie = format!("{NAME}{secret}");
    let mut head = get("/");
    head.fields.push("cookie", cookie.clone());
    client.request(&head, Priority::HIGHEST, true).unwrap();
    all_bytes(&mut client);
    head.fields = Fields::new();
    match place {
        Place::Path => head.path = format!("/?{guess}").into(),
        Place::Referer => head.fields.push("referer", format!("https://example.org/?{guess}")),
        Place::Field => head.fields.push("x-own", guess.to_owned()),
        Place::Name => head.fields.push(guess.replace('=', "-"), "1"),
        Place::Cookie => {}
    }
    let own = if place == Place::Cookie { format!("{guess}; ") } else { String::new() };
    head.fields.push("cookie", own + &cookie);
    client.request(&head, Priority::HIGHEST, true).unwrap();
    all_bytes(&mut client).len()
}

/// The lengths for each next digit, given those before it. What is put behind the guess, which occurs nowhere else, moves the
/// end of the frame's last byte, so that a difference of a few bits shows in the sum.
fn lengths(oracle: &dyn Fn(&str) -> usize, known: &str) -> Vec<usize> {
    let ends = ["", "~", "~^", "~^_", "~^_`", "~^_`|", "~^_`|!", "~^_`|!*"];
    let length = |digit: char| ends.iter().map(|end| oracle(&format!("{NAME}{known}{digit}{end}"))).sum();
    DIGITS.chars().map(length).collect()
}

/// What the attacker takes the secret to be: always the digit that makes the frames shortest.
fn attack(oracle: &dyn Fn(&str) -> usize) -> String {
    let mut known = String::new();
    for _ in 0..LEN {
        let lengths = lengths(oracle, &known);
        let shortest = (0..DIGITS.len()).min_by_key(|i| lengths[*i]);
        known.extend(shortest.and_then(|i| DIGITS.chars().nth(i)));
    }
    known
}

fn secrets() -> impl Iterator<Item = String> {
    let mut rng = Rng::new(2012);
    let mut digit = move || DIGITS.as_bytes()[rng.below(16) as usize] as char;
    (0..3).map(move |_| (0..LEN).map(|_| digit()).collect())
}

/// The attack works, or the tests below would show nothing.
#[test]
fn headers_compressed_in_full_give_the_cookie_away() {
    for secret in secrets() {
        for version in VERSIONS {
            for place in [Place::Path, Place::Referer, Place::Field] {
                let oracle = |guess: &str| oracle(version, Policy::Full, &secret, place, guess);
                assert_eq!(attack(&oracle), secret, "{version}, by {place:?}");
            }
        }
    }
}

/// However much of the secret is known already, the frames are as long as for a client with another secret, for the right
/// next digit as for the wrong ones; and where digits are coded one by one, all digits are alike. So the attacker ends where
/// he began.
#[test]
fn cookies_apart_or_stored_make_every_guess_look_alike() {
    for secret in secrets() {
        // In no place the same digit.
        let decoy: String = secret.chars().map(|c| if c < '8' { 'f' } else { '0' }).collect();
        for version in VERSIONS {
            for (policy, place) in
                [Policy::CookiesApart, Policy::Stored].into_iter().flat_map(|p| PLACES.map(|at| (p, at)))
            {
                let on = |secret: &'_ str, guess: &str| oracle(version, policy, secret, place, guess);
                // With the last digit a cookie of his own is all of the secret: see the next test.
                let most = if place == Place::Cookie { LEN - 1 } else { LEN };
                for known in (0..most).map(|n| &secret[..n]) {
                    let seen = lengths(&|guess| on(&secret, guess), known);
                    let context = format!("{version}, {policy:?}, by {place:?} after {known:?}: {seen:?}");
                    assert_eq!(seen, lengths(&|guess| on(&decoy, guess), known), "{context}");
                    // Names match names, as those of all requests are alike.
                    let alike = seen.iter().all(|n| *n == seen[0]);
                    assert!(alike || place == Place::Name, "{context}");
                }
                assert_ne!(attack(&|guess| on(&secret, guess)), secret);
            }
        }
    }
}

/// What is left to the attacker with cookies apart, and stated in the policy's documentation: to guess all of a cookie at
/// once, as one of his own. That is 2^48 requests for this one.
#[test]
fn with_cookies_apart_a_whole_cookie_can_be_confirmed_and_no_part_of_it() {
    let secret = secrets().next().unwrap();
    let length = |guess: &str| {
        oracle(Version::V3_1, Policy::CookiesApart, &secret, Place::Cookie, &format!("{NAME}{guess}"))
    };
    let wrong = format!("{}{}", &secret[..LEN - 1], if secret.ends_with('0') { '1' } else { '0' });
    assert!(length(&secret) < length(&wrong));
    assert_eq!(length(&wrong), length(&"0".repeat(LEN)));
}
