//! The tour of a model: sentences to pick, what the checker says of them, and the model's own numbers, so that the page runs
//! it on sentences that the reader types.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::Path;

use monolayer::arithmetic::kernels::Real;
use monolayer::model;
use monolayer::model::mask_file::MaskConfig;
use monolayer::{Dataset, Error, Mask, Model, Result};
use monolayer_check::{TokenVerdict, Verdict};
use serde_json::{Value, json};

use super::pack::pack;
use super::sample::{Reading, choose};

/// The model's numbers may take so many characters of the page.
const MOST_CHARACTERS: usize = 3_400_000;
/// So many other contexts of a token are shown at most.
const CONTEXTS: usize = 40;

/// How much of the model the page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of it: the page runs it on any sentence of known words.
    Whole,
    /// The rows of the words on the page.
    Words,
}

/// The data of a tour, for the page's script, and how much of the model it holds.
pub fn tour<R: Real>(directory: &Path, model: &Model<R>, data: &Dataset) -> Result<Option<(Value, Scope)>> {
    let Some(reading) = Reading::new(model, data) else { return Ok(None) };
    let chosen = choose(data);
    let mut book = Book::new(data);
    chosen.iter().for_each(|&i| {
        book.sentence(i);
    });
    let contexts = book.contexts(&reading, &chosen, model.positions.is_some());
    let certainty = certainty(directory, model, data, &chosen)?;
    let (numbers, rows, scope) = numbers(model, &reading, &book);
    let config = model::directory::config(model);
    let value = json!({
        "labels": config.labels,
        "d": config.d,
        "dtype": config.dtype,
        "maxLength": config.max_length,
        "start": config.start,
        "text": model.source.text().map(|text| json!({ "split": text.split, "end": text.end })),
        "mask": model.transformer.layers[0].attention.as_ref().map(|a| mask(&a.mask)),
        "tensors": numbers,
        "rows": rows,
        "shown": chosen.len(),
        "all": data.sequences(),
        "sentences": book.sentences,
        "contexts": contexts,
        "ids": chosen.iter().map(|&i| reading.ids[data.range(i)].to_vec()).collect::<Vec<_>>(),
        "ratios": certainty,
    });
    Ok(Some((value, scope)))
}

/// A mask for the page's script, which has no files: a matrix by its rows.
fn mask(mask: &Mask) -> Value {
    let Mask::Matrix(matrix) = mask else { return json!(MaskConfig::new(mask)) };
    let row = |place: usize| matrix.row(place).iter().map(|&entry| char::from(b'0' + entry)).collect::<String>();
    json!({ "rows": (0..matrix.size()).map(row).collect::<Vec<String>>() })
}

/// The sentences of the page, each once.
struct Book<'a> {
    data: &'a Dataset,
    sentences: Vec<Value>,
    /// Which are there, in order.
    sources: Vec<usize>,
    number: HashMap<usize, usize>,
}

impl<'a> Book<'a> {
    fn new(data: &'a Dataset) -> Self {
        Self { data, sentences: Vec::new(), sources: Vec::new(), number: HashMap::new() }
    }

    /// The number of a sentence of the dataset in the book, which takes it up if it is new.
    fn sentence(&mut self, i: usize) -> usize {
        if let Some(&number) = self.number.get(&i) {
            return number;
        }
        let words: Vec<String> = self.data.range(i).map(|t| self.data.token_text(t)).collect();
        let labels: Vec<Option<&str>> = self.data.range(i).map(|t| self.data.label(t)).collect();
        self.sentences.push(json!({ "words": words, "labels": labels }));
        self.sources.push(i);
        self.number.insert(i, self.sentences.len() - 1);
        self.sentences.len() - 1
    }

    /// For each word of a chosen sentence (at its place, where places count) the ids of its contexts in the whole dataset:
    /// `[id, sentence, place]`, in order.
    fn contexts(&mut self, reading: &Reading, chosen: &[usize], positions: bool) -> BTreeMap<String, Vec<Value>> {
        let data = self.data;
        let key = |t: usize, place: usize| (reading.words[t], if positions { place } else { 0 });
        let mut found: HashMap<(u32, usize), Vec<Place>> = HashMap::new();
        for range in chosen.iter().map(|&i| data.range(i)) {
            range.clone().for_each(|t| {
                found.entry(key(t, t - range.start)).or_default();
            });
        }
        for (i, range) in data.ranges().enumerate() {
            for t in range.clone() {
                if let Some(list) = found.get_mut(&key(t, t - range.start)) {
                    list.push((reading.ids[t], i, t - range.start));
                }
            }
        }
        let mut out = BTreeMap::new();
        for ((word, place), mut list) in found {
            list.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
            list.dedup_by(|a, b| a.0 == b.0);
            let list = thinned(list, |(_, i, _)| chosen.contains(&i));
            let name = format!("{word}:{place}");
            out.insert(name, list.into_iter().map(|(id, i, place)| json!([id, self.sentence(i), place])).collect());
        }
        out
    }
}

/// An id, and the sentence and place where it is.
type Place = (f64, usize, usize);

/// A list short enough to show: those that count, their neighbors, and an even choice of the rest.
fn thinned<T: Copy>(list: Vec<T>, counts: impl Fn(T) -> bool) -> Vec<T> {
    if list.len() <= CONTEXTS {
        return list;
    }
    let step = list.len().div_ceil(CONTEXTS / 2);
    let near = |i: usize| (i.saturating_sub(1)..=(i + 1).min(list.len() - 1)).any(|j| counts(list[j]));
    (0..list.len()).filter(|&i| i % step == 0 || near(i)).map(|i| list[i]).collect()
}

/// By sentence and token, the margin of the model's label over its error bound, as the checker has it, in the model's
/// precision; none where the bound is infinite.
fn certainty<R: Real>(
    directory: &Path,
    model: &Model<R>,
    data: &Dataset,
    chosen: &[usize],
) -> Result<Vec<Vec<Option<f64>>>> {
    let labels = &model.head.as_ref().expect("a tour has labels").labels;
    let mut file =
        tempfile::Builder::new().suffix(".jsonl").tempfile().map_err(|e| Error::io("a temporary file", e))?;
    for &i in chosen {
        let words: Vec<String> = data.range(i).map(|t| data.token_text(t)).collect();
        let found: Vec<&String> = model.trace(data, i)?.iter().map(|trace| &labels[best(&trace.scores)]).collect();
        writeln!(file, "{}", json!({ "tokens": words, "labels": found })).map_err(|e| Error::io(file.path(), e))?;
    }
    let name = file.path().to_string_lossy().into_owned();
    let fault = |e: monolayer_check::error::Error| Error::model(directory, e.what, e.help);
    let precision =
        if R::NAME == f32::NAME { monolayer_check::Precision::F32 } else { monolayer_check::Precision::F64 };
    let judged = monolayer_check::judge_tokens(directory, &name, precision).map_err(fault)?;
    let wrong = Some(Verdict::Refuted);
    let ratio = |token: &TokenVerdict| token.ratio().filter(|ratio| ratio.is_finite() && token.verdict != wrong);
    let ratios: Vec<Option<f64>> = judged.iter().map(ratio).collect();
    let mut rest = &ratios[..];
    Ok(chosen
        .iter()
        .map(|&i| {
            let (own, others) = rest.split_at(data.range(i).len());
            rest = others;
            own.to_vec()
        })
        .collect())
}

/// The first largest entry.
fn best(scores: &[f64]) -> usize {
    (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best })
}

/// The model's tensors, packed, and the row of each word of the page.
fn numbers<R: Real>(model: &Model<R>, reading: &Reading, book: &Book) -> (Value, Value, Scope) {
    let single = R::NAME == f32::NAME;
    let words = model.words.as_ref().expect("a tour has words");
    let whole = |keep: Option<&[u32]>| -> Value {
        let mut out = serde_json::Map::new();
        for (name, mut shape, data) in model::directory::tensors(model) {
            let mut data: Vec<f64> = data.iter().map(|x| x.to_f64()).collect();
            if let (true, Some(keep)) = (name == "embedding.weight", keep) {
                let d = shape[1];
                data = keep.iter().flat_map(|&row| &data[row as usize * d..(row as usize + 1) * d]).copied().collect();
                shape[0] = keep.len();
            }
            out.insert(name, pack(&shape, &data, single));
        }
        Value::Object(out)
    };
    let all = whole(None);
    let name = |row: u32| words.vocabulary.name(row).to_owned();
    let table = |rows: &[u32]| -> Value {
        rows.iter().enumerate().map(|(i, &row)| (name(row), json!([i, row]))).collect::<serde_json::Map<_, _>>().into()
    };
    let every: Vec<u32> = (0..words.vocabulary.len() as u32).collect();
    let list = table(&every);
    if all.to_string().len() + list.to_string().len() <= MOST_CHARACTERS {
        return (all, list, Scope::Whole);
    }
    let mut used: Vec<u32> = book.sources.iter().flat_map(|&i| &reading.words[book.data.range(i)]).copied().collect();
    used.extend(words.start);
    used.sort_unstable();
    used.dedup();
    (whole(Some(&used)), table(&used), Scope::Words)
}
