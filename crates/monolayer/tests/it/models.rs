//! Models as a whole: written and read again, and run on any number of threads.

use std::path::Path;

use monolayer::arithmetic::kernels::Real;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::data::{Labels, Orderings, Tokens, Vocabulary, Written};
use monolayer::model::{LabelHead, OutputHead, Words};
use monolayer::paper::attention::{AttentionKind, Mask};
use monolayer::paper::transformer::Transformer;
use monolayer::{AnyModel, Dataset, Model, Source};
use proptest::prelude::*;
use serde_json::json;

/// Words that would be paths, options or markup elsewhere: here they are just words.
const WORDS: [&str; 8] = ["../../etc/passwd", "/", "con\u{0}", "\"", "<b>", "", "日本", "--json"];

fn names(list: &[&str]) -> Vocabulary {
    let mut vocabulary = Vocabulary::default();
    for name in list {
        vocabulary.add(name);
    }
    vocabulary
}

fn entries<R: Real>(rows: usize, cols: usize) -> Matrix<R> {
    Matrix::from_fn(rows, cols, |i, j| R::from_f64((1.0 + i as f64) / (2.0 + j as f64) - 0.5))
}

/// A model around a Transformer.
fn model<R: Real>(transformer: &Transformer<f64>, words: bool, positions: bool, labels: bool) -> Model<R> {
    let d = transformer.d;
    Model {
        words: words.then(|| Words { vocabulary: names(&WORDS), embedding: entries(WORDS.len(), d), start: None }),
        positions: positions.then(|| entries(5, d)),
        transformer: crate::random::map(transformer, |&x| R::from_f64(x)),
        head: labels.then(|| LabelHead {
            labels: ["O", "../O", ""].map(str::to_owned).to_vec(),
            weight: entries(3, d),
            bias: vec![R::ONE; 3],
        }),
        outputs: (words && !labels).then(|| OutputHead { weight: entries(d + 1, d), bias: vec![R::ONE; d + 1] }),
        source: Source::from_json(json!({ "command": "test", "seed": 7 })),
    }
}

/// The names in a directory.
fn listing(directory: &Path) -> Vec<String> {
    let mut list: Vec<String> =
        std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    list.sort();
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn written_and_read_again_they_are_equal(case in crate::random::case(3), words: bool, positions: bool, labels: bool) {
        let place = tempfile::tempdir().unwrap();
        let (transformer, _) = case.draw();
        let single = model::<f32>(&transformer, words, positions, labels);
        // In a directory that has to be made first, with a name that asks for care.
        let path = place.path().join("new/a model: \u{e9}");
        single.save(&path).unwrap();
        prop_assert_eq!(AnyModel::open(&path).unwrap(), AnyModel::F32(single));
        let double = model::<f64>(&transformer, words, positions, labels);
        double.save(&path).unwrap();
        prop_assert_eq!(AnyModel::open(&path).unwrap(), AnyModel::F64(double));
        prop_assert_eq!(listing(&place.path().join("new")), ["a model: \u{e9}"], "something is left behind");
    }
}

fn small() -> Transformer<f64> {
    let layer = crate::random::Shape { attention: Some((AttentionKind::Softmax, Mask::None, 1, 1)), hidden: 4 };
    crate::random::Case { d: 3, pre: None, layers: vec![layer], lengths: vec![1], vocabulary: 1, seed: 1 }.draw().0
}

#[test]
fn writing_twice_gives_the_same_bytes_and_only_its_files() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("model");
    let files = ["config.json", "model.safetensors", "vocabulary.json"];
    let bytes = || files.map(|name| std::fs::read(path.join(name)).unwrap());
    model::<f32>(&small(), true, true, true).save(&path).unwrap();
    let first = bytes();
    // What proved something about the old weights says nothing about new ones.
    std::fs::write(path.join("certificate.json"), "{}").unwrap();
    model::<f32>(&small(), true, true, true).save(&path).unwrap();
    assert_eq!(bytes(), first);
    assert_eq!(listing(&path), files);
    // A model without words takes the place of one with.
    model::<f32>(&small(), false, true, true).save(&path).unwrap();
    assert_eq!(listing(&path), ["config.json", "model.safetensors"]);
    assert_eq!(listing(place.path()), ["model"]);
}

/// A model can be read by whoever may read other directories made here.
#[cfg(unix)]
#[test]
fn models_are_as_open_as_other_directories() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    let (path, other) = (place.path().join("model"), place.path().join("other"));
    model::<f32>(&small(), true, true, true).save(&path).unwrap();
    std::fs::create_dir(&other).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&other));
}

#[test]
fn only_models_and_empty_directories_are_replaced() {
    let place = tempfile::tempdir().unwrap();
    let model = model::<f64>(&small(), false, false, false);

    let photos = place.path().join("photos");
    std::fs::create_dir(&photos).unwrap();
    std::fs::write(photos.join("cat.jpg"), "meow").unwrap();
    let error = model.save(&photos).unwrap_err().to_string();
    assert!(error.contains("photos: it is there already and is not a model; choose another directory"), "{error}");
    assert_eq!(listing(&photos), ["cat.jpg"]);

    let file = place.path().join("file");
    std::fs::write(&file, "text").unwrap();
    let error = model.save(&file).unwrap_err().to_string();
    assert!(error.contains("file: it is there already and is not a model"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"text");

    let error = model.save(file.join("model")).unwrap_err().to_string();
    assert!(error.contains("file"), "{error}");

    let empty = place.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    model.save(&empty).unwrap();
    assert_eq!(AnyModel::open(&empty).unwrap(), AnyModel::F64(model));
    assert_eq!(listing(place.path()), ["empty", "file", "photos"]);
}

/// Vectors in sequences of the given lengths.
fn vectors(d: usize, lengths: &[usize]) -> Dataset {
    let mut offsets = vec![0];
    for n in lengths {
        offsets.push(offsets[offsets.len() - 1] + n);
    }
    let tokens = offsets[offsets.len() - 1];
    Dataset {
        name: "vectors".to_owned(),
        tokens: Tokens::Vectors {
            d,
            data: (0..tokens * d).map(|i| ((i * i + 3 * i) % 101) as f64 / 50.0 - 1.0).collect(),
        },
        labels: Labels::None,
        offsets,
        lines: Vec::new(),
        warnings: Vec::new(),
        written: Written::default(),
        orderings: Orderings::Given,
    }
}

#[test]
fn threads_change_nothing() {
    // One sequence long enough to be spread over threads by itself, and blocks of short ones.
    let lengths: Vec<usize> = [2500].into_iter().chain((0..200).map(|i| 1 + i % 37)).collect();
    let layer = |kind, mask| crate::random::Shape { attention: Some((kind, mask, 2, 2)), hidden: 24 };
    let layers = vec![layer(AttentionKind::Softmax, Mask::Causal), layer(AttentionKind::Hardmax, Mask::None)];
    let case = crate::random::Case { d: 4, pre: Some(8), layers, lengths: vec![1], vocabulary: 1, seed: 3 };
    let (transformer, _) = case.draw();
    let data = vectors(4, &lengths);
    let models = [
        AnyModel::F32(model(&transformer, false, false, false)),
        AnyModel::F64(model(&transformer, false, false, false)),
        AnyModel::F32(model(&transformer, false, false, true)),
    ];
    for model in models {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| model.predict(&data).unwrap())
        };
        let alone = on(1);
        // Equality of floats is equality of bits here: no output is 0 with a sign or NaN.
        assert_eq!(alone, on(2));
        assert_eq!(alone, on(5));
    }
}
