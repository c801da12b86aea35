//! The table a person reads after a measurement: fits the width it is given, down to 40 columns, and uses more where
//! there is more.

use std::io;

use crate::model::{Document, Record, WaitPolicy};

use super::Format;
use super::column::Column;
use super::experiment::{Experiment, Group, legend, missing, ranked};
use super::gains::GainsTable;
use super::head::{host, method, partial};
use super::matrix::Matrix;
use super::text::{Colour, Side, Style, abridge, bar, join_wrapped, neutral, pad, width as columns_of, wrap};

/// The terminal's table.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Columns to use; 80 where the output is not a terminal.
    pub width: usize,
    /// Whether to colour.
    pub colour: Colour,
}

/// Below this nothing is legible, so lines may be longer than the terminal is wide.
const NARROWEST: usize = 40;
/// What goes first when there is not enough room. Parameters, throughput, marks and flags always stay.
const EXPENDABLE: [Column; 26] = [
    Column::RatioInterval,
    Column::P90,
    Column::Slowest,
    Column::P999,
    Column::Interval,
    Column::Runs,
    Column::Bar,
    Column::OfCopy,
    Column::BranchMisses,
    Column::Faults,
    Column::Instructions,
    Column::Migrations,
    Column::Cycles,
    Column::TaskClock,
    Column::FilterCpu,
    Column::AllSwitches,
    Column::Cpus,
    Column::Switches,
    Column::PerHop,
    Column::Inside,
    Column::Cpu,
    Column::Memory,
    Column::StartUp,
    Column::Published,
    Column::Ratio,
    Column::Margin,
];
/// Shorter bars say nothing, longer ones say no more.
const BAR: std::ops::RangeInclusive<usize> = 8..=32;
/// A parameter is abridged to no fewer columns than this.
const SHORTEST_PARAMETER: usize = 5;
const INDENT: usize = 2;

impl Format for Table {
    fn name(&self) -> &'static str {
        "table"
    }

    fn write(&self, document: &Document, out: &mut dyn io::Write) -> io::Result<()> {
        self.head(document, out)?;
        for experiment in Experiment::all(document) {
            writeln!(out)?;
            let about = document.experiments.iter().find(|about| about.name == experiment.name);
            if let Some(gains) = about.and_then(|about| GainsTable::of(document, about)) {
                self.gains(&experiment, &gains, out)?;
            } else if let Some(matrix) = about.and_then(|about| Matrix::of(document, about)) {
                self.matrix(&experiment, &matrix, out)?;
            } else {
                self.experiment(&experiment, out)?;
            }
        }
        let legend = legend(document);
        if !legend.is_empty() {
            writeln!(out)?;
            self.lines(Style::Aside, &join_wrapped(&legend, self.room(0)), 0, out)?;
        }
        if !document.findings.is_empty() {
            writeln!(out, "\n{}", self.colour.paint(Style::Heading, "Findings"))?;
            for finding in &document.findings {
                self.item("•", Style::Plain, &neutral(&finding.text), out)?;
            }
        }
        if !document.warnings.is_empty() {
            writeln!(out, "\n{}", self.colour.paint(Style::Heading, "Notes"))?;
            for warning in &document.warnings {
                self.item("!", Style::Caution, &neutral(&warning.to_string()), out)?;
            }
        }
        Ok(())
    }
}

impl Table {
    /// What is left of a line after `used` columns.
    fn room(&self, used: usize) -> usize {
        self.width.max(NARROWEST).saturating_sub(used)
    }

    fn lines(&self, style: Style, lines: &[String], indent: usize, out: &mut dyn io::Write) -> io::Result<()> {
        for line in lines {
            writeln!(out, "{}{}", " ".repeat(indent), self.colour.paint(style, line))?;
        }
        Ok(())
    }

    /// A sentence behind a mark, its further lines set in; a mark of a letter or two stands alone in front of them.
    fn item(&self, mark: &str, style: Style, text: &str, out: &mut dyn io::Write) -> io::Result<()> {
        let hang = columns_of(mark).min(2) + 1;
        let lines = wrap(&format!("{mark} {text}"), self.room(INDENT + hang));
        for (index, line) in lines.iter().enumerate() {
            match line.strip_prefix(mark) {
                Some(rest) if index == 0 => {
                    writeln!(out, "{}{}{rest}", " ".repeat(INDENT), self.colour.paint(style, mark))?
                }
                _ => writeln!(out, "{}{line}", " ".repeat(INDENT + hang))?,
            }
        }
        Ok(())
    }

    fn head(&self, document: &Document, out: &mut dyn io::Write) -> io::Result<()> {
        let (suite, title) = (neutral(&document.suite), neutral(&document.title));
        let heading = if title.is_empty() { suite } else { format!("{suite}: {title}") };
        self.lines(Style::Heading, &wrap(&heading, self.room(0)), 0, out)?;
        self.lines(Style::Plain, &join_wrapped(&host(document), self.room(0)), 0, out)?;
        self.lines(Style::Aside, &join_wrapped(&method(document), self.room(0)), 0, out)?;
        if let Some(sentence) = partial(document) {
            self.lines(Style::Caution, &wrap(&sentence, self.room(0)), 0, out)?;
        }
        Ok(())
    }

    fn matrix(&self, experiment: &Experiment, matrix: &Matrix, out: &mut dyn io::Write) -> io::Result<()> {
        self.lines(Style::Heading, &wrap(&experiment.title, self.room(0)), 0, out)?;
        self.lines(Style::Aside, &join_wrapped(&experiment.shared, self.room(INDENT)), INDENT, out)?;
        for (index, block) in matrix.blocks.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            if !block.heading.is_empty() {
                self.lines(Style::Aside, &wrap(&block.heading, self.room(INDENT)), INDENT, out)?;
            }
            for line in matrix.lines(block, self.room(INDENT)) {
                writeln!(out, "{}{line}", " ".repeat(INDENT))?;
            }
        }
        for note in matrix.notes("*") {
            self.lines(Style::Aside, &wrap(&note, self.room(INDENT)), INDENT, out)?;
        }
        Ok(())
    }

    fn gains(&self, experiment: &Experiment, gains: &GainsTable, out: &mut dyn io::Write) -> io::Result<()> {
        self.lines(Style::Heading, &wrap(&experiment.title, self.room(0)), 0, out)?;
        self.lines(Style::Aside, &join_wrapped(&experiment.shared, self.room(INDENT)), INDENT, out)?;
        for part in &gains.parts {
            self.lines(Style::Aside, &wrap(&part.title, self.room(INDENT)), INDENT, out)?;
            self.lines(Style::Plain, &gains.lines(part, self.room(INDENT)), INDENT, out)?;
            writeln!(out)?;
        }
        for note in gains.notes() {
            self.lines(Style::Aside, &wrap(note, self.room(INDENT)), INDENT, out)?;
        }
        Ok(())
    }

    fn experiment(&self, experiment: &Experiment, out: &mut dyn io::Write) -> io::Result<()> {
        self.lines(Style::Heading, &wrap(&experiment.title, self.room(0)), 0, out)?;
        self.lines(Style::Aside, &join_wrapped(&experiment.shared, self.room(INDENT)), INDENT, out)?;
        let layout = Layout::fitting(experiment, self.room(INDENT));
        for line in layout.heading() {
            self.lines(Style::Aside, &[line], INDENT, out)?;
        }
        for (index, group) in experiment.groups.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            if experiment.groups.len() > 1 || group.wait != WaitPolicy::Block {
                self.lines(Style::Aside, &wrap(group.meaning(), self.room(INDENT)), INDENT, out)?;
            }
            for record in &group.records {
                self.row(experiment, &layout, group, record, out)?;
            }
        }
        for (mark, text) in experiment.notes() {
            let style = if mark.len() <= 2 { Style::Caution } else { Style::Aside };
            self.item(&mark, style, &text, out)?;
        }
        if !layout.left_out.is_empty() {
            let names: Vec<String> = layout.left_out.iter().map(|column| column.heading().join(" ")).collect();
            let text = format!("no room at this width for: {}", names.join(", ").replace("  ", " "));
            self.lines(Style::Aside, &wrap(&text, self.room(INDENT)), INDENT, out)?;
        }
        Ok(())
    }

    fn row(
        &self,
        experiment: &Experiment,
        layout: &Layout,
        group: &Group,
        record: &Record,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let Some(outcome) = missing(record) else {
            let mut line = " ".repeat(INDENT);
            for (index, slot) in layout.slots.iter().enumerate() {
                line.push_str(&" ".repeat(layout.gap(index)));
                let (text, style) = match slot.column {
                    Column::Bar => {
                        let share = record.estimate.as_ref().map_or(0.0, |e| e.throughput().median / group.highest);
                        (if ranked(record) { bar(share, slot.width) } else { String::new() }, Style::Bar)
                    }
                    Column::Flags => (experiment.cell(slot.column, record), Style::Caution),
                    column => (experiment.cell(column, record), Style::Plain),
                };
                let text = abridge(&text, slot.width);
                // Blanks stay outside of the colours, so that they can be cut off at the line's end.
                let blanks = " ".repeat(slot.width - columns_of(&text));
                let painted = self.colour.paint(style, &text);
                match slot.column.side() {
                    Side::Left => line.extend([painted, blanks]),
                    Side::Right => line.extend([blanks, painted]),
                }
            }
            return writeln!(out, "{}", line.trim_end());
        };
        // The reason takes the place of the figures, and further lines if it needs them.
        let mut line = " ".repeat(INDENT);
        for (index, slot) in layout.slots.iter().enumerate().take_while(|(_, slot)| slot.is_label()) {
            line.push_str(&" ".repeat(layout.gap(index)));
            line.push_str(&pad(
                &abridge(&experiment.cell(slot.column, record), slot.width),
                slot.width,
                slot.column.side(),
            ));
        }
        let labels = columns_of(&line);
        let gap = if labels > INDENT { 2 } else { 0 };
        let (hang, mut first) = if self.room(labels + gap) >= 24 {
            (labels + gap, format!("{line}{}", " ".repeat(gap)))
        } else {
            writeln!(out, "{}", line.trim_end())?;
            (2 * INDENT, " ".repeat(2 * INDENT))
        };
        let style = if outcome.starts_with("skipped") { Style::Aside } else { Style::Failure };
        for text in wrap(&outcome, self.room(hang)) {
            writeln!(out, "{first}{}", self.colour.paint(style, &text))?;
            first = " ".repeat(hang);
        }
        Ok(())
    }
}

/// A column and the room it has.
#[derive(Debug)]
struct Slot {
    column: Column,
    width: usize,
}

impl Slot {
    /// Whether it tells which trial the row is, and not what was measured.
    fn is_label(&self) -> bool {
        matches!(self.column, Column::Param(_) | Column::Name)
    }
}

/// The columns that fit.
#[derive(Debug)]
struct Layout {
    slots: Vec<Slot>,
    /// Columns that there was no room for, where a wider terminal would say something new.
    left_out: Vec<Column>,
}

impl Layout {
    fn fitting(experiment: &Experiment, room: usize) -> Layout {
        let records = || experiment.groups.iter().flat_map(|group| &group.records);
        let width = |column: Column| {
            let mut width = column.heading().iter().map(|line| columns_of(line)).max().unwrap_or(0);
            for record in records() {
                let label = matches!(column, Column::Param(_) | Column::Name);
                if label || missing(record).is_none() {
                    width = width.max(columns_of(&experiment.cell(column, record)));
                }
            }
            if column == Column::Bar { *BAR.start() } else { width }
        };
        let slots = experiment.columns.iter().map(|&column| Slot { column, width: width(column) }).collect();
        let mut layout = Layout { slots, left_out: Vec::new() };
        for column in EXPENDABLE {
            if layout.width() <= room {
                break;
            }
            // What spinning costs has to stand beside what it gains.
            if column == Column::Cpu && experiment.groups.len() > 1 {
                continue;
            }
            let before = layout.slots.len();
            layout.slots.retain(|slot| slot.column != column);
            let repeats = matches!(column, Column::RatioInterval | Column::Interval | Column::Runs | Column::Bar);
            if layout.slots.len() < before && !repeats {
                layout.left_out.push(column);
            }
        }
        while layout.width() > room {
            let widest = layout.slots.iter_mut().filter(|slot| slot.is_label()).max_by_key(|slot| slot.width);
            match widest {
                Some(slot) if slot.width > SHORTEST_PARAMETER => slot.width -= 1,
                _ => break,
            }
        }
        let spare = room.saturating_sub(layout.width());
        if let Some(slot) = layout.slots.iter_mut().find(|slot| slot.column == Column::Bar) {
            slot.width = (slot.width + spare).min(*BAR.end());
        }
        layout
    }

    /// Blanks before a column: marks stand close to the figure that they belong to.
    fn gap(&self, index: usize) -> usize {
        match self.slots[index].column {
            _ if index == 0 => 0,
            Column::Touched | Column::Flags => 1,
            _ => 2,
        }
    }

    fn width(&self) -> usize {
        self.slots.iter().enumerate().map(|(index, slot)| self.gap(index) + slot.width).sum()
    }

    /// One or two lines of headings.
    fn heading(&self) -> Vec<String> {
        let line = |part: usize| {
            let mut line = String::new();
            for (index, slot) in self.slots.iter().enumerate() {
                line.push_str(&" ".repeat(self.gap(index)));
                let words = &slot.column.heading()[part];
                line.push_str(&pad(&abridge(words, slot.width), slot.width, slot.column.side()));
            }
            line.trim_end().to_owned()
        };
        [line(0), line(1)].into_iter().filter(|line| !line.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    fn shown(document: &Document, width: usize, colour: Colour) -> String {
        let mut out = Vec::new();
        Table { width, colour }.write(document, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tables_are_as_kept() {
        for (name, document) in fixture::all() {
            for width in [80, 140] {
                let text = shown(&document, width, Colour::Never);
                fixture::assert_file(&format!("src/show/snapshots/{name}.{width}.txt"), &text);
            }
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for (name, document) in fixture::all() {
            for width in [60, 72, 80, 100, 120, 140, 250] {
                for line in shown(&document, width, Colour::Never).lines() {
                    assert!(columns_of(line) <= width, "{name} at {width}: {} columns in {line:?}", columns_of(line));
                }
            }
        }
    }

    #[test]
    fn only_our_own_colours_reach_the_terminal() {
        for (name, document) in fixture::all() {
            let plain = shown(&document, 80, Colour::Never);
            assert!(!plain.contains(|c: char| c.is_control() && c != '\n'), "{name}: {plain:?}");
            let mut rest = shown(&document, 80, Colour::Always);
            for code in ["0", "1", "2", "31", "33", "36"] {
                rest = rest.replace(&format!("\x1b[{code}m"), "");
            }
            assert_eq!(rest, plain, "{name}: colours must not change the text");
        }
    }

    #[test]
    fn what_moves_nothing_has_no_bar_and_scales_none() {
        let mut document = fixture::ipc();
        document.experiments.iter_mut().for_each(|experiment| experiment.across = None);
        let text = shown(&document, 140, Colour::Never);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("GiB/s")).collect();
        let null: Vec<&&str> = rows.iter().filter(|line| line.contains("null")).collect();
        assert!(!null.is_empty() && null.iter().all(|line| !line.contains('█')), "{null:#?}");
        let longest = rows.iter().filter(|line| line.contains("in-place") && line.contains("████████")).count();
        assert!(longest > 0, "{rows:#?}");
    }

    #[test]
    fn bars_are_scaled_within_their_wait_policy() {
        let text = shown(&fixture::quick(), 140, Colour::Never);
        let full = "█".repeat(*BAR.end());
        let longest: Vec<&str> = text.lines().filter(|line| line.contains(&full)).collect();
        // One per group of block size, capacity and the two of zero copy; the memory copy is alone and has no bar.
        assert_eq!(longest.len(), 4, "{longest:#?}");
    }
}
