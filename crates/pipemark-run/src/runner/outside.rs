//! One run of a link by outside programs, as a sample like those of pipemark's own links.

use std::time::Instant;

use hdrhistogram::Histogram;

use pipemark_entrants::Entrants;
use pipemark_host::child::RunError;
use pipemark_model::{Ends, Job, MessagePace, OutsideLink, Verify, Volume};
use pipemark_outside::{EndReport, Pace, RunSettings};

use crate::runner::channel::{Done, EndRole, Granted};
use crate::runner::conditions::{Conditions, RunResult};
use crate::runner::end::{MAX_NS, summary};
use crate::runner::pair;

/// Makes one run.
///
/// # Errors
/// If the run failed, or its bytes did not verify.
pub fn run(
    link: OutsideLink,
    job: &Job,
    ends: &Ends,
    conditions: &Conditions<'_>,
    entrants: &Entrants,
) -> Result<RunResult, RunError> {
    let begin = Instant::now();
    let link = entrants.links.link(link)?;
    let Volume::Time(time) = ends.volume else {
        return Err(RunError::NotHere("a link by outside programs is measured for a time; use --time".to_owned()));
    };
    let settings = RunSettings {
        block: ends.block.0,
        fresh: ends.fresh(),
        check: ends.touched(),
        round_trips: match job {
            Job::RoundTrip(trip) => Some(match trip.pace {
                MessagePace::Gap(gap) => Pace::Gap(gap.0),
                MessagePace::Rate(rate) => Pace::Rate(rate),
            }),
            _ => None,
        },
        wait: ends.wait,
        time: time.into(),
        senders: ends.writers,
        receivers: ends.readers,
        cpus: conditions.cpus,
        seed: conditions.seed,
        limit: conditions.limit,
        interrupt: conditions.interrupt,
    };
    let run = pipemark_outside::run(&link, &settings)?;
    let replies = run.ends.into_iter().map(|end| done(end, ends)).collect::<Result<_, RunError>>()?;
    let mut measured = pair::combine_replies(job, ends, replies, Vec::new(), Granted::default(), begin.elapsed())?;
    measured.sample.broker = run.broker;
    measured.sample.user_ns += run.broker.map_or(0, |broker| broker.cpu_ns);
    Ok(measured)
}

/// The report of an end in the form of a reply of pipemark's own ends.
fn done(end: EndReport, ends: &Ends) -> Result<(EndRole, Done), RunError> {
    let failed = RunError::failed::<String>("the round trips can't be summarized");
    let latency = if end.trips.is_empty() {
        None
    } else {
        let record = || {
            let mut trips = Histogram::<u64>::new_with_bounds(1, MAX_NS, 3).map_err(|error| error.to_string())?;
            end.trips.iter().for_each(|&(ns, times)| trips.saturating_record_n(ns.clamp(1, MAX_NS), times));
            summary(&trips, end.due).map_err(|error| error.to_string())
        };
        Some(record().map_err(failed)?)
    };
    if latency.is_some() && end.received != end.stats.bytes_in_all {
        let (sent, received) = (end.stats.bytes_in_all, end.received);
        return Err(RunError::Unverified(format!("{sent} bytes were sent and {received} came back")));
    }
    let fault = end.fault.filter(|_| ends.verify != Verify::None);
    let role = if end.sender { EndRole::Source } else { EndRole::Sink };
    let done = Done { stats: end.stats, fault, written: end.written, read: end.checked, latency, ..Done::default() };
    Ok((role, done))
}
