//! The transform of a line, shared by the four programs so that they differ only in structure.
#![forbid(unsafe_code)]

/// The header of `line`: its number of spaces, or `>6` if there are more than six.
///
/// Characters are compared one by one, as in the published programs.
pub fn header(line: &str) -> &'static str {
    match line.chars().filter(|&character| character == ' ').count() {
        0 => "[spaces: 0]",
        1 => "[spaces: 1]",
        2 => "[spaces: 2]",
        3 => "[spaces: 3]",
        4 => "[spaces: 4]",
        5 => "[spaces: 5]",
        6 => "[spaces: 6]",
        _ => "[spaces: >6]",
    }
}

#[cfg(test)]
mod tests {
    use super::header;

    #[test]
    fn counts_up_to_six() {
        assert_eq!(header(""), "[spaces: 0]");
        assert_eq!(header("hello world"), "[spaces: 1]");
        assert_eq!(header("      "), "[spaces: 6]");
        assert_eq!(header("       "), "[spaces: >6]");
    }
}
