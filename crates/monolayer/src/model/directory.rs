//! Model directories: config.json, model.safetensors, vocabulary.json. The one place that reads and writes them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::data::Vocabulary;
use crate::error::{Error, Result};
use crate::model::mask_file::{self, MaskConfig};
use crate::model::storage::{Storage, StoredTensor};
use crate::model::tensor_file::Tensors;
use crate::model::{AnyModel, LabelHead, Model, OutputHead, Source, Words, exact_file, strict_json};
use crate::paper::attention::{AttentionHead, AttentionKind, Mask};
use crate::paper::feed_forward::FeedForward;
use crate::paper::mask::MaskMatrix;
use crate::paper::transformer::{Layer, Transformer};

/// The version of models that need nothing newer.
pub const FORMAT: &str = "monolayer/1";

/// The version of models with a start token, with masks that are objects, with outputs of a dimension of their own, or with numbers
/// that are not all stored in full.
pub const FORMAT_2: &str = "monolayer/2";

/// config.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// [`FORMAT`] or [`FORMAT_2`].
    pub format: String,
    /// The dimension of tokens.
    pub d: usize,
    /// `"f32"`, `"f64"` or `"exact"`.
    pub dtype: String,
    /// How many positions there are, when they are used.
    pub max_length: Option<usize>,
    /// The start token, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The label names, when outputs are labels.
    pub labels: Option<Vec<String>>,
    /// The dimension of outputs, when it is not d.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<usize>,
    /// The layers.
    pub layers: Vec<LayerConfig>,
    /// The feed-forward block before the first layer.
    pub pre_feed_forward: Option<Hidden>,
    /// How the model was made.
    #[serde(default)]
    pub source: Value,
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
    pub kind: AttentionKind,
    /// How many heads.
    pub heads: usize,
    /// Their size.
    pub head_size: usize,
    /// Which tokens a query sees.
    pub mask: MaskConfig,
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
        exact_file::DTYPE => exact_file::read(dir).map(AnyModel::Exact),
        other => Err(Error::model(
            dir.join("config.json"),
            format!("dtype {other:?}"),
            "only \"f32\" and \"f64\" models can be run",
        )),
    }
}

const CONFIG_HELP: &str = "see docs/format.md for what config.json holds";

pub(crate) fn read_config(path: &Path) -> Result<Config> {
    let bytes = read_file(path)?;
    let value = parse_json(path, &bytes, CONFIG_HELP)?;
    refuse_unreadable(path, &value)?;
    // From the bytes for errors that tell the place; from the value because "source" may have numbers beyond the floats.
    let config = serde_json::from_slice(&bytes).or_else(|e| serde_json::from_value(value).map_err(|_| e));
    let config: Config = config.map_err(|e| Error::model(path, e.to_string(), CONFIG_HELP))?;
    let zero_heads = |l: &LayerConfig| l.attention.as_ref().is_some_and(|a| a.heads == 0 || a.head_size == 0);
    let zero_pre = config.pre_feed_forward.as_ref().is_some_and(|pre| pre.hidden == 0);
    if config.d == 0 || config.max_length == Some(0) || zero_pre || config.layers.iter().any(zero_heads) {
        return Err(Error::model(
            path,
            "a d, max_length, heads, head_size or pre_feed_forward.hidden of 0",
            "each must be at least 1",
        ));
    }
    if config.outputs == Some(0) || (config.outputs.is_some() && config.labels.is_some()) {
        let what = "outputs of dimension 0, or labels and outputs together";
        return Err(Error::model(path, what, "outputs is a size from 1, where labels is null"));
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

/// A file of JSON that can be read in one way only.
pub(crate) fn parse_json(path: &Path, bytes: &[u8], help: &str) -> Result<Value> {
    strict_json::parse(bytes).map_err(|what| Error::model(path, what, help))
}

/// Refuses a config of another version, what only version 2 has in one of version 1, what cannot be run here, and values that
/// are not objects or names where those should be.
fn refuse_unreadable(path: &Path, config: &Value) -> Result<()> {
    let fail = |what: String, help: &str| Err(Error::model(path, what, help));
    let shape = CONFIG_HELP;
    let version_2 = match config.get("format").and_then(Value::as_str) {
        Some(FORMAT) => false,
        Some(FORMAT_2) => true,
        _ => {
            let found = config.get("format").unwrap_or(&Value::Null);
            let help = format!("this program reads {FORMAT:?} and {FORMAT_2:?}; another version may read this one");
            return fail(format!("format {found}"), &help);
        }
    };
    if let Some(field) = ["start", "outputs"].into_iter().find(|&field| !version_2 && config.get(field).is_some()) {
        return fail(format!("the field {field:?} in a {FORMAT} file"), shape);
    }
    let object = |value: Option<&Value>| value.is_none_or(|value| value.is_object() || value.is_null());
    if !object(config.get("pre_feed_forward")) {
        return fail("pre_feed_forward is no object".to_owned(), shape);
    }
    for layer in config.get("layers").and_then(Value::as_array).into_iter().flatten() {
        let attention = layer.get("attention").unwrap_or(&Value::Null);
        if !layer.is_object() || !object(Some(attention)) {
            return fail("a layer or an attention that is no object".to_owned(), shape);
        }
        if attention.is_object() && !attention.get("kind").is_some_and(Value::is_string) {
            return fail("an attention whose kind is no name".to_owned(), shape);
        }
        match attention.get("mask") {
            Some(Value::Object(_)) if !version_2 => {
                return fail(format!("a mask that is an object in a {FORMAT} file"), shape);
            }
            Some(mask @ Value::Object(_)) => {
                if let Some(what) = mask_file::fault(mask) {
                    return fail(what, shape);
                }
            }
            _ => (),
        }
    }
    Ok(())
}

pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| Error::io(path, e))
}

fn read_model<R: Real>(dir: &Path, config: Config) -> Result<Model<R>> {
    let path = dir.join("model.safetensors");
    let bytes = read_file(&path)?;
    let tensors = Tensors::parse(&path, &bytes, config.format == FORMAT_2)?;
    assemble(dir, config, tensors)
}

/// A model from its config and tensors.
pub(crate) fn assemble<T: Clone>(dir: &Path, config: Config, mut tensors: Tensors<T>) -> Result<Model<T>> {
    let d = config.d;
    let vocabulary = dir.join("vocabulary.json");
    let words = if tensors.has("embedding.weight") {
        let rows = tensors.rows("embedding.weight")?;
        // First the numbers: rows without numbers could be any number of rows.
        let embedding = tensors.matrix("embedding.weight", rows, d)?;
        Some(Words { vocabulary: read_vocabulary(&vocabulary, rows)?, embedding, start: None })
    } else if vocabulary.exists() {
        return Err(Error::model(vocabulary, "words, but no tensor embedding.weight", "it is not of this model"));
    } else {
        None
    };
    let words = with_start(dir, words, config.start.as_deref())?;
    let positions = config.max_length.map(|length| tensors.matrix("positions.weight", length, d)).transpose()?;
    let pre = config.pre_feed_forward.as_ref().map(|pre| tensors.feed_forward("pre_feed_forward", pre.hidden, d));
    let masks = masks(dir, &config)?;
    let layers = config.layers.iter().zip(masks).enumerate().map(|(i, (layer, mask))| {
        let attention = layer.attention.as_ref().zip(mask);
        Ok(Layer {
            attention: attention.map(|(a, mask)| tensors.attention(i, a, mask, d)).transpose()?,
            feed_forward: (layer.hidden > 0)
                .then(|| tensors.feed_forward(&format!("layers.{i}.feed_forward"), layer.hidden, d))
                .transpose()?,
        })
    });
    let pre_feed_forward = pre.transpose()?;
    let layers = layers.collect::<Result<Vec<_>>>()?;
    let head = match config.labels {
        Some(labels) => Some(LabelHead {
            weight: tensors.matrix("head.weight", labels.len(), d)?,
            bias: tensors.vector("head.bias", labels.len())?,
            labels,
        }),
        None => None,
    };
    let output_head = |k: usize| -> Result<OutputHead<T>> {
        Ok(OutputHead { weight: tensors.matrix("head.weight", k, d)?, bias: tensors.vector("head.bias", k)? })
    };
    let outputs = config.outputs.map(output_head).transpose()?;
    tensors.finish()?;
    Ok(Model {
        words,
        positions,
        transformer: Transformer { d, pre_feed_forward, layers },
        head,
        outputs,
        source: Source::from_json(config.source),
    })
}

/// The words with the start token that config.json names, if it names one.
fn with_start<T>(dir: &Path, words: Option<Words<T>>, start: Option<&str>) -> Result<Option<Words<T>>> {
    let Some(name) = start else { return Ok(words) };
    let row = words.as_ref().and_then(|words| words.vocabulary.get(name));
    if row.is_none() {
        let what = format!("the start token {name:?} is no word of the model");
        return Err(Error::model(dir.join("config.json"), what, "it must be a word of vocabulary.json"));
    }
    Ok(words.map(|words| Words { start: row, ..words }))
}

/// The mask of each layer that has attention, from config.json and mask.safetensors.
fn masks(dir: &Path, config: &Config) -> Result<Vec<Option<Mask>>> {
    let file = mask_file::of_model(dir)?;
    let named = |l: &LayerConfig| l.attention.as_ref().is_some_and(|a| matches!(a.mask, MaskConfig::File(_)));
    if file.is_some() && !config.layers.iter().any(named) {
        return Err(Error::model(dir.join(mask_file::FILE), "no layer names it", "it is not of this model"));
    }
    let missing = || Error::model(dir.join(mask_file::FILE), "it is missing", "a layer of config.json names it");
    let mask = |a: &AttentionConfig| a.mask.resolve(file.as_ref()).ok_or_else(missing);
    config.layers.iter().map(|layer| layer.attention.as_ref().map(mask).transpose()).collect()
}

/// vocabulary.json: each word once, each with a row of the embedding, every row with one word.
fn read_vocabulary(path: &Path, rows: usize) -> Result<Vocabulary> {
    let help = "it must give each row of embedding.weight one word, from 0";
    let bad = |what: String| Error::model(path, what, help);
    let Value::Object(pairs) = parse_json(path, &read_file(path)?, help)? else {
        return Err(bad("it is no object of words and row numbers".to_owned()));
    };
    let mut words: Vec<Option<&str>> = vec![None; rows];
    for (word, id) in &pairs {
        let slot = id.as_u64().and_then(|id| words.get_mut(usize::try_from(id).ok()?));
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

/// Writes a model directory: into a new directory beside it, which then takes its place. What is there already must be a
/// model or an empty directory. `more` may add files to the new directory.
pub fn write<R: Real>(model: &Model<R>, dir: &Path, more: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    write_as(model, Storage::Auto, dir, more)
}

/// The same, with the numbers stored in a given way.
pub fn write_as<R: Real>(
    model: &Model<R>,
    storage: Storage,
    dir: &Path,
    more: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    replace(dir, |new| {
        let mut config = config(model);
        let (tensors, newer) = storage.stored(model, config.format == FORMAT_2);
        if newer {
            FORMAT_2.clone_into(&mut config.format);
        }
        write_config_and_words(model, &config, new)?;
        write_tensors(&tensors, new)?;
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

/// The matrix of a model's masks. A directory has room for one.
fn mask_matrix<T>(model: &Model<T>) -> Result<Option<&MaskMatrix>> {
    let masks = model.transformer.layers.iter().filter_map(|layer| layer.attention.as_ref()).map(|a| &a.mask);
    let mut matrices = masks.filter_map(|mask| if let Mask::Matrix(matrix) = mask { Some(&**matrix) } else { None });
    let first = matrices.next();
    if matrices.all(|matrix| Some(matrix) == first) {
        return Ok(first);
    }
    Err(Error::mismatch("layers with different mask matrices", "give all layers of a model the same matrix"))
}

/// config.json, mask.safetensors where a mask is a matrix, and vocabulary.json where inputs are words.
pub(crate) fn write_config_and_words<T>(model: &Model<T>, config: &Config, dir: &Path) -> Result<()> {
    let config = serde_json::to_string_pretty(config).expect("a config is plain data");
    put(dir, "config.json", format!("{config}\n").as_bytes())?;
    if let Some(matrix) = mask_matrix(model)? {
        put(dir, mask_file::FILE, &mask_file::to_bytes(matrix))?;
    }
    if let Some(words) = &model.words {
        let by_row: BTreeMap<usize, &String> = words.vocabulary.names().iter().enumerate().collect();
        let lines: Vec<String> =
            by_row.iter().map(|(row, word)| format!("{}: {row}", serde_json::Value::from(word.as_str()))).collect();
        put(dir, "vocabulary.json", format!("{{\n{}\n}}\n", lines.join(",\n")).as_bytes())?;
    }
    Ok(())
}

fn write_tensors(tensors: &[StoredTensor], dir: &Path) -> Result<()> {
    put(dir, "model.safetensors", &tensor_bytes(tensors, &dir.join("model.safetensors"))?)
}

/// The bytes of a file of tensors.
pub(crate) fn tensor_bytes(tensors: &[StoredTensor], path: &Path) -> Result<Vec<u8>> {
    let views = tensors.iter().map(|tensor| (&tensor.name, tensor.view()));
    safetensors::serialize(views, None)
        .map_err(|e| Error::model(path, e.to_string(), "the model is too large for the format"))
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
            mask: MaskConfig::new(&a.mask),
        }),
        hidden: layer.feed_forward.as_ref().map_or(0, |f| f.b1.len()),
    };
    let layers: Vec<LayerConfig> = model.transformer.layers.iter().map(layer).collect();
    let name = |words: &Words<T>| Some(words.vocabulary.name(words.start?).to_owned());
    let start = model.words.as_ref().and_then(name);
    let newer = layers.iter().filter_map(|layer| layer.attention.as_ref()).any(|a| a.mask.is_object());
    let newer = newer || start.is_some() || model.outputs.is_some();
    Config {
        format: if newer { FORMAT_2 } else { FORMAT }.to_owned(),
        d: model.transformer.d,
        dtype: dtype.to_owned(),
        max_length: model.positions.as_ref().map(|p| p.rows),
        start,
        labels: model.head.as_ref().map(|h| h.labels.clone()),
        outputs: model.outputs.as_ref().map(|h| h.bias.len()),
        layers,
        pre_feed_forward: model.transformer.pre_feed_forward.as_ref().map(|f| Hidden { hidden: f.b1.len() }),
        source: model.source.json(),
    }
}

/// The tensors of a model: name, shape, numbers.
pub fn tensors<'a, T: Clone>(model: &'a Model<T>) -> Vec<(String, Vec<usize>, Cow<'a, [T]>)> {
    let mut list = Vec::new();
    let mut matrix =
        |name: String, m: &'a Matrix<T>| list.push((name, vec![m.rows, m.cols], Cow::Borrowed(&m.data[..])));
    if let Some(words) = &model.words {
        matrix("embedding.weight".to_owned(), &words.embedding);
    }
    if let Some(positions) = &model.positions {
        matrix("positions.weight".to_owned(), positions);
    }
    let labels = model.head.as_ref().map(|head| (&head.weight, &head.bias));
    if let Some((weight, bias)) = labels.or(model.outputs.as_ref().map(|head| (&head.weight, &head.bias))) {
        matrix("head.weight".to_owned(), weight);
        list.push(("head.bias".to_owned(), vec![bias.len()], Cow::Borrowed(&bias[..])));
    }
    let feed_forward = |list: &mut Vec<_>, prefix: &str, block: &'a FeedForward<T>| {
        list.push((format!("{prefix}.w1"), vec![block.w1.rows, block.w1.cols], Cow::Borrowed(&block.w1.data[..])));
        list.push((format!("{prefix}.b1"), vec![block.b1.len()], Cow::Borrowed(&block.b1[..])));
        list.push((format!("{prefix}.w2"), vec![block.w2.rows, block.w2.cols], Cow::Borrowed(&block.w2.data[..])));
        list.push((format!("{prefix}.b2"), vec![block.b2.len()], Cow::Borrowed(&block.b2[..])));
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
                let numbers: Vec<T> = attention.heads.iter().flat_map(|h| part(h).data).collect();
                list.push((format!("layers.{i}.attention.{name}"), shape, Cow::Owned(numbers)));
            }
        }
        if let Some(block) = &layer.feed_forward {
            feed_forward(&mut list, &format!("layers.{i}.feed_forward"), block);
        }
    }
    list
}
