//! What SPDY has beside HTTP's meaning, to be left out piece by piece: what is a feature worth? Each can be left out without the
//! peer's leave, within the protocol's text, so that any peer still understands what is sent. Both ends must have left it out, or
//! it is half there.

use std::fmt;
use std::str::FromStr;

use mux::{Fairness, WindowPolicy};

use crate::{Announce, Compression, Config, DEFAULT_WINDOW, FlowControl, Policy};

/// A feature that a session can do without.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Feature {
    /// Streams side by side. Without it, one at a time.
    Multiplexing,
    /// Streams that matter more go first (§2.3.3). Without them, streams take turns, whatever was asked for.
    Priorities,
    /// Header blocks are compressed (§2.6.10.1). Without it they are in deflate's stored blocks.
    Compression,
    /// A receiver bounds what it is sent (§2.6.8). Without it only the transport does, for all streams at once.
    FlowControl,
    /// An end tells its limits (§2.6.4). Without it there are no limits but the other's assumptions, and stream windows stay at the
    /// 64 KiB that they begin with.
    Settings,
}

impl Feature {
    /// Every one.
    pub const ALL: [Feature; 5] = [
        Feature::Multiplexing,
        Feature::Priorities,
        Feature::Compression,
        Feature::FlowControl,
        Feature::Settings,
    ];

    /// Its name: `flow-control`.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Multiplexing => "multiplexing",
            Feature::Priorities => "priorities",
            Feature::Compression => "compression",
            Feature::FlowControl => "flow-control",
            Feature::Settings => "settings",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is no [`Feature`]'s name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownFeature(pub String);

impl fmt::Display for UnknownFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Feature::ALL.map(Feature::name).join(", ");
        write!(f, "'{}' is no feature of SPDY; there are {known}", self.0)
    }
}

impl std::error::Error for UnknownFeature {}

impl FromStr for Feature {
    type Err = UnknownFeature;
    fn from_str(s: &str) -> Result<Self, UnknownFeature> {
        Feature::ALL.into_iter().find(|f| f.name() == s).ok_or_else(|| UnknownFeature(s.to_owned()))
    }
}

impl Config {
    /// The same without a feature. Of several, the order does not matter.
    pub fn without(mut self, feature: Feature) -> Self {
        match feature {
            Feature::Multiplexing => (self.max_concurrent_streams, self.assumed_streams) = (1, 1),
            Feature::Priorities => self.fairness = Fairness::Blind,
            Feature::Compression => {
                self.compression = Compression { policy: Policy::Stored, ..self.compression };
            }
            Feature::FlowControl => self.flow_control = FlowControl::None,
            Feature::Settings => {
                self.announce_streams = false;
                self.settings.clear();
                if self.announce == Announce::InSettings {
                    let size = self.stream_window.size.min(DEFAULT_WINDOW);
                    self.stream_window = WindowPolicy { size, ..self.stream_window };
                }
            }
        }
        self
    }

    /// Whether it has a feature that could be left out.
    pub fn has(&self, feature: Feature) -> bool {
        *self != self.clone().without(feature)
    }
}

#[cfg(test)]
mod tests {
    use base::{Chunk, Instant, RequestHead, ResponseHead};

    use super::*;
    use crate::{Event, Priority, Session, Version};

    fn config(without: &[Feature]) -> Config {
        without.iter().fold(Config::chrome_2013(Version::V3_1), |config, feature| config.without(*feature))
    }

    /// Both ends of a session, and what the client has sent.
    fn pair(without: &[Feature]) -> (Session, Session) {
        let (mut client, mut server) = (Session::client(config(without)), Session::server(config(without)));
        exchange(&mut client, &mut server);
        (client, server)
    }

    /// Carries all there is, both ways.
    fn exchange(client: &mut Session, server: &mut Session) -> u64 {
        let mut up = 0;
        loop {
            let mut quiet = true;
            while let Some(chunk) = client.poll_transmit(Instant::ZERO, 1_000) {
                up += chunk.len();
                server.handle_input(Instant::ZERO, chunk).expect("lawful");
                quiet = false;
            }
            while let Some(chunk) = server.poll_transmit(Instant::ZERO, 1_000) {
                client.handle_input(Instant::ZERO, chunk).expect("lawful");
                quiet = false;
            }
            if quiet {
                return up;
            }
        }
    }

    fn get(path: &'static str) -> RequestHead {
        let [method, scheme, authority, path] = ["GET", "https", "www.example", path].map(Into::into);
        RequestHead { method, scheme, authority, path, fields: Default::default() }
    }

    #[test]
    fn a_feature_has_the_name_that_it_is_found_by_and_leaving_it_out_twice_is_leaving_it_out() {
        for feature in Feature::ALL {
            assert_eq!(feature.name().parse(), Ok(feature));
            let without = config(&[feature]);
            assert!(config(&[]).has(feature) && !without.has(feature), "{feature}");
            assert_eq!(without.clone().without(feature), without);
        }
        assert!("pushing".parse::<Feature>().unwrap_err().to_string().ends_with("flow-control, settings"));
    }

    #[test]
    fn without_multiplexing_a_stream_waits_for_the_end_of_the_one_before() {
        let (mut client, mut server) = pair(&[Feature::Multiplexing]);
        let id = client.request(&get("/"), Priority::new(0), true).unwrap();
        exchange(&mut client, &mut server);
        assert!(!client.can_open());
        let head = ResponseHead { status: 200, fields: Default::default() };
        server.respond(id, &head, true).unwrap();
        exchange(&mut client, &mut server);
        assert!(client.can_open());
    }

    #[test]
    fn without_compression_a_request_like_the_last_takes_as_many_bytes() {
        let sizes = |without: &[Feature]| {
            let (mut client, mut server) = pair(without);
            [0, 1].map(|_| {
                client.request(&get("/"), Priority::new(0), true).unwrap();
                exchange(&mut client, &mut server)
            })
        };
        let [[_, with], [first, without]] = [sizes(&[]), sizes(&[Feature::Compression])];
        assert!(with < 40, "{with}");
        // zlib's own head comes once, before the first.
        assert!(without > 100 && first - without <= 8, "{first} {without}");
    }

    /// The bytes of a body of 1 MB that come to a reader who takes none of it.
    fn unread(without: &[Feature]) -> u64 {
        let (mut client, mut server) = pair(without);
        let id = client.request(&get("/"), Priority::new(0), true).unwrap();
        exchange(&mut client, &mut server);
        server.respond(id, &ResponseHead { status: 200, fields: Default::default() }, false).unwrap();
        server.send(id, Chunk::from(vec![0; 1_000_000]), true).unwrap();
        exchange(&mut client, &mut server);
        let events = std::iter::from_fn(|| client.poll_event());
        events.map(|e| if let Event::Data { chunk, .. } = e { chunk.len() } else { 0 }).sum()
    }

    #[test]
    fn without_flow_control_a_reader_who_takes_nothing_gets_everything() {
        assert_eq!(unread(&[Feature::FlowControl]), 1_000_000);
        assert_eq!(
            unread(&[Feature::Settings]),
            u64::from(DEFAULT_WINDOW),
            "and without SETTINGS 64 KiB (§2.6.8)"
        );
        assert_eq!(unread(&[Feature::Settings, Feature::FlowControl]), 1_000_000);
    }

    #[test]
    fn without_settings_a_session_begins_without_the_frame() {
        let first = |without: &[Feature]| {
            let mut client = Session::client(config(without));
            client.request(&get("/"), Priority::new(0), true).unwrap();
            let Some(Chunk::Bytes(bytes)) = client.poll_transmit(Instant::ZERO, 4) else { panic!("bytes") };
            bytes[3]
        };
        // §2.6.4: type 4; §2.6.8: 9, the window of the session.
        assert_eq!((first(&[]), first(&[Feature::Settings])), (4, 9));
    }

    #[test]
    fn without_priorities_the_first_to_ask_is_not_passed() {
        let order = |without: &[Feature]| {
            let (mut client, mut server) = pair(without);
            let ids = [(7, "/a"), (0, "/b")]
                .map(|(priority, path)| client.request(&get(path), Priority::new(priority), true).unwrap());
            exchange(&mut client, &mut server);
            for id in ids {
                server.respond(id, &ResponseHead { status: 200, fields: Default::default() }, false).unwrap();
                server.send(id, Chunk::from(vec![0; 100]), true).unwrap();
            }
            exchange(&mut client, &mut server);
            let events = std::iter::from_fn(|| client.poll_event());
            let ends = events.filter_map(|e| match e {
                Event::Data { id, fin: true, .. } => Some(ids.iter().position(|i| *i == id).unwrap()),
                _ => None,
            });
            ends.collect::<Vec<_>>()
        };
        assert_eq!(order(&[]), [1, 0]);
        assert_eq!(order(&[Feature::Priorities]), [0, 1]);
    }
}
