//! Streams over real sockets, our client against our server, and either against peers that misbehave. All on loopback, on one
//! thread but for the peers without manners; every wait has a deadline.

#[path = "streams/common.rs"]
mod common;
#[path = "streams/echo.rs"]
mod echo;
#[path = "streams/exchange.rs"]
mod exchange;
#[path = "streams/hostile.rs"]
mod hostile;
#[path = "streams/life.rs"]
mod life;
#[path = "streams/upgrade.rs"]
mod upgrade;
