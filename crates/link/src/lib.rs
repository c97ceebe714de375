//! The path between two hosts: rate, delay, loss and queues, each a node that composes
