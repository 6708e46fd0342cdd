//! Cases as directories.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::case::{Attention, Case, Claim, Data, Mask, Model, Token, Wanted};

fn mask(mask: Mask) -> Value {
    match mask {
        Mask::None => json!("none"),
        Mask::Causal => json!("causal"),
        Mask::Prefix(k) => json!({"prefix": k}),
        Mask::Band(before, after) => json!({"band": [before, after]}),
        Mask::Matrix(_) => json!({"file": "mask.safetensors"}),
    }
}

fn attention(a: &Attention) -> Value {
    let kind = if a.hard { "hardmax" } else { "softmax" };
    json!({"kind": kind, "heads": a.heads, "head_size": a.size, "mask": mask(a.mask)})
}

pub fn config(model: &Model) -> Value {
    let layer = |l: &super::case::Layer| {
        let hidden = l.block.as_ref().map_or(0, |b| b.hidden);
        json!({"attention": l.attention.as_ref().map(attention), "hidden": hidden})
    };
    let labels = |n: usize| (0..n).map(|l| format!("L{l}")).collect::<Vec<_>>();
    let mut config = json!({
        "format": if model.second_format() { "monolayer/2" } else { "monolayer/1" },
        "d": model.d,
        "dtype": if model.single { "f32" } else { "f64" },
        "max_length": model.positions.as_ref().map(|p| p.len() / model.d),
        "labels": model.head.as_ref().filter(|h| h.labels).map(|h| labels(h.rows)),
        "layers": model.layers.iter().map(layer).collect::<Vec<_>>(),
        "pre_feed_forward": model.pre.as_ref().map(|b| json!({"hidden": b.hidden})),
        "source": {},
    });
    if let Some(row) = model.start {
        config["start"] = json!(format!("w{row}"));
    }
    if let Some(head) = model.head.as_ref().filter(|h| !h.labels) {
        config["outputs"] = json!(head.rows);
    }
    config
}

pub fn safetensors(model: &Model) -> Vec<u8> {
    let (mut header, mut bytes) = (Map::new(), Vec::new());
    for (name, shape, numbers) in model.tensors() {
        let begin = bytes.len();
        for &x in numbers {
            if model.single {
                bytes.extend((x as f32).to_le_bytes());
            } else {
                bytes.extend(x.to_le_bytes());
            }
        }
        let dtype = if model.single { "F32" } else { "F64" };
        header.insert(name, json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, bytes.len()]}));
    }
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes].concat()
}

/// JSON lines without spaces, which is the canonical form.
pub fn data(data: &Data) -> String {
    let token = |t: &Token| match t {
        Token::Word(w) => json!(format!("w{w}")),
        Token::Vector(v) => json!(v),
    };
    let wanted = |w: &Wanted| match w {
        Wanted::Label(l) => json!(format!("L{l}")),
        Wanted::Output(v) => json!(v),
    };
    let mut out = String::new();
    for (i, sequence) in data.sequences.iter().enumerate() {
        let mut line = json!({"tokens": sequence.iter().map(token).collect::<Vec<_>>()});
        if let Some(all) = data.wanted.get(i) {
            line["labels"] = json!(all.iter().map(wanted).collect::<Vec<_>>());
        }
        out += &format!("{line}\n");
    }
    out
}

/// CoNLL columns, for data of words with labels.
pub fn conll(data: &Data) -> Option<String> {
    let mut out = String::new();
    for (sequence, wanted) in data.sequences.iter().zip(&data.wanted) {
        for pair in sequence.iter().zip(wanted) {
            let (Token::Word(w), Wanted::Label(l)) = pair else { return None };
            out += &format!("w{w} L{l}\n");
        }
        out += "\n";
    }
    Some(out)
}

pub fn claims(case: &Case) -> Value {
    let arithmetic = case.arithmetic.name();
    match &case.claim {
        Claim::Labels => json!([]),
        Claim::Outputs(tolerance) => json!([{"kind": "outputs", "arithmetic": arithmetic, "tolerance": tolerance}]),
        Claim::Mapping(layer, r, delta) => {
            json!([{"kind": "contextual-mapping", "layer": layer, "arithmetic": "real", "log2_r": r, "log2_delta": delta}])
        }
        Claim::Rank(tensor, rank) => json!([{"kind": "rank", "tensor": tensor, "rank": rank}]),
        Claim::Distance(p, bound, function, length) => json!([{
            "kind": "distance", "arithmetic": arithmetic, "p": p, "bound": bound, "function": function, "length": length
        }]),
    }
}

/// Writes a case; the dataset is data.jsonl.
pub fn write(case: &Case, dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let put = |name: &str, content: &[u8]| fs::write(dir.join(name), content);
    put("config.json", config(&case.model).to_string().as_bytes())?;
    put("model.safetensors", &safetensors(&case.model))?;
    let mut hashes = json!({"vocabulary": null});
    if case.model.embedding.is_some() {
        let words: Map<String, Value> = (0..case.model.words()).map(|w| (format!("w{w}"), json!(w))).collect();
        put("vocabulary.json", Value::Object(words).to_string().as_bytes())?;
        hashes["vocabulary"] = json!(hash(&fs::read(dir.join("vocabulary.json"))?));
    }
    let masks = case.model.layers.iter().filter_map(|l| l.attention.as_ref()).map(|a| a.mask);
    if let Some(Mask::Matrix(bits)) = masks.into_iter().find(|mask| matches!(mask, Mask::Matrix(_))) {
        let header = json!({"mask": {"dtype": "U8", "shape": [8, 8], "data_offsets": [0, 64]}}).to_string();
        let bytes: Vec<u8> = (0..64).map(|at| (bits >> at & 1) as u8).collect();
        put("mask.safetensors", &[&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes].concat())?;
        hashes["mask"] = json!(hash(&fs::read(dir.join("mask.safetensors"))?));
    }
    let text = data(&case.data);
    if !case.data.sequences.is_empty() {
        put("data.jsonl", text.as_bytes())?;
    }
    if case.claim != Claim::Labels {
        hashes["config"] = json!(hash(&fs::read(dir.join("config.json"))?));
        hashes["tensors"] = json!(hash(&fs::read(dir.join("model.safetensors"))?));
        let certificate = json!({
            "format": "monolayer-certificate/1",
            "model": hashes,
            "data": {"hash": hash(text.as_bytes())},
            "claims": claims(case),
            "assumptions": {"exp_ulp": 4},
        });
        let mut text = certificate.to_string();
        if let Claim::Outputs(tolerance) = case.claim {
            // Claims are about the decimal number: all its digits.
            text = text.replace(
                &format!("\"tolerance\":{}", json!(tolerance)),
                &format!("\"tolerance\":{}", decimal(tolerance)),
            );
        }
        put("certificate.json", text.as_bytes())?;
    }
    Ok(())
}

/// A number with all its digits.
pub fn decimal(x: f64) -> String {
    format!("{x:.770e}")
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
