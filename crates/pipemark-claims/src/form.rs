//! A claim as a suite states it in TOML. docs/suites.md describes the format for users.

use serde::Deserialize;
use serde::de::Deserializer;
use toml::Spanned;

use pipemark_model::written::{CheckedName, Refusal, Scalar, SuiteTable, line, setting, settings, title};
use pipemark_model::{Claim, Key, MAX_SHORT, Value, Which, did_you_mean};

use crate::demonstrations::DEMONSTRATIONS;
use crate::design::{ClaimDesign, no_difference, scaled};

const MAX_CLAIM_CHARS: usize = 400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClaimForm {
    id: Spanned<CheckedName>,
    #[serde(rename = "where", deserialize_with = "title")]
    place: String,
    #[serde(deserialize_with = "claim")]
    says: String,
    #[serde(default)]
    short: String,
    #[serde(default)]
    published: String,
    open: Option<String>,
    shown_by: Option<Spanned<String>>,
    /// The minimum number of bytes. Runs that moved fewer bytes don't settle the claim.
    least: Option<Spanned<Scalar>>,
    /// The minimum number of blocks.
    least_blocks: Option<u64>,
    times: Option<f64>,
    #[serde(default, rename = "in")]
    experiments: Vec<String>,
    #[serde(default = "ratio")]
    figure: String,
    #[serde(default)]
    of: Vec<SuiteTable<Scalar>>,
    to: Option<SuiteTable<Scalar>>,
    /// The same for each entry of `of`.
    #[serde(default)]
    to_each: Vec<SuiteTable<Scalar>>,
    #[serde(default)]
    which: Which,
    low: Option<f64>,
    high: Option<f64>,
    /// The claimed figure. `low` and `high` become half and twice its difference from 1 (a ratio) or 0 (a gain): see
    /// [`scaled`].
    about: Option<f64>,
}

fn ratio() -> String {
    "ratio".to_owned()
}

impl ClaimForm {
    /// The claim that the form describes.
    ///
    /// # Errors
    /// If the claim has no range, an unknown figure or an unknown demonstration.
    pub fn read(self) -> Result<ClaimDesign, Refusal> {
        let form = self;
        let at = form.id.span();
        let refuse = |sentence: String| Refusal::new(sentence, Some(at.clone()));
        let neutral = no_difference(&form.figure, form.to.is_some() || !form.to_each.is_empty()).map_err(refuse)?;
        let (mut low, mut high) = (form.low, form.high);
        if let Some(about) = form.about {
            let Some(neutral) = neutral.filter(|_| low.is_none() && high.is_none()) else {
                return Err(refuse("'about' is for gains and ratios only, and replaces 'low' and 'high'".to_owned()));
            };
            let (one, other) = (scaled(neutral, about, 0.5), scaled(neutral, about, 2.0));
            (low, high) = (Some(one.min(other)), Some(one.max(other)));
        }
        let unmeasured = form.open.is_some() || form.shown_by.is_some();
        if unmeasured != (low.is_none() && high.is_none()) {
            let sentence = "a claim needs either low, high or about, or else shown-by or open (the reason why it can't be measured)";
            return Err(refuse(sentence.to_owned()));
        }
        if let Some(name) = form.shown_by.as_ref().filter(|name| !DEMONSTRATIONS.contains(&name.as_ref().as_str())) {
            let hint = did_you_mean(name.as_ref(), DEMONSTRATIONS);
            let sentence =
                format!("'{}' is not a demonstration; use one of {}{hint}", name.as_ref(), DEMONSTRATIONS.join(", "));
            return Err(Refusal::new(sentence, Some(name.span())));
        }
        let least = form.least.as_ref().map(|size| setting(Key::Total, size)).transpose()?;
        let least = least.and_then(|setting| setting.value.number());
        if form.short.chars().count() > MAX_SHORT {
            return Err(refuse(format!("'short' has more than {MAX_SHORT} characters")));
        }
        let all = |table: &SuiteTable<Scalar>| -> Result<Vec<Value>, Refusal> {
            Ok(settings(table)?.into_iter().map(|setting| setting.value).collect())
        };
        if !form.to_each.is_empty() && (form.to.is_some() || form.to_each.len() != form.of.len()) {
            return Err(refuse("'to-each' needs one table for each entry of 'of', and replaces 'to'".to_owned()));
        }
        Ok(ClaimDesign {
            of: form.of.iter().map(all).collect::<Result<_, Refusal>>()?,
            to: form.to.as_ref().map(all).transpose()?,
            to_each: form.to_each.iter().map(all).collect::<Result<_, Refusal>>()?,
            claim: Claim {
                id: form.id.into_inner().0,
                place: form.place,
                says: form.says,
                short: form.short,
                published: form.published,
                open: form.open,
                shown_by: form.shown_by.map(|name| name.as_ref().clone()),
                least,
                least_blocks: form.least_blocks,
                times: form.times,
                experiments: form.experiments,
                figure: form.figure,
                which: form.which,
                low,
                high,
                ..Claim::default()
            },
            at,
        })
    }
}

fn claim<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    line(deserializer, "claim", MAX_CLAIM_CHARS)
}

#[cfg(test)]
mod line_by_line;
