//! A model directory: config.json, model.safetensors or weights.json, vocabulary.json, mask.safetensors. Every name and
//! shape is checked, and what belongs to nothing is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::json::{self, Json};
use super::safetensors::{self, Raw, Stored};
use super::{Error, Limits, Result, exact, file, hash, within};
use crate::model::{Attention, Dtype, FeedForward, Head, Layer, Mask, Model, Numbers, Tensor};
use crate::number::Format;

const CONFIG: &str = "config.json";
const VOCABULARY: &str = "vocabulary.json";
/// The only name that a mask's file may have.
const MASK: &str = "mask.safetensors";

/// The most that a prefix or a band may be.
const WIDEST: usize = i32::MAX as usize;

/// BLAKE3 hashes of the files of a model directory, hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hashes {
    /// config.json
    pub config: String,
    /// model.safetensors or weights.json
    pub tensors: String,
    /// vocabulary.json, when inputs are words
    pub vocabulary: Option<String>,
    /// mask.safetensors, when a layer names it
    pub mask: Option<String>,
}

/// The bytes of the files of a model directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    /// config.json
    pub config: Vec<u8>,
    /// model.safetensors, or weights.json for exact numbers
    pub numbers: Vec<u8>,
    /// vocabulary.json, if there is one
    pub vocabulary: Option<Vec<u8>>,
    /// mask.safetensors, if a layer names it
    pub mask: Option<Vec<u8>>,
}

/// Reads a model directory.
pub fn open(dir: &Path, limits: &Limits) -> Result<(Model, Hashes)> {
    let files = Files::read(dir, limits)?;
    Ok((
        files.model(limits).map_err(|e| Error { place: dir.join(&e.place).display().to_string(), ..e })?,
        files.hashes(),
    ))
}

impl Files {
    /// The files of a directory that a model of this config.json needs.
    pub fn read(dir: &Path, limits: &Limits) -> Result<Self> {
        let config = file(&dir.join(CONFIG), "config", limits.config)?;
        let json = json::parse(&config).map_err(|e| e.at(dir.join(CONFIG).display()))?;
        let (numbers, name, limit) = match numbers_file(&json) {
            numbers @ "weights.json" => (numbers, "weights", limits.weights),
            numbers => (numbers, "tensors", limits.tensors),
        };
        let masked = |layer: &Json| layer.get("attention").get("mask").field("file").is_some();
        let masked = json.get("layers").list().is_some_and(|layers| layers.iter().any(masked));
        let numbers = file(&dir.join(numbers), name, limit)?;
        let words = dir.join(VOCABULARY);
        // A link to nothing is there, and an error.
        let has_words = words.symlink_metadata().is_ok();
        let vocabulary = has_words.then(|| file(&words, "vocabulary", limits.vocabulary)).transpose()?;
        let mask = masked.then(|| file(&dir.join(MASK), "mask", limits.mask)).transpose()?;
        Ok(Self { config, numbers, vocabulary, mask })
    }

    /// Their hashes.
    pub fn hashes(&self) -> Hashes {
        Hashes {
            config: hash(&self.config),
            tensors: hash(&self.numbers),
            vocabulary: self.vocabulary.as_deref().map(hash),
            mask: self.mask.as_deref().map(hash),
        }
    }

    /// The model in them.
    pub fn model(&self, limits: &Limits) -> Result<Model> {
        let json = json::parse(&self.config).map_err(|e| e.at(CONFIG))?;
        let config = Config::parse(&json, limits).map_err(|e| e.at(CONFIG))?;
        let mask = self.mask.as_deref().map(|bytes| mask_matrix(bytes).map_err(|e| e.at(MASK))).transpose()?;
        let numbers = numbers_file(&json);
        let found = match config.dtype {
            Dtype::Exact => exact::parse(&self.numbers, limits).map(|found| {
                found.into_iter().map(|(name, (shape, data))| (name, Found::Exact(shape, data))).collect()
            }),
            Dtype::Float(_) => safetensors::parse(&self.numbers)
                .map(|found| found.into_iter().map(|(name, raw)| (name, Found::Raw(raw))).collect()),
        };
        let found = found.map_err(|e| e.at(numbers))?;
        let room = limits.dense;
        let tensors = Tensors { found, dtype: config.dtype, newer: config.newer, room, file: numbers, mask };
        config.model(tensors, self.vocabulary.as_deref())
    }
}

fn numbers_file(config: &Json) -> &'static str {
    if config.get("dtype").text() == Some("exact") { "weights.json" } else { "model.safetensors" }
}

/// What config.json says of the whole model.
struct Config<'a> {
    newer: bool,
    d: usize,
    dtype: Dtype,
    max_length: Option<usize>,
    labels: Option<Vec<String>>,
    outputs: Option<usize>,
    start: Option<&'a str>,
    pre: Option<usize>,
    layers: &'a [Json<'a>],
}

impl<'a> Config<'a> {
    fn parse(json: &'a Json<'a>, limits: &Limits) -> Result<Self> {
        let newer = match json.get("format").text() {
            Some("monolayer/1") => false,
            Some("monolayer/2") => true,
            _ => return Err("\"format\" is neither \"monolayer/1\" nor \"monolayer/2\"".into()),
        };
        if let Some(name) = ["start", "outputs"].into_iter().find(|name| !newer && json.field(name).is_some()) {
            return Err(format!("{name:?} is a field of \"monolayer/2\"").into());
        }
        let dtype = match json.get("dtype").text() {
            Some("f32") => Dtype::Float(Format::F32),
            Some("f64") => Dtype::Float(Format::F64),
            Some("exact") => Dtype::Exact,
            _ => return Err("\"dtype\" is neither \"f32\" nor \"f64\" nor \"exact\"".into()),
        };
        let d = positive(json, "d")?;
        within(d, "coordinates of a token", "dimension", limits.dimension)?;
        let labels = labels(json.get("labels"), limits)?;
        let outputs = optional(json, "outputs", positive)?;
        if labels.is_some() && outputs.is_some() {
            return Err("\"labels\" and \"outputs\" do not go together".into());
        }
        let text =
            |json: &'a Json<'a>, name: &str| json.get(name).text().ok_or(format!("{name:?} is not a string").into());
        Ok(Self {
            newer,
            d,
            dtype,
            max_length: optional(json, "max_length", positive)?,
            labels,
            outputs,
            start: optional(json, "start", text)?,
            pre: optional(json, "pre_feed_forward", |json, name| positive(json.get(name), "hidden"))?,
            layers: json.get("layers").list().ok_or("\"layers\" is not a list")?,
        })
    }

    fn model(self, mut tensors: Tensors, vocabulary: Option<&[u8]>) -> Result<Model> {
        let d = self.d;
        let words = tensors.rows("embedding.weight");
        let embedding = words.map(|rows| tensors.take("embedding.weight", &[rows, d])).transpose()?;
        let read = || match (words, vocabulary) {
            (Some(rows), Some(bytes)) => read_vocabulary(bytes, rows).map(Some),
            (Some(_), None) => Err("missing, but the model has an embedding".into()),
            (None, Some(_)) => Err("a vocabulary without an embedding".into()),
            (None, None) => Ok(None),
        };
        let vocabulary = read().map_err(|e: Error| e.at(VOCABULARY))?;
        let row = |word: &str| {
            let words = vocabulary.as_deref().unwrap_or_default();
            let at = words.binary_search_by(|(other, _)| other.as_str().cmp(word)).ok();
            let missing = || Error::from(format!("the start {word:?} is not a word of the vocabulary")).at(CONFIG);
            at.map(|at| words[at].1).ok_or_else(missing)
        };
        let start = self.start.map(row).transpose()?;
        let positions = self.max_length.map(|n| tensors.take("positions.weight", &[n, d])).transpose()?;
        let pre_feed_forward = self.pre.map(|q| tensors.feed_forward("pre_feed_forward", q, d)).transpose()?;
        let mut layers = Vec::new();
        for (i, json) in self.layers.iter().enumerate() {
            let at = |e: Error| e.at(format!("{CONFIG}, layer {i}"));
            let hidden = json.get("hidden").size().ok_or("\"hidden\" is not a size").map_err(|e| at(e.into()))?;
            let shape = optional(json, "attention", |json, name| shape(json.get(name))).map_err(at)?;
            let name = format!("layers.{i}.feed_forward");
            layers.push(Layer {
                attention: shape.map(|shape| tensors.attention(i, json, shape, d)).transpose()?,
                feed_forward: (hidden > 0).then(|| tensors.feed_forward(&name, hidden, d)).transpose()?,
            });
        }
        let rows = self.labels.as_ref().map(Vec::len).or(self.outputs);
        let head = rows.map(|rows| {
            let weight = tensors.take("head.weight", &[rows, d])?;
            Ok::<_, Error>(Head { labels: self.labels, weight, bias: tensors.take("head.bias", &[rows])? })
        });
        let head = head.transpose()?;
        if let Some(name) = tensors.found.keys().next() {
            let what = format!("tensor {name:?} belongs to nothing in config.json");
            return Err(Error::from(what).at(tensors.file));
        }
        let (dtype, max_length) = (self.dtype, self.max_length);
        Ok(Model { d, dtype, max_length, vocabulary, start, embedding, positions, pre_feed_forward, layers, head })
    }
}

/// A size of at least 1.
fn positive(json: &Json, name: &str) -> Result<usize> {
    json.get(name).size().filter(|&n| n > 0).ok_or_else(|| format!("{name:?} is not a positive integer").into())
}

/// A field that may be null or absent.
fn optional<'a, T>(
    json: &'a Json<'a>,
    name: &str,
    read: impl Fn(&'a Json<'a>, &str) -> Result<T>,
) -> Result<Option<T>> {
    if json.get(name).is_null() { Ok(None) } else { read(json, name).map(Some) }
}

fn labels(names: &Json, limits: &Limits) -> Result<Option<Vec<String>>> {
    if names.is_null() {
        return Ok(None);
    }
    let texts = |list: &[Json]| list.iter().map(|name| name.text().map(str::to_owned)).collect::<Option<Vec<_>>>();
    let labels = names.list().and_then(texts).unwrap_or_default();
    if labels.is_empty() || labels.iter().collect::<BTreeSet<_>>().len() != labels.len() {
        return Err("\"labels\" is not null or a list of different strings".into());
    }
    within(labels.len(), "labels", "labels", limits.labels)?;
    Ok(Some(labels))
}

/// Whether attention is hard, its heads, and their size.
fn shape(part: &Json) -> Result<(bool, usize, usize)> {
    let hard = match part.get("kind").text() {
        Some("softmax") => false,
        Some("hardmax") => true,
        _ => return Err("attention \"kind\" is missing or unknown".into()),
    };
    Ok((hard, positive(part, "heads")?, positive(part, "head_size")?))
}

/// Words and rows, sorted by word: each word once (JSON sees to that), each row with one word.
fn read_vocabulary(bytes: &[u8], rows: usize) -> Result<Vec<(String, usize)>> {
    let json = json::parse(bytes)?;
    let fields = json.object().ok_or("not an object of words")?;
    if fields.len() < rows {
        return Err(format!("{} words for the {rows} rows of embedding.weight", fields.len()).into());
    }
    // So many words were really read: the rows are not just a number that some file claims.
    let mut owners = vec![None; rows];
    let mut words = Vec::with_capacity(fields.len());
    for (word, row) in fields {
        let row = row.size().filter(|&row| row < rows);
        let row = row.ok_or_else(|| format!("the word {word:?} has no row: it must be an integer below {rows}"))?;
        if let Some(other) = owners[row].replace(word) {
            return Err(format!("the words {other:?} and {word:?} share row {row}").into());
        }
        words.push((word.to_string(), row));
    }
    words.sort_unstable();
    Ok(words)
}

fn mask_matrix(bytes: &[u8]) -> Result<(usize, Vec<u8>)> {
    let found = safetensors::parse(bytes)?;
    let only =
        found.first_key_value().filter(|(name, raw)| found.len() == 1 && *name == "mask" && raw.stored == Stored::U8);
    let (n, raw) = match only {
        Some((_, raw)) if raw.shape.len() == 2 && raw.shape[0] == raw.shape[1] => (raw.shape[0], raw),
        _ => return Err("it is not one tensor \"mask\", U8 [n, n]".into()),
    };
    let bad = |(at, &entry): (usize, &u8)| entry > 1 || (entry == 0 && at / n == at % n);
    match raw.bytes.iter().enumerate().position(bad) {
        Some(at) => Err(format!("entry [{}, {}] is not 0 or 1, or 0 on the diagonal", at / n, at % n).into()),
        None => Ok((n, raw.bytes.to_vec())),
    }
}

enum Found<'a> {
    Raw(Raw<'a>),
    Exact(Vec<usize>, Vec<String>),
}

/// The tensors not yet taken.
struct Tensors<'a> {
    found: BTreeMap<String, Found<'a>>,
    dtype: Dtype,
    /// Whether the format is monolayer/2.
    newer: bool,
    /// Bytes that dense copies may still take.
    room: usize,
    file: &'static str,
    mask: Option<(usize, Vec<u8>)>,
}

impl Tensors<'_> {
    /// The first size of a tensor, if it is there.
    fn rows(&self, name: &str) -> Option<usize> {
        let (Found::Raw(Raw { shape, .. }) | Found::Exact(shape, _)) = self.found.get(name)?;
        Some(shape.first().copied().unwrap_or(0))
    }

    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Numbers> {
        let stored = match self.dtype {
            Dtype::Float(Format::F32) => Stored::F32,
            _ => Stored::F64,
        };
        let checked = match self.found.remove(name) {
            None => Err("missing".into()),
            Some(Found::Raw(raw)) => raw.check(stored, shape).map(|()| {
                let format = if stored == Stored::F32 { Format::F32 } else { Format::F64 };
                Numbers::Floats(Tensor { shape: raw.shape, format, bytes: raw.bytes.to_vec() })
            }),
            Some(Found::Exact(found, numbers)) if found == shape => Ok(Numbers::Exact(found, numbers)),
            Some(Found::Exact(found, _)) => Err(format!("shape {found:?}, expected {shape:?}").into()),
        };
        checked.map_err(|e: Error| e.at(format!("{}, tensor {name:?}", self.file)))
    }

    /// A matrix, dense or in compressed rows.
    fn matrix(&mut self, name: &str, r: usize, c: usize) -> Result<Numbers> {
        let parts = ["values", "columns", "rows"].map(|part| format!("{name}.{part}"));
        if !parts.iter().any(|part| self.found.contains_key(part)) {
            return self.take(name, &[r, c]);
        }
        let file = self.file;
        let at = |e: Error| e.at(format!("{file}, sparse tensor {name:?}"));
        if !self.newer || self.dtype == Dtype::Exact {
            return Err(at("only floats of \"monolayer/2\" are stored so".into()));
        }
        let k = self.rows(&parts[0]).unwrap_or(0);
        let values = self.take(&parts[0], &[k])?;
        let [columns, rows] = [(&parts[1], k), (&parts[2], r.saturating_add(1))].map(|(part, n)| {
            let Some(Found::Raw(raw)) = self.found.remove(part) else { return Err(Error::from("a part is missing")) };
            raw.check(Stored::I32, &[n]).map_err(|e| e.at(part))?;
            raw.sizes().ok_or("a negative index".into())
        });
        let Numbers::Floats(values) = values else { return Err(at("not floats".into())) };
        let bytes = r.checked_mul(c).and_then(|n| n.checked_mul(values.format.width())).unwrap_or(usize::MAX);
        within(bytes, "bytes once dense", "dense", self.room).map_err(at)?;
        self.room -= bytes;
        let bytes = dense(&values, &columns.map_err(at)?, &rows.map_err(at)?, c, bytes).map_err(at)?;
        Ok(Numbers::Floats(Tensor { shape: vec![r, c], format: values.format, bytes }))
    }

    fn feed_forward(&mut self, name: &str, q: usize, d: usize) -> Result<FeedForward> {
        Ok(FeedForward {
            hidden: q,
            w1: self.matrix(&format!("{name}.w1"), q, d)?,
            b1: self.take(&format!("{name}.b1"), &[q])?,
            w2: self.matrix(&format!("{name}.w2"), d, q)?,
            b2: self.take(&format!("{name}.b2"), &[d])?,
        })
    }

    fn attention(&mut self, i: usize, layer: &Json, shape: (bool, usize, usize), d: usize) -> Result<Attention> {
        let mask = layer.get("attention").get("mask");
        let mask = self.visible(mask).map_err(|e| e.at(format!("{CONFIG}, layer {i}")))?;
        let (hard, heads, size) = shape;
        let mut part = |name: &str, shape: [usize; 3]| self.take(&format!("layers.{i}.attention.{name}"), &shape);
        Ok(Attention {
            hard,
            heads,
            size,
            mask,
            w_q: part("w_q", [heads, size, d])?,
            w_k: part("w_k", [heads, size, d])?,
            w_v: part("w_v", [heads, size, d])?,
            w_o: part("w_o", [heads, d, size])?,
        })
    }

    /// Who sees whom.
    fn visible(&mut self, mask: &Json) -> Result<Mask> {
        let fields = mask.object().filter(|fields| fields.len() == 1).and_then(|fields| fields.first());
        let narrow = |size: usize| size <= WIDEST;
        let found = match (mask.text(), fields.map(|(name, value)| (&**name, value))) {
            (Some("none"), _) => return Ok(Mask::None),
            (Some("causal"), _) => return Ok(Mask::Causal),
            (_, Some(_)) if !self.newer => return Err("a mask that is an object is of \"monolayer/2\"".into()),
            (_, Some(("prefix", k))) => k.size().filter(|&k| narrow(k)).map(Mask::Prefix),
            (_, Some(("band", sizes))) => match sizes.sizes().as_deref() {
                Some(&[before, after]) if narrow(before) && narrow(after) => Some(Mask::Band(before, after)),
                _ => None,
            },
            (_, Some(("file", name))) if name.text() == Some(MASK) => {
                let (n, matrix) = self.mask.as_ref().ok_or("mask.safetensors is missing")?;
                within(matrix.len(), "bytes of a mask", "dense", self.room)?;
                self.room -= matrix.len();
                Some(Mask::Matrix(*n, matrix.clone()))
            }
            _ => None,
        };
        found.ok_or_else(|| "attention \"mask\" is missing or unknown".into())
    }
}

impl Raw<'_> {
    fn check(&self, stored: Stored, shape: &[usize]) -> Result<()> {
        if self.stored != stored {
            return Err(format!("stored as {:?}, expected {stored:?}", self.stored).into());
        }
        if self.shape != shape {
            return Err(format!("shape {:?}, expected {shape:?}", self.shape).into());
        }
        Ok(())
    }
}

/// The bytes of a matrix with `c` columns whose row i has `values[rows[i]..rows[i + 1]]` at these columns.
fn dense(values: &Tensor, columns: &[usize], rows: &[usize], c: usize, bytes: usize) -> Result<Vec<u8>> {
    let width = values.format.width();
    let mut matrix = vec![0; bytes];
    if rows.first() != Some(&0) || rows.last() != Some(&columns.len()) || !rows.is_sorted() {
        return Err("rows do not go from 0 to the number of values".into());
    }
    for (i, row) in rows.windows(2).enumerate() {
        let places = &columns[row[0]..row[1]];
        if !places.is_sorted_by(|a, b| a < b) || places.last().is_some_and(|&last| last >= c) {
            return Err(format!("the columns of row {i} do not rise, or are not below {c}").into());
        }
        for (k, &column) in (row[0]..).zip(places) {
            let at = (i * c + column) * width;
            matrix[at..at + width].copy_from_slice(&values.bytes[k * width..(k + 1) * width]);
        }
    }
    Ok(matrix)
}
