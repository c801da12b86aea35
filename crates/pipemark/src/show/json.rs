//! The whole document as one line of JSON; docs/schema.json says what it may hold.

use std::io;

use crate::model::Document;

use super::Format;
use super::text::hides;

/// One JSON document and a line end.
#[derive(Debug, Clone, Copy)]
pub struct Json;

impl Format for Json {
    fn name(&self) -> &'static str {
        "JSON"
    }

    /// # Errors
    /// `InvalidData` when a figure is not a number: JSON has no word for that, and what is written has to read back.
    fn write(&self, document: &Document, out: &mut dyn io::Write) -> io::Result<()> {
        let text = serde_json::to_string(document)?;
        // serde_json writes NaN as null, which no figure may be.
        serde_json::from_str::<Document>(&text).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("a figure of the document is not a number ({error})"))
        })?;
        line(&text, out)
    }
}

/// Writes JSON text and a line end.
pub(super) fn line(text: &str, out: &mut dyn io::Write) -> io::Result<()> {
    // JSON asks for escapes up to U+001F only, but terminals also act on U+0080 to U+009F. Outside of strings there are
    // no such characters.
    let mut start = 0;
    for (index, c) in text.char_indices().filter(|(_, c)| hides(*c)) {
        out.write_all(&text.as_bytes()[start..index])?;
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            write!(out, "\\u{unit:04x}")?;
        }
        start = index + c.len_utf8();
    }
    out.write_all(&text.as_bytes()[start..])?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    fn written(document: &Document) -> String {
        let mut out = Vec::new();
        Json.write(document, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_written_reads_back() {
        for (name, document) in fixture::all() {
            let text = written(&document);
            assert_eq!(serde_json::from_str::<Document>(&text).unwrap(), document, "{name}");
            assert_eq!(text.matches('\n').count(), 1, "{name}: one line");
            assert!(!text.trim_end().contains(hides), "{name}: a terminal would act on it");
        }
    }

    #[test]
    fn a_figure_that_is_no_number_is_an_error() {
        for figure in [f64::NAN, f64::INFINITY] {
            let mut document = fixture::quick();
            let estimates = document.trials[0].estimate.as_mut().unwrap();
            let throughput = *estimates.throughput();
            estimates.set(crate::model::Figure::Throughput, crate::model::Estimate { median: figure, ..throughput });
            let error = Json.write(&document, &mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
