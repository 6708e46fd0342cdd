//! The configurations in the repository can be read, and are what their names say.

use std::path::Path;

use monolayer_train::Options;
use monolayer_train::options::Rank;

#[test]
fn configurations_are_whole() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let options = Options::read(Some(&path), toml::Table::new()).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if let Some(layers) = name.strip_prefix("paper-") {
            let layers: usize = layers.split('-').next().unwrap().parse().unwrap();
            assert_eq!((options.layers, options.rank, options.heads, options.tied), (layers, Rank::Of(1), 1, true));
            assert!(!options.layer_norm && options.batch == 32);
        }
        names.push(name);
    }
    names.sort();
    assert_eq!(names, ["full-rank", "paper-1-layer", "paper-3-layers", "paper-6-layers"]);
}

#[test]
fn a_mistake_in_a_file_is_shown_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.toml");
    std::fs::write(&file, "layers = 1\nlearning = 3\n").unwrap();
    let message = Options::read(Some(&file), toml::Table::new()).unwrap_err().to_string();
    assert!(message.contains("run.toml") && message.contains("line 2") && message.contains("learning"), "{message}");
}
