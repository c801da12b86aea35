//! Lays out a table in columns of text. Columns are narrowed until they fit. The columns that still don't fit are
//! printed below the others, with the labels repeated.

use crate::style::Colour;
use crate::text::{abridge, pad, width, wrap};
use crate::{Align, Cell, Fit, Grid, Row, Style};

/// The minimum width of elastic columns. Wrapped columns have twice this minimum.
const MIN_WIDTH: usize = 6;
/// The minimum width of wrapped columns while optional columns can still be omitted.
const COMFORTABLE_WIDTH: usize = 20;
/// The allowed widths of a bar, in terminal columns. Shorter bars have too low a resolution, and longer bars show no
/// more.
const BAR_WIDTHS: std::ops::RangeInclusive<usize> = 8..=48;
const GAP: usize = 2;
/// A reason is printed beside the labels if there is room for at least this number of columns, and otherwise below
/// them.
const MIN_REASON_WIDTH: usize = 24;

/// A visible column, and its widths on the terminal.
#[derive(Debug, Clone, Copy)]
struct Slot {
    index: usize,
    text: usize,
    mark: usize,
}

impl Slot {
    fn width(&self) -> usize {
        self.text + self.mark
    }
}

pub(super) fn lines(grid: &Grid, room: usize, colour: Colour) -> Vec<String> {
    let slots = fitting(grid, room);
    let labels = slots.iter().filter(|slot| slot.index < grid.labels).count();
    let mut lines = Vec::new();
    let mut from = labels;
    loop {
        let mut used = total(&slots[..labels]);
        let fits = |slot: &&Slot| {
            used += GAP + slot.width();
            used <= room
        };
        let count = slots[from..].iter().take_while(fits).count().max(1).min(slots.len() - from);
        let strip: Vec<Slot> = [&slots[..labels], &slots[from..from + count]].concat();
        lines.extend(strip_lines(grid, &strip, from == labels, room, colour));
        from += count;
        if from >= slots.len() {
            break;
        }
    }
    lines
}

fn total(slots: &[Slot]) -> usize {
    slots.iter().map(|slot| slot.width() + GAP).sum::<usize>().saturating_sub(GAP)
}

/// The columns, with widths that fit the line. Bars are omitted first, then optional columns, the last one first.
fn fitting(grid: &Grid, room: usize) -> Vec<Slot> {
    let slot = |index: usize| {
        let column = &grid.columns[index];
        let cells = || {
            grid.rows()
                .filter(|row| row.instead.is_none() || index < grid.labels)
                .filter_map(|row| row.cells.get(index))
        };
        let widest = |text: fn(&Cell) -> &str| cells().map(|cell| width(text(cell))).max().unwrap_or(0);
        let mark = widest(|cell| &cell.mark);
        match column.fit {
            Fit::Bars => Slot { index, text: *BAR_WIDTHS.start(), mark },
            _ => {
                let text = widest(|cell| &cell.text);
                Slot { index, text: text.max(two_line_width(&column.heading).saturating_sub(mark)), mark }
            }
        }
    };
    let mut slots: Vec<Slot> = grid.text_columns().into_iter().map(slot).collect();
    // Wrapping loses no text, so wrapped columns are narrowed first.
    shrink(grid, &mut slots, room, |column| if column == Fit::Wrapped { COMFORTABLE_WIDTH } else { usize::MAX });
    for omitted in [Fit::Bars, Fit::Optional] {
        while total(&slots) > room {
            let Some(last) = slots.iter().rposition(|slot| grid.columns[slot.index].fit == omitted) else { break };
            slots.remove(last);
        }
    }
    let mut shrunk = slots.clone();
    let shortest = |column: Fit| match column {
        Fit::Elastic => MIN_WIDTH,
        Fit::Wrapped => 2 * MIN_WIDTH,
        Fit::Needed | Fit::Optional | Fit::Bars => usize::MAX,
    };
    shrink(grid, &mut shrunk, room, shortest);
    if total(&shrunk) > room {
        // Some columns are printed below in any case. The labels are repeated there, so they get half of the line.
        let labels = slots.iter().take_while(|slot| slot.index < grid.labels).count();
        shrink(grid, &mut slots[..labels], room / 2, shortest);
    } else {
        slots = shrunk;
    }
    let spare = room.saturating_sub(total(&slots));
    if let Some(slot) = slots.iter_mut().find(|slot| grid.columns[slot.index].fit == Fit::Bars) {
        slot.text = (slot.text + spare).min(*BAR_WIDTHS.end());
    }
    slots
}

/// Narrows the widest columns until all fit. Makes no column narrower than `least`.
fn shrink(grid: &Grid, slots: &mut [Slot], room: usize, least: impl Fn(Fit) -> usize) {
    while total(slots) > room {
        let shrinks = |slot: &&mut Slot| slot.text > least(grid.columns[slot.index].fit);
        let Some(slot) = slots.iter_mut().filter(shrinks).max_by_key(|slot| slot.text) else { break };
        slot.text -= 1;
    }
}

/// The smallest width in which a heading fits in two lines.
fn two_line_width(heading: &str) -> usize {
    let splits = heading.match_indices(' ').map(|(at, _)| width(&heading[..at]).max(width(&heading[at + 1..])));
    splits.min().unwrap_or(width(heading))
}

/// The headings and all rows, for the columns of `slots`.
fn strip_lines(grid: &Grid, slots: &[Slot], first: bool, room: usize, colour: Colour) -> Vec<String> {
    let headings: Vec<Vec<String>> =
        slots.iter().map(|slot| wrap(&grid.columns[slot.index].heading, slot.width().max(1))).collect();
    let height = headings.iter().map(Vec::len).max().unwrap_or(0);
    let mut lines = Vec::new();
    let headed = headings.iter().flatten().any(|heading| !heading.is_empty());
    for part in (0..height).filter(|_| headed) {
        let cell = |index: usize| {
            let heading: &Vec<String> = &headings[index];
            let text = (part + heading.len()).checked_sub(height).and_then(|part| heading.get(part));
            let slot = slots[index];
            // Marks have no heading. Figures end where their heading ends.
            let room = if grid.columns[slot.index].side == Align::Right {
                slot.text.max(text.map_or(0, |text| width(text)))
            } else {
                slot.text
            };
            let text = pad(text.map_or("", String::as_str), room, grid.columns[slot.index].side);
            pad(&text, slot.width(), Align::Left)
        };
        let line = (0..slots.len()).map(cell).collect::<Vec<_>>().join(&" ".repeat(GAP));
        lines.push(colour.paint(Style::Aside, line.trim_end()));
    }
    for (index, group) in grid.groups.iter().enumerate() {
        if index > 0 {
            lines.push(String::new());
        }
        lines.extend(
            wrap(&group.caption, room)
                .iter()
                .filter(|_| !group.caption.is_empty())
                .map(|line| colour.paint(Style::Aside, line)),
        );
        // Text that replaces figures is printed once.
        for row in group.rows.iter().filter(|row| first || row.instead.is_none()) {
            lines.extend(row_lines(grid, row, slots, room, colour));
        }
    }
    lines
}

fn row_lines(grid: &Grid, row: &Row, slots: &[Slot], room: usize, colour: Colour) -> Vec<String> {
    let shown = |slot: &&Slot| row.instead.is_none() || slot.index < grid.labels;
    let mut cells: Vec<(&Slot, &Cell, Vec<String>)> = slots
        .iter()
        .filter(shown)
        .map(|slot| {
            let (cell, column) = (&row.cells[slot.index], &grid.columns[slot.index]);
            let lines = match (cell.bar, column.fit) {
                (Some((low, high)), _) => vec![bar(low, high, slot.text)],
                (None, Fit::Wrapped) => wrap(&cell.text, slot.text),
                (None, _) => vec![abridge(&cell.text, slot.text)],
            };
            (slot, cell, lines)
        })
        .collect();
    // A label of more than two lines gets lines of its own above the figures.
    let last = cells.iter().rposition(|(slot, ..)| slot.index < grid.labels);
    let tall = |at: &usize| row.instead.is_none() && cells.len() > at + 1 && cells[*at].2.len() > 2;
    let mut lines = Vec::new();
    if let Some(at) = last.filter(tall) {
        let before: usize = cells[..at].iter().map(|(slot, ..)| slot.width() + GAP).sum();
        let own = wrap(&cells[at].1.text, room.saturating_sub(before).max(cells[at].0.text));
        cells[at].2 = Vec::new();
        let (indent, style) = (" ".repeat(before), cells[at].1.style);
        lines.extend(own.iter().map(|line| format!("{indent}{}", colour.paint(style, line))));
    }
    let height = cells.iter().map(|(.., lines)| lines.len()).max().unwrap_or(1);
    let line = |part: usize| {
        let cells = cells.iter().map(|(slot, cell, lines)| {
            let (text, mark) =
                (lines.get(part).map_or("", String::as_str), if part == 0 { cell.mark.as_str() } else { "" });
            let blanks = " ".repeat(slot.text.saturating_sub(width(text)));
            let (text, rest) = (colour.paint(cell.style, text), " ".repeat(slot.mark - width(mark)));
            let mark = colour.paint(Style::Caution, mark);
            match grid.columns[slot.index].side {
                Align::Left => format!("{text}{mark}{rest}{blanks}"),
                Align::Right => format!("{blanks}{text}{mark}{rest}"),
            }
        });
        let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
        line.trim_end().to_owned()
    };
    lines.extend((0..height).map(line));
    let Some((style, reason)) = &row.instead else { return lines };
    let labels: Vec<Slot> = cells.iter().map(|(slot, ..)| **slot).collect();
    let hang = if labels.is_empty() { 0 } else { total(&labels) + GAP };
    let (hang, beside) = if room >= hang + MIN_REASON_WIDTH { (hang, true) } else { (GAP, false) };
    for (part, text) in wrap(reason, room - hang).iter().enumerate() {
        let text = colour.paint(*style, text);
        match lines.get_mut(part).filter(|_| beside) {
            // The width of a line is computed without colour sequences.
            Some(line) => {
                let taken = if part < height { width_without_colour(line) } else { 0 };
                line.push_str(&" ".repeat(hang - taken.min(hang)));
                line.push_str(&text);
            }
            None => lines.push(format!("{}{text}", " ".repeat(hang))),
        }
    }
    lines
}

/// The width of a line without the colour sequences of [`Colour::paint`], in terminal columns.
fn width_without_colour(line: &str) -> usize {
    let mut parts = line.split('\x1b');
    let first = parts.next().map_or(0, width);
    first + parts.map(|part| width(part.split_once('m').map_or("", |(_, text)| text))).sum::<usize>()
}

/// A bar in eighths of a terminal column: solid up to the share `low`, lighter up to `high`.
pub(super) fn bar(low: f64, high: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = |share: f64| if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    // The number of eighths is at most 8 times the terminal's width, so it fits a usize.
    let eighths = (share(high) * (columns * 8) as f64).round() as usize;
    let certain = (share(low) * columns as f64).round() as usize;
    let full = eighths / 8;
    format!("{}{}{}", "█".repeat(certain.min(full)), "▒".repeat(full.saturating_sub(certain)), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_in_eighths() {
        assert_eq!(bar(1.0, 1.0, 3), "███");
        assert_eq!(bar(0.5, 0.5, 3), "█▌");
        assert_eq!(bar(0.0, 0.0, 3), "");
        assert_eq!(bar(f64::NAN, f64::NAN, 3), "");
        assert_eq!(bar(0.5, 1.0, 4), "██▒▒");
    }
}
