//! The program as a user runs it.

// Every test file has a copy of its own and uses what it needs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run of the program left.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// The one JSON object on stdout.
    pub fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout));
        assert!(value.is_object(), "{value}");
        value
    }
}

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_monolayer"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn run(arguments: &[&str]) -> Run {
    let output = command(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().expect("an exit code, not a signal");
    Run { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A run with something on standard input.
pub fn run_with_input(arguments: &[&str], input: &str) -> Run {
    run_with_bytes(arguments, input.as_bytes())
}

/// A run with any bytes on standard input. It may end without having read them all.
pub fn run_with_bytes(arguments: &[&str], input: &[u8]) -> Run {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Asserts that a run could not be done: exit code 2, a message with each of the words, for people and for machines.
pub fn refused(arguments: &[&str], place: Option<&str>, words: &[&str]) {
    let people = run(arguments);
    assert_eq!((people.code, people.stdout.as_str()), (2, ""), "{arguments:?}: {}", people.stderr);
    // What was understood of the data is said before what is wrong.
    let (_, message) = people.stderr.split_once("error: ").unwrap_or_else(|| panic!("{}", people.stderr));
    let message = message.trim_end();
    assert!(!message.contains("panicked") && !message.contains("error:"), "{message}");
    for word in words {
        assert!(message.contains(word), "no {word:?} in: {message}");
    }
    let machines = run(&[arguments, &["--json"]].concat());
    let said = machines.stderr.lines().filter(|line| !line.starts_with("warning: ")).count();
    assert_eq!((machines.code, said), (2, 0), "{arguments:?}: {}", machines.stderr);
    let json = machines.json();
    let fields: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["error", "where"]);
    assert_eq!(json["error"], message);
    assert_eq!(json["where"].as_str(), place, "{message}");
}

/// A model that PyTorch wrote, for the library's tests.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../monolayer/tests/fixtures").join(name).canonicalize().unwrap()
}

/// A directory to write files to.
pub struct Files(pub tempfile::TempDir);

impl Files {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a file and gives its path.
    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The path of a file or directory, there or not.
    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// A file of JSON.
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.0.path().join(name)).unwrap()).unwrap()
    }

    /// The bytes of the files of a model directory.
    pub fn bytes(&self, model: &str) -> Vec<Vec<u8>> {
        let names = ["config.json", "model.safetensors", "vocabulary.json", "certificate.json"];
        names.map(|name| std::fs::read(self.0.path().join(model).join(name)).unwrap()).to_vec()
    }

    /// Copies a model and spoils it: `spoil` is given the path of the copy.
    pub fn copy(&self, name: &str, spoil: impl FnOnce(&Path)) -> String {
        let copy = self.0.path().join(name);
        std::fs::create_dir(&copy).unwrap();
        for entry in std::fs::read_dir(fixture(name)).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
        }
        spoil(&copy);
        copy.to_str().unwrap().to_owned()
    }
}

/// A Python with numpy: `MONOLAYER_PYTHON`, else python3.
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os("MONOLAYER_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let numpy = Command::new(&python).args(["-c", "import numpy"]).stderr(Stdio::null()).status();
    let found = numpy.is_ok_and(|status| status.success()).then_some(python);
    if found.is_none() {
        eprintln!("SKIPPED: set MONOLAYER_PYTHON to a Python with numpy to compare with the reference");
    }
    found
}

/// A file of CoNLL-2003, if `MONOLAYER_CONLL` names the directory that holds it.
pub fn conll(file: &str) -> Option<String> {
    let directory = std::env::var_os("MONOLAYER_CONLL");
    if directory.is_none() {
        eprintln!("SKIPPED: set MONOLAYER_CONLL to the directory of CoNLL-2003 to test on {file}");
    }
    Some(PathBuf::from(directory?).join(file).to_str().unwrap().to_owned())
}
