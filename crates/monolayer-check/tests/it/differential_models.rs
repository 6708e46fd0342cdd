//! Compiler and checker find the same numbers in models of every kind, stored in every way, and compute the same with them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::Files;
use crate::common::spoil::fuzz;
use crate::masks::{core_mask, write_mask};
use monolayer::model::{Predictions, directory as model_directory};
use monolayer::paper::attention::{Attention, AttentionKind};
use monolayer::{AnyModel, Dataset};
use monolayer_check::{Options, Verdict, verify};
use monolayer_core::Format as Binary;
use monolayer_core::exact::real::Rational;
use monolayer_core::model::{Mask as CoreMask, Model, Numbers};
use monolayer_core::number::Dyadic;
use monolayer_core::read::{self, Limits, directory};
use serde_json::{Value, json};

/// A number of a model, exactly.
#[derive(Debug, Clone)]
enum Number {
    Float(Dyadic),
    Exact(Rational),
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Exact(a), Self::Exact(b)) => a.minus(b).is_zero(),
            _ => false,
        }
    }
}

fn exact(text: &str) -> Number {
    Number::Exact(Rational::parse(text, &mut u64::MAX.clone()).expect("a number"))
}

/// A model in names and exact numbers, so that two readings can be compared.
#[derive(Debug, PartialEq)]
struct Plain {
    tensors: BTreeMap<String, Vec<Number>>,
    vocabulary: BTreeMap<String, u32>,
    labels: Vec<String>,
    /// Hardmax, mask, heads, size; nothing for a layer without attention.
    attentions: Vec<Option<(bool, CoreMask, usize, usize)>>,
    max_length: Option<usize>,
}

fn theirs(dir: &Path) -> monolayer::Result<Plain> {
    Ok(match AnyModel::open(dir)? {
        AnyModel::F32(model) => their(&model, |&x| float(x.into())),
        AnyModel::F64(model) => their(&model, |&x| float(x)),
        AnyModel::Exact(model) => their(&model, |x| exact(&x.to_string())),
    })
}

fn float(x: f64) -> Number {
    Number::Float(Dyadic::from_bits(Binary::F64, x.to_bits()).expect("a finite number"))
}

fn their<T: Clone>(model: &monolayer::Model<T>, number: impl Fn(&T) -> Number) -> Plain {
    let config = model_directory::config_as(model, "");
    let tensor =
        |(name, _, data): (String, Vec<usize>, std::borrow::Cow<[T]>)| (name, data.iter().map(&number).collect());
    let attention =
        |a: &Attention<T>| (a.kind == AttentionKind::Hardmax, core_mask(&a.mask), a.heads.len(), a.heads[0].w_q.rows);
    let names = model.words.as_ref().map(|words| &words.vocabulary);
    let word = |id: u32| (names.expect("words").name(id).to_owned(), id);
    Plain {
        tensors: model_directory::tensors(model).into_iter().map(tensor).collect(),
        vocabulary: (0..names.map_or(0, |names| names.len() as u32)).map(word).collect(),
        labels: config.labels.unwrap_or_default(),
        attentions: model.transformer.layers.iter().map(|layer| layer.attention.as_ref().map(attention)).collect(),
        max_length: config.max_length,
    }
}

fn ours(dir: &Path) -> read::Result<Plain> {
    Ok(our(&directory::open(dir, &Limits::default())?.0))
}

fn our(model: &Model) -> Plain {
    let mut tensors = BTreeMap::new();
    let mut put = |name: String, numbers: &Numbers| {
        let list: Vec<Number> = match numbers {
            Numbers::Floats(tensor) => (0..tensor.len()).map(|i| Number::Float(tensor.get(i))).collect(),
            Numbers::Exact(_, texts) => texts.iter().map(|text| exact(text)).collect(),
        };
        tensors.insert(name, list);
    };
    for (name, numbers) in [("embedding.weight", &model.embedding), ("positions.weight", &model.positions)] {
        numbers.iter().for_each(|numbers| put(name.into(), numbers));
    }
    let blocks = model.layers.iter().enumerate().map(|(i, l)| (format!("layers.{i}.feed_forward"), &l.feed_forward));
    for (name, block) in blocks.chain([("pre_feed_forward".to_owned(), &model.pre_feed_forward)]) {
        let Some(block) = block else { continue };
        for (part, numbers) in [("w1", &block.w1), ("b1", &block.b1), ("w2", &block.w2), ("b2", &block.b2)] {
            put(format!("{name}.{part}"), numbers);
        }
    }
    for (i, layer) in model.layers.iter().enumerate() {
        let Some(a) = &layer.attention else { continue };
        for (name, w) in [("w_q", &a.w_q), ("w_k", &a.w_k), ("w_v", &a.w_v), ("w_o", &a.w_o)] {
            put(format!("layers.{i}.attention.{name}"), w);
        }
    }
    if let Some(head) = &model.head {
        put("head.weight".into(), &head.weight);
        put("head.bias".into(), &head.bias);
    }
    let attention = |a: &monolayer_core::model::Attention| (a.hard, a.mask.clone(), a.heads, a.size);
    Plain {
        tensors,
        vocabulary: model.vocabulary.iter().flatten().map(|(word, row)| (word.clone(), *row as u32)).collect(),
        labels: model.head.as_ref().and_then(|head| head.labels.clone()).unwrap_or_default(),
        attentions: model.layers.iter().map(|l| l.attention.as_ref().map(attention)).collect(),
        max_length: model.max_length,
    }
}

/// Both accept a directory and read the same, or the checker refuses it: it may be stricter, never more lenient.
fn alike(dir: &Path) -> bool {
    match (theirs(dir), ours(dir)) {
        (Ok(theirs), Ok(ours)) => {
            assert!(theirs == ours, "{}: {theirs:?}\n{ours:?}", dir.display());
            true
        }
        (Err(error), Ok(_)) => panic!("only the compiler refuses {}: {error}", dir.display()),
        (_, Err(_)) => false,
    }
}

const D: usize = 3;
const WORDS: [&str; 4] = ["a", "b", "c", "d"];

/// A model of every kind, without numbers: name, config.json, whether inputs are words.
fn kinds() -> Vec<(&'static str, Value, bool)> {
    let attention = |kind: &str, heads: usize, size: usize, mask: &str| json!({"kind": kind, "heads": heads, "head_size": size, "mask": mask});
    let config = |layers: Value| {
        json!({"format": "monolayer/1", "d": D, "dtype": "f32", "max_length": null, "labels": ["X", "Y", "Z"],
               "layers": layers, "pre_feed_forward": null, "source": {}})
    };
    let with = |mut config: Value, field: &str, value: Value| {
        config[field] = value;
        config
    };
    let rank_one = json!([{"attention": attention("softmax", 1, 1, "none"), "hidden": 4}]);
    let wide = json!([{"attention": attention("softmax", 2, 2, "causal"), "hidden": 5}]);
    let hard = json!([
        {"attention": attention("hardmax", 2, 1, "none"), "hidden": 0},
        {"attention": attention("softmax", 1, 3, "none"), "hidden": 2},
    ]);
    let masked = |mask: Value| {
        let layer = |kind| json!({"attention": {"kind": kind, "heads": 2, "head_size": 1, "mask": mask}, "hidden": 2});
        json!([layer("softmax"), {"attention": attention("softmax", 1, 1, "causal"), "hidden": 0}, layer("hardmax")])
    };
    let masked = |mask| with(config(masked(mask)), "format", json!("monolayer/2"));
    let deep = json!([
        {"attention": attention("softmax", 1, 1, "none"), "hidden": 0},
        {"attention": null, "hidden": 3},
        {"attention": null, "hidden": 2},
    ]);
    vec![
        ("rank-one", config(rank_one.clone()), true),
        ("heads-mask-and-places", with(config(wide), "max_length", json!(5)), true),
        ("hardmax", config(hard), true),
        ("deep", config(deep), true),
        ("quantizer", with(config(rank_one.clone()), "pre_feed_forward", json!({"hidden": 6})), true),
        ("vectors-to-labels", config(rank_one.clone()), false),
        ("vectors-to-vectors", with(config(rank_one), "labels", Value::Null), false),
        ("no-layers", config(json!([])), true),
        ("prefix", masked(json!({"prefix": 2})), true),
        ("band", masked(json!({"band": [1, 0]})), true),
        ("mask-file", masked(json!({"file": "mask.safetensors"})), true),
    ]
}

/// The tensors that a config.json asks for.
fn shapes(config: &Value, words: bool) -> Vec<(String, Vec<usize>)> {
    let size = |value: &Value| value.as_u64().map_or(0, |n| n as usize);
    let mut shapes: Vec<(String, Vec<usize>)> = Vec::new();
    let block = |name: &str, q: usize| {
        [("w1", vec![q, D]), ("b1", vec![q]), ("w2", vec![D, q]), ("b2", vec![D])]
            .into_iter()
            .filter(move |_| q > 0)
            .map(|(part, shape)| (format!("{name}.{part}"), shape))
            .collect::<Vec<_>>()
    };
    if words {
        shapes.push(("embedding.weight".into(), vec![WORDS.len(), D]));
    }
    if !config["max_length"].is_null() {
        shapes.push(("positions.weight".into(), vec![size(&config["max_length"]), D]));
    }
    shapes.extend(block("pre_feed_forward", size(&config["pre_feed_forward"]["hidden"])));
    for (i, layer) in config["layers"].as_array().expect("layers").iter().enumerate() {
        let (heads, s) = (size(&layer["attention"]["heads"]), size(&layer["attention"]["head_size"]));
        if heads > 0 {
            let names =
                [("w_q", [heads, s, D]), ("w_k", [heads, s, D]), ("w_v", [heads, s, D]), ("w_o", [heads, D, s])];
            shapes.extend(names.map(|(name, shape)| (format!("layers.{i}.attention.{name}"), shape.to_vec())));
        }
        shapes.extend(block(&format!("layers.{i}.feed_forward"), size(&layer["hidden"])));
    }
    if let Some(labels) = config["labels"].as_array() {
        shapes.extend([("head.weight".into(), vec![labels.len(), D]), ("head.bias".into(), vec![labels.len()])]);
    }
    shapes
}

/// Writes a model of a kind with numbers from -999 to 999 thousandths; exact ones in all the ways that there are.
fn write(dir: &Path, config: &Value, words: bool, dtype: &str) {
    let mut state = 7_u64;
    let mut thousandths = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64 % 1999 - 999
    };
    let numbers = shapes(config, words).into_iter().map(|(name, shape)| {
        let data: Vec<i64> = (0..shape.iter().product::<usize>()).map(|_| thousandths()).collect();
        (name, shape, data)
    });
    let numbers: Vec<(String, Vec<usize>, Vec<i64>)> = numbers.collect();
    let float = |(name, shape, data): &(String, Vec<usize>, Vec<i64>)| {
        (name.clone(), shape.clone(), data.iter().map(|&k| k as f64 / 1000.0).collect())
    };
    let vocabulary = words.then(|| WORDS.iter().enumerate().map(|(i, w)| (w.to_string(), json!(i))).collect());
    let mut config = config.clone();
    config["dtype"] = json!(dtype);
    fs::create_dir_all(dir).unwrap();
    if config.to_string().contains("mask.safetensors") {
        write_mask(dir, 4, &[1, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1]);
    }
    let tensors = numbers.iter().map(float).collect();
    let files = Files { config, tensors, vocabulary: vocabulary.map(Value::Object), f32: dtype == "f32" };
    if dtype != "exact" {
        return files.write(dir);
    }
    let text = |(i, k): (usize, &i64)| match i % 4 {
        0 => format!("{k}/1000"),
        1 => format!("{k}e-3"),
        2 => format!("{:.3}", *k as f64 / 1000.0),
        _ => format!("{k:+}.0E-3"),
    };
    let entry = |(name, shape, data): &(String, Vec<usize>, Vec<i64>)| {
        (name.clone(), json!({"shape": shape, "data": data.iter().enumerate().map(text).collect::<Vec<_>>()}))
    };
    files.write_exact(dir, Value::Object(numbers.iter().map(entry).collect()).to_string());
}

/// Sequences of words, or of vectors, with labels.
fn lines(words: bool, labels: &[Value]) -> String {
    let vectors = [[0.5, -0.25, 1.0], [-1.0, 0.125, 0.75], [0.0, 2.0, -0.5], [1.5, 0.5, 0.25]];
    let token = |i: &usize| if words { json!(WORDS[*i]) } else { json!(vectors[*i]) };
    let (mut text, mut at) = (String::new(), 0);
    for sequence in [&[0, 1][..], &[2, 0, 3], &[1], &[3, 3, 1, 0]] {
        let mut line = json!({"tokens": sequence.iter().map(token).collect::<Vec<_>>()});
        if !labels.is_empty() {
            line["labels"] = labels[at..at + sequence.len()].into();
        }
        at += sequence.len();
        text += &format!("{line}\n");
    }
    text
}

/// What the compiler's forward pass says of each token; exact numbers are rounded to f64 for it.
fn predicted(dir: &Path, data: &Dataset) -> Vec<Value> {
    let model = match AnyModel::open(dir).unwrap() {
        exact @ AnyModel::Exact(_) => exact.widened().into(),
        floats => floats,
    };
    let labels = model.label_names().map(<[String]>::to_vec);
    match model.predict(data).unwrap() {
        Predictions::Labels(ids) => ids.iter().map(|&id| json!(labels.as_ref().unwrap()[id as usize])).collect(),
        Predictions::Outputs(outputs) => outputs.data.chunks_exact(D).map(|row| json!(row)).collect(),
    }
}

#[test]
fn models_of_every_kind_are_read_and_run_alike() {
    let root = tempfile::tempdir().unwrap();
    for (kind, config, words) in kinds() {
        for dtype in ["f32", "f64", "exact"] {
            let dir = root.path().join(format!("{kind}-{dtype}"));
            write(&dir, &config, words, dtype);
            assert!(alike(&dir), "{kind}, {dtype}: {:?}", ours(&dir).err());
            let path = root.path().join("data.jsonl");
            let verdict = |labels: &[Value]| {
                fs::write(&path, lines(words, labels)).unwrap();
                let options = Options { tolerance: Some(1e-4), strict: true, ..Options::default() };
                verify(&dir, path.to_str(), &options)
            };
            let data = Dataset::read("x", monolayer::data::Format::JsonLines, lines(words, &[]).as_bytes());
            let mut labels = predicted(&dir, &data.unwrap());
            let report = verdict(&labels);
            assert_eq!(report.verdict, Verdict::Verified, "{kind}, {dtype}: {}", report.text());
            labels[0] = match &labels[0] {
                Value::String(name) => json!(if name == "X" { "Y" } else { "X" }),
                output => json!([output[0], output[1].as_f64().unwrap() + 1e-3, output[2]]),
            };
            let report = verdict(&labels);
            assert_eq!((report.verdict, report.refuted), (Verdict::Refuted, 1), "{kind}, {dtype}: {}", report.text());
        }
    }
}

#[test]
fn spoiled_exact_numbers_are_read_alike() {
    let dir = tempfile::tempdir().unwrap();
    Files::honest().write_exact(dir.path(), "");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/weights/honest");
    fs::copy(corpus, dir.path().join("weights.json")).unwrap();
    assert!(alike(dir.path()), "{:?}", ours(dir.path()).err());
    let accepted = Cell::new(0);
    fuzz("weights", 3000, |bytes| {
        fs::write(dir.path().join("weights.json"), bytes).unwrap();
        accepted.set(accepted.get() + usize::from(alike(dir.path())));
    });
    assert!(accepted.get() > 0);
}

/// Short texts of numbers that are long when written out.
#[test]
fn long_exact_numbers_are_read_alike() {
    let dir = tempfile::tempdir().unwrap();
    Files::honest().write_exact(dir.path(), "");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/weights/honest");
    let honest = fs::read_to_string(corpus).unwrap();
    for (number, read) in [("0.1e99925", true), ("-1.5E-99925", true), ("1e400000", true), ("1e1100000", false)] {
        fs::write(dir.path().join("weights.json"), honest.replacen("\"0.25\"", &format!("{number:?}"), 1)).unwrap();
        assert_eq!(alike(dir.path()), read, "{number}");
    }
    // Each is short enough; together they stand for more zeros than the file may.
    for (count, read) in [(3, true), (4, false)] {
        let places = ["\"0.25\"", "\"75e-2\"", "\"0.5\"", "\"-0.5\""].into_iter().take(count);
        let spoiled = places.fold(honest.clone(), |file, number| file.replacen(number, "\"1e-260000\"", 1));
        fs::write(dir.path().join("weights.json"), spoiled).unwrap();
        assert_eq!(alike(dir.path()), read, "{count}");
    }
}

#[test]
fn hostile_models_are_read_alike_where_they_are_read() {
    let attacks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../attacks");
    let dirs = fs::read_dir(attacks).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let read = dirs.filter(|dir| alike(dir)).count();
    assert!(read > 10, "{read}");
}
