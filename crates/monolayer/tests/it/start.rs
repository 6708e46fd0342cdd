//! The start token: models with one do what the same numbers do without one on sequences that begin with it.

use monolayer::arithmetic::kernels::Real;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::data::context::{self, Contexts};
use monolayer::data::positions::Positions;
use monolayer::data::{Format, Vocabulary};
use monolayer::memorize::LabelCounts;
use monolayer::model::{LabelHead, Orderings, Storage, TokenFeed, Words, exact};
use monolayer::paper::attention::{Attention, AttentionKind, Mask};
use monolayer::paper::feed_forward::FeedForward;
use monolayer::paper::transformer::{Layer, Transformer};
use monolayer::{AnyModel, Dataset, Memorizer, Method, Model, Predictions, Source};
use proptest::prelude::*;
use serde_json::json;

use crate::random::{Case, Shape};

/// The start token is a word like others.
const WORDS: [&str; 4] = ["a", "<s>", "b", "c"];
const START: u32 = 1;
/// No sequence here is longer.
const LONGEST: usize = 6;

fn vocabulary() -> Vocabulary {
    let mut vocabulary = Vocabulary::default();
    WORDS.iter().for_each(|word| _ = vocabulary.add(word));
    vocabulary
}

fn entries<R: Real>(rows: usize, cols: usize) -> Matrix<R> {
    Matrix::from_fn(rows, cols, |i, j| R::from_f64((1.3 + i as f64) / (2.0 + j as f64) - 0.4 * j as f64))
}

/// A model of words around a Transformer, with a start token.
fn model<R: Real>(transformer: &Transformer<f64>, positions: bool, labels: bool) -> Model<R> {
    let d = transformer.d;
    let head =
        LabelHead { labels: ["X", "Y", "Z"].map(str::to_owned).to_vec(), weight: entries(3, d), bias: vec![R::ONE; 3] };
    Model {
        words: Some(Words { vocabulary: vocabulary(), embedding: entries(WORDS.len(), d), start: Some(START) }),
        positions: positions.then(|| entries(LONGEST + 1, d)),
        transformer: crate::random::map(transformer, |&x| R::from_f64(x)),
        head: labels.then_some(head),
        outputs: None,
        source: Source::from_json(json!({ "command": "test" })),
    }
}

/// The same numbers without a start token, with matrices that show what a mask shows where there is one.
fn without_start<R: Real>(model: &Model<R>) -> Model<R> {
    let mut plain = model.clone();
    plain.words.as_mut().unwrap().start = None;
    for attention in plain.transformer.layers.iter_mut().filter_map(|layer| layer.attention.as_mut()) {
        let size = LONGEST + 1;
        let seen = (0..size * size).map(|i| u8::from(attention.mask.visible_from_start(i / size, i % size)));
        attention.mask = Mask::matrix(size, seen.collect()).unwrap();
    }
    plain
}

/// Sequences of words, and the same behind the start token.
fn datasets(sequences: &[Vec<usize>]) -> [Dataset; 2] {
    let text = |first: &[&str]| {
        let words = |s: &Vec<usize>| first.iter().copied().chain(s.iter().map(|&w| WORDS[w])).collect::<Vec<_>>();
        sequences.iter().map(|s| words(s).join("\n") + "\n\n").collect::<String>()
    };
    [text(&[]), text(&["<s>"])].map(|text| Dataset::read("x", Format::Conll, text.as_bytes()).unwrap())
}

/// What a prediction says of all tokens but the first of each sequence.
fn behind(predictions: &Predictions, data: &Dataset) -> Predictions {
    let own: Vec<usize> = data.ranges().flat_map(|range| range.skip(1)).collect();
    match predictions {
        Predictions::Labels(labels) => Predictions::Labels(own.iter().map(|&t| labels[t]).collect()),
        Predictions::Outputs(rows) => {
            let data = own.iter().flat_map(|&t| rows.row(t)).copied().collect();
            Predictions::Outputs(Matrix::new(own.len(), rows.cols, data))
        }
    }
}

fn near(a: &Predictions, b: &Predictions) -> bool {
    match (a, b) {
        (Predictions::Outputs(a), Predictions::Outputs(b)) => {
            let size = b.data.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
            (a.rows, a.cols) == (b.rows, b.cols)
                && a.data.iter().zip(&b.data).all(|(a, b)| (a - b).abs() <= 1e-9 * size)
        }
        _ => a == b,
    }
}

fn masks() -> impl Strategy<Value = Mask> {
    let matrix = prop::collection::vec(0_u8..2, LONGEST * LONGEST).prop_map(|mut entries| {
        (0..LONGEST).for_each(|i| entries[i * LONGEST + i] = 1);
        Mask::matrix(LONGEST, entries).unwrap()
    });
    let size = 0..LONGEST + 1;
    prop_oneof![
        Just(Mask::None),
        Just(Mask::Causal),
        size.clone().prop_map(Mask::Prefix),
        (size.clone(), size).prop_map(|(before, after)| Mask::Band(before, after)),
        matrix,
    ]
}

fn sequences() -> impl Strategy<Value = Vec<Vec<usize>>> {
    prop::collection::vec(prop::collection::vec(0..WORDS.len(), 1..=LONGEST), 1..6)
}

fn transformer(mask: &Mask, layers: usize, kind: AttentionKind, seed: u64) -> Transformer<f64> {
    let layers = (0..layers).map(|i| Shape { attention: Some((kind, mask.clone(), 1 + i, 2)), hidden: 5 }).collect();
    Case { d: 3, pre: seed.is_multiple_of(2).then_some(4), layers, lengths: vec![1], vocabulary: 1, seed }.draw().0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_same_as_a_word_before_every_sequence(
        sequences in sequences(), mask in masks(), layers in 1..3_usize, positions: bool, labels: bool, seed in 0_u64..1000,
    ) {
        let model = model::<f64>(&transformer(&mask, layers, AttentionKind::Softmax, seed), positions, labels);
        let [own, whole] = datasets(&sequences);
        let plain = without_start(&model);
        let expected = behind(&plain.predict(&whole).unwrap(), &whole);
        let found = model.predict(&own).unwrap();
        prop_assert!(near(&found, &expected), "{:?} {:?}", found, expected);
        if layers == 1 {
            for i in 0..own.sequences() {
                let (a, b) = (model.trace(&own, i).unwrap(), plain.trace(&whole, i).unwrap());
                prop_assert_eq!(a.len() + 1, b.len());
                for (a, b) in a.iter().zip(&b[1..]) {
                    prop_assert!(a.scores.iter().zip(&b.scores).all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + b.abs())));
                }
            }
        }
    }

    #[test]
    fn hardmax_too(sequences in sequences(), mask in masks(), seed in 0_u64..1000) {
        let model = model::<f64>(&transformer(&mask, 1, AttentionKind::Hardmax, seed), true, true);
        let [own, whole] = datasets(&sequences);
        let expected = behind(&without_start(&model).predict(&whole).unwrap(), &whole);
        prop_assert_eq!(model.predict(&own).unwrap(), expected);
    }

    #[test]
    fn words_are_fed_behind_it(sequence in prop::collection::vec(0..WORDS.len(), 1..=LONGEST), positions: bool, seed in 0_u64..1000) {
        let model = model::<f64>(&transformer(&Mask::Causal, 2, AttentionKind::Softmax, seed), positions, true);
        let [own, _] = datasets(std::slice::from_ref(&sequence));
        let Predictions::Labels(expected) = model.predict(&own).unwrap() else { panic!("labels") };
        let any = AnyModel::F64(model);
        let mut feed = TokenFeed::new(&any).unwrap();
        prop_assert_eq!(feed.left(), positions.then_some(LONGEST));
        for (&word, &label) in sequence.iter().zip(&expected) {
            prop_assert_eq!(feed.step(WORDS[word]).unwrap(), ["X", "Y", "Z"][label as usize]);
        }
        prop_assert_eq!(feed.left(), positions.then_some(LONGEST - sequence.len()));
    }

    #[test]
    fn written_and_read_again(mask in masks(), positions: bool, labels: bool, seed in 0_u64..1000) {
        let place = tempfile::tempdir().unwrap();
        let model = model::<f32>(&transformer(&mask, 1, AttentionKind::Softmax, seed), positions, labels);
        model.save(place.path().join("m")).unwrap();
        let config = std::fs::read_to_string(place.path().join("m/config.json")).unwrap();
        let config: serde_json::Value = serde_json::from_str(&config).unwrap();
        prop_assert_eq!((&config["format"], &config["start"]), (&json!("monolayer/2"), &json!("<s>")));
        prop_assert_eq!(AnyModel::open(place.path().join("m")).unwrap(), AnyModel::F32(model));
    }
}

#[test]
fn a_long_sequence_on_several_threads() {
    // Longer than what one thread does alone.
    let length = 3000;
    let words: Vec<usize> = (0..length).map(|i| (i * i + i / 7) % WORDS.len()).collect();
    let [own, whole] = datasets(&[words, vec![0, 2]]);
    for mask in [Mask::None, Mask::Causal] {
        let model = model::<f64>(&transformer(&mask, 2, AttentionKind::Softmax, 3), false, false);
        let mut plain = model.clone();
        plain.words.as_mut().unwrap().start = None;
        assert!(near(&model.predict(&own).unwrap(), &behind(&plain.predict(&whole).unwrap(), &whole)));
    }
}

#[test]
fn it_takes_a_place() {
    let model = model::<f64>(&transformer(&Mask::None, 1, AttentionKind::Softmax, 1), true, true);
    let [fits, _] = datasets(&[vec![0; LONGEST]]);
    assert!(model.predict(&fits).is_ok());
    let [long, _] = datasets(&[vec![0; LONGEST + 1]]);
    let error = model.predict(&long).unwrap_err().to_string();
    assert!(error.contains("7 tokens where the model has 6 positions behind its start token"), "{error}");
    // A matrix is for the sequence's own tokens.
    let mask = Mask::matrix(LONGEST, vec![1; LONGEST * LONGEST]).unwrap();
    let model = self::model::<f64>(&transformer(&mask, 1, AttentionKind::Softmax, 1), false, true);
    assert!(model.predict(&fits).is_ok());
    assert!(model.predict(&long).unwrap_err().to_string().contains("7 tokens where the mask is for 6"));
}

#[test]
fn exact_models() {
    // a = 1 behind <s> = 0: g of one a is e / (1 + e) = 0.73, of two 2e / (1 + 2e) = 0.84. The first unit cancels x + g, the
    // others step at 1.8.
    let attention = Attention::rank_one(Mask::None, &[1.0], &[1.0], &[1.0]);
    let block = FeedForward {
        w1: Matrix::new(3, 1, vec![1.0, 128.0, 128.0]),
        b1: vec![8.0, -1.8 * 128.0, -1.8 * 128.0 - 1.0],
        w2: Matrix::new(1, 3, vec![-1.0, 1.0, -1.0]),
        b2: vec![8.0],
    };
    let layer = Layer { attention: Some(attention), feed_forward: Some(block) };
    let model = Model {
        words: Some(Words {
            vocabulary: vocabulary(),
            embedding: Matrix::new(4, 1, vec![1.0, 0.0, 5.0, 5.0]),
            start: Some(START),
        }),
        positions: None,
        transformer: Transformer { d: 1, pre_feed_forward: None, layers: vec![layer] },
        head: None,
        outputs: None,
        source: Source::default(),
    };
    let mut exact = exact::map_model(&model, |&x| monolayer::arithmetic::rational(x));
    let [data, _] = datasets(&[vec![0], vec![0, 0]]);
    let numbers = |model: &_| -> Vec<f64> {
        exact::outputs(model, &data).unwrap().concat().iter().map(|x| x.to_f64().value()).collect()
    };
    assert_eq!(numbers(&exact), [0.0, 1.0, 1.0]);
    let place = tempfile::tempdir().unwrap();
    AnyModel::Exact(exact.clone()).save(place.path().join("m")).unwrap();
    assert_eq!(AnyModel::open(place.path().join("m")).unwrap(), AnyModel::Exact(exact.clone()));
    exact.words.as_mut().unwrap().start = None;
    // Alone, an a sees itself: g = 1.
    assert_eq!(numbers(&exact), [1.0, 1.0, 1.0]);
}

#[test]
fn behind_it_attention_can_count() {
    let data = Dataset::open("task:histogram:alphabet=3,length=1..4").unwrap();
    let memorizer = Memorizer::new().positions(Positions::None).mask(Mask::None).start(false);
    assert!(!memorizer.clone().compile(&data).unwrap().impossible().is_empty());
    let compiled = memorizer.start(true).compile(&data).unwrap();
    assert_eq!((compiled.certified(), compiled.right()), (data.tokens(), data.tokens()));
    let config = compiled.model().config();
    assert_eq!(
        (config.start.as_deref(), config.format.as_str(), config.max_length),
        (Some("<s>"), "monolayer/2", None)
    );
    let counts = LabelCounts::with_start(Some(context::START), &data, &Mask::None, false).unwrap();
    assert_eq!(compiled.source().label_counts(), counts.as_ref());
}

#[test]
fn contexts_behind_a_word_of_the_data() {
    let data = Dataset::from_sequences(&[vec!["a"], vec!["<s>", "a"]], &[vec!["X"], vec!["Y", "X"]]).unwrap();
    let mut model = model::<f32>(&transformer(&Mask::None, 1, AttentionKind::Softmax, 1), false, true);
    assert_eq!(AnyModel::F32(model.clone()).start_in(&data), Some(1));
    let other = Dataset::from_sequences(&[["a"]], &[["X"]]).unwrap();
    assert_eq!(AnyModel::F32(model.clone()).start_in(&other), Some(context::START));
    model.words.as_mut().unwrap().start = None;
    assert_eq!(AnyModel::F32(model).start_in(&data), None);
    // (a, {<s>, a}), (<s>, {<s>, <s>, a}), (a, {<s>, <s>, a}).
    let contexts = |start| Contexts::with_start(start, &data.token_ids(), &data.offsets, &Mask::None, false);
    assert_eq!(contexts(Some(1)).of_token, [0, 1, 2]);
    // With places nothing is at the start token's.
    let placed = Contexts::with_start(Some(1), &[1, 1], &[0, 1, 2], &Mask::Causal, true);
    assert_eq!(placed.of_token, [0, 0]);
}

#[test]
fn it_goes_with_masks_positions_codes_and_texts() {
    let data = Dataset::open("task:sort:alphabet=2,length=1..4").unwrap();
    let matrix = Mask::matrix(4, vec![1; 16]).unwrap();
    for mask in [Mask::None, Mask::Causal, Mask::Prefix(2), Mask::Band(2, 1), matrix] {
        let plain = Memorizer::new().mask(mask.clone()).positions("random:8".parse().unwrap());
        for memorizer in
            [plain.clone(), plain.clone().free(true).unknown(true), plain.embedding("random:6".parse().unwrap())]
        {
            let compiled = memorizer.start(true).compile(&data).unwrap();
            assert!(compiled.is_proved(), "{mask:?}");
            assert_eq!(compiled.model().right(&data).unwrap(), Some(compiled.possible()), "{mask:?}");
            assert_eq!(compiled.model().config().max_length, Some(5));
        }
    }
    let text = "to be or not to be";
    let data = Dataset::from_text(text, monolayer::data::Split::Word).unwrap();
    let compiled = Memorizer::new().text(monolayer::data::Split::Word).start(true).compile(&data).unwrap();
    let mut generator = monolayer::model::Generator::new(compiled.model()).unwrap();
    generator.prompt("to").unwrap();
    while generator.step().unwrap().is_some() {}
    assert_eq!(generator.tokens().join(" "), text);
}

#[test]
fn its_name_is_no_word_of_the_data() {
    let data = Dataset::from_sequences(&[["<s>", "<s2>"], ["<s2>", "<s>"]], &[["X", "Y"], ["Y", "Y"]]).unwrap();
    let compiled = Memorizer::new().start(true).compile(&data).unwrap();
    assert_eq!(compiled.model().config().start.as_deref(), Some("<s3>"));
    assert!(compiled.is_proved());
}

#[test]
fn methods_without_it_say_so() {
    let words = Dataset::open("task:parity:alphabet=2,length=3").unwrap();
    for method in [Method::Plateau, Method::Interpolate, Method::Deep, Method::Paper] {
        let error = Memorizer::new().method(method).start(true).compile(&words).unwrap_err().to_string();
        assert!(error.contains("`start`") && error.contains(method.name()), "{error}");
    }
    let vectors = Dataset::from_vectors(&[[[0.5], [2.0]]], &[[[1.0], [-1.0]]]).unwrap();
    assert!(Memorizer::new().start(true).compile(&vectors).unwrap_err().to_string().contains("`start`"));
}

#[test]
fn files_that_name_it_wrongly() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("m");
    model::<f32>(&transformer(&Mask::None, 1, AttentionKind::Softmax, 1), false, true).save(&path).unwrap();
    let config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path.join("config.json")).unwrap()).unwrap();
    let answer = |field: &str, value: serde_json::Value| {
        let mut changed = config.clone();
        changed[field] = value;
        std::fs::write(path.join("config.json"), changed.to_string()).unwrap();
        AnyModel::open(&path).map(|model| model.config().start).map_err(|e| e.to_string())
    };
    assert_eq!(answer("start", json!("<s>")), Ok(Some("<s>".to_owned())));
    assert_eq!(answer("start", json!(null)), Ok(None));
    for (field, value, wanted) in [
        ("start", json!("d"), "the start token \"d\" is no word"),
        ("start", json!(""), "the start token \"\" is no word"),
        ("start", json!(1), "invalid type"),
        ("start", json!(["<s>"]), "invalid type"),
        ("format", json!("monolayer/1"), "the field \"start\" in a monolayer/1 file"),
    ] {
        let error = answer(field, value).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}

/// The names in a file of tensors.
fn tensor_names(dir: &std::path::Path) -> Vec<String> {
    let bytes = std::fs::read(dir.join("model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    file.names().into_iter().map(ToString::to_string).collect()
}

#[test]
fn matrices_by_their_nonzero_entries() {
    let place = tempfile::tempdir().unwrap();
    let data = Dataset::open("task:histogram:alphabet=4,length=4").unwrap();
    let plain = Memorizer::new().positions(Positions::None).start(false).embedding("sign:64".parse().unwrap());
    let mut sizes = Vec::new();
    for (name, memorizer, newer, sparse) in [
        ("dense", plain.clone().storage(Storage::Dense), false, false),
        ("auto", plain.clone(), false, false),
        ("sparse", plain.clone().storage(Storage::Sparse), true, true),
        ("small", plain.clone().storage(Storage::Small), true, true),
        ("start-dense", plain.clone().start(true).storage(Storage::Dense), true, false),
        ("start", plain.start(true), true, true),
    ] {
        let (compiled, dir) = (memorizer.compile(&data).unwrap(), place.path().join(name));
        compiled.save(&dir).unwrap();
        let config = std::fs::read_to_string(dir.join("config.json")).unwrap();
        assert_eq!(config.contains("monolayer/2"), newer, "{name}");
        let names = tensor_names(&dir);
        assert_eq!(names.iter().any(|tensor| tensor == "layers.0.feed_forward.w2.rows"), sparse, "{name}: {names:?}");
        assert_eq!(names.iter().any(|tensor| tensor == "layers.0.feed_forward.w2"), !sparse, "{name}: {names:?}");
        assert_eq!(&AnyModel::open(&dir).unwrap(), compiled.model(), "{name}");
        sizes.push(std::fs::metadata(dir.join("model.safetensors")).unwrap().len());
    }
    assert_eq!(sizes[0], sizes[1]);
    let [dense, _, sparse, small, start_dense, start] = sizes[..] else { panic!("six") };
    assert!(small < sparse && sparse < dense && start < start_dense, "{sizes:?}");
}

#[test]
fn what_sparse_storage_leaves_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    // Full matrices would not get smaller.
    let full = model::<f64>(&transformer(&Mask::None, 1, AttentionKind::Softmax, 1), false, true);
    AnyModel::F64(full.clone()).save_as(Storage::Sparse, place.path().join("full"), |_| Ok(())).unwrap();
    assert!(tensor_names(&place.path().join("full")).iter().all(|name| !name.ends_with(".values")));
    // A matrix of zeros has no entries to store; a zero with a sign is an entry.
    let mut large = full;
    let zeros = || Matrix::new(200, 3, vec![0.0; 600]);
    let mut block =
        FeedForward { w1: zeros(), b1: vec![0.0; 200], w2: Matrix::new(3, 200, vec![0.0; 600]), b2: vec![0.0; 3] };
    block.w2.data[7] = -0.0;
    block.w2.data[500] = 3.0;
    large.transformer.layers[0].feed_forward = Some(block);
    let dir = place.path().join("large");
    AnyModel::F64(large).save_as(Storage::Sparse, &dir, |_| Ok(())).unwrap();
    let names = tensor_names(&dir);
    assert!(names.contains(&"layers.0.feed_forward.w1".to_owned()), "{names:?}");
    let AnyModel::F64(read) = AnyModel::open(&dir).unwrap() else { panic!("f64") };
    let w2 = &read.transformer.layers[0].feed_forward.as_ref().unwrap().w2.data;
    assert_eq!((w2[7].to_bits(), w2[500], w2.iter().filter(|&&x| x != 0.0).count()), ((-0.0_f64).to_bits(), 3.0, 1));
}

#[test]
fn models_say_what_they_were_made_for() {
    let data = Dataset::open("task:parity:alphabet=2,length=2..4").unwrap();
    let domain = |memorizer: Memorizer| *memorizer.compile(&data).unwrap().source().domain().unwrap();
    let plain = Memorizer::new().positions(Positions::None).start(true);
    let (of, none) = (domain(plain.clone()), Positions::None);
    assert_eq!((of.shortest, of.longest, of.orderings), (2, 4, Orderings::All));
    assert_eq!(domain(plain.clone().mask(Mask::Causal)).shortest, 1);
    assert_eq!(domain(plain.clone().mask(Mask::Prefix(1))).orderings, Orderings::Given);
    assert_eq!(domain(Memorizer::new().positions("sign:8".parse().unwrap())).orderings, Orderings::Given);
    assert_eq!(domain(Memorizer::new().method(Method::Plateau).positions(none)).longest, 4);
    let [own, _] = datasets(&[vec![0, 0], vec![0], vec![0; 5], vec![0; 4]]);
    assert_eq!(of.outside(&own), 2);
    let warning = of.warning(&own).unwrap();
    assert!(
        warning.starts_with("2 of 4 sequences") && warning.contains("2 to 4") && warning.contains("sequence 2"),
        "{warning}"
    );
    let [inside, _] = datasets(&[vec![0, 0], vec![0; 4]]);
    assert_eq!((of.outside(&inside), of.warning(&inside)), (0, None));
}
