//! The claims of published documents: how a suite states them ([`form`], [`design`]), how measurements and
//! [`demonstrations`] answer them ([`answers`]), and how the answers are shown ([`sheet`]).
#![forbid(unsafe_code)]

pub mod answers;
pub mod demonstrations;
pub mod design;
mod evidence;
pub mod form;
pub mod sheet;
mod too_short;
mod words;
