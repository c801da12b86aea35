//! The choices of parameter types that aren't enums, for help and errors.

use crate::capacity::{Capacity, SocketBuffer};
use crate::entrant::Language;
use crate::filter::Filter;
use crate::methods::Rate;
use crate::parameter::Key;
use crate::place::Place;
use crate::stage::Stages;
use crate::units::{ByteSize, Delay, Nanos};
use crate::value::{Choice, Choices};

macro_rules! words {
    ($($type:ty: $all:expr;)*) => {$(
        impl Choices for $type {
            fn choices() -> Vec<Choice> {
                $all
            }
        }
    )*};
}

words! {
    Key: Key::iter().map(|key| (key.name(), "")).collect();
    Place: vec![
        ("free", "wherever the scheduler puts writer and reader"),
        ("same", "both on one CPU, the first allowed"),
        ("cross", "on two cores, in the same package if possible"),
    ];
    Capacity: vec![("default", "the system's default"), ("quota", "the size of new pipes of a user over the per-user limit")];
    SocketBuffer: vec![("default", "the system's default")];
    Rate: vec![("closed", "send each message after the reply to the previous one")];
}

/// Implements [`Choices`] for types that have no choices.
macro_rules! no_choices {
    ($($type:ty)*) => {$(
        impl Choices for $type {}
    )*};
}
no_choices!(Language Filter Stages ByteSize Nanos Delay u32 u8);
