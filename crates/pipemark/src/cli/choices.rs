//! Choices of parameters, and the reasons why some can't be used here.

use pipemark_model::neutral;
use pipemark_show::{Cell, Column, Fit, Grid, Sheet, Style, Table};

/// A choice.
#[derive(Debug, Clone)]
pub struct ListedChoice {
    /// The choice's name on the command line.
    pub name: String,
    /// The choice's description.
    pub about: String,
    /// Why the choice can't be used here; `None` if it can.
    pub missing: Option<String>,
}

/// A sheet of choices, grouped by headings such as `Links (--link)`. In formats other than text, the kind of a choice
/// is its heading up to the opening bracket.
pub fn choices(sections: &[(String, Vec<ListedChoice>)]) -> Sheet {
    let all = sections.iter().flat_map(|(heading, choices)| choices.iter().map(move |choice| (heading, choice)));
    let all: Vec<(&String, &ListedChoice)> = all.collect();
    let shown = |choice: &ListedChoice| match &choice.missing {
        None => choice.about.clone(),
        Some(reason) => format!("{} (not available here: {reason})", choice.about),
    };
    let about = Column::words("about", "about").fit(Fit::Wrapped);
    let table = Table::of(&all)
        .data("kind", |(heading, _)| heading.split(" (").next())
        .column(Column::words("name", "name"), |(_, choice)| Cell::text(&choice.name))
        .column(about, |(_, choice)| Cell::of(shown(choice), choice.about.as_str()))
        .data("missing", |(_, choice)| choice.missing.as_deref());
    Sheet::of(Grid { labels: 2, ..table.grouped(|(heading, _)| *heading, |heading| (*heading).clone()) }, [])
}

/// A language with its programs, or the reason why they can't be measured here.
#[derive(Debug, Clone)]
pub struct LanguageChoice {
    /// The name of its directory.
    pub language: String,
    /// The language's own name.
    pub name: String,
    /// The tools of the language with their versions.
    pub tools: String,
    /// The descriptions of the idiomatic and the tuned program, or the reason why they can't run.
    pub programs: Result<[String; 2], String>,
}

/// The languages that can be measured here, followed by the others. `checked` is whether the versions of the tools were
/// checked.
pub fn languages(all: &[LanguageChoice], checked: bool) -> Sheet {
    let (here, missing): (Vec<&LanguageChoice>, Vec<_>) = all.iter().partition(|language| language.programs.is_ok());
    let all = [here, missing].concat();
    let wrapped = |name| Column::words(name, name).fit(Fit::Wrapped);
    let about = |language: &LanguageChoice, index: usize| {
        language.programs.as_ref().map_or_else(|_| Cell::default(), |programs| Cell::text(&programs[index]))
    };
    let why = |language: &LanguageChoice, why: &String| (Style::Aside, neutral(&format!("{}: {why}", language.name)));
    let table = Table::of(&all)
        .column(Column::words("language", "language"), |language| Cell::text(&language.language))
        .column(wrapped("name"), |language| Cell::text(&language.name))
        .column(wrapped("tools"), |language| Cell::text(&language.tools))
        .column(wrapped("idiomatic"), |language| about(language, 0))
        .column(wrapped("tuned"), |language| about(language, 1))
        .data("missing", |language| language.programs.as_ref().err().map(String::as_str))
        .instead(|language| language.programs.as_ref().err().map(|reason| why(language, reason)));
    let caption =
        |here: &bool| if *here { "Languages (pipemark run languages --only LANGUAGE)" } else { "Not available here" };
    let mut sheet = Sheet::of(table.grouped(|language| language.programs.is_ok(), |here| caption(here).to_owned()), []);
    let note = "Versions were not checked; '--entrants DIR' runs the tools to check them.";
    sheet.text(Style::Aside, (!checked).then_some(note));
    sheet
}
