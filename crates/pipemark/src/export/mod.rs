//! Results for programs: documents through the tables of parameters and figures, other sheets through their grids.

mod csv;
mod destination;
mod json;

pub use csv::of_sheet as sheet_as_csv;
pub use destination::{Destination, OutputError};
pub use json::{line as json_line, of_sheet as sheet_as_json};
