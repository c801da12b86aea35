//! Tests that run the whole program as a user does. All tests are in one test program, with a module for each subject.
//!
//! `cargo test -p pipemark --test program compare::` runs one module. `make test-long` and `make soak`
//! run the tests that take long.

mod program;

mod ab;
mod ab_gate;
mod against;
mod chain;
mod compare;
mod docs;
mod engines;
mod entrants;
mod experiments;
mod extending;
mod faults;
mod gen_sink;
mod guesses;
mod history;
mod history_faults;
mod hostile;
mod interop;
mod kills;
mod languages;
mod large_pipe;
mod layout;
mod lies;
mod lines;
mod lines_suite;
mod link_cleanup;
mod links;
mod old_documents;
mod options;
mod output;
mod outside_links;
mod packaging;
mod pasted;
mod python_module;
mod relay;
mod relay_as_pv;
mod relay_ends;
mod relay_peers;
mod relay_terminal;
mod report;
mod restrictions;
mod signals;
mod tampering;
mod tune;
mod usage;
mod verbs;
mod verdicts;
mod why;
mod why_groups;
mod why_profile;
mod why_scale;
mod wrong_calls;
