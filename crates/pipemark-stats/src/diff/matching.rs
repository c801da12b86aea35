//! Matches trials of BASE and NEW. Two trials match if they belong to the same experiment and have the same parameters.
//! The parameters by which a side was selected are ignored.

use std::collections::{BTreeMap, BTreeSet};

use pipemark_model::{Key, Record, Value};

use crate::diff::{DiffRefusal, Side, SideInput};

/// The experiment's name, and the id of the parameters. For the id, the parameters used for selection have the same
/// values on both sides.
type MatchKey<'a> = (&'a str, String);

/// The trials of both sides.
pub(super) struct Matches<'a> {
    /// Pairs of matching trials, in the order of BASE.
    pub pairs: Vec<(&'a Record, &'a Record)>,
    /// Trials without a match, in the order of their documents.
    pub alone: Vec<(Side, &'a Record)>,
}

/// Pairs each trial of BASE with its match in NEW.
pub(super) fn matches<'a>(base: SideInput<'a>, new: SideInput<'a>) -> Result<Matches<'a>, DiffRefusal> {
    let chosen = chosen(base.settings, new.settings);
    let base_trials = places(Side::Base, base, &chosen)?;
    let new_trials = places(Side::New, new, &chosen)?;
    let by_place = BTreeMap::from_iter(new_trials.iter().map(|(place, record)| (place, *record)));
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
        return Err(DiffRefusal(
            "no trial of BASE has a counterpart in NEW with the same parameters; name the parameters that differ, such as --base capacity=default --new capacity=1m"
                .to_owned(),
        ));
    }
    Ok(matches)
}

/// One value for each parameter by which either side was selected. For matching, both sides get this value; any value
/// would do.
fn chosen<'a>(base: &'a [Value], new: &'a [Value]) -> Vec<&'a Value> {
    let mut keys = BTreeSet::new();
    base.iter().chain(new).filter(|setting| keys.insert(setting.key())).collect()
}

fn places<'a>(
    side: Side,
    side_input: SideInput<'a>,
    chosen: &[&Value],
) -> Result<Vec<(MatchKey<'a>, &'a Record)>, DiffRefusal> {
    let of_links = chosen.iter().any(|setting| setting.key() == Key::Link);
    let mut seen = BTreeSet::new();
    let mut places = Vec::new();
    for record in &side_input.first().trials {
        let omitted = !chosen.is_empty() && !of_links && record.job.is_memory_copy();
        let mut settings = record.job.settings();
        if omitted || !side_input.settings.iter().all(|value| settings.has(value)) {
            continue;
        }
        chosen.iter().for_each(|value| settings.set((*value).clone()));
        // The id in the file isn't used, because it may be wrong.
        let place = (record.experiment.as_str(), settings.id());
        if !seen.insert(place.clone()) {
            let advice = match chosen {
                [] => "the file is damaged",
                _ => "give more parameters in --base and --new",
            };
            return Err(DiffRefusal(format!(
                "{side} ({}) has several trials for '{}' of the experiment '{}'; {advice}",
                side_input.name, place.1, place.0
            )));
        }
        places.push((place, record));
    }
    if places.is_empty() {
        return Err(DiffRefusal(empty_selection(side, side_input)));
    }
    Ok(places)
}

/// The error message for a selection without trials. The message names the values that exist.
fn empty_selection(side: Side, side_input: SideInput) -> String {
    let Some(setting) = side_input
        .settings
        .iter()
        .find(|setting| !side_input.first().trials.iter().any(|record| record.job.settings().has(setting)))
    else {
        return match side_input.settings {
            [] => format!("{side} ({}) has no trials", side_input.name),
            _ => format!("{side} ({}) has no trial with all of these parameters", side_input.name),
        };
    };
    let there: BTreeSet<Value> =
        side_input.first().trials.iter().filter_map(|record| record.job.value(setting.key())).collect();
    let there: Vec<String> = there.iter().take(12).map(Value::to_string).collect();
    format!(
        "{side} ({}) has no trial with {}={}; it has {}",
        side_input.name,
        setting.key(),
        setting,
        if there.is_empty() { "none with any".to_owned() } else { there.join(", ") }
    )
}
