//! Renders a sheet as one self-contained page, which loads nothing and runs only its own script.
//!
//! Text from other sources enters the page in three ways, each of which is safe: as text that [`escape`] escapes, as JSON for
//! the charts with every `<` escaped, and as compressed data in base 64. A Content-Security-Policy allows the one script
//! and the one style by their hashes. It forbids everything else, including network access and the evaluation of text as
//! code.

mod items;

use std::io::{self, Read, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::{Block, Note, Sheet, Style, vega};
use items::{Item, Panel, escape, items, numbered};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
/// The JavaScript libraries as published, concatenated and compressed; see the README beside them.
const LIBRARIES: &[u8] = include_bytes!("../assets/vega/vega.js.gz");
const LICENSE: &str = include_str!("../assets/vega/LICENSE");

const NOSCRIPT: &str = "\n<noscript><p class=\"caution\">The charts need JavaScript, which is off here. The tables have all \
                        figures.</p></noscript>";

fn libraries() -> io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(LIBRARIES).read_to_string(&mut text)?;
    Ok(text)
}

/// The size in bytes up to which mail programs accept a page.
const MAX_PAGE: usize = 2 << 20;

/// A file embedded in the page, for readers who want the figures.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// The file name for saving.
    pub file: String,
    /// The label, if there are several attachments; otherwise empty.
    pub label: String,
    /// The content of the file.
    pub content: Vec<u8>,
    /// The content to use instead if the page would be larger than mail programs accept.
    pub shorter: Vec<u8>,
}

/// A heading and the blocks up to the next heading.
#[derive(Default)]
struct Section<'a> {
    title: &'a str,
    open: Vec<Item<'a>>,
    /// Tables below a chart, folded.
    folded: Vec<Item<'a>>,
}

/// Renders the sheet as a page.
///
/// # Errors
/// If the compression of an attachment fails, which is a bug.
pub fn html(sheet: &Sheet, attachments: &[Attachment]) -> io::Result<String> {
    let mut specs = Vec::new();
    let mut sections = sections(sheet, &mut specs);
    let head = sections.remove(0);
    let script = match specs.is_empty() {
        true => SCRIPT.to_owned(),
        false => ["/*!", LICENSE, "*/", &libraries()?, SCRIPT].join("\n"),
    };
    let render = |raw: &[String], shortened: bool| {
        format!(
            include_str!("page/page.html"),
            policy = policy(&script),
            version = env!("CARGO_PKG_VERSION"),
            style = STYLE,
            title = escape(head.title),
            head = items(&head.open, ""),
            contents = contents(&sections),
            noscript = if specs.is_empty() { "" } else { NOSCRIPT },
            sections = numbered(&sections, section),
            downloads = downloads(attachments, shortened),
            program = program(),
            specs = escape_json(&Json::from(&specs[..]).to_string()),
            // Base 64 has no special characters of HTML, and HTML doesn't unescape the text of a script.
            raw = numbered(raw, |number, text| {
                format!("\n<script type=\"application/gzip\" id=\"raw-{number}\">{text}</script>")
            }),
            script = script,
        )
    };
    let room = MAX_PAGE.saturating_sub(render(&[], false).len());
    let whole = attachments.iter().map(|attachment| compress(&attachment.content)).collect::<io::Result<Vec<_>>>()?;
    if whole.iter().map(String::len).sum::<usize>() <= room {
        return Ok(render(&whole, false));
    }
    let shorter = attachments.iter().map(|attachment| compress(&attachment.shorter)).collect::<io::Result<Vec<_>>>()?;
    Ok(render(&shorter, true))
}

/// The head (the sheet's own heading and the text below it), followed by the sections.
fn sections<'a>(sheet: &'a Sheet, specs: &mut Vec<Json>) -> Vec<Section<'a>> {
    let mut sections = vec![Section { title: "pipemark", ..Section::default() }];
    for block in &sheet.blocks {
        let in_head = sections.len() == 1;
        if in_head && !matches!(block, Block::Heading(..) | Block::Text(..)) {
            sections.push(Section::default());
        }
        let section = sections.last_mut().expect("never empty");
        let charted = section.open.iter().any(|item| matches!(item, Item::Figure(_)));
        let folds = charted && (!section.folded.is_empty() || matches!(block, Block::Grid(_)));
        let items = if folds { &mut section.folded } else { &mut section.open };
        match block {
            Block::Heading(1, text) if in_head => section.title = text,
            Block::Heading(1 | 2, text) => sections.push(Section { title: text, ..Section::default() }),
            Block::Heading(_, text) => items.push(Item::Heading(text)),
            Block::Text(style, parts) => items.push(Item::Text(*style, parts)),
            Block::Code(text) => items.push(Item::Code(text.clone())),
            Block::Grid(grid) => items.extend(grid.groups.iter().map(|group| Item::Table(grid, group))),
            Block::Notes(notes) => {
                items.extend(notes.chunk_by(|one, next| list_class(one) == list_class(next)).map(notes_item));
            }
            Block::Gap => {}
            Block::Chart(chart) => {
                let (spec, legend) = vega::spec(chart);
                let panel = Panel { chart, spec: specs.len(), legend };
                specs.push(spec);
                match items.last_mut() {
                    Some(Item::Figure(panels)) if panels[0].chart.title == chart.title && !chart.panel.is_empty() => {
                        panels.push(panel);
                    }
                    _ => items.push(Item::Figure(vec![panel])),
                }
            }
        }
    }
    sections
}

fn list_class(note: &Note) -> &'static str {
    match (note.mark.as_str(), note.style) {
        _ if note.is_command() => "command",
        ("•", _) => "findings",
        ("!", Style::Caution) => "warnings",
        _ => "notes",
    }
}

fn notes_item(notes: &[Note]) -> Item<'_> {
    match notes.first().map_or("notes", list_class) {
        "command" => Item::Code(notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>().join("\n")),
        class => Item::Notes(class, notes),
    }
}

/// The links to the sections, if there are more than three.
fn contents(sections: &[Section]) -> String {
    let count = sections.len();
    let (open, close) = match count > 12 {
        true => (format!("<details><summary>{count} sections</summary>"), "</details>"),
        false => (String::new(), ""),
    };
    let link = |number: usize, section: &Section| match section.title {
        "" => String::new(),
        title => format!("\n<li><a href=\"#section-{number}\">{}</a></li>", escape(title)),
    };
    match count > 3 {
        true => {
            format!("\n<nav aria-label=\"Sections\">{open}\n<ul>{}\n</ul>{close}\n</nav>", numbered(sections, link))
        }
        false => String::new(),
    }
}

fn section(number: usize, section: &Section) -> String {
    let title = escape(section.title);
    let (label, heading) = match title.is_empty() {
        true => (String::new(), String::new()),
        false => {
            (format!(" aria-labelledby=\"section-{number}\""), format!("\n<h2 id=\"section-{number}\">{title}</h2>"))
        }
    };
    let folded = match section.folded.is_empty() {
        true => String::new(),
        false => format!(
            "\n<details>\n<summary>Table of all figures</summary>{}\n</details>",
            items(&section.folded, section.title)
        ),
    };
    format!("\n<section{label}>{heading}{}{folded}\n</section>", items(&section.open, section.title))
}

/// The buttons that save the attachments.
fn downloads(attachments: &[Attachment], shortened: bool) -> String {
    if attachments.is_empty() {
        return String::new();
    }
    let contents = match shortened {
        true => {
            "All results except the single runs, with figures of six digits, to keep this page small enough to mail. The \
             file that the page was made from has everything."
        }
        false => "All results, as <code>--json</code> wrote them, with each run of each trial.",
    };
    let button = |number: usize, attachment: &Attachment| {
        let label = match escape(&attachment.label) {
            label if label.is_empty() => label,
            label => format!(": {label}"),
        };
        let file = escape(&attachment.file);
        format!(
            "\n<button type=\"button\" data-raw=\"raw-{number}\" data-file=\"{file}\">Download JSON{label}</button>"
        )
    };
    format!(
        "\n<section aria-labelledby=\"raw\">\n<h2 id=\"raw\">The data</h2>\n<p>{contents} <code>pipemark report</code> makes this \
         page from them again.</p>\n<p class=\"downloads\">{}\n</p>\n</section>",
        numbered(attachments, button)
    )
}

/// The program's name, with a link if its address is known.
fn program() -> String {
    match env!("CARGO_PKG_REPOSITORY") {
        "" => "pipemark".to_owned(),
        address => format!("<a href=\"{}\">pipemark</a>", escape(address)),
    }
}

/// Escapes the characters in JSON that are special in HTML, and those that end a line in older JavaScript.
fn escape_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => safe.push(c),
        }
    }
    safe
}

/// `content` compressed, in base 64.
fn compress(content: &[u8]) -> io::Result<String> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::new(6));
    packer.write_all(content)?;
    Ok(BASE64_STANDARD.encode(packer.finish()?))
}

/// A policy that allows only this page's script and style, and only images made by the page.
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
        for text in [&libraries().unwrap(), SCRIPT, LICENSE] {
            assert!(!text.contains("</script") && !text.contains("<!--"), "{}", &text[..60]);
        }
        assert!(!LICENSE.contains("*/"));
    }

    #[test]
    fn json_for_the_page_has_no_markup() {
        let json = escape_json(r#"["</script><!--&\u2028"]"#);
        assert!(!json.contains(['<', '>', '&']));
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), ["</script><!--&\u{2028}"]);
    }
}
