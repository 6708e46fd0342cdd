//! `monolayer claims`, as a user runs it.

use crate::common::{refused, run};
use serde_json::json;

#[test]
fn all_claims_are_as_documented() {
    let done = run(&["claims", "--json", "-q"]);
    let json = done.json();
    assert_eq!((done.code, &json["disagree"]), (0, &json!(0)), "{json:#}");
    let claims = json["claims"].as_array().unwrap();
    assert!(claims.len() >= 80, "{}", claims.len());
    let verdicts = ["holds", "holds after repair", "false as printed", "not in the paper"];
    for claim in claims {
        assert!(verdicts.contains(&claim["verdict"].as_str().unwrap()), "{claim}");
        for field in ["id", "number", "statement", "evidence", "run", "mutation"] {
            assert!(claim[field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {claim}");
        }
        // Whatever is not printed right has an example, and shows what is printed.
        let accused = claim["verdict"] == "holds after repair" || claim["verdict"] == "false as printed";
        assert_eq!(accused, claim["counterexample"].is_string(), "{claim}");
        let printed = claim["printed"].as_str().unwrap();
        assert_eq!(printed.is_empty(), claim["verdict"] == "not in the paper", "{claim}");
    }
    for verdict in verdicts {
        assert!(claims.iter().any(|claim| claim["verdict"] == verdict), "{verdict}");
    }
}

#[test]
fn some_claims_in_words() {
    let table = run(&["claims", "--only", "theorem-1"]);
    let counts = "5 statements: 2 hold, 0 hold after repair, 1 are false as printed, 2 are not in the paper";
    assert!(table.code == 0 && table.stdout.contains(counts), "{}", table.stdout);
    // A line says what is stated.
    assert!(table.stdout.contains("Theorem 1, (5): no 1-layer hardmax self-attention"), "{}", table.stdout);
    let long = run(&["claims", "--only", "equation-59", "-v"]).stdout;
    for part in [
        r"printed         \sigma_R[(z-1)/\delta] - \sigma_R[(z-1)/\delta - 1]",
        "counterexample  δ = 1/1000: -999 at −1/2",
        "mutation",
    ] {
        assert!(long.contains(part), "{part}: {long}");
    }
    refused(&["claims", "--only", "theorem-9"], None, &["no claim begins with theorem-9", "lemma-7"]);
    refused(&["claims", "--data", "/nowhere"], Some("/nowhere"), &["No such file"]);
}
