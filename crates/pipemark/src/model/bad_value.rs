//! What is wrong with a value that someone wrote.

/// A value that makes no sense; the text is a sentence for the person who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(String);

impl BadValue {
    /// The sentence to show.
    pub fn new(sentence: impl Into<String>) -> Self {
        BadValue(sentence.into())
    }
}
