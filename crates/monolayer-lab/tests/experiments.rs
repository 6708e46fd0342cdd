//! Runs of experiments: small ones, interrupted ones, and what is left of them.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use monolayer::{Error, Result};
use monolayer_lab::experiment::run::run;
use monolayer_lab::experiment::{At, Experiment, Found, Points, Settings, all, named, point};
use monolayer_lab::plot::{Axis, Figure, Mark};
use serde_json::{Map, Value, json};

/// Parameters small enough for a test, that every experiment still says something with.
fn tiny(name: &str) -> Map<String, Value> {
    let changes = match name {
        "separation" => json!({ "epsilon": [0.1, 0.25], "vocabulary": [8, 12], "length": [2, 4], "dimension": [2, 16],
                                "sequences": 20, "candidates": 16 }),
        "hardmax" => json!({ "inverse_temperature": [0.01, 0.5, 64] }),
        "precision" => json!({ "sequences": [4, 32] }),
        "capacity" => json!({ "sequences": [8, 32], "length": [2, 6] }),
        "duplicates" => json!({ "vocabulary": [2, 16], "sequences": 40 }),
        "similarity" => json!({ "differences": [1, 8], "families": 2, "variants": 8 }),
        _ => json!({}),
    };
    changes.as_object().unwrap().clone()
}

fn tried(name: &str, directory: &Path) -> (Points, Vec<Figure>, String) {
    let experiment = named(name).unwrap();
    let settings = Settings::new(experiment.as_ref(), true, vec![1], tiny(name)).unwrap();
    let outcome = run(experiment.as_ref(), &settings, directory, &|_, _| {}).unwrap();
    let lines = fs::read_to_string(directory.join("points.jsonl")).unwrap();
    let object = |value: &Value| value.as_object().unwrap().clone();
    let points = lines.lines().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        (At(object(&value["at"])), Found(object(&value["found"])))
    });
    (Points(points.collect()), outcome.figures, outcome.summary)
}

#[test]
fn every_experiment_leaves_figures_with_units_and_a_summary() {
    for experiment in all() {
        let room = tempfile::tempdir().unwrap();
        let (points, figures, summary) = tried(experiment.name(), room.path());
        assert!(!points.0.is_empty() && !figures.is_empty() && !summary.is_empty(), "{}", experiment.name());
        for figure in &figures {
            let named = |axis: &Axis| !axis.label.is_empty() && !axis.unit.is_empty();
            assert!(named(&figure.x) && named(&figure.y), "{}: {}", experiment.name(), figure.name);
            assert!(!figure.marks.is_empty(), "{}: {} is empty", experiment.name(), figure.name);
            for ending in ["svg", "png"] {
                assert!(room.path().join("figures").join(format!("{}.{ending}", figure.name)).is_file());
            }
        }
        assert!(!room.path().join("scratch").exists());
        let page = monolayer_lab::report::page(&[room.path()], None).unwrap();
        assert!(page.contains(&format!("Experiment: {}", experiment.name())) && page.contains("data-plot"));
    }
}

#[test]
fn hardmax_sees_nothing_and_softmax_fades() {
    let room = tempfile::tempdir().unwrap();
    let (points, ..) = tried("hardmax", room.path());
    let at = |beta: f64, name: &str| {
        points.where_number("query", 6.0).where_number("inverse_temperature", beta).all(name)[0]
    };
    // The logarithm is an upper bound, good to some 20 bits.
    assert!(at(0.5, "gap_f64") > 0.01 && (at(0.5, "gap_f64").log2() - at(0.5, "log2_gap")).abs() < 1e-6);
    assert_eq!((at(64.0, "gap_f64"), at(64.0, "gap_f32")), (0.0, 0.0));
    assert!(at(64.0, "log2_gap") < -500.0 && at(64.0, "log2_gap").is_finite());
}

#[test]
fn the_theorem_asks_for_more_bits_than_the_tight_map() {
    let room = tempfile::tempdir().unwrap();
    let (points, ..) = tried("separation", room.path());
    let (theorem, tight) = (points.all("bits_theorem"), points.all("bits_tight"));
    assert_eq!((theorem.len(), tight.len()), (points.0.len(), points.0.len()));
    assert!(theorem.iter().zip(&tight).all(|(theorem, tight)| theorem > &(1000.0 * tight)));
}

#[test]
fn compiled_models_reach_the_ceiling() {
    let room = tempfile::tempdir().unwrap();
    let (capacity, ..) = tried("capacity", &room.path().join("capacity"));
    assert!(capacity.all("memorized").iter().all(|&share| share == 1.0), "{capacity:?}");
    let (duplicates, ..) = tried("duplicates", &room.path().join("duplicates"));
    assert!(duplicates.all("missed").iter().all(|&missed| missed == 0.0), "{duplicates:?}");
    let without = duplicates.with("positions", "without positions");
    assert!(without.all("possible")[0] < 0.9, "two words repeat: {without:?}");
    let (similarity, ..) = tried("similarity", &room.path().join("similarity"));
    assert!(similarity.all("memorized").iter().all(|&share| share == 1.0), "{similarity:?}");
}

/// Counts its measurements, and stops after some.
struct Counting {
    measured: Cell<usize>,
    most: usize,
}

impl Experiment for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }
    fn question(&self) -> &'static str {
        "Does a run go on where it stopped?"
    }
    fn parameters(&self, _: bool) -> Value {
        json!({ "points": [1, 2, 3, 4, 5] })
    }
    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        Ok(settings.list("points")?.into_iter().map(|x| point::at(json!({ "x": x }))).collect())
    }
    fn measure(&self, _: &Settings, at: &At, scratch: &Path) -> Result<Found> {
        if self.measured.get() == self.most {
            return Err(Error::request("interrupted", "go on"));
        }
        assert!(scratch.is_dir());
        self.measured.set(self.measured.get() + 1);
        Ok(point::found(json!({ "y": at.number("x") * 2.0 })))
    }
    fn figures(&self, _: &Settings, points: &Points) -> Vec<Figure> {
        vec![Figure::new("f", "f", Axis::linear("x", "1"), Axis::linear("y", "1")).line("y", points.curve("x", "y"))]
    }
    fn summary(&self, _: &Settings, points: &Points) -> String {
        format!("{} points", points.0.len())
    }
}

fn count(directory: &Path, most: usize, changes: &Value) -> (usize, Result<String>) {
    let experiment = Counting { measured: Cell::new(0), most };
    let settings = Settings::new(&experiment, false, vec![1], changes.as_object().unwrap().clone()).unwrap();
    let outcome = run(&experiment, &settings, directory, &|_, _| {});
    (experiment.measured.get(), outcome.map(|outcome| outcome.summary))
}

#[test]
fn an_interrupted_run_goes_on_and_loses_one_point_at_most() {
    let room = tempfile::tempdir().unwrap();
    let (measured, outcome) = count(room.path(), 2, &json!({}));
    assert_eq!((measured, outcome.is_err()), (2, true));
    // The machine stops in the middle of a line.
    let path = room.path().join("points.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{whole}{{\"at\":{{\"x\":3.0}},\"fou")).unwrap();
    let (measured, outcome) = count(room.path(), 99, &json!({}));
    assert_eq!((measured, outcome.unwrap().as_str()), (3, "5 points"));
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 5);
    let first = fs::read(room.path().join("figures/f.svg")).unwrap();
    // Once more: nothing is measured, and everything is the same.
    let (measured, outcome) = count(room.path(), 0, &json!({}));
    assert_eq!((measured, outcome.is_ok()), (0, true));
    assert_eq!(fs::read(room.path().join("figures/f.svg")).unwrap(), first);
}

#[test]
fn another_run_does_not_get_the_directory() {
    let room = tempfile::tempdir().unwrap();
    count(room.path(), 99, &json!({})).1.unwrap();
    let error = count(room.path(), 99, &json!({ "points": [1, 2] })).1.unwrap_err().to_string();
    assert!(error.contains("config.json") && error.contains("another run"), "{error}");
}

#[test]
fn bad_parameters_are_named() {
    let experiment = named("capacity").unwrap();
    let fails = |changes: &Value| {
        let settings = Settings::new(experiment.as_ref(), true, vec![1], changes.as_object().unwrap().clone());
        settings.and_then(|settings| experiment.grid(&settings)).unwrap_err().to_string()
    };
    assert!(fails(&json!({ "colour": 1 })).contains("\"colour\""));
    assert!(fails(&json!({ "length": 5 })).contains("\"length\""));
    assert!(fails(&json!({ "length": ["a"] })).contains("\"length\""));
    assert!(named("nothing").err().unwrap().to_string().contains("separation"));
}

#[test]
fn figures_survive_the_way_through_their_file() {
    let room = tempfile::tempdir().unwrap();
    let (_, figures, _) = tried("capacity", room.path());
    let read: Vec<Figure> = serde_json::from_slice(&fs::read(room.path().join("figures.json")).unwrap()).unwrap();
    assert_eq!(read, figures);
    assert!(figures.iter().any(|f| matches!(f.marks[0], Mark::Heat(_))));
}
