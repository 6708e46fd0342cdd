//! What is said of the orderings of sequences that a model covers.

use monolayer::Compiled;
use monolayer::model::certificate::Claim;
use serde_json::{Value, json};

/// How many sequences are covered, and whether they are all of some lengths.
type Covered<'a> = (Option<&'a str>, Option<(usize, usize)>);

fn claimed(compiled: &Compiled) -> Option<Covered<'_>> {
    compiled.claims().iter().find_map(|claim| match claim {
        Claim::Orderings { sequences, all_lengths, .. } => Some((sequences.as_deref(), *all_lengths)),
        _ => None,
    })
}

/// The field `orderings` of `--json`: null where nothing is claimed of other orders.
pub fn field(compiled: &Compiled) -> Value {
    claimed(compiled).map_or(Value::Null, |(sequences, all)| json!({ "sequences": sequences, "all_lengths": all }))
}

/// The row of the table about it.
pub fn row(compiled: &Compiled) -> Option<Vec<String>> {
    let (sequences, all) = claimed(compiled)?;
    let note = match all {
        Some((a, b)) if a == b => format!("sequences in any order: all sequences of length {a}"),
        Some((a, b)) => format!("sequences in any order: all sequences of length {a} to {b}"),
        None => "sequences in any order of their tokens".to_owned(),
    };
    Some(vec!["orderings".to_owned(), sequences.map_or_else(|| "> 10^30".to_owned(), grouped), note])
}

/// Digits in groups of three.
fn grouped(digits: &str) -> String {
    let first = digits.len() % 3;
    let (head, rest) = digits.split_at(first);
    let groups = rest.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    let parts: Vec<String> = Some(head.to_owned()).filter(|head| !head.is_empty()).into_iter().chain(groups).collect();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    #[test]
    fn digits_are_grouped() {
        for (digits, shown) in [("7", "7"), ("123", "123"), ("1234", "1,234"), ("22369620", "22,369,620")] {
            assert_eq!(super::grouped(digits), shown);
        }
    }
}
