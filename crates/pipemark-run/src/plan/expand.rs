//! Expands a suite's experiments to trials.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::Duration;

use pipemark_claims::design;
use pipemark_model::written::{DesignSetting, Refusal};
use pipemark_model::{ByteSize, Experiment, Job, Key, Published, Settings, Trial, Value, Volume, differing_keys};

use crate::plan::against::{programs, with_against};
use crate::plan::design::{Design, DesignAxis, PublishedFigure, PublishedFigures};
use crate::plan::refusal::PlanError;
use crate::plan::suite::{MAX_TRIALS, Suite, VolumeScale};
use crate::plan::{MEMORY_COPY, Plan, gains};

impl Suite {
    /// All trials, with their totals and times multiplied by `scale`.
    ///
    /// # Errors
    /// If there would be more than `MAX_TRIALS` trials, two trials of an experiment would be equal, parameters
    /// contradict each other, or a published figure belongs to no trial.
    pub fn expand(&self, scale: VolumeScale) -> Result<Plan, PlanError> {
        expand(self, scale).map_err(|refusal| match &self.source {
            Some(source) => PlanError::of_suite(refusal, &source.file, &source.text),
            None => PlanError::of_flags(refusal),
        })
    }
}

fn expand(suite: &Suite, scale: VolumeScale) -> Result<Plan, Refusal> {
    let count = suite.designs.iter().fold(0u128, |count, design| count.saturating_add(design.count()));
    // The number is checked before the expansion, because a few lines can require more trials than fit in memory.
    if count > MAX_TRIALS as u128 {
        let largest = suite.designs.iter().max_by_key(|design| design.count()).and_then(|design| design.at.clone());
        return Err(too_many(count, largest));
    }
    let against = programs(suite)?;
    let mut names = HashSet::new();
    let mut experiments = Vec::new();
    let mut trials: Vec<Trial> = Vec::new();
    for design in &suite.designs {
        if !names.insert(&design.name) {
            let sentence = format!("two experiments are called '{}'; give each its own name", design.name);
            return Err(Refusal::new(sentence, design.at.clone()));
        }
        if design.name == MEMORY_COPY && suite.name != MEMORY_COPY {
            let sentence = format!("'{MEMORY_COPY}' is the reference that pipemark adds; use another name");
            return Err(Refusal::new(sentence, design.at.clone()));
        }
        let its_trials = match design.measures_volume {
            true => trials_of(&suite.defaults, &with_first_volume(suite, design)?, VolumeScale::ONE)?,
            false => trials_of(&suite.defaults, design, scale)?,
        };
        experiments.push(Experiment {
            name: design.name.clone(),
            title: design.title.clone(),
            about: design.about.clone(),
            varies: varying_keys(design, &its_trials),
            across: design.across,
            headline: suite.headline.iter().any(|(name, _)| *name == design.name),
            gains: design.gains.as_ref().map(|gains| gains::resolve(gains, &its_trials)).transpose()?,
            known: Vec::new(),
        });
        trials.extend(its_trials);
        // Added baselines count as trials too.
        if trials.len() > MAX_TRIALS {
            return Err(too_many(trials.len() as u128, design.at.clone()));
        }
    }

    if let Some((name, at)) = suite.headline.iter().find(|(name, _)| !names.contains(name)) {
        return Err(Refusal::new(format!("headline: there is no experiment '{name}'"), Some(at.clone())));
    }
    let (mut title, mut scaled) = (suite.title.clone(), String::new());
    if scale != VolumeScale::ONE {
        let totals = trials.iter().filter(|trial| matches!(trial.job.volume(), Volume::Total(_))).count();
        let what = match totals {
            0 => "times",
            all if all == trials.len() => "totals",
            _ => "totals and times",
        };
        scaled = format!("{what} × {scale}");
        title.push_str(&format!(" ({scaled})"));
    }
    let time = |trial: &Trial| match trial.job.volume() {
        Volume::Time(time) => time.into(),
        Volume::Total(_) => Duration::ZERO,
    };
    let longest = trials.iter().map(time).max().unwrap_or_default();
    let schedule = suite.schedule.complete(longest).map_err(|sentence| Refusal::new(sentence, None))?;
    let claims = design::resolve(&suite.claims, &experiments, &trials)?;
    let about = suite.about.clone();
    let measured = || suite.designs.iter().filter(|design| design.measures_volume);
    let to_measure = measured().map(|design| design.name.clone()).collect();
    let with_least = measured().filter(|design| has_least_total(design)).map(|design| design.name.clone()).collect();
    let suite = suite.name.clone();
    Ok(Plan {
        against,
        suite,
        title,
        scaled,
        about,
        experiments,
        trials,
        claims,
        schedule,
        to_measure,
        with_least,
        scale,
    })
}

/// The bytes that a chain moves in the first of the runs that determine its volume.
const FIRST_VOLUME: ByteSize = ByteSize(16 << 20);

/// Whether the experiment gives a total that its chosen totals can't be below.
fn has_least_total(design: &Design) -> bool {
    design.params.iter().any(|setting| setting.key() == Key::Total)
}

/// The design with an estimate of the volume, which is replaced after measuring.
fn with_first_volume(suite: &Suite, design: &Design) -> Result<Design, Refusal> {
    let refuse =
        |sentence: &str| Err(Refusal::new(format!("experiment '{}': {sentence}", design.name), design.at.clone()));
    let axes = design.axes.iter().flat_map(|axis| &axis.values);
    let mut given = design.params.iter().chain(design.cases.iter().flatten()).chain(axes).chain(&suite.defaults);
    if !design.axes.iter().any(|axis| axis.key == Key::Length) {
        return match given.filter(|setting| setting.key().is_volume()).all(|setting| setting.key() == Key::Total) {
            true if has_least_total(design) => Ok(design.clone()),
            _ => refuse(
                "only chains can have a volume that is chosen by measuring alone; give an axis 'length', or the least \
                 total in params",
            ),
        };
    }
    if given.any(|setting| setting.key().is_volume()) {
        return refuse("its volume is chosen by measuring, so total, blocks and time can't be set");
    }
    let mut with_volume = design.clone();
    with_volume.params.push(Value::Total(FIRST_VOLUME).into());
    Ok(with_volume)
}

fn too_many(count: u128, at: Option<Range<usize>>) -> Refusal {
    let plain = count.to_string();
    let mut digits = plain.clone();
    for comma in (1..plain.len()).rev().filter(|comma| (plain.len() - comma).is_multiple_of(3)) {
        digits.insert(comma, ',');
    }
    // A saturated count is a lower bound.
    let or_more = if count == u128::MAX { " or more" } else { "" };
    Refusal::new(format!("{digits}{or_more} trials are too many; the limit is 10,000, so omit some values"), at)
}

fn trials_of(defaults: &[DesignSetting], design: &Design, scale: VolumeScale) -> Result<Vec<Trial>, Refusal> {
    check_axes(design)?;
    // An experiment made from flags is the only one, and the user doesn't know its name, so the message omits it.
    let refuse = |sentence: String| match &design.at {
        Some(at) => Refusal::new(format!("experiment '{}': {sentence}", design.name), Some(at.clone())),
        None => Refusal::new(sentence, None),
    };
    let checked = |settings: Settings| Job::try_from(settings).map_err(|error| refuse(error.to_string()));

    let mut base = Settings::default();
    for setting in defaults.iter().chain(&design.params) {
        set_parameter(&mut base, &setting.value);
    }
    let no_case = [Vec::new()];
    let cases = if design.cases.is_empty() { &no_case[..] } else { &design.cases };
    let mut ordered = Vec::new();
    let mut ids = HashSet::new();
    for case in cases {
        for combination in combinations(&design.axes) {
            let mut settings = base.clone();
            for setting in case.iter().chain(combination) {
                set_parameter(&mut settings, &setting.value);
            }
            let job = checked(settings.clone())?;
            // A number of blocks isn't scaled.
            let scale = if settings.blocks.is_some() { VolumeScale::ONE } else { scale };
            if !ids.insert(job.id()) {
                let at = case.iter().find_map(|setting| setting.at.clone()).or(design.at.clone());
                let sentence = format!("experiment '{}' has the trial '{}' twice", design.name, job.id());
                return Err(Refusal::new(sentence, at));
            }
            ordered.push((settings, job, scale));
        }
    }

    let ordered = with_against(ordered, &design.against).map_err(refuse)?;
    let mut published = PublishedTables::of(&design.published);
    let mut trials: Vec<Trial> = Vec::new();
    for (mut settings, job, scale) in ordered {
        let of_others =
            settings.language.as_ref().is_some_and(|name| design.against.iter().any(|own| own.name == *name));
        for setting in design.baseline.iter().filter(|_| !of_others) {
            set_parameter(&mut settings, &setting.value);
        }
        let baseline = checked(settings)?;
        let is_its_own = baseline.id() == job.id();
        if !is_its_own && ids.insert(baseline.id()) {
            trials.push(trial(design, baseline.clone(), None, &mut published, scale)?);
        }
        trials.push(trial(design, job, (!is_its_own).then_some(baseline), &mut published, scale)?);
    }
    published.refuse_unused(design)?;
    let mut scaled_ids = HashSet::new();
    match trials.iter().find(|trial| !scaled_ids.insert(&trial.id)) {
        Some(trial) => Err(refuse(format!("at scale {scale}, two trials become identical: '{}'", trial.id))),
        None => Ok(trials),
    }
}

/// Sets a parameter. A total, a number of blocks or a time replaces the volume set before.
fn set_parameter(settings: &mut Settings, value: &Value) {
    if value.key().is_volume() {
        (settings.total, settings.blocks, settings.time) = (None, None, None);
    }
    settings.set(value.clone());
}

fn trial(
    design: &Design,
    job: Job,
    baseline: Option<Job>,
    published: &mut PublishedTables,
    scale: VolumeScale,
) -> Result<Trial, Refusal> {
    let figure = published.take(&job);
    let job = scaled(job, scale)?;
    Ok(Trial {
        id: job.id(),
        experiment: design.name.clone(),
        job,
        baseline: baseline.map(|baseline| scaled(baseline, scale)).transpose()?.map(|baseline| baseline.id()),
        published: figure,
    })
}

fn scaled(job: Job, scale: VolumeScale) -> Result<Job, Refusal> {
    if scale == VolumeScale::ONE {
        return Ok(job);
    }
    let mut settings = job.settings();
    set_parameter(
        &mut settings,
        &match job.volume() {
            Volume::Total(total) => {
                Value::Total(ByteSize(scale.apply(total.0, job.block().map_or(64 << 10, |block| block.0))))
            }
            Volume::Time(time) => Value::Time(scale.apply_to_time(time)),
        },
    );
    Job::try_from(settings).map_err(|error| Refusal::new(format!("at scale {scale}: {error}"), None))
}

/// [`Key::Total`] for all parameters that set the volume (total, blocks and time). `key` itself for others.
fn subject(key: Key) -> Key {
    if key.is_volume() { Key::Total } else { key }
}

/// Refuses combinations of axes that only give contradictions or duplicates.
fn check_axes(design: &Design) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    for axis in &design.axes {
        let key = axis.key;
        if axis.values.is_empty() {
            return Err(Refusal::new(format!("the axis '{key}' has no values"), axis.at.clone()));
        }
        if !seen.insert(subject(key)) {
            let sentence = match key.is_volume() {
                true => "use only one axis of total, blocks and time".to_owned(),
                false => format!("'{key}' has two axes; omit one"),
            };
            return Err(Refusal::new(sentence, axis.at.clone()));
        }
        let mut values = HashSet::new();
        for setting in &axis.values {
            if !values.insert(&setting.value) {
                let sentence = format!("{key} {} is given twice", setting.value.exact());
                return Err(Refusal::new(sentence, setting.at.clone().or(axis.at.clone())));
            }
        }
    }
    for setting in design.params.iter().chain(design.cases.iter().flatten()) {
        if seen.contains(&subject(setting.key())) {
            let sentence =
                format!("'{}' is an axis, so it cannot also have a fixed value; omit one of the two", setting.key());
            return Err(Refusal::new(sentence, setting.at.clone()));
        }
    }
    Ok(())
}

/// All combinations of the axes' values, with the last axis changing fastest. Without axes, a single empty combination.
/// The caller must have checked that there are at most [`MAX_TRIALS`].
fn combinations(axes: &[DesignAxis]) -> Vec<Vec<&DesignSetting>> {
    axes.iter().fold(vec![Vec::new()], |all, axis| {
        let with_each = |one: Vec<_>| axis.values.iter().map(move |value| [one.as_slice(), &[value]].concat());
        all.into_iter().flat_map(with_each).collect()
    })
}

/// The parameters in which the trials differ. Those of the axes come first, then those of the cases, then those of
/// added baselines.
fn varying_keys(design: &Design, trials: &[Trial]) -> Vec<Key> {
    let first = design.axes.iter().map(|axis| axis.key).chain(design.cases.iter().flatten().map(DesignSetting::key));
    differing_keys(&trials.iter().map(|trial| &trial.job).collect::<Vec<_>>(), &first.collect::<Vec<_>>())
}

/// The published figures of an experiment, by the value of their parameter. Each figure has a flag for whether a trial
/// uses it.
struct PublishedTables<'a>(Vec<(&'a PublishedFigures, ByValue<'a>)>);

type ByValue<'a> = HashMap<&'a Value, (&'a PublishedFigure, bool)>;

impl<'a> PublishedTables<'a> {
    fn of(published: &'a [PublishedFigures]) -> Self {
        let figures = |table: &'a PublishedFigures| table.figures.iter().map(|one| (&one.setting.value, (one, false)));
        PublishedTables(published.iter().map(|table| (table, figures(table).collect())).collect())
    }

    /// The figure for the job from the first table that has one; `None` if no table has one.
    fn take(&mut self, job: &Job) -> Option<Published> {
        let settings = job.settings();
        let mut fitting =
            self.0.iter_mut().filter(|(table, _)| table.when.iter().all(|setting| settings.has(&setting.value)));
        fitting.find_map(|(table, figures)| {
            let by = table.figures.first()?.setting.key();
            let (figure, used) = figures.get_mut(&settings.effective(by)?)?;
            *used = true;
            let total = match job.volume() {
                Volume::Total(total) if !table.relative => Some(total.0),
                _ => None,
            };
            Some(Published {
                throughput: figure.throughput,
                as_published: figure.as_published.clone(),
                total: table.total.or(total),
                source: table.source.clone(),
                statistic: table.statistic,
                relative: table.relative,
                figures: figure.figures.clone(),
                figures_as_published: figure.figures_as_published.clone(),
            })
        })
    }

    fn refuse_unused(&self, design: &Design) -> Result<(), Refusal> {
        let figures = self.0.iter().flat_map(|(_, figures)| figures.values());
        let unused = figures.filter(|(_, used)| !used).map(|(figure, _)| &figure.setting);
        // Report the first unused figure in the file, because the map has no order.
        let Some(setting) = unused.min_by_key(|setting| setting.at.as_ref().map(|at| at.start)) else { return Ok(()) };
        let sentence = format!(
            "a figure is published for {} {}, but experiment '{}' has no such trial",
            setting.key(),
            setting.value.exact(),
            design.name
        );
        Err(Refusal::new(sentence, setting.at.clone()))
    }
}
