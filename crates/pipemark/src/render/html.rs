//! A sheet as a page: one file with everything in it, which loads nothing and lets nothing in.
//!
//! What comes from elsewhere reaches it in three ways, each safe by itself: as text through a template that escapes
//! everything, as JSON for the charts in which no `<` is left, and compressed in base 64. A Content-Security-Policy names
//! the one script and the one style by their hashes and forbids the rest, evaluation of text and the network included.

use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::vega;
use crate::sheet::{Block, Fit, Grid, Group, Kind, Note, Row, Sheet, Side, Style};

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
/// Kept as they are published; see the README beside them.
const LIBRARIES: [&str; 3] = [
    include_str!("../../assets/vega/vega.min.js"),
    include_str!("../../assets/vega/vega-lite.min.js"),
    include_str!("../../assets/vega/vega-interpreter.js"),
];
const LICENSE: &str = include_str!("../../assets/vega/LICENSE");

/// What mail passes without complaint.
const LARGEST: usize = 2 << 20;

/// A file that the page carries for whoever wants the figures themselves.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// The name under which it is saved.
    pub file: String,
    /// What tells it from others; may be empty.
    pub label: String,
    /// Its content.
    pub content: Vec<u8>,
    /// What is taken instead where the page would be too large to mail.
    pub shorter: Vec<u8>,
}

/// A section: from one heading to the next.
#[derive(Default, Serialize)]
struct Section {
    title: String,
    open: Vec<Item>,
    /// Tables that a chart stands above.
    folded: Vec<Item>,
}

/// A block as the template takes it.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Item {
    Heading { text: String },
    Text { class: &'static str, parts: Vec<String> },
    Code { text: String },
    Figure { title: String, caption: String, left_out: String, several: bool, panels: Vec<Panel> },
    Table { caption: String, head: Vec<CellItem>, rows: Vec<Vec<CellItem>> },
    Notes { class: &'static str, notes: Vec<NoteItem> },
}

#[derive(Serialize)]
struct Panel {
    /// Which of the charts' specifications it is.
    chart: usize,
    title: String,
    legend: Vec<String>,
}

#[derive(Serialize)]
struct CellItem {
    text: String,
    class: &'static str,
    span: usize,
}

#[derive(Serialize)]
struct NoteItem {
    mark: String,
    text: String,
}

/// The sheet as a page.
///
/// # Errors
/// When the template or the packing of an attachment fails, which is an error of ours.
pub fn html(sheet: &Sheet, attachments: &[Attachment]) -> io::Result<String> {
    let mut specs = Vec::new();
    let mut sections = sections(sheet, &mut specs);
    let head = sections.remove(0);
    let script = match specs.is_empty() {
        true => SCRIPT.to_owned(),
        false => [&["/*!", LICENSE, "*/"], &LIBRARIES[..], &[SCRIPT]].concat().join("\n"),
    };
    let specs = harmless(&serde_json::to_string(&specs)?);
    let mut templates = Environment::new();
    // The name's ending is what turns the escaping on.
    templates.add_template("page.html", TEMPLATE).map_err(io::Error::other)?;
    let template = templates.get_template("page.html").map_err(io::Error::other)?;
    let own = |text: &str| Value::from_safe_string(text.to_owned());
    let files: Vec<[&String; 2]> = attachments.iter().map(|own| [&own.file, &own.label]).collect();
    let render = |raw: &[String], shortened: bool| {
        let values = context! {
            policy => own(&policy(&script)),
            style => own(STYLE),
            script => own(&script),
            specs => own(&specs),
            head => Value::from(Serde(&head)),
            sections => Value::from(Serde(&sections)),
            files => Value::from(Serde(&files)),
            // Base 64 holds no character that means anything to HTML, and a script's text is not unescaped.
            raw => raw.iter().map(|text| own(text)).collect::<Vec<_>>(),
            shortened => shortened,
            version => env!("CARGO_PKG_VERSION"),
        };
        template.render(values).map_err(io::Error::other)
    };
    let room = LARGEST.saturating_sub(render(&[], false)?.len());
    let whole = attachments.iter().map(|own| packed(&own.content)).collect::<io::Result<Vec<_>>>()?;
    if whole.iter().map(String::len).sum::<usize>() <= room {
        return render(&whole, false);
    }
    let shorter = attachments.iter().map(|own| packed(&own.shorter)).collect::<io::Result<Vec<_>>>()?;
    render(&shorter, true)
}

/// The head, which is the sheet's own heading and the text below it, and the sections.
fn sections(sheet: &Sheet, specs: &mut Vec<serde_json::Value>) -> Vec<Section> {
    let mut sections = vec![Section { title: "pipemark".to_owned(), ..Section::default() }];
    for block in &sheet.blocks {
        let in_head = sections.len() == 1;
        if in_head && !matches!(block, Block::Heading(..) | Block::Text(..)) {
            sections.push(Section::default());
        }
        let section = sections.last_mut().expect("never empty");
        let charted = section.open.iter().any(|item| matches!(item, Item::Figure { .. }));
        let folds = charted && (!section.folded.is_empty() || matches!(block, Block::Grid(_)));
        let items = if folds { &mut section.folded } else { &mut section.open };
        match block {
            Block::Heading(1, text) if in_head => section.title.clone_from(text),
            Block::Heading(1 | 2, text) => sections.push(Section { title: text.clone(), ..Section::default() }),
            Block::Heading(_, text) => items.push(Item::Heading { text: text.clone() }),
            Block::Text(style, parts) => items.push(Item::Text { class: class(*style), parts: parts.clone() }),
            Block::Code(text) => items.push(Item::Code { text: text.clone() }),
            Block::Grid(grid) => items.extend(grid.groups.iter().map(|group| table(grid, group))),
            Block::Notes(notes) => items.push(of_notes(notes)),
            Block::Gap => {}
            Block::Chart(chart) => {
                let (spec, legend) = vega::spec(chart);
                specs.push(spec);
                let panel = Panel { chart: specs.len() - 1, title: chart.panel.clone(), legend };
                match items.last_mut() {
                    // Several of one title stand side by side, where they are narrow.
                    Some(Item::Figure { title, panels, several, .. })
                        if !panel.title.is_empty() && *title == chart.title =>
                    {
                        *several = matches!(chart.kind, Kind::Heat(_)) && chart.x.names.len() <= 10;
                        panels.push(panel);
                    }
                    _ => items.push(Item::Figure {
                        title: chart.title.clone(),
                        caption: chart.caption.clone(),
                        left_out: chart.left_out.clone(),
                        several: false,
                        panels: vec![panel],
                    }),
                }
            }
        }
    }
    sections
}

fn class(style: Style) -> &'static str {
    match style {
        Style::Aside => "aside",
        Style::Caution => "caution",
        Style::Failure => "failure",
        Style::Success => "success",
        Style::Plain | Style::Heading | Style::Bar | Style::Series(_) => "",
    }
}

fn of_notes(notes: &[Note]) -> Item {
    let class = match notes.first() {
        Some(note) if note.mark == "•" => "findings",
        Some(note) if note.mark == "!" => "warnings",
        _ => "notes",
    };
    let mark = |note: &Note| if class == "notes" { note.mark.clone() } else { String::new() };
    Item::Notes {
        class,
        notes: notes.iter().map(|note| NoteItem { mark: mark(note), text: note.text.clone() }).collect(),
    }
}

fn table(grid: &Grid, group: &Group) -> Item {
    let columns: Vec<usize> =
        grid.for_people().into_iter().filter(|&index| grid.columns[index].fit != Fit::Bars).collect();
    let side = |index: usize| if grid.columns[index].side == Side::Right { "f" } else { "" };
    let row = |row: &Row| {
        let shown = columns.iter().filter(|&&index| row.instead.is_none() || index < grid.labels);
        let mut cells: Vec<CellItem> = shown
            .map(|&index| {
                let cell = &row.cells[index];
                let class = match cell.style {
                    Style::Success if side(index) == "f" => "f best",
                    Style::Failure => "failure",
                    _ => side(index),
                };
                CellItem { text: format!("{}{}", cell.text, cell.mark), class, span: 1 }
            })
            .collect();
        if let Some((style, reason)) = &row.instead {
            let span = (columns.len() - cells.len()).max(1);
            cells.push(CellItem { text: reason.clone(), class: class(*style), span });
        }
        cells
    };
    let head = |&index: &usize| CellItem { text: grid.columns[index].heading.clone(), class: side(index), span: 1 };
    Item::Table {
        caption: group.caption.clone(),
        head: columns.iter().map(head).collect(),
        rows: group.rows.iter().map(row).collect(),
    }
}

/// JSON that no HTML parser sees anything in.
fn harmless(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => safe.push(c),
        }
    }
    safe
}

/// Compressed, in base 64.
fn packed(content: &[u8]) -> io::Result<String> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::new(6));
    packer.write_all(content)?;
    Ok(BASE64_STANDARD.encode(packer.finish()?))
}

/// Nothing but the script and the style of this page; pictures only from what the page itself made.
fn policy(script: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())));
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data: blob:; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(STYLE)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_library_ends_the_script_early() {
        for text in LIBRARIES.iter().chain([&SCRIPT, &LICENSE]) {
            assert!(!text.contains("</script") && !text.contains("<!--"), "{}", &text[..60]);
        }
        assert!(!LICENSE.contains("*/"));
    }

    #[test]
    fn json_for_the_page_has_no_markup() {
        let json = harmless(r#"["</script><!--&\u2028"]"#);
        assert!(!json.contains(['<', '>', '&']));
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), ["</script><!--&\u{2028}"]);
    }
}
