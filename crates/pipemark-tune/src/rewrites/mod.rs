//! Changes of a pipeline that keep its output, by what is known about the programs. Each is tried, and its output
//! compared. Pure.

mod calls;
mod programs;
mod sorting;

use calls::{batch_xargs, larger_blocks, omit_unbuffering, parallel_xargs};
use programs::{
    bytes_instead_of_characters, count_in_grep, decompress_faster, file_instead_of_cat, fixed_strings, mawk, quit_early,
};
use sorting::{count_without_sort, filter_before_sort, sort_memory, unique_in_sort, unique_without_sort};

use crate::typed::{TypedCommand, TypedPipeline, TypedStage, TypedWord};

/// What decides which changes are possible and useful here.
pub struct RewriteSetting<'a> {
    /// The number of CPUs that the pipeline may use.
    pub cpus: usize,
    /// The locale of the pipeline.
    pub locale: Locale,
    /// Whether a program is installed.
    pub is_installed: &'a dyn Fn(&str) -> bool,
    /// Whether the program awk is GNU awk.
    pub awk_is_gawk: bool,
}

/// How text is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locale {
    /// Bytes.
    Bytes,
    /// Characters of several bytes, sorted by their numbers: C.UTF-8.
    CodePoints,
    /// By the rules of a language.
    Language,
}

impl Locale {
    /// The locale that these variables select, the first that is set: LC_ALL, the category's, LANG.
    pub fn of(variables: impl IntoIterator<Item = Option<String>>) -> Locale {
        let name = variables.into_iter().flatten().find(|value| !value.is_empty()).unwrap_or_default();
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "" | "c" | "posix" => Locale::Bytes,
            _ if name.starts_with("c.") || name.starts_with("posix.") => Locale::CodePoints,
            _ => Locale::Language,
        }
    }
}

/// A change of some neighbouring stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// A name that never changes, even if the text does.
    pub id: String,
    /// The first and the last stage that it replaces, counted from 0.
    pub first: usize,
    pub last: usize,
    /// The commands that replace them.
    pub with: Vec<String>,
    /// What it does, as a clause.
    pub text: String,
    /// A program that must be installed.
    pub needs: Option<String>,
}

impl Rewrite {
    /// The changed pipeline.
    pub fn apply(&self, pipeline: &TypedPipeline) -> TypedPipeline {
        pipeline.replaced(self.first, self.last, &self.with)
    }

    /// Whether both change a stage.
    pub fn overlaps(&self, other: &Rewrite) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// All changes of a pipeline that are possible, those with the largest expected gain first.
pub fn rewrites(pipeline: &TypedPipeline, setting: &RewriteSetting<'_>) -> Vec<Rewrite> {
    let mut found = Vec::new();
    for rule in RULES {
        for at in 0..pipeline.stages.len() {
            let site = Site { pipeline, at, setting };
            found.extend(rule(&site));
        }
    }
    found.retain(|rewrite: &Rewrite| rewrite.needs.as_ref().is_none_or(|program| (setting.is_installed)(program)));
    found
}

type RewriteRule = fn(&Site<'_>) -> Vec<Rewrite>;

/// The rules, those with the largest expected gain first.
const RULES: [RewriteRule; 16] = [
    count_without_sort,
    unique_without_sort,
    filter_before_sort,
    batch_xargs,
    parallel_xargs,
    larger_blocks,
    omit_unbuffering,
    decompress_faster,
    quit_early,
    bytes_instead_of_characters,
    mawk,
    sort_memory,
    unique_in_sort,
    count_in_grep,
    file_instead_of_cat,
    fixed_strings,
];

/// A stage for which rules are tried.
struct Site<'a> {
    pipeline: &'a TypedPipeline,
    at: usize,
    setting: &'a RewriteSetting<'a>,
}

impl<'a> Site<'a> {
    /// The plain command `ahead` stages later.
    fn command(&self, ahead: usize) -> Option<&'a TypedCommand> {
        self.pipeline.stages.get(self.at + ahead)?.command.as_ref()
    }

    /// A plain command whose words are all known and whose output isn't redirected.
    fn literal(&self, ahead: usize) -> Option<&'a TypedCommand> {
        self.command(ahead).filter(|command| command.is_literal() && command.writes_to_pipeline())
    }

    fn following(&self, stages: usize) -> &'a [TypedStage] {
        &self.pipeline.stages[(self.at + stages).min(self.pipeline.stages.len())..]
    }

    fn rewrite(&self, id: &str, stages: usize, with: Vec<String>, text: impl Into<String>) -> Rewrite {
        Rewrite { id: id.to_owned(), first: self.at, last: self.at + stages - 1, with, text: text.into(), needs: None }
    }

    /// The stage's text with another beginning instead of its first word.
    fn with_program(&self, command: &TypedCommand, program: &str) -> String {
        let typed = self.pipeline.stages[self.at].text.trim();
        let first = &command.words[0].text;
        match typed.find(first.as_str()) {
            Some(at) => format!("{}{program}{}", &typed[..at], &typed[at + first.len()..]),
            None => typed.to_owned(),
        }
    }

    /// The stage's text without one of its words.
    fn without_word(&self, word: &TypedWord) -> String {
        let typed = self.pipeline.stages[self.at].text.trim();
        let at = typed.match_indices(&word.text).map(|(at, _)| at).find(|&at| {
            let before = typed[..at].chars().next_back().is_none_or(char::is_whitespace);
            let after = typed[at + word.text.len()..].chars().next().is_none_or(char::is_whitespace);
            before && after
        });
        match at {
            Some(at) => format!("{}{}", &typed[..at], typed[at + word.text.len()..].trim_start()).trim_end().to_owned(),
            None => typed.to_owned(),
        }
    }
}

fn one<T>(value: Option<T>) -> Vec<T> {
    value.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, locale: Locale) -> Vec<(String, String)> {
        let setting = RewriteSetting { cpus: 2, locale, is_installed: &|program| program == "pigz", awk_is_gawk: true };
        let pipeline = TypedPipeline::parse(text, pipemark_shell::Dialect::Posix).unwrap();
        rewrites(&pipeline, &setting)
            .iter()
            .map(|rewrite| (rewrite.id.clone(), rewrite.apply(&pipeline).text()))
            .collect()
    }

    fn of(text: &str, id: &str) -> Option<String> {
        changed(text, Locale::Bytes).into_iter().find(|(found, _)| found == id).map(|(_, text)| text)
    }

    #[test]
    fn counting_needs_no_sort_if_the_order_is_lost_later() {
        let awk =
            r#"cut -f1 | awk '{ n[$0]++ } END { for (line in n) printf "%7d %s\n", n[line], line }' | sort -rn | head"#;
        assert_eq!(of("cut -f1 | sort | uniq -c | sort -rn | head", "count-in-awk").as_deref(), Some(awk));
        for text in [
            "sort | uniq -c",
            "sort | uniq -c | head",
            "sort -k2 | uniq -c | sort",
            "sort f | uniq -c | sort",
            "sort | uniq -ci | sort",
        ] {
            assert_eq!(of(text, "count-in-awk"), None, "{text}");
        }
        assert_eq!(of("sort -u | wc -l", "unique-in-awk").as_deref(), Some("awk '!seen[$0]++' | wc -l"));
        assert_eq!(of("cat f | sort | uniq", "unique-in-sort").as_deref(), Some("cat f | sort -u"));
    }

    #[test]
    fn filters_move_before_sort_and_files_replace_cat() {
        assert_eq!(
            of("cat f | sort -k2 | grep 'a  b' | md5sum", "filter-before-sort").as_deref(),
            Some("cat f | grep 'a  b' | sort -k2 | md5sum")
        );
        assert_eq!(of("sort -u -k1 | grep x", "filter-before-sort"), None);
        assert_eq!(of("cat 'a b' | wc -c", "file-instead-of-cat").as_deref(), Some("wc -c <'a b'"));
        assert_eq!(of("cat a b | wc -c", "file-instead-of-cat"), None);
    }

    #[test]
    fn programs_and_options_are_replaced_where_they_stand() {
        assert_eq!(of("zcat a*.gz | wc", "decompress-pigz").as_deref(), Some("pigz -dc a*.gz | wc"));
        assert_eq!(of("zcat a.gz | wc", "decompress-igzip"), None, "not installed");
        assert_eq!(
            of("x | grep --line-buffered 'y  z' | wc", "omit-unbuffering").as_deref(),
            Some("x | grep 'y  z' | wc")
        );
        assert_eq!(of("x | xargs -n 1 md5sum", "xargs-batch").as_deref(), Some("x | xargs md5sum"));
        assert_eq!(of("x | xargs -n1 wc", "xargs-batch"), None);
        assert_eq!(of("x | sed -n 5p", "quit-early").as_deref(), Some("x | sed -n '5p;5q'"));
        assert_eq!(of("x | sort", "sort-memory").as_deref(), Some("x | sort -S 25%"));
        assert_eq!(of("x | grep a | wc -l", "count-in-grep").as_deref(), Some("x | grep -c a"));
        assert_eq!(of("x | dd bs=512 | y", "dd-blocks").as_deref(), Some("x | dd bs=64k | y"));
        assert_eq!(of("x | dd bs=1 skip=1000 | y", "dd-blocks"), None);
    }

    #[test]
    fn bytes_are_tried_only_where_they_give_the_same() {
        let of = |text: &str, locale| {
            changed(text, locale).into_iter().filter(|(id, _)| id == "bytes").map(|(_, text)| text).collect::<Vec<_>>()
        };
        assert_eq!(of("x | sort | uniq -c | sort -rn", Locale::Language)[0], "x | LC_ALL=C sort | uniq -c | sort -rn");
        assert!(of("x | sort", Locale::Language).is_empty() && of("x | sort", Locale::Bytes).is_empty());
        assert_eq!(of("x | sort", Locale::CodePoints).len(), 1);
        assert!(of("grep 'a.b'", Locale::Language).is_empty() && of("grep ä", Locale::Language).is_empty());
    }

    #[test]
    fn the_locale_is_that_of_the_first_variable_set() {
        let of = |values: &[Option<&str>]| Locale::of(values.iter().map(|value| value.map(str::to_owned)));
        assert_eq!(of(&[None, Some(""), Some("en_US.UTF-8")]), Locale::Language);
        assert_eq!(of(&[Some("C"), Some("de_DE")]), Locale::Bytes);
        assert_eq!((of(&[Some("C.UTF-8")]), of(&[])), (Locale::CodePoints, Locale::Bytes));
    }
}
