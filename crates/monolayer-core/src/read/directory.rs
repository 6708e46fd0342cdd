//! A model directory: config.json, model.safetensors or weights.json, vocabulary.json, mask.safetensors. Every name and
//! shape is checked, and what belongs to nothing is refused.

use std::collections::BTreeSet;
use std::path::Path;

use super::json::{self, Json};
use super::tensors::{self, Tensors};
use super::{Error, Limits, Result, at, file, hash, within};
use crate::model::{Attention, Dtype, FeedForward, Head, Layer, Mask, Model, Numbers, Tensor};
use crate::number::Format;

const CONFIG: &str = "config.json";
const FLOATS: &str = "model.safetensors";
const EXACT: &str = "weights.json";
const VOCABULARY: &str = "vocabulary.json";
/// The only name that a mask's file may have.
const MASK: &str = "mask.safetensors";

/// Something for each file of a model directory: its bytes, or its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files<T> {
    /// config.json
    pub config: T,
    /// model.safetensors, or weights.json for exact numbers
    pub tensors: T,
    /// vocabulary.json, when inputs are words
    pub vocabulary: Option<T>,
    /// mask.safetensors, when a layer names it
    pub mask: Option<T>,
}

/// BLAKE3 hashes of the files of a model directory, hexadecimal.
pub type Hashes = Files<String>;

/// Reads a model directory.
pub fn open(dir: &Path, limits: &Limits) -> Result<(Model, Hashes)> {
    let there = |name: &str| dir.join(name).symlink_metadata().is_ok();
    let small = |name: &str| file(&dir.join(name), "json", limits.json);
    let config = small(CONFIG)?;
    let exact = at(dir.join(CONFIG).display(), json::parse(&config))?.get("dtype").text() == Some("exact");
    let files = Files {
        config,
        tensors: if exact { small(EXACT)? } else { file(&dir.join(FLOATS), "bytes", limits.bytes)? },
        vocabulary: there(VOCABULARY).then(|| small(VOCABULARY)).transpose()?,
        mask: there(MASK).then(|| small(MASK)).transpose()?,
    };
    let hashes = Files {
        config: hash(&files.config),
        tensors: hash(&files.tensors),
        vocabulary: files.vocabulary.as_deref().map(hash),
        mask: files.mask.as_deref().map(hash),
    };
    let model = model(&files, limits).map_err(|e| Error { place: dir.join(&e.place).display().to_string(), ..e })?;
    Ok((model, hashes))
}

/// The model in the files of a directory.
pub fn model(files: &Files<Vec<u8>>, limits: &Limits) -> Result<Model> {
    // What names no file is about config.json.
    assemble(files, limits).map_err(|e| if e.place.is_empty() { Error { place: CONFIG.into(), ..e } } else { e })
}

fn assemble(files: &Files<Vec<u8>>, limits: &Limits) -> Result<Model> {
    let config = json::parse(&files.config)?;
    let formats = "\"monolayer/1\" or \"monolayer/2\"";
    let newer = config.need("format", formats, |format| match format.text()? {
        "monolayer/1" => Some(false),
        "monolayer/2" => Some(true),
        _ => None,
    })?;
    if !newer && (config.field("start").is_some() || config.field("outputs").is_some()) {
        return Err("\"start\" and \"outputs\" are fields of \"monolayer/2\"".into());
    }
    let dtype = config.need("dtype", "\"f32\", \"f64\" or \"exact\"", |dtype| match dtype.text()? {
        "f32" => Some(Dtype::Float(Format::F32)),
        "f64" => Some(Dtype::Float(Format::F64)),
        "exact" => Some(Dtype::Exact),
        _ => None,
    })?;
    let d = config.need("d", "a positive integer", Json::positive)?;
    within(d, "coordinates of a token", "length", limits.length)?;
    let (file, found) = match dtype {
        Dtype::Float(_) => (FLOATS, tensors::safetensors(&files.tensors)),
        Dtype::Exact => (EXACT, tensors::weights(&files.tensors)),
    };
    let (found, mask) = (at(file, found)?, files.mask.as_deref().map(mask_matrix).transpose());
    let mut parts = Parts { found, file, dtype, newer, d, room: limits.dense, mask: at(MASK, mask)?, masked: false };
    let words = parts.found.get("embedding.weight").map(|raw| raw.shape[0]);
    let embedding = words.map(|rows| parts.take("embedding.weight", &[rows, d])).transpose()?;
    let vocabulary = at(VOCABULARY, vocabulary(files.vocabulary.as_deref(), words))?;
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
    let outputs = config.optional("outputs", "null or a positive integer, without labels", |k| {
        k.positive().filter(|_| labels.is_none())
    })?;
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
    let (bytes, rows) = match (bytes, rows) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err("missing, but the model has an embedding".into()),
        (Some(_), None) => return Err("a vocabulary without an embedding".into()),
        (Some(bytes), Some(rows)) => (bytes, rows),
    };
    let json = json::parse(bytes)?;
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
    let good = |(at, &entry): (usize, &u8)| entry == 1 || (entry == 0 && at / n != at % n);
    let good = raw.bytes.iter().enumerate().all(good);
    good.then(|| (n, raw.bytes.to_vec())).ok_or("an entry is not 0 or 1, or 0 on the diagonal".into())
}

/// The tensors not yet taken, and what is needed to take them.
struct Parts<'a> {
    found: Tensors<'a>,
    file: &'static str,
    dtype: Dtype,
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
        let (wanted, format) = match self.dtype {
            Dtype::Float(Format::F32) => ("F32", Format::F32),
            Dtype::Float(Format::F64) => ("F64", Format::F64),
            Dtype::Exact => ("exact", Format::F64),
        };
        let raw = self.raw(name, wanted, shape)?;
        Ok(match self.dtype {
            Dtype::Float(_) => Numbers::Floats(Tensor { shape: raw.shape, format, bytes: raw.bytes.to_vec() }),
            Dtype::Exact => Numbers::Exact(raw.shape, raw.exact),
        })
    }

    fn raw(&mut self, name: &str, dtype: &str, shape: &[usize]) -> Result<tensors::Raw<'a>> {
        let fault = match self.found.remove(name) {
            None => "missing".to_owned(),
            Some(raw) if raw.dtype != dtype => format!("stored as {}, expected {dtype}", raw.dtype),
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
        let indices = |raw: tensors::Raw| -> Option<Vec<usize>> {
            let index = |&bytes: &[u8; 4]| usize::try_from(i32::from_le_bytes(bytes)).ok();
            raw.bytes.as_chunks().0.iter().map(index).collect()
        };
        let columns = indices(self.raw(&columns, "I32", &[k])?);
        let rows = indices(self.raw(&rows, "I32", &[r.saturating_add(1)])?);
        let bytes = r.checked_mul(c).and_then(|n| n.checked_mul(values.format.width())).unwrap_or(usize::MAX);
        let dense = || {
            self.newer.then_some(()).ok_or("sparse storage is of \"monolayer/2\"")?;
            within(bytes, "bytes once dense", "dense", self.room)?;
            let (columns, rows) = columns.zip(rows).ok_or("a negative index")?;
            dense(&values, &columns, &rows, c, vec![0; bytes])
        };
        let bytes = at(place, dense())?;
        self.room -= bytes.len();
        Ok(Numbers::Floats(Tensor { shape: vec![r, c], format: values.format, bytes }))
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
        let hard = json.need("kind", "\"softmax\" or \"hardmax\"", |kind| match kind.text()? {
            "softmax" => Some(false),
            "hardmax" => Some(true),
            _ => None,
        })?;
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
        let narrow = |size: &usize| i32::try_from(*size).is_ok();
        match (mask, mask.object()) {
            (Json::Text(name), _) if name == "none" => Some(Mask::None),
            (Json::Text(name), _) if name == "causal" => Some(Mask::Causal),
            (_, Some([(kind, value)])) if self.newer => match &**kind {
                "prefix" => value.size().filter(narrow).map(Mask::Prefix),
                "band" => match value.sizes()?[..] {
                    [before, after] if narrow(&before) && narrow(&after) => Some(Mask::Band(before, after)),
                    _ => None,
                },
                "file" if value.text() == Some(MASK) => self.mask.clone().map(|(n, entries)| Mask::Matrix(n, entries)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The bytes of a matrix of `c` columns whose row i has `values[rows[i]..rows[i + 1]]` at these columns, from zeros.
fn dense(values: &Tensor, columns: &[usize], rows: &[usize], c: usize, mut matrix: Vec<u8>) -> Result<Vec<u8>> {
    let width = values.format.width();
    if rows.first() != Some(&0) || rows.last() != Some(&columns.len()) || !rows.is_sorted() {
        return Err("rows do not go from 0 to the number of values".into());
    }
    for (i, row) in rows.windows(2).enumerate() {
        let places = &columns[row[0]..row[1]];
        if !places.is_sorted_by(|a, b| a < b) || places.last().is_some_and(|&last| last >= c) {
            return Err(format!("the columns of row {i} do not rise, or are not below {c}").into());
        }
        for (k, column) in (row[0]..).zip(places) {
            let at = (i * c + column) * width;
            matrix[at..at + width].copy_from_slice(&values.bytes[k * width..(k + 1) * width]);
        }
    }
    Ok(matrix)
}
