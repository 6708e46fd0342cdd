//! `monolayer`: parses the command line, calls the library, prints.

mod commands;
mod output;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use commands::{Cli, Outcome};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && std::env::args().any(|a| a == "--json") => {
            return fail(true, &error.render().to_string(), None);
        }
        Err(error) => error.exit(),
    };
    if let Some(threads) = cli.shared.threads {
        // Only the first call counts, and this is it.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
    match commands::run(&cli) {
        Ok(outcome) => finish(&cli, &outcome),
        Err(error) => {
            let place = error.downcast_ref::<monolayer::Error>().and_then(monolayer::Error::place);
            fail(cli.shared.json, &format!("{error:#}"), place.as_deref())
        }
    }
}

/// Prints what was found. Exit code 0 if it holds, 1 if not.
fn finish(cli: &Cli, outcome: &Outcome) -> ExitCode {
    let text = if cli.shared.json { format!("{}\n", outcome.json) } else { outcome.text.clone() };
    // A reader that closes the pipe early has seen what it wanted.
    let _ = std::io::stdout().write_all(text.as_bytes());
    if outcome.holds { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Says why it could not run. Exit code 2.
fn fail(json: bool, message: &str, place: Option<&str>) -> ExitCode {
    if json {
        let object = serde_json::json!({ "error": message.trim_end(), "where": place });
        let _ = writeln!(std::io::stdout(), "{object}");
    } else {
        let _ = writeln!(std::io::stderr(), "error: {}", message.trim_end());
    }
    ExitCode::from(2)
}
