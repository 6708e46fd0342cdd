//! Arrays: safetensors with "tokens" `[N, n, d]`, or ragged "tokens" `[T, d]` with "lengths" `[N]`, and "labels".

use super::{Alphabet, Dataset, Labels, Names, Points};
use crate::error::{Error, Result};
use crate::read::tensors::{self, Raw};

pub(super) fn parse(name: &str, content: &[u8]) -> Result<Dataset> {
    read(name, content).map_err(|what| Error::new(name, what, "see the format of array datasets"))
}

fn read(name: &str, content: &[u8]) -> std::result::Result<Dataset, String> {
    let tensors = tensors::parse(content)?;
    let tokens = tensors.get("tokens").ok_or("no tensor named \"tokens\"")?;
    let (lengths, d) = shape(tokens, tensors.get("lengths"))?;
    let mut dataset = Dataset::empty(name, Alphabet::Words(vec![]), Labels::None);
    let total: usize = lengths.iter().sum();
    for length in lengths {
        dataset.offsets.push(dataset.offsets[dataset.offsets.len() - 1] + length);
    }
    let mut points = Points::default();
    let entries = tokens.floats().map_err(|e| format!("tensor \"tokens\": {e}"))?;
    dataset.ids = entries.chunks_exact(d).map(|row| points.id(row)).collect();
    dataset.alphabet = Alphabet::Vectors { d, data: points.data };
    if let Some(labels) = tensors.get("labels") {
        let per_token = &tokens.shape[..tokens.shape.len() - 1];
        dataset.labels = read_labels(labels, per_token, total, d).map_err(|e| format!("tensor \"labels\": {e}"))?;
    }
    Ok(dataset)
}

/// The length of every sequence, and d.
fn shape(tokens: &Raw, lengths: Option<&Raw>) -> std::result::Result<(Vec<usize>, usize), String> {
    match (tokens.shape.as_slice(), lengths) {
        (&[_, _, 0] | &[_, 0], _) => Err("tokens of dimension 0".into()),
        (&[sequences, n, d], None) if n > 0 => Ok((vec![n; sequences], d)),
        (&[_, 0, _], None) => Err("sequences of length 0".into()),
        (&[total, d], Some(lengths)) if lengths.shape.len() == 1 => {
            let lengths = lengths.integers().ok_or("tensor \"lengths\": not integers")?;
            let lengths: Option<Vec<usize>> =
                lengths.iter().map(|&n| usize::try_from(n).ok().filter(|&n| n > 0)).collect();
            let lengths = lengths.ok_or("tensor \"lengths\": a length below 1")?;
            let sum = lengths.iter().try_fold(0_usize, |sum, &n| sum.checked_add(n));
            if sum != Some(total) {
                return Err(format!("tensor \"lengths\": they do not sum to the {total} tokens"));
            }
            Ok((lengths, d))
        }
        (shape, _) => {
            Err(format!("\"tokens\" has shape {shape:?}; it must be [N, n, d], or [T, d] with \"lengths\" [N]"))
        }
    }
}

fn read_labels(labels: &Raw, per_token: &[usize], total: usize, d: usize) -> std::result::Result<Labels, String> {
    if let Some(classes) = labels.integers() {
        if labels.shape != per_token {
            return Err(format!("shape {:?}, expected {per_token:?}", labels.shape));
        }
        let mut names = Names::default();
        let ids = classes.iter().map(|class| names.id(&class.to_string())).collect();
        return Ok(Labels::Classes(ids, names.names));
    }
    if labels.shape.split_last() != Some((&d, per_token)) {
        return Err(format!("shape {:?}, expected {per_token:?} and {d} for vectors", labels.shape));
    }
    let mut points = Points::default();
    let ids: Vec<u32> = labels.floats()?.chunks_exact(d).map(|row| points.id(row)).collect();
    debug_assert_eq!(ids.len(), total);
    Ok(Labels::Vectors(ids, d, points.data))
}
