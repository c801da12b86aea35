//! The page: one file with everything in it, which loads nothing and lets nothing in.
//!
//! What comes from documents reaches it in three ways, each safe by itself: as text through a template that escapes
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

use super::figure::{Figure, Shape, figures};
use super::sections::{Section, labels};
use super::vega::charts;
use crate::model::{Document, Nanos, Throughput};
use crate::show::cells::Grid;
use crate::show::{Words, grids, neutral, words};

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

/// An experiment on the page.
#[derive(Serialize)]
struct Part {
    id: String,
    title: String,
    about: String,
    figures: Vec<Picture>,
    tables: Vec<Tables>,
}

/// A figure: a chart, or several side by side.
#[derive(Serialize)]
struct Picture {
    title: String,
    left_out: String,
    /// Whether the panels are so narrow that two have room beside each other.
    side_by_side: bool,
    panels: Vec<PanelOf>,
}

#[derive(Serialize)]
struct PanelOf {
    /// Which of the charts' specifications it is.
    chart: usize,
    title: String,
    legend: Vec<String>,
}

/// The tables of one run.
#[derive(Serialize)]
struct Tables {
    run: String,
    grids: Vec<Grid>,
    notes: Vec<String>,
}

/// One document, in words.
#[derive(Serialize)]
struct Run {
    label: String,
    host: String,
    suite: String,
    title: String,
    started: String,
    version: String,
    command: String,
    seed: u64,
    elapsed: String,
    memory_copy: Option<String>,
    trials: usize,
    samples: usize,
    findings: Vec<String>,
    words: Words,
    file: String,
}

/// Writes the page.
///
/// # Errors
/// When `out` refuses the bytes.
pub fn page(documents: &[Document], out: &mut dyn Write) -> io::Result<()> {
    let labels = labels(documents);
    let mut specs = Vec::new();
    let parts: Vec<Part> = Section::all(documents)
        .iter()
        .enumerate()
        .map(|(index, section)| part(index, section, documents, &labels, &mut specs))
        .collect();
    let runs: Vec<Run> = documents.iter().zip(&labels).enumerate().map(|(n, (d, label))| run(n, d, label)).collect();
    let script = [&[LICENSE_BEGIN, LICENSE, LICENSE_END], &LIBRARIES[..], &[SCRIPT]].concat().join("\n");
    let specs = harmless(&serde_json::to_string(&specs)?);
    let first = &runs[0];
    let heading = match (first.title.is_empty(), runs.iter().all(|run| run.title == first.title)) {
        (false, true) => first.title.clone(),
        _ => runs.iter().map(|run| run.suite.clone()).collect::<Vec<_>>().join(", "),
    };
    let mut page =
        Page { policy: policy(&script), script, specs, heading, runs, parts, raw: Vec::new(), without_samples: false };
    let room = LARGEST.saturating_sub(page.render()?.len());
    page.raw = documents.iter().map(packed).collect::<Result<_, _>>()?;
    if page.raw.iter().map(String::len).sum::<usize>() > room {
        page.without_samples = true;
        page.raw = documents.iter().map(|document| packed(&without_samples(document))).collect::<Result<_, _>>()?;
    }
    out.write_all(page.render()?.as_bytes())
}

const LICENSE_BEGIN: &str = "/*!";
const LICENSE_END: &str = "*/";

struct Page {
    policy: String,
    script: String,
    specs: String,
    heading: String,
    runs: Vec<Run>,
    parts: Vec<Part>,
    raw: Vec<String>,
    without_samples: bool,
}

impl Page {
    fn render(&self) -> io::Result<String> {
        let mut templates = Environment::new();
        // The name's ending is what turns the escaping on.
        templates.add_template("page.html", TEMPLATE).map_err(io::Error::other)?;
        let template = templates.get_template("page.html").map_err(io::Error::other)?;
        let own = |text: &str| Value::from_safe_string(text.to_owned());
        let values = context! {
            policy => own(&self.policy),
            style => own(STYLE),
            script => own(&self.script),
            specs => own(&self.specs),
            heading => self.heading.as_str(),
            runs => Value::from(Serde(&self.runs)),
            parts => Value::from(Serde(&self.parts)),
            // Base 64 holds no character that means anything to HTML, and a script's text is not unescaped.
            raw => self.raw.iter().map(|text| own(text)).collect::<Vec<_>>(),
            without_samples => self.without_samples,
            version => env!("CARGO_PKG_VERSION"),
        };
        template.render(values).map_err(io::Error::other)
    }
}

fn part(
    index: usize,
    section: &Section,
    documents: &[Document],
    labels: &[String],
    specs: &mut Vec<serde_json::Value>,
) -> Part {
    let mut picture = |figure: &Figure| {
        let panels = charts(figure).into_iter().map(|chart| {
            specs.push(chart.spec);
            PanelOf { chart: specs.len() - 1, title: chart.title, legend: chart.legend }
        });
        let side_by_side =
            matches!(&figure.shape, Shape::Heat(heat) if heat.panels.len() > 1 && heat.columns.len() <= 10);
        Picture {
            title: figure.title.clone(),
            left_out: figure.left_out.clone(),
            side_by_side,
            panels: panels.collect(),
        }
    };
    let figures = figures(section, documents, labels).iter().map(&mut picture).collect();
    let tables = section.runs.iter().map(|run| {
        let (grids, notes) = grids(&documents[*run], section.name);
        let run = if section.runs.len() > 1 { labels[*run].clone() } else { String::new() };
        Tables { run, grids, notes }
    });
    Part {
        id: format!("experiment-{}", index + 1),
        title: section.title.clone(),
        about: section.about.clone(),
        figures,
        tables: tables.collect(),
    }
}

fn run(index: usize, document: &Document, label: &str) -> Run {
    Run {
        label: label.to_owned(),
        host: neutral(&document.host.name),
        suite: neutral(&document.suite),
        title: neutral(&document.title),
        started: neutral(&document.started),
        version: neutral(&document.version),
        command: document.command.iter().map(|word| neutral(word)).collect::<Vec<_>>().join(" "),
        seed: document.seed,
        elapsed: Nanos(document.elapsed_ns).to_string(),
        memory_copy: document.memory_copy.map(|copy| Throughput(copy.median).to_string()),
        trials: document.trials.iter().filter(|record| record.estimate.is_some()).count(),
        samples: document.trials.iter().map(|record| record.samples.len()).sum(),
        findings: document.findings.iter().map(|finding| neutral(&finding.text)).collect(),
        words: words(document),
        file: format!("pipemark-{}.json", index + 1),
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

/// The document as `--json` writes it, compressed, in base 64.
fn packed(document: &Document) -> io::Result<String> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::new(6));
    // In one piece: the packer does a great deal for each write, however small.
    packer.write_all(&serde_json::to_vec(document)?)?;
    Ok(BASE64_STANDARD.encode(packer.finish()?))
}

fn without_samples(document: &Document) -> Document {
    let mut document = document.clone();
    document.trials.iter_mut().for_each(|record| record.samples.clear());
    document
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
