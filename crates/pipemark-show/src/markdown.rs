//! Renders a sheet as GitHub's Markdown, for issues and pages.

use crate::{Align, Block, Grid, Sheet, Style};

/// The sheet as Markdown.
pub fn markdown(sheet: &Sheet) -> String {
    let blocks: Vec<String> = sheet.blocks.iter().map(block).collect();
    blocks.join("\n\n") + "\n"
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(level, text) => format!("{} {}", "#".repeat(usize::from(*level)), escaped(text)),
        Block::Text(Style::Caution | Style::Failure, parts) => format!("**{}**", escaped(&parts.join(" · "))),
        Block::Text(_, parts) => escaped(&parts.join(" · ")),
        Block::Code(text) => text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n"),
        Block::Gap => String::new(),
        Block::Grid(own) => grid(own),
        Block::Chart(chart) => format!("*{}: chart, shown only in HTML*", escaped(&chart.title)),
        Block::Notes(notes) => {
            let line = |note: &crate::Note| match note.mark.as_str() {
                _ if note.is_command() => format!("\n{}\n", code(&note.text)),
                "" | "•" => format!("- {}", escaped(&note.text)),
                mark => format!("- **{}** {}", escaped(mark), escaped(&note.text)),
            };
            notes.iter().map(line).collect::<Vec<_>>().join("\n")
        }
    }
}

/// A block of code between fences that it doesn't contain, because an indented block would belong to a list above it.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{text}\n{fence}")
}

fn grid(grid: &Grid) -> String {
    let columns = grid.without_bars();
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let headings = line(columns.iter().map(|&index| escaped(&grid.columns[index].heading)).collect());
    let rule = |index: &usize| if grid.columns[*index].side == Align::Right { "---:" } else { "---" };
    let rules = line(columns.iter().map(|index| rule(index).to_owned()).collect());
    let mut parts = Vec::new();
    for group in &grid.groups {
        if !group.caption.is_empty() {
            parts.push(escaped(&group.caption));
        }
        let mut lines = vec![headings.clone(), rules.clone()];
        for row in &group.rows {
            let mut reason = row.instead.as_ref().map(|(_, reason)| reason.as_str());
            let cells = columns.iter().map(|&index| match (&row.instead, index < grid.labels) {
                (Some(_), false) => escaped(reason.take().unwrap_or_default()),
                _ => {
                    let cell = &row.cells[index];
                    let text = escaped(&format!("{}{}", cell.text, cell.mark));
                    if cell.style == Style::Failure { format!("**{text}**") } else { text }
                }
            });
            lines.push(line(cells.collect()));
        }
        parts.push(lines.join("\n"));
    }
    parts.join("\n\n")
}

/// Neutral text, in which all characters that are special in Markdown, HTML or a table are escaped.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (index, c) in text.chars().enumerate() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '|' | '~' | '!' | '$' => safe.extend(['\\', c]),
            // These characters start a list or a heading only at the beginning of a line.
            '-' | '+' | '=' if index == 0 => safe.extend(['\\', c]),
            _ => safe.push(c),
        }
    }
    safe
}
