//! Which languages a suite's trials are of: all that it names, with those that were found besides, or only some.

use pipemark_model::{Key, Language, Value};

use crate::plan::suite::Suite;
use crate::plan::{DesignAxis, Setting};

impl Suite {
    /// The languages that its axes name.
    pub fn languages(&self) -> Vec<String> {
        let axes = self.designs.iter().flat_map(|design| &design.axes).filter(|axis| axis.key == Key::Language);
        axes.flat_map(|axis| &axis.values).map(|setting| setting.value.to_string()).collect()
    }

    /// Has all experiments that don't say how much they prove prove so much.
    pub fn verify(&mut self, level: Value) {
        self.defaults.retain(|setting| setting.value.key() != level.key());
        self.defaults.push(level.into());
    }

    /// Replaces the values of all axes of languages: those of the suite that are `wanted` in its order, and then the
    /// others. Published figures and claims about the others are omitted.
    pub fn of_languages(&mut self, wanted: &[Language]) {
        for design in &mut self.designs {
            let Some(axis) = design.axes.iter_mut().find(|axis| axis.key == Key::Language) else { continue };
            let wanted = || wanted.iter().cloned().map(Value::Language);
            let named: Vec<Value> = axis.values.iter().map(|setting| setting.value.clone()).collect();
            let kept = named.iter().filter(|value| wanted().any(|other| other == **value)).cloned();
            let values: Vec<Value> = kept.chain(wanted().filter(|value| !named.contains(value))).collect();
            // The baseline's language is measured even where it isn't wanted.
            let measured = |setting: &Setting| {
                values.contains(&setting.value) || design.baseline.iter().any(|base| base.value == setting.value)
            };
            for published in &mut design.published {
                published.figures.retain(|figure| figure.setting.key() != Key::Language || measured(&figure.setting));
            }
            design.published.retain(|published| !published.figures.is_empty());
            let others = |value: &Value| {
                value.key() == Key::Language
                    && !values.contains(value)
                    && design.baseline.iter().all(|base| base.value != *value)
            };
            for claim in &mut self.claims {
                let to_others = claim.to.as_ref().is_some_and(|to| to.iter().any(others));
                claim.of.retain(|of| !to_others && !of.iter().any(others));
            }
            *axis = DesignAxis::new(Key::Language, values);
        }
        self.claims.retain(|claim| claim.claim.open.is_some() || !claim.of.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use pipemark_model::{Verify, distinct};

    use super::*;
    use crate::plan::{VolumeScale, embedded};

    fn languages(wanted: &[&str]) -> Vec<String> {
        let mut suite = Suite::parse("languages.toml", embedded("languages").unwrap()).unwrap();
        let wanted: Vec<Language> = wanted.iter().map(|word| word.parse().unwrap()).collect();
        suite.of_languages(&wanted);
        let plan = suite.expand(VolumeScale::ONE).unwrap();
        let languages = plan.trials.iter().filter_map(|trial| trial.job.value(Key::Language));
        distinct(languages.map(|language| language.to_string()))
    }

    #[test]
    fn entrants_check_as_is_asked_and_other_experiments_as_they_say() {
        let mut suite = Suite::parse("languages.toml", embedded("languages").unwrap()).unwrap();
        suite.verify(Value::Verify(Verify::Xor));
        let plan = suite.expand(VolumeScale::ONE).unwrap();
        let (entrants, others): (Vec<_>, Vec<_>) = plan.trials.iter().partition(|trial| trial.job.entrant().is_some());
        assert!(entrants.len() > 50 && entrants.iter().all(|trial| trial.job.verify() == Verify::Xor));
        assert!(others.iter().any(|trial| trial.job.verify() == Verify::None));
    }

    #[test]
    fn a_strangers_language_comes_last_and_the_baseline_is_always_there() {
        assert_eq!(languages(&["nim", "zig", "c"]), ["c", "zig", "nim"]);
        assert_eq!(languages(&["java"]), ["c", "java"]);
    }
}
