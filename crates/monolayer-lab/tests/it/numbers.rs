//! docs/paper.md knows every number of the paper, and docs/errata.md accuses only what is printed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use monolayer_lab::claims::{Verdict, all};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of the table "Every number": number, code, claims, words.
fn rows() -> Vec<[String; 4]> {
    let page = std::fs::read_to_string(root().join("docs/paper.md")).unwrap();
    let (_, section) = page.split_once("\n## Every number\n").expect("a section of all numbers");
    let (section, _) = section.split_once("\n## ").unwrap();
    let cells = |line: &str| line.trim_matches(['|', ' ']).split(" | ").map(str::to_owned).collect::<Vec<_>>();
    let lines = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| number |"));
    lines.map(|line| cells(line).try_into().unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// The words between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The equations of a cell such as "Lemma 3, (73) to (79)".
fn equations(cell: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for part in cell.split(", ") {
        let ends: Vec<usize> =
            part.split(" to ").filter_map(|x| x.strip_prefix('(')?.strip_suffix(')')?.parse().ok()).collect();
        match ends[..] {
            [one] => found.push(one),
            [first, last] => found.extend(first..=last),
            _ => assert!(!part.contains('('), "{part}"),
        }
    }
    found
}

#[test]
fn every_number_of_the_paper_has_a_row() {
    let rows = rows();
    let numbers: Vec<usize> = rows.iter().flat_map(|row| equations(&row[0])).collect();
    let different: BTreeSet<usize> = numbers.iter().copied().collect();
    assert_eq!(different.into_iter().collect::<Vec<_>>(), (1..=133).collect::<Vec<_>>());
    assert_eq!(numbers.len(), 133, "a number stands in two rows");
    let kinds = [
        ("Definition", 3),
        ("Theorem", 2),
        ("Lemma", 7),
        ("Corollary", 2),
        ("Remark", 2),
        ("Proposition", 1),
        ("footnote", 3),
    ];
    for (kind, count) in kinds {
        for number in 1..=count {
            let name = format!("{kind} {number}");
            let found = rows.iter().filter(|row| row[0].split(", ").any(|part| part == name)).count();
            assert_eq!(found, 1, "{name}");
        }
    }
}

#[test]
fn its_code_and_its_claims_exist() {
    let ids: BTreeSet<&str> = all().map(|claim| claim.id).collect();
    let mut named = BTreeSet::new();
    let rows = rows();
    for [number, code, claims, words] in &rows {
        for path in quoted(code) {
            assert!(root().join(path).is_file(), "{number}: there is no {path}");
        }
        for claim in quoted(claims) {
            assert!(ids.contains(claim), "{number}: there is no claim {claim}");
            named.insert(claim);
        }
        // Something is run, or a line says why not.
        let nothing = quoted(code).is_empty() && quoted(claims).is_empty();
        assert_eq!(nothing, words.starts_with("Nothing to run: "), "{number}");
        assert!(!words.is_empty(), "{number}");
    }
    // What judges a numbered statement stands beside its number.
    for claim in all().filter(|claim| claim.documented() != Some(Verdict::NotInThePaper)) {
        let on_a_corpus = claim.id.starts_with("section-5");
        assert!(on_a_corpus || named.contains(claim.id), "{} is in no row", claim.id);
    }
}

#[test]
fn errata_show_the_printed_formula() {
    let page = std::fs::read_to_string(root().join("docs/errata.md")).unwrap();
    assert!(!page.to_lowercase().contains("reconstruct"));
    for claim in all() {
        let accused = matches!(claim.documented(), Some(Verdict::HoldsAfterRepair | Verdict::FalseAsPrinted));
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", claim.id)));
        assert_eq!(accused, row.is_some(), "{}", claim.id);
        if let Some(row) = row {
            // The whole cell is the formula.
            let start = format!("| `{}` | {} | `{}` |", claim.id, claim.number, claim.printed.replace('|', "\\|"));
            assert!(row.starts_with(&start), "{row}\n{start}");
            let marked = claim.note.contains("may be the transcription's");
            assert_eq!(marked, row.contains("may be the transcription's"), "{}", claim.id);
        }
    }
}

/// The sentence under the table counts what is in it.
#[test]
fn errata_are_counted() {
    let page = std::fs::read_to_string(root().join("docs/errata.md")).unwrap();
    let of = |verdict: Verdict| all().filter(|claim| claim.documented() == Some(verdict)).count();
    let (repaired, wrong) = (of(Verdict::HoldsAfterRepair), of(Verdict::FalseAsPrinted));
    let counted = format!(
        "{} entries: {repaired} hold after a repair, {wrong} are false as printed. They come from",
        repaired + wrong
    );
    assert!(page.contains(&counted), "{counted}");
}
