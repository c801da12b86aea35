//! The choices of types that aren't enums of words, for help and errors.

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
        ("free", "wherever the scheduler puts the ends"),
        ("same", "both ends on one CPU, the first allowed"),
        ("cross", "on two cores, of one package if there are two"),
    ];
    Capacity: vec![("default", "what the system gives"), ("quota", "what a user over the system's limit gets")];
    SocketBuffer: vec![("default", "what the system gives")];
    Rate: vec![("closed", "the next message when the last is back")];
}

/// Types that accept no words.
macro_rules! wordless {
    ($($type:ty)*) => {$(
        impl Choices for $type {}
    )*};
}
wordless!(Language Filter Stages ByteSize Nanos Delay u32 u8);
