//! The pieces of a page's sections as HTML.

use crate::{Align, Chart, ChartKind, Grid, Note, Row, RowGroup, Style};

/// The buttons that save a chart.
const TOOLS: &str = "<div class=\"tools\" role=\"group\" aria-label=\"Take the chart with you\">\
                     <button type=\"button\" data-save=\"svg\">SVG</button>\
                     <button type=\"button\" data-save=\"png\">PNG</button>\
                     <button type=\"button\" data-save=\"editor\">Vega editor</button></div>";

/// A piece of a section.
pub(super) enum Item<'a> {
    Heading(&'a str),
    Text(Style, &'a [String]),
    Notes(&'static str, &'a [Note]),
    Code(String),
    Table(&'a Grid, &'a RowGroup),
    /// Charts with the same title.
    Figure(Vec<Panel<'a>>),
}

pub(super) struct Panel<'a> {
    pub(super) chart: &'a Chart,
    /// The index of the chart's specification.
    pub(super) spec: usize,
    pub(super) legend: Vec<String>,
}

/// The HTML of a section's items. `title` is empty if the section has none.
pub(super) fn items(items: &[Item], title: &str) -> String {
    numbered(items, |number, item| match item {
        Item::Heading(text) => format!("\n<h3>{}</h3>", escape(text)),
        Item::Text(style, parts) => {
            let parts = parts.iter().map(|part| words(part)).collect::<Vec<_>>();
            format!("\n<p{}>{}</p>", class(style_class(*style)), parts.join(" · "))
        }
        Item::Code(text) => format!("\n<pre>{}</pre>", escape(text)),
        Item::Notes(list, notes) => {
            let mark = |note: &Note| match *list == "notes" && !note.mark.is_empty() {
                true => format!("<b>{}</b> ", escape(&note.mark)),
                false => String::new(),
            };
            let note = |note: &Note| format!("\n<li>{}{}</li>", mark(note), words(&note.text));
            format!("\n<ul{}>{}\n</ul>", class(list), notes.iter().map(note).collect::<String>())
        }
        Item::Table(grid, group) => table(grid, group, title, number),
        Item::Figure(panels) => figure(panels),
    })
}

fn table(grid: &Grid, group: &RowGroup, section: &str, number: usize) -> String {
    let shown = grid.without_bars();
    let section = escape(section);
    let caption = match (section.as_str(), escape(&group.caption)) {
        ("", caption) if caption.is_empty() => String::new(),
        (_, caption) if caption.is_empty() => format!("\n<caption class=\"unseen\">{section}</caption>"),
        ("", caption) => format!("\n<caption>{caption}</caption>"),
        (_, caption) => format!("\n<caption>{section} · {caption}</caption>"),
    };
    let heading = |index: &usize| {
        let column = &grid.columns[*index];
        let figures = if column.side == Align::Right { "f" } else { "" };
        format!("<th scope=\"col\"{}>{}</th>", class(figures), escape(&column.heading))
    };
    format!(
        "\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{section}: table {number}\">\n<table>{caption}\n\
         <thead><tr>{}</tr></thead>\n<tbody>{}\n</tbody>\n</table>\n</div>",
        shown.iter().map(heading).collect::<String>(),
        group.rows.iter().map(|own| format!("\n<tr>{}</tr>", row(grid, &shown, own))).collect::<String>(),
    )
}

/// The cells of a row in the columns with these indices.
fn row(grid: &Grid, shown: &[usize], row: &Row) -> String {
    let labels = shown.iter().filter(|index| **index < grid.labels).count();
    let filled = if row.instead.is_some() { labels } else { shown.len() };
    let mut cells = String::new();
    for (place, &index) in shown[..filled].iter().enumerate() {
        let cell = &row.cells[index];
        // Most cells are figures, and a page has thousands: figures have no class, except in the first column.
        let name = match (grid.columns[index].side, place, cell.style) {
            (Align::Right, 1.., Style::Success) => "best",
            (_, _, Style::Failure) => "failure",
            (Align::Right, 0, _) => "f",
            (Align::Left, 1.., _) => "w",
            _ => "",
        };
        let text = format!("{}{}", cell.text, cell.mark);
        cells += &match place {
            0 => format!("<th scope=\"row\"{}>{}</th>", class(name), escape(&text)),
            _ => format!("<td{}>{}</td>", class(name), words(&text)),
        };
    }
    if let Some((style, reason)) = &row.instead {
        let class = class(&format!("w {}", style_class(*style)));
        cells += &match (labels, shown.len() - labels) {
            (0, _) => format!("<th scope=\"row\"{class}>{}</th>", escape(reason)),
            (_, 0 | 1) => format!("<td{class}>{}</td>", words(reason)),
            (_, span) => format!("<td{class} colspan=\"{span}\">{}</td>", words(reason)),
        };
    }
    cells
}

fn figure(panels: &[Panel]) -> String {
    let Chart { title, caption, below, .. } = panels[0].chart;
    let caption = match caption.is_empty() {
        true => words(title),
        false => format!("{}<span class=\"aside\">{}</span>", words(caption), escape(title)),
    };
    // Charts with the same title are placed side by side if they are narrow.
    let last = panels[panels.len() - 1].chart;
    let narrow = matches!(last.kind, ChartKind::Heat(_)) && last.x.names.len() <= 10;
    let class = if panels.len() > 1 && narrow { "panels several" } else { "panels" };
    let below = if below.is_empty() { String::new() } else { format!("\n<p class=\"aside\">{}</p>", words(below)) };
    let panels: String = panels.iter().map(|panel| panel_html(panel, &escape(title))).collect();
    format!("\n<figure>\n<figcaption>{caption}</figcaption>\n<div class=\"{class}\">{panels}\n</div>{below}\n</figure>")
}

fn panel_html(panel: &Panel, title: &str) -> String {
    let (heading, name) = match escape(&panel.chart.panel) {
        own if own.is_empty() => (String::new(), title.to_owned()),
        own => (format!("\n<p class=\"panel-title\">{own}</p>"), format!("{title}, {own}")),
    };
    let button = |name: &String| format!("<button type=\"button\" aria-pressed=\"true\">{}</button>", escape(name));
    let legend = match panel.legend.is_empty() {
        true => String::new(),
        false => format!(
            "\n<div class=\"legend\" role=\"group\" aria-label=\"Curves and bars to show\">{}\n</div>",
            panel.legend.iter().map(button).collect::<String>()
        ),
    };
    format!(
        "\n<div class=\"panel\">{heading}\n<div class=\"chart\" role=\"img\" aria-label=\"Chart: {name}. The table below has its \
         figures.\" data-chart=\"{}\"></div>\n<div class=\"under\">{legend}\n{TOOLS}\n</div>\n</div>",
        panel.spec
    )
}

/// The texts of all items, which are numbered from 1.
pub(super) fn numbered<T>(items: &[T], text: impl Fn(usize, &T) -> String) -> String {
    items.iter().zip(1..).map(|(item, number)| text(number, item)).collect()
}

/// The attribute for a class; empty for none.
fn class(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" class=\"{name}\"") }
}

/// The class of text in this style; empty for none.
fn style_class(style: Style) -> &'static str {
    match style {
        Style::Aside => "aside",
        Style::Caution => "caution",
        Style::Failure => "failure",
        Style::Success => "success",
        Style::Heading => "who",
        Style::Plain | Style::Bar | Style::Series(_) => "",
    }
}

/// Escapes the characters that are special in HTML text or in the value of an attribute.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#x27;"),
            '/' => safe.push_str("&#x2f;"),
            _ => safe.push(c),
        }
    }
    safe
}

/// Escaped text in which a flag such as `--runs` isn't wrapped after its dashes.
fn words(text: &str) -> String {
    let whole = |word: &str| match word.find("--") {
        Some(at) => format!("{}<span class=\"flag\">{}</span>", escape(&word[..at]), escape(&word[at..])),
        None => escape(word),
    };
    text.split(' ').map(whole).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_stay_whole_and_text_stays_text() {
        let text = words("raise --runs <b>");
        assert_eq!(text, "raise <span class=\"flag\">--runs</span> &lt;b&gt;");
        assert!(!words("--<i>").contains("<i>"));
    }
}
