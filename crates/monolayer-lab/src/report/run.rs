//! What the page says of a run: an experiment (points.jsonl, figures.json, summary.md) or a training (metrics.jsonl, *.csv).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use maud::{Markup, html};
use monolayer::{Error, Result};
use serde_json::Value;

use super::{Section, figure, text};
use crate::plot::scale::number;
use crate::plot::{Axis, Figure, Point};

/// At most so many rows of a table are shown.
const ROWS: usize = 400;

/// Whether a directory holds a run.
pub fn is_run(directory: &Path) -> bool {
    directory.join("points.jsonl").is_file() || !tables(directory).is_empty()
}

/// The files with measurements of a training, in order.
fn tables(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension().is_some_and(|e| e == "csv") || path.file_name().is_some_and(|n| n == "metrics.jsonl")
        })
        .collect();
    found.sort();
    found
}

/// The section of a run.
pub fn section(directory: &Path) -> Result<Section> {
    let config: Value =
        read(&directory.join("config.json"))?.map_or(Ok(Value::Null), |text| parse(directory, "config.json", &text))?;
    let name = directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let title = config["experiment"].as_str().map_or_else(|| format!("The run {name}"), |e| format!("Experiment: {e}"));
    Ok(Section { title, body: body(directory, &config)? })
}

/// Summary, figures and measurements of a run.
pub fn body(directory: &Path, config: &Value) -> Result<Markup> {
    let summary = read(&directory.join("summary.md"))?.unwrap_or_default();
    // The title of the section says what the first heading says.
    let summary = summary.strip_prefix("# ").and_then(|s| s.split_once('\n')).map_or(&summary[..], |(_, rest)| rest);
    let mut figures: Vec<Figure> = match read(&directory.join("figures.json"))? {
        Some(text) => parse(directory, "figures.json", &text)?,
        None => Vec::new(),
    };
    let mut measured = Vec::new();
    if let Some(text) = read(&directory.join("points.jsonl"))? {
        measured.push(("points.jsonl".to_owned(), records(directory, "points.jsonl", &text)?));
    }
    for file in tables(directory) {
        let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let text = read(&file)?.unwrap_or_default();
        let rows = if name == "metrics.jsonl" { records(directory, &name, &text)? } else { columns(&text) };
        if figures.is_empty() {
            figures = curves(&rows);
        }
        measured.push((name, rows));
    }
    Ok(html! {
        (text::markup(summary))
        div.charts { @for f in &figures { (figure(f)) } }
        @if figures.is_empty() && measured.iter().any(|(_, rows)| rows.len() == 1) {
            p.remark { "Measured once, so there is no curve; train with a smaller --eval-every for one." }
        }
        @for (name, rows) in &measured { (listing(name, rows)) }
        @if !config.is_null() {
            details { summary { "config.json" } pre { (serde_json::to_string_pretty(config).unwrap_or_default()) } }
        }
    })
}

fn read(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path, error)),
    }
}

fn parse<T: serde::de::DeserializeOwned>(directory: &Path, name: &str, text: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|e| Error::model(directory.join(name), e.to_string(), "run it again, or leave it out"))
}

/// A measurement: names and values, in order.
type Record = Vec<(String, Value)>;

/// JSON lines, objects in objects spread out. A last line without its end is one that was being written.
fn records(directory: &Path, name: &str, text: &str) -> Result<Vec<Record>> {
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = complete.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(i, line)| {
            let value: Value = serde_json::from_str(line).map_err(|e| {
                Error::model(directory.join(name), format!("line {}: {e}", i + 1), "remove the line, or run it again")
            })?;
            let mut record = Vec::new();
            spread("", &value, &mut record);
            Ok(record)
        })
        .collect()
}

fn spread(prefix: &str, value: &Value, record: &mut Record) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = if prefix.is_empty() || prefix == "at" || prefix == "found" {
                    name.clone()
                } else {
                    format!("{prefix}.{name}")
                };
                spread(&name, value, record);
            }
        }
        Value::Array(_) => {}
        _ => record.push((prefix.to_owned(), value.clone())),
    }
}

/// Comma-separated values with names in the first line.
fn columns(text: &str) -> Vec<Record> {
    let mut lines = text.lines();
    let names: Vec<String> = lines.next().unwrap_or_default().split(',').map(|name| name.trim().to_owned()).collect();
    let cell = |text: &str| text.trim().parse::<f64>().map_or_else(|_| Value::from(text.trim()), Value::from);
    lines
        .filter(|line| !line.trim().is_empty())
        .map(|line| names.iter().cloned().zip(line.split(',').map(cell)).collect())
        .collect()
}

/// Measurements of a training as curves: what was learned against the epoch, or the step, or the first column. A curve has two
/// points at least.
fn curves(rows: &[Record]) -> Vec<Figure> {
    let mut columns: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    let Some(first) = rows.first() else { return Vec::new() };
    let along = ["epoch", "step"].into_iter().find(|name| first.iter().any(|(n, _)| n == name)).unwrap_or(&first[0].0);
    for row in rows {
        let Some(x) = row.iter().find(|(name, _)| name == along).and_then(|(_, v)| v.as_f64()) else { continue };
        for (name, y) in row.iter().filter(|(name, _)| name != along).filter_map(|(n, v)| Some((n, v.as_f64()?))) {
            columns.entry(name).or_default().push(Point::new(x, y));
        }
    }
    let unit = |name: &str| match name {
        name if name.contains("second") => "s",
        name if name.contains("accuracy") => "share of tokens",
        name if name.contains("loss") => "nats per token",
        "sequences_right" => "sequences",
        "firing" => "share of hidden units",
        _ => "as logged",
    };
    let title = |name: &str| match name {
        "train_accuracy" => "accuracy on the training tokens".to_owned(),
        "sequences_right" => "sequences with all labels right".to_owned(),
        "firing" => "hidden units that fire".to_owned(),
        name => name.replace('_', " "),
    };
    // Where time went, and what follows from the epoch, is in the table.
    let told = |name: &str| !name.starts_with("seconds.") && !name.ends_with("_per_second") && name != "steps";
    let all = columns.len();
    columns.retain(|name, points| points.len() > 1 && (told(name) || all == 1));
    let losses: Vec<&str> =
        ["loss", "train_loss", "dev.loss"].into_iter().filter(|n| columns.contains_key(n)).collect();
    let of_losses = losses.join(", ");
    let mut figures = Vec::new();
    let x = || Axis::linear(along, &format!("{along}s"));
    if losses.len() > 1 {
        let empty = Figure::new("loss", &of_losses, x(), Axis::linear("loss", "nats per token"));
        figures.push(losses.iter().fold(empty, |figure, name| {
            let points = columns.remove(name).unwrap_or_default();
            figure.line(*name, points)
        }));
    }
    figures.extend(
        columns.into_iter().map(|(name, points)| {
            Figure::new(name, title(name), x(), Axis::linear(name, unit(name))).line(name, points)
        }),
    );
    figures
}

fn listing(name: &str, rows: &[Record]) -> Markup {
    let mut head: Vec<String> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !head.contains(name) {
            head.push(name.clone());
        }
    }
    let shown = |value: &Value| match value {
        Value::Number(n) => number(n.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let cell =
        |row: &Record, column: &String| row.iter().find(|(n, _)| n == column).map_or(String::new(), |(_, v)| shown(v));
    let table: Vec<Vec<String>> =
        rows.iter().take(ROWS).map(|row| head.iter().map(|column| cell(row, column)).collect()).collect();
    html! {
        details {
            summary { (name) ": " (rows.len()) " measurements" @if rows.len() > ROWS { ", the first " (ROWS) } }
            (text::table(&head, &table))
        }
    }
}
