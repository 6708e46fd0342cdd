//! A model directory: config.json, model.safetensors or weights.json, vocabulary.json, mask.safetensors. Every name and
//! shape is checked, and what belongs to nothing is refused.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::json::{self, Json};
use super::tensors::{self, Tensors};
use super::{Error, Limits, Result, at, file, hash, within};
use crate::model::{Attention, Dtype, FeedForward, Head, Layer, Mask, Model, Numbers, Sparse, Tensor};
use crate::number::Format;

const CONFIG: &str = "config.json";
const FLOATS: &str = "model.safetensors";
const EXACT: &str = "weights.json";
const VOCABULARY: &str = "vocabulary.json";
/// How the numbers of an f64 model may be stored; those of an f32 model in all but the first.
const NARROWER: [&str; 5] = ["F64", "F32", "BF16", "F16", "I8"];
/// The only name that a mask's file may have.
const MASK: &str = "mask.safetensors";

/// BLAKE3 hashes, hexadecimal, of config.json, of model.safetensors or weights.json, of vocabulary.json, and of
/// mask.safetensors, as far as they are there: as certificates list them.
pub type Hashes = [Option<String>; 4];

/// Reads a model directory.
pub fn open(dir: &Path, limits: &Limits) -> Result<(Model, Hashes)> {
    let read = |name: &str| file(&dir.join(name), "json", limits.json);
    // A link to nothing is there, and an error.
    let there = |name: &str| dir.join(name).symlink_metadata().is_ok();
    let config = read(CONFIG)?;
    let exact = at(dir.join(CONFIG).display(), json::parse(&config))?.get("dtype").text() == Some("exact");
    let numbers = if exact { read(EXACT)? } else { file(&dir.join(FLOATS), "bytes", limits.bytes)? };
    let [words, mask] = [VOCABULARY, MASK].map(|name| there(name).then(|| read(name)).transpose());
    let (words, mask) = (words?, mask?);
    let model = model([&config, &numbers], words.as_deref(), mask.as_deref(), limits);
    let model = model.map_err(|e| Error { place: dir.join(&e.place).display().to_string(), ..e })?;
    Ok((model, [Some(config), Some(numbers), words, mask].map(|bytes| bytes.as_deref().map(hash))))
}

/// The model in the bytes of config.json and of the file with its numbers, and of vocabulary.json and mask.safetensors where
/// they are there.
pub fn model(files: [&[u8]; 2], words: Option<&[u8]>, mask: Option<&[u8]>, limits: &Limits) -> Result<Model> {
    // What names no file is about config.json.
    let named = |e: Error| if e.place.is_empty() { Error { place: CONFIG.into(), ..e } } else { e };
    assemble(files, words, mask, limits).map_err(named)
}

fn assemble(files: [&[u8]; 2], words: Option<&[u8]>, mask: Option<&[u8]>, limits: &Limits) -> Result<Model> {
    let config = json::parse(files[0])?;
    let newer = config.choice("format", &[("monolayer/1", false), ("monolayer/2", true)])?;
    if !newer && (config.field("start").is_some() || config.field("outputs").is_some()) {
        return Err("\"start\" and \"outputs\" are fields of \"monolayer/2\"".into());
    }
    let [single, double] = [Format::F32, Format::F64].map(Dtype::Float);
    let (single, double) = (("f32", (single, &NARROWER[1..], FLOATS)), ("f64", (double, &NARROWER[..], FLOATS)));
    let dtypes = [single, double, ("exact", (Dtype::Exact, &["exact"], EXACT))];
    let (dtype, stored, file) = config.choice("dtype", &dtypes)?;
    let stored = if newer { stored } else { &stored[..1] };
    let d = config.need("d", "a positive integer", Json::positive)?;
    within(d, "coordinates of a token", "length", limits.length)?;
    let found =
        at(file, if dtype == Dtype::Exact { tensors::weights(files[1]) } else { tensors::safetensors(files[1]) })?;
    let (mask, room) = (at(MASK, mask.map(mask_matrix).transpose())?, limits.dense);
    let mut parts = Parts { found, file, stored, newer, d, room, mask, masked: false };
    let rows = parts.found.get("embedding.weight").map(|raw| raw.shape[0]);
    let embedding = rows.map(|rows| parts.take("embedding.weight", &[rows, d])).transpose()?;
    let vocabulary = at(VOCABULARY, vocabulary(words, rows))?;
    let row = |word: &Json| vocabulary.as_ref()?.iter().find(|(w, _)| Some(&**w) == word.text()).map(|(_, row)| *row);
    let start = config.optional("start", "a word of the vocabulary", row)?;
    let max_length = config.optional("max_length", "null or a positive integer", Json::positive)?;
    let positions = max_length.map(|n| parts.take("positions.weight", &[n, d])).transpose()?;
    let hidden = |part: &Json| part.get("hidden").positive();
    let hidden = config.optional("pre_feed_forward", "null or an object with \"hidden\" at least 1", hidden)?;
    let pre_feed_forward = hidden.map(|q| parts.feed_forward("pre_feed_forward", q)).transpose()?;
    let layers = config.need("layers", "a list", Json::list)?.iter().enumerate();
    let layers = layers.map(|(i, layer)| parts.layer(i, layer)).collect::<Result<_>>()?;
    let labels = config.optional("labels", "null or a list of different strings", labels)?;
    within(labels.as_ref().map_or(0, Vec::len), "labels", "labels", limits.labels)?;
    let outputs = |outputs: &Json| outputs.positive().filter(|_| labels.is_none());
    let outputs = config.optional("outputs", "null or a positive integer, without labels", outputs)?;
    let head = labels.as_ref().map(Vec::len).or(outputs).map(|rows| parts.head(labels, rows)).transpose()?;
    if let Some(name) = parts.found.keys().next() {
        return at(file, Err(format!("tensor {name:?} belongs to nothing in config.json").into()));
    }
    if parts.mask.is_some() && !parts.masked {
        return at(MASK, Err("no layer names it".into()));
    }
    Ok(Model { d, dtype, max_length, vocabulary, start, embedding, positions, pre_feed_forward, layers, head })
}

fn labels(names: &Json) -> Option<Vec<String>> {
    let names: Vec<String> = names.list()?.iter().map(|name| name.text().map(str::to_owned)).collect::<Option<_>>()?;
    let distinct = names.iter().collect::<BTreeSet<_>>().len();
    (distinct > 0 && distinct == names.len()).then_some(names)
}

/// Words and rows, sorted by word: each word once (JSON sees to that), each row with one word.
fn vocabulary(bytes: Option<&[u8]>, rows: Option<usize>) -> Result<Option<Vec<(String, usize)>>> {
    let Some(rows) = rows else { return bytes.map_or(Ok(None), |_| Err("a vocabulary without an embedding".into())) };
    let json = json::parse(bytes.ok_or("missing, but the model has an embedding")?)?;
    let mut owners = vec![None; rows];
    let mut words = Vec::new();
    for (word, row) in json.object().ok_or("not an object of words")? {
        let row = row.size().filter(|&row| row < rows);
        let row = row.ok_or_else(|| format!("the word {word:?} has no row: it must be an integer below {rows}"))?;
        if let Some(other) = owners[row].replace(word) {
            return Err(format!("the words {other:?} and {word:?} share row {row}").into());
        }
        words.push((word.to_string(), row));
    }
    if words.len() != rows {
        return Err(format!("{} words for the {rows} rows of embedding.weight", words.len()).into());
    }
    words.sort_unstable();
    Ok(Some(words))
}

fn mask_matrix(bytes: &[u8]) -> Result<(usize, Vec<u8>)> {
    let found = tensors::safetensors(bytes)?;
    let only = found.get("mask").filter(|raw| found.len() == 1 && raw.dtype == "U8");
    let square = only.filter(|raw| raw.shape.len() == 2 && raw.shape[0] == raw.shape[1]);
    let raw = square.ok_or("it is not one tensor \"mask\", U8 [n, n]")?;
    let n = raw.shape[0];
    let good = raw.bytes.iter().enumerate().all(|(at, &entry)| entry == 1 || (entry == 0 && at / n != at % n));
    good.then(|| (n, raw.bytes.to_vec())).ok_or("an entry is not 0 or 1, or 0 on the diagonal".into())
}

/// The tensors not yet taken, and what is needed to take them.
struct Parts<'a> {
    found: Tensors<'a>,
    file: &'static str,
    /// How numbers may be stored.
    stored: &'static [&'static str],
    /// Whether the format is monolayer/2.
    newer: bool,
    d: usize,
    /// Bytes that dense copies may still take.
    room: usize,
    mask: Option<(usize, Vec<u8>)>,
    masked: bool,
}

impl<'a> Parts<'a> {
    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Numbers> {
        let raw = self.raw(name, self.stored, shape)?;
        Ok(match raw.stored {
            Some(stored) => Numbers::Floats(Tensor::dense(raw.shape, stored, raw.bytes.to_vec())),
            None => Numbers::Exact(raw.shape, raw.exact),
        })
    }

    fn raw(&mut self, name: &str, dtypes: &[&str], shape: &[usize]) -> Result<tensors::Raw<'a>> {
        let fault = match self.found.remove(name) {
            None => "missing".to_owned(),
            Some(raw) if !dtypes.contains(&raw.dtype) => format!("stored as {}, expected {dtypes:?}", raw.dtype),
            Some(raw) if raw.shape != shape => format!("shape {:?}, expected {shape:?}", raw.shape),
            Some(raw) => return Ok(raw),
        };
        at(format!("{}, tensor {name:?}", self.file), Err(fault.into()))
    }

    /// A matrix, dense or in compressed rows.
    fn matrix(&mut self, name: &str, r: usize, c: usize) -> Result<Numbers> {
        let [values, columns, rows] = ["values", "columns", "rows"].map(|part| format!("{name}.{part}"));
        let Some(k) = self.found.get(&values).map(|raw| raw.shape[0]) else { return self.take(name, &[r, c]) };
        let place = format!("{}, sparse tensor {name:?}", self.file);
        let Numbers::Floats(values) = self.take(&values, &[k])? else { return at(place, Err("not of floats".into())) };
        let indices = |raw: tensors::Raw| -> Option<Vec<u32>> {
            let index = |&bytes: &[u8; 4]| u32::try_from(i32::from_le_bytes(bytes)).ok();
            raw.bytes.as_chunks().0.iter().map(index).collect()
        };
        let columns = indices(self.raw(&columns, &["I32"], &[k])?);
        let rows = indices(self.raw(&rows, &["I32"], &[r.saturating_add(1)])?);
        let bytes = r.checked_mul(c).and_then(|n| n.checked_mul(values.stored.width())).unwrap_or(usize::MAX);
        let sparse = || {
            self.newer.then_some(()).ok_or("sparse storage is of \"monolayer/2\"")?;
            within(bytes, "bytes once dense", "dense", self.room)?;
            let (columns, rows) = columns.zip(rows).ok_or("a negative index")?;
            compressed(columns, rows, c)
        };
        let sparse = Some(Arc::new(at(place, sparse())?));
        self.room -= bytes;
        Ok(Numbers::Floats(Tensor { shape: vec![r, c], stored: values.stored, bytes: values.bytes, sparse }))
    }

    fn feed_forward(&mut self, name: &str, q: usize) -> Result<FeedForward> {
        Ok(FeedForward {
            hidden: q,
            w1: self.matrix(&format!("{name}.w1"), q, self.d)?,
            b1: self.take(&format!("{name}.b1"), &[q])?,
            w2: self.matrix(&format!("{name}.w2"), self.d, q)?,
            b2: self.take(&format!("{name}.b2"), &[self.d])?,
        })
    }

    fn head(&mut self, labels: Option<Vec<String>>, rows: usize) -> Result<Head> {
        let weight = self.take("head.weight", &[rows, self.d])?;
        Ok(Head { labels, weight, bias: self.take("head.bias", &[rows])? })
    }

    fn layer(&mut self, i: usize, layer: &Json) -> Result<Layer> {
        let hidden = layer.need("hidden", "a size", Json::size)?;
        let name = format!("layers.{i}.feed_forward");
        let attention = match layer.get("attention") {
            Json::Null => None,
            part => Some(self.attention(&format!("layers.{i}.attention"), part)?),
        };
        Ok(Layer { attention, feed_forward: (hidden > 0).then(|| self.feed_forward(&name, hidden)).transpose()? })
    }

    fn attention(&mut self, name: &str, json: &Json) -> Result<Attention> {
        let hard = json.choice("kind", &[("softmax", false), ("hardmax", true)])?;
        let heads = json.need("heads", "a positive integer", Json::positive)?;
        let size = json.need("head_size", "a positive integer", Json::positive)?;
        let mask = json.need("mask", "a mask of this format", |mask| self.visible(mask))?;
        if let Mask::Matrix(_, entries) = &mask {
            within(entries.len(), "bytes of a mask", "dense", self.room)?;
            self.room -= entries.len();
            self.masked = true;
        }
        let d = self.d;
        let mut part = |part: &str, shape: [usize; 3]| self.take(&format!("{name}.{part}"), &shape);
        let [w_q, w_k, w_v] = ["w_q", "w_k", "w_v"].map(|name| part(name, [heads, size, d]));
        Ok(Attention { hard, heads, size, mask, w_q: w_q?, w_k: w_k?, w_v: w_v?, w_o: part("w_o", [heads, d, size])? })
    }

    /// Who sees whom.
    fn visible(&self, mask: &Json) -> Option<Mask> {
        match (mask.text(), mask.object()) {
            (Some("none"), _) => Some(Mask::None),
            (Some("causal"), _) => Some(Mask::Causal),
            (_, Some([(kind, value)])) if self.newer => match (&**kind, value.size(), value.sizes().as_deref()) {
                ("prefix", Some(k), _) => Some(Mask::Prefix(k)),
                ("band", _, Some(&[before, after])) => Some(Mask::Band(before, after)),
                ("file", ..) if value.text() == Some(MASK) => self.mask.clone().map(|(n, m)| Mask::Matrix(n, m)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Compressed rows of a matrix of `c` columns, once everything about them is right.
fn compressed(columns: Vec<u32>, rows: Vec<u32>, c: usize) -> Result<Sparse> {
    if rows.first() != Some(&0) || rows.last().map(|end| *end as usize) != Some(columns.len()) || !rows.is_sorted() {
        return Err("rows do not go from 0 to the number of values".into());
    }
    for (i, row) in rows.windows(2).enumerate() {
        let places = &columns[row[0] as usize..row[1] as usize];
        if !places.is_sorted_by(|a, b| a < b) || places.last().is_some_and(|&last| last as usize >= c) {
            return Err(format!("the columns of row {i} do not rise, or are not below {c}").into());
        }
    }
    Ok(Sparse { columns, rows })
}
