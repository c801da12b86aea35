//! Reads what running processes and their pipes show to other programs. [`process`] reads a process, its counters and
//! its descriptors from /proc. [`thread`] and [`state`] determine what a thread waits for. [`connections`] finds the
//! other ends of sockets, [`locks`] finds the holders of file locks, [`language`] finds the language of a program, and
//! [`topology`] finds the processes that form a pipeline. [`watched`] keeps the files of a process open for repeated reading.
#![forbid(unsafe_code)]

pub mod capacity;
pub mod connections;
pub mod language;
pub mod locks;
pub mod process;
pub mod state;
pub mod thread;
pub mod topology;
pub mod watched;
