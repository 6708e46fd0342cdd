//! Every claim: its verdict is the documented one, its mutation changes it, its code exists.

use std::collections::HashSet;
use std::path::Path;

use monolayer_lab::claims::{Context, all};

#[test]
fn verdicts_are_computed_and_documented() {
    let context = Context::new(None, false).unwrap();
    let mut wrong = Vec::new();
    for claim in all() {
        let outcome = claim.outcome(&context);
        if let Ok(finding) = &outcome.finding {
            let names: HashSet<&str> = finding.numbers.iter().map(|(what, _)| *what).collect();
            assert_eq!(names.len(), finding.numbers.len(), "{}: two numbers of one name", claim.id);
            // A statement that fails as printed is shown where.
            assert_eq!(finding.printed, finding.counterexample.is_none(), "{}", claim.id);
        }
        if !outcome.agrees() {
            let found = outcome.finding.as_ref().map(|f| (f.verdict().name(), f.evidence()));
            wrong.push(format!("{}: {:?}, documented {:?}", claim.id, found, outcome.documented));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_mutation_turns_its_claim_red() {
    let context = Context { mutated: true, ..Context::new(None, false).unwrap() };
    let mut green = Vec::new();
    for claim in all() {
        // A mutated run must finish and come to another verdict: an error would be no finding.
        let outcome = claim.outcome(&context);
        let error = outcome.finding.as_ref().err().map(ToString::to_string);
        if error.is_some() || outcome.agrees() {
            green.push(format!("{} ({}): {:?} {error:?}", claim.id, claim.mutation, outcome.verdict()));
        }
    }
    assert!(green.is_empty(), "{}", green.join("\n"));
}

#[test]
fn at_least_thirty_claims_with_names_of_their_own() {
    let ids: HashSet<&str> = all().map(|claim| claim.id).collect();
    assert_eq!(ids.len(), all().count());
    assert!(ids.len() >= 30, "{}", ids.len());
}

#[test]
fn the_documentation_has_the_same_verdicts() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(package.join("../../docs/paper.md")).unwrap();
    let table = std::fs::read_to_string(package.join("src/claims/verdicts.md")).unwrap();
    assert!(page.ends_with(&table), "the last table of docs/paper.md is not src/claims/verdicts.md");
    let rows = table.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, all().count());
}

#[test]
fn the_embedded_corpus_is_the_example() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = std::fs::read_to_string(package.join("../../examples/harbor.conll")).unwrap();
    assert_eq!(monolayer_lab::example::TEXT, example);
}

#[test]
fn links_lead_to_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for claim in all() {
        let (file, item) = claim.code;
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|_| panic!("{}: no file {file}", claim.id));
        let there = ["fn ", "struct ", "enum ", "pub "].iter().any(|kind| {
            let start = format!("{kind}{item}");
            text.match_indices(&start)
                .any(|(i, _)| !text[i + start.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        assert!(there, "{}: no {item} in {file}", claim.id);
    }
}
