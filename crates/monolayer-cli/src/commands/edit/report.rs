//! What came of edits, for machines and for people.

use std::fmt::Write as _;
use std::path::Path;

use monolayer::edit::difference::{Change, UnitsAdded};
use monolayer::edit::{Edit, Edited, Editor, Outcome};
use serde_json::{Value, json};

use crate::output::count;

/// The fields of `--json`.
pub fn json(edits: &[Edit], edited: &Edited, editor: &Editor, out: Option<&Path>, seconds: f64) -> Value {
    let unchanged = edited.outcomes().iter().filter(|outcome| **outcome == Outcome::Unchanged).count();
    let refused: Vec<Value> = edited.refused().map(|i| refusal(i, &edits[i], &edited.outcomes()[i])).collect();
    let difference = edited.difference();
    json!({
        "edits": edits.len(),
        "made": edits.len() - unchanged - refused.len(),
        "unchanged": unchanged,
        "refused": refused,
        "units_added": edited.units_added(),
        "words_added": editor.words_added(),
        "units": difference.units,
        "spare": edited.model().spare_units(),
        "changes": difference.changes,
        "compared": (editor.compared() > 0).then(|| editor.compared()),
        "out": out,
        "seconds": seconds,
    })
}

fn refusal(i: usize, edit: &Edit, outcome: &Outcome) -> Value {
    let Outcome::Refused { why, found, needed } = outcome else { return Value::Null };
    json!({
        "edit": i, "tokens": edit.tokens, "place": edit.place, "label": edit.label,
        "why": why, "distance_found": found, "distance_needed": needed,
    })
}

/// A change in words: the word, its place from 1, the ids and the labels.
pub fn change(change: &Change, first: usize) -> String {
    let place = change.place.map_or(String::new(), |place| format!(" at place {}", place + 1 - first));
    let labels = match (&change.from, &change.to) {
        (Some(from), Some(to)) => format!("{from} -> {to}"),
        _ => "the label may change".to_owned(),
    };
    format!(
        "{}{place} with context id in [{}, {}]: {labels}",
        change.word,
        short(change.id[0], false),
        short(change.id[1], true)
    )
}

/// A number in a few digits, rounded down or up.
fn short(x: f64, up: bool) -> String {
    let scale = 1e6;
    let rounded = if up { (x * scale).ceil() } else { (x * scale).floor() } / scale;
    format!("{rounded}")
}

/// What came of edits, in words.
pub fn text(edits: &[Edit], edited: &Edited, editor: &Editor, from: &Path, out: Option<&Path>) -> String {
    let mut text = String::new();
    let first = usize::from(editor.model().config().start.is_some());
    for (edit, outcome) in edits.iter().zip(edited.outcomes()) {
        let sentence = edit.tokens.join(" ");
        let name = format!("{:?}, token {}, to {}", sentence, edit.place + 1, edit.label);
        let _ = match outcome {
            Outcome::Made { .. } if edits.len() > 20 => Ok(()),
            Outcome::Made { units } => writeln!(text, "{name}: {units} units"),
            Outcome::Unchanged => writeln!(text, "{name}: it has that label already"),
            Outcome::Refused { why, found: Some(found), needed: Some(needed) } => {
                writeln!(text, "{name}: refused: {why} (ids {found:.2e} apart, {needed:.2e} needed)")
            }
            Outcome::Refused { why, .. } => writeln!(text, "{name}: refused: {why}"),
        };
    }
    let difference = edited.difference();
    for shown in difference.changes.iter().take(20) {
        let _ = writeln!(text, "  {}", change(shown, first));
    }
    if difference.changes.len() > 20 {
        let _ = writeln!(text, "  and {} more", count(difference.changes.len() - 20));
    }
    let _ = match editor.compared() {
        0 => writeln!(text, "no data was compared: other contexts whose ids are in these intervals change, too"),
        tokens => {
            writeln!(text, "compared with {} tokens: those of other contexts keep their labels, proved", count(tokens))
        }
    };
    let where_to = match difference.units {
        UnitsAdded::Filled => format!("in spare units, of which {} are left", count(edited.model().spare_units())),
        UnitsAdded::Appended => "some of them appended: shapes have changed".to_owned(),
    };
    let _ = writeln!(text, "{} hidden units added, {where_to}", count(edited.units_added()));
    let _ = match out {
        Some(out) => writeln!(
            text,
            "next: monolayer verify {0} --against {1}\n\
             there is no certificate.json: the old one is about other weights. monolayer verify {0} DATA checks labels",
            out.display(),
            from.display()
        ),
        None => writeln!(text, "nothing was written"),
    };
    text
}
