//! Changes of a pipeline that keep its output, by what is known about the programs. Each is tried, and its output
//! compared. Pure.

mod calls;
mod programs;
mod site;
mod sorting;

use calls::{batch_xargs, larger_blocks, omit_unbuffering, parallel_xargs};
use programs::{
    bytes_instead_of_characters, count_in_grep, decompress_faster, file_instead_of_cat, fixed_strings, mawk, quit_early,
};
use sorting::{count_without_sort, filter_before_sort, sort_memory, unique_in_sort, unique_without_sort};

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
