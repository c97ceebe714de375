//! A browser's network stack: name resolution, pools, connections, dispatch
