//! TLS as flights and records: exact bytes and round trips, no cryptography
