//! No transfer at all: both ends do everything but that, which is what the harness itself costs.

use std::io;
use std::path::Path;

use pipeio::memory::Buffer;
use pipeio::recv::{Received, Receiver};
use pipeio::send::{Moved, Sender};

use super::{Handle, Handles, Link, options};
use crate::model::Ends;

pub struct Null;

impl Link for Null {
    fn connect(&self, _: &Ends, _: &Path) -> io::Result<Handles> {
        Ok(Handles { source: Handle::Nothing, sink: Handle::Nothing, message_limit: None, buffers: None })
    }

    fn sender(&self, _: Handle, params: &Ends) -> io::Result<Box<dyn Sender + Send>> {
        let options = options::send(params);
        Ok(Box::new(NullSender(Buffer::new(options.block, options.align, options.pages)?)))
    }

    fn receiver(&self, _: Handle, params: &Ends) -> io::Result<Box<dyn Receiver + Send>> {
        let options = options::recv(params);
        Ok(Box::new(NullReceiver(Buffer::new(options.block, options.align, options.pages)?)))
    }
}

struct NullSender(Buffer);

impl Sender for NullSender {
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        fill(0, self.0.bytes_mut());
        Ok(())
    }

    fn fresh(&mut self, len: usize) -> io::Result<&mut [u8]> {
        Ok(&mut self.0.bytes_mut()[..len])
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        Ok(Moved { bytes: len, calls: 0 })
    }
}

struct NullReceiver(Buffer);

impl Receiver for NullReceiver {
    fn recv(&mut self) -> io::Result<Received<'_>> {
        let data = self.0.bytes();
        Ok(Received { bytes: data.len(), calls: 0, data: Some(data) })
    }
}
