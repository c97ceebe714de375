//! Moments as ISO 8601 writes them (HAR 1.2: `2009-07-24T19:20:30.45+01:00`), in milliseconds since 1970.

/// Milliseconds since 1970-01-01T00:00:00Z; `None` for anything that is no moment. A missing zone is taken as UTC.
pub(crate) fn parse(text: &str) -> Option<f64> {
    let text = text.trim();
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-');
    let (year, month, day) = (digits(date.next()?)?, digits(date.next()?)?, digits(date.next()?)?);
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (digits(clock.next()?)?, digits(clock.next()?)?);
    let seconds = clock.next().unwrap_or("0").replace(',', ".");
    let seconds: f64 =
        seconds.bytes().all(|b| b.is_ascii_digit() || b == b'.').then(|| seconds.parse().ok())??;
    let in_range = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 25
        && minute < 60
        && (0.0..61.0).contains(&seconds);
    if !in_range {
        return None;
    }
    let minutes = (days_from_civil(year, month, day) * 24 + hour) * 60 + minute - zone_minutes(zone)?;
    Some(minutes as f64 * 60_000.0 + seconds * 1_000.0)
}

/// The same of a moment as HTTP writes it (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT` or one of the two obsolete forms. A year of
/// two digits is of 1970 to 2069.
pub(crate) fn parse_http(text: &str) -> Option<f64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = text.split([' ', ',', '-']).filter(|word| !word.is_empty()).collect();
    let (day, month, year, time) = match words[..] {
        [_, day, month, year, time, "GMT" | "UTC"] => (day, month, year, time),
        [_, month, day, time, year] => (day, month, year, time),
        _ => return None,
    };
    let month = 1 + MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
    let year = match (year.len(), digits(year)?) {
        (2, year) if year < 70 => 2000 + year,
        (2, year) => 1900 + year,
        (_, year) => year,
    };
    parse(&format!("{year:04}-{month:02}-{day:0>2}T{time}Z"))
}

/// `ms` after the start of 2000, the moment at which a page that was never recorded is said to start.
pub(crate) fn format(ms_since_2000: f64) -> String {
    let us = (ms_since_2000.max(0.0) * 1_000.0).round() as u64;
    let (seconds, us) = (us / 1_000_000, us % 1_000_000);
    let (year, month, day) = civil_from_days(days_from_civil(2000, 1, 1) + (seconds / 86_400) as i64);
    let (h, m, s) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{us:06}Z")
}

/// The year of a moment in milliseconds since 1970.
pub(crate) fn year(ms: f64) -> i64 {
    civil_from_days((ms / 86_400_000.0).floor() as i64).0
}

fn digits(text: &str) -> Option<i64> {
    ((1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn zone_minutes(zone: &str) -> Option<i64> {
    let sign = match zone.bytes().next() {
        None | Some(b'Z' | b'z') => return (zone.len() <= 1).then_some(0),
        Some(b'+') => 1,
        _ => -1,
    };
    let number: String = zone[1..].chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = match number.len() {
        2 => (digits(&number)?, 0),
        4 if number.is_ascii() => (digits(&number[..2])?, digits(&number[2..])?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// Days since 1970-01-01 in the Gregorian calendar, by counting years from March, so that the leap day comes last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = (month + 9) % 12;
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // A first guess from the mean year, then the one correction that it can need.
    let mut year = 1970 + (days as f64 / 365.2425).floor() as i64;
    if days_from_civil(year + 1, 1, 1) <= days {
        year += 1;
    } else if days_from_civil(year, 1, 1) > days {
        year -= 1;
    }
    let month = (1..=12).rev().find(|m| days_from_civil(year, *m, 1) <= days).unwrap_or(1);
    (year, month, days - days_from_civil(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_every_spelling_that_recorders_use() {
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(parse("2000-03-01T00:00:00Z"), Some(951_868_800_000.0));
        assert_eq!(parse("2012-09-18T09:42:15.281Z"), Some(1_347_961_335_281.0));
        assert_eq!(parse("2016-01-24T15:52:57.513+01:00"), parse("2016-01-24T14:52:57.513Z"));
        assert_eq!(parse("2016-01-24T15:52:57.513+0100"), parse("2016-01-24T14:52:57,513Z"));
        assert_eq!(parse("2016-01-24 14:52"), parse("2016-01-24T14:52:00Z"));
        for bad in
            ["", "yesterday", "2012-13-01T00:00:00Z", "2012-09-18T09:42:-5Z", "2012-09-18T09:42:15+1:0:0"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    /// RFC 9110 §5.6.7: a recipient accepts all three.
    #[test]
    fn a_date_of_http_is_read_in_all_three_forms() {
        let forms =
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"];
        for form in forms {
            assert_eq!(parse_http(form), parse("1994-11-06T08:49:37Z"), "{form}");
        }
        assert_eq!(parse_http("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0.0));
        for bad in
            ["", "0", "-1", "Sun, 06 Nov 1994 08:49:37 EST", "Sun, 06 Nov 1994 8 GMT x", "a b Foo 1 2 GMT"]
        {
            assert_eq!(parse_http(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for ms in [0.0, 1.5, 86_399_999.999, 951_868_800_000.0] {
            let read = parse(&format(ms)).unwrap() - parse("2000-01-01T00:00:00Z").unwrap();
            assert!((read - ms).abs() < 0.001, "{ms} {read}");
        }
        assert_eq!(format(0.0), "2000-01-01T00:00:00.000000Z");
        assert_eq!(year(1_347_961_335_281.0), 2012);
        assert!((0..40_000).all(|d| {
            let (y, m, day) = civil_from_days(d);
            days_from_civil(y, m, day) == d
        }));
    }
}
