//! How far a trial is over or under its base, in per cent, and whether a published figure says the same.

use crate::model::{Experiment, Gains, GainsCell, Record, Status};

/// One cell of a table of gains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// Per cent over the base, the median of the rounds.
    pub percent: f64,
    /// The 95 % interval of that; `None` where there were too few rounds.
    pub interval: Option<(f64, f64)>,
    /// As published, in per cent.
    pub published: Option<f64>,
}

/// What a measured gain says about the sign of a published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It is the same.
    Holds,
    /// It is the other one, for certain.
    TurnedRound,
    /// Nothing: the interval includes 0, or there is none.
    NotTold,
    /// There is no published sign: none at all, or a gain of 0.
    Unpublished,
}

impl Gain {
    /// The gain of a cell; `None` where its trial was not measured.
    pub fn of(cell: &GainsCell, experiment: &Experiment, records: &[Record]) -> Option<Gain> {
        let record = record(&cell.trial, experiment, records)?;
        let ratio = record.estimate.as_ref()?.ratio()?;
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        ratio.median.is_finite().then(|| Gain {
            percent: percent(ratio.median),
            interval: ratio.low.zip(ratio.high).map(|(low, high)| (percent(low), percent(high))),
            published: cell.published,
        })
    }

    /// Whether the interval leaves 0 out.
    pub fn told(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }

    /// Whether it is over or under the base by more than `percent` for certain.
    pub fn differs_by(&self, percent: f64) -> bool {
        self.interval.is_some_and(|(low, high)| low > percent || high < -percent)
    }

    /// What it says about the published sign.
    pub fn sign(&self) -> Sign {
        match self.published {
            None | Some(0.0) => Sign::Unpublished,
            Some(_) if !self.told() => Sign::NotTold,
            Some(published) if (published > 0.0) == (self.percent > 0.0) => Sign::Holds,
            Some(_) => Sign::TurnedRound,
        }
    }
}

/// The trial called `id`, if it was measured well.
pub fn record<'a>(id: &str, experiment: &Experiment, records: &'a [Record]) -> Option<&'a Record> {
    records
        .iter()
        .find(|record| record.experiment == experiment.name && record.id == id)
        .filter(|record| record.status == Status::Ok && record.verified != Some(false))
}

/// The gains of a column of the block called `block`, each with its row.
pub fn column<'a>(
    gains: &'a Gains,
    block: &str,
    name: &str,
    experiment: &Experiment,
    records: &[Record],
) -> Vec<(&'a str, &'a GainsCell, Gain)> {
    let columns = gains.blocks.iter().filter(|known| known.title == block).flat_map(|block| &block.columns);
    let Some(column) = columns.into_iter().find(|column| column.name == name) else { return Vec::new() };
    gains
        .rows
        .iter()
        .zip(&column.cells)
        .filter_map(|(row, cell)| {
            let cell = cell.as_ref()?;
            Some((row.as_str(), cell, Gain::of(cell, experiment, records)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_told_from_intervals() {
        let gain = |percent: f64, interval, published| Gain { percent, interval, published };
        for (percent, interval, published, sign) in [
            (12.0, Some((8.0, 15.0)), Some(165.0), Sign::Holds),
            (-12.0, Some((-15.0, -8.0)), Some(-1.0), Sign::Holds),
            (-12.0, Some((-15.0, -8.0)), Some(165.0), Sign::TurnedRound),
            (12.0, Some((8.0, 15.0)), Some(-0.27), Sign::TurnedRound),
            (12.0, Some((-1.0, 15.0)), Some(-24.0), Sign::NotTold),
            (12.0, None, Some(-24.0), Sign::NotTold),
            (12.0, Some((8.0, 15.0)), Some(0.0), Sign::Unpublished),
            (12.0, Some((8.0, 15.0)), None, Sign::Unpublished),
        ] {
            assert_eq!(gain(percent, interval, published).sign(), sign, "{percent} {interval:?} {published:?}");
        }
    }
}
