//! Masks of every kind: what the compiler makes with them the checker reads and verifies, and their fast, plain and checked
//! forward passes agree.

use std::fs;
use std::path::Path;

use monolayer::arithmetic::matrix::Matrix;
use monolayer::model::{LabelHead, Storage, Words};
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind};
use monolayer::paper::transformer::{Layer, Transformer};
use monolayer::{
    AnyModel, Compiled, Dataset, Mask, Memorizer, Method, Model, Positions, Predictions, Source, Vocabulary,
};
use monolayer_check::{Options, Report, Verdict, verify};
use monolayer_core::model::Mask as CoreMask;
use serde_json::json;

use crate::common::assemble;
use crate::soundness::random::Random;

/// The same mask as the core of the checker has it.
pub fn core_mask(mask: &Mask) -> CoreMask {
    match mask {
        Mask::None => CoreMask::None,
        Mask::Causal => CoreMask::Causal,
        Mask::Prefix(k) => CoreMask::Prefix(*k),
        Mask::Band(before, after) => CoreMask::Band(*before, *after),
        Mask::Matrix(matrix) => CoreMask::Matrix(matrix.size(), matrix.entries().to_vec()),
    }
}

/// Writes mask.safetensors.
pub fn write_mask(dir: &Path, size: usize, entries: &[u8]) {
    let header = json!({"mask": {"dtype": "U8", "shape": [size, size], "data_offsets": [0, entries.len()]}});
    fs::write(dir.join("mask.safetensors"), assemble(&header.to_string(), entries)).unwrap();
}

/// Masks of every kind for sequences of up to 5 tokens.
fn masks() -> [Mask; 6] {
    let matrix = vec![
        1, 0, 1, 0, 1, //
        1, 1, 0, 0, 0, //
        0, 1, 1, 1, 0, //
        0, 0, 0, 1, 0, //
        1, 1, 1, 1, 1,
    ];
    let matrix = Mask::matrix(5, matrix).unwrap();
    [Mask::None, Mask::Causal, Mask::Prefix(2), Mask::Band(1, 1), Mask::Band(0, 3), matrix]
}

fn check(dir: &Path, data: &str) -> Report {
    verify(dir, Some(data), &Options::default())
}

fn saved(compiled: &Compiled, dir: &Path, mask: &Mask) {
    compiled.save(dir).unwrap();
    let objects = !matches!(mask, Mask::None | Mask::Causal);
    let config = fs::read_to_string(dir.join("config.json")).unwrap();
    assert_eq!(config.contains("monolayer/2"), objects, "{mask:?}");
    assert_eq!(dir.join("mask.safetensors").exists(), matches!(mask, Mask::Matrix(_)), "{mask:?}");
    let certificate = fs::read_to_string(dir.join("certificate.json")).unwrap();
    assert_eq!(certificate.contains("\"mask\""), matches!(mask, Mask::Matrix(_)), "{mask:?}");
    assert_eq!(&AnyModel::open(dir).unwrap(), compiled.model(), "{mask:?}");
}

#[test]
fn what_is_compiled_with_a_mask_is_verified() {
    let root = tempfile::tempdir().unwrap();
    let task = "task:histogram:alphabet=3,length=1..5";
    let data = Dataset::open(task).unwrap();
    for (i, mask) in masks().iter().enumerate() {
        for positions in [Positions::None, Positions::Sign(32)] {
            let dir = root.path().join(format!("{i}-{positions:?}"));
            let memorizer =
                Memorizer::new().mask(mask.clone()).positions(positions.clone()).start(false).candidates(64);
            let compiled = memorizer.compile(&data).unwrap();
            let possible = data.tokens() - compiled.impossible().len();
            assert_eq!(compiled.right(), possible, "{mask:?}, {positions:?}");
            saved(&compiled, &dir, mask);
            let report = check(&dir, task);
            assert_eq!(report.verdict, Verdict::Verified, "{mask:?}, {positions:?}: {}", report.text());
            assert_eq!(report.impossible, compiled.impossible().len(), "{mask:?}, {positions:?}");
        }
    }
}

#[test]
fn single_precision_is_proved_with_every_mask() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("data.conll");
    fs::write(&path, "a X\nb Y\na Y\n\nb X\na X\nc Y\nb Y\n\nc X\nc Y\na Y\n").unwrap();
    let data = Dataset::open(&path).unwrap();
    for (i, mask) in masks().iter().enumerate() {
        let compiled = Memorizer::new().mask(mask.clone()).start(false).candidates(64).compile(&data).unwrap();
        assert!(matches!(compiled.model(), AnyModel::F32(_)) && compiled.is_proved(), "{mask:?}");
        let dir = root.path().join(i.to_string());
        saved(&compiled, &dir, mask);
        let report = check(&dir, path.to_str().unwrap());
        assert_eq!(
            (report.verdict, report.verified),
            (Verdict::Verified, data.tokens()),
            "{mask:?}: {}",
            report.text()
        );
    }
}

#[test]
fn every_method_knows_masks() {
    let root = tempfile::tempdir().unwrap();
    let task = "task:histogram:alphabet=2,length=1..3";
    let data = Dataset::open(task).unwrap();
    for (i, mask) in masks().iter().enumerate() {
        for method in [Method::Plateau, Method::Interpolate, Method::Deep] {
            let dir = root.path().join(format!("{i}-{}", method.name()));
            let compiled = Memorizer::new().method(method).mask(mask.clone()).candidates(32).compile(&data).unwrap();
            saved(&compiled, &dir, mask);
            let report = check(&dir, task);
            assert_eq!(report.verdict, Verdict::Verified, "{mask:?}, {}: {}", method.name(), report.text());
        }
    }
}

#[test]
fn another_mask_is_another_model() {
    let root = tempfile::tempdir().unwrap();
    let (dir, path) = (root.path().join("model"), root.path().join("data.conll"));
    fs::write(&path, "a X\nb Y\n\nb X\na Y\n").unwrap();
    let data = Dataset::open(&path).unwrap();
    let mask = Mask::matrix(2, vec![1, 0, 1, 1]).unwrap();
    Memorizer::new().mask(mask).positions(Positions::None).compile(&data).unwrap().save(&dir).unwrap();
    assert_eq!(check(&dir, path.to_str().unwrap()).verdict, Verdict::Verified);
    write_mask(&dir, 2, &[1, 1, 1, 1]);
    let report = check(&dir, path.to_str().unwrap());
    assert_eq!(report.verdict, Verdict::Refuted, "{}", report.text());
    assert!(report.text().contains("the mask differs"), "{}", report.text());
    write_mask(&dir, 1, &[1]);
    let error = AnyModel::open(&dir).unwrap().predict(&data).unwrap_err().to_string();
    assert!(error.contains("data.conll:1 (sequence 1): 2 tokens where the mask is for 1"), "{error}");
    let report = verify(&dir, path.to_str(), &Options { ignore_certificate: true, ..Options::default() });
    assert_eq!(report.verdict, Verdict::Error);
    assert!(report.error.unwrap().0.contains("a sequence has 2 tokens, and the mask is for 1"));
    fs::remove_file(dir.join("mask.safetensors")).unwrap();
    assert!(AnyModel::open(&dir).unwrap_err().to_string().contains("mask.safetensors: it is missing"));
    assert_eq!(check(&dir, path.to_str().unwrap()).verdict, Verdict::Error);
}

/// A random model of one layer without hidden units, and sequences for it.
struct Case {
    model: Model<f64>,
    sequences: Vec<Vec<usize>>,
    mask: Mask,
}

const WORDS: usize = 4;
const LABELS: usize = 3;

impl Case {
    fn draw(seed: u64) -> Self {
        let mut random = Random(seed);
        let longest = 1 + random.below(6);
        let mask = match random.below(4) {
            0 => Mask::Prefix(random.below(8)),
            1 => Mask::Band(random.below(4), random.below(4)),
            _ => {
                let size = longest + random.below(3);
                let rare = 1 + random.below(8);
                let mut entry = |at: usize| at / size == at % size || random.once_in(rare);
                Mask::matrix(size, (0..size * size).map(|at| u8::from(entry(at))).collect()).unwrap()
            }
        };
        let (d, heads, s) = (3, 1 + random.below(2), 1 + random.below(2));
        let mut matrix = |rows, cols| Matrix::from_fn(rows, cols, |_, _| 1.5 * random.signed());
        let mut head = || AttentionHead { w_q: matrix(s, d), w_k: matrix(s, d), w_v: matrix(s, d), w_o: matrix(d, s) };
        let heads = (0..heads).map(|_| head()).collect();
        let names = |count: usize| (0..count).map(|i| format!("n{i}"));
        let mut vocabulary = Vocabulary::default();
        names(WORDS).for_each(|word| {
            vocabulary.add(&word);
        });
        let mut words = Words { vocabulary, embedding: matrix(WORDS, d), start: None };
        let head = LabelHead { labels: names(LABELS).collect(), weight: matrix(LABELS, d), bias: vec![0.0; LABELS] };
        let attention = Attention { kind: AttentionKind::Softmax, mask: mask.clone(), heads };
        let layers = vec![Layer { attention: Some(attention), feed_forward: None }];
        let transformer = Transformer { d, pre_feed_forward: None, layers };
        let mut sequence = |_| (0..=random.below(longest)).map(|_| random.below(WORDS)).collect();
        let sequences = (0..5).map(&mut sequence).collect();
        words.start = random.once_in(2).then(|| random.below(WORDS) as u32);
        let (words, head) = (Some(words), Some(head));
        let model = Model { words, positions: None, transformer, head, outputs: None, source: Source::default() };
        Self { model, sequences, mask }
    }

    /// The label of each token by the plain definitions, and by how much it leads.
    fn plain(&self) -> Vec<(usize, f64)> {
        let (embedding, head) = (&self.model.words.as_ref().unwrap().embedding, self.model.head.as_ref().unwrap());
        let of_sequence = |sequence: &Vec<usize>| {
            let start = self.model.start().map(|row| row as usize);
            let rows: Vec<usize> = start.into_iter().chain(sequence.iter().copied()).collect();
            let z = Matrix::from_fn(rows.len(), embedding.cols, |t, c| embedding.row(rows[t])[c]);
            let attention = self.model.transformer.layers[0].attention.as_ref().unwrap();
            let out = if start.is_some() {
                attention.apply_masked(&z, |query, key| self.mask.visible_from_start(query, key)).unwrap()
            } else {
                attention.apply(&z).unwrap()
            };
            let label = |h: &[f64]| {
                let score = |w: &[f64]| w.iter().zip(h).map(|(w, x)| w * x).sum::<f64>();
                let mut scores: Vec<(f64, usize)> = head.weight.iter_rows().map(score).zip(0..).collect();
                scores.sort_by(|a, b| b.0.total_cmp(&a.0));
                (scores[0].1, scores[0].0 - scores[1].0)
            };
            out.iter_rows().skip(rows.len() - sequence.len()).map(label).collect::<Vec<_>>()
        };
        self.sequences.iter().flat_map(of_sequence).collect()
    }

    fn lines(&self, labels: &[usize]) -> String {
        let mut labels = labels.iter();
        let line = |sequence: &Vec<usize>| {
            let tokens: Vec<String> = sequence.iter().map(|id| format!("n{id}")).collect();
            let labels: Vec<String> = labels.by_ref().take(sequence.len()).map(|l| format!("n{l}")).collect();
            format!("{}\n", json!({"tokens": tokens, "labels": labels}))
        };
        self.sequences.iter().map(line).collect()
    }
}

#[test]
fn models_behind_a_start_token_are_verified() {
    let root = tempfile::tempdir().unwrap();
    let task = "task:histogram:alphabet=2,length=1..5";
    for (i, mask) in masks().iter().enumerate() {
        for positions in [Positions::None, Positions::Auto, "sign:16".parse().unwrap()] {
            for storage in [Storage::Dense, Storage::Sparse] {
                let memorizer = Memorizer::new().mask(mask.clone()).positions(positions.clone()).start(true);
                let compiled = memorizer.storage(storage).compile(&Dataset::open(task).unwrap()).unwrap();
                let dir = root.path().join(format!("m{i}"));
                compiled.save(&dir).unwrap();
                let report = check(&dir, task);
                assert_eq!(report.verdict, Verdict::Verified, "{mask:?} {positions:?}: {}", report.text());
                assert_eq!((report.verified, report.impossible), (compiled.certified(), compiled.impossible().len()));
                assert_eq!(&AnyModel::open(&dir).unwrap(), compiled.model());
            }
        }
    }
}

#[test]
fn fast_plain_and_checked_passes_agree_over_random_masks() {
    let root = tempfile::tempdir().unwrap();
    let (dir, path) = (root.path().join("model"), root.path().join("data.jsonl"));
    let (mut compared, mut started) = (0, 0);
    for seed in 0..200 {
        let case = Case::draw(seed);
        let plain = case.plain();
        if plain.iter().any(|&(_, lead)| lead < 1e-9) {
            continue;
        }
        started += usize::from(case.model.start().is_some());
        let mut labels: Vec<usize> = plain.iter().map(|x| x.0).collect();
        case.model.save(&dir).unwrap();
        fs::write(&path, case.lines(&labels)).unwrap();
        let data = Dataset::open(&path).unwrap();
        let fast = AnyModel::open(&dir).unwrap().predict(&data).unwrap();
        assert_eq!(
            fast,
            Predictions::Labels(labels.iter().map(|&l| l as u32).collect()),
            "seed {seed}, {:?}",
            case.mask
        );
        let strict = Options { strict: true, ..Options::default() };
        let report = verify(&dir, path.to_str(), &strict);
        assert_eq!(report.verdict, Verdict::Verified, "seed {seed}, {:?}: {}", case.mask, report.text());
        let last = labels.len() - 1;
        labels[last] = (labels[last] + 1) % LABELS;
        fs::write(&path, case.lines(&labels)).unwrap();
        let report = verify(&dir, path.to_str(), &strict);
        assert_eq!((report.verdict, report.refuted), (Verdict::Refuted, 1), "seed {seed}, {:?}", case.mask);
        compared += 1;
    }
    assert!(compared > 150 && started > 50, "{compared} {started}");
}
