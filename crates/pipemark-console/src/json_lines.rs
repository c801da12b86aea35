//! `--json-lines`: a line of JSON for each completed run or trial, for programs that follow a measurement.

use std::fs::File;
use std::io::{self, Write};

use pipemark_sys::start::stdout_was_closed;
use serde::Serialize;

use crate::destination::{Destination, create_file};
use crate::ending::ExitError;

/// The open destination of JSON lines. Each line is passed on as soon as it is complete.
#[derive(Debug)]
pub struct JsonLines {
    destination: Destination,
    file: Option<File>,
}

impl JsonLines {
    /// Opens the destination. Creates the file, or empties it if it exists. For standard output, only checks that it is
    /// open.
    ///
    /// # Errors
    /// If the file cannot be created, or standard output is closed.
    pub fn open(destination: &Destination) -> Result<JsonLines, ExitError> {
        let file = match destination {
            Destination::Stdout if stdout_was_closed() => Err(io::Error::other("it is closed")),
            Destination::Stdout => Ok(None),
            Destination::File(path) => create_file(path).map(Some),
        };
        let failed = |error| ExitError::failed(format_args!("cannot write JSON lines to {destination}: {error}"));
        Ok(JsonLines { destination: destination.clone(), file: file.map_err(failed)? })
    }

    /// Writes a line without buffering.
    ///
    /// # Errors
    /// If the line cannot be written. If the reader of standard output has closed the pipe, the error has exit code 0.
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
