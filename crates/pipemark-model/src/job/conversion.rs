//! Converts settings, the flat form in flags, suites and documents, to jobs and back. Contradictory parameters are
//! refused only here.

use crate::bad_value::{BadValue, refuse};
use crate::job::{Chain, Ends, Entrant, Job, LinesJob, MessagePace, RoundTrip, Volume};
use crate::kind::JobKind;
use crate::methods::{Mode, Rate};
use crate::parameter::{Key, Settings, Value};
use crate::stage::Stages;

impl TryFrom<Settings> for Job {
    type Error = BadValue;

    /// # Errors
    /// The contradiction, as a message that says which options to change. Settings that are impossible only on this
    /// machine are accepted here.
    fn try_from(settings: Settings) -> Result<Job, BadValue> {
        let kind = kind_of(&settings)?;
        for key in Key::iter().filter(|key| !key.kinds().contains(&kind)) {
            if let Some(value) = settings.get(key).filter(|value| key.default_value().as_ref() != Some(value)) {
                return refuse(describe_misplaced(kind, &settings, &value));
            }
        }
        let volume = Volume::new(&settings)?;
        Ok(match kind {
            JobKind::Stream => Job::Stream(Ends::new(&settings, volume)?),
            JobKind::RoundTrip => Job::RoundTrip(RoundTrip::new(&settings, volume)?),
            JobKind::Chain => Job::Chain(Chain::new(settings, volume)?),
            JobKind::Entrant => Job::Entrant(Entrant::new(settings, volume)?),
            JobKind::Lines => Job::Lines(LinesJob::new(settings, volume)?),
        })
    }
}

/// The kind of job, derived from parameters that only one kind has.
fn kind_of(settings: &Settings) -> Result<JobKind, BadValue> {
    let chained = settings.length.is_some_and(|length| length > 0)
        || settings.exit.is_some_and(|exit| exit != 0)
        || settings.source.is_some()
        || settings.stage.as_ref().is_some_and(|stage| *stage != Stages::default());
    match settings {
        Settings { language: Some(_), program: Some(_), .. } => Ok(JobKind::Entrant),
        Settings { language: Some(language), .. } => {
            refuse(format!("{language} has two programs; also give the program, idiomatic or tuned"))
        }
        Settings { program: Some(_), .. } => refuse("a program belongs to a language; also give a language"),
        Settings { feed: Some(_), filter: Some(_), .. } => Ok(JobKind::Lines),
        Settings { filter: Some(filter), .. } => refuse(format!("the filter {filter} needs lines; also give a feed")),
        Settings { feed: Some(feed), .. } => refuse(format!("the feed {feed} needs a filter; also give a filter")),
        Settings { mode: Some(Mode::Latency), .. } if chained => {
            refuse("a chain has no round trips; omit --length or measure its throughput")
        }
        Settings { mode: Some(Mode::Latency), .. } => Ok(JobKind::RoundTrip),
        _ if chained => Ok(JobKind::Chain),
        _ => Ok(JobKind::Stream),
    }
}

/// The error message for a parameter that this kind of job doesn't have.
fn describe_misplaced(kind: JobKind, settings: &Settings, value: &Value) -> String {
    let key = value.key();
    let leave_out = |who: String| format!("{who} does not accept {key} {value}; omit it");
    match (kind, &settings.language, settings.program, &settings.filter) {
        (JobKind::Entrant, Some(language), Some(program), _) => leave_out(format!("the entrant {language} {program}")),
        (JobKind::Lines, _, _, Some(filter)) => leave_out(format!("the filter {filter}")),
        _ if matches!(key, Key::Rate | Key::Gap) => {
            "--rate and --gap are for round trips; use 'pipemark latency', or mode = \"latency\" in a suite".to_owned()
        }
        _ => leave_out(format!("a {}", kind.name().replace('-', " "))),
    }
}

impl From<&Job> for Settings {
    fn from(job: &Job) -> Settings {
        let mut settings = Settings { mode: Some(job.mode()), place: Some(job.place()), ..Settings::default() };
        settings.set(job.volume().into());
        if let Some(ends) = job.ends() {
            settings = ends.settings(settings);
        }
        match job {
            Job::Stream(_) => {}
            Job::RoundTrip(trip) => match trip.pace {
                MessagePace::Gap(gap) => settings.gap = Some(gap),
                MessagePace::Rate(rate) => settings.rate = Some(Rate(Some(rate))),
            },
            Job::Chain(chain) => {
                settings.stage = Some(chain.stage.clone());
                settings.length = Some(chain.length);
                settings.exit = Some(chain.exit);
                if chain.source.is_some() {
                    settings.source = chain.source.clone();
                    (settings.send, settings.recv, settings.block, settings.wait) = (None, None, None, None);
                }
            }
            Job::Entrant(entrant) => {
                settings.language = Some(entrant.language.clone());
                settings.program = Some(entrant.program);
                settings.block = Some(entrant.block);
                settings.verify = Some(entrant.verify);
                settings.length = (entrant.length > 0).then_some(entrant.length);
            }
            Job::Lines(lines) => {
                settings.feed = Some(lines.feed);
                settings.filter = Some(lines.filter.clone());
                settings.rate = lines.rate.map(|rate| Rate(Some(rate)));
            }
        }
        settings
    }
}
