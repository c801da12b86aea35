//! A table of gains as defined in a suite, and its cells, which are trials of the experiment.

use pipemark_model::written::{DesignSetting, Refusal};
use pipemark_model::{Gains, GainsBlock, GainsCell, GainsColumn, Key, Trial, Value, distinct};

/// A table of gains before its trials are known.
#[derive(Debug, Clone, PartialEq)]
pub struct GainsDesign {
    /// The parameter in which the rows differ, see [`Gains`].
    pub by: Key,
    /// The heading of the first column.
    pub corner: String,
    pub source: String,
    pub columns: Vec<ColumnDesign>,
}

/// A column of the table. In each row, its cell is the trial selected by the first matching entry of `when`.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDesign {
    pub block: String,
    pub name: String,
    pub when: Vec<Vec<DesignSetting>>,
    /// The published gains in per cent over the base, each with the row's value of the parameter.
    pub published: Vec<(DesignSetting, f64)>,
    /// The column's position in the suite's text in bytes, for errors; `None` if unknown.
    pub at: Option<std::ops::Range<usize>>,
}

/// Selects the trial of each cell.
pub(super) fn resolve(design: &GainsDesign, trials: &[Trial]) -> Result<Gains, Refusal> {
    let compared = || trials.iter().filter(|trial| trial.baseline.is_some());
    let row_of = |trial: &Trial| trial.job.value(design.by);
    let rows: Vec<Value> = distinct(compared().filter_map(row_of));
    let mut gains = Gains {
        by: design.by,
        corner: design.corner.clone(),
        rows: rows.iter().map(Value::to_string).collect(),
        source: design.source.clone(),
        blocks: Vec::new(),
    };
    for column in &design.columns {
        let refuse = |sentence: String| {
            Refusal::new(format!("column '{}' of '{}': {sentence}", column.name, column.block), column.at.clone())
        };
        let published = |row: &Value| {
            column.published.iter().find(|(setting, _)| setting.value == *row).map(|(_, percent)| *percent)
        };
        let cell = |row: &Value| {
            column.when.iter().find_map(|when| {
                let fits = |trial: &&Trial| {
                    let settings = trial.job.settings();
                    settings.has(row) && when.iter().all(|setting| settings.has(&setting.value))
                };
                let mut fitting = compared().filter(fits).map(|trial| &trial.id);
                let id = fitting.next()?;
                Some(match fitting.next() {
                    None => Ok(GainsCell { trial: id.clone(), published: published(row) }),
                    Some(other) => {
                        let row = row.exact();
                        Err(refuse(format!(
                            "'{id}' and '{other}' both match the row {row}; give more parameters in 'when'"
                        )))
                    }
                })
            })
        };
        let cells: Vec<Option<GainsCell>> = rows.iter().map(|row| cell(row).transpose()).collect::<Result<_, _>>()?;
        let lost = column
            .published
            .iter()
            .find(|(setting, _)| !rows.iter().zip(&cells).any(|(row, cell)| cell.is_some() && *row == setting.value));
        if let Some((setting, _)) = lost {
            return Err(refuse(format!("a figure is published for {}, but no trial matches", setting.value.exact())));
        }
        if cells.iter().all(Option::is_none) {
            return Err(refuse("no trial with a baseline matches".to_owned()));
        }
        let title = &column.block;
        let column = GainsColumn { name: column.name.clone(), cells };
        match gains.blocks.iter_mut().find(|block| block.title == *title) {
            Some(block) => block.columns.push(column),
            None => gains.blocks.push(GainsBlock { title: title.clone(), columns: vec![column] }),
        }
    }
    Ok(gains)
}
