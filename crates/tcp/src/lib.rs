//! Virtual TCP at segment level: handshake, windows, congestion control, recovery
