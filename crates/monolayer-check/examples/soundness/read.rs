//! A model directory back into memory, with the names of its words and labels.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::case::{Attention, Block, Data, Head, Layer, Mask, Model, Token, Wanted};

pub struct Named {
    pub model: Model,
    pub words: HashMap<String, usize>,
    pub labels: Vec<String>,
}

type Tensors = HashMap<String, Vec<f64>>;

fn tensors(bytes: &[u8]) -> Option<Tensors> {
    let start = 8 + u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?) as usize;
    let header: Value = serde_json::from_slice(bytes.get(8..start)?).ok()?;
    let mut out = HashMap::new();
    for (name, entry) in header.as_object()?.iter().filter(|(name, _)| *name != "__metadata__") {
        let end = |i: usize| entry["data_offsets"][i].as_u64().map(|x| start + x as usize);
        let data = bytes.get(end(0)?..end(1)?)?;
        // Numbers in fewer bytes are not read here, nor are matrices by their nonzero entries.
        let numbers = match entry["dtype"].as_str()? {
            "F32" => data.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect(),
            "F64" => data.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes"))).collect(),
            _ => return None,
        };
        out.insert(name.clone(), numbers);
    }
    Some(out)
}

fn block(tensors: &mut Tensors, name: &str) -> Option<Block> {
    let mut take = |part: &str| tensors.remove(&format!("{name}.{part}"));
    let b1 = take("b1")?;
    Some(Block { hidden: b1.len(), w1: take("w1")?, b1, w2: take("w2")?, b2: take("b2")? })
}

fn mask(json: &Value) -> Option<Mask> {
    let size = |x: &Value| x.as_u64().map(|x| x as usize);
    match json.as_str() {
        Some("none") => Some(Mask::None),
        Some("causal") => Some(Mask::Causal),
        _ if json["prefix"].is_u64() => size(&json["prefix"]).map(Mask::Prefix),
        _ => Some(Mask::Band(size(&json["band"][0])?, size(&json["band"][1])?)),
    }
}

pub fn model(dir: &Path) -> Option<Named> {
    let json = |name: &str| serde_json::from_slice::<Value>(&fs::read(dir.join(name)).ok()?).ok();
    let config = json("config.json")?;
    let mut tensors = tensors(&fs::read(dir.join("model.safetensors")).ok()?)?;
    let mut layers = Vec::new();
    for (i, layer) in config["layers"].as_array()?.iter().enumerate() {
        let json = &layer["attention"];
        let mut take = |part: &str| tensors.remove(&format!("layers.{i}.attention.{part}"));
        let attention = if json.is_null() {
            None
        } else {
            Some(Attention {
                hard: json["kind"] == "hardmax",
                heads: json["heads"].as_u64()? as usize,
                size: json["head_size"].as_u64()? as usize,
                mask: mask(&json["mask"])?,
                w_q: take("w_q")?,
                w_k: take("w_k")?,
                w_v: take("w_v")?,
                w_o: take("w_o")?,
            })
        };
        layers.push(Layer { attention, block: block(&mut tensors, &format!("layers.{i}.feed_forward")) });
    }
    let words: HashMap<String, usize> = json("vocabulary.json")
        .and_then(|v| Some(v.as_object()?.iter().map(|(k, v)| (k.clone(), v.as_u64().unwrap_or(0) as usize)).collect()))
        .unwrap_or_default();
    let names = |v: &Value| v.as_array().map(|l| l.iter().map(|x| x.as_str().unwrap_or("").to_owned()).collect());
    let labels: Option<Vec<String>> = names(&config["labels"]);
    let head = tensors.remove("head.bias").zip(tensors.remove("head.weight")).map(|(bias, weight)| Head {
        labels: labels.is_some(),
        rows: bias.len(),
        weight,
        bias,
    });
    let model = Model {
        single: config["dtype"] == "f32",
        d: config["d"].as_u64()? as usize,
        embedding: tensors.remove("embedding.weight"),
        start: config["start"].as_str().and_then(|s| words.get(s).copied()),
        positions: tensors.remove("positions.weight"),
        pre: block(&mut tensors, "pre_feed_forward"),
        layers,
        head,
    };
    Some(Named { model, words, labels: labels.unwrap_or_default() })
}

/// CoNLL columns or JSON lines of words with labels, or JSON lines of vectors.
pub fn data(named: &Named, path: &Path) -> Option<Data> {
    let text = fs::read_to_string(path).ok()?;
    let label = |name: &str| Wanted::Label(named.labels.iter().position(|l| l == name).unwrap_or(usize::MAX));
    let word = |name: &str| named.words.get(name).or_else(|| named.words.get("<unk>")).map(|w| Token::Word(*w));
    let mut data = Data::default();
    if path.extension().is_some_and(|e| e == "jsonl") {
        let vector = |v: &Value| v.as_array().map(|v| v.iter().map(|x| x.as_f64().unwrap_or(0.0)).collect());
        for line in text.lines().filter(|l| !l.trim().is_empty()) {
            let json: Value = serde_json::from_str(line).ok()?;
            let token = |t: &Value| t.as_str().map_or_else(|| vector(t).map(Token::Vector), word);
            data.sequences.push(json["tokens"].as_array()?.iter().map(token).collect::<Option<_>>()?);
            let wanted = |l: &Value| l.as_str().map_or_else(|| vector(l).map(Wanted::Output), |l| Some(label(l)));
            if let Some(all) = json["labels"].as_array() {
                data.wanted.push(all.iter().map(wanted).collect::<Option<_>>()?);
            }
        }
        return Some(data);
    }
    for part in text.split("\n\n").filter(|p| !p.trim().is_empty()) {
        let rows: Vec<Vec<&str>> =
            part.lines().filter(|l| !l.is_empty()).map(|l| l.split_whitespace().collect()).collect();
        data.sequences.push(rows.iter().map(|r| word(r[0])).collect::<Option<_>>()?);
        data.wanted.push(rows.iter().map(|r| label(r[r.len() - 1])).collect());
    }
    Some(data)
}
