//! Converts a pattern's bytes to text: lines of lower-case words. The same bytes give the same text.

/// Letters by their frequency in English, blanks, and one newline. Lines have 64 bytes on average, and words have 5
/// letters.
const LETTERS: &[u8; 64] = b"eeeeeeettttttaaaaooooiiinnnnssshhhrrrddllcummwfgypbvk          \n";

/// Replaces each byte by a character of [`LETTERS`].
pub(super) fn of(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = LETTERS[usize::from(*byte >> 2)];
    }
}

#[cfg(test)]
mod tests {
    use pipeio_harness::pattern::{Pattern, Rule};

    use super::*;

    #[test]
    fn a_pattern_becomes_lines_of_words() {
        let mut bytes = vec![0; 1 << 16];
        Pattern::endless(Rule::Position { seed: 7 }).fill(0, &mut bytes);
        of(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.chars().all(|c| c.is_ascii_lowercase() || c == ' ' || c == '\n'));
        let lines = text.lines().count();
        assert!((512..2048).contains(&lines), "{lines} lines");
        assert!(text.split_whitespace().count() > 5 * lines);
    }
}
