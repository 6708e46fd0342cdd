//! Runs as a user makes them: stopped, resumed, diverged, on words and on vectors.

use std::ops::ControlFlow;
use std::path::Path;

use monolayer::AnyModel;
use monolayer::data::zipf_corpus;
use monolayer::data::{Dataset, Format};
use monolayer_train::Options;
use monolayer_train::metrics::{Metrics, Seconds};
use monolayer_train::options::{Dtype, Kind, Rank};
use monolayer_train::run::{End, Event, Fixed, Job, Report, train};
use monolayer_train::schedule::Schedule;
use monolayer_train::training_data::{Function, Source};

fn small() -> Options {
    Options { dim: Some(8), hidden: 12, epochs: 4, eval_every: 2, rate: 0.01, ..Options::default() }
}

/// A run that is stopped once `stop` steps are done.
fn run(source: Source, dev: Option<&Dataset>, options: &Options, out: &Path, stop: Option<u64>) -> Report {
    let mut steps = 0;
    let listen = &mut |event: Event| {
        steps += u64::from(matches!(event, Event::Step(_)));
        if stop.is_some_and(|stop| steps >= stop) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let resume = out.join("checkpoint.safetensors").exists();
    train(&Job { source, dev, options, out, fixed: &[] }, resume, listen).unwrap()
}

/// The bytes of the model.
fn bytes(dir: &Path) -> Vec<Vec<u8>> {
    ["config.json", "model.safetensors", "vocabulary.json"].map(|name| std::fs::read(dir.join(name)).unwrap()).to_vec()
}

/// The lines of metrics.jsonl without times.
fn metrics(dir: &Path) -> Vec<Metrics> {
    let text = std::fs::read_to_string(dir.join("metrics.jsonl")).unwrap();
    let line = |line: &str| {
        let metrics: Metrics = serde_json::from_str(line).unwrap();
        Metrics { tokens_per_second: None, seconds: Seconds::default(), ..metrics }
    };
    text.lines().map(line).collect()
}

/// Stops a run three times, goes on each time, and compares with a run that was not stopped.
fn resumed_is_the_same(options: &Options) {
    let data = zipf_corpus(3000, 1);
    let dev = zipf_corpus(300, 2);
    let directory = tempfile::tempdir().unwrap();
    let (whole, parts) = (directory.path().join("whole"), directory.path().join("parts"));
    let report = run(Source::Data(&data), Some(&dev), options, &whole, None);
    assert_eq!((report.end, report.progress.epoch), (End::Done, 4));
    for stop in [Some(3), Some(0), Some(11)] {
        assert_eq!(run(Source::Data(&data), Some(&dev), options, &parts, stop).end, End::Stopped);
    }
    assert_eq!(run(Source::Data(&data), Some(&dev), options, &parts, None).end, End::Done);
    assert_eq!(metrics(&whole), metrics(&parts));
    assert_eq!(metrics(&whole).len(), 2);
    assert!(options.layer_norm || bytes(&whole) == bytes(&parts));
    let (a, b) = (state(&whole), state(&parts));
    assert!(a == b, "the checkpoints differ");
}

/// The numbers of a checkpoint.
fn state(dir: &Path) -> Vec<u8> {
    let bytes = std::fs::read(dir.join("checkpoint.safetensors")).unwrap();
    let (header, _) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    bytes[8 + header..].to_vec()
}

#[test]
fn resuming_gives_the_same_bytes() {
    resumed_is_the_same(&small());
}

#[test]
fn resuming_gives_the_same_bytes_with_a_schedule_and_word_dropout_in_f64() {
    resumed_is_the_same(&Options {
        schedule: Schedule::Cosine,
        warmup: 5,
        word_dropout: 0.3,
        dtype: Dtype::F64,
        optimizer: Kind::AdamW,
        weight_decay: 0.01,
        clip: Some(0.5),
        positions: true,
        rank: Rank::Full,
        tied: false,
        ..small()
    });
}

#[test]
fn resuming_gives_the_same_bytes_with_sgd_and_layer_norm() {
    resumed_is_the_same(&Options { optimizer: Kind::Sgd, layer_norm: true, layers: 2, ..small() });
}

#[test]
fn evaluations_and_threads_change_nothing() {
    let data = zipf_corpus(3000, 1);
    let directory = tempfile::tempdir().unwrap();
    let weights = |name: &str, options: &Options, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let out = directory.path().join(name);
        pool.install(|| run(Source::Data(&data), None, options, &out, None));
        bytes(&out)[1].clone()
    };
    let one = weights("one", &small(), 1);
    assert!(one == weights("two", &small(), 2));
    assert!(one == weights("seldom", &Options { eval_every: 0, ..small() }, 3));
    assert!(one != weights("other seed", &Options { seed: 1, ..small() }, 2));
}

#[test]
fn the_model_is_what_was_evaluated() {
    let data = zipf_corpus(3000, 1);
    let dev = zipf_corpus(500, 9);
    let directory = tempfile::tempdir().unwrap();
    let report =
        run(Source::Data(&data), Some(&dev), &Options { epochs: 80, eval_every: 0, ..small() }, directory.path(), None);
    let last = report.progress.history.last().unwrap();
    let model = AnyModel::open(directory.path()).unwrap();
    let AnyModel::F32(inner) = &model else { panic!("f32 is the default") };
    let names = inner.head.as_ref().map(|head| head.labels.clone());
    let accuracy = |data: &Dataset| model.predict(data).unwrap().accuracy(data, names.as_deref());
    assert_eq!(accuracy(&data), last.train_accuracy);
    // The dev set has words that the training set has not; the model has a row for them.
    assert!(report.unknown[0] > 0, "{:?}", report.unknown);
    assert_eq!(accuracy(&dev), last.dev.as_ref().unwrap().accuracy);
    assert!(last.train_accuracy.unwrap() > 0.9, "{last:?}");
}

#[test]
fn a_dense_embedding_is_nearly_the_lazy_one() {
    let data = zipf_corpus(3000, 1);
    let directory = tempfile::tempdir().unwrap();
    let loss = |name: &str, dense_embedding: bool| {
        let options = Options { dense_embedding, dtype: Dtype::F64, ..small() };
        let report = run(Source::Data(&data), None, &options, &directory.path().join(name), None);
        report.progress.history.last().unwrap().train_loss
    };
    let (lazy, dense) = (loss("lazy", false), loss("dense", true));
    assert!((lazy - dense).abs() <= 1e-6 * dense, "{lazy} {dense}");
}

#[test]
fn divergence_keeps_the_last_checkpoint() {
    let data = zipf_corpus(3000, 1);
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path();
    let good = run(Source::Data(&data), None, &Options { epochs: 2, ..small() }, out, None);
    assert_eq!(good.end, End::Done);
    let before = bytes(out);
    // A step of this size throws every number out of bounds.
    let options = Options { optimizer: Kind::Sgd, rate: 1e9, eval_every: 1, ..small() };
    let other = directory.path().join("sgd");
    let report = run(Source::Data(&data), None, &options, &other, None);
    let End::Diverged(diverged) = report.end else { panic!("{:?}", report.end) };
    assert!(diverged.step > 0 && !diverged.tensor.is_empty() && !diverged.what.is_empty(), "{diverged}");
    // What is there is the last good state, here the first.
    let AnyModel::F32(model) = AnyModel::open(&other).unwrap() else { panic!("f32 is the default") };
    assert!(matches!(model.source, monolayer::Source::Train { epochs: 0, .. }));
    assert!(model.words.unwrap().embedding.data.iter().all(|x| x.is_finite()));
    assert!(bytes(out) == before);
}

#[test]
fn a_run_that_can_go_on_is_not_overwritten() {
    let data = zipf_corpus(1000, 1);
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path();
    let options = small();
    assert_eq!(run(Source::Data(&data), None, &options, out, Some(2)).end, End::Stopped);
    let job = Job { source: Source::Data(&data), dev: None, options: &options, out, fixed: &[] };
    let message = train(&job, false, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(message.contains("not finished") && message.contains("`resume`"), "{message}");
    // Nor is it resumed with other data, or from a file that was changed.
    let other = zipf_corpus(1000, 2);
    let job = Job { source: Source::Data(&other), ..job };
    assert!(train(&job, true, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string().contains("other data"));
    let file = out.join("checkpoint.safetensors");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let job = Job { source: Source::Data(&data), ..job };
    let message = train(&job, true, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(message.contains("checkpoint.safetensors"), "{message}");
}

#[test]
fn layer_norm_leaves_no_model() {
    let data = zipf_corpus(1000, 1);
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("new");
    let report = run(Source::Data(&data), None, &Options { layer_norm: true, ..small() }, &out, None);
    assert!(!report.model && !out.join("config.json").exists() && out.join("metrics.jsonl").exists());
}

#[test]
fn vectors_are_regressed() {
    // Each token becomes its double: within reach of one ReLU block.
    let line = |i: usize| {
        let x = |k: usize| ((i * 7 + k * 3) % 10) as f64 / 10.0;
        let row = |scale: f64, k: usize| format!("[{},{}]", scale * x(k), scale * x(k + 1));
        format!("{{\"tokens\":[{},{}],\"labels\":[{},{}]}}\n", row(1.0, 0), row(1.0, 5), row(2.0, 0), row(2.0, 5))
    };
    let text: String = (0..40).map(line).collect();
    let data = Dataset::read("vectors", Format::JsonLines, text.as_bytes()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let options = Options { dim: None, epochs: 60, ..small() };
    let report = run(Source::Data(&data), Some(&data), &options, directory.path(), None);
    let (first, last) = (&report.progress.history[0], report.progress.history.last().unwrap());
    assert!(last.train_loss < 0.1 * first.train_loss, "{} to {}", first.train_loss, last.train_loss);
    assert_eq!(last.train_accuracy, None);
    let dev = last.dev.as_ref().unwrap();
    assert_eq!((dev.loss, dev.accuracy, dev.f1), (Some(last.train_loss), None, None));
    // The model has no head, and its outputs have that error.
    let AnyModel::F32(model) = AnyModel::open(directory.path()).unwrap() else { panic!("f32 is the default") };
    assert!(model.head.is_none() && model.words.is_none());
}

#[test]
fn a_function_is_learned_on_the_fly() {
    let square = |x: &[f64], y: &mut [f64]| y.iter_mut().zip(x).for_each(|(y, x)| *y = x * x);
    let function = Function { text: "x1^2".into(), dim: 1, length: 4, samples: 256, apply: &square };
    let directory = tempfile::tempdir().unwrap();
    let options = Options { dim: None, epochs: 30, eval_every: 1, ..small() };
    let report = run(Source::Function(&function), None, &options, directory.path(), None);
    let losses: Vec<f64> = report.progress.history.iter().map(|m| m.train_loss).collect();
    assert!(losses[29] < 0.2 * losses[0], "{losses:?}");
}

#[test]
fn a_stop_is_heard_between_epochs_of_one_step() {
    let data = zipf_corpus(300, 1);
    let directory = tempfile::tempdir().unwrap();
    let options = Options { batch: 1000, epochs: 50, ..small() };
    let report = run(Source::Data(&data), None, &options, directory.path(), Some(3));
    assert_eq!((report.end, report.progress.epoch), (End::Stopped, 3));
    assert_eq!(run(Source::Data(&data), None, &options, directory.path(), None).progress.epoch, 50);
}

#[test]
fn fixed_tensors_keep_their_values_through_a_stop() {
    let data = zipf_corpus(1000, 1);
    let directory = tempfile::tempdir().unwrap();
    let fixed = |name: &str, count: usize| Fixed {
        name: format!("layers.0.attention.{name}"),
        numbers: (0..count).map(|i| i as f64 / 8.0).collect(),
    };
    let options = small();
    let all = [fixed("w_k", 8), fixed("w_o", 8)];
    let job = Job { source: Source::Data(&data), dev: None, options: &options, out: directory.path(), fixed: &all };
    train(&job, false, &mut |_| ControlFlow::Break(())).unwrap();
    train(&job, true, &mut |_| ControlFlow::Continue(())).unwrap();
    let AnyModel::F32(model) = AnyModel::open(directory.path()).unwrap() else { panic!("f32 is the default") };
    let head = &model.transformer.layers[0].attention.as_ref().unwrap().heads[0];
    let wanted: Vec<f32> = (0..8_u8).map(|i| f32::from(i) / 8.0).collect();
    assert_eq!((&head.w_k.data, &head.w_o.data), (&wanted, &wanted));
    assert_ne!(head.w_q.data, wanted);
    let other = directory.path().join("other");
    for (bad, word) in [(fixed("w_x", 8), "w_x"), (fixed("w_k", 7), "7 numbers")] {
        let job = Job { out: &other, fixed: std::slice::from_ref(&bad), ..job };
        let message = train(&job, false, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    }
}
