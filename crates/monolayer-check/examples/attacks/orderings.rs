//! Claims about all orderings of the data's sequences: true ones, forged ones, and ones of models to which places matter.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{DATA, Files, assemble, certify};

/// Every sequence of one or two letters, in one order each.
const ALL: &str = "a X\n\nb Y\n\na X\na X\n\na X\nb Y\n\nb Y\nb Y\n";

fn claim(sequences: impl Into<Value>, all_lengths: impl Into<Value>) -> Value {
    json!({"kind": "orderings", "arithmetic": "f32", "sequences": sequences.into(), "all_lengths": all_lengths.into()})
}

/// A model directory with one claim, its data, and what must come of it.
struct Attack<'a> {
    root: &'a Path,
    name: &'a str,
    verdict: &'a str,
    says: &'a str,
}

impl Attack<'_> {
    fn write(&self, files: &Files, data: &str, claim: &Value) {
        let dir = self.root.join(self.name);
        files.write(&dir);
        fs::write(dir.join("data.conll"), data).unwrap();
        let expect = json!({"verdict": self.verdict, "says": self.says});
        fs::write(dir.join("expect.json"), format!("{expect}\n")).unwrap();
        certify(&dir, data, &json!([claim]));
    }
}

/// Writes all of them.
pub fn all(root: &Path) {
    counts(root);
    conflicts(root);
    fields(root);
    places(root);
}

/// Numbers of sequences, true and forged. [`DATA`] has two multisets, with two orders and three.
fn counts(root: &Path) {
    let honest = Files::honest();
    let write = |name: &str, verdict: &str, says: &str, data: &str, claim: Value| {
        Attack { root, name, verdict, says }.write(&honest, data, &claim);
    };
    write("orderings-honest", "verified", "5 sequences", DATA, claim("5", Value::Null));
    write("orderings-honest-without-a-count", "verified", "5 sequences", DATA, claim(Value::Null, Value::Null));
    write("orderings-honest-all", "verified", "6 sequences, all of length 1 to 2", ALL, claim("6", json!([1, 2])));
    write("orderings-count-too-high", "refuted", "another number is claimed", DATA, claim("6", Value::Null));
    write("orderings-count-in-other-digits", "refuted", "another number is claimed", DATA, claim("+5", Value::Null));
    let twice = format!("{DATA}\nb Y\na X\n");
    write("orderings-counted-twice", "refuted", "another number is claimed", &twice, claim("7", Value::Null));
    write("orderings-not-all", "refuted", "not all sequences of the lengths", DATA, claim("5", json!([2, 3])));
    write("orderings-of-other-lengths", "refuted", "not all sequences", ALL, claim("6", json!([1, 3])));
    write("orderings-of-one-length", "refuted", "not all sequences", ALL, claim("6", json!([1])));
    // The last token of DATA is not there, and the claim is that of DATA.
    let short = "a X\nb Y\n\nb Y\na X\n";
    write("orderings-without-a-token", "refuted", "another number is claimed", short, claim("5", Value::Null));
    let shorter = ALL.strip_suffix("\nb Y\nb Y\n").unwrap();
    write("orderings-without-a-sequence", "refuted", "not all", shorter, claim(Value::Null, json!([1, 2])));
    let long = "a X\nb Y\na X\na X\nb Y\nb Y\n".repeat(20);
    let many = format!("{long}\n{}", long.repeat(3));
    write("orderings-beyond-counting", "unknown", "too many to be counted", &many, claim("5", Value::Null));
}

/// Labels that cannot be those of every order.
fn conflicts(root: &Path) {
    let honest = Files::honest();
    let write = |name: &str, says: &str, data: &str, sequences: &str| {
        Attack { root, name, verdict: "refuted", says }.write(&honest, data, &claim(sequences, Value::Null));
    };
    write("orderings-conflict", "orderings: refuted", "a X\nb Y\n\na X\nb Y\n\nb X\na X\n", "2");
    write("orderings-conflict-within", "orderings: refuted", "a X\na Y\n\na X\na X\n", "1");
    write("orderings-wrong-label", "orderings: refuted", "a X\nb X\n", "2");
}

/// Claims that cannot be read.
fn fields(root: &Path) {
    let honest = Files::honest();
    let write = |name: &str, claim: Value| {
        Attack { root, name, verdict: "unknown", says: "a field is wrong" }.write(&honest, DATA, &claim);
    };
    let with = |field: &str, value: Value| {
        let mut claim = claim("5", Value::Null);
        claim[field] = value;
        claim
    };
    write("orderings-without-fields", json!({"kind": "orderings", "arithmetic": "f32"}));
    write("orderings-of-another-arithmetic", with("arithmetic", json!("bf16")));
    write("orderings-with-a-number", with("sequences", json!(5)));
    write("orderings-of-negative-lengths", with("all_lengths", json!([-1, 3])));
    // What a field of another version may restrict or promise is not known.
    write("orderings-with-another-field", with("alphabet", json!(26)));
}

/// Models to which places may matter.
fn places(root: &Path) {
    let positions = "the model has positions";
    let mask = "a layer has a mask";
    let write = |name: &str, says: &str, spoil: &dyn Fn(&mut Files)| {
        let mut files = Files::honest();
        spoil(&mut files);
        Attack { root, name, verdict: "unknown", says }.write(&files, DATA, &claim("5", Value::Null));
    };
    let at_places = |files: &mut Files, rows: [f64; 6]| {
        files.config["max_length"] = json!(3);
        files.tensors.push(("positions.weight".into(), vec![3, 2], rows.to_vec()));
    };
    write("orderings-with-positions", positions, &|files| at_places(files, [0.0, 0.0, 0.125, 0.0, 0.0, 0.125]));
    write("orderings-with-positions-of-zeros", positions, &|files| at_places(files, [0.0; 6]));
    let masked = |files: &mut Files, layer: usize, mask: Value| {
        files.config["format"] = json!("monolayer/2");
        files.config["layers"][layer]["attention"]["mask"] = mask;
    };
    write("orderings-causal", mask, &|files| masked(files, 0, json!("causal")));
    write("orderings-prefix", mask, &|files| masked(files, 0, json!({"prefix": 1})));
    // It hides nothing in the data, and still would in longer sequences.
    write("orderings-wide-band", mask, &|files| masked(files, 0, json!({"band": [9, 9]})));
    write("orderings-second-layer-causal", mask, &|files| {
        twice(files);
        masked(files, 1, json!("causal"));
    });
    let mut files = Files::honest();
    twice(&mut files);
    let honest = Attack { root, name: "orderings-honest-two-layers", verdict: "verified", says: "5 sequences" };
    honest.write(&files, DATA, &claim("5", Value::Null));
    mask_file(root);
}

/// The same layer once more, with attention alone.
fn twice(files: &mut Files) {
    let mut layer = files.config["layers"][0].clone();
    layer["hidden"] = json!(0);
    files.config["layers"].as_array_mut().unwrap().push(layer);
    let again: Vec<_> =
        files.tensors[1..5].iter().map(|t| (t.0.replace("layers.0", "layers.1"), t.1.clone(), t.2.clone())).collect();
    files.tensors.extend(again);
}

/// A mask in a file, of ones alone.
fn mask_file(root: &Path) {
    let mut files = Files::honest();
    files.config["format"] = json!("monolayer/2");
    files.config["layers"][0]["attention"]["mask"] = json!({"file": "mask.safetensors"});
    let attack = Attack { root, name: "orderings-mask-of-ones", verdict: "refuted", says: "a layer has a mask" };
    let dir = root.join(attack.name);
    fs::create_dir_all(&dir).unwrap();
    let header = r#"{"mask":{"dtype":"U8","shape":[3,3],"data_offsets":[0,9]}}"#;
    fs::write(dir.join("mask.safetensors"), assemble(header, &[1; 9])).unwrap();
    attack.write(&files, DATA, &claim("5", Value::Null));
}
