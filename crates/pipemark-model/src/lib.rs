//! The data model: parameters and trials, samples and records, and the names of trials and figures.
//!
//! Start with the two tables: the parameters ([`Key`]) and the figures ([`Figure`]). This crate does no I/O.
#![forbid(unsafe_code)]

mod bad_value;
mod capacity;
mod choices;
mod claim;
mod digits;
mod document;
mod entrant;
mod estimate;
mod figure;
mod filter;
mod gains;
mod host;
mod in_order;
mod job;
mod kind;
mod link;
mod methods;
mod naming;
mod outside_link;
mod parameter;
mod place;
mod sample;
mod saved_command;
mod settings;
mod stage;
mod text;
mod trial;
mod units;
mod value;
mod warning;
pub mod written;

pub use bad_value::BadValue;
pub use capacity::{Capacity, NamedCapacity};
pub use claim::{Answer, Claim, ClaimVerdict, Evidence, MAX_SHORT, MAX_START, Which};
pub use digits::{between, digits, few_digits, percent, signed_percent, three_digits};
pub use document::{Document, Experiment, Finding, IMPORTED, METHOD, SCHEMA, Tuned, WORKLOAD, Watched};
pub use entrant::{EntrantStats, Language, Program};
pub use estimate::{Estimate, Estimates, MAX_SPAN, spans_too_much};
pub use figure::Figure;
pub use filter::{Feed, Filter, PipelineStats, ProcessStats};
pub use gains::{Gains, GainsBlock, GainsCell, GainsColumn};
pub use host::{Cache, CpuTopology, Host, Permission, Pressure};
pub use in_order::{distinct, group_by_key, total_order};
pub use job::{Chain, Ends, Entrant, Job, LinesJob, MessagePace, RoundTrip, Volume, Work};
pub use link::LinkKind;
pub use outside_link::OutsideLink;

pub use methods::{Content, Mode, PageKind, RecvMethod, Rseq, SendMethod, Verify, WaitPolicy};
pub use naming::{
    MEMORY_COPY_KEYS, differing_keys, mixes_foreign_programs, name, names, phrase, placement_phrase, shared,
};
pub use parameter::{Key, MAX_LENGTH, MAX_WRITERS, Settings, Value};
pub use place::{Cpu, Place};
pub use sample::{BrokerStats, EndStats, Latency, Pieces, Sample, StageStats};
pub use saved_command::SavedCommand;
pub use stage::Stages;
pub use text::{capitalised, counted, is_control_or_invisible, neutral, without_errno};
pub use trial::{Outcome, Published, Record, Statistic, Status, Stopped, Trial};
pub use units::{
    Better, ByteSize, ColumnUnit, Delay, GIB, Nanos, RATE_UNITS, Throughput, Unit, bytes_in_words, parse_duration,
};
#[doc(hidden)]
pub use value::kebab_case;
pub use value::{bounded, did_you_mean, nearest};
pub use warning::Warning;
