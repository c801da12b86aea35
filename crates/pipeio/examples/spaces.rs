//! A line filter written with the library: `echo "hello world" | spaces [threads [batch [give]]]`.

use std::error::Error;
use std::io::{stdin, stdout};
use std::num::NonZeroUsize;

use pipeio::lines::transforms::Spaces;
use pipeio::lines::{Engine, OutputMethod};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let threads = arguments.next().map_or(Ok(NonZeroUsize::MIN), |threads| threads.parse())?;
    let mut engine = Engine::new();
    if let Some(batch) = arguments.next() {
        engine = engine.batch(batch.parse()?);
    }
    if arguments.next().is_some() {
        engine = engine.send(OutputMethod::GiveAway);
    }
    let report = engine.run_parallel(stdin(), stdout(), Spaces::new(), threads)?;
    if std::env::var_os("REPORT").is_some() {
        eprintln!("{report:?}");
    }
    Ok(())
}
