//! The program `monolayer`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(monolayer_cli::main(std::env::args_os()))
}
