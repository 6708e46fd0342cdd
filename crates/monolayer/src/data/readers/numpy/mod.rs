//! NumPy files: one array of tokens (.npy), or several arrays by name (.npz).

mod npy;
mod zip;

use safetensors::Dtype;
use serde_json::Value;

use self::npy::{Entries, NumpyArray};
use super::DataOptions;
use super::fill::{self, FillKind, ToldLength};
use super::json_fields::some_names;
use super::safetensors_arrays;
use super::via_json_lines::{Converted, FoundData, FoundLabels, FoundSequence};
use crate::data::Dataset;
use crate::error::{Error, Location, Result};
use crate::model::tensor_file;

const TOKENS: [&str; 3] = ["tokens", "X", "input_ids"];
const LABELS: [&str; 2] = ["labels", "y"];

/// Reads one array: the tokens.
pub(super) fn read_npy(name: &str, bytes: &[u8], options: &DataOptions) -> Result<FoundData> {
    let refuse = |what: String, help: &str| Error::data(Location::file(name), what, help);
    if options.tokens_from.is_some() || options.labels_from.is_some() {
        let what = format!("{name}: `tokens_from` and `labels_from` name arrays of an .npz file");
        return Err(Error::mismatch(what, "leave them out: an .npy file is one array, the tokens"));
    }
    let tokens = npy::parse(bytes).map_err(|(what, help)| refuse(what, help))?;
    let data = ArraySet { name, tokens: &tokens, labels: None, beside: &[] }.convert(options)?;
    Ok(FoundData { data, tokens_from: "the array".into(), labels_from: None, notes: Vec::new() })
}

/// Reads arrays by name.
pub(super) fn read_npz(name: &str, bytes: &[u8], options: &DataOptions) -> Result<FoundData> {
    let refuse = |what: String, help: String| Error::data(Location::file(name), what, help);
    let help = "copy it again; arrays that are too large to be packed can be saved with numpy.savez";
    let entries = zip::entries(bytes, options.most_bytes)
        .map_err(|what| refuse(format!("a damaged .npz file: {what}"), help.into()))?;
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
        let booleans = (view.dtype() == Dtype::BOOL).then(|| view.data().iter().map(|&bit| bit.into()).collect());
        let entries = integers
            .or_else(|| safetensors_arrays::floats(&view).map(|list| Entries::Floats(list.collect())))
            .or(booleans.map(Entries::Integers));
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
        let other = names.iter().enumerate().find(|(i, name)| *i != tokens && FillKind::of(name).is_none());
        if let Some((_, other)) = other {
            let what = format!("the array {other:?} may hold the labels");
            return Err(refuse(what, format!("give `labels_from`: {other}, or none")));
        }
    }
    let array = |i: usize| array(i).map_err(|(what, help)| refuse(format!("{:?}: {what}", names[i]), help.to_owned()));
    let (mut beside, mut ignored) = (Vec::new(), Vec::new());
    for i in (0..names.len()).filter(|&i| i != tokens && Some(i) != labels) {
        match FillKind::of(names[i]) {
            Some(kind) => beside.push((names[i], kind, array(i)?)),
            None => ignored.push(names[i].to_owned()),
        }
    }
    let (token_array, label_array) = (array(tokens)?, labels.map(array).transpose()?);
    let set = ArraySet { name, tokens: &token_array, labels: label_array.as_ref(), beside: &beside };
    let data = set.convert(options)?;
    let mut notes: Vec<String> =
        set.lengths()?.map(|(lengths, _)| format!("sequences as long as {lengths:?} says")).into_iter().collect();
    if !ignored.is_empty() {
        notes.push(format!("other arrays ignored ({})", some_names(&ignored)));
    }
    let shown = |i: usize| format!("{:?}", names[i]);
    Ok(FoundData { data, tokens_from: shown(tokens), labels_from: labels.map(shown), notes })
}

/// What an array of labels holds.
#[derive(Debug, Clone, Copy)]
enum ArrayLabels {
    /// A label for each sequence, or none at all.
    OnePerSequence,
    /// A class or a number for each token.
    Scalars,
    /// An output of so many entries for each token.
    Vectors(usize),
}

/// The arrays of a file.
struct ArraySet<'a> {
    name: &'a str,
    tokens: &'a NumpyArray,
    labels: Option<&'a NumpyArray>,
    /// Masks and lengths, with their names.
    beside: &'a [(&'a str, FillKind, NumpyArray)],
}

impl ArraySet<'_> {
    fn refuse<T>(&self, sequence: Option<usize>, what: String, help: &str) -> Result<T> {
        Err(Error::data(Location { sequence, ..Location::file(self.name) }, what, help))
    }

    /// How many tokens each sequence has, by the only array that says it, and its name.
    fn lengths(&self) -> Result<Option<(&str, Vec<usize>)>> {
        let mut all = self.beside.iter().filter(|(_, kind, _)| *kind == FillKind::Length);
        let Some((name, _, array)) = all.next() else { return Ok(None) };
        if let Some((other, ..)) = all.next() {
            return self.refuse(None, format!("both {name:?} and {other:?} are there"), "leave one of them out");
        }
        let (sequences, n) = (self.tokens.shape[0], self.tokens.shape[1]);
        let Entries::Integers(list) = &array.entries else {
            return self.refuse(None, format!("{name:?} of {}", array.kind()), "lengths are integers");
        };
        if array.shape != [sequences] {
            let what = format!("{name:?} {:?} beside {sequences} sequences", array.shape);
            return self.refuse(None, what, &format!("give them as [{sequences}], or leave the array out"));
        }
        let length = |k: i128| usize::try_from(k).ok().filter(|length| (1..=n).contains(length));
        match list.iter().position(|&k| length(k).is_none()) {
            Some(i) => {
                let help = format!("a sequence has 1 to {n} tokens here; or leave the array out");
                self.refuse(Some(i + 1), format!("{name:?} has {}", list[i]), &help)
            }
            None => Ok(Some((name, list.iter().filter_map(|&k| length(k)).collect()))),
        }
    }

    /// What the masks say of sequence `s`.
    fn told(&self, s: usize, width: usize) -> Result<Vec<ToldLength>> {
        let mut told = Vec::new();
        for (name, kind, array) in self.beside {
            let FillKind::Mask { inverted } = *kind else { continue };
            let number = |i: usize| match &array.entries {
                Entries::Integers(list) => Some(list[i] as f64),
                Entries::Floats(list) => Some(list[i]),
                Entries::Texts(_) => None,
            };
            if array.shape != [self.tokens.shape[0], width] {
                let what = format!("{name:?} {:?}, which is not the shape of the tokens", array.shape);
                return self.refuse(None, what, fill::MASK_HELP);
            }
            let length = fill::length_of_mask((s * width..(s + 1) * width).map(number), inverted, width);
            match length {
                Ok(length) => told.push(ToldLength { from: (*name).to_owned(), length, exact: true }),
                Err(what) => return self.refuse(Some(s + 1), format!("{name:?} {what}"), fill::MASK_HELP),
            }
        }
        Ok(told)
    }

    /// The sizes of the tokens: how many sequences, tokens of each, and entries of each token that is a vector.
    fn sizes(&self) -> Result<(usize, usize, Option<usize>)> {
        let (sequences, n, d) = match (&self.tokens.shape[..], &self.tokens.entries) {
            (&[sequences, n], Entries::Integers(_) | Entries::Texts(_)) => (sequences, n, None),
            (&[sequences, n, d], Entries::Floats(_)) => (sequences, n, Some(d)),
            (shape, _) => {
                let what = format!("tokens {shape:?} of {}", self.tokens.kind());
                let help = "give ids or texts [N, n], or floats [N, n, d]; sequences of several lengths as JSON lines";
                return self.refuse(None, what, help);
            }
        };
        if n == 0 || sequences == 0 || d == Some(0) {
            return self.refuse(None, "an empty array of tokens".into(), "give at least one sequence of one token");
        }
        Ok((sequences, n, d))
    }

    /// What the array of labels holds.
    fn each_label(&self, sequences: usize, n: usize, options: &DataOptions) -> Result<ArrayLabels> {
        match self.labels.map(|labels| (&labels.shape[..], &labels.entries)) {
            None => Ok(ArrayLabels::OnePerSequence),
            Some((&[a, _], Entries::Floats(_))) if a == sequences && options.label_at.is_some() => {
                Ok(ArrayLabels::OnePerSequence)
            }
            Some((&[a, b], _)) if (a, b) == (sequences, n) => Ok(ArrayLabels::Scalars),
            Some((&[a, b, k], Entries::Floats(_))) if (a, b) == (sequences, n) => Ok(ArrayLabels::Vectors(k)),
            Some((&[a], _)) if a == sequences => Ok(ArrayLabels::OnePerSequence),
            Some((shape, _)) => {
                let what = format!("labels {shape:?} of {}", self.labels.map_or("", NumpyArray::kind));
                let help = format!(
                    "give classes or floats [{sequences}, {n}], or one per sequence [{sequences}], or floats [{sequences}, {n}, k]; \
                     floats [{sequences}, k] with `label_at`"
                );
                self.refuse(None, what, &help)
            }
        }
    }

    /// Sequences from arrays.
    fn convert(&self, options: &DataOptions) -> Result<Dataset> {
        let (sequences, n, d) = self.sizes()?;
        finite(self.name, "tokens", self.tokens, n)?;
        self.labels.map_or(Ok(()), |labels| finite(self.name, "labels", labels, n))?;
        let each = self.each_label(sequences, n, options)?;
        let lengths = self.lengths()?.map(|(_, lengths)| lengths);
        let entry = |array: &NumpyArray, i: usize, d: Option<usize>| match d {
            Some(d) => (i * d..(i + 1) * d).map(|i| array.value(i)).collect::<Vec<_>>().into(),
            None => array.value(i),
        };
        let mut converted = Converted::new(self.name);
        for s in 0..sequences {
            let length = lengths.as_ref().map_or(n, |lengths| lengths[s]);
            let list =
                |array: &NumpyArray, d| (s * n..s * n + length).map(|i| entry(array, i, d)).collect::<Vec<Value>>();
            let labels = match (self.labels, each) {
                (None, _) => FoundLabels::None,
                (Some(labels), ArrayLabels::Scalars) => FoundLabels::Each(list(labels, None)),
                (Some(labels), ArrayLabels::Vectors(k)) => FoundLabels::Each(list(labels, Some(k))),
                (Some(labels), ArrayLabels::OnePerSequence) => {
                    FoundLabels::One(entry(labels, s, labels.shape.get(1).copied()))
                }
            };
            let told = self.told(s, n)?;
            converted.push(FoundSequence { tokens: list(self.tokens, d), labels, lines: Vec::new(), told });
        }
        converted.finish(options)
    }
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
