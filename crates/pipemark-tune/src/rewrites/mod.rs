//! Changes of a pipeline that keep its output, by what is known about the programs: rows of the table of remedies, and
//! rules for neighbouring stages. Each is tried, and its output compared. Pure.

mod batches;
mod programs;
mod site;
mod sorting;
mod table;

use batches::batch_xargs;
use programs::{count_in_grep, file_instead_of_cat, fixed_strings, quit_early};
use sorting::{count_without_sort, filter_before_sort, unique_in_sort, unique_without_sort};
use table::remedies_of_table;

use crate::typed::TypedPipeline;

use self::site::Site;
pub use self::site::{Locale, Rewrite, RewriteSetting};

/// All changes of a pipeline that are possible, those with the largest expected gain first.
pub fn rewrites(pipeline: &TypedPipeline, setting: &RewriteSetting<'_>) -> Vec<Rewrite> {
    let mut found = Vec::new();
    for rule in RULES {
        for at in 0..pipeline.stages.len() {
            let site = Site { pipeline, at, setting };
            found.extend(rule(&site));
        }
    }
    found.retain(|rewrite: &Rewrite| rewrite.needs.iter().all(|program| (setting.is_installed)(program)));
    found
}

type RewriteRule = fn(&Site<'_>) -> Vec<Rewrite>;

/// The rules, those with the largest expected gain first.
const RULES: [RewriteRule; 10] = [
    count_without_sort,
    unique_without_sort,
    filter_before_sort,
    batch_xargs,
    remedies_of_table,
    quit_early,
    unique_in_sort,
    count_in_grep,
    file_instead_of_cat,
    fixed_strings,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, locale: Locale) -> Vec<(String, String)> {
        let setting = RewriteSetting {
            cpus: 2,
            memory_limited: false,
            environment: Vec::new(),
            locale,
            is_installed: &|program| program != "lbzip2",
            awk_is_gawk: true,
        };
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
        let before =
            r#"x | awk '{ n[$0]++ } END { for (line in n) printf "%7d %s\n", n[line], line }' | sort -k2 -r | y"#;
        assert_eq!(of("x | sort -r | uniq -c | y", "count-before-sort").as_deref(), Some(before));
        assert_eq!(of("x | sort -u | y", "unique-before-sort").as_deref(), Some("x | awk '!seen[$0]++' | sort -u | y"));
        let by_language = changed("x | sort -u | sort | uniq -c", Locale::Language);
        assert!(by_language.iter().all(|(id, _)| !id.ends_with("-before-sort")), "{by_language:?}");
        assert_eq!(of("cat f | sort | uniq", "unique-in-sort").as_deref(), Some("cat f | sort -u"));
    }

    #[test]
    fn filters_move_before_sort_and_files_replace_cat() {
        assert_eq!(
            of("cat f | sort -k2 | grep 'a  b' | md5sum", "filter-before-sort").as_deref(),
            Some("cat f | grep 'a  b' | sort -k2 | md5sum")
        );
        assert_eq!(of("sort -u -k1 | grep x | y", "filter-before-sort"), None);
        assert_eq!(of("cat f | sort | grep x", "filter-before-sort"), None, "its exit code");
        assert_eq!(of("cat 'a b' | wc -c", "file-instead-of-cat").as_deref(), Some("wc -c <'a b'"));
        assert_eq!(of("cat a b | wc -c", "file-instead-of-cat"), None);
    }

    #[test]
    fn programs_and_options_are_replaced_where_they_stand() {
        assert_eq!(of("zcat a*.gz | wc", "zcat-igzip").as_deref(), Some("igzip -dc a*.gz | wc"));
        assert_eq!(of("bzcat a.bz2 | wc", "bzcat-lbzip2"), None, "not installed");
        assert_eq!(
            of("x | grep --line-buffered 'y  z' | wc", "grep-no-line-buffered").as_deref(),
            Some("x | grep 'y  z' | wc")
        );
        assert_eq!(of("x | xargs -n 1 md5sum", "xargs-batch").as_deref(), Some("x | xargs md5sum"));
        for text in ["x | xargs -n1 wc", "x | xargs -n1 file", "x | xargs -n1 cat -n"] {
            assert_eq!(of(text, "xargs-batch"), None, "{text}");
        }
        assert_eq!(of("cat f | sed -n 5p", "quit-early").as_deref(), Some("cat f | sed -n '5p;5q'"));
        for text in ["./job | sed -n 5p", "cat f | tee g | sed -n 5p", "curl u | cat | awk NR==5"] {
            assert_eq!(of(text, "quit-early"), None, "{text}");
        }
        assert_eq!(of("x | sort", "sort-memory").as_deref(), Some("x | sort -S 25%"));
        assert_eq!(of("x | xargs -n 1 wc | sort", "xargs-p").as_deref(), Some("x | xargs -P $(nproc) -n 1 wc | sort"));
        assert_eq!(of("x | awk '{ print $1 }' | y", "awk-mawk").as_deref(), Some("x | mawk '{ print $1 }' | y"));
        assert_eq!(of("x | awk '{ print length }' | y", "awk-mawk"), None);
        assert_eq!(of("x | grep a | wc -l", "count-in-grep").as_deref(), Some("x | grep -c a"));
        assert_eq!(of("x | dd bs=512 | y", "dd-bs").as_deref(), Some("x | dd bs=32k | y"));
        assert_eq!(of("x | dd bs=1 skip=1000 | y", "dd-bs"), None);
    }

    #[test]
    fn bytes_are_tried_only_where_they_give_the_same() {
        let of = |text: &str, locale| {
            let found = changed(text, locale).into_iter().filter(|(id, _)| id.ends_with("-lc-all-c"));
            found.map(|(_, text)| text).collect::<Vec<_>>()
        };
        assert_eq!(of("x | sort | uniq -c | sort -rn", Locale::Language)[0], "x | LC_ALL=C sort | uniq -c | sort -rn");
        assert!(of("x | sort", Locale::Language).is_empty() && of("x | sort", Locale::Bytes).is_empty());
        assert_eq!(of("x | sort", Locale::CodePoints).len(), 1);
        assert_eq!(of("x | awk -F, '{ print $1 }'", Locale::Language).len(), 1);
        assert!(of("x | grep -i 'a.b'", Locale::Language).is_empty() && of("grep -o ä", Locale::Language).is_empty());
        for text in ["x | grep -vi k", "x | grep -o --ignore-case k", "x | sed 's/[k]/x/I'"] {
            assert!(of(text, Locale::CodePoints).is_empty(), "{text}");
        }
        assert!(of("x | sed 's/[a-z]/x/'", Locale::Language).is_empty());
        assert_eq!(of("x | sed 's/[a-z]/x/'", Locale::CodePoints).len(), 1);
    }

    #[test]
    fn a_remedy_that_changes_bytes_is_compared_by_its_command() {
        let setting = RewriteSetting {
            cpus: 2,
            memory_limited: false,
            environment: Vec::new(),
            locale: Locale::Bytes,
            is_installed: &|_| true,
            awk_is_gawk: true,
        };
        let compared = |text: &str, id: &str| {
            let pipeline = TypedPipeline::parse(text, pipemark_shell::Dialect::Posix).unwrap();
            let found = rewrites(&pipeline, &setting).into_iter().find(|rewrite| rewrite.id == id)?;
            Some(found.compare)
        };
        assert_eq!(compared("x | gzip -9", "gzip-pigz"), Some(Some("gzip -dc".to_owned())));
        assert_eq!(compared("x | gzip -9 | y", "gzip-pigz"), Some(None));
        assert_eq!(compared("x | xargs -n 1 wc", "xargs-p"), Some(Some("LC_ALL=C sort".to_owned())));
        assert_eq!(compared("x | xargs -n 1 wc | sort", "xargs-p"), Some(None));
        assert_eq!(compared("x | csvsort", "csvkit-no-inference"), None);
    }

    #[test]
    fn the_locale_is_that_of_the_first_variable_set() {
        let of = |values: &[Option<&str>]| Locale::of(values.iter().map(|value| value.map(str::to_owned)));
        assert_eq!(of(&[None, Some(""), Some("en_US.UTF-8")]), Locale::Language);
        assert_eq!(of(&[Some("C"), Some("de_DE")]), Locale::Bytes);
        assert_eq!((of(&[Some("C.UTF-8")]), of(&[])), (Locale::CodePoints, Locale::Bytes));
    }
}
