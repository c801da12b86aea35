//! What there is to choose from, and why some of it can't be used here.

use super::{Cell, Column, Fit, Grid, Group, Row, Sheet};

/// Something that can be chosen.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Its name on the command line.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Why it can't be used here, if it can't.
    pub missing: Option<String>,
}

/// Choices below headings, such as `Links (--link)`, the first word of which is what programs call their kind.
pub fn choices(sections: &[(String, Vec<Choice>)]) -> Sheet {
    let columns = vec![
        Column::data("kind"),
        Column::words("name", "name"),
        Column::words("about", "about").fit(Fit::Wrapped),
        Column::data("missing"),
    ];
    let row = |kind: &str, choice: &Choice| {
        let shown = match &choice.missing {
            None => choice.about.clone(),
            Some(reason) => format!("{} (not here: {reason})", choice.about),
        };
        let cells = vec![
            Cell::data(Some(kind)),
            Cell::text(&choice.name),
            Cell::of(shown, choice.about.as_str()),
            Cell::data(choice.missing.as_deref()),
        ];
        Row { cells, instead: None }
    };
    let group = |(heading, choices): &(String, Vec<Choice>)| {
        let kind = heading.split(" (").next().unwrap_or(heading);
        Group { caption: heading.clone(), rows: choices.iter().map(|choice| row(kind, choice)).collect() }
    };
    let groups = sections.iter().filter(|(_, choices)| !choices.is_empty()).map(group).collect();
    Sheet::of(Grid { labels: 2, columns, groups }, [])
}

/// A language with its programs, or why it can't take part.
#[derive(Debug, Clone)]
pub struct LanguageChoice {
    /// The name of its folder.
    pub language: String,
    /// Its own name.
    pub name: String,
    /// Its tools with their versions.
    pub tools: String,
    /// What its idiomatic and its tuned program do.
    pub programs: Result<[String; 2], String>,
}

/// The languages that can take part, and those that can't.
pub fn languages(all: &[LanguageChoice]) -> Sheet {
    let mut columns = vec![Column::words("language", "language")];
    columns.extend(["name", "tools", "idiomatic", "tuned"].map(|name| Column::words(name, name).fit(Fit::Wrapped)));
    columns.push(Column::data("missing"));
    let row = |own: &LanguageChoice| {
        let about =
            |index: usize| own.programs.as_ref().map_or_else(|_| Cell::default(), |own| Cell::text(&own[index]));
        let missing = own.programs.as_ref().err();
        let cells = vec![
            Cell::text(&own.language),
            Cell::text(&own.name),
            Cell::text(&own.tools),
            about(0),
            about(1),
            Cell::data(missing.map(String::as_str)),
        ];
        let reason = |reason: &String| (super::Style::Aside, super::neutral(&format!("{}: {reason}", own.name)));
        Row { cells, instead: missing.map(reason) }
    };
    let group = |caption: &str, here: bool| {
        let rows: Vec<Row> = all.iter().filter(|own| own.programs.is_ok() == here).map(row).collect();
        (!rows.is_empty()).then(|| Group { caption: caption.to_owned(), rows })
    };
    let groups = [group("Languages (pipemark languages run --only LANGUAGE)", true), group("Not here", false)];
    Sheet::of(Grid { labels: 1, columns, groups: groups.into_iter().flatten().collect() }, [])
}
