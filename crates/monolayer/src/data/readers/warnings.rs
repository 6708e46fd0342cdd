//! What looks wrong about data that was read: warnings, each with the option that would help.

use super::recognize::{name_kind, tag_like};
use super::{DataOptions, Dataset, Format};
use crate::data::Labels;

/// Fewer tokens than these tell nothing about their labels.
const FEW: usize = 4;

/// Adds warnings to a dataset.
pub(super) fn add(data: &mut Dataset, format: Format, options: &DataOptions) {
    let table = matches!(format, Format::Conll | Format::Csv | Format::Tsv);
    let (tokens, sequences) = (data.tokens(), data.sequences());
    let mut warnings = Vec::new();
    if tokens == 1 {
        let text = "use --text for a text, with --split char for one without blanks; or give `format`";
        warnings.push(format!("one token in all: if there should be more, {text}"));
    } else if sequences == tokens {
        let help = match format {
            Format::Conll => "sequences end at blank lines",
            Format::Csv | Format::Tsv => "give `sentence`, the column that tells sequences apart",
            _ => "give `tokens_from`, or `format`",
        };
        warnings.push(format!("every token is a sequence of its own: {help}"));
    }
    if let Labels::Classes { names, .. } = &data.labels {
        let words = names.names().iter().any(|name| !tag_like(name));
        if names.len() == tokens && tokens >= FEW && words {
            let option = if table { "`columns`" } else { "`labels_from`" };
            warnings.push(format!("as many labels as tokens, so they look like words: give {option}"));
        }
    }
    if table && options.columns.is_empty() {
        warnings.extend(first_line(data));
    }
    data.warnings.extend(warnings);
}

/// Whether the first token looks like a header.
fn first_line(data: &Dataset) -> Option<String> {
    let (word, label) = (data.word(0)?, data.label(0).unwrap_or_default());
    let line = data.lines.first()?;
    let named = name_kind(word).is_some() && (label.is_empty() || name_kind(label).is_some());
    let only = data.tokens() >= FEW && !label.is_empty() && !(1..data.tokens()).any(|t| data.label(t) == Some(label));
    if named {
        let columns = if label.is_empty() { word.to_owned() } else { format!("{word},{label}") };
        return Some(format!("line {line} looks like a header ({word}): if it is one, give `columns` {columns}"));
    }
    let odd = only && !tag_like(label);
    odd.then(|| {
        format!("the label {label:?} is in line {line} only: if that is a header, give `columns` {word},{label}")
    })
}
