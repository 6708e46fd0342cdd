//! An attention layer of a model in rational numbers, for the commands that run theorems on it.

use std::path::Path;

use anyhow::Result;
use dashu_ratio::RBig;
use monolayer::arithmetic::rational;
use monolayer::model::exact::map_attention;
use monolayer::paper::attention::Attention;
use monolayer::{AnyModel, Error, Model};

/// The attention of a layer of a model, exactly, and which layer it is.
pub fn attention_of(dir: &Path, layer: Option<usize>) -> Result<(usize, Attention<RBig>)> {
    match AnyModel::open(dir)? {
        AnyModel::Exact(model) => pick(&model, dir, layer, RBig::clone),
        floats => pick(&floats.widened(), dir, layer, |&x| rational(x)),
    }
}

fn pick<T: Clone>(
    model: &Model<T>,
    dir: &Path,
    layer: Option<usize>,
    exact: impl Fn(&T) -> RBig + Copy,
) -> Result<(usize, Attention<RBig>)> {
    let layers = &model.transformer.layers;
    let first = layers.iter().position(|layer| layer.attention.is_some());
    let bad = |what: String, help: &str| Err(Error::model(dir.join("config.json"), what, help).into());
    match (layer, first) {
        (_, None) => bad("no layer has attention".to_owned(), "give a model with attention"),
        (Some(i), _) if i >= layers.len() => {
            bad(format!("there is no layer {i}"), &format!("the last one is {}", layers.len() - 1))
        }
        (Some(i), Some(first)) if layers[i].attention.is_none() => {
            bad(format!("layer {i} has no attention"), &format!("layer {first} has"))
        }
        (chosen, Some(first)) => {
            let i = chosen.unwrap_or(first);
            let attention = layers[i].attention.as_ref().expect("chosen for it");
            Ok((i, map_attention(attention, exact)))
        }
    }
}

/// A rational number as a float.
pub fn number(x: &RBig) -> f64 {
    x.to_f64().value()
}

/// A list of which the middle is left out where it is long.
pub fn shortened(items: &[String]) -> String {
    if items.len() <= 12 {
        return items.join(", ");
    }
    format!("{}, ... {} more ..., {}", items[..8].join(", "), items.len() - 12, items[items.len() - 4..].join(", "))
}
