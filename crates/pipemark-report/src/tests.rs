//! Checks that every comparison in a finding or a claim is between two rows of one table. Both rows must have the same
//! experiment, volume, place, verification and other settings, except for the settings that the finding is about. The
//! ratio in the text must be the ratio of the named figure in these rows.

mod documents;
mod faults;
mod implied;

use proptest::prelude::*;

use pipemark_model::{Key, Record, Settings, Value};
use pipemark_run::plan::EMBEDDED;

use crate::sheet::fixture::of_suite;
use crate::tests::documents::{claims, documents};
use crate::tests::faults::faults;

#[test]
fn suites_compare_what_their_tables_show() {
    compare_suites("0.05");
}

#[test]
#[ignore = "long"]
fn long_suites_of_full_length_compare_what_their_tables_show() {
    compare_suites("1");
}

fn compare_suites(scale: &str) {
    for (seed, (name, text)) in EMBEDDED.into_iter().enumerate() {
        let document = of_suite(text, scale, seed as u64);
        assert!(!document.findings.is_empty(), "{name} at {scale}");
        let faults = faults(&document.trials, document.claims);
        assert!(faults.is_empty(), "{name} at {scale}: {} faults\n{}", faults.len(), faults.join("\n"));
    }
}

fn one_setting(key: &str, text: &str) -> Settings {
    Settings::of([Value::parse(Key::named(key).unwrap(), text).unwrap()])
}

proptest! {
    #[test]
    fn overlapping_experiments_are_not_mixed(all in documents(), claims in prop::collection::vec(claims(), 6)) {
        let mut kept: Vec<Record> = Vec::new();
        for record in all {
            if !kept.iter().any(|own| own.experiment == record.experiment && own.id == record.id) {
                kept.push(record);
            }
        }
        let faults = faults(&kept, claims);
        prop_assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
