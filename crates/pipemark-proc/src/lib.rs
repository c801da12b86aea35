//! Reads what running processes and their pipes show to other programs. [`process`] reads a process, its counters and
//! its descriptors from /proc. [`thread`], [`call`] and [`state`] determine what a thread waits for. [`connections`] finds the
//! other ends of sockets, [`locks`] finds the holders of file locks, [`language`] finds the language of a program, and
//! [`topology`] finds the processes that form a pipeline. [`watched`] keeps the files of a process open for repeated reading, and [`table`]
//! keeps all processes of the machine, with an index from each pipe and socket to its holders. [`control_group`] finds the
//! processes of a unit or container.
#![forbid(unsafe_code)]

pub mod call;
pub mod capacity;
pub mod connections;
pub mod control_group;
pub mod identity;
pub mod language;
pub mod locks;
pub mod process;
pub mod state;
pub mod table;
pub mod thread;
pub mod topology;
pub mod watched;
