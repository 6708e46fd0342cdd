//! Model directories that are wrong, by accident or on purpose: each is refused with a message that names the file and the
//! tensor or field, and says what to do; none makes the program panic or ask for absurd memory.

use std::path::Path;

use monolayer::data::Format;
use monolayer::{AnyModel, Dataset};
use proptest::prelude::*;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

/// A model directory before it is written, so that anything in it can be spoiled.
struct Spoiled {
    config: Value,
    tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
    vocabulary: String,
    /// The whole tensor file, where it is not made from `tensors`.
    file: Option<Vec<u8>>,
}

/// A sound model: three words, positions, one layer, two labels.
fn sound() -> Spoiled {
    let config = json!({
        "format": "monolayer/1",
        "d": 2,
        "dtype": "f64",
        "max_length": 4,
        "labels": ["X", "Y"],
        "layers": [
            {"attention": {"kind": "softmax", "heads": 1, "head_size": 1, "mask": "none"}, "hidden": 3},
        ],
        "pre_feed_forward": null,
        "source": {"seed": 1},
    });
    let shapes: [(&str, &[usize]); 12] = [
        ("embedding.weight", &[3, 2]),
        ("positions.weight", &[4, 2]),
        ("layers.0.attention.w_q", &[1, 1, 2]),
        ("layers.0.attention.w_k", &[1, 1, 2]),
        ("layers.0.attention.w_v", &[1, 1, 2]),
        ("layers.0.attention.w_o", &[1, 2, 1]),
        ("layers.0.feed_forward.w1", &[3, 2]),
        ("layers.0.feed_forward.b1", &[3]),
        ("layers.0.feed_forward.w2", &[2, 3]),
        ("layers.0.feed_forward.b2", &[2]),
        ("head.weight", &[2, 2]),
        ("head.bias", &[2]),
    ];
    let ones = |shape: &[usize]| 1.0_f64.to_le_bytes().repeat(shape.iter().product());
    let tensors =
        shapes.iter().map(|(name, shape)| ((*name).to_owned(), Dtype::F64, shape.to_vec(), ones(shape))).collect();
    Spoiled { config, tensors, vocabulary: r#"{"a": 0, "b": 1, "c": 2}"#.to_owned(), file: None }
}

impl Spoiled {
    fn tensor(&mut self, name: &str) -> &mut (String, Dtype, Vec<usize>, Vec<u8>) {
        self.tensors.iter_mut().find(|tensor| tensor.0 == name).unwrap()
    }

    fn tensor_file(&self) -> Vec<u8> {
        let views = self
            .tensors
            .iter()
            .map(|(name, dtype, shape, bytes)| (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
        safetensors::serialize(views, None).unwrap()
    }

    fn write(&self, directory: &Path) {
        let config = serde_json::to_string(&self.config).unwrap();
        std::fs::write(directory.join("config.json"), config).unwrap();
        let file = self.file.clone().unwrap_or_else(|| self.tensor_file());
        std::fs::write(directory.join("model.safetensors"), file).unwrap();
        std::fs::write(directory.join("vocabulary.json"), &self.vocabulary).unwrap();
    }
}

/// The message for a model that was spoiled; it must name the file.
fn refused(file: &str, spoil: impl FnOnce(&mut Spoiled)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut model = sound();
    spoil(&mut model);
    model.write(directory.path());
    let error = AnyModel::open(directory.path()).expect_err("a spoiled model was read");
    let path = directory.path().join(file).display().to_string();
    assert_eq!(error.location(), Some(path.clone()), "{error}");
    let message = error.to_string();
    assert!(message.starts_with(&path) && message.contains("; "), "{message}");
    message
}

/// Asserts that the message for a spoiled model has each of the words.
macro_rules! refused {
    ($file:literal, $words:expr, $spoil:expr) => {
        let message = refused($file, $spoil);
        for word in $words {
            assert!(message.contains(word), "no {word:?} in: {message}");
        }
    };
}

const CONFIG: &str = "config.json and model.safetensors are not of one model";

#[test]
fn the_model_that_is_spoiled_here_is_sound() {
    let directory = tempfile::tempdir().unwrap();
    sound().write(directory.path());
    AnyModel::open(directory.path()).unwrap();
}

#[test]
fn tensors_of_another_model() {
    refused!("model.safetensors", ["tensor head.weight", "[4, 1]", "[2, 2]", CONFIG], |m| {
        m.tensor("head.weight").2 = vec![4, 1];
    });
    refused!("model.safetensors", ["tensor layers.0.attention.w_o", "[2, 1]", "[1, 2, 1]", CONFIG], |m| {
        m.tensor("layers.0.attention.w_o").2 = vec![2, 1];
    });
    refused!("model.safetensors", ["tensor embedding.weight", "[6]", CONFIG], |m| {
        m.tensor("embedding.weight").2 = vec![6];
    });
    refused!("model.safetensors", ["tensor layers.0.feed_forward.b2 is missing", CONFIG], |m| {
        m.tensors.retain(|tensor| tensor.0 != "layers.0.feed_forward.b2");
    });
    refused!("model.safetensors", ["tensor positions.weight has no place", CONFIG], |m| {
        m.config["max_length"] = Value::Null;
    });
    refused!("model.safetensors", ["tensor head.bias has no place", CONFIG], |m| m.config["labels"] = Value::Null);
    refused!("model.safetensors", ["tensor ../../../etc/passwd has no place", CONFIG], |m| {
        m.tensors.push(("../../../etc/passwd".to_owned(), Dtype::F64, vec![1], vec![0; 8]));
    });
    refused!("model.safetensors", ["tensor pre_feed_forward.w1 is missing", CONFIG], |m| {
        m.config["pre_feed_forward"] = json!({"hidden": 2});
    });
}

#[test]
fn numbers_of_another_kind() {
    refused!("model.safetensors", ["tensor head.bias is f32 where config.json says f64", CONFIG], |m| {
        *m.tensor("head.bias") = ("head.bias".to_owned(), Dtype::F32, vec![2], vec![0; 8]);
    });
    refused!("model.safetensors", ["is f64 where config.json says f32", CONFIG], |m| m.config["dtype"] = "f32".into());
    refused!("model.safetensors", ["tensor head.bias is i64"], |m| m.tensor("head.bias").1 = Dtype::I64);
    refused!("config.json", ["dtype \"f16\"", "only \"f32\" and \"f64\" models can be run"], |m| {
        m.config["dtype"] = "f16".into();
    });
    for (x, name) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        refused!("model.safetensors", ["tensor head.weight has", name, "at entry 3", "weights must be finite"], |m| {
            m.tensor("head.weight").3[24..].copy_from_slice(&x.to_le_bytes());
        });
    }
}

#[test]
fn files_that_are_no_tensors() {
    let whole = sound().tensor_file();
    let words = ["not a safetensors file", "it may be truncated; write or copy it again"];
    // Cut in the length, in the header, and in the numbers.
    for length in [0, 7, 8, 100, whole.len() - 1] {
        refused!("model.safetensors", words, |m| m.file = Some(whole[..length].to_vec()));
    }
    refused!("model.safetensors", words, |m| m.file = Some([whole.as_slice(), b"more"].concat()));
    // A header said to be longer than the file, than memory, and than a number.
    for length in [1 << 20, 4 << 30, u64::MAX] {
        let bytes: Vec<u8> = [&length.to_le_bytes(), &whole[8..]].concat();
        refused!("model.safetensors", words, |m| m.file = Some(bytes));
    }
}

/// A safetensors file with this header and so many bytes of numbers.
fn with_header(header: &str, numbers: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; numbers]].concat()
}

#[test]
fn headers_that_lie() {
    let words = ["not a safetensors file"];
    // Tensors that overlap, leave a hole, end before they start, or have another size than their shape.
    for (a, b) in [("[0,16]", "[8,24]"), ("[0,16]", "[24,40]"), ("[16,0]", "[0,16]"), ("[0,8]", "[8,24]")] {
        let entry = |span| format!(r#"{{"dtype":"F64","shape":[2],"data_offsets":{span}}}"#);
        let header = format!(r#"{{"head.bias":{},"layers.0.feed_forward.b2":{}}}"#, entry(a), entry(b));
        refused!("model.safetensors", words, |m| m.file = Some(with_header(&header, 40)));
    }
    // Shapes whose product overflows.
    let header = r#"{"head.bias":{"dtype":"F64","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}}"#;
    refused!("model.safetensors", words, |m| m.file = Some(with_header(header, 0)));
    // A header nested deeper than the stack.
    let deep = format!(r#"{{"a":{}"#, "[".repeat(1 << 20));
    refused!("model.safetensors", words, |m| m.file = Some(with_header(&deep, 0)));
    // A trillion words of dimension 0 fit into no bytes, and must not be given memory.
    let header = r#"{"embedding.weight":{"dtype":"F64","shape":[1000000000000,0],"data_offsets":[0,0]}}"#;
    refused!("model.safetensors", ["tensor embedding.weight has a size of 0"], |m| {
        m.file = Some(with_header(header, 0));
    });
}

#[test]
fn absurd_sizes_are_only_compared() {
    const HUGE: u64 = 1_000_000_000_000_000_000;
    refused!("model.safetensors", ["tensor embedding.weight has shape [3, 2]", "1000000000000000000"], |m| {
        m.config["d"] = HUGE.into();
    });
    refused!("model.safetensors", ["tensor positions.weight", "1000000000000000000"], |m| {
        m.config["max_length"] = HUGE.into();
    });
    for field in ["heads", "head_size"] {
        refused!("model.safetensors", ["tensor layers.0.attention.w_q", "1000000000000000000"], |m| {
            m.config["layers"][0]["attention"][field] = HUGE.into();
        });
    }
    refused!("model.safetensors", ["tensor layers.0.feed_forward.w1", "1000000000000000000"], |m| {
        m.config["layers"][0]["hidden"] = HUGE.into();
    });
    refused!("model.safetensors", ["tensor pre_feed_forward.w1"], |m| {
        m.config["pre_feed_forward"] = json!({ "hidden": HUGE });
    });
    refused!("model.safetensors", ["tensor layers.1.attention.w_q is missing"], |m| {
        let layer = m.config["layers"][0].clone();
        m.config["layers"] = vec![layer; 100_000].into();
    });
}

#[test]
fn configs_that_say_nothing_sensible() {
    let help = "see docs/format.md for what config.json holds";
    for (field, value) in
        [("d", json!(-1)), ("d", json!(1.5)), ("d", json!(1e30)), ("d", json!("2")), ("layers", json!(1))]
    {
        refused!("config.json", ["line 1 column", help], |m| m.config[field] = value);
    }
    refused!("config.json", ["missing field `d`", help], |m| {
        m.config.as_object_mut().unwrap().remove("d");
    });
    refused!("config.json", ["unknown variant `linear`", "`softmax`", help], |m| {
        m.config["layers"][0]["attention"]["kind"] = "linear".into();
    });
    refused!(
        "config.json",
        ["format \"monolayer/3\"", "this program reads \"monolayer/1\" and \"monolayer/2\""],
        |m| {
            m.config["format"] = "monolayer/3".into();
        }
    );
    refused!("config.json", ["each must be at least 1"], |m| m.config["d"] = 0.into());
    refused!("config.json", ["each must be at least 1"], |m| m.config["layers"][0]["attention"]["heads"] = 0.into());
    refused!("config.json", ["each must be at least 1"], |m| m.config["max_length"] = 0.into());
    refused!("config.json", ["each must be at least 1"], |m| m.config["pre_feed_forward"] = json!({"hidden": 0}));
    refused!("config.json", ["the label \"X\" stands twice"], |m| m.config["labels"] = json!(["X", "X"]));
    refused!("config.json", ["an empty list of labels"], |m| m.config["labels"] = json!([]));
}

#[test]
fn json_nested_deeper_than_the_stack() {
    for file in ["config.json", "vocabulary.json"] {
        for open in ["[", r#"{"a":"#] {
            let directory = tempfile::tempdir().unwrap();
            sound().write(directory.path());
            std::fs::write(directory.path().join(file), open.repeat(1 << 20)).unwrap();
            let error = AnyModel::open(directory.path()).unwrap_err().to_string();
            assert!(error.contains(file) && error.contains("; "), "{error}");
        }
    }
    // Where anything may stand, in "source".
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("config.json"), format!(r#"{{"source": {}"#, "[".repeat(1 << 20))).unwrap();
    let error = AnyModel::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("config.json: more than 64 brackets open, at byte"), "{error}");
}

#[test]
fn vocabularies_that_do_not_fit() {
    let help = "it must give each row of embedding.weight one word, from 0";
    let cases = [
        (r#"{"a": 0, "b": 1, "c": 3}"#, r#""c" has row 3 of 3"#),
        (r#"{"a": 0, "b": 1, "c": 18446744073709551615}"#, r#""c" has row 18446744073709551615 of 3"#),
        (r#"{"a": 0, "b": 1}"#, "no word for row 2"),
        (r#"{"a": 0, "b": 1, "c": 1}"#, r#""b" and "c" share row 1"#),
        (r#"{"a": 0, "b": 1, "a": 2}"#, r#"the field "a" a second time, at byte 18"#),
        (r#"{"a": 0, "b": 1, "c": -2}"#, "-2"),
        (r#"{"a": 0, "b": 1, "c": "2"}"#, r#""c" has row "2" of 3"#),
        (r#"["a", "b", "c"]"#, "it is no object of words and row numbers"),
        ("", "the end of the file where a value should be"),
    ];
    for (text, what) in cases {
        refused!("vocabulary.json", [what, help], |m| m.vocabulary = text.to_owned());
    }
}

#[test]
fn missing_files_are_named() {
    for file in ["config.json", "model.safetensors", "vocabulary.json"] {
        let directory = tempfile::tempdir().unwrap();
        sound().write(directory.path());
        std::fs::remove_file(directory.path().join(file)).unwrap();
        let error = AnyModel::open(directory.path()).unwrap_err();
        assert_eq!(error.location(), Some(directory.path().join(file).display().to_string()));
        assert!(error.to_string().contains(file), "{error}");
    }
}

proptest! {
    /// Any few bytes changed, or the end cut off: the model is refused, or it is another model and runs.
    #[test]
    fn damage_is_refused_or_harmless(
        file in prop::sample::select(vec!["config.json", "model.safetensors", "vocabulary.json"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let directory = tempfile::tempdir().unwrap();
        sound().write(directory.path());
        let path = directory.path().join(file);
        let mut bytes = std::fs::read(&path).unwrap();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(length) = cut {
            bytes.truncate(length.index(bytes.len()));
        }
        std::fs::write(&path, bytes).unwrap();
        let data = Dataset::read("data", Format::Conll, b"a X\nb Y\n\nc X\n".as_slice()).unwrap();
        if let Ok(model) = AnyModel::open(directory.path()) {
            // A word may have another name now, and numbers may overflow: errors, not panics.
            let _ = model.predict(&data);
        }
    }
}
