//! Writes numbered blocks into a pipe without a copy: `gift | tail -c 100`.

use std::io::{Write, stdout};

use pipeio::Gifts;

fn main() -> std::io::Result<()> {
    // A pipe with room for a whole gift accepts the gift in one call. A smaller pipe works too, so errors are ignored.
    let _ = pipeio::pipe::set_capacity(stdout(), 1 << 20);
    let mut gifts = Gifts::new();
    for block in 0..100u32 {
        let mut gift = gifts.gift(256 << 10)?;
        for line in gift.chunks_exact_mut(32) {
            writeln!(&mut line[..], "{block:31}")?;
        }
        gift.send(stdout())?;
        // `send` consumed `gift`, so bytes that a reader may still hold can't be changed here.
    }
    Ok(())
}
