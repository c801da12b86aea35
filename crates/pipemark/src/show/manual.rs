//! A page of the documentation for a terminal: Markdown as plain, wrapped text, with bold headings where there is colour.

use std::io;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::text::{Colour, Side, Style, pad, width, wrap};

/// How to show a page.
#[derive(Debug, Clone, Copy)]
pub struct Manual {
    /// Columns to use.
    pub width: usize,
    /// Whether headings are bold.
    pub colour: Colour,
}

/// Longer lines are hard to read.
const WIDEST: usize = 100;
const INDENT: usize = 2;

impl Manual {
    /// Writes a page, or only the section below the heading `section`.
    ///
    /// # Errors
    /// When `out` refuses the bytes.
    pub fn write(&self, page: &str, section: Option<&str>, out: &mut dyn io::Write) -> io::Result<()> {
        let text = match section {
            Some(heading) => self::section(page, heading),
            None => page,
        };
        let room = self.width.clamp(40, WIDEST);
        let mut state = State { colour: self.colour, room, ..State::default() };
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            state.take(event, out)?;
        }
        Ok(())
    }
}

/// From the second-level heading to the next; the whole page where it has none of that name.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let Some(start) = page.find(&format!("\n## {heading}\n")) else { return page };
    let section = &page[start + 1..];
    section[1..].find("\n## ").map_or(section, |end| &section[..=end + 1])
}

/// Where in the page we are.
struct State {
    colour: Colour,
    room: usize,
    /// The text of the block until now.
    text: String,
    /// Of each list that is open, the number of the next item, if items have numbers.
    lists: Vec<Option<u64>>,
    /// What stands before the first line of the block.
    mark: String,
    code: bool,
    link: Option<String>,
    rows: Vec<Vec<String>>,
    begun: bool,
}

impl Default for State {
    fn default() -> State {
        State {
            colour: Colour::Never,
            room: 80,
            text: String::new(),
            lists: Vec::new(),
            mark: String::new(),
            code: false,
            link: None,
            rows: Vec::new(),
            begun: false,
        }
    }
}

impl State {
    fn take(&mut self, event: Event<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        match event {
            Event::Text(text) if self.code => {
                for line in text.lines() {
                    writeln!(out, "{}{line}", " ".repeat(self.indent() + INDENT))?;
                }
            }
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.text.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            Event::Start(Tag::Heading { .. } | Tag::Table(_)) => self.gap(out)?,
            Event::Start(Tag::Paragraph) if self.mark.is_empty() => self.gap(out)?,
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented)) => {
                self.gap(out)?;
                self.code = true;
            }
            Event::Start(Tag::List(first)) => {
                // A list within an item, or right below its paragraph.
                self.flush(out)?;
                if self.lists.is_empty() {
                    self.gap(out)?;
                }
                self.lists.push(first);
            }
            Event::Start(Tag::Item) => {
                self.mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
            }
            Event::Start(Tag::Link { dest_url, .. }) if dest_url.contains("://") => {
                self.link = Some(dest_url.to_string())
            }
            Event::End(TagEnd::Link) => {
                if let Some(link) = self.link.take() {
                    self.text.push_str(&format!(" ({link})"));
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let text = std::mem::take(&mut self.text);
                for line in wrap(&text, self.room) {
                    writeln!(out, "{}", self.colour.paint(Style::Heading, &line))?;
                }
            }
            Event::End(TagEnd::Paragraph | TagEnd::Item) => self.flush(out)?,
            Event::End(TagEnd::List(_)) => {
                self.lists.pop();
            }
            Event::End(TagEnd::CodeBlock) => self.code = false,
            Event::Start(Tag::TableHead | Tag::TableRow) => self.rows.push(Vec::new()),
            Event::End(TagEnd::TableCell) => {
                let cell = std::mem::take(&mut self.text);
                self.rows.last_mut().expect("a cell is in a row").push(cell);
            }
            Event::End(TagEnd::Table) => self.table(out)?,
            _ => {}
        }
        Ok(())
    }

    fn indent(&self) -> usize {
        // A number takes one column more than a bullet.
        self.lists.iter().map(|list| INDENT + usize::from(list.is_some())).sum()
    }

    /// An empty line between blocks.
    fn gap(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            writeln!(out)?;
        }
        Ok(())
    }

    /// Writes the text of a paragraph or item.
    fn flush(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        let (text, mark) = (std::mem::take(&mut self.text), std::mem::take(&mut self.mark));
        if text.is_empty() {
            return Ok(());
        }
        let indent = self.indent();
        let lines = wrap(&text, self.room.saturating_sub(indent));
        for (index, line) in lines.iter().enumerate() {
            // The mark stands in the room that the list is set in by.
            let before = if index == 0 { pad(&mark, indent, Side::Right) } else { " ".repeat(indent) };
            writeln!(out, "{before}{line}")?;
        }
        Ok(())
    }

    /// Columns side by side; the last one is wrapped, the others too where they take more than half of the line.
    fn table(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..columns)
            .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0))
            .collect();
        let gaps = 2 * columns.saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > self.room {
            match widths.iter_mut().max() {
                Some(widest) if *widest > 8 => *widest -= 1,
                _ => break,
            }
        }
        for (number, row) in rows.iter().enumerate() {
            let cells: Vec<Vec<String>> = row.iter().zip(&widths).map(|(cell, &room)| wrap(cell, room)).collect();
            for part in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let parts = cells.iter().zip(&widths);
                let parts =
                    parts.map(|(lines, &room)| pad(lines.get(part).map_or("", String::as_str), room, Side::Left));
                let line = parts.collect::<Vec<_>>().join("  ");
                let style = if number == 0 { Style::Heading } else { Style::Plain };
                writeln!(out, "{}", self.colour.paint(style, line.trim_end()))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(page: &str, section: Option<&str>, colour: Colour) -> String {
        let mut out = Vec::new();
        Manual { width: 40, colour }.write(page, section, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const PAGE: &str = "# Title\n\nSome *text* with `code` and [a link](https://example.org), which goes on.\n\n\
                        - one\n- two, which is so long that it needs another line\n\n\
                        ```sh\nls  -l\n```\n\n## Second\n\n| a | b |\n|---|---|\n| 1 | long words that are wrapped here |\n";

    #[test]
    fn pages_are_plain_text() {
        assert_eq!(
            shown(PAGE, None, Colour::Never),
            "Title\n\nSome text with code and a link\n(https://example.org), which goes on.\n\n\
             • one\n• two, which is so long that it needs\n  another line\n\n  ls  -l\n\n\
             Second\n\na  b\n1  long words that are wrapped here\n"
        );
        assert!(shown(PAGE, None, Colour::Always).starts_with("\x1b[1mTitle\x1b[0m\n"));
    }

    #[test]
    fn sections_are_cut_out() {
        assert!(shown(PAGE, Some("Second"), Colour::Never).starts_with("Second\n\na  b\n"));
    }
}
