//! process_vm_readv(2): the sink copies directly from the source's memory, if the kernel permits it.

use std::io;
use std::path::Path;

use pipemark_model::Ends;

use crate::link::{BoxReceiver, BoxSender, Handle, Handles, Link, options};

pub struct ProcessVm;

impl Link for ProcessVm {
    fn connect(&self, _: &Ends, _: &Path) -> io::Result<Handles> {
        let header = pipeio_harness::vm::create()?;
        Ok(Handles::new(header.try_clone()?, header))
    }

    fn sender(&self, end: Handle, params: &Ends) -> io::Result<BoxSender> {
        pipeio_harness::vm::sender(end.fd()?, &options::send(params))
    }

    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<BoxReceiver> {
        pipeio_harness::vm::receiver(end.fd()?, &options::recv(params))
    }
}
