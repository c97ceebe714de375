//! Serves recorded pages: matching, think time, framing
