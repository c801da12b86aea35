//! A ring buffer in unnamed shared memory.

use std::io;
use std::path::Path;

use pipeio_harness::ring::{self, RingAccess};

use pipemark_model::{Capacity, Ends, RecvMethod, SendMethod};

use crate::link::{BoxReceiver, BoxSender, Handle, Handles, Link, options};

pub struct Shm;

impl Link for Shm {
    fn connect(&self, params: &Ends, _: &Path) -> io::Result<Handles> {
        let bytes = match params.capacity {
            Capacity::Named(_) => ring::DEFAULT_BYTES,
            Capacity::Bytes(size) => size.as_usize(),
        };
        let memory = ring::create(bytes, params.block.as_usize())?;
        Ok(Handles::new(memory.try_clone()?, memory))
    }

    fn sender(&self, end: Handle, params: &Ends) -> io::Result<BoxSender> {
        let access = if params.send == SendMethod::InPlace { RingAccess::InPlace } else { RingAccess::Copy };
        ring::sender(end.fd()?, &options::send(params), access)
    }

    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<BoxReceiver> {
        let access = if params.recv == RecvMethod::InPlace { RingAccess::InPlace } else { RingAccess::Copy };
        ring::receiver(end.fd()?, &options::recv(params), access)
    }
}
