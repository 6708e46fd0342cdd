//! Model directories: config.json, model.safetensors, vocabulary.json. The one place that reads and writes them.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::attention::{Attention, Head as AttentionHead, Kind, Mask};
use crate::dataset::Vocabulary;
use crate::error::{Error, Result};
use crate::feed_forward::FeedForward;
use crate::kernels::Real;
use crate::matrix::Matrix;
use crate::model::{AnyModel, Head, Model, Words};
use crate::transformer::{Layer, Transformer};

/// The version that this library reads and writes.
pub const FORMAT: &str = "monolayer/1";

/// config.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// [`FORMAT`].
    pub format: String,
    /// The dimension of tokens.
    pub d: usize,
    /// `"f32"`, `"f64"` or `"exact"`.
    pub dtype: String,
    /// How many positions there are, when they are used.
    pub max_length: Option<usize>,
    /// The label names, when outputs are labels.
    pub labels: Option<Vec<String>>,
    /// The layers.
    pub layers: Vec<LayerConfig>,
    /// The feed-forward block before the first layer.
    pub pre_feed_forward: Option<Hidden>,
    /// How the model was made.
    #[serde(default)]
    pub source: serde_json::Value,
}

/// One layer of config.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerConfig {
    /// The attention; null for a feed-forward layer alone.
    pub attention: Option<AttentionConfig>,
    /// How many hidden units; 0 for attention alone.
    pub hidden: usize,
}

/// The attention of a layer of config.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttentionConfig {
    /// Softmax or hardmax.
    pub kind: Kind,
    /// How many heads.
    pub heads: usize,
    /// Their size.
    pub head_size: usize,
    /// Which tokens a query sees.
    pub mask: Mask,
}

/// A number of hidden units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hidden {
    /// How many.
    pub hidden: usize,
}

/// Reads and validates a model directory.
pub fn read(dir: &Path) -> Result<AnyModel> {
    let config = read_config(&dir.join("config.json"))?;
    match config.dtype.as_str() {
        "f32" => read_model(dir, config).map(AnyModel::F32),
        "f64" => read_model(dir, config).map(AnyModel::F64),
        crate::exact_file::DTYPE => Err(Error::model(
            dir.join("config.json"),
            "its numbers are exact (weights.json), not floats",
            "predict, verify, inspect and hardmax read such models",
        )),
        other => Err(Error::model(
            dir.join("config.json"),
            format!("dtype {other:?}"),
            "only \"f32\" and \"f64\" models can be run",
        )),
    }
}

pub(crate) fn read_config(path: &Path) -> Result<Config> {
    let text = read_file(path)?;
    let config: Config = serde_json::from_slice(&text)
        .map_err(|e| Error::model(path, e.to_string(), "see docs/format.md for what config.json holds"))?;
    if config.format != FORMAT {
        return Err(Error::model(
            path,
            format!("format {:?}", config.format),
            format!("this program reads {FORMAT:?}; another version may read this one"),
        ));
    }
    let zero_heads = |l: &LayerConfig| l.attention.as_ref().is_some_and(|a| a.heads == 0 || a.head_size == 0);
    let zero_pre = config.pre_feed_forward.as_ref().is_some_and(|pre| pre.hidden == 0);
    if config.d == 0 || config.max_length == Some(0) || zero_pre || config.layers.iter().any(zero_heads) {
        return Err(Error::model(
            path,
            "a d, max_length, heads, head_size or pre_feed_forward.hidden of 0",
            "each must be at least 1",
        ));
    }
    if let Some(labels) = &config.labels {
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = labels.iter().find(|&l| !seen.insert(l)) {
            return Err(Error::model(path, format!("the label {twice:?} stands twice"), "labels must differ"));
        }
        if labels.is_empty() {
            return Err(Error::model(path, "an empty list of labels", "use null when outputs are vectors"));
        }
    }
    Ok(config)
}

pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| Error::io(path, e))
}

fn read_model<R: Real>(dir: &Path, config: Config) -> Result<Model<R>> {
    let path = dir.join("model.safetensors");
    let bytes = read_file(&path)?;
    assemble(dir, config, Tensors::parse(&path, &bytes)?)
}

/// A model from its config and tensors.
pub(crate) fn assemble<T: Clone>(dir: &Path, config: Config, mut tensors: Tensors<T>) -> Result<Model<T>> {
    let d = config.d;
    let words = if tensors.has("embedding.weight") {
        let rows = tensors.rows("embedding.weight")?;
        // First the numbers: rows without numbers could be any number of rows.
        let embedding = tensors.matrix("embedding.weight", rows, d)?;
        Some(Words { vocabulary: read_vocabulary(&dir.join("vocabulary.json"), rows)?, embedding })
    } else {
        None
    };
    let positions = config.max_length.map(|length| tensors.matrix("positions.weight", length, d)).transpose()?;
    let pre = config.pre_feed_forward.as_ref().map(|pre| tensors.feed_forward("pre_feed_forward", pre.hidden, d));
    let layers = config.layers.iter().enumerate().map(|(i, layer)| {
        Ok(Layer {
            attention: layer.attention.as_ref().map(|a| tensors.attention(i, a, d)).transpose()?,
            feed_forward: (layer.hidden > 0)
                .then(|| tensors.feed_forward(&format!("layers.{i}.feed_forward"), layer.hidden, d))
                .transpose()?,
        })
    });
    let pre_feed_forward = pre.transpose()?;
    let layers = layers.collect::<Result<Vec<_>>>()?;
    let head = match config.labels {
        Some(labels) => Some(Head {
            weight: tensors.matrix("head.weight", labels.len(), d)?,
            bias: tensors.vector("head.bias", labels.len())?,
            labels,
        }),
        None => None,
    };
    tensors.finish()?;
    Ok(Model {
        words,
        positions,
        transformer: Transformer { d, pre_feed_forward, layers },
        head,
        source: config.source,
    })
}

/// vocabulary.json: each word once, each with a row of the embedding, every row with one word.
fn read_vocabulary(path: &Path, rows: usize) -> Result<Vocabulary> {
    let bytes = read_file(path)?;
    let bad = |what: String| Error::model(path, what, "it must give each row of embedding.weight one word, from 0");
    let Pairs(pairs) = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
    let mut words: Vec<Option<&str>> = vec![None; rows];
    for (word, id) in &pairs {
        let slot = usize::try_from(*id).ok().and_then(|id| words.get_mut(id));
        let slot = slot.ok_or_else(|| bad(format!("{word:?} has row {id} of {rows}")))?;
        if let Some(other) = slot.replace(word) {
            return Err(bad(format!("{other:?} and {word:?} share row {id}")));
        }
    }
    let mut vocabulary = Vocabulary::default();
    for (row, word) in words.iter().enumerate() {
        let word = word.ok_or_else(|| bad(format!("no word for row {row}")))?;
        if vocabulary.add(word) as usize != row {
            return Err(bad(format!("the word {word:?} stands twice")));
        }
    }
    Ok(vocabulary)
}

/// The entries of a JSON object in their order, repeated keys included.
struct Pairs(Vec<(String, u64)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Pairs;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an object of words and row numbers")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> std::result::Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// The tensors of a file that have not been taken yet.
pub(crate) struct Tensors<'a, T> {
    path: &'a Path,
    /// Shape and numbers by name.
    tensors: HashMap<String, (Vec<usize>, Vec<T>)>,
}

/// What is wrong if config.json and the file of tensors contradict each other.
fn not_of_one_model(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("config.json and {name} are not of one model")
}

impl<'a, R: Real> Tensors<'a, R> {
    fn parse(path: &'a Path, bytes: &[u8]) -> Result<Self> {
        let file = SafeTensors::deserialize(bytes).map_err(|e| {
            Error::model(path, format!("not a safetensors file ({e})"), "it may be truncated; write or copy it again")
        })?;
        let numbers = |(name, view): (String, TensorView)| {
            let dtype = format!("{:?}", view.dtype()).to_lowercase();
            if dtype != R::NAME {
                let what = format!("tensor {name} is {dtype} where config.json says {}", R::NAME);
                return Err(Error::model(path, what, not_of_one_model(path)));
            }
            let numbers = R::from_bytes(view.data());
            if let Some(i) = numbers.iter().position(|x| !x.finite()) {
                let what = format!("tensor {name} has {:?} at entry {i}", numbers[i]);
                return Err(Error::model(path, what, "weights must be finite; make the model again"));
            }
            Ok((name, (view.shape().to_vec(), numbers)))
        };
        Ok(Self { path, tensors: file.tensors().into_iter().map(numbers).collect::<Result<_>>()? })
    }
}

impl<'a, T: Clone> Tensors<'a, T> {
    /// Tensors by name, from the file at `path`, as many numbers each as the shape says.
    pub fn new(path: &'a Path, tensors: HashMap<String, (Vec<usize>, Vec<T>)>) -> Self {
        Self { path, tensors }
    }

    fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    fn rows(&self, name: &str) -> Result<usize> {
        match self.tensors[name].0[..] {
            [rows, _] if rows > 0 => Ok(rows),
            ref shape => Err(self.wrong_shape(name, shape, "[words, d]")),
        }
    }

    fn wrong_shape(&self, name: &str, shape: &[usize], expected: &str) -> Error {
        let what = format!("tensor {name} has shape {shape:?} where config.json asks for {expected}");
        Error::model(self.path, what, not_of_one_model(self.path))
    }

    /// Takes a tensor out, as numbers, its shape checked.
    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<T>> {
        let Some((found, numbers)) = self.tensors.remove(name) else {
            return Err(Error::model(self.path, format!("tensor {name} is missing"), not_of_one_model(self.path)));
        };
        if found != shape {
            return Err(self.wrong_shape(name, &found, &format!("{shape:?}")));
        }
        Ok(numbers)
    }

    fn vector(&mut self, name: &str, len: usize) -> Result<Vec<T>> {
        self.take(name, &[len])
    }

    fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<Matrix<T>> {
        Ok(Matrix::new(rows, cols, self.take(name, &[rows, cols])?))
    }

    fn feed_forward(&mut self, prefix: &str, hidden: usize, d: usize) -> Result<FeedForward<T>> {
        Ok(FeedForward {
            w1: self.matrix(&format!("{prefix}.w1"), hidden, d)?,
            b1: self.vector(&format!("{prefix}.b1"), hidden)?,
            w2: self.matrix(&format!("{prefix}.w2"), d, hidden)?,
            b2: self.vector(&format!("{prefix}.b2"), d)?,
        })
    }

    fn attention(&mut self, layer: usize, config: &AttentionConfig, d: usize) -> Result<Attention<T>> {
        let &AttentionConfig { kind, heads, head_size, mask } = config;
        let mut stack = |name: &str, rows: usize, cols: usize| -> Result<Vec<Matrix<T>>> {
            let numbers = self.take(&format!("layers.{layer}.attention.{name}"), &[heads, rows, cols])?;
            Ok(numbers.chunks_exact(rows * cols).map(|head| Matrix::new(rows, cols, head.to_vec())).collect())
        };
        let (q, k) = (stack("w_q", head_size, d)?, stack("w_k", head_size, d)?);
        let (v, o) = (stack("w_v", head_size, d)?, stack("w_o", d, head_size)?);
        let heads = q.into_iter().zip(k).zip(v).zip(o);
        let heads = heads.map(|(((w_q, w_k), w_v), w_o)| AttentionHead { w_q, w_k, w_v, w_o }).collect();
        Ok(Attention { kind, mask, heads })
    }

    /// Every tensor must have been taken: one that config.json does not know is a mistake somewhere.
    fn finish(self) -> Result<()> {
        match self.tensors.keys().min() {
            None => Ok(()),
            Some(name) => Err(Error::model(
                self.path,
                format!("tensor {name} has no place in the model"),
                not_of_one_model(self.path),
            )),
        }
    }
}

/// Writes a model directory: into a new directory beside it, which then takes its place. What is there already must be a
/// model or an empty directory. `more` may add files to the new directory.
pub fn write<R: Real>(model: &Model<R>, dir: &Path, more: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    replace(dir, |new| {
        write_config_and_words(model, R::NAME, new)?;
        write_tensors(model, new)?;
        more(new)
    })
}

/// Puts a new model directory, filled by `fill`, in the place of an old one or of none.
pub(crate) fn replace(dir: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let empty = || fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    if dir.exists() && !dir.join("config.json").is_file() && !empty() {
        return Err(Error::model(dir, "it is there already and is not a model", "choose another directory"));
    }
    crate::fs::replace_dir(dir, fill)
}

fn put(dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, bytes).map_err(|e| Error::io(path, e))
}

/// config.json, and vocabulary.json where inputs are words.
pub(crate) fn write_config_and_words<T>(model: &Model<T>, dtype: &str, dir: &Path) -> Result<()> {
    let config = serde_json::to_string_pretty(&config_as(model, dtype)).expect("a config is plain data");
    put(dir, "config.json", format!("{config}\n").as_bytes())?;
    if let Some(words) = &model.words {
        let by_row: BTreeMap<usize, &String> = words.vocabulary.names().iter().enumerate().collect();
        let lines: Vec<String> =
            by_row.iter().map(|(row, word)| format!("{}: {row}", serde_json::Value::from(word.as_str()))).collect();
        put(dir, "vocabulary.json", format!("{{\n{}\n}}\n", lines.join(",\n")).as_bytes())?;
    }
    Ok(())
}

fn write_tensors<R: Real>(model: &Model<R>, dir: &Path) -> Result<()> {
    let dtype = if R::NAME == "f32" { Dtype::F32 } else { Dtype::F64 };
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> =
        tensors(model).into_iter().map(|(name, shape, numbers)| (name, shape, R::to_bytes(&numbers))).collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        (name, TensorView::new(dtype, shape.clone(), bytes).expect("as many bytes as the shape says"))
    });
    let path = dir.join("model.safetensors");
    let file = safetensors::serialize(views, None)
        .map_err(|e| Error::model(&path, e.to_string(), "the model is too large for the format"))?;
    put(dir, "model.safetensors", &file)
}

/// What config.json says of a model.
pub fn config<R: Real>(model: &Model<R>) -> Config {
    config_as(model, R::NAME)
}

/// The same for numbers of any kind.
pub fn config_as<T>(model: &Model<T>, dtype: &str) -> Config {
    let layer = |layer: &Layer<T>| LayerConfig {
        attention: layer.attention.as_ref().map(|a| AttentionConfig {
            kind: a.kind,
            heads: a.heads.len(),
            head_size: a.heads[0].w_q.rows,
            mask: a.mask,
        }),
        hidden: layer.feed_forward.as_ref().map_or(0, |f| f.b1.len()),
    };
    Config {
        format: FORMAT.to_owned(),
        d: model.transformer.d,
        dtype: dtype.to_owned(),
        max_length: model.positions.as_ref().map(|p| p.rows),
        labels: model.head.as_ref().map(|h| h.labels.clone()),
        layers: model.transformer.layers.iter().map(layer).collect(),
        pre_feed_forward: model.transformer.pre_feed_forward.as_ref().map(|f| Hidden { hidden: f.b1.len() }),
        source: model.source.clone(),
    }
}

/// The tensors of a model: name, shape, numbers.
pub fn tensors<T: Clone>(model: &Model<T>) -> Vec<(String, Vec<usize>, Vec<T>)> {
    let mut list = Vec::new();
    let mut matrix = |name: String, m: &Matrix<T>| list.push((name, vec![m.rows, m.cols], m.data.clone()));
    if let Some(words) = &model.words {
        matrix("embedding.weight".to_owned(), &words.embedding);
    }
    if let Some(positions) = &model.positions {
        matrix("positions.weight".to_owned(), positions);
    }
    if let Some(head) = &model.head {
        matrix("head.weight".to_owned(), &head.weight);
        list.push(("head.bias".to_owned(), vec![head.bias.len()], head.bias.clone()));
    }
    let feed_forward = |list: &mut Vec<_>, prefix: &str, block: &FeedForward<T>| {
        list.push((format!("{prefix}.w1"), vec![block.w1.rows, block.w1.cols], block.w1.data.clone()));
        list.push((format!("{prefix}.b1"), vec![block.b1.len()], block.b1.clone()));
        list.push((format!("{prefix}.w2"), vec![block.w2.rows, block.w2.cols], block.w2.data.clone()));
        list.push((format!("{prefix}.b2"), vec![block.b2.len()], block.b2.clone()));
    };
    if let Some(block) = &model.transformer.pre_feed_forward {
        feed_forward(&mut list, "pre_feed_forward", block);
    }
    for (i, layer) in model.transformer.layers.iter().enumerate() {
        if let Some(attention) = &layer.attention {
            let names = ["w_q", "w_k", "w_v", "w_o"];
            for (name, part) in names.into_iter().zip(0..) {
                let part = |head: &AttentionHead<T>| [&head.w_q, &head.w_k, &head.w_v, &head.w_o][part].clone();
                let first = part(&attention.heads[0]);
                let shape = vec![attention.heads.len(), first.rows, first.cols];
                let numbers = attention.heads.iter().flat_map(|h| part(h).data).collect();
                list.push((format!("layers.{i}.attention.{name}"), shape, numbers));
            }
        }
        if let Some(block) = &layer.feed_forward {
            feed_forward(&mut list, &format!("layers.{i}.feed_forward"), block);
        }
    }
    list
}
