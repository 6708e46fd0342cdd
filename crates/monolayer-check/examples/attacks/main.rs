//! Writes the hostile files of attacks/: `cargo run -p monolayer-check --example attacks -- attacks`.
//!
//! Every directory is a model with a dataset and `expect.json`: the verdict that the checker must come to, and words that its
//! reason must contain.

#[path = "../../tests/it/common/mod.rs"]
mod common;
mod differences;
mod hostile;
mod orderings;
#[allow(dead_code)]
#[path = "../soundness/main.rs"]
mod soundness;

use std::fs;
use std::path::{Path, PathBuf};

use common::staircase::{FUNCTION, distance, staircase};
use common::{DATA, Files, assemble, certificate, certify};
use serde_json::{Value, json};

fn main() {
    let root = PathBuf::from(std::env::args().nth(1).expect("a directory to write to"));
    tensors(&root);
    headers(&root);
    numbers(&root);
    texts(&root);
    data(&root);
    certificates(&root);
    exact(&root);
    distances(&root);
    hostile::all(&root);
    orderings::all(&root);
    differences::all(&root);
}

/// A directory with an honest model and dataset, to be spoiled.
fn start(root: &Path, name: &str, verdict: &str, says: &str) -> PathBuf {
    change(root, name, verdict, says, |_| ())
}

fn change(root: &Path, name: &str, verdict: &str, says: &str, spoil: impl FnOnce(&mut Files)) -> PathBuf {
    let dir = root.join(name);
    let mut files = Files::honest();
    spoil(&mut files);
    files.write(&dir);
    fs::write(dir.join("data.conll"), DATA).unwrap();
    fs::write(dir.join("expect.json"), format!("{}\n", json!({"verdict": verdict, "says": says}))).unwrap();
    dir
}

fn spoil(root: &Path, name: &str, file: &str, verdict: &str, says: &str, content: impl AsRef<[u8]>) {
    fs::write(start(root, name, verdict, says).join(file), content).unwrap();
}

/// Files that are cut, padded, or claim what they do not hold.
fn tensors(root: &Path) {
    let file = "model.safetensors";
    let honest = Files::honest().safetensors();
    spoil(root, "truncated-length", file, "error", "shorter than the eight bytes", &honest[..5]);
    spoil(root, "truncated-header", file, "error", "header claims", &honest[..40]);
    spoil(root, "truncated-data", file, "error", "not inside the file", &honest[..honest.len() - 3]);
    spoil(root, "bytes-after-the-end", file, "error", "bytes after the last tensor", [&honest[..], b"x"].concat());
    let length = |n: u64| [&n.to_le_bytes()[..], &honest[8..]].concat();
    spoil(root, "header-of-4-gigabytes", file, "error", "header claims 4294967295", length(u64::from(u32::MAX)));
    spoil(root, "header-of-all-bytes", file, "error", "header claims", length(u64::MAX));
    change(root, "missing-tensor", "error", "head.bias", |files| files.tensors.truncate(10));
    change(root, "stray-tensor", "error", "belongs to nothing", |files| {
        files.tensors.push(("positions.weights".into(), vec![1], vec![0.0]));
    });
    change(root, "wrong-shape", "error", "expected [2, 2]", |files| files.tensors[9].1 = vec![4]);
    change(root, "wrong-dtype", "error", "stored as F32", |files| files.config["dtype"] = json!("f64"));
    change(root, "more-units-than-numbers", "error", "expected [1000000000000000000, 2]", |files| {
        files.config["layers"][0]["hidden"] = json!(1_000_000_000_000_000_000_u64);
    });
}

/// Headers that lie about where the numbers are.
fn headers(root: &Path) {
    let file = "model.safetensors";
    let entry = |shape: &str, begin: u64, end: u64| {
        format!(r#"{{"dtype":"F32","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
    };
    let two = |a: String, b: String| assemble(&format!(r#"{{"a":{a},"b":{b}}}"#), &[0; 16]);
    spoil(root, "overlapping-tensors", file, "error", "overlaps", two(entry("[3]", 0, 12), entry("[2]", 8, 16)));
    spoil(root, "hole-between-tensors", file, "error", "hole", two(entry("[1]", 0, 4), entry("[2]", 8, 16)));
    spoil(root, "wrong-byte-count", file, "error", "takes 12", two(entry("[3]", 0, 8), entry("[2]", 8, 16)));
    spoil(root, "backward-offsets", file, "error", "not inside", two(entry("[2]", 8, 0), entry("[2]", 8, 16)));
    let huge = entry("[9223372036854775807, 4]", 0, 16);
    spoil(
        root,
        "shape-that-overflows",
        file,
        "error",
        "is not one that",
        assemble(&format!(r#"{{"a":{huge}}}"#), &[0; 16]),
    );
    let twice = format!(r#"{{"a":{0},"a":{0}}}"#, entry("[4]", 0, 16));
    spoil(root, "tensor-named-twice", file, "error", "appears twice", assemble(&twice, &[0; 16]));
    let deep = "[".repeat(2_000);
    spoil(root, "deep-header", file, "error", "not JSON", assemble(&deep, &[0; 16]));
    spoil(root, "header-not-text", file, "error", "not JSON", assemble("\u{0}\u{1}\u{2}", &[0; 16]));
}

/// Numbers that make arithmetic misbehave.
fn numbers(root: &Path) {
    change(root, "not-a-number", "error", "NaN", |files| files.tensor("head.bias")[1] = f64::NAN);
    change(root, "infinite-weight", "error", "inf", |files| files.tensor("head.bias")[1] = f64::INFINITY);
    // Sums of three numbers near 3e38, not all of one sign: infinite in one order, finite in another.
    change(root, "overflow-in-one-order", "unknown", "may overflow", |files| {
        *files.tensor("layers.0.feed_forward.b2") = vec![1.0, 1.0];
        *files.tensor("head.weight") = vec![3e38, 3e38, 3e38, -3e38];
    });
    // Scores differ by a product below 2^-149: not zero in real arithmetic, rounded to 0 or to 2^-149 in binary32.
    change(root, "subnormal-trap", "unknown", "margin", |files| {
        *files.tensor("head.weight") = vec![1e-45, 1e-45, 0.0, 0.0];
        *files.tensor("layers.0.feed_forward.w2") = vec![0.0, 0.0];
        *files.tensor("layers.0.feed_forward.b2") = vec![-0.25, -0.25];
        *files.tensor("head.bias") = vec![0.0, 0.0];
    });
    // Both labels have the same row but for a last bit, on a coordinate that rounding decides.
    change(root, "tie-of-rounding-size", "unknown", "margin", |files| {
        *files.tensor("head.weight") = vec![1.0, 0.3, f64::from(1.0_f32.next_down()), 0.3];
    });
    change(root, "one-weight-changed", "refuted", "the model gives", |files| {
        files.tensor("embedding.weight")[0] = -1.0;
    });
}

/// Text files that two readers could read two ways, or that name places.
fn texts(root: &Path) {
    spoil(root, "deep-config", "config.json", "error", "recursion", "{\"a\":".repeat(2_000));
    spoil(root, "config-not-json", "config.json", "error", "expected", "monolayer");
    let twice = r#"{"a": 0, "b": 1, "a": 1}"#;
    spoil(root, "word-named-twice", "vocabulary.json", "error", "appears twice", twice);
    spoil(root, "word-without-a-row", "vocabulary.json", "error", "has no row", r#"{"a": 0, "b": 2}"#);
    spoil(root, "word-with-a-negative-row", "vocabulary.json", "error", "has no row", r#"{"a": 0, "b": -1}"#);
    spoil(root, "unknown-word", "vocabulary.json", "error", "does not know the word \"b\"", r#"{"a": 0, "c": 1}"#);
    change(root, "zero-dimension", "error", "\"d\"", |files| files.config["d"] = json!(0));
    change(root, "other-format", "error", "monolayer/1", |files| files.config["format"] = json!("monolayer/9"));
    change(root, "label-named-twice", "error", "different strings", |files| files.config["labels"] = json!(["X", "X"]));
    // Words that look like paths are words.
    let dir = change(root, "path-names-as-words", "verified", "", |files| {
        files.vocabulary = Some(json!({"../../../../etc/passwd": 0, "/dev/zero": 1}));
    });
    fs::write(dir.join("data.conll"), "../../../../etc/passwd X\n/dev/zero Y\n").unwrap();
}

/// Datasets that do not hold what they should.
fn data(root: &Path) {
    let file = "data.conll";
    spoil(root, "one-label-flipped", file, "refuted", "wanted", "a X\nb X\n\nb Y\na X\na X\n");
    spoil(root, "label-of-no-model", file, "refuted", "is no label of the model", "a X\nb Z\n");
    spoil(root, "ragged-columns", file, "error", "columns here", "a X\nb\n");
    spoil(root, "no-labels", file, "error", "no labels", "a\nb\n");
    spoil(root, "empty-data", file, "error", "no sequence", "\n\n");
    spoil(root, "data-of-zeros", file, "error", "NUL byte", [0_u8; 64]);
}

/// Certificates that say more than is so.
fn certificates(root: &Path) {
    let labels = |right: usize, ratio: f64| json!({"kind": "labels", "arithmetic": "f32", "right": right, "undecided": [], "smallest_margin_ratio": ratio});
    let claims = |name: &str, verdict: &str, says: &str, claim: Value| {
        certify(&start(root, name, verdict, says), DATA, &json!([claim]));
    };
    let dir = start(root, "forged-token-count", "refuted", "says 6 tokens, there are 5");
    let mut counted = certificate(&dir, DATA, &json!([]));
    counted["data"]["tokens"] = json!(6);
    fs::write(dir.join("certificate.json"), counted.to_string()).unwrap();
    claims("honest", "verified", "", labels(5, 2.0));
    claims("forged-margin", "unknown", "with the claimed margin ratio", labels(5, 1e12));
    claims("forged-count", "refuted", "claims 6 tokens", labels(6, 2.0));
    claims(
        "forged-rank",
        "refuted",
        "does not have rank 2",
        json!({"kind": "rank", "tensor": "layers.0.attention.w_k", "rank": 2}),
    );
    let mapping = |log2_delta: f64| json!({"kind": "contextual-mapping", "layer": 0, "arithmetic": "real", "log2_r": 2.0, "log2_delta": log2_delta});
    claims("forged-gap", "refuted", "not delta apart", mapping(-2.0));
    claims("honest-gap", "verified", "", mapping(-12.0));
    claims("claim-of-no-kind", "unknown", "not a kind of claim that is known", json!({"kind": "wisdom"}));
    claims("claim-without-fields", "unknown", "a field is wrong", json!({"kind": "labels"}));
    certify(
        &start(root, "certificate-for-other-data", "verified", "is not the certificate's"),
        "a X\nb Y\n",
        &json!([labels(2, 2.0)]),
    );
    let dir = start(root, "certificate-for-another-model", "refuted", "the certificate is for another model");
    certify(&dir, DATA, &json!([labels(5, 2.0)]));
    let mut other = Files::honest();
    other.tensor("head.bias")[0] = 1e-3;
    other.write(&dir);
    spoil(root, "certificate-not-json", "certificate.json", "error", "EOF", "{");
    spoil(
        root,
        "certificate-field-twice",
        "certificate.json",
        "error",
        "appears twice",
        r#"{"format": 1, "format": 2}"#,
    );
}

/// Numbers as text.
fn exact(root: &Path) {
    let honest = Files::honest();
    let write = |name: &str, verdict: &str, says: &str, weights: &str| {
        let dir = root.join(name);
        honest.write_exact(&dir, weights);
        fs::write(dir.join("data.conll"), DATA).unwrap();
        fs::write(dir.join("expect.json"), format!("{}\n", json!({"verdict": verdict, "says": says}))).unwrap();
        dir
    };
    let weights = honest.weights();
    let with = |tensor: &str, field: &str, value: Value| {
        let mut weights = weights.clone();
        weights[tensor][field] = value;
        weights.to_string()
    };
    let text = weights.to_string();
    write("exact-honest", "verified", "verified in real arithmetic", &text);
    let dir = write("exact-label-flipped", "refuted", "wanted", &text);
    fs::write(dir.join("data.conll"), "a X\nb X\n\nb Y\na X\na X\n").unwrap();
    let dir = write("exact-label-of-no-model", "refuted", "is no label of the model", &text);
    fs::write(dir.join("data.conll"), "a X\nb Z\n").unwrap();
    // A third and two sixths are the same number: a tie, which goes to the first label.
    let tie = json!(["1/3", "0.1", "2/6", "1e-1"]);
    write("exact-tie", "refuted", "wanted \"Y\"", &with("head.weight", "data", tie));
    let bias = |number: &str| with("head.bias", "data", json!(["0", number]));
    write("exact-division-by-zero", "error", "divides by zero", &bias("1/0"));
    write("exact-huge-exponent", "error", "too many zeros", &bias("1e999999999"));
    write("exact-endless-exponent", "error", "too many zeros", &bias("-1E-99999999999999999999999"));
    let many = json!(["1e400000", "1e-400000", "1e400000", "1e-400000"]);
    write("exact-many-exponents", "error", "too many zeros", &with("embedding.weight", "data", many));
    write("exact-not-a-number", "error", "is not a decimal number or a fraction", &bias("NaN"));
    write("exact-infinite", "error", "is not a decimal number or a fraction", &bias("-inf"));
    write("exact-fraction-of-fractions", "error", "is not a decimal number or a fraction", &bias("1/2/3"));
    write("exact-other-digits", "error", "is not a decimal number or a fraction", &bias("\u{661}"));
    write("exact-float", "error", "not a string", &with("head.bias", "data", json!([0.5, "0"])));
    write("exact-wrong-shape", "error", "expected [2, 2]", &with("head.weight", "shape", json!([4])));
    write("exact-wrong-count", "error", "4 numbers for the shape", &with("head.weight", "shape", json!([2, 3])));
    let overflow = json!([9_223_372_036_854_775_807_u64, 4]);
    write("exact-shape-that-overflows", "error", "numbers for the shape", &with("head.weight", "shape", overflow));
    write("exact-truncated", "error", "EOF", &text[..text.len() / 2]);
    write("exact-deep", "error", "recursion", &"{\"a\":".repeat(2_000));
    write("exact-list", "error", "not an object", "[]");
    write("exact-tensor-named-twice", "error", "appears twice", r#"{"head.bias": {}, "head.bias": {}}"#);
    let dir = write("exact-without-weights", "error", "weights.json", &text);
    fs::rename(dir.join("weights.json"), dir.join("model.safetensors")).unwrap();
}

/// Claims about the distance from a function; there is no dataset.
fn distances(root: &Path) {
    let claim = |bound: f64, function: &str, length: usize| json!([{"kind": "distance", "arithmetic": "f64", "p": 2, "bound": bound, "function": function, "length": length}]);
    let write = |name: &str, verdict: &str, says: &str, claims: &Value, spoil: fn(&mut Files)| {
        let dir = root.join(name);
        let mut files = staircase();
        spoil(&mut files);
        files.write(&dir);
        certify(&dir, "", claims);
        fs::write(dir.join("expect.json"), format!("{}\n", json!({"verdict": verdict, "says": says}))).unwrap();
    };
    // Rounded, so that the files do not depend on the last bit of a sum.
    let bound = (1.01 * distance() * 1e6).round() / 1e6;
    let honest = claim(bound, FUNCTION, 2);
    write("honest-distance", "verified", "claim distance: verified", &honest, |_| ());
    write("forged-distance", "refuted", "claim distance: refuted", &claim(bound / 2.0, FUNCTION, 2), |_| ());
    write("distance-of-another-function", "refuted", "distance: refuted", &claim(bound, "x1*max(x1)", 2), |_| ());
    write("distance-of-a-changed-weight", "refuted", "distance: refuted", &honest, |files| {
        files.tensor("layers.0.feed_forward.b2")[0] += 0.25;
    });
    let deep = format!("{}x1{}", "(".repeat(30_000), ")".repeat(30_000));
    write("distance-of-a-deep-function", "unknown", "distance: unknown", &claim(1.0, &deep, 2), |_| ());
    write("distance-of-an-unknown-name", "unknown", "distance: unknown", &claim(1.0, "x1 + x2", 2), |_| ());
    write("negative-distance", "unknown", "distance: unknown", &claim(-1.0, FUNCTION, 2), |_| ());
    write("distance-of-no-function", "unknown", "distance: unknown", &claim(1e9, "log(x1 - 2)", 2), |_| ());
    write("distance-of-endless-sequences", "unknown", "distance: unknown", &claim(1.0, FUNCTION, 1 << 40), |_| ());
}
