//! Edits as people and files write them.

use std::path::Path;

use monolayer::data::Split;
use monolayer::edit::Edit;
use monolayer::{Error, Location};
use serde::Deserialize;

/// A line of a file of edits.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Line {
    Tokens { tokens: Vec<String>, place: usize, label: String },
    Set { set: String },
}

/// `SENTENCE:K=LABEL`, split at the last `:K=`.
pub fn parse(text: &str, split: Split) -> Result<Edit, Error> {
    let bad = || {
        let help = "write \"SENTENCE:K=LABEL\", K being the number of a token from 1, as in \"May sails:1=DATE\"";
        Error::setting(format!("{text:?} is no edit"), help)
    };
    let (at, token, label) = split_last(text).ok_or_else(bad)?;
    let tokens: Vec<String> = split.tokens(&text[..at]).into_iter().map(str::to_owned).collect();
    if token == 0 || tokens.is_empty() {
        return Err(bad());
    }
    Ok(Edit::new(tokens, token - 1, label))
}

/// Where the last `:K=` begins, K, and what follows.
fn split_last(text: &str) -> Option<(usize, usize, &str)> {
    text.rmatch_indices(':').find_map(|(at, _)| {
        let (number, label) = text[at + 1..].split_once('=')?;
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| number.parse().ok()).flatten().map(|token| (at, token, label))
    })
}

/// The edits of a file of JSON lines.
pub fn open(path: &Path, split: Split) -> Result<Vec<Edit>, Error> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let mut edits = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad = |what: String| {
            let location = Location {
                file: path.display().to_string(),
                line: Some(i + 1),
                column: None,
                sequence: None,
                token: None,
            };
            let help = "write {\"tokens\": [\"May\", \"sails\"], \"place\": 0, \"label\": \"DATE\"} or {\"set\": \"May sails:1=DATE\"}";
            Error::data(location, what, help)
        };
        match serde_json::from_str(line) {
            Ok(Line::Tokens { tokens, place, label }) => edits.push(Edit { tokens, place, label }),
            Ok(Line::Set { set }) => edits.push(parse(&set, split).map_err(|e| bad(e.to_string()))?),
            Err(e) => return Err(bad(format!("no edit: {e}"))),
        }
    }
    Ok(edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_place_counts() {
        let edit = parse("a:1=X b:2=Y", Split::Word).unwrap();
        assert_eq!(
            (edit.tokens.as_slice(), edit.place, edit.label.as_str()),
            (&["a:1=X".to_owned(), "b".to_owned()][..], 1, "Y")
        );
        let edit = parse("10:30 is =:3=B:x", Split::Word).unwrap();
        assert_eq!((edit.tokens.len(), edit.place, edit.label.as_str()), (3, 2, "B:x"));
        for text in ["", "a", "a:=X", "a:0=X", ":1=X", "a:-1=X", "a:1"] {
            assert!(parse(text, Split::Word).is_err(), "{text:?}");
        }
    }
}
