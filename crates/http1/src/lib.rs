//! A sans-IO HTTP/1.1 engine, client and server
