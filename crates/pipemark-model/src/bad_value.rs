//! The error for an invalid value.

/// An invalid value. The text is an error message for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(String);

impl BadValue {
    /// An error with the message `sentence`.
    pub fn new(sentence: impl Into<String>) -> Self {
        BadValue(sentence.into())
    }
}

/// Returns an error with the message `sentence`.
///
/// # Errors
/// Always.
pub fn refuse<T>(sentence: impl Into<String>) -> Result<T, BadValue> {
    Err(BadValue::new(sentence))
}

/// Returns an error with this message if a condition holds.
macro_rules! refuse_if {
    ($condition:expr, $($sentence:tt)+) => {
        if $condition {
            return $crate::bad_value::refuse(format!($($sentence)+));
        }
    };
}

pub(crate) use refuse_if;
