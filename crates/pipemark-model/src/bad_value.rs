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

/// Refuses with a sentence.
///
/// # Errors
/// Always.
pub fn refuse<T>(sentence: impl Into<String>) -> Result<T, BadValue> {
    Err(BadValue::new(sentence))
}

/// Refuses with a sentence where a condition holds.
macro_rules! refuse_if {
    ($condition:expr, $($sentence:tt)+) => {
        if $condition {
            return $crate::bad_value::refuse(format!($($sentence)+));
        }
    };
}

pub(crate) use refuse_if;
