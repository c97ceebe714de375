//! What breaks in a live load: what the real servers can do of it, and what they cannot.

use base::Rng;
use load::Setup;
use origin::{Fault, FaultKind, Faults, Often, Whom};
use page::Host;

/// What goes wrong with answers, drawn as in the virtual world.
pub(super) fn of(setup: &Setup, seed: u64) -> Faults {
    Faults::new(setup.faults.hosts.clone(), Rng::new(seed).substream("faults"))
}

/// Whether nobody listens at a host, so that the kernel refuses.
pub(super) fn is_refused(setup: &Setup, host: &Host) -> bool {
    let meant = |whom: &Whom| match whom {
        Whom::All => true,
        Whom::Host(name) => name.eq_ignore_ascii_case(&host.name),
        Whom::Resource(..) => false,
    };
    let refuses = |f: &Fault| f.kind == FaultKind::Refuse && f.often == Often::Always && meant(&f.whom);
    setup.faults.hosts.iter().any(refuses)
}

/// What of a setup's faults this world cannot do, in words.
pub(super) fn unmet(setup: &Setup) -> Vec<String> {
    let any = |hit: &dyn Fn(&Fault) -> bool| setup.faults.hosts.iter().any(hit);
    let cases = [
        (
            any(&|f| f.kind == FaultKind::Refuse && f.often != Often::Always),
            "no connection is refused: a kernel refuses all of a host or none",
        ),
        (
            any(&|f| matches!(f.kind, FaultKind::Reset { .. })),
            "a reset takes along what the kernel had not sent yet",
        ),
        (any(&|f| matches!(f.kind, FaultKind::Vanish { .. })), "no host goes away"),
        (setup.faults.network_change.is_some(), "the network does not change"),
        (setup.faults.restart.is_some(), "the browser does not end and start again"),
    ];
    cases.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, what)| what.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use base::Duration;
    use client::Transport;

    use super::*;

    #[test]
    fn what_a_live_load_cannot_break_it_says() {
        let mut setup = Setup::new(Transport::Http1);
        assert!(unmet(&setup).is_empty());
        let fault = |kind, often| Fault { kind, whom: Whom::Host("a.example".into()), often };
        setup.faults.hosts =
            vec![fault(FaultKind::Hang, Often::Once), fault(FaultKind::Refuse, Often::Always)];
        assert!(unmet(&setup).is_empty(), "these it can");
        assert!(is_refused(&setup, &Host::new("A.example")) && !is_refused(&setup, &Host::new("b.example")));
        setup.faults.hosts = vec![
            fault(FaultKind::Refuse, Often::Once),
            fault(FaultKind::Reset { after: None }, Often::Once),
            fault(FaultKind::Vanish { at: Duration::ZERO }, Often::Always),
        ];
        setup.faults.restart = Some(Duration::ZERO);
        assert_eq!(unmet(&setup).len(), 4);
    }
}
