//! `pipemark host`: shows what matters about this machine.

use clap::Args;

use pipemark_console::{Destination, Ending, FormatOption, destination};
use pipemark_show::json_line;

use crate::cli::machine::host as machine_sheet;

/// What `host` takes.
#[derive(Debug, Clone, Args)]
pub struct HostOptions {
    /// Write it as JSON to FILE, or to standard output for '-'
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    json: Option<Destination>,
    #[command(flatten)]
    format: FormatOption,
}

/// Shows the machine, or writes it as JSON.
pub fn run(options: &HostOptions) -> Ending {
    let machine = pipemark_host::survey();
    let json = serde_json::to_string_pretty(&machine)?;
    match &options.json {
        None => options.format.print(&machine_sheet(&machine), Some(&json))?,
        Some(destination) => destination.write("JSON", Ok(json_line(&json)))?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pipemark_model::Host;

    #[test]
    fn json_reads_back_as_the_same_machine() {
        let host = pipemark_host::survey();
        let json = serde_json::to_string_pretty(&host).unwrap();
        assert_eq!(serde_json::from_str::<Host>(&json).unwrap(), host);
    }
}
