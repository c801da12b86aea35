//! The result in formats for other programs. Each format has a module.

mod bencher;
mod benchmark;
mod hyperfine;
mod run_line;

pub use bencher::bencher_json;
pub use benchmark::benchmark_json;
pub use hyperfine::{HyperfineSchema, hyperfine_json};
pub use run_line::run_line;
