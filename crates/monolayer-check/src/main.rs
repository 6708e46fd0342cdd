//! `monolayer-check DIR [DATA]`: the checker on its own.

use std::path::Path;
use std::process::ExitCode;

use monolayer_check::options::set_limit;
use monolayer_check::{Format, Options, Precision, verify};

const USAGE: &str = "usage: monolayer-check DIR [DATA] [--precision f32|f64|real] [--format conll|jsonl|safetensors|words|characters] \
[--against DIR] [--tolerance X] [--claims KIND,...] [--bits N] [--threads N] [--limit NAME=N] [--witness FILE] [--strict] [--first] \
[--ignore-certificate] [--json]";

fn main() -> ExitCode {
    let mut options = Options::default();
    let (mut places, mut json) = (Vec::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_default();
        let known = match argument.as_str() {
            "--precision" => Precision::of(&value()).map(|p| options.precision = Some(p)).is_some(),
            "--format" => format(&value()).map(|f| options.format = Some(f)).is_some(),
            "--tolerance" => value().parse().map(|x| options.tolerance = Some(x)).is_ok(),
            "--bits" => value().parse().map(|bits| options.bits = bits).is_ok(),
            "--threads" => value().parse().map(|threads| options.threads = threads).is_ok(),
            "--claims" => {
                options.claims = Some(value().split(',').map(str::to_owned).collect());
                true
            }
            "--against" => {
                options.against = Some(value().into());
                true
            }
            "--limit" => set_limit(&mut options.limits, &value()).map_err(|why| eprintln!("{why}")).is_ok(),
            "--witness" => {
                options.witness = Some(value().into());
                true
            }
            "--strict" => set(&mut options.strict),
            "--first" => set(&mut options.first),
            "--ignore-certificate" => set(&mut options.ignore_certificate),
            "--json" => set(&mut json),
            name if name.starts_with('-') && name != "-" => false,
            _ => {
                places.push(argument.clone());
                true
            }
        };
        if !known {
            eprintln!("{argument}: unknown, or its value is\n{USAGE}");
            return ExitCode::from(2);
        }
    }
    let (Some(dir), None) = (places.first(), places.get(2)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let report = verify(Path::new(dir), places.get(1).map(String::as_str), &options);
    if json {
        println!("{}", report.json());
    } else {
        print!("{}", report.text());
    }
    ExitCode::from(report.verdict.exit_code())
}

fn set(flag: &mut bool) -> bool {
    *flag = true;
    true
}

fn format(name: &str) -> Option<Format> {
    match name {
        "conll" => Some(Format::Conll),
        "jsonl" => Some(Format::JsonLines),
        "safetensors" => Some(Format::Arrays),
        "words" => Some(Format::Words),
        "characters" => Some(Format::Characters),
        _ => None,
    }
}
