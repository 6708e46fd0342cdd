//! Arrays: safetensors with "tokens" `[N, n, d]`, or ragged "tokens" `[T, d]` with "lengths" `[N]`, and "labels".

use monolayer_core::read::{Limits, Result};

use super::tensors::{self, Raw};
use super::{Text, number, within};

/// The canonical form of a file of arrays.
pub fn canonical(content: &[u8], limits: &Limits) -> Result<String> {
    let tensors = tensors::parse(content)?;
    if let Some(name) = tensors.keys().find(|name| !["tokens", "lengths", "labels"].contains(&name.as_str())) {
        return Err(format!("a tensor named {name:?}, which is neither tokens, lengths nor labels").into());
    }
    let tokens = tensors.get("tokens").ok_or("no tensor named \"tokens\"")?;
    let (lengths, d) = shape(tokens, tensors.get("lengths"), limits)?;
    finite(tokens, "tokens")?;
    let labels = tensors.get("labels");
    if let Some(labels) = labels {
        check_labels(labels, &tokens.shape)?;
    }
    let mut text = Text::new(limits);
    let mut start = 0;
    for n in lengths {
        text.text.push_str("{\"tokens\":");
        text.list(n, |i, out| vector(tokens, (start + i) * d, d, out));
        if let Some(labels) = labels {
            let k = labels.shape.last().copied().unwrap_or(0);
            text.text.push_str(",\"labels\":");
            text.list(n, |i, out| match labels.integer(start + i) {
                // The core knows which integer is no label.
                Some(class) => out.push_str(&class.to_string()),
                None => vector(labels, (start + i) * k, k, out),
            });
        }
        start += n;
        text.end()?;
    }
    Ok(text.text)
}

fn vector(tensor: &Raw, start: usize, d: usize, out: &mut String) {
    for i in 0..d {
        out.push(if i == 0 { '[' } else { ',' });
        number::write(tensor.float(start + i).unwrap_or(0.0), out);
    }
    out.push(']');
}

/// The length of every sequence, and d.
fn shape(tokens: &Raw, lengths: Option<&Raw>, limits: &Limits) -> Result<(Vec<usize>, usize)> {
    match (tokens.shape.as_slice(), lengths) {
        (&[sequences, n, d], None) => {
            within(sequences as u128 * n as u128, "tokens", "tokens", limits.tokens)?;
            Ok((vec![n; sequences], d))
        }
        (&[total, d], Some(lengths)) if lengths.shape.len() == 1 => {
            within(total as u128, "tokens", "tokens", limits.tokens)?;
            let length = |i: usize| lengths.integer(i).and_then(|n| usize::try_from(n).ok()).filter(|&n| n > 0);
            let all: Option<Vec<usize>> = (0..lengths.shape[0]).map(length).collect();
            let all = all.ok_or("tensor \"lengths\": an entry that is no integer of at least 1")?;
            let sum = all.iter().try_fold(0_usize, |sum, &n| sum.checked_add(n));
            if sum != Some(total) {
                return Err(format!("tensor \"lengths\": they do not sum to the {total} tokens").into());
            }
            Ok((all, d))
        }
        (shape, _) => {
            let what = format!("\"tokens\" has shape {shape:?}; it must be [N, n, d], or [T, d] with \"lengths\" [N]");
            Err(what.into())
        }
    }
}

/// Refuses a tensor whose entries are no finite floats.
fn finite(tensor: &Raw, name: &str) -> Result<()> {
    let count = tensor.shape.iter().product();
    match (0..count).find(|&i| !tensor.float(i).is_some_and(f64::is_finite)) {
        Some(i) => Err(format!("tensor {name:?}: entry {i} is no finite float ({})", tensor.dtype).into()),
        None => Ok(()),
    }
}

/// Labels are an integer, or a vector, per token.
fn check_labels(labels: &Raw, tokens: &[usize]) -> Result<()> {
    let integers = labels.integer(0).is_some();
    let wanted = &tokens[..tokens.len() - 1];
    let vectors = || labels.shape.split_last().is_some_and(|(&k, each)| k > 0 && each == wanted);
    if if integers { labels.shape != wanted } else { !vectors() } {
        let more = if integers { "" } else { " with a dimension more" };
        return Err(
            format!("tensor \"labels\": {} of shape {:?}, not {wanted:?}{more}", labels.dtype, labels.shape).into()
        );
    }
    if integers { Ok(()) } else { finite(labels, "labels") }
}
