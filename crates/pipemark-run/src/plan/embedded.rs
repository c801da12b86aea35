//! The suites embedded in the program.

/// Name and text of each suite, in the order of `pipemark list`.
pub const EMBEDDED: [(&str, &str); 9] = [
    ("quick", include_str!("../../suites/quick.toml")),
    ("block-size", include_str!("../../suites/block-size.toml")),
    ("languages", include_str!("../../suites/languages.toml")),
    ("ipc", include_str!("../../suites/ipc.toml")),
    ("ipc-libraries", include_str!("../../suites/ipc-libraries.toml")),
    ("pipe-speed", include_str!("../../suites/pipe-speed.toml")),
    ("large-pipe", include_str!("../../suites/large-pipe.toml")),
    ("lines", include_str!("../../suites/lines.toml")),
    ("spark", include_str!("../../suites/spark.toml")),
];

/// The text of the suite called `name`; `None` if there is none.
pub fn embedded(name: &str) -> Option<&'static str> {
    EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
