//! Renders a sheet as one self-contained page, which loads nothing and runs only its own script.
//!
//! Text from other sources enters the page in three ways, each of which is safe: through a template that escapes all
//! text, as JSON for the charts with every `<` escaped, and as compressed data in base 64. A Content-Security-Policy
//! allows the one script and the one style by their hashes. It forbids everything else, including network access and
//! the evaluation of text as code.

use std::io::{self, Read, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use minijinja::value::Serde;
use minijinja::{Environment, HtmlEscape, Value, context};
use serde::Serialize;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use crate::{Block, Chart, ChartKind, Grid, Note, RowGroup, Sheet, Style, vega};

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
/// The JavaScript libraries as published, concatenated and compressed; see the README beside them.
const LIBRARIES: &[u8] = include_bytes!("../assets/vega/vega.js.gz");
const LICENSE: &str = include_str!("../assets/vega/LICENSE");

/// Escaped text in which a flag such as `--runs` isn't wrapped after its dashes.
fn words(text: &str) -> Value {
    let whole = |word: &str| match word.find("--") {
        Some(at) => format!("{}<span class=\"flag\">{}</span>", HtmlEscape(&word[..at]), HtmlEscape(&word[at..])),
        None => HtmlEscape(word).to_string(),
    };
    Value::from_safe_string(text.split(' ').map(whole).collect::<Vec<_>>().join(" "))
}

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

/// A heading and the blocks up to the next heading, in the form that the template expects.
#[derive(Default, Serialize)]
struct Section {
    title: String,
    open: Vec<Json>,
    /// Tables below a chart, folded.
    folded: Vec<Json>,
}

/// Renders the sheet as a page.
///
/// # Errors
/// If the template or the compression of an attachment fails, which is a bug.
pub fn html(sheet: &Sheet, attachments: &[Attachment]) -> io::Result<String> {
    let mut specs = Vec::new();
    let mut sections = sections(sheet, &mut specs);
    let head = sections.remove(0);
    let script = match specs.is_empty() {
        true => SCRIPT.to_owned(),
        false => ["/*!", LICENSE, "*/", &libraries()?, SCRIPT].join("\n"),
    };
    let specs = escape_json(&serde_json::to_string(&specs)?);
    let mut templates = Environment::new();
    // The name ends in .html, which enables escaping.
    templates.add_filter("words", words);
    templates.add_template("page.html", TEMPLATE).map_err(io::Error::other)?;
    let template = templates.get_template("page.html").map_err(io::Error::other)?;
    let safe = |text: &str| Value::from_safe_string(text.to_owned());
    let files: Vec<[&String; 2]> = attachments.iter().map(|attachment| [&attachment.file, &attachment.label]).collect();
    let render = |raw: &[String], shortened: bool| {
        let values = context! {
            policy => safe(&policy(&script)),
            style => safe(STYLE),
            script => safe(&script),
            specs => safe(&specs),
            head => Value::from(Serde(&head)),
            sections => Value::from(Serde(&sections)),
            files => Value::from(Serde(&files)),
            // Base 64 has no special characters of HTML, and HTML doesn't unescape the text of a script.
            raw => raw.iter().map(|text| safe(text)).collect::<Vec<_>>(),
            shortened => shortened,
            version => env!("CARGO_PKG_VERSION"),
            repository => env!("CARGO_PKG_REPOSITORY"),
        };
        template.render(values).map_err(io::Error::other)
    };
    let room = MAX_PAGE.saturating_sub(render(&[], false)?.len());
    let whole = attachments.iter().map(|attachment| compress(&attachment.content)).collect::<io::Result<Vec<_>>>()?;
    if whole.iter().map(String::len).sum::<usize>() <= room {
        return render(&whole, false);
    }
    let shorter = attachments.iter().map(|attachment| compress(&attachment.shorter)).collect::<io::Result<Vec<_>>>()?;
    render(&shorter, true)
}

/// The head (the sheet's own heading and the text below it), followed by the sections.
fn sections(sheet: &Sheet, specs: &mut Vec<Json>) -> Vec<Section> {
    let mut sections = vec![Section { title: "pipemark".to_owned(), ..Section::default() }];
    for block in &sheet.blocks {
        let in_head = sections.len() == 1;
        if in_head && !matches!(block, Block::Heading(..) | Block::Text(..)) {
            sections.push(Section::default());
        }
        let section = sections.last_mut().expect("never empty");
        let charted = section.open.iter().any(|item| item["kind"] == "figure");
        let folds = charted && (!section.folded.is_empty() || matches!(block, Block::Grid(_)));
        let items = if folds { &mut section.folded } else { &mut section.open };
        match block {
            Block::Heading(1, text) if in_head => section.title.clone_from(text),
            Block::Heading(1 | 2, text) => sections.push(Section { title: text.clone(), ..Section::default() }),
            Block::Heading(_, text) => items.push(json!({"kind": "heading", "text": text})),
            Block::Text(style, parts) => {
                items.push(json!({"kind": "text", "style": style, "parts": parts}));
            }
            Block::Code(text) => items.push(json!({"kind": "code", "text": text})),
            Block::Grid(grid) => items.extend(grid.groups.iter().map(|group| table(grid, group))),
            Block::Notes(notes) => {
                items.extend(notes.chunk_by(|one, next| list_class(one) == list_class(next)).map(notes_item));
            }
            Block::Gap => {}
            Block::Chart(chart) => {
                let Chart { title, panel, caption, below, .. } = &**chart;
                let (spec, legend) = vega::spec(chart);
                let panel_entry = json!({"chart": specs.len(), "title": panel, "legend": legend});
                specs.push(spec);
                // Charts with the same title are placed side by side if they are narrow.
                if let Some(Json::Object(figure)) = items.last_mut()
                    && figure.get("title").is_some_and(|known| known == title && !panel.is_empty())
                    && let Some(Json::Array(panels)) = figure.get_mut("panels")
                {
                    panels.push(panel_entry);
                    let several = matches!(chart.kind, ChartKind::Heat(_)) && chart.x.names.len() <= 10;
                    figure.insert("several".to_owned(), several.into());
                    continue;
                }
                items.push(json!({
                    "kind": "figure", "title": title, "caption": caption, "below": below, "panels": [panel_entry],
                }));
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

fn notes_item(notes: &[Note]) -> Json {
    let class = notes.first().map_or("notes", list_class);
    if class == "command" {
        let lines: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        return json!({"kind": "code", "text": lines.join("\n")});
    }
    let mark = |note: &Note| if class == "notes" { note.mark.clone() } else { String::new() };
    let note = |note: &Note| json!({"mark": mark(note), "text": note.text});
    json!({"kind": "notes", "class": class, "notes": notes.iter().map(note).collect::<Vec<_>>()})
}

fn table(grid: &Grid, group: &RowGroup) -> Json {
    let shown = grid.without_bars();
    let labels = shown.iter().filter(|index| **index < grid.labels).count();
    let columns: Vec<_> = shown.into_iter().map(|index| (index, &grid.columns[index])).collect();
    json!({"kind": "table", "caption": group.caption, "labels": labels, "columns": columns, "rows": group.rows})
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
    fn flags_stay_whole_and_text_stays_text() {
        let text = words("raise --runs <b>").to_string();
        assert_eq!(text, "raise <span class=\"flag\">--runs</span> &lt;b&gt;");
        assert!(!words("--<i>").to_string().contains("<i>"));
    }

    #[test]
    fn json_for_the_page_has_no_markup() {
        let json = escape_json(r#"["</script><!--&\u2028"]"#);
        assert!(!json.contains(['<', '>', '&']));
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), ["</script><!--&\u{2028}"]);
    }
}
