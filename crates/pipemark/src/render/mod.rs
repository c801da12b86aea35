//! Sheets as text for a terminal, as Markdown and as a page: each renderer lays out blocks and knows nothing of trials.

mod grid;
mod html;
mod markdown;
mod plot;
mod terminal;
mod vega;

pub use html::{Attachment, html};
pub use markdown::markdown;
pub use terminal::{Characters, Colour, Terminal};

#[cfg(test)]
mod tests;
