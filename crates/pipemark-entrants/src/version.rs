//! Version numbers in the text that tools print.

/// The first version number in `text`: `17.0.15`, `13`.
pub(crate) fn version_in(text: &str) -> Option<String> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let rest = &text[start..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    // A dot at the end of a sentence, or two dots in a row, end the number.
    let number = rest[..end].split("..").next().unwrap_or_default().trim_end_matches('.');
    Some(number.to_owned())
}

/// The numbers of a version, in a form that compares in the order of versions. A number too large for 64 bits is newer
/// than any other.
pub(crate) fn version_numbers(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(u64::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_tools_print() {
        for (text, version) in [
            ("gcc (Debian 12.2.0-14) 12.2.0\n", "12.2.0"),
            ("openjdk version \"17.0.15\" 2025-04-15", "17.0.15"),
            ("go version go1.26.8 linux/amd64", "1.26.8"),
            ("v20.20.2", "20.20.2"),
            ("version 13.", "13"),
        ] {
            assert_eq!(version_in(text).as_deref(), Some(version), "{text}");
        }
        assert_eq!(version_in("no number"), None);
        assert!(
            version_numbers("1.9") < version_numbers("1.21")
                && version_numbers("0.17") <= version_numbers("0.17.1")
                && version_numbers("18.3") > version_numbers("18")
        );
    }
}
