//! Keeps docs/schema.json, the JSON Schema of the document, as the types say.

use super::fixture::assert_file;
use crate::model::Document;

#[test]
fn the_schema_is_up_to_date() {
    let schema = schemars::schema_for!(Document);
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    assert_file("../../docs/schema.json", &text);
}
