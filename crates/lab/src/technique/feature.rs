//! What SPDY does without, and whether a plan has any of it to leave out.

use client::Transport;
use spdy::{Feature, FlowControl};

use super::Technique;
use crate::plan::Plan;

/// A session's settings, less the features that it is to do without.
pub(crate) fn without(techniques: &[Technique], config: spdy::Config) -> spdy::Config {
    let features = techniques.iter().filter_map(|t| match t {
        Technique::SpdyWithout(features) => Some(features),
        _ => None,
    });
    features.flatten().fold(config, |config, feature| config.without(*feature))
}

/// Why a feature of SPDY cannot be left out: in no load of the plan is it there.
pub(super) fn lacks(plan: &Plan, feature: Feature) -> Result<(), String> {
    if whole_sessions(plan).any(|config| config.has(feature)) {
        return Ok(());
    }
    Err(match feature {
        Feature::FlowControl => "SPDY/2 has no flow control (--transports spdy3 or spdy3.1)".into(),
        _ => format!("no session of the plan has {feature} (--spdy chrome-2013)"),
    })
}

/// Whether the plan has sessions without flow control.
pub(super) fn has_unbounded_sessions(plan: &Plan) -> bool {
    let mut sessions = whole_sessions(plan).map(|config| without(&plan.techniques, config));
    sessions.any(|config| config.flow_control == FlowControl::None)
}

/// What the plan's sessions are set to, before anything is left out.
fn whole_sessions(plan: &Plan) -> impl Iterator<Item = spdy::Config> {
    let versions = plan.transports().into_iter().filter_map(Transport::spdy_version);
    versions.flat_map(|v| plan.networks.iter().map(move |n| crate::record::spdy(n, v)))
}
