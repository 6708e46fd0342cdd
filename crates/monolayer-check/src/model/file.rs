//! A model directory: config.json, model.safetensors or weights.json, vocabulary.json. Every shape and name is checked.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use super::{Attention, Dtype, Embedding, FeedForward, Head, Layer, Model};
use crate::big::weight::Rational;
use crate::error::{Error, Result};
use crate::read::bytes;
use crate::read::json::{self, Json};
use crate::read::tensors;

/// BLAKE3 hashes of the files of a model directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hashes {
    /// config.json
    pub config: String,
    /// model.safetensors or weights.json
    pub tensors: String,
    /// vocabulary.json
    pub vocabulary: Option<String>,
    /// The name of the file with the numbers.
    pub numbers_file: &'static str,
}

const HELP: &str = "make the directory again, or see the format of model directories";

/// A model as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// In model.safetensors.
    Floats(Model),
    /// In weights.json.
    Exact(Model<Rational>),
}

/// Reads a model directory with model.safetensors.
pub fn open(dir: &Path) -> Result<(Model, Hashes)> {
    match read(dir)? {
        (Stored::Floats(model), hashes) => Ok((model, hashes)),
        (Stored::Exact(_), _) => {
            Err(Error::new(dir.join("config.json").display().to_string(), "the dtype is \"exact\"", "use floats"))
        }
    }
}

/// Reads a model directory.
pub fn read(dir: &Path) -> Result<(Stored, Hashes)> {
    let file = |name: &str| dir.join(name);
    let config = bytes::regular(&file("config.json"))?;
    let parsed = json::parse(&config).map_err(|e| Error::new(file("config.json").display().to_string(), e, HELP))?;
    let exact = parsed.get("dtype").text() == Some("exact");
    let numbers_file = if exact { "weights.json" } else { "model.safetensors" };
    let numbers = bytes::regular(&file(numbers_file))?;
    let has_words = file("vocabulary.json").exists();
    let words = if has_words { Some(bytes::regular(&file("vocabulary.json"))?) } else { None };
    let hashes = Hashes {
        config: bytes::hash(&config),
        tensors: bytes::hash(&numbers),
        vocabulary: words.as_deref().map(bytes::hash),
        numbers_file,
    };
    let model = if exact {
        parse_exact(&parsed, &numbers, words.as_deref()).map(Stored::Exact)
    } else {
        parse(&parsed, &numbers, words.as_deref()).map(Stored::Floats)
    };
    let fault = |fault: Fault| {
        let name = match fault.0 {
            File::Config => "config.json",
            File::Tensors => numbers_file,
            File::Vocabulary => "vocabulary.json",
        };
        Error::new(file(name).display().to_string(), fault.1, HELP)
    };
    Ok((model.map_err(fault)?, hashes))
}

/// The file at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    /// config.json
    Config,
    /// model.safetensors or weights.json
    Tensors,
    /// vocabulary.json
    Vocabulary,
}

/// What is wrong, and in which file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(pub File, pub String);

type Parsed<T> = std::result::Result<T, Fault>;

/// Puts a model together from its files' contents.
pub fn parse(config: &Json, numbers: &[u8], words: Option<&[u8]>) -> Parsed<Model> {
    let (dtype, stored) = match config.get("dtype").text() {
        Some("f32") => (Dtype::F32, "F32"),
        Some("f64") => (Dtype::F64, "F64"),
        _ => return Err(Fault(File::Config, "\"dtype\" is neither \"f32\" nor \"f64\" nor \"exact\"".into())),
    };
    let tensors = float_tensors(numbers, stored).map_err(|e| Fault(File::Tensors, e))?;
    assemble(config, dtype, tensors, words)
}

/// The same with exact numbers.
pub fn parse_exact(config: &Json, numbers: &[u8], words: Option<&[u8]>) -> Parsed<Model<Rational>> {
    let tensors = exact_tensors(numbers).map_err(|e| Fault(File::Tensors, e))?;
    assemble(config, Dtype::Exact, tensors, words)
}

type Found<T> = BTreeMap<String, (Vec<usize>, Vec<T>)>;

/// The tensors of model.safetensors, all of them stored alike.
fn float_tensors(file: &[u8], stored: &str) -> std::result::Result<Found<f64>, String> {
    let tensor = |(name, raw): (String, tensors::Raw)| {
        let bad = |what: String| format!("tensor {name:?}: {what}");
        if raw.dtype != stored {
            return Err(bad(format!("stored as {}, but config.json says {stored}", raw.dtype)));
        }
        let floats = raw.floats().map_err(bad)?;
        Ok((name, (raw.shape, floats)))
    };
    tensors::parse(file)?.into_iter().map(tensor).collect()
}

/// The tensors of weights.json. Written out, its exponents may make it 16 times as long and a million zeros longer.
fn exact_tensors(file: &[u8]) -> std::result::Result<Found<Rational>, String> {
    let mut zeros = 16 * file.len() + 1_000_000;
    let json = json::parse(file)?;
    let mut found = Found::new();
    for (name, entry) in json.object().ok_or("it is not an object of tensors")? {
        let bad = |what: String| format!("tensor {name:?}: {what}");
        let sizes = |list: &[Json]| list.iter().map(Json::size).collect::<Option<Vec<usize>>>();
        let shape = entry.get("shape").list().and_then(sizes);
        let shape = shape.ok_or_else(|| bad("its shape is not a list of sizes".into()))?;
        let data = entry.get("data").list().ok_or_else(|| bad("its data is not a list".into()))?;
        if shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n)) != Some(data.len()) {
            return Err(bad(format!("{} numbers for the shape {shape:?}", data.len())));
        }
        let number = |item: &Json| {
            let text = item.text().ok_or_else(|| bad("a number that is not a string".into()))?;
            Rational::parse(text, &mut zeros).map_err(bad)
        };
        let data = data.iter().map(number).collect::<std::result::Result<Vec<Rational>, String>>()?;
        found.insert(name.clone(), (shape, data));
    }
    Ok(found)
}

fn assemble<T: Clone>(config: &Json, dtype: Dtype, found: Found<T>, words: Option<&[u8]>) -> Parsed<Model<T>> {
    let bad = |what: &str| Fault(File::Config, what.to_owned());
    if config.get("format").text() != Some("monolayer/1") {
        return Err(bad("\"format\" is not \"monolayer/1\""));
    }
    let d = config.get("d").size().filter(|&d| d > 0).ok_or_else(|| bad("\"d\" is not a positive integer"))?;
    let max_length =
        optional_size(config.get("max_length")).ok_or_else(|| bad("\"max_length\" is not an integer or null"))?;
    let mut tensors = Tensors { found };
    let embedding = match tensors.rows("embedding.weight", d)? {
        Some((rows, weight)) => Some(Embedding { vocabulary: vocabulary(words, rows)?, weight }),
        None if words.is_some() => return Err(Fault(File::Vocabulary, "a vocabulary without an embedding".into())),
        None => None,
    };
    let positions = match tensors.rows("positions.weight", d)? {
        Some((rows, _)) if Some(rows) != max_length => {
            return Err(bad("\"max_length\" is not the number of rows of positions.weight"));
        }
        found => found.map(|(_, weight)| weight),
    };
    let pre_feed_forward = match config.get("pre_feed_forward") {
        Json::Null => None,
        part => tensors.feed_forward("pre_feed_forward", hidden(part)?, d)?,
    };
    let listed = config.get("layers").list().ok_or_else(|| bad("\"layers\" is not a list"))?;
    let mut layers = Vec::new();
    for (i, layer) in listed.iter().enumerate() {
        let attention = attention(&mut tensors, layer.get("attention"), i, d)?;
        let feed_forward = tensors.feed_forward(&format!("layers.{i}.feed_forward"), hidden(layer)?, d)?;
        layers.push(Layer { attention, feed_forward });
    }
    let head = head(&mut tensors, config.get("labels"), d)?;
    if let Some(name) = tensors.found.keys().next() {
        return Err(Fault(File::Tensors, format!("tensor {name:?} belongs to nothing in config.json")));
    }
    Ok(Model { d, dtype, max_length, embedding, positions, pre_feed_forward, layers, head })
}

/// None where the value is neither null nor a size.
#[allow(clippy::option_option)]
fn optional_size(value: &Json) -> Option<Option<usize>> {
    if value.is_null() { Some(None) } else { value.size().map(Some) }
}

fn hidden(part: &Json) -> Parsed<usize> {
    part.get("hidden").size().ok_or_else(|| Fault(File::Config, "a \"hidden\" is not an integer".into()))
}

fn attention<T: Clone>(tensors: &mut Tensors<T>, part: &Json, i: usize, d: usize) -> Parsed<Option<Attention<T>>> {
    if part.is_null() {
        return Ok(None);
    }
    let bad = |field: &str| Fault(File::Config, format!("layer {i}: attention {field:?} is missing or unknown"));
    let hard = match part.get("kind").text() {
        Some("softmax") => false,
        Some("hardmax") => true,
        _ => return Err(bad("kind")),
    };
    let causal = match part.get("mask").text() {
        Some("none") => false,
        Some("causal") => true,
        _ => return Err(bad("mask")),
    };
    let heads = part.get("heads").size().filter(|&n| n > 0).ok_or_else(|| bad("heads"))?;
    let size = part.get("head_size").size().filter(|&n| n > 0).ok_or_else(|| bad("head_size"))?;
    let mut projection = |name| tensors.take(&format!("layers.{i}.attention.{name}"), &[heads, size, d]);
    let (w_q, w_k, w_v) = (projection("w_q")?, projection("w_k")?, projection("w_v")?);
    let w_o = tensors.take(&format!("layers.{i}.attention.w_o"), &[heads, d, size])?;
    let w_o = w_o.chunks_exact(d * size).flat_map(|head| transposed(head, d, size)).collect();
    Ok(Some(Attention { hard, causal, heads, size, w_q, w_k, w_v, w_o }))
}

fn head<T: Clone>(tensors: &mut Tensors<T>, names: &Json, d: usize) -> Parsed<Option<Head<T>>> {
    if names.is_null() {
        return Ok(None);
    }
    let bad = || Fault(File::Config, "\"labels\" is not null or a list of different strings".into());
    let labels: Option<Vec<String>> =
        names.list().and_then(|list| list.iter().map(|name| name.text().map(str::to_owned)).collect());
    let labels = labels.filter(|list| !list.is_empty()).ok_or_else(bad)?;
    if labels.iter().collect::<HashSet<_>>().len() != labels.len() {
        return Err(bad());
    }
    let weight = tensors.take("head.weight", &[labels.len(), d])?;
    let bias = tensors.take("head.bias", &[labels.len()])?;
    Ok(Some(Head { labels, weight, bias }))
}

fn vocabulary(words: Option<&[u8]>, rows: usize) -> Parsed<HashMap<String, u32>> {
    let bad = |what: String| Fault(File::Vocabulary, what);
    let words = words.ok_or_else(|| bad("missing, but the model has an embedding".into()))?;
    let words = json::parse(words).map_err(bad)?;
    let fields = words.object().ok_or_else(|| bad("not an object of words".into()))?;
    let mut vocabulary = HashMap::with_capacity(fields.len());
    let mut taken = HashMap::with_capacity(fields.len());
    for (word, id) in fields {
        let id = id
            .size()
            .filter(|&id| id < rows)
            .ok_or_else(|| bad(format!("the word {word:?} has no row: its id must be an integer below {rows}")))?;
        if let Some(other) = taken.insert(id, word) {
            return Err(bad(format!("the words {other:?} and {word:?} share row {id}")));
        }
        vocabulary.insert(word.clone(), id as u32);
    }
    if vocabulary.len() != rows {
        return Err(bad(format!("{} words for the {rows} rows of embedding.weight", vocabulary.len())));
    }
    Ok(vocabulary)
}

/// The tensors not yet taken.
struct Tensors<T> {
    found: Found<T>,
}

impl<T: Clone> Tensors<T> {
    fn take(&mut self, name: &str, shape: &[usize]) -> Parsed<Vec<T>> {
        let bad = |what: String| Fault(File::Tensors, format!("tensor {name:?}: {what}"));
        let (found, data) = self.found.remove(name).ok_or_else(|| bad("missing".into()))?;
        if found != shape {
            return Err(bad(format!("shape {found:?}, expected {shape:?}")));
        }
        Ok(data)
    }

    /// A matrix of any number of rows, if it is there.
    fn rows(&mut self, name: &str, d: usize) -> Parsed<Option<(usize, Vec<T>)>> {
        let Some((shape, _)) = self.found.get(name) else { return Ok(None) };
        let rows = shape.first().copied().unwrap_or(0);
        Ok(Some((rows, self.take(name, &[rows, d])?)))
    }

    fn feed_forward(&mut self, name: &str, q: usize, d: usize) -> Parsed<Option<FeedForward<T>>> {
        if q == 0 {
            return Ok(None);
        }
        let mut part = |which: &str, shape: &[usize]| self.take(&format!("{name}.{which}"), shape);
        let (w1, b1) = (part("w1", &[q, d])?, part("b1", &[q])?);
        let (w2, b2) = (part("w2", &[d, q])?, part("b2", &[d])?);
        Ok(Some(FeedForward { hidden: q, w1, b1, w2: transposed(&w2, d, q), b2 }))
    }
}

fn transposed<T: Clone>(matrix: &[T], rows: usize, columns: usize) -> Vec<T> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| matrix[r * columns + c].clone())).collect()
}
