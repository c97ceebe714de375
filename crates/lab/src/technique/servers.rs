//! Switches that are about some of the servers: how these are named.

use base::Duration;
use load::{BadPipeliners, Ipv6, Route, Which};
use origin::{Idle, Pipelines};

use crate::setting::{MS_MAX, ms};

/// How much longer a server that stalls takes for a request that follows another: longer than the 1.5 s for which a client waits. Ours.
const STALL: Duration = Duration::from_secs(2);

const KINDS: [(&str, Pipelines); 5] = [
    ("stall", Pipelines::Stalling(STALL)),
    ("reorder", Pipelines::Reordering),
    ("close", Pipelines::Refusing),
    ("corrupt", Pipelines::Corrupting),
    ("ignore", Pipelines::Ignoring),
];

/// `KIND:SHARE|HOST,HOST…`, several with `+` between them; the shares must leave room for each other.
pub(super) fn read_pipeliners(text: &str) -> Option<Vec<BadPipeliners>> {
    let one = |part: &str| {
        let (kind, which) = part.split_once(':')?;
        let (_, pipelines) = KINDS.iter().find(|(name, _)| *name == kind)?;
        Some(BadPipeliners { pipelines: *pipelines, which: read_which(which)? })
    };
    let all: Vec<_> = text.split('+').map(one).collect::<Option<_>>()?;
    let share = |bad: &BadPipeliners| if let Which::Share(share) = bad.which { share } else { 0.0 };
    (all.iter().map(share).sum::<f64>() <= 1.0).then_some(all)
}

pub(super) fn pipeliners_text(all: &[BadPipeliners]) -> String {
    let kind = |pipelines| KINDS.iter().find(|(_, p)| *p == pipelines).map_or("well", |(name, _)| name);
    let one = |bad: &BadPipeliners| format!("{}:{}", kind(bad.pipelines), which_text(&bad.which));
    all.iter().map(one).collect::<Vec<_>>().join("+")
}

/// `close:SECONDS` or `408:SECONDS`.
pub(super) fn read_idle(text: &str) -> Option<Idle> {
    let (how, after) = text.split_once(':')?;
    let seconds: f64 = after.parse().ok().filter(|s| *s > 0.0 && *s * 1e3 <= MS_MAX)?;
    let after = ms(seconds * 1e3);
    match how {
        "close" => Some(Idle::Closed(after)),
        "408" => Some(Idle::Answered408(after)),
        _ => None,
    }
}

pub(super) fn idle_text(idle: Idle) -> String {
    match idle {
        Idle::Kept => "kept".to_owned(),
        Idle::Closed(after) => format!("close:{}", after.as_secs_f64()),
        Idle::Answered408(after) => format!("408:{}", after.as_secs_f64()),
    }
}

/// `same`, `lost`, `refused` or milliseconds; and which, if not all.
pub(super) fn read_ipv6(text: &str) -> Option<Ipv6> {
    let (route, which) = text
        .split_once(':')
        .map_or((text, Some(Which::Share(1.0))), |(route, which)| (route, read_which(which)));
    let route = match route {
        "same" => Route::Same,
        "lost" => Route::Lost,
        "refused" => Route::Refused,
        longer => Route::Longer(ms(longer.parse().ok().filter(|ms| *ms > 0.0 && *ms <= MS_MAX)?)),
    };
    Some(Ipv6 { which: which?, route })
}

pub(super) fn ipv6_text(ipv6: &Ipv6) -> String {
    let route = match ipv6.route {
        Route::Same => "same".to_owned(),
        Route::Lost => "lost".to_owned(),
        Route::Refused => "refused".to_owned(),
        Route::Longer(by) => by.as_millis_f64().to_string(),
    };
    match &ipv6.which {
        Which::Share(1.0) => route,
        which => format!("{route}:{}", which_text(which)),
    }
}

/// A share of all, or names.
fn read_which(text: &str) -> Option<Which> {
    if let Ok(share) = text.parse::<f64>() {
        return (share > 0.0 && share <= 1.0).then_some(Which::Share(share));
    }
    let hosts: Vec<String> = text.split(',').map(str::to_ascii_lowercase).collect();
    hosts.iter().all(|h| h.contains('.')).then_some(Which::Hosts(hosts))
}

fn which_text(which: &Which) -> String {
    match which {
        Which::Share(share) => share.to_string(),
        Which::Hosts(hosts) => hosts.join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_of_a_family_is_written_as_it_is_read() {
        let route = |text: &str| read_ipv6(text).map(|ipv6| (ipv6.route, ipv6_text(&ipv6)));
        let longer = Route::Longer(ms(12.5));
        for (text, way) in [
            ("same", Route::Same),
            ("lost:0.5", Route::Lost),
            ("refused:a.example", Route::Refused),
            ("12.5", longer),
        ] {
            assert_eq!(route(text), Some((way, text.to_owned())));
        }
        assert_eq!(route("refuse"), None);
    }
}
