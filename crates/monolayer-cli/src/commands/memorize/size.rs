//! What a memorized dataset takes on the disk, beside what its labels take in gzip.

use std::path::Path;

use anyhow::Result;
use monolayer::{Dataset, Error};
use serde_json::Value;

use crate::output::count;

/// Adds `bytes`, `bytes_dense` (of the numbers in full) and `labels_gzip` to the fields of `--json`, and gives a line about them.
pub fn add(out: &Path, data: &Dataset, json: &mut Value) -> Result<String> {
    // Exact numbers are in weights.json.
    let path = ["model.safetensors", "weights.json"].map(|name| out.join(name)).into_iter().find(|path| path.exists());
    let path = path.unwrap_or_else(|| out.join("model.safetensors"));
    let bytes = path.metadata().map_err(|e| Error::io(&path, e))?.len();
    let labels = data.labels_in_gzip();
    let width = match json["dtype"].as_str() {
        Some("f32") => Some(4),
        Some("f64") => Some(8),
        _ => None,
    };
    let dense = json["parameters"].as_u64().zip(width).map(|(numbers, width)| numbers * width);
    json["bytes"] = bytes.into();
    json["bytes_dense"] = dense.into();
    json["labels_gzip"] = labels.into();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = labels.map_or(String::new(), |labels| format!("; the labels alone take {} in gzip", count(labels)));
    let full = match dense {
        Some(dense) if dense > bytes => format!(" ({} in full)", count(usize::try_from(dense)?)),
        _ => String::new(),
    };
    Ok(format!("{name}: {} bytes{full}{beside}\n", count(usize::try_from(bytes)?)))
}
