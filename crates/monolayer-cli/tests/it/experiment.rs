//! `monolayer experiment` and `report` as a user runs them.

use crate::common::{Files, refused, run};
use monolayer_lab::experiment::all;

#[test]
#[ignore = "slow: tools/test --slow"]
fn every_experiment_has_a_quick_form_and_all_fit_on_one_page() {
    let files = Files::new();
    let mut runs = Vec::new();
    for experiment in all() {
        let (name, out) = (experiment.name(), files.path(experiment.name()));
        let json = run(&["experiment", name, "--quick", "--out", &out, "--json"]).json();
        assert!(json["points"].as_u64() > Some(0) && json["kept"] == 0, "{json}");
        assert!(!json["figures"].as_array().unwrap().is_empty(), "{json}");
        // What is there is not computed again.
        let again = run(&["experiment", name, "--quick", "--out", &out, "--json"]).json();
        assert_eq!((&again["kept"], &again["summary"]), (&json["points"], &json["summary"]));
        runs.push(out);
    }
    let page = files.path("page.html");
    let arguments: Vec<&str> = ["report"].into_iter().chain(runs.iter().map(String::as_str)).collect();
    let json = run(&[&arguments[..], &["--out", &page, "--json"]].concat()).json();
    assert!(json["bytes"].as_u64().unwrap() < 5_000_000, "{json}");
}

#[test]
fn what_no_experiment_can_do_is_refused() {
    let files = Files::new();
    let data = files.put("data.conll", "a X\n");
    let out = files.path("run");
    refused(&["experiment", "figure2", "--quick", "--out", &out], None, &["figure2", "figure1", "depth"]);
    refused(&["experiment", "hardmax", "--quick", "--out", &out, "--data", &data], None, &["--data"]);
    let config = files.put("config.json", "{\"layres\": [1]}");
    refused(&["experiment", "figure1", "--quick", "--out", &out, "--config", &config], None, &["layres", "layers"]);
    let config = files.put("uneven.json", "{\"layers\": [1]}");
    refused(
        &["experiment", "figure1", "--quick", "--out", &out, "--config", &config],
        None,
        &["1 numbers of layers and 3"],
    );
    assert!(!std::path::Path::new(&out).exists());
}
