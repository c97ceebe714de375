//! What breaks in a load, besides what its links are asked to lose.
//!
//! All of it is data, so that a plan can hold it, and is drawn from the load's seed, so that two transports under one seed meet the same
//! misfortune; see [`origin::Faults`]. Times are since the navigation began.

use base::Duration;

/// What breaks. Nothing unless said.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Faults {
    /// What goes wrong at the servers.
    pub hosts: Vec<origin::Fault>,
    /// The machine goes over to another network.
    pub network_change: Option<NetworkChange>,
    /// The application ends at this moment, whatever it is doing, and is started again at once, with what
    /// [`client::Retry::resume`] let it keep. Connections of the first one are reset, as a kernel does with those of a process that is
    /// gone.
    pub restart: Option<Duration>,
}

/// A change of networks, Wi-Fi to 3G for one: the client has another address from then on. What is on the old network's link is lost,
/// and connections over it carry nothing any more, though nobody tells either end.
#[derive(Clone, PartialEq, Debug)]
pub struct NetworkChange {
    /// When.
    pub at: Duration,
    /// The new access link towards the client.
    pub down: link::PathConfig,
    /// The new access link from the client.
    pub up: link::PathConfig,
    /// What the look-up of a name costs there.
    pub dns: Duration,
}
