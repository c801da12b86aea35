//! What the four programs do to a line, kept in one place so that they differ in structure alone.
#![forbid(unsafe_code)]

/// The header of `line`: how many spaces it has, `>6` if more than six.
///
/// The count is over bytes, not characters, which the compiler vectorises: the cost measured here is to be that of
/// moving the line, not that of counting.
pub fn header(line: &str) -> &'static str {
    match line.bytes().filter(|&byte| byte == b' ').count() {
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
