//! Tests of senders, receivers and links, end to end.

mod every_way;
mod links;
