//! Which trial of BASE belongs to which of NEW: those with the same parameters in the same experiment, but for the
//! parameters that the person chose on each side.

use std::collections::{BTreeMap, BTreeSet};

use super::{Party, Refusal, Side};
use crate::model::{Key, LinkKind, Params, Record};
use crate::plan::Setting;

/// The experiment, and the id of the parameters with those that were chosen made equal.
type Place<'a> = (&'a str, String);

/// The trials of both sides.
pub(super) struct Matches<'a> {
    /// Those that belong together, in the order of BASE.
    pub pairs: Vec<(&'a Record, &'a Record)>,
    /// Those of one side that have no counterpart, in the order of their documents.
    pub alone: Vec<(Side, &'a Record)>,
}

/// Finds the counterpart of each trial.
pub(super) fn matches<'a>(base: Party<'a>, new: Party<'a>) -> Result<Matches<'a>, Refusal> {
    let chosen = chosen(base.settings, new.settings);
    let base_trials = places(Side::Base, base, &chosen)?;
    let new_trials = places(Side::New, new, &chosen)?;
    let by_place: BTreeMap<&Place, &Record> = new_trials.iter().map(|(place, record)| (place, *record)).collect();
    let mut matches = Matches { pairs: Vec::new(), alone: Vec::new() };
    let mut found = BTreeSet::new();
    for (place, record) in &base_trials {
        match by_place.get(place) {
            Some(counterpart) => {
                found.insert(place);
                matches.pairs.push((record, counterpart));
            }
            None => matches.alone.push((Side::Base, record)),
        }
    }
    let alone = new_trials.iter().filter(|(place, _)| !found.contains(place));
    matches.alone.extend(alone.map(|(_, record)| (Side::New, *record)));
    if matches.pairs.is_empty() {
        return Err(Refusal(
            "no trial of BASE has a counterpart in NEW with the same parameters; \
             say which parameters may differ, such as --base capacity=default --new capacity=1m"
                .to_owned(),
        ));
    }
    Ok(matches)
}

/// A value for each parameter that was chosen on either side: what it is does not matter, only that it is one.
fn chosen<'a>(base: &'a [Setting], new: &'a [Setting]) -> Vec<&'a Setting> {
    let mut keys = BTreeSet::new();
    base.iter().chain(new).filter(|setting| keys.insert(setting.key())).collect()
}

/// Whether the trial is the copy within one process that is measured beside the others.
pub(super) fn is_reference(record: &Record) -> bool {
    record.params.link == LinkKind::MemoryCopy
}

fn places<'a>(side: Side, party: Party<'a>, chosen: &[&Setting]) -> Result<Vec<(Place<'a>, &'a Record)>, Refusal> {
    let of_links = chosen.iter().any(|setting| setting.key() == Key::Link);
    let has = |params: &Params, setting: &Setting| params.exact(setting.key()) == setting.exact();
    let mut seen = BTreeSet::new();
    let mut places = Vec::new();
    for record in &party.document.trials {
        let left_out = !chosen.is_empty() && !of_links && is_reference(record);
        if left_out || !party.settings.iter().all(|setting| has(&record.params, setting)) {
            continue;
        }
        let mut params = record.params.clone();
        chosen.iter().for_each(|setting| setting.apply(&mut params));
        // The id in the file is not asked: it may be wrong, and the parameters are what counts.
        let place = (record.experiment.as_str(), params.id());
        if !seen.insert(place.clone()) {
            let advice = match chosen {
                [] => "the file is damaged",
                _ => "say more about which is meant in --base and --new",
            };
            return Err(Refusal(format!(
                "{side} ({}) has several trials for '{}' of the experiment '{}'; {advice}",
                party.name, place.1, place.0
            )));
        }
        places.push((place, record));
    }
    if places.is_empty() {
        return Err(Refusal(nothing_chosen(side, party)));
    }
    Ok(places)
}

/// What there would have been to choose from.
fn nothing_chosen(side: Side, party: Party) -> String {
    let Some(setting) = party.settings.iter().find(|setting| {
        !party.document.trials.iter().any(|record| record.params.exact(setting.key()) == setting.exact())
    }) else {
        return match party.settings {
            [] => format!("{side} ({}) has no trials", party.name),
            _ => format!("{side} ({}) has no trial with all of the parameters asked for", party.name),
        };
    };
    let there: BTreeSet<String> = party.document.trials.iter().map(|record| record.params.get(setting.key())).collect();
    let there: Vec<String> = there.into_iter().filter(|value| !value.is_empty()).take(12).collect();
    format!(
        "{side} ({}) has no trial with {}={}; it has {}",
        party.name,
        setting.key(),
        setting.text(),
        if there.is_empty() { "none with any".to_owned() } else { there.join(", ") }
    )
}
