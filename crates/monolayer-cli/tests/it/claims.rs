//! `monolayer claims`, as a user runs it.

use crate::common::{refused, run};
use serde_json::json;

#[test]
fn all_claims_are_as_documented() {
    let done = run(&["claims", "--json", "-q"]);
    let json = done.json();
    assert_eq!((done.code, &json["disagree"]), (0, &json!(0)), "{json:#}");
    let claims = json["claims"].as_array().unwrap();
    assert!(claims.len() >= 30, "{}", claims.len());
    let verdicts = ["holds", "holds after repair", "false as printed"];
    for claim in claims {
        assert!(verdicts.contains(&claim["verdict"].as_str().unwrap()), "{claim}");
        for field in ["id", "place", "statement", "evidence", "run", "mutation"] {
            assert!(claim[field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {claim}");
        }
        // Whatever is not printed right has an example.
        assert_eq!(claim["verdict"] == "holds", claim["counterexample"].is_null(), "{claim}");
    }
    for verdict in verdicts {
        assert!(claims.iter().any(|claim| claim["verdict"] == verdict), "{verdict}");
    }
}

#[test]
fn some_claims_in_words() {
    let table = run(&["claims", "--only", "theorem-1"]);
    assert!(
        table.code == 0 && table.stdout.contains("4 statements: 2 hold, 1 hold after repair, 1 are false"),
        "{}",
        table.stdout
    );
    let long = run(&["claims", "--only", "equation-59", "-v"]).stdout;
    assert!(long.contains("counterexample  -999 at -0.5") && long.contains("mutation"), "{long}");
    refused(&["claims", "--only", "theorem-9"], None, &["no claim begins with theorem-9", "lemma-7"]);
    refused(&["claims", "--data", "/nowhere"], Some("/nowhere"), &["No such file"]);
}
