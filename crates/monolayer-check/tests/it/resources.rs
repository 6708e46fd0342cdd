//! Files that are made to exhaust a checker: each gets a verdict or an error in a few seconds, within little memory.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{self, DATA, Files};
use crate::soundness::random::Random;
use serde_json::{Value, json};

/// Seconds of CPU time and KiB of memory that the program may take: seconds do not depend on what else runs here.
const SECONDS: u32 = 10;
const KIB: u32 = 400_000;

fn run(dir: &Path, data: Option<&Path>, options: &[&str]) -> Output {
    let limited = format!("ulimit -t {SECONDS}; ulimit -v {KIB}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, env!("CARGO_BIN_EXE_monolayer-check")]).arg(dir);
    command.args(data).args(["--threads", "1"]).args(options).output().unwrap()
}

/// Asserts the exit code and a part of what is said.
fn says(found: &Output, code: i32, part: &str) {
    let text = String::from_utf8_lossy(&found.stdout).into_owned() + &String::from_utf8_lossy(&found.stderr);
    let short: String = text.chars().take(400).collect();
    assert_eq!(found.status.code(), Some(code), "{:?}: {short}", found.status);
    assert!(text.contains(part), "{short}");
}

fn honest() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    Files::honest().write(dir.path());
    fs::write(dir.path().join("data.conll"), DATA).unwrap();
    dir
}

#[test]
fn a_thousand_tolerances() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::honest();
    files.config["labels"] = Value::Null;
    files.vocabulary = None;
    files.tensors.retain(|(name, ..)| !name.starts_with("head") && !name.starts_with("embedding"));
    files.write(dir.path());
    let text = "{\"tokens\":[[1.0,0.0],[0.5,1.0]],\"labels\":[[1.0,0.0],[0.0,1.0]]}\n";
    let data = dir.path().join("data.jsonl");
    fs::write(&data, text).unwrap();
    let claim = |i: usize| format!(r#"{{"kind":"outputs","arithmetic":"f32","tolerance":{i}.{}}}"#, "7".repeat(740));
    let claims: Vec<String> = (100..1100).map(claim).collect();
    let empty = common::certificate(dir.path(), text, &json!([])).to_string();
    let certificate = empty.replace(r#""claims":[]"#, &format!(r#""claims":[{}]"#, claims.join(",")));
    assert!(certificate.len() > 790_000, "{}", certificate.len());
    fs::write(dir.path().join("certificate.json"), certificate).unwrap();
    says(&run(dir.path(), Some(&data), &[]), 2, "--limit claims=N raises it");
    says(&run(dir.path(), Some(&data), &["--limit", "claims=1000"]), 0, "verified");
}

#[test]
fn a_long_causal_sequence() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::honest();
    files.config["layers"][0]["attention"]["mask"] = json!("causal");
    files.write(dir.path());
    let data = dir.path().join("data.conll");
    fs::write(&data, "a X\nb Y\n".repeat(10_000)).unwrap();
    // Two different tokens make four pairs, however often they come.
    says(&run(dir.path(), Some(&data), &[]), 0, "20000 verified");
    says(&run(dir.path(), Some(&data), &["--limit", "pairs=3"]), 2, "--limit pairs=N raises it");
    // In a mask that is no prefix every pair counts.
    files.config["format"] = json!("monolayer/2");
    files.config["layers"][0]["attention"]["mask"] = json!({ "band": [20_000, 0] });
    files.write(dir.path());
    fs::write(&data, "a X\nb Y\n".repeat(20_000)).unwrap();
    says(&run(dir.path(), Some(&data), &[]), 2, "--limit pairs=N raises it");
}

#[test]
fn a_megabyte_of_labels() {
    let dir = honest();
    let data = dir.path().join("labels.conll");
    let labels = |n: usize| {
        let mut text = String::new();
        (0..n).for_each(|i| _ = write!(text, "a label{i}\n\n"));
        fs::write(&data, text).unwrap();
    };
    labels(65_536);
    says(&run(dir.path(), Some(&data), &[]), 1, "is no label of the model");
    labels(100_000);
    says(&run(dir.path(), Some(&data), &[]), 2, "--limit labels=N raises it");
}

#[test]
fn sparse_files_of_five_gigabytes() {
    for name in ["config.json", "model.safetensors", "vocabulary.json", "certificate.json", "data.conll", "data.jsonl"]
    {
        let dir = honest();
        let file = File::create(dir.path().join(name)).unwrap();
        file.set_len(5 << 30).unwrap();
        let data = dir.path().join(if name.starts_with("data") { name } else { "data.conll" });
        let limit =
            if ["config.json", "vocabulary.json", "certificate.json"].contains(&name) { "json" } else { "bytes" };
        says(&run(dir.path(), Some(&data), &[]), 2, &format!("--limit {limit}=N raises it"));
    }
}

#[test]
fn nothing_where_a_file_should_be() {
    let names = ["config.json", "model.safetensors", "vocabulary.json", "certificate.json", "data.conll", "data.jsonl"];
    for name in names {
        let data = if name.starts_with("data") { name } else { "data.conll" };
        let run = |dir: &tempfile::TempDir| run(dir.path(), Some(&dir.path().join(data)), &[]);
        let dir = honest();
        fs::write(dir.path().join(name), "").unwrap();
        says(&run(&dir), 2, name);
        let dir = honest();
        let _ = fs::remove_file(dir.path().join(name));
        fs::create_dir(dir.path().join(name)).unwrap();
        says(&run(&dir), 2, "not a regular file");
    }
}

#[test]
fn a_pipe_is_read_for_data_and_for_nothing_else() {
    for name in ["config.json", "model.safetensors", "vocabulary.json", "certificate.json"] {
        let dir = honest();
        let _ = fs::remove_file(dir.path().join(name));
        assert!(Command::new("mkfifo").arg(dir.path().join(name)).status().unwrap().success());
        says(&run(dir.path(), Some(&dir.path().join("data.conll")), &[]), 2, "not a regular file");
    }
    let dir = honest();
    let pipe = dir.path().join("pipe.conll");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, DATA)
    });
    says(&run(dir.path(), Some(&pipe), &[]), 0, "verified");
    writer.join().unwrap().unwrap();
}

#[test]
fn data_that_never_ends() {
    let dir = honest();
    let limited = format!("ulimit -t {SECONDS}; ulimit -v {KIB}; yes 'a X' | \"$0\" \"$@\"");
    let program = env!("CARGO_BIN_EXE_monolayer-check");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, program]).arg(dir.path()).args(["-", "--limit", "bytes=1000000"]);
    says(&command.output().unwrap(), 2, "--limit bytes=N raises it");
}

/// A directory with a square matrix of 2 MB, and a claim about its rank.
fn ranked(matrix: &dyn Fn(usize, usize) -> f64, rank: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::honest();
    let layer = json!({"attention": {"kind": "softmax", "heads": 1, "head_size": WIDE, "mask": "none"}, "hidden": 0});
    (files.config["d"], files.config["labels"], files.config["layers"]) = (json!(WIDE), Value::Null, json!([layer]));
    let entries: Vec<f64> = (0..WIDE * WIDE).map(|at| matrix(at / WIDE, at % WIDE)).collect();
    let tensor = |name: &str| (format!("layers.0.attention.{name}"), vec![1, WIDE, WIDE], entries.clone());
    files.tensors = ["w_q", "w_k", "w_v", "w_o"].map(tensor).to_vec();
    files.vocabulary = None;
    files.write(dir.path());
    common::certify(dir.path(), DATA, &json!([{"kind": "rank", "tensor": "layers.0.attention.w_k", "rank": rank}]));
    dir
}

const WIDE: usize = 700;

#[test]
fn the_rank_of_two_megabytes() {
    let mut random = Random(5);
    let entries: Vec<f64> = (0..WIDE * WIDE).map(|_| f64::from(random.signed() as f32)).collect();
    let full = |i: usize, j: usize| entries[i * WIDE + j];
    // The last row is twice the first one; no prime shows a rank that is not full.
    let less = |i: usize, j: usize| if i + 1 == WIDE { 2.0 * full(0, j) } else { full(i, j) };
    let check = |matrix: &dyn Fn(usize, usize) -> f64, rank: usize| run(ranked(matrix, rank).path(), None, &[]);
    says(&check(&full, WIDE), 0, "verified");
    says(&check(&full, WIDE - 1), 1, "refuted");
    // That may take too long to say, but saying so must not.
    let found = check(&less, WIDE - 1);
    assert!(matches!(found.status.code(), Some(0 | 1)), "{found:?}");
}
