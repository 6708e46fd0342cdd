//! A model directory: config.json, model.safetensors, vocabulary.json. Every shape and name is checked.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use crate::error::{Error, Result};
use crate::read::bytes;
use crate::read::json::{self, Json};
use crate::read::tensors::{self, Raw};

/// How the numbers of a model are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

/// One attention layer (eq. 2); matrices row-major, heads one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// Hardmax (eq. 5) instead of softmax.
    pub hard: bool,
    /// Whether a token sees only itself and those before it.
    pub causal: bool,
    /// The number of heads.
    pub heads: usize,
    /// The head size s.
    pub size: usize,
    /// `[heads, s, d]`
    pub w_q: Vec<f64>,
    /// `[heads, s, d]`
    pub w_k: Vec<f64>,
    /// `[heads, s, d]`
    pub w_v: Vec<f64>,
    /// `W_O` transposed, `[heads, s, d]`: row k is where coordinate k of the heads' values goes.
    pub w_o: Vec<f64>,
}

/// One feed-forward layer (eq. 3).
#[derive(Debug, Clone, PartialEq)]
pub struct FeedForward {
    /// The number of hidden units q.
    pub hidden: usize,
    /// `[q, d]`
    pub w1: Vec<f64>,
    /// `[q]`
    pub b1: Vec<f64>,
    /// `W2` transposed, `[q, d]`: row j is what unit j adds.
    pub w2: Vec<f64>,
    /// `[d]`
    pub b2: Vec<f64>,
}

/// One layer: attention, then feed-forward; either may be absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The attention.
    pub attention: Option<Attention>,
    /// The feed-forward part.
    pub feed_forward: Option<FeedForward>,
}

/// The head: scores per label.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The label names.
    pub labels: Vec<String>,
    /// `[labels, d]`
    pub weight: Vec<f64>,
    /// `[labels]`
    pub bias: Vec<f64>,
}

/// Word rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// The row of each word.
    pub vocabulary: HashMap<String, u32>,
    /// `[words, d]`
    pub weight: Vec<f64>,
}

/// A model, all numbers as f64 (which holds every f32 exactly).
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Embedding dimension.
    pub d: usize,
    /// How the numbers are stored.
    pub dtype: Dtype,
    /// The longest sequence it can read, if there is a limit.
    pub max_length: Option<usize>,
    /// Word rows, when inputs are words.
    pub embedding: Option<Embedding>,
    /// `[max_length, d]`, when used.
    pub positions: Option<Vec<f64>>,
    /// The quantizer of the universal approximator.
    pub pre_feed_forward: Option<FeedForward>,
    /// The layers.
    pub layers: Vec<Layer>,
    /// The head, when outputs are labels.
    pub head: Option<Head>,
}

/// BLAKE3 hashes of the files of a model directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hashes {
    /// config.json
    pub config: String,
    /// model.safetensors
    pub tensors: String,
    /// vocabulary.json
    pub vocabulary: Option<String>,
}

const HELP: &str = "make the directory again, or see the format of model directories";

/// Reads a model directory.
pub fn open(dir: &Path) -> Result<(Model, Hashes)> {
    let config_file = dir.join("config.json");
    let tensors_file = dir.join("model.safetensors");
    let vocabulary_file = dir.join("vocabulary.json");
    let config = bytes::regular(&config_file)?;
    let parsed = json::parse(&config).map_err(|e| Error::new(config_file.display().to_string(), e, HELP))?;
    if parsed.get("dtype").text() == Some("exact") {
        let what = "the weights are exact rationals (weights.json)";
        let help = "this checker reads f32 and f64 models";
        return Err(Error::new(config_file.display().to_string(), what, help));
    }
    let numbers = bytes::regular(&tensors_file)?;
    let words = if vocabulary_file.exists() { Some(bytes::regular(&vocabulary_file)?) } else { None };
    let hashes = Hashes {
        config: bytes::hash(&config),
        tensors: bytes::hash(&numbers),
        vocabulary: words.as_deref().map(bytes::hash),
    };
    let model = parse(&parsed, &numbers, words.as_deref()).map_err(|fault| {
        let file = match fault.0 {
            File::Config => config_file,
            File::Tensors => tensors_file,
            File::Vocabulary => vocabulary_file,
        };
        Error::new(file.display().to_string(), fault.1, HELP)
    })?;
    Ok((model, hashes))
}

/// The file at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    /// config.json
    Config,
    /// model.safetensors
    Tensors,
    /// vocabulary.json
    Vocabulary,
}

/// What is wrong, and in which file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(pub File, pub String);

/// Puts a model together from its files' contents.
pub fn parse(config: &Json, numbers: &[u8], words: Option<&[u8]>) -> std::result::Result<Model, Fault> {
    let bad = |what: &str| Fault(File::Config, what.to_owned());
    if config.get("format").text() != Some("monolayer/1") {
        return Err(bad("\"format\" is not \"monolayer/1\""));
    }
    let d = config.get("d").size().filter(|&d| d > 0).ok_or_else(|| bad("\"d\" is not a positive integer"))?;
    let dtype = match config.get("dtype").text() {
        Some("f32") => Dtype::F32,
        Some("f64") => Dtype::F64,
        _ => return Err(bad("\"dtype\" is neither \"f32\" nor \"f64\"")),
    };
    let max_length =
        optional_size(config.get("max_length")).ok_or_else(|| bad("\"max_length\" is not an integer or null"))?;
    let mut tensors = Tensors { raw: tensors::parse(numbers).map_err(|e| Fault(File::Tensors, e))?, dtype };
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
    if let Some(name) = tensors.raw.keys().next() {
        return Err(Fault(File::Tensors, format!("tensor {name:?} belongs to nothing in config.json")));
    }
    Ok(Model { d, dtype, max_length, embedding, positions, pre_feed_forward, layers, head })
}

/// None where the value is neither null nor a size.
#[allow(clippy::option_option)]
fn optional_size(value: &Json) -> Option<Option<usize>> {
    if value.is_null() { Some(None) } else { value.size().map(Some) }
}

fn hidden(part: &Json) -> std::result::Result<usize, Fault> {
    part.get("hidden").size().ok_or_else(|| Fault(File::Config, "a \"hidden\" is not an integer".into()))
}

fn attention(tensors: &mut Tensors, part: &Json, i: usize, d: usize) -> std::result::Result<Option<Attention>, Fault> {
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

fn head(tensors: &mut Tensors, names: &Json, d: usize) -> std::result::Result<Option<Head>, Fault> {
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

fn vocabulary(words: Option<&[u8]>, rows: usize) -> std::result::Result<HashMap<String, u32>, Fault> {
    let bad = |what: String| Fault(File::Vocabulary, what);
    let words = words.ok_or_else(|| bad("missing, but the model has an embedding".into()))?;
    let words = json::parse(words).map_err(bad)?;
    let fields = words.object().ok_or_else(|| bad("not an object of words".into()))?;
    let mut vocabulary = HashMap::with_capacity(fields.len());
    for (word, id) in fields {
        let id = id
            .size()
            .filter(|&id| id < rows)
            .ok_or_else(|| bad(format!("the word {word:?} has no row: its id must be an integer below {rows}")))?;
        vocabulary.insert(word.clone(), id as u32);
    }
    Ok(vocabulary)
}

/// The tensors not yet taken.
struct Tensors<'a> {
    raw: BTreeMap<String, Raw<'a>>,
    dtype: Dtype,
}

impl Tensors<'_> {
    fn take(&mut self, name: &str, shape: &[usize]) -> std::result::Result<Vec<f64>, Fault> {
        let bad = |what: String| Fault(File::Tensors, format!("tensor {name:?}: {what}"));
        let raw = self.raw.remove(name).ok_or_else(|| bad("missing".into()))?;
        let wanted = if self.dtype == Dtype::F32 { "F32" } else { "F64" };
        if raw.dtype != wanted {
            return Err(bad(format!("stored as {}, but config.json says {wanted}", raw.dtype)));
        }
        if raw.shape != shape {
            return Err(bad(format!("shape {:?}, expected {shape:?}", raw.shape)));
        }
        raw.floats().map_err(bad)
    }

    /// A matrix of any number of rows, if it is there.
    fn rows(&mut self, name: &str, d: usize) -> std::result::Result<Option<(usize, Vec<f64>)>, Fault> {
        let Some(raw) = self.raw.get(name) else { return Ok(None) };
        let rows = raw.shape.first().copied().unwrap_or(0);
        Ok(Some((rows, self.take(name, &[rows, d])?)))
    }

    fn feed_forward(&mut self, name: &str, q: usize, d: usize) -> std::result::Result<Option<FeedForward>, Fault> {
        if q == 0 {
            return Ok(None);
        }
        let mut part = |which: &str, shape: &[usize]| self.take(&format!("{name}.{which}"), shape);
        let (w1, b1) = (part("w1", &[q, d])?, part("b1", &[q])?);
        let (w2, b2) = (part("w2", &[d, q])?, part("b2", &[d])?);
        Ok(Some(FeedForward { hidden: q, w1, b1, w2: transposed(&w2, d, q), b2 }))
    }
}

fn transposed(matrix: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let mut out = vec![0.0; matrix.len()];
    for r in 0..rows {
        for c in 0..columns {
            out[c * rows + r] = matrix[r * columns + c];
        }
    }
    out
}

impl Model {
    /// Every tensor of the model, to be changed in place.
    fn tensors_mut(&mut self) -> impl Iterator<Item = &mut Vec<f64>> {
        let mut all: Vec<&mut Vec<f64>> = Vec::new();
        all.extend(self.embedding.as_mut().map(|e| &mut e.weight));
        all.extend(self.positions.as_mut());
        let mut feed_forwards: Vec<&mut FeedForward> = self.pre_feed_forward.iter_mut().collect();
        for layer in &mut self.layers {
            if let Some(a) = &mut layer.attention {
                all.extend([&mut a.w_q, &mut a.w_k, &mut a.w_v, &mut a.w_o]);
            }
            feed_forwards.extend(&mut layer.feed_forward);
        }
        for f in feed_forwards {
            all.extend([&mut f.w1, &mut f.b1, &mut f.w2, &mut f.b2]);
        }
        if let Some(h) = &mut self.head {
            all.extend([&mut h.weight, &mut h.bias]);
        }
        all.into_iter()
    }

    /// The model that a program in binary32 runs: every number rounded to nearest. An error names an overflow.
    pub fn rounded_to_f32(mut self) -> Result<Self> {
        for x in self.tensors_mut().flatten() {
            let rounded = *x as f32;
            if rounded.is_infinite() {
                return Err(Error::new("model.safetensors", format!("{x} does not fit f32"), "verify in f64 or real"));
            }
            *x = f64::from(rounded);
        }
        Ok(self)
    }

    /// Whether every attention layer is causal, so that a token's visible tokens are those up to it.
    pub fn causal(&self) -> bool {
        let mut attentions = self.layers.iter().filter_map(|layer| layer.attention.as_ref()).peekable();
        attentions.peek().is_some() && attentions.all(|a| a.causal)
    }
}
