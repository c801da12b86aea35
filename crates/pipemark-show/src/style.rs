//! The meaning of text, and its colours on a terminal.

/// The meaning of a piece of text. Each renderer decides how the text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// The main text.
    #[default]
    Plain,
    /// A heading.
    Heading,
    /// Secondary text.
    Aside,
    /// A bar of a chart.
    Bar,
    /// A warning.
    Caution,
    /// A failure.
    Failure,
    /// A success.
    Success,
    /// One of several curves, by its index.
    Series(usize),
}

/// Whether colours and bold text may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// Text in the terminal's own colours (SGR sequences).
    Always,
}

impl Colour {
    /// `text` in the colours of `style`.
    pub fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => return text.to_owned(),
            Style::Heading => "1",
            Style::Aside => "2",
            Style::Bar => "36",
            Style::Caution => "33",
            Style::Failure => "31",
            Style::Success => "32",
            Style::Series(index) => ["36", "33", "35", "32", "34", "31"][index % 6],
        };
        match self {
            Colour::Always if !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}
