//! The expected output of each transform, computed as simply as possible.

/// The transforms of the library.
#[derive(Debug, Clone, Copy)]
pub enum Job {
    Spaces,
    Number,
    Length,
    Upper,
    Identity,
    Field(usize, u8),
}

impl Job {
    /// The output for the `number`-th line, without terminator.
    fn line(self, number: usize, line: &[u8]) -> Vec<u8> {
        match self {
            Self::Spaces => {
                let spaces = line.iter().filter(|&&byte| byte == b' ').count();
                let spaces = if spaces > 6 { ">6".to_owned() } else { spaces.to_string() };
                [format!("[spaces: {spaces}]").as_bytes(), line].concat()
            }
            Self::Number => [format!("{number}\t").as_bytes(), line].concat(),
            Self::Length => line.len().to_string().into_bytes(),
            Self::Upper => line.to_ascii_uppercase(),
            Self::Identity => line.to_owned(),
            Self::Field(field, delimiter) => {
                line.split(|&byte| byte == delimiter).nth(field - 1).unwrap_or_default().to_owned()
            }
        }
    }

    pub fn reference(self, input: &[u8], terminator: u8) -> Vec<u8> {
        let mut output = Vec::new();
        for (number, line) in input.split_inclusive(|&byte| byte == terminator).enumerate() {
            let content = line.strip_suffix(&[terminator]).unwrap_or(line);
            output.extend(self.line(number + 1, content));
            output.extend(&line[content.len()..]);
        }
        output
    }
}
