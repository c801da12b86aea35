//! Programs in other languages, which stream the bytes in place of pipemark's own source and sink: the languages, the
//! two programs of each, and the results that only their runs have.

use serde::{Deserialize, Serialize};

use crate::value::word_enum;

/// Defines a type for the names of entrants or of filters. The type accepts any well-formed name. Whether a program of
/// that name exists is checked where the files of entrants are read.
macro_rules! name_type {
    ($type:ident, $what:literal, $description:literal) => {
        #[doc = $description]
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(String);

        impl $type {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::bad_value::BadValue;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-_".contains(c);
                let starts = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
                if !starts || text.len() > 40 || !text.chars().all(good) {
                    let shown: String = text.chars().take(40).collect();
                    return Err(Self::Err::new(format!("'{shown}' is not the name of a {}", $what)));
                }
                Ok($type(text.to_owned()))
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        $crate::value::serde_as_text!($type, $description);
    };
}
pub(super) use name_type;

name_type!(
    Language,
    "language; use lower-case letters and digits, as in c or cpp",
    "a language that has programs in the directory 'entrants', such as c or cpp"
);

word_enum! {
    /// How an entrant is written.
    pub enum Program {
        /// What a good programmer in the language writes with its standard library.
        Idiomatic,
        /// The fastest program in the language that still writes, reads and checks every byte.
        Tuned,
    }
}

/// Results that only an entrant's runs have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntrantStats {
    /// Compiler or runtime with its version, as the program reports it.
    pub runtime: String,
    /// Whether the program compares each block with the expected block, instead of summing the block's words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compares: bool,
    /// Peak resident memory of the entrant's largest process, in bytes. `None` if it isn't larger than the memory of
    /// pipemark's process, which started the entrant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rss: Option<u64>,
}
