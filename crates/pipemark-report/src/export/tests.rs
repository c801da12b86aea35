//! Compares the JSON Schemas under docs/ with the types: document, comparison, timed commands, and a watched and a tuned pipeline.

use schemars::Schema;

use pipemark_ab::result::AbResult;
use pipemark_model::Document;
use pipemark_stats::diff::Diff;
use pipemark_tune::result::ExperimentResult;
use pipemark_watch::PipelineReport;

use crate::sheet::fixture::assert_file;

fn assert_schema(file: &str, schema: &Schema) {
    let text = serde_json::to_string_pretty(schema).unwrap() + "\n";
    assert_file(&format!("../../docs/{file}"), &text);
}

#[test]
fn the_schemas_are_up_to_date() {
    assert_schema("schema.json", &schemars::schema_for!(Document));
    assert_schema("compare.schema.json", &schemars::schema_for!(Diff));
    assert_schema("ab.schema.json", &schemars::schema_for!(AbResult));
    assert_schema("tune.schema.json", &schemars::schema_for!(ExperimentResult));
    assert_schema("why.schema.json", &schemars::schema_for!(PipelineReport));
}
