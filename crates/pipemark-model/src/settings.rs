//! Parameter values and settings: parsing, exact formatting, effective values and ids.

use crate::bad_value::BadValue;
use crate::parameter::{DEFAULT_TIME, Key, Settings, Value};
use crate::units::{ByteSize, Unit};

/// Parameters that only pipemark's own ends have.
const OWN_END_KEYS: [Key; 5] = [Key::Send, Key::Recv, Key::Block, Key::ReadBlock, Key::Wait];

impl Value {
    /// Parses `KEY=VALUE`.
    ///
    /// # Errors
    /// If the text has another form, or the key or the value is invalid.
    pub fn parse_pair(text: &str) -> Result<Value, BadValue> {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| BadValue::new(format!("'{text}' is not of the form KEY=VALUE, such as send=write")))?;
        Value::parse(Key::named(key.trim())?, value)
    }

    /// Formats the value so that [`Value::parse`] returns exactly this value. `Display` may round.
    pub fn exact(&self) -> String {
        let shown = self.to_string();
        match self.number() {
            Some(number) if Value::parse(self.key(), &shown).as_ref() != Ok(self) => match self.key().unit() {
                Unit::Nanoseconds => format!("{number} ns"),
                _ => format!("{number} B"),
            },
            _ => shown,
        }
    }

    /// The value as a number of bytes or nanoseconds, or as a count; `None` if the value is a word.
    pub fn number(&self) -> Option<u64> {
        self.json().as_u64()
    }

    /// The value in the form that programs read: a plain number or a word.
    pub fn plain(&self) -> String {
        self.number().map_or_else(|| self.to_string(), |number| number.to_string())
    }
}

impl Settings {
    /// Settings that consist of `values`.
    pub fn of(values: impl IntoIterator<Item = Value>) -> Settings {
        let mut settings = Settings::default();
        values.into_iter().for_each(|value| settings.set(value));
        settings
    }

    /// The effective value of a parameter: the value set, or the default. An unset read block equals the block. `None`
    /// if there is neither.
    pub fn effective(&self, key: Key) -> Option<Value> {
        // A source command chooses its own calls and block size.
        if self.source.is_some() && OWN_END_KEYS.contains(&key) {
            return None;
        }
        let follows = || (key == Key::ReadBlock).then(|| self.effective(Key::Block).map(as_read_block)).flatten();
        self.get(key).or_else(follows).or_else(|| key.default_value())
    }

    /// Whether a parameter has this value, set or by default. A number of blocks is compared by its total bytes.
    pub fn has(&self, value: &Value) -> bool {
        match value {
            Value::Blocks(blocks) => self.total.is_some() && self.total == Some(self.total_of(*blocks)),
            value => self.effective(value.key()).as_ref() == Some(value),
        }
    }

    /// Whether all parameters have the same effective values, except the volume of a run.
    pub fn equals_except_volume(&self, other: &Settings) -> bool {
        Key::iter().filter(|key| !key.is_volume()).all(|key| self.effective(key) == other.effective(key))
    }

    /// The total bytes of this number of blocks.
    pub fn total_of(&self, blocks: u32) -> ByteSize {
        let block = self.effective(Key::Block).and_then(|block| block.number()).unwrap_or_default();
        ByteSize(block.saturating_mul(u64::from(blocks)))
    }

    /// A short text that identifies the parameters. Equal parameters have equal ids in every version with the same
    /// schema, so that stored runs can be matched.
    pub fn id(&self) -> String {
        let exact = |key: Key| self.effective(key).map_or_else(String::new, |value| value.exact());
        let block = self.effective(Key::Block).and_then(|block| block.number()).unwrap_or_default();
        let words = [Key::Link, Key::Send, Key::Recv, Key::Place, Key::Verify].map(exact);
        let [link, send, recv, place, verify] = words;
        let mut id = format!("{link} {send}-{recv} {block} {place} {verify}");
        for key in Key::iter() {
            let named = matches!(key, Key::Link | Key::Send | Key::Recv | Key::Block | Key::Place | Key::Verify);
            let Some(value) = self.get(key).filter(|_| !named) else { continue };
            // Time has no default in the table of parameters, because a total may be given instead.
            let default = match key {
                Key::ReadBlock => self.effective(Key::Block).map(as_read_block),
                Key::Time => Some(Value::Time(DEFAULT_TIME)),
                _ => key.default_value(),
            };
            if default.as_ref() != Some(&value) {
                id.push_str(&format!(" {key}={}", value.exact().replace(' ', "")));
            }
        }
        id
    }
}

fn as_read_block(block: Value) -> Value {
    match block {
        Value::Block(size) => Value::ReadBlock(size),
        other => other,
    }
}
