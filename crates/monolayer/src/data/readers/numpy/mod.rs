//! NumPy files: one array of tokens (.npy), or several arrays by name (.npz).

mod npy;
mod zip;

use serde_json::Value;

use self::npy::{Entries, NumpyArray};
use super::DataOptions;
use super::safetensors_arrays;
use super::via_json_lines::{Converted, FoundData, FoundLabels, FoundSequence};
use crate::data::Dataset;
use crate::error::{Error, Location, Result};
use crate::model::tensor_file;

const TOKENS: [&str; 3] = ["tokens", "X", "input_ids"];
const LABELS: [&str; 2] = ["labels", "y"];

/// The array that tells padding from tokens.
const MASK: &str = "attention_mask";

/// Reads one array: the tokens.
pub(super) fn read_npy(name: &str, bytes: &[u8], options: &DataOptions) -> Result<FoundData> {
    let refuse = |what: String, help: &str| Error::data(Location::file(name), what, help);
    if options.tokens_from.is_some() || options.labels_from.is_some() {
        let what = format!("{name}: `tokens_from` and `labels_from` name arrays of an .npz file");
        return Err(Error::mismatch(what, "leave them out: an .npy file is one array, the tokens"));
    }
    let tokens = npy::parse(bytes).map_err(|(what, help)| refuse(what, help))?;
    let data = convert(name, &tokens, None, options)?;
    Ok(FoundData { data, tokens_from: "the array".into(), labels_from: None, notes: Vec::new() })
}

/// Reads arrays by name.
pub(super) fn read_npz(name: &str, bytes: &[u8], options: &DataOptions) -> Result<FoundData> {
    let refuse = |what: String, help: String| Error::data(Location::file(name), what, help);
    let entries =
        zip::entries(bytes).map_err(|what| refuse(format!("a damaged .npz file: {what}"), "copy it again".into()))?;
    let names: Vec<&str> = entries.iter().map(|(entry, _)| entry.strip_suffix(".npy").unwrap_or(entry)).collect();
    read_named(name, &names, |i| npy::parse(&entries[i].1), options)
}

/// Reads a safetensors file that is not just `tokens`, `lengths` and `labels`.
pub(super) fn read_tensors(name: &str, bytes: &[u8], options: &DataOptions) -> Result<FoundData> {
    let help = "write it with safetensors' save_file";
    let refuse = |what: String| Error::data(Location::file(name), format!("not a safetensors file: {what}"), help);
    let tensors = tensor_file::parse(bytes).map_err(refuse)?;
    let mut names = tensors.names();
    names.sort_unstable();
    let array = |i: usize| {
        let view = tensors.tensor(names[i]).expect("a name of the file");
        let integers = safetensors_arrays::integers(&view).map(|list| Entries::Integers(list.collect()));
        let entries =
            integers.or_else(|| safetensors_arrays::floats(&view).map(|list| Entries::Floats(list.collect())));
        let wrong = (format!("of type {}", view.dtype()), "convert it to integers or floats");
        Ok(NumpyArray { shape: view.shape().to_vec(), entries: entries.ok_or(wrong)? })
    };
    read_named(name, &names, array, options)
}

/// Reads arrays that have names.
fn read_named(
    name: &str,
    names: &[&str],
    array: impl Fn(usize) -> std::result::Result<NumpyArray, (String, &'static str)>,
    options: &DataOptions,
) -> Result<FoundData> {
    let refuse = |what: String, help: String| Error::data(Location::file(name), what, help);
    let among = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let find = |option: &str, said: Option<&str>, known: &[&str]| -> Result<Option<usize>> {
        let found: Vec<usize> = match said {
            Some("none") if !names.contains(&"none") => return Ok(None),
            Some(said) => names.iter().position(|name| *name == said).into_iter().collect(),
            None => (0..names.len()).filter(|&i| known.contains(&names[i])).collect(),
        };
        match found[..] {
            [] if said.is_some() => Err(refuse(
                format!("no array {:?} among {among}", said.unwrap_or_default()),
                format!("give another `{option}`"),
            )),
            [] => Ok(None),
            [only] => Ok(Some(only)),
            _ => Err(refuse(format!("several arrays could be it: {among}"), format!("give `{option}`"))),
        }
    };
    let tokens = find("tokens_from", options.tokens_from.as_deref(), &TOKENS)?.ok_or_else(|| {
        refuse(format!("no array of tokens among {among}"), "give `tokens_from`, and `labels_from`".into())
    })?;
    let labels = find("labels_from", options.labels_from.as_deref(), &LABELS)?;
    if labels.is_none() && options.labels_from.is_none() && names.len() > 1 {
        let other = names.iter().enumerate().find(|(i, name)| *i != tokens && **name != MASK);
        if let Some((_, other)) = other {
            let what = format!("the array {other:?} may hold the labels");
            return Err(refuse(what, format!("give `labels_from`: {other}, or none")));
        }
    }
    let array = |i: usize| array(i).map_err(|(what, help)| refuse(format!("{:?}: {what}", names[i]), help.to_owned()));
    let mask = names.iter().position(|name| *name == MASK).filter(|_| options.padding.is_none());
    if let Some(Entries::Integers(list)) = mask.map(array).transpose()?.map(|mask| mask.entries)
        && list.contains(&0)
    {
        let what = format!("{MASK:?} has zeros: sequences are filled up");
        return Err(refuse(what, "give `padding`, the token that fills them up".into()));
    }
    let data = convert(name, &array(tokens)?, labels.map(array).transpose()?.as_ref(), options)?;
    let ignored: Vec<&str> = (0..names.len()).filter(|&i| i != tokens && Some(i) != labels).map(|i| names[i]).collect();
    let notes =
        if ignored.is_empty() { vec![] } else { vec![format!("other arrays ignored ({})", ignored.join(", "))] };
    let shown = |i: usize| format!("{:?}", names[i]);
    Ok(FoundData { data, tokens_from: shown(tokens), labels_from: labels.map(shown), notes })
}

/// Sequences from arrays.
fn convert(name: &str, tokens: &NumpyArray, labels: Option<&NumpyArray>, options: &DataOptions) -> Result<Dataset> {
    let refuse = |what: String, help: &str| Err(Error::data(Location::file(name), what, help));
    let (sequences, n, d) = match (&tokens.shape[..], &tokens.entries) {
        (&[sequences, n], Entries::Integers(_) | Entries::Texts(_)) => (sequences, n, None),
        (&[sequences, n, d], Entries::Floats(_)) => (sequences, n, Some(d)),
        (shape, _) => {
            let what = format!("tokens {shape:?} of {}", tokens.kind());
            let help = "give ids or texts [N, n], or floats [N, n, d]; sequences of several lengths as JSON lines";
            return refuse(what, help);
        }
    };
    if n == 0 || sequences == 0 || d == Some(0) {
        return refuse("an empty array of tokens".into(), "give at least one sequence of one token");
    }
    finite(name, "tokens", tokens, n)?;
    labels.map_or(Ok(()), |labels| finite(name, "labels", labels, n))?;
    // How many entries a label has; none where a sequence has one label.
    let each = match labels.map(|labels| (&labels.shape[..], &labels.entries)) {
        None => None,
        Some((&[a, _], Entries::Floats(_))) if a == sequences && options.label_at.is_some() => None,
        Some((&[a, b], _)) if (a, b) == (sequences, n) => Some(None),
        Some((&[a, b, k], Entries::Floats(_))) if (a, b) == (sequences, n) => Some(Some(k)),
        Some((&[a], _)) if a == sequences => None,
        Some((shape, _)) => {
            let what = format!("labels {shape:?} of {}", labels.map_or("", NumpyArray::kind));
            let help = format!(
                "give classes or floats [{sequences}, {n}], or one per sequence [{sequences}], or floats [{sequences}, {n}, k]; \
                 floats [{sequences}, k] with `label_at`"
            );
            return refuse(what, &help);
        }
    };
    let entry = |array: &NumpyArray, i: usize, d: Option<usize>| match d {
        Some(d) => (i * d..(i + 1) * d).map(|i| array.value(i)).collect::<Vec<_>>().into(),
        None => array.value(i),
    };
    let mut converted = Converted::new(name);
    for s in 0..sequences {
        let list = |array: &NumpyArray, d| (s * n..(s + 1) * n).map(|i| entry(array, i, d)).collect::<Vec<Value>>();
        let labels = match (labels, each) {
            (None, _) => FoundLabels::None,
            (Some(labels), Some(d)) => FoundLabels::Each(list(labels, d)),
            (Some(labels), None) => FoundLabels::One(entry(labels, s, labels.shape.get(1).copied())),
        };
        converted.push(FoundSequence { tokens: list(tokens, d), labels, lines: Vec::new() });
    }
    converted.finish(options)
}

/// Refuses numbers that are not finite, where they stand.
fn finite(name: &str, what: &str, array: &NumpyArray, n: usize) -> Result<()> {
    let Entries::Floats(list) = &array.entries else { return Ok(()) };
    let Some(i) = list.iter().position(|x| !x.is_finite()) else { return Ok(()) };
    let t = i / array.shape.get(2).copied().unwrap_or(1).max(1);
    let location = Location { sequence: Some(t / n + 1), token: Some(t % n + 1), ..Location::file(name) };
    let help = "remove the sequence, or replace the number by a finite one";
    Err(Error::data(location, format!("{what} with {}", list[i]), help))
}
