//! What the page shows of an approximated function: tokens to drag, the function, the model, and the certified distance.

use std::path::Path;

use maud::{Markup, html};
use monolayer::arithmetic::kernels::Real;
use monolayer::model::{self, Source};
use monolayer::{Model, Result};
use serde_json::{Value, json};

use super::data_block;
use super::pack::pack;

/// The model's numbers may take so many characters of the page.
const MOST_CHARACTERS: usize = 3_400_000;

/// What is shown of a model that approximates a function; nothing for others.
pub fn body<R: Real>(directory: &Path, model: &Model<R>) -> Result<Option<Markup>> {
    let Source::Approximate { length, p, function, grid, .. } = &model.source else { return Ok(None) };
    let tensors = model::directory::tensors(model);
    let size: usize = tensors.iter().map(|(_, _, data)| data.len()).sum();
    let packed: serde_json::Map<String, Value> = tensors
        .into_iter()
        .map(|(name, shape, data)| {
            let data: Vec<f64> = data.iter().map(|x| x.to_f64()).collect();
            (name, pack(&shape, &data, R::NAME == f32::NAME))
        })
        .collect();
    let packed = Value::Object(packed);
    let parts: Vec<String> = grid.iter().map(ToString::to_string).collect();
    let parts = if grid.windows(2).all(|pair| pair[0] == pair[1]) { parts[0].clone() } else { parts.join(", ") };
    let what = html! { p { "f = " code { (function) } ", for sequences of " (length) " tokens in [0, 1]; the model rounds each coordinate to one of " (parts) " parts and looks up a value for the rounded sequence." } };
    if packed.to_string().len() > MOST_CHARACTERS {
        return Ok(Some(html! { (what) p.remark { "The model is too large for this page to run it." } }));
    }
    let value = json!({
        "d": model.transformer.d,
        "length": length,
        "p": p,
        "function": function,
        "bound": certified(directory),
        "tensors": packed,
        "tensorSize": size,
    });
    Ok(Some(html! {
        div.approximation {
            (what)
            p.story role="status" {}
            noscript { p.remark { "The picture needs JavaScript." } }
            p.remark { "Drag a token, or move it with the arrow keys." }
            div.place {}
            (data_block("approximation-data", &value))
        }
    }))
}

/// The bound on the distance that the certificate claims.
fn certified(directory: &Path) -> Option<f64> {
    let certificate: Value = serde_json::from_slice(&std::fs::read(directory.join("certificate.json")).ok()?).ok()?;
    certificate["claims"].as_array()?.iter().find(|claim| claim["kind"] == "distance")?["bound"].as_f64()
}
