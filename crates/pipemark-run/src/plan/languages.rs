//! Selects the languages of a suite's trials.

use pipemark_model::{Claim, Key, Language, Value};

use crate::plan::suite::Suite;
use crate::plan::{DesignAxis, DesignSetting};

impl Suite {
    /// The languages on the suite's axes.
    pub fn languages(&self) -> Vec<String> {
        let axes = self.designs.iter().flat_map(|design| &design.axes).filter(|axis| axis.key == Key::Language);
        axes.flat_map(|axis| &axis.values).map(|setting| setting.value.to_string()).collect()
    }

    /// Sets the verification level of those experiments that don't set their own.
    pub fn set_verify(&mut self, level: Value) {
        self.defaults.retain(|setting| setting.value.key() != level.key());
        self.defaults.push(level.into());
    }

    /// Restricts all axes of languages to `wanted`: first the suite's languages in the suite's order, then the others.
    /// Removes cases of other languages, experiments without cases, and published figures and claims about other
    /// languages.
    pub fn restrict_languages(&mut self, wanted: &[Language]) {
        let mut omitted: Vec<String> = Vec::new();
        let mut measured_by: Vec<(String, Vec<Value>)> = Vec::new();
        for design in &mut self.designs {
            let wanted = || wanted.iter().cloned().map(Value::Language);
            let is_wanted = |value: &Value| wanted().any(|other| other == *value);
            let mut axis = design.axes.iter_mut().find(|axis| axis.key == Key::Language);
            let named: Vec<Value> = match &axis {
                Some(axis) => axis.values.iter().map(|setting| setting.value.clone()).collect(),
                None => languages_of(&design.cases),
            };
            if named.is_empty() {
                continue;
            }
            let kept = named.iter().filter(|value| is_wanted(value)).cloned();
            // Cases reproduce a published document, so no languages are added to cases.
            let others = wanted().filter(|value| axis.is_some() && !named.contains(value));
            let values: Vec<Value> = kept.chain(others).collect();
            // The baseline's language is measured even if it isn't in `wanted`.
            let measured = |setting: &DesignSetting| {
                values.contains(&setting.value) || design.baseline.iter().any(|base| base.value == setting.value)
            };
            for published in &mut design.published {
                published.figures.retain(|figure| figure.setting.key() != Key::Language || measured(&figure.setting));
            }
            design.published.retain(|published| !published.figures.is_empty());
            let base = design.baseline.iter().map(|base| base.value.clone());
            measured_by.push((design.name.clone(), values.iter().cloned().chain(base).collect()));
            match &mut axis {
                Some(axis) => **axis = DesignAxis::new(Key::Language, values),
                None => design.cases.retain(|case| {
                    case.iter().all(|setting| setting.key() != Key::Language || values.contains(&setting.value))
                }),
            }
            if axis.is_none() && design.cases.is_empty() {
                omitted.push(design.name.clone());
            }
        }
        for design in &mut self.claims {
            let experiments = &design.claim.experiments;
            let measured: Vec<&Value> = measured_by
                .iter()
                .filter(|(name, _)| experiments.contains(name))
                .flat_map(|(_, values)| values)
                .collect();
            let other =
                |value: &Value| value.key() == Key::Language && !measured.is_empty() && !measured.contains(&value);
            let to_other = design.to.as_ref().is_some_and(|to| to.iter().any(other));
            let to_each = std::mem::take(&mut design.to_each);
            let is_kept = |at: usize, of: &Vec<Value>| {
                !to_other && !of.iter().chain(to_each.get(at).into_iter().flatten()).any(other)
            };
            let kept: Vec<bool> = design.of.iter().enumerate().map(|(at, of)| is_kept(at, of)).collect();
            let mut is_kept = kept.iter();
            design.of.retain(|_| *is_kept.next().unwrap_or(&false));
            design.to_each = to_each.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(to, _)| to).collect();
        }
        self.designs.retain(|design| !omitted.contains(&design.name));
        self.headline.retain(|(name, _)| !omitted.contains(name));
        let unmeasured = |claim: &Claim| claim.open.is_some() || claim.shown_by.is_some();
        self.claims.retain(|design| unmeasured(&design.claim) || !design.of.is_empty());
        self.claims.retain(|design| design.claim.experiments.iter().all(|name| !omitted.contains(name)));
    }
}

/// The languages of the cases.
fn languages_of(cases: &[Vec<DesignSetting>]) -> Vec<Value> {
    cases
        .iter()
        .flatten()
        .filter(|setting| setting.key() == Key::Language)
        .map(|setting| setting.value.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use pipemark_model::{Verify, distinct};

    use super::*;
    use crate::plan::{VolumeScale, embedded};

    fn languages(wanted: &[&str]) -> Vec<String> {
        let mut suite = Suite::parse("languages.toml", embedded("languages").unwrap()).unwrap();
        let wanted: Vec<Language> = wanted.iter().map(|word| word.parse().unwrap()).collect();
        suite.restrict_languages(&wanted);
        let plan = suite.expand(VolumeScale::ONE).unwrap();
        let languages = plan.trials.iter().filter_map(|trial| trial.job.value(Key::Language));
        distinct(languages.map(|language| language.to_string()))
    }

    #[test]
    fn entrants_verify_as_requested_and_other_experiments_as_declared() {
        let mut suite = Suite::parse("languages.toml", embedded("languages").unwrap()).unwrap();
        suite.set_verify(Value::Verify(Verify::Xor));
        let plan = suite.expand(VolumeScale::ONE).unwrap();
        let (entrants, others): (Vec<_>, Vec<_>) = plan.trials.iter().partition(|trial| trial.job.entrant().is_some());
        assert!(entrants.len() > 50 && entrants.iter().all(|trial| trial.job.verify() == Verify::Xor));
        assert!(others.iter().any(|trial| trial.job.verify() == Verify::None));
    }

    #[test]
    fn a_language_outside_the_suite_comes_last_and_the_baseline_stays() {
        assert_eq!(languages(&["nim", "zig", "c"]), ["c", "zig", "nim"]);
        assert_eq!(languages(&["java"]), ["c", "java"]);
    }

    #[test]
    fn a_claim_needs_its_language_in_one_of_its_experiments() {
        let own = embedded("languages").unwrap();
        let fortran = "in = [\"languages\"]\nfigure = \"throughput\"\nof = [{ language = \"fortran\"";
        assert!(own.contains(fortran));
        let two = own.replace(fortran, &fortran.replace("in = [", "in = [\"as-written\", "));
        for text in [own, &two] {
            let is_kept = |wanted: &[&str]| {
                let mut suite = Suite::parse("languages.toml", text).unwrap();
                suite.restrict_languages(&wanted.iter().map(|word| word.parse().unwrap()).collect::<Vec<Language>>());
                suite.claims.iter().any(|design| design.claim.id == "no-fortran")
            };
            assert!(is_kept(&["c", "fortran", "rust"]), "as-written has no Fortran");
            assert!(!is_kept(&["c", "rust"]));
        }
    }

    #[test]
    fn a_published_experiment_gains_no_languages() {
        let of = |wanted: &[&str]| {
            let mut suite = Suite::parse("languages.toml", embedded("languages").unwrap()).unwrap();
            suite.restrict_languages(&wanted.iter().map(|word| word.parse().unwrap()).collect::<Vec<Language>>());
            let plan = suite.expand(VolumeScale::ONE).unwrap();
            let trials = plan.trials.iter().filter(|trial| trial.experiment == "as-written");
            trials
                .filter_map(|trial| trial.job.entrant().map(|entrant| entrant.language.to_string()))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&["nim", "zig", "c"]), ["c", "zig"]);
        assert_eq!(of(&["nim"]), [""; 0], "its claims and its headline are removed too");
    }
}
