//! Converts a page of the documentation from Markdown to blocks.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use pipemark_show::{Block, Cell, Column, Fit, Grid, Note, Sheet, Style};

/// A page, or only its section with the heading `section`.
pub fn manual(page: &str, section: Option<&str>) -> Sheet {
    let text = section.map_or(page, |heading| self::section(page, heading));
    let mut sheet = Sheet::default();
    let (mut text_of_block, mut link) = (String::new(), None);
    let (mut lists, mut items): (Vec<Option<u64>>, Vec<Note>) = (Vec::new(), Vec::new());
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        let mut block = || std::mem::take(&mut text_of_block);
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                text_of_block.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak => text_of_block.push(' '),
            Event::Start(Tag::Link { dest_url, .. }) if dest_url.contains("://") => link = Some(dest_url.to_string()),
            Event::End(TagEnd::Link) => text_of_block.extend(link.take().map(|link| format!(" ({link})"))),
            Event::End(TagEnd::Heading(level)) => {
                sheet.heading(if level == HeadingLevel::H1 { 1 } else { 2 }, &block());
            }
            Event::End(TagEnd::CodeBlock) => sheet.blocks.push(Block::Code(block())),
            Event::End(TagEnd::Paragraph) if lists.is_empty() => sheet.text(Style::Plain, [block()]),
            Event::Start(Tag::List(first)) => {
                // The text of the item that contains the nested list.
                items.extend(item(&mut lists, block()));
                lists.push(first);
            }
            Event::End(TagEnd::Paragraph | TagEnd::Item) => items.extend(item(&mut lists, block())),
            Event::End(TagEnd::List(_)) => {
                lists.pop();
                if lists.is_empty() {
                    sheet.notes(std::mem::take(&mut items));
                }
            }
            Event::Start(Tag::TableHead | Tag::TableRow) => rows.push(Vec::new()),
            Event::End(TagEnd::TableCell) => rows.last_mut().expect("a cell is in a row").push(Cell::shown(block())),
            Event::End(TagEnd::Table) => {
                let rows = std::mem::take(&mut rows);
                let columns = rows[0].iter().map(|cell| Column::words("", &cell.text).fit(Fit::Wrapped));
                sheet.grid(Grid::new(columns.collect(), rows[1..].to_vec()));
            }
            _ => {}
        }
    }
    sheet
}

/// The next item of the innermost list, unless it has no text.
fn item(lists: &mut [Option<u64>], text: String) -> Option<Note> {
    let number = lists.last_mut()?;
    let note = |mark: &str| Note::new(mark, Style::Plain, &text);
    match number {
        _ if text.is_empty() => None,
        Some(next) => {
            *next += 1;
            Some(note(&format!("{}.", *next - 1)))
        }
        None => Some(note("•")),
    }
}

/// The section from its second-level heading to the next one; the whole page if it has no such heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let Some(start) = page.find(&format!("\n## {heading}\n")) else { return page };
    let section = &page[start + 1..];
    section[1..].find("\n## ").map_or(section, |end| &section[..=end + 1])
}

#[cfg(test)]
mod tests {
    use pipemark_show::{Characters, Colour, Terminal};

    use super::*;

    fn render(page: &str, section: Option<&str>, colour: Colour) -> String {
        Terminal { width: 40, colour, characters: Characters::Unicode }.render(&manual(page, section))
    }

    const PAGE: &str = "# Title\n\nSome *text* with `code` and [a link](https://example.org), which goes on.\n\n\
                        - one\n- two, which is so long that it needs another line\n\n\
                        ```sh\nls  -l\n```\n\n## Second\n\n| a | b |\n|---|---|\n| 1 | long words that are wrapped here |\n";

    #[test]
    fn pages_are_plain_text() {
        assert_eq!(
            render(PAGE, None, Colour::Never),
            "Title\nSome text with code and a link\n(https://example.org), which goes on.\n\
             • one\n• two, which is so long that it needs\n  another line\n\n  ls  -l\n\n\
             Second\n  a  b\n  1  long words that are wrapped here\n"
        );
        assert!(render(PAGE, None, Colour::Always).starts_with("\x1b[1mTitle\x1b[0m\n"));
    }

    #[test]
    fn sections_are_cut_out() {
        assert!(render(PAGE, Some("Second"), Colour::Never).starts_with("Second\n  a  b\n"));
    }
}
