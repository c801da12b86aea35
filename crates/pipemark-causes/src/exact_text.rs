//! Text that needn't be UTF-8, such as a command line, and its form in JSON.

use std::ops::Deref;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The bytes of a text. In JSON it is a string or, if it isn't UTF-8, an object with its bytes in hexadecimal:
/// `{"hex": "636166e9"}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExactText(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum TextInJson {
    Text(String),
    Hex { hex: String },
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Serialize for ExactText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => TextInJson::Hex { hex: hex(&self.0) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ExactText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ExactText, D::Error> {
        let digits = match TextInJson::deserialize(deserializer)? {
            TextInJson::Text(text) => return Ok(text.into()),
            TextInJson::Hex { hex } => hex.into_bytes(),
        };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = |two: &[u8]| u8::try_from(digit(*two.first()?)? << 4 | digit(*two.get(1)?)?).ok();
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        bytes.map(ExactText).ok_or_else(|| D::Error::custom("not hexadecimal"))
    }
}

impl Deref for ExactText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for ExactText {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for ExactText {
    fn from(text: &str) -> ExactText {
        ExactText(text.as_bytes().to_vec())
    }
}

impl From<String> for ExactText {
    fn from(text: String) -> ExactText {
        ExactText(text.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_read_back() {
        for (bytes, json) in [(&b"caf\xc3\xa9 \t"[..], "\"café \\t\""), (b"caf\xe9", "{\"hex\":\"636166e9\"}")] {
            let text = ExactText(bytes.to_vec());
            assert_eq!(serde_json::to_string(&text).unwrap(), json);
            assert_eq!(serde_json::from_str::<ExactText>(json).unwrap(), text);
        }
        for json in ["{\"hex\":\"6\"}", "{\"hex\":\"6x\"}", "{\"hex\":\"+1\"}", "{}", "1"] {
            assert!(serde_json::from_str::<ExactText>(json).is_err(), "{json}");
        }
    }
}
