//! The null link transfers nothing. Both ends do all other work, so the harness itself is measured.

use std::io;
use std::path::Path;

use pipemark_model::Ends;

use crate::link::{BoxReceiver, BoxSender, Handle, Handles, Link, options};

pub struct Null;

impl Link for Null {
    fn connect(&self, _: &Ends, _: &Path) -> io::Result<Handles> {
        Ok(Handles { source: Handle::Nothing, sink: Handle::Nothing, message_limit: None, buffers: None })
    }

    fn sender(&self, _: Handle, params: &Ends) -> io::Result<BoxSender> {
        Ok(pipeio_harness::send::buffered(options::send(params).buffer()?, |bytes, _| Ok(bytes.len())))
    }

    fn receiver(&self, _: Handle, params: &Ends) -> io::Result<BoxReceiver> {
        Ok(pipeio_harness::recv::buffered(options::recv(params).buffer()?, |bytes, _| Ok(bytes.len())))
    }
}
