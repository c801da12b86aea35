//! A document as one line of JSON, as specified by docs/schema.json.

use std::io;

use pipemark_model::Document;
use pipemark_show::json_line;

/// The whole document as JSON.
///
/// # Errors
/// `InvalidData` if a figure isn't a number. JSON can't represent such a figure, and the output must be readable again.
pub fn json(document: &Document) -> io::Result<String> {
    let text = serde_json::to_string(document)?;
    // serde_json writes NaN as null, which isn't a valid figure, so the text is parsed again.
    serde_json::from_str::<Document>(&text).map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidData, format!("a figure of the document is not a number ({error})"))
    })?;
    Ok(json_line(&text))
}

#[cfg(test)]
mod tests {
    use pipemark_model::is_control_or_invisible;

    use super::*;
    use crate::sheet::fixture;

    #[test]
    fn written_exports_parse_back() {
        for (name, document) in fixture::all() {
            let text = json(&document).unwrap();
            assert_eq!(serde_json::from_str::<Document>(&text).unwrap(), document, "{name}");
            assert_eq!(text.matches('\n').count(), 1, "{name}: one line");
            assert!(!text.trim_end().contains(is_control_or_invisible), "{name}: a terminal would act on it");
        }
    }

    #[test]
    fn a_figure_that_is_no_number_is_an_error() {
        for figure in [f64::NAN, f64::INFINITY] {
            let mut document = fixture::quick();
            let estimates = document.trials[0].estimate.as_mut().unwrap();
            let throughput = *estimates.throughput();
            estimates
                .set(pipemark_model::Figure::Throughput, pipemark_model::Estimate { median: figure, ..throughput });
            let error = json(&document).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
