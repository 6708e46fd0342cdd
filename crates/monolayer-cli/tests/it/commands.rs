//! What the commands print, for people and for scripts: the fields of docs/format.md.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Files, command, conll, fixture, python, run, run_with_input};
use serde_json::{Value, json};

/// The names of the commands that the help of the program, or of a command with commands of its own, lists.
fn listed(help: &str) -> Vec<String> {
    let Some(list) = help.split("Commands:\n").nth(1) else { return vec![] };
    let list = list.split("\n\n").next().unwrap();
    // Two blanks and a name; what is wrapped stands further right.
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    names.map(|line| line.split(' ').next().unwrap().to_owned()).filter(|name| name != "help").collect()
}

/// The names of all commands, from the program's own help.
fn commands() -> Vec<String> {
    listed(&run(&["--help"]).stdout)
}

/// The groups of a help text, behind its line about usage: a line that ends with a colon, and the indented and blank lines that
/// follow it.
pub fn groups(help: &str) -> Vec<(&str, String)> {
    let mut groups: Vec<(&str, String)> = Vec::new();
    let mut inside = false;
    for line in help.lines().skip_while(|line| !line.starts_with("Usage: ")) {
        if line.is_empty() || line.starts_with(' ') {
            if let Some((_, text)) = groups.last_mut().filter(|_| inside) {
                text.push_str(line);
                text.push('\n');
            }
        } else if let Some(heading) = line.strip_suffix(':') {
            groups.push((heading, String::new()));
            inside = true;
        } else {
            inside = false;
        }
    }
    groups
}

/// Whether a line of a help text begins the entry of an option.
fn is_option(line: &&str) -> bool {
    line.starts_with("  -") || line.starts_with("      --")
}

/// Headings in their order, all options under one of them, those that are shared once, and an example.
fn has_grouped_help(command: &[&str], help: &str) {
    const ORDER: [&str; 6] =
        ["Commands", "Arguments", "What it reads", "What it does", "What it writes", "Common options"];
    // What follows is the example.
    let (options, after) = help.split_once("Example: monolayer ").unwrap_or_else(|| panic!("{command:?}: no example"));
    assert!(after.starts_with(&command.join(" ")), "{command:?}: {after}");
    let groups = groups(options);
    let places: Vec<usize> = groups
        .iter()
        .map(|(heading, _)| {
            ORDER.iter().position(|known| known == heading).unwrap_or_else(|| panic!("{command:?}: {heading}"))
        })
        .collect();
    assert!(places.is_sorted_by(|a, b| a < b), "{command:?}: {groups:?}");
    for (heading, text) in &groups {
        let count = text.lines().filter(is_option).count();
        assert_eq!(count > 0, !["Commands", "Arguments"].contains(heading), "{command:?}: {heading}: {count} options");
    }
    let grouped: usize = groups.iter().map(|(_, text)| text.lines().filter(is_option).count()).sum();
    assert_eq!(options.lines().filter(is_option).count(), grouped, "{command:?}: an option stands in no group");
    let (last, common) = groups.last().unwrap();
    assert_eq!(*last, "Common options", "{command:?}");
    for option in ["--json", "--quiet", "--verbose", "--threads", "--help"] {
        let begins = |line: &&str| is_option(line) && line.split([' ', ',']).any(|word| word == option);
        assert_eq!(common.lines().filter(begins).count(), 1, "{command:?}: {option}");
        assert_eq!(options.lines().filter(begins).count(), 1, "{command:?}: {option}");
    }
}

#[test]
fn every_command_has_help_in_groups_with_an_example() {
    let commands = commands();
    assert!(["data", "predict", "inspect", "demo", "bench"].iter().all(|c| commands.iter().any(|d| d == c)));
    let mut below = 0;
    for command in &commands {
        let help = run(&[command, "--help"]);
        assert_eq!(help.code, 0);
        has_grouped_help(&[command], &help.stdout);
        for name in listed(&help.stdout) {
            let help = run(&[command, &name, "--help"]);
            assert_eq!(help.code, 0);
            has_grouped_help(&[command, &name], &help.stdout);
            below += 1;
        }
    }
    assert!(below > 0, "bench has commands");
    // Data is read, and a model written.
    let help = run(&["memorize", "--help"]).stdout;
    let headings: Vec<&str> = groups(&help).iter().map(|(heading, _)| *heading).collect();
    assert_eq!(headings, ["Arguments", "What it reads", "What it does", "What it writes", "Common options"]);
    // The program itself, and both ways to ask.
    let help = run(&["--help"]).stdout;
    assert!(!help.contains("\nOptions:\n") && help.contains("\nCommon options:\n"), "{help}");
    assert!(run(&["data", "-h"]).stdout.len() < run(&["data", "--help"]).stdout.len());
    assert!(run(&["--version"]).stdout.starts_with("monolayer "));
}

#[test]
fn the_documentation_lists_the_commands() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `monolayer "));
    let (planned, there): (Vec<&str>, Vec<&str>) = rows.partition(|row| row.ends_with(" planned |"));
    let names = |rows: &[&str]| -> Vec<String> {
        let mut names: Vec<String> = rows.iter().map(|row| row.split([' ', '`']).next().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let mut commands = commands();
    commands.sort();
    assert_eq!(names(&there), commands);
    assert!(names(&planned).iter().all(|name| !commands.contains(name)));
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(&["completions", shell]);
        assert_eq!(script.code, 0);
        assert!(commands().iter().all(|name| script.stdout.contains(name.as_str())), "{shell}");
    }
    let Ok(mut bash) = Command::new("bash").args(["-n"]).stdin(Stdio::piped()).spawn() else { return };
    std::io::Write::write_all(&mut bash.stdin.take().unwrap(), run(&["completions", "bash"]).stdout.as_bytes())
        .unwrap();
    assert!(bash.wait().unwrap().success(), "bash does not read its completions");
}

const DATA: &str = "a X\nb Y\n\nb Y\na X\n\nb X\na X\n\nc Z\n";

#[test]
fn data_on_words() {
    let files = Files::new();
    let path = files.put("f.conll", DATA);
    let json = run(&["data", &path, "--json"]).json();
    // The third sequence contradicts the second with positions, and the first two without.
    let expected = json!({
        "sequences": 4, "tokens": 7, "vocabulary": 3, "labels": 3, "longest": 2,
        "possible_with_positions": 6, "possible_without_positions": 6,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&json[field], value, "{field}");
    }
    assert_eq!(json["conflicts_without_positions"][0]["line"], 7);
    assert!(json.get("epsilon").is_none());
    let text = run(&["data", &path]);
    assert!(text.code == 0 && text.stdout.contains("1 conflict with positions"), "{}", text.stdout);
    assert!(text.stdout.contains(&format!("{path}:7 (sequence 3, token 1)")), "{}", text.stdout);
    // From standard input, by its format.
    let lines = r#"{"tokens": ["a", "b"], "labels": ["X", "Y"]}"#;
    let json = run_with_input(&["data", "-", "--format", "jsonl", "--json"], lines).json();
    assert_eq!((&json["tokens"], &json["data"]), (&json!(2), &json!("<stdin>")));
}

#[test]
fn data_in_its_canonical_form() {
    let files = Files::new();
    let (out, columns) = (files.path("out.jsonl"), files.put("data.conll", "a X\r\nb Y\r\n\r\n\r\na Y\r\n"));
    let hash = run(&["data", &columns, "--canonical", &out, "--json"]).json()["hash"].clone();
    let text = std::fs::read_to_string(&out).unwrap();
    let lines = "{\"tokens\":[\"a\",\"b\"],\"labels\":[\"X\",\"Y\"]}\n{\"tokens\":[\"a\"],\"labels\":[\"Y\"]}\n";
    assert_eq!(text, lines);
    assert_eq!(hash, blake3::hash(lines.as_bytes()).to_hex().as_str());
    assert_eq!(run(&["data", &out, "--json"]).json()["hash"], hash);
}

#[test]
fn data_on_vectors_and_codes() {
    let files = Files::new();
    let vectors = files.put("f.jsonl", r#"{"tokens": [[3, 4], [3, 4], [0, 1], [0, -1]]}"#);
    let json = run(&["data", &vectors, "--json"]).json();
    assert_eq!((&json["vocabulary"], &json["labels"]), (&json!(3), &Value::Null));
    assert_eq!((&json["r_min"], &json["r_max"], &json["epsilon"]), (&json!(1.0), &json!(5.0), &json!(2.0)));
    let words = files.put("f.conll", DATA);
    let json = run(&["data", &words, "--embedding", "sign:16", "--json"]).json();
    assert_eq!((&json["r_min"], &json["r_max"]), (&json!(4.0), &json!(4.0)));
    assert!(json["epsilon"].as_f64().unwrap() >= 2.0);
    let task = run(&["data", "task:reverse:alphabet=2,length=3", "--json"]).json();
    assert_eq!((&task["sequences"], &task["possible_with_positions"]), (&json!(8), &json!(24)));
}

#[test]
fn predict_gives_labels_or_outputs() {
    for name in ["rank_one", "unknown_words", "hardmax_ties", "causal_vectors", "approximator"] {
        let (model, data) = (fixture(name), fixture(name).join("data.jsonl"));
        let arguments = ["predict", model.to_str().unwrap(), data.to_str().unwrap(), "--json", "-q"];
        let done = run(&arguments);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{name}");
        let json = done.json();
        let expected: Value = serde_json::from_slice(&std::fs::read(model.join("expected.json")).unwrap()).unwrap();
        if expected["labels"].is_null() {
            assert!(json["labels"].is_null());
            let lengths = |v: &Value| v.as_array().unwrap().iter().map(|s| s.as_array().unwrap().len()).collect();
            let (got, wanted): (Vec<usize>, Vec<usize>) = (lengths(&json["outputs"]), lengths(&expected["outputs"]));
            assert_eq!(got, wanted, "{name}");
        } else {
            assert_eq!(json["labels"], expected["labels"], "{name}");
            assert_eq!(json["accuracy"].as_f64(), Some(accuracy(&expected["labels"], &data)), "{name}");
        }
        let threads = run(&[arguments.as_slice(), &["--threads", "1"]].concat());
        assert_eq!(threads.stdout, done.stdout, "{name}: another result on one thread");
    }
}

/// The share of the labels of a file of JSON lines.
fn accuracy(labels: &Value, data: &Path) -> f64 {
    let text = std::fs::read_to_string(data).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let pairs: Vec<bool> = lines
        .zip(labels.as_array().unwrap())
        .flat_map(|(line, labels)| {
            let (a, b) = (line["labels"].as_array().unwrap().clone(), labels.as_array().unwrap().clone());
            a.into_iter().zip(b).map(|(a, b)| a == b).collect::<Vec<_>>()
        })
        .collect();
    pairs.iter().filter(|&&same| same).count() as f64 / pairs.len() as f64
}

#[test]
fn predict_for_people_is_a_file_of_columns() {
    let model = fixture("rank_one");
    let text =
        run_with_input(&["predict", model.to_str().unwrap(), "-", "--format", "conll"], "call L1\na L2\n\ncall L1\n");
    let lines: Vec<&str> = text.stdout.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("call\tL") && lines[1].starts_with("a\tL") && lines[2].is_empty());
    let said: Vec<&str> = text.stderr.lines().collect();
    assert!(said.len() == 2 && said[0].starts_with("<stdin>: CoNLL columns, 2 sequences, 3 tokens, "), "{said:?}");
    assert!(said[1].starts_with("accuracy "), "{said:?}");
}

#[test]
fn inspect_counts_and_ranks() {
    let model = fixture("unknown_words");
    let json = run(&["inspect", model.to_str().unwrap(), "--json"]).json();
    let tensors = json["tensors"].as_array().unwrap();
    let query = tensors.iter().find(|t| t["name"] == "layers.0.attention.w_q").unwrap();
    assert_eq!((&query["shape"], &query["ranks"]), (&json!([2, 3, 5]), &json!([3, 3])));
    let size = |t: &Value| t["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).product::<u64>();
    assert_eq!(json["parameters"].as_u64(), Some(tensors.iter().map(size).sum()));
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let files = Files::new();
    // More text than a pipe holds.
    let data = files.put("f.conll", "call\n\n".repeat(60_000));
    let model = fixture("rank_one");
    let mut child = command(&["predict", model.to_str().unwrap(), &data, "-q"]).spawn().unwrap();
    let mut first = [0; 4];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"call");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(&["completions", "bash"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("error: stdout: No space left"));
}

#[test]
fn no_color_is_honored() {
    let colored = |arguments: &[&str], no_color: &str| {
        let output = command(arguments).env("NO_COLOR", no_color).env("CLICOLOR_FORCE", "1").output().unwrap();
        [output.stdout, output.stderr].concat().contains(&0x1b)
    };
    // An empty NO_COLOR counts as none.
    assert!(colored(&["data", "--nonsense"], ""), "nothing to switch off");
    for arguments in [["data", "missing"], ["data", "--nonsense"], ["data", "--help"]] {
        assert!(!colored(&arguments, "1"), "{arguments:?}");
    }
}

#[test]
fn demo_runs() {
    let demo = run(&["demo"]);
    assert_eq!(demo.code, 0, "{}", demo.stderr);
    assert!(!demo.stdout.is_empty());
    run(&["demo", "--json"]).json();
}

#[test]
fn conll_2003_in_numbers() {
    let Some(path) = conll("eng.train") else { return };
    let json = run(&["data", &path, "--json"]).json();
    let expected = json!({
        "sequences": 14_041, "tokens": 203_621, "vocabulary": 23_623, "labels": 8, "longest": 113,
        "possible_with_positions": 203_619, "possible_without_positions": 203_350,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&json[field], value, "{field}");
    }
    assert_eq!(format!("{:.4}", json["word_majority"].as_f64().unwrap()), "0.9831");
    let conflicts = json["conflicts_with_positions"].as_array().unwrap();
    assert_eq!(conflicts.iter().map(|c| c["line"].as_u64().unwrap()).collect::<Vec<_>>(), [73_188, 151_985]);
}

#[test]
fn predict_agrees_with_numpy_on_random_models() {
    let Some(python) = python() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/compare_predict.py");
    let done = Command::new(python)
        .arg(script)
        .args([env!("CARGO_BIN_EXE_monolayer"), "--models", "12", "--seed", "2"])
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
}
