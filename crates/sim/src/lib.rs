//! The virtual world: hosts, connections and the event queue
