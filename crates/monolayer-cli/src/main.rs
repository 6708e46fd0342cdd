//! `monolayer`: parses the command line, calls the library, prints.

mod commands;
mod interrupt;
mod output;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use commands::{Cli, Outcome};
use output::with_flags;

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
            // The library's errors say everything themselves; others say it along their chain of causes.
            let known = error.downcast_ref::<monolayer::Error>();
            let message = with_flags(&known.map_or_else(|| format!("{error:#}"), ToString::to_string));
            fail(cli.shared.json, &message, known.and_then(monolayer::Error::location).as_deref())
        }
    }
}

/// Prints what was found, and ends with the code that says it.
fn finish(cli: &Cli, outcome: &Outcome) -> ExitCode {
    let text = if cli.shared.json { format!("{}\n", outcome.json) } else { outcome.text.clone() };
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        // A reader that closes the pipe early has seen what it wanted.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => fail(false, &format!("stdout: {error}"), None),
        _ => ExitCode::from(outcome.code),
    }
}

/// Says why it could not run. Exit code 2.
fn fail(json: bool, message: &str, place: Option<&str>) -> ExitCode {
    let message = message.trim_start_matches("error: ").trim_end();
    if json {
        let object = serde_json::json!({ "error": message, "where": place });
        let _ = writeln!(std::io::stdout(), "{object}");
    } else {
        let _ = writeln!(std::io::stderr(), "error: {message}");
    }
    ExitCode::from(2)
}
