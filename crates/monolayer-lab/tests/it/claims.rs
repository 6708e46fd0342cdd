//! Every claim: its verdict is the documented one, its mutation changes it, its code exists.

use std::collections::HashSet;
use std::path::Path;

use monolayer_lab::claims::{Claim, Context, Verdict, all, run};

/// Whether a verdict accuses.
fn is_negative(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::HoldsAfterRepair | Verdict::FalseAsPrinted)
}

#[test]
fn verdicts_are_computed_and_documented() {
    let context = Context::new(None, false).unwrap();
    let errata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errata.md");
    let errata = std::fs::read_to_string(errata).unwrap();
    let mut wrong = Vec::new();
    for outcome in run(&all().collect::<Vec<_>>(), &context, || ()) {
        let claim = outcome.claim;
        if let Ok(finding) = &outcome.finding {
            let names: HashSet<&str> = finding.numbers.iter().map(|(what, _)| *what).collect();
            assert_eq!(names.len(), finding.numbers.len(), "{}: two numbers of one name", claim.id);
            assert!(!names.is_empty() && finding.numbers.iter().all(|(_, x)| !x.is_nan()), "{}", claim.id);
            // A statement that fails as printed is shown where, in words with numbers.
            let shown = finding.counterexample.as_ref();
            assert_eq!(finding.verdict().is_some_and(is_negative), shown.is_some(), "{}", claim.id);
            assert!(shown.is_none_or(|text| text.contains(|c: char| c.is_ascii_digit())), "{}", claim.id);
            // docs/errata.md has the same words.
            assert!(shown.is_none_or(|text| errata.contains(&text.replace('|', "\\|"))), "{}: {shown:?}", claim.id);
        }
        if !outcome.agrees() {
            let found = outcome.finding.as_ref().map(|f| (f.verdict().map(Verdict::name), f.evidence()));
            wrong.push(format!("{}: {:?}, documented {:?}", claim.id, found, outcome.documented));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_mutation_turns_its_claim_red() {
    let context = Context { mutated: true, ..Context::new(None, false).unwrap() };
    let mut green = Vec::new();
    // A mutated run must finish and come to another verdict: an error would be no finding.
    for outcome in run(&all().collect::<Vec<_>>(), &context, || ()) {
        let (claim, error) = (outcome.claim, outcome.finding.as_ref().err().map(ToString::to_string));
        if error.is_some() || outcome.agrees() {
            green.push(format!("{} ({}): {:?} {error:?}", claim.id, claim.mutation, outcome.verdict()));
        }
    }
    assert!(green.is_empty(), "{}", green.join("\n"));
}

/// The same numbers for one thread and for many.
#[test]
fn threads_change_nothing() {
    let context = Context::new(None, false).unwrap();
    let some: Vec<&'static Claim> = all().filter(|claim| claim.id.starts_with("equation-4")).collect();
    let evidence = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let found = pool.install(|| run(&some, &context, || ()));
        found.iter().map(|o| (o.claim.id, o.finding.as_ref().unwrap().numbers.clone())).collect::<Vec<_>>()
    };
    assert!(some.len() > 4);
    assert_eq!(evidence(1), evidence(3));
}

#[test]
fn statements_show_what_is_printed() {
    let ids: HashSet<&str> = all().map(|claim| claim.id).collect();
    assert_eq!(ids.len(), all().count());
    assert!(ids.len() >= 80, "{}", ids.len());
    for claim in all() {
        let ours = claim.documented() == Some(Verdict::NotInThePaper);
        assert_eq!(claim.printed.is_empty(), ours, "{}: {:?}", claim.id, claim.printed);
        // Plain TeX, which can be searched for and pasted anywhere, and shown between backticks.
        let plain = |c: char| c == ' ' || c.is_ascii_graphic() && c != '`';
        assert!(claim.printed.chars().all(plain), "{}: {:?}", claim.id, claim.printed);
        let braces = |brace: char| claim.printed.matches(brace).count();
        assert_eq!(braces('{'), braces('}'), "{}: {:?}", claim.id, claim.printed);
        assert!(ours || claim.number.contains(|c: char| c.is_ascii_digit() || c == 'C'), "{}", claim.id);
        assert!(!claim.statement.ends_with('.') && claim.statement.chars().count() <= 140, "{}", claim.id);
    }
    // What may not be the paper's own is marked.
    assert!(all().filter(|claim| claim.note.contains("may be the transcription's")).count() >= 5);
}

#[test]
fn the_documentation_has_the_same_verdicts() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(package.join("../../docs/paper.md")).unwrap();
    let table = std::fs::read_to_string(package.join("src/claims/verdicts.md")).unwrap();
    assert!(page.ends_with(&table), "the last table of docs/paper.md is not src/claims/verdicts.md");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), all().count());
    for (claim, row) in all().zip(rows) {
        let escaped = |text: &str| text.replace('|', "\\|");
        let start = format!("| `{}` | {} | {} |", claim.id, escaped(claim.number), escaped(claim.statement));
        assert!(row.starts_with(&start), "{row}\n{start}");
    }
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
