//! `monolayer`: parses the command line, calls the library, prints. The program and the Python package run the same commands.

mod commands;
mod interrupt;
mod output;

use std::ffi::OsString;
use std::io::Write as _;

use clap::Parser as _;

pub use commands::mask::MaskArg;
use commands::{Cli, Outcome};
use output::with_flags;

/// What kept a command from running: a message, and where.
struct Failure {
    message: String,
    place: Option<String>,
}

impl Failure {
    fn new(message: &str, place: Option<String>) -> Self {
        Self { message: message.trim_start_matches("error: ").trim_end().to_owned(), place }
    }

    fn json(&self) -> String {
        serde_json::json!({ "error": self.message, "where": self.place }).to_string()
    }
}

/// The program, with arguments that begin with its name. Prints, and gives the exit code.
pub fn main(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && arguments.iter().any(|argument| argument == "--json") => {
            return fail(true, &Failure::new(&error.render().to_string(), None));
        }
        Err(error) => {
            // Help goes to stdout with code 0, an error to stderr with code 2.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    if let Some(threads) = cli.shared.threads {
        // Only the first call counts, and this is it.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    }
    match run(&cli) {
        Ok(outcome) => finish(&cli, &outcome),
        Err(failure) => fail(cli.shared.json, &failure),
    }
}

fn run(cli: &Cli) -> Result<Outcome, Failure> {
    commands::run(cli).map_err(|error| {
        // The library's errors say everything themselves; others say it along their chain of causes.
        let known = error.downcast_ref::<monolayer::Error>();
        let message = with_flags(&known.map_or_else(|| format!("{error:#}"), ToString::to_string));
        Failure::new(&message, known.and_then(monolayer::Error::location))
    })
}

/// Prints what was found; the code says it, too.
fn finish(cli: &Cli, outcome: &Outcome) -> u8 {
    let text = if cli.shared.json { format!("{}\n", outcome.json) } else { outcome.text.clone() };
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        // A reader that closes the pipe early has seen what it wanted.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            fail(false, &Failure::new(&format!("stdout: {error}"), None))
        }
        _ => outcome.code,
    }
}

/// Says why it could not run. Exit code 2.
fn fail(json: bool, failure: &Failure) -> u8 {
    if json {
        let _ = writeln!(std::io::stdout(), "{}", failure.json());
    } else {
        let _ = writeln!(std::io::stderr(), "error: {}", failure.message);
    }
    2
}
