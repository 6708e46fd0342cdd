//! What a run came to, for people and machines.

use std::path::Path;

use monolayer::data::LabelScheme;
use monolayer_train::ceilings::Ceilings;
use monolayer_train::metrics::Dev;
use monolayer_train::run::{End, Job, Report};
use monolayer_train::training_data::Source;
use serde_json::json;

use super::super::Outcome;
use super::shown;
use crate::output::{count, table};

/// Exit code 0 if all epochs are done, 1 if not.
pub fn outcome(job: &Job, source: &str, report: &Report) -> Outcome {
    let ceilings = match job.source {
        Source::Data(data) => Ceilings::of(data),
        Source::Function(_) => None,
    };
    let (progress, last) = (&report.progress, report.progress.history.last());
    let (end, error) = match &report.end {
        End::Done => ("done", None),
        End::Stopped => ("stopped", None),
        End::Diverged(diverged) => ("diverged", Some(diverged)),
    };
    let json = json!({
        "end": end,
        "diverged": error.map(|e| json!({ "step": e.step, "what": e.what, "tensor": e.tensor })),
        "epochs": progress.epoch,
        "steps": progress.steps,
        "loss": last.map(|m| m.train_loss),
        "running_loss": progress.last_loss,
        "train_accuracy": last.and_then(|m| m.train_accuracy),
        "sequences_right": last.and_then(|m| m.sequences_right),
        "free": free(job),
        "ceilings": ceilings,
        "dev": last.and_then(|m| m.dev.as_ref()),
        "dev_unknown_words": report.unknown[0],
        "dev_unknown_labels": report.unknown[1],
        "tokens": job.source.tokens(),
        "sequences": job.source.sequences(),
        "parameters": report.parameters,
        "tokens_per_second": progress.tokens_per_second,
        "seconds": progress.seconds.training + progress.seconds.evaluation,
        "seconds_by_part": progress.seconds,
        "options": progress.options,
        "model": report.model.then(|| shown(job.out)),
    });
    Outcome::decided(json, text(job, source, report, ceilings), report.end == End::Done)
}

/// Tokens for which any label will do.
fn free(job: &Job) -> usize {
    match job.source {
        Source::Data(data) => data.free(),
        Source::Function(_) => 0,
    }
}

fn text(job: &Job, source: &str, report: &Report, ceilings: Option<Ceilings>) -> String {
    let progress = &report.progress;
    let row = |name: &str, value: String, note: &str| vec![name.to_owned(), value, note.to_owned()];
    let mut rows = Vec::new();
    if let Some(last) = progress.history.last() {
        let positions = progress.options.positions;
        if let Some(accuracy) = last.train_accuracy {
            let free = free(job);
            let labeled = count(job.source.tokens() - free);
            let more = if free > 0 { format!(" ({} more are free)", count(free)) } else { String::new() };
            let note = format!("of {labeled} training tokens{more}, after epoch {}", last.epoch);
            rows.push(row("right", format!("{accuracy:.5}"), &note));
        }
        if let Some(right) = last.sequences_right {
            rows.push(row("sequences right", count(right), &format!("of {}", count(job.source.sequences()))));
        }
        if let Some(ceilings) = ceilings {
            rows.push(row(
                "  word majority",
                format!("{:.5}", ceilings.word_majority),
                "each word's commonest label alone",
            ));
            let with = if positions { "with" } else { "without" };
            let note = format!("no model {with} positions gets more right");
            rows.push(row("  ceiling", format!("{:.5}", ceilings.best(positions)), &note));
        }
        rows.push(row("loss", format!("{:.6}", last.train_loss), "mean over the training tokens"));
        rows.extend(last.dev.as_ref().into_iter().flat_map(|dev| dev_rows(dev, report.unknown)));
    }
    let options = &progress.options;
    let trained = format!("{} steps, {} parameters, seed {}", progress.steps, count(report.parameters), options.seed);
    rows.push(row("epochs", format!("{} of {}", progress.epoch, options.epochs), &trained));
    if let Some(rate) = progress.tokens_per_second {
        rows.push(row("tokens per second", count(rate as usize), "fastest epoch, training alone"));
    }
    let seconds = &progress.seconds;
    let parts = &seconds.parts;
    let all: f64 = parts.parts().iter().map(|(_, seconds)| seconds).sum();
    let share = |(name, part): (&str, f64)| format!("{} {:.0} %", name.replace('_', "-"), 100.0 * part / all.max(1e-9));
    let note = format!(
        "training {:.1} ({}), evaluation {:.1}",
        seconds.training,
        parts.parts().map(share).join(", "),
        seconds.evaluation,
    );
    rows.push(row("seconds", format!("{:.1}", seconds.training + seconds.evaluation), &note));
    table(&rows, &[2]) + &end_text(source, job.options.labels, job.out, report)
}

fn dev_rows(dev: &Dev, unknown: [usize; 2]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let [words, labels] = unknown.map(count);
    let note = format!("{words} tokens with unknown words, {labels} with unknown labels");
    let mut row = |name: &str, value: String, note: String| rows.push(vec![name.to_owned(), value, note]);
    if let Some(accuracy) = dev.accuracy {
        row("dev accuracy", format!("{accuracy:.5}"), note);
    }
    if let (Some(f1), Some(precision), Some(recall)) = (dev.f1, dev.precision, dev.recall) {
        let types: Vec<String> = dev.f1_by_type.iter().map(|(kind, f1)| format!("{kind} {f1:.3}")).collect();
        let note = format!("precision {precision:.4}, recall {recall:.4}; {}", types.join(", "));
        row("dev entity F1", format!("{f1:.4}"), note);
    }
    if let Some(loss) = dev.loss {
        row("dev loss", format!("{loss:.6}"), "mean squared error".to_owned());
    }
    rows
}

/// How it ended, and what to type next.
fn end_text(source: &str, scheme: LabelScheme, out: &Path, report: &Report) -> String {
    let out = shown(out);
    match &report.end {
        End::Diverged(diverged) => {
            let kept = report.progress.history.last().map_or(0, |last| last.epoch);
            format!("{diverged}\n{out} keeps the checkpoint of epoch {kept}; try a lower --rate, or --clip 1\n")
        }
        End::Stopped => format!("stopped; go on with: monolayer train {source} --resume {out}\n"),
        End::Done if report.model && scheme != LabelScheme::AsIs => {
            let name = serde_json::to_value(scheme).unwrap_or_default();
            let name = name.as_str().unwrap_or_default();
            format!(
                "next: monolayer data {source} --labels {name} --out {name}.conll, monolayer verify {out} {name}.conll\n"
            )
        }
        End::Done if report.model => {
            format!("next: monolayer verify {out} {source}, monolayer predict {out} {source}\n")
        }
        End::Done => format!("{out} holds metrics and checkpoint: layer norm has no place in a model directory\n"),
    }
}
