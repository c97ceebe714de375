//! What SPDY, HTTP/2 and HTTP/3 share: stream life cycle, windows and their policies, priority scheduling
