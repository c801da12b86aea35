//! The transform of a line.

/// The header of a line with this number of spaces, which is `>6` if there are more than six.
pub fn header(spaces: usize) -> &'static str {
    match spaces {
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

/// The number of spaces of `line`. Characters are compared one by one, as in the published programs.
pub fn spaces(line: &str) -> usize {
    line.chars().filter(|&character| character == ' ').count()
}

#[cfg(test)]
mod tests {
    use super::{header, spaces};

    #[test]
    fn counts_up_to_six() {
        let of = |line: &str| header(spaces(line));
        assert_eq!(of(""), "[spaces: 0]");
        assert_eq!(of("hello world"), "[spaces: 1]");
        assert_eq!(of("      "), "[spaces: 6]");
        assert_eq!(of("       "), "[spaces: >6]");
    }
}
