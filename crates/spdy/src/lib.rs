//! A sans-IO SPDY engine: versions 2, 3 and 3.1, client and server
