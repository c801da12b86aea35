//! `--json-lines`: a line of JSON for each run or trial as it ends, for whoever follows a measurement.

use std::fs::File;
use std::io::{self, Write};

use pipeio_harness::start::stdout_was_closed;
use serde::Serialize;

use crate::destination::Destination;
use crate::ending::ExitError;

/// Where the lines go; each is complete when it is written.
#[derive(Debug)]
pub struct JsonLines {
    destination: Destination,
    file: Option<File>,
}

impl JsonLines {
    /// Opens a file anew; standard output is there.
    ///
    /// # Errors
    /// When the file can't be made, or standard output is closed.
    pub fn open(destination: &Destination) -> Result<JsonLines, ExitError> {
        let file = match destination {
            Destination::Stdout if stdout_was_closed() => Err(io::Error::other("it is closed")),
            Destination::Stdout => Ok(None),
            Destination::File(path) => File::create(path).map(Some),
        };
        let failed = |error| ExitError::failed(format_args!("cannot write JSON lines to {destination}: {error}"));
        Ok(JsonLines { destination: destination.clone(), file: file.map_err(failed)? })
    }

    /// Writes a line at once.
    ///
    /// # Errors
    /// When it can't be written. A reader of standard output that has left ends the program as it should.
    pub fn line(&mut self, value: &impl Serialize) -> Result<(), ExitError> {
        let text = serde_json::to_string(value)? + "\n";
        let written = match &mut self.file {
            Some(file) => file.write_all(text.as_bytes()),
            None => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
        };
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => ExitError::code(0),
            _ => ExitError::failed(format_args!("cannot write JSON lines to {}: {error}", self.destination)),
        })
    }
}
