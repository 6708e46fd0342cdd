//! Runs of experiments: small ones, interrupted ones, and what is left of them.

use std::cell::Cell;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use monolayer::{Error, Result};
use monolayer_lab::experiment::run::run;
use monolayer_lab::experiment::training::Training;
use monolayer_lab::experiment::{At, Experiment, Found, Points, Settings, all, named, point, tasks};
use monolayer_lab::plot::{Axis, Figure, Mark};
use monolayer_train::Options;
use monolayer_train::checkpoint::Progress;
use monolayer_train::run::{Event, Job, train};
use monolayer_train::training_data::Source;
use serde_json::{Map, Value, json};

/// Parameters small enough for a test, that every experiment still says something with.
fn tiny(name: &str) -> Map<String, Value> {
    let changes = match name {
        "separation" => json!({ "epsilon": [0.1, 0.25], "vocabulary": [8, 12], "length": [2, 4], "dimension": [2, 16],
                                "sequences": 20, "candidates": 16 }),
        "figure1" => json!({ "layers": [1, 2], "epochs": [12, 6], "eval_every": 3, "dim": 16, "hidden": 32 }),
        "hardmax" => json!({ "inverse_temperature": [0.01, 0.5, 64] }),
        "precision" => json!({ "sequences": [4, 32] }),
        "capacity" => json!({ "sequences": [8, 32], "length": [2, 6] }),
        "duplicates" => json!({ "vocabulary": [2, 16], "sequences": 40 }),
        "similarity" => json!({ "differences": [1, 8], "families": 2, "variants": 8 }),
        "depth" => json!({ "layers": [1, 3], "epochs": 3, "accuracy": 0.25, "sequences": 10, "hidden": 64, "dim": 16 }),
        "rank" => json!({ "rank": [1, 4], "epochs": 3, "sequences": 20, "hidden": 64, "dim": 16, "function_dim": 4,
                          "function_hidden": 32, "function_epochs": 2, "samples": 64 }),
        "fixed-projection" => json!({ "epochs": 3, "sequences": 20, "hidden": 32, "dim": 16, "candidates": 16 }),
        "approximation" => {
            json!({ "function": ["zoo:wave"], "grid": [2, 3], "epochs": 2, "samples": 64, "points": 2048 })
        }
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
            assert!(room.path().join("figures").join(format!("{}.svg", figure.name)).is_file());
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
    let compiled = |name: &str| tried(name, &room.path().join(name)).0.with("learner", "compiled");
    let capacity = compiled("capacity");
    assert!(capacity.all("memorized").iter().all(|&share| share == 1.0), "{capacity:?}");
    let duplicates = compiled("duplicates");
    assert!(duplicates.all("missed").iter().all(|&missed| missed == 0.0), "{duplicates:?}");
    let without = duplicates.with("positions", "without positions");
    assert!(without.all("possible")[0] < 0.9, "two words repeat: {without:?}");
    let similarity = compiled("similarity");
    assert!(similarity.all("memorized").iter().all(|&share| share == 1.0), "{similarity:?}");
}

#[test]
fn trained_models_are_as_large_as_compiled_ones_and_learn() {
    let room = tempfile::tempdir().unwrap();
    let (points, ..) = tried("capacity", room.path());
    let large = points.where_number("sequences", 32.0).where_number("length", 6.0);
    let of = |points: &Points, learner: &str, name: &str| points.with("learner", learner).all(name)[0];
    let small = points.where_number("sequences", 8.0).where_number("length", 2.0);
    for learner in ["trained, rank 1", "trained, full rank"] {
        let ratio = of(&large, learner, "parameters") / of(&large, "compiled", "parameters");
        assert!((0.98..1.02).contains(&ratio), "{learner}: {ratio}");
        // A guess is right for a quarter.
        assert!(of(&small, learner, "memorized") > 0.9, "{learner}: {small:?}");
    }
}

#[test]
fn deeper_models_are_no_larger() {
    let room = tempfile::tempdir().unwrap();
    let (points, ..) = tried("depth", room.path());
    let sizes = points.all("parameters");
    assert!(sizes.iter().all(|size| (size / sizes[0] - 1.0).abs() < 0.03), "{sizes:?}");
    assert!(points.all("hidden")[1] < points.all("hidden")[0] / 2.0);
    // One evaluation per epoch.
    assert!(points.0.iter().all(|(_, found)| found.0["curve"].as_array().unwrap().len() == 3));
}

#[test]
fn more_projections_hold_contexts_farther_apart() {
    let room = tempfile::tempdir().unwrap();
    let (points, ..) = tried("rank", room.path());
    let gaps = points.with("part", "gap").all("gap");
    assert!(gaps.len() == 2 && gaps[1] > gaps[0], "{gaps:?}");
    let sizes = points.with("part", "labels").all("parameters");
    assert!((sizes[1] / sizes[0] - 1.0).abs() < 0.03, "{sizes:?}");
}

#[test]
fn fixed_attention_is_not_trained() {
    let room = tempfile::tempdir().unwrap();
    let (points, ..) = tried("fixed-projection", room.path());
    let of = |attention: &str, name: &str| points.with("attention", attention).all(name);
    // W_K, W_Q and W_O have 16 numbers each.
    assert_eq!(of("free", "parameters")[0] - of("fixed, tight scale", "parameters")[0], 48.0);
    assert!(of("fixed, the theorem's scale", "kappa")[0] > 1e6 * of("fixed, tight scale", "kappa")[0]);
    assert!(of("no attention", "kappa").is_empty() && of("free", "kappa").is_empty());
}

#[test]
fn compiled_errors_keep_their_bounds_and_fall() {
    let room = tempfile::tempdir().unwrap();
    let (points, ..) = tried("approximation", room.path());
    let compiled = points.with("model", "compiled");
    let (errors, bounds) = (compiled.all("error"), compiled.all("bound"));
    assert!(errors.iter().zip(&bounds).all(|(error, bound)| *error <= bound * 1.02), "{errors:?} {bounds:?}");
    assert!(errors[1] < errors[0]);
    for model in points.names("model") {
        let own = points.with("model", &model);
        let ratio = own.all("parameters")[1] / compiled.all("parameters")[1];
        assert!((0.9..1.1).contains(&ratio), "{model}: {ratio}");
    }
    // The quantizer's error has no floor.
    let floor = points.with("model", "without quantizer").all("floor")[0];
    assert!(floor > 0.1, "{floor}");
}

#[test]
fn an_interrupted_training_goes_on_from_its_last_epoch() {
    let data = tasks::distinct(20, 5, 30, 3, 1);
    let options = Options { dim: Some(8), hidden: 16, epochs: 5, eval_every: 1, batch: 4, ..Options::default() };
    let room = tempfile::tempdir().unwrap();
    let (whole, parts) = (room.path().join("whole"), room.path().join("parts"));
    let training = Training::of_all(Source::Data(&data), &options, || false);
    let expected = training.run(&whole).unwrap();
    let job = Job { source: Source::Data(&data), dev: None, options: &options, out: &parts, fixed: &[] };
    // The program ends in the middle of the third epoch, without a word.
    let mut steps = 0;
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        train(&job, false, &mut |event| {
            steps += u32::from(matches!(event, Event::Step(_)));
            assert!(steps < 12, "the power goes");
            ControlFlow::Continue(())
        })
    }));
    assert!(ended.is_err());
    let kept = Progress::read(&parts).unwrap();
    assert_eq!(kept.epoch, 2);
    let resumed = training.run(&parts).unwrap();
    assert_eq!(resumed.curve(), expected.curve());
    // The first epochs are those from before, times included.
    assert_eq!(resumed.history[..2], kept.history[..]);
}

#[test]
fn training_ends_when_all_is_learned() {
    let data = tasks::distinct(4, 2, 30, 2, 1);
    let options = Options { dim: Some(16), hidden: 64, epochs: 500, eval_every: 1, rate: 0.01, ..Options::default() };
    let room = tempfile::tempdir().unwrap();
    let training = Training::of_all(Source::Data(&data), &options, || false);
    let trained = training.run(room.path()).unwrap();
    assert_eq!(trained.best(), 1.0);
    let last = trained.history.last().unwrap().epoch;
    assert!(last < 100 && trained.epochs_to(1.0) == Some(last), "{last}");
    // Nothing is left to do.
    assert_eq!(training.run(room.path()).unwrap().best(), 1.0);
}

#[test]
fn training_that_was_interrupted_goes_on() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static STEPS: AtomicUsize = AtomicUsize::new(0);
    let room = tempfile::tempdir().unwrap();
    let (whole, pieces) = (room.path().join("whole"), room.path().join("pieces"));
    let (points, ..) = tried("figure1", &whole);
    assert!(points.all("compiled")[0] > 0.95 && points.values("layers") == [1.0, 2.0]);
    let experiment = named("figure1").unwrap();
    let mut settings = Settings::new(experiment.as_ref(), true, vec![1], tiny("figure1")).unwrap();
    settings.stop = || STEPS.fetch_add(1, Relaxed) % 20 == 19;
    let interrupted =
        (0..100).take_while(|_| run(experiment.as_ref(), &settings, &pieces, &|_, _| {}).is_err()).count();
    assert!((3..100).contains(&interrupted), "{interrupted}");
    let lines = |directory: &Path| fs::read_to_string(directory.join("points.jsonl")).unwrap();
    assert_eq!(lines(&pieces), lines(&whole));
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
            return Err(Error::Interrupted { help: "go on".to_owned() });
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
