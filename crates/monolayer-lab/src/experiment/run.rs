//! The frame of every experiment: grid points one by one, kept as they come, then figures and a summary.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use monolayer::fs::replace_file;
use monolayer::{Error, Result};
use serde_json::{Value, json};

use super::point::{line, read};
use super::{At, Experiment, Found, Points, Settings};
use crate::plot::{Figure, sheet};

/// How a run went.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// Grid points in all.
    pub points: usize,
    /// Those that an earlier run had left.
    pub kept: usize,
    /// What was seen.
    pub summary: String,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// Runs an experiment in a directory, or takes up a run that stopped there. `on_progress` hears of points done and points in all.
pub fn run(
    experiment: &dyn Experiment,
    settings: &Settings,
    directory: &Path,
    on_progress: &dyn Fn(usize, usize),
) -> Result<RunOutcome> {
    let grid = experiment.grid(settings)?;
    fs::create_dir_all(directory).map_err(|e| Error::io(directory, e))?;
    claim(directory, &config(experiment, settings))?;
    let path = directory.join("points.jsonl");
    let known = recover(&path)?;
    let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(|e| Error::io(&path, e))?;
    let mut points = Points::default();
    let mut kept = 0;
    for (i, at) in grid.iter().enumerate() {
        let key = Value::Object(at.0.clone()).to_string();
        let found = if let Some(found) = known.get(&key) {
            kept += 1;
            found.clone()
        } else {
            settings.go_on()?;
            let found = measure(experiment, settings, at, directory, i)?;
            append(&mut file, &line(at, &found)).map_err(|e| Error::io(&path, e))?;
            found
        };
        points.0.push((at.clone(), found));
        on_progress(i + 1, grid.len());
    }
    let figures = experiment.figures(settings, &points);
    let summary = experiment.summary(settings, &points);
    publish(experiment, directory, &figures, &summary)?;
    Ok(RunOutcome { points: grid.len(), kept, summary, figures })
}

/// What was asked, for config.json; nothing in it depends on when or where.
fn config(experiment: &dyn Experiment, settings: &Settings) -> Value {
    json!({
        "experiment": experiment.name(),
        "question": experiment.question(),
        "quick": settings.quick,
        "seeds": settings.seeds,
        "parameters": settings.parameters,
        "learners": settings.learners.iter().map(|learner| learner.name()).collect::<Vec<_>>(),
        "data": settings.data.as_ref().map(|data| json!({ "hash": data.hash(), "tokens": data.tokens() })),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// Takes a directory for a run, which must be new or hold the same one.
fn claim(directory: &Path, config: &Value) -> Result<()> {
    let path = directory.join("config.json");
    match fs::read(&path) {
        Ok(bytes) if serde_json::from_slice::<Value>(&bytes).ok().as_ref() == Some(config) => Ok(()),
        Ok(_) => Err(Error::model(
            &path,
            "the directory holds another run",
            "give another `out`, or remove the directory to start over",
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let text = serde_json::to_string_pretty(config).unwrap_or_default() + "\n";
            replace_file(&path, text.as_bytes())
        }
        Err(error) => Err(Error::io(&path, error)),
    }
}

/// The points that an earlier run has left. A line that was being written when it stopped is cut off.
fn recover(path: &Path) -> Result<HashMap<String, Found>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(Error::io(path, error)),
    };
    let complete = text.rfind('\n').map_or("", |end| &text[..=end]);
    if complete.len() < text.len() {
        replace_file(path, complete.as_bytes())?;
    }
    let mut known = HashMap::new();
    for (i, line) in complete.lines().enumerate() {
        let (at, found) = read(line).ok_or_else(|| {
            Error::model(path, format!("line {} is no grid point", i + 1), "remove the line: it is then computed again")
        })?;
        known.insert(Value::Object(at.0).to_string(), found);
    }
    Ok(known)
}

/// One grid point, with a directory of its own for as long as it takes.
fn measure(experiment: &dyn Experiment, settings: &Settings, at: &At, directory: &Path, i: usize) -> Result<Found> {
    let scratch = directory.join("scratch").join(i.to_string());
    fs::create_dir_all(&scratch).map_err(|e| Error::io(&scratch, e))?;
    let found = experiment.measure(settings, at, &scratch)?;
    fs::remove_dir_all(&scratch).map_err(|e| Error::io(&scratch, e))?;
    Ok(found)
}

/// A whole line, on disk before the next point begins.
fn append(file: &mut File, line: &str) -> std::io::Result<()> {
    file.write_all(line.as_bytes())?;
    file.sync_data()
}

/// Figures as data and SVG, the sheet of all of them, and the summary.
fn publish(experiment: &dyn Experiment, directory: &Path, figures: &[Figure], summary: &str) -> Result<()> {
    const SIZE: (f64, f64) = (620.0, 400.0);
    let scratch = directory.join("scratch");
    if scratch.is_dir() {
        fs::remove_dir_all(&scratch).map_err(|e| Error::io(&scratch, e))?;
    }
    let folder = directory.join("figures");
    fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
    let alt = |figure: &Figure| format!("{}: {} against {}", figure.title, figure.y.text(), figure.x.text());
    for figure in figures {
        let scene = figure.scene(SIZE.0, SIZE.1);
        replace_file(folder.join(format!("{}.svg", figure.name)), scene.svg_file(&alt(figure)).as_bytes())?;
    }
    if figures.len() > 1 {
        let scene = sheet(experiment.question(), figures, 2, SIZE.0, SIZE.1);
        replace_file(folder.join("all.svg"), scene.svg_file(experiment.question()).as_bytes())?;
    }
    let data = serde_json::to_string(figures).unwrap_or_default() + "\n";
    replace_file(directory.join("figures.json"), data.as_bytes())?;
    let text = format!("# {}\n\n{}\n\n{}\n", experiment.name(), experiment.question(), summary.trim());
    replace_file(directory.join("summary.md"), text.as_bytes())
}
