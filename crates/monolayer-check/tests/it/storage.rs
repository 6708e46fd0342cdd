//! Numbers stored in few bytes: three readers find what was written, bit for bit, at all scales.

use std::path::Path;
use std::process::Command;

use monolayer::arithmetic::kernels::Real;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::model::{LabelHead, Storage, Words, directory as model_directory};
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind};
use monolayer::paper::feed_forward::FeedForward;
use monolayer::paper::transformer::{Layer, Transformer};
use monolayer::{AnyModel, Mask, Model, Source, Vocabulary};
use monolayer_core::model::{Model as CoreModel, Numbers};
use monolayer_core::read::{Limits, directory};
use monolayer_core::{Dyadic, Format};
use serde_json::json;

use crate::second_opinion::python;
use crate::soundness::random::Random;

const D: usize = 3;
const HIDDEN: usize = 60;

/// Numbers of one kind: of few bits at one scale or at all, whole, with signed zeros, mostly zero, or any at all.
fn numbers<R: Real>(random: &mut Random, count: usize) -> Vec<R> {
    let (kind, scale) = (random.below(7), random.below(2100) as i32 - 1080);
    let zeros = [1, 1, 2, 40][random.below(4)];
    let mut number = |i: usize| -> f64 {
        if !i.is_multiple_of(zeros) {
            return 0.0;
        }
        let (whole, any) = (random.below(255) as f64 - 127.0, f64::from_bits(random.bits()));
        let power = |e: i32| 2_f64.powi(e / 2) * 2_f64.powi(e - e / 2);
        match kind {
            0 => whole,
            1 => whole * power(scale / 80),
            2 => whole * power(scale),
            3 => -0.0 * whole.abs(),
            4 => f64::from(f32::from_bits(any.to_bits() as u32)),
            5 => f64::from(f32::from_bits((any.to_bits() as u32) & 0xffff_0000)),
            _ => any,
        }
    };
    let number = |i| Some(R::from_f64(number(i))).filter(|x| x.finite()).unwrap_or(R::LARGEST);
    (0..count).map(number).collect()
}

fn matrix<R: Real>(random: &mut Random, rows: usize, cols: usize) -> Matrix<R> {
    Matrix::new(rows, cols, numbers(random, rows * cols))
}

fn model<R: Real>(random: &mut Random) -> Model<R> {
    let mut vocabulary = Vocabulary::default();
    ["a", "b"].iter().for_each(|word| _ = vocabulary.add(word));
    let [w_q, w_k, w_v] = [0; 3].map(|_| matrix(random, 1, D));
    let head = AttentionHead { w_q, w_k, w_v, w_o: matrix(random, D, 1) };
    let block = FeedForward {
        w1: matrix(random, HIDDEN, D),
        b1: numbers(random, HIDDEN),
        w2: matrix(random, D, HIDDEN),
        b2: numbers(random, D),
    };
    let layer = Layer {
        attention: Some(Attention { kind: AttentionKind::Softmax, mask: Mask::None, heads: vec![head] }),
        feed_forward: Some(block),
    };
    let labels = ["X", "Y"].map(str::to_owned).to_vec();
    Model {
        words: Some(Words { vocabulary, embedding: matrix(random, 2, D), start: None }),
        positions: None,
        transformer: Transformer { d: D, pre_feed_forward: None, layers: vec![layer] },
        head: Some(LabelHead { labels, weight: matrix(random, 2, D), bias: numbers(random, 2) }),
        outputs: None,
        source: Source::from_json(json!({})),
    }
}

/// The bits of all numbers by name.
fn bits<R: Real>(model: &Model<R>) -> Vec<(String, Vec<u64>)> {
    let mut all: Vec<(String, Vec<u64>)> = model_directory::tensors(model)
        .into_iter()
        .map(|(name, _, numbers)| (name, numbers.iter().map(|x| x.to_f64().to_bits()).collect()))
        .collect();
    all.sort();
    all
}

/// The same as the core has them.
fn core_numbers(model: &CoreModel) -> Vec<(String, Vec<Dyadic>)> {
    let layer = &model.layers[0];
    let (attention, block) = (layer.attention.as_ref().unwrap(), layer.feed_forward.as_ref().unwrap());
    let head = model.head.as_ref().unwrap();
    let mut all: Vec<(String, Vec<Dyadic>)> = [
        ("embedding.weight", model.embedding.as_ref().unwrap()),
        ("head.bias", &head.bias),
        ("head.weight", &head.weight),
        ("layers.0.attention.w_k", &attention.w_k),
        ("layers.0.attention.w_o", &attention.w_o),
        ("layers.0.attention.w_q", &attention.w_q),
        ("layers.0.attention.w_v", &attention.w_v),
        ("layers.0.feed_forward.b1", &block.b1),
        ("layers.0.feed_forward.b2", &block.b2),
        ("layers.0.feed_forward.w1", &block.w1),
        ("layers.0.feed_forward.w2", &block.w2),
    ]
    .into_iter()
    .map(|(name, numbers)| {
        let Numbers::Floats(tensor) = numbers else { panic!("floats") };
        (name.to_owned(), (0..tensor.len()).map(|i| tensor.get(i)).collect())
    })
    .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// The bits of all numbers as Python's readers have them.
fn python_bits(python: &str, dirs: &[&Path]) -> Vec<Vec<(String, Vec<u64>)>> {
    let script = r#"
import json, struct, sys
sys.path.insert(0, sys.argv[1])
import strict_files
for directory in sys.argv[2:]:
    found = strict_files.read_files(directory)[2]
    code = lambda dtype, raw: f"<{len(raw) // strict_files.WIDTHS[dtype]}{strict_files.CODES[dtype]}"
    floats = {name: struct.unpack(code(dtype, raw), raw) for name, (dtype, _, raw) in found.items()}
    print(json.dumps(sorted((name, [struct.unpack("<Q", struct.pack("<d", x))[0] for x in all]) for name, all in floats.items())))
"#;
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    let out = Command::new(python).args(["-c", script]).arg(tools).args(dirs).output().unwrap();
    let lines = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Models of one precision: what is written is read again; how many were narrower than in full, and how many of format 2.
fn round_trips<R: Real>(seeds: std::ops::Range<u64>, python: Option<&str>) -> [usize; 2]
where
    AnyModel: From<Model<R>>,
{
    let (place, mut counts) = (tempfile::tempdir().unwrap(), [0; 2]);
    let (mut dirs, mut wanted) = (Vec::new(), Vec::new());
    for seed in seeds {
        let (model, full) = (model::<R>(&mut Random(seed)), place.path().join("full"));
        let bits = bits(&model);
        let dyadic = |&x: &u64| Dyadic::from_bits(Format::F64, x).unwrap();
        let dyadics: Vec<(String, Vec<Dyadic>)> =
            bits.iter().map(|(name, all)| (name.clone(), all.iter().map(dyadic).collect())).collect();
        let size = |dir: &Path| dir.join("model.safetensors").metadata().unwrap().len();
        AnyModel::from(model.clone()).save_as(Storage::Dense, &full, |_| Ok(())).unwrap();
        for storage in [Storage::Sparse, Storage::Small, Storage::Auto] {
            let dir = place.path().join(format!("{seed}-{storage:?}"));
            AnyModel::from(model.clone()).save_as(storage, &dir, |_| Ok(())).unwrap();
            let read = AnyModel::open(&dir).unwrap();
            let found = match &read {
                AnyModel::F32(read) => self::bits(read),
                AnyModel::F64(read) => self::bits(read),
                AnyModel::Exact(_) => panic!("floats"),
            };
            assert_eq!((found, read.config().dtype.as_str()), (bits.clone(), R::NAME), "{seed} {storage:?}");
            let (core, _) = directory::open(&dir, &Limits::default()).unwrap();
            assert_eq!(core_numbers(&core), dyadics, "{seed} {storage:?}");
            counts[0] += usize::from(size(&dir) < size(&full));
            counts[1] += usize::from(std::fs::read_to_string(dir.join("config.json")).unwrap().contains("monolayer/2"));
            // A model this small is not worth another format.
            assert!(storage != Storage::Auto || size(&dir) == size(&full));
            dirs.push(dir);
            wanted.push(bits.clone());
        }
    }
    if let Some(python) = python {
        let dirs: Vec<&Path> = dirs.iter().map(AsRef::as_ref).collect();
        assert_eq!(python_bits(python, &dirs), wanted);
    }
    counts
}

#[test]
fn every_reader_finds_the_numbers_that_were_written() {
    let python = python();
    for [smaller, newer] in
        [round_trips::<f32>(0..60, python.as_deref()), round_trips::<f64>(60..120, python.as_deref())]
    {
        assert!(smaller > 40 && newer >= smaller, "{smaller} {newer}");
    }
}
