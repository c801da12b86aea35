//! Times commands and compares them: the verb `ab`. Start at [`ab`]: `commands` and `placeholders` turn the command
//! line into entries, `interleaving` runs them (with `pipeline`, `hooks`, `cold`), `judge` turns the runs into a
//! [`result`], `sheet` shows it, and `export` writes it for other programs.
#![forbid(unsafe_code)]

pub mod ab;
pub mod baseline;
mod catch;
mod cold;
mod commands;
mod conclusion;
pub mod conditions;
mod counted_events;
mod drain;
mod export;
pub mod hooks;
mod interleaving;
mod judge;
mod notes;
mod own_memory;
pub mod pipeline;
mod pipeline_memory;
mod placeholders;
pub mod result;
mod run_figures;
mod sheet;
pub mod shell;
mod shell_start;
mod standard_error;
mod thresholds;

#[cfg(test)]
mod tests;
