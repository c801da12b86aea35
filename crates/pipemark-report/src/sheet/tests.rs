//! Compares the sheets of fixed documents, in every format, with stored files.

use pipemark_model::{Document, Record, Unit};
use pipemark_run::plan::EMBEDDED;
use pipemark_show::{
    Attachment, Axis, Block, Characters, Chart, ChartKind, Colour, Point, Scale, Series, SeriesRole, Sheet, Terminal,
    html, markdown, width,
};
use pipemark_stats::diff::{Diff, SideInput};
use pipemark_stats::verdict::Criterion;

use crate::sheet;
use crate::sheet::fixture::{self, assert_file};

fn render(sheet: &Sheet, width: usize, colour: Colour) -> String {
    Terminal { width, colour, characters: Characters::Unicode }.render(sheet)
}

/// A comparison in which each trial changes by a different factor, from much worse to much better. The last trial is
/// missing.
fn comparison(all: bool) -> Sheet {
    let (base, mut new) = (fixture::quick(), fixture::quick());
    new.trials.pop();
    new.host.kernel = "6.99.0 #1".to_owned();
    for (record, by) in new.trials.iter_mut().zip([90, 100, 108, 300, 101, 97, 45].into_iter().cycle()) {
        for sample in &mut record.samples {
            sample.bytes = sample.bytes * (by * 10 + u64::from(sample.round)) / 1000;
        }
    }
    comparison_sheet(&base, &new, all)
}

fn comparison_sheet(base: &Document, new: &Document, all: bool) -> Sheet {
    let party = |name, document| SideInput { name, documents: std::slice::from_ref(document), settings: &[] };
    let report = Diff::of(party("before.json", base), party("after \x1b[2J.json", new), &[], &Criterion::new).unwrap();
    sheet::comparison(&report, all)
}

/// All sheets, each with the name of its files.
fn sheets() -> Vec<(&'static str, Sheet)> {
    let documents = fixture::all().into_iter().map(|(name, document)| (name, sheet::document(&document)));
    let hostile = comparison_sheet(&fixture::hostile(), &fixture::hostile(), true);
    documents
        .chain([
            ("comparison", comparison(false)),
            ("comparison-all", comparison(true)),
            ("comparison-hostile", hostile),
        ])
        .collect()
}

/// All documents in brief.
fn briefs() -> impl Iterator<Item = (&'static str, Sheet)> {
    let pointers = ["all tables: pipemark history show 1 --all".to_owned(), "page: pipemark report 1".to_owned()];
    fixture::all().into_iter().map(move |(name, document)| (name, sheet::brief(&document, &pointers)))
}

#[test]
fn main_experiments_are_shown_whole_on_one_screen() {
    show_main_experiments("1");
}

#[test]
#[ignore = "long"]
fn long_main_experiments_of_short_suites_are_shown_whole_on_one_screen() {
    show_main_experiments("0.05");
}

/// Every embedded suite fits on its screen, whatever its results are.
fn show_main_experiments(scale: &str) {
    for (seed, (name, text)) in EMBEDDED.into_iter().enumerate() {
        let document = fixture::of_suite(text, scale, seed as u64);
        let text = render(&sheet::brief(&document, &["all tables: --all".to_owned()]), 80, Colour::Never);
        // The complete tables of these suites are longer than a screen. The claims follow on a screen of their own.
        let most = if ["ipc", "large-pipe"].contains(&name) { 50 } else { 45 };
        let (above, claims) = text.split_once("\nClaims (").unwrap_or((&text, ""));
        assert!(above.lines().count() <= most, "{name}: {} lines\n{text}", above.lines().count());
        let lines = claims.lines().count();
        assert!(lines <= document.claims.len() + 4 && lines <= 40, "{name}: {lines}\n{text}");
        let numbered = |number: usize| claims.lines().any(|line| line.trim_start().starts_with(&format!("{number} ")));
        assert!((1..=document.claims.len()).all(numbered), "{name}: one line for each claim\n{text}");
        assert!(claims.lines().all(|line| width(line) <= 80), "{name}\n{text}");
        for headline in document.experiments.iter().filter(|experiment| experiment.headline) {
            let heading = text.lines().find(|line| line.starts_with(&headline.title));
            let heading = heading.unwrap_or_else(|| panic!("{name} has no {}:\n{text}", headline.title));
            assert!(!heading.ends_with(" trials"), "{name}: {heading}\n{text}");
        }
    }
}

#[test]
fn the_result_fits_one_screen() {
    for (name, sheet) in briefs().filter(|(name, _)| !["ipc", "hostile"].contains(name)) {
        let lines = |width| render(&sheet, width, Colour::Never).lines().count();
        assert!(lines(80) <= 45 && lines(200) <= 45, "{name}: {}", lines(80));
    }
    // A document with one experiment, which has more trials than a screen has lines.
    let mut document = fixture::quick();
    let many: Vec<_> = document.trials.iter().cycle().take(200).cloned().collect();
    document.trials = many.into_iter().map(|record| Record { experiment: "capacity".to_owned(), ..record }).collect();
    let text = render(&sheet::brief(&document, &[]), 80, Colour::Never);
    assert!(text.lines().count() <= 45 && text.contains(" of 176 trials"), "{text}");
    // A single trial needs at most eight lines.
    let mut document = fixture::interrupted();
    document.warnings = fixture::quick().warnings;
    document.partial = false;
    let text = render(&sheet::brief(&document, &["all tables: --all".to_owned()]), 80, Colour::Never);
    assert!(text.lines().count() <= 8 && text.contains("2.50 GiB/s"), "{text}");
}

/// The memory copy is measured as a limit for others, and isn't one of the trials that were asked for.
#[test]
fn terminal_and_page_count_the_same_trials() {
    let document = fixture::quick();
    let brief = render(&sheet::brief(&document, &[]), 100, Colour::Never);
    let page = render(&sheet::report(std::slice::from_ref(&document)), 100, Colour::Never);
    let trials = document.requested().filter(|record| record.estimate.is_some()).count();
    assert!(trials < document.trials.iter().filter(|record| record.estimate.is_some()).count());
    assert!(brief.contains(&format!(", {trials} trials)")), "{brief}");
    assert!(page.contains(&format!("{trials} trials, ")), "{page}");
}

/// A headline is a row of a table, if the table is on the screen at all.
#[test]
fn rows_that_sentences_are_about_are_shown() {
    let mut document = fixture::quick();
    let text = render(&sheet::brief(&document, &[]), 80, Colour::Never);
    let above = text.split("Summary (").next().unwrap().to_owned();
    assert!(above.contains("3.70 GiB/s"), "{text}");
    // A finding about a trial that isn't among the best rows.
    let slow = document.trials.iter().find(|record| record.experiment == "zero copy" && record.measured().is_some());
    let slow = slow.unwrap().clone();
    let many = (1..30).map(|nth| {
        let mut other = slow.clone();
        other.id = format!("other {nth}");
        other.name = format!("other {nth}");
        other
    });
    let mut trials: Vec<Record> = document.trials.clone();
    trials.extend(many);
    document.trials = trials;
    let mut finding = document.findings[0].clone();
    let evidence = serde_json::json!({ "trial": "other 29", "experiment": "zero copy" });
    finding.evidence.insert("of".to_owned(), evidence);
    document.findings = vec![finding.clone()];
    let rows = |document: &Document| {
        let text = render(&sheet::brief(document, &[]), 80, Colour::Never);
        text.contains(&finding.text[..20])
    };
    assert!(rows(&document));
    // A finding about a trial of a table that isn't there isn't printed.
    let evidence = serde_json::json!({ "trial": "other 29", "experiment": "elsewhere" });
    document.findings[0].evidence.insert("of".to_owned(), evidence);
    assert!(!rows(&document));
}

/// Ends that spin use a whole CPU each, so their bars come after those of ends that sleep.
#[test]
fn bars_of_spinning_ends_come_last() {
    let document = fixture::quick();
    let text = render(&sheet::main_charts(std::slice::from_ref(&document)), 100, Colour::Never);
    let (_, section) = text.split_once("About zero copy").unwrap();
    let bars = section.lines().filter(|line| line.contains('█'));
    let spins: Vec<bool> = bars.take(6).map(|line| line.contains("spinning")).collect();
    assert!(spins.len() > 4 && spins.is_sorted(), "{section}");
}

/// Three points need no more rows than a table of them and its axes.
#[test]
fn a_chart_of_few_points_is_low() {
    let height = |points: usize| {
        let points = (1..=points).map(|x| Point { x: x as f64, y: x as f64, ..Point::default() }).collect();
        let series = Series { label: "s".to_owned(), role: SeriesRole::Measured, points };
        let axis = |name| Axis::new(name, Unit::Count, Scale::Linear);
        let chart = Chart::new("t", ChartKind::Curves, axis("x"), axis("y"), vec![series]);
        let mut sheet = Sheet::default();
        sheet.blocks.push(Block::Chart(Box::new(chart)));
        render(&sheet, 80, Colour::Never).lines().count()
    };
    assert!(height(3) <= 12 && height(20) > 16, "{} {}", height(3), height(20));
}

#[test]
fn ascii_output_is_ascii_and_as_wide_as_unicode() {
    for (name, sheet) in sheets().into_iter().chain(briefs()) {
        let unicode = render(&sheet, 80, Colour::Never);
        let ascii = Terminal { width: 80, colour: Colour::Never, characters: Characters::Ascii }.render(&sheet);
        let widths = |text: &str| text.lines().map(width).collect::<Vec<_>>();
        assert_eq!(widths(&ascii), widths(&unicode), "{name}");
        assert!(ascii.is_ascii() && (!ascii.contains('?') || unicode.contains('?')), "{name}:\n{ascii}");
    }
}

#[test]
fn sheets_match_the_stored_files() {
    for (name, sheet) in sheets() {
        for width in [80, 140] {
            assert_file(&format!("src/sheet/snapshots/{name}.{width}.txt"), &render(&sheet, width, Colour::Never));
        }
        assert_file(&format!("src/sheet/snapshots/{name}.md"), &markdown(&sheet));
    }
    for (name, sheet) in briefs() {
        assert_file(&format!("src/sheet/snapshots/{name}.brief.txt"), &render(&sheet, 80, Colour::Never));
    }
    let csv = pipemark_show::sheet_as_csv(&comparison(true)).unwrap();
    assert_file("src/sheet/snapshots/comparison.csv", &csv);
}

#[test]
fn charts_match_the_stored_files() {
    for (name, document) in fixture::all() {
        let charts = sheet::main_charts(&[document]);
        assert_file(&format!("src/sheet/snapshots/{name}.charts.txt"), &render(&charts, 80, Colour::Never));
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for (name, sheet) in sheets().into_iter().chain(briefs()) {
        for columns in [60, 72, 80, 100, 120, 140, 200, 250] {
            for line in render(&sheet, columns, Colour::Never).lines() {
                assert!(width(line) <= columns, "{name} at {columns}: {line:?}");
            }
        }
    }
}

#[test]
fn only_colours_of_pipemark_reach_the_terminal() {
    for (name, sheet) in sheets() {
        let plain = render(&sheet, 80, Colour::Never);
        assert!(!plain.contains(|c: char| c.is_control() && c != '\n'), "{name}: {plain:?}");
        let mut rest = render(&sheet, 80, Colour::Always);
        for code in ["0", "1", "2", "31", "32", "33", "36"] {
            rest = rest.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(rest, plain, "{name}: colours must not change the text");
    }
}

#[test]
fn links_without_transfers_have_no_bar() {
    let mut document = fixture::ipc();
    document.experiments.iter_mut().for_each(|experiment| experiment.across = None);
    let text = render(&sheet::document(&document), 140, Colour::Never);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("GiB/s")).collect();
    let null: Vec<&&str> = rows.iter().filter(|line| line.contains("null")).collect();
    assert!(!null.is_empty() && null.iter().all(|line| !line.contains('█')), "{null:#?}");
    assert!(rows.iter().any(|line| line.contains("in-place") && line.contains("████████")), "{rows:#?}");
}

/// The test covers tables with and without a parameter across the top.
#[test]
fn the_null_link_is_explained_on_one_screen() {
    let mut document = fixture::ipc();
    for across in [true, false] {
        if !across {
            document.experiments.iter_mut().for_each(|experiment| experiment.across = None);
        }
        let text = render(&sheet::brief(&document, &[]), 80, Colour::Never);
        assert!(text.contains("no transfer, the cost of the harness itself"), "{text}");
    }
}

#[test]
fn a_chain_without_findings_has_its_rate_per_hop() {
    let mut document = fixture::chains();
    document.findings.clear();
    let text = render(&sheet::brief(&document, &[]), 80, Colour::Never);
    let row = text.lines().find(|line| line.trim_start().starts_with("transfer per hop, "));
    let row = row.unwrap_or_else(|| panic!("{text}"));
    assert!(row.contains("B/s") || row.contains("inconclusive"), "{row}");
}

/// The number of cells in a line of Markdown. Unescaped bars separate cells.
fn cells(line: &str) -> usize {
    line.replace("\\\\", "").replace("\\|", "").matches('|').count()
}

#[test]
fn every_row_of_markdown_has_the_cells_of_its_heading() {
    for (name, sheet) in sheets() {
        let text = markdown(&sheet);
        let lines: Vec<&str> = text.lines().collect();
        let tables = lines.chunk_by(|a, b| a.starts_with('|') == b.starts_with('|'));
        for table in tables.filter(|lines| lines[0].starts_with('|')) {
            for line in table {
                assert_eq!(cells(line), cells(table[0]), "{name}: {line}");
            }
        }
    }
}

#[test]
fn hostile_text_stays_text() {
    for sheet in
        [sheet::document(&fixture::hostile()), comparison_sheet(&fixture::hostile(), &fixture::hostile(), true)]
    {
        let text = markdown(&sheet);
        assert!(!text.contains("<script") && !text.contains("[x]("), "{text}");
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        let page = html(&sheet, &[]).unwrap();
        assert!(!page.contains("<script>alert"), "{page}");
    }
}

#[test]
fn a_page_has_the_charts_and_the_figures() {
    let sheet = sheet::report(&[fixture::ipc(), fixture::ipc()]);
    let attachment =
        Attachment { file: "a.json".to_owned(), label: String::new(), content: b"{}".to_vec(), shorter: Vec::new() };
    let page = html(&sheet, &[attachment]).unwrap();
    let charts = sheet.blocks.iter().filter(|block| matches!(block, Block::Chart(_))).count();
    assert_eq!(page.matches("class=\"chart\"").count(), charts);
    assert!(charts > 3 && page.contains("id=\"raw-1\"") && page.contains("process_vm_readv is refused"));
}

#[test]
fn points_that_are_not_numbers_are_omitted() {
    let wild = [(f64::NAN, 1.0), (1.0, f64::INFINITY), (-5.0, 1e300), (0.0, 0.0)];
    let points = wild.map(|(x, y)| Point { x, y, ..Point::default() }).to_vec();
    let axis = Axis::new("", Unit::Count, Scale::Linear);
    let chart = Chart {
        title: "wild".to_owned(),
        panel: String::new(),
        caption: String::new(),
        below: String::new(),
        kind: ChartKind::Curves,
        x: axis.clone(),
        y: axis,
        series: vec![Series { label: "a\x1bb".to_owned(), role: SeriesRole::Measured, points }],
    };
    let sheet = Sheet { blocks: vec![Block::Chart(Box::new(chart))] };
    for width in [0, 10, 80] {
        assert!(render(&sheet, width, Colour::Never).lines().count() > 8);
    }
}
