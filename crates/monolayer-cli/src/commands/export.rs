//! `monolayer export`: a model in another format.

use std::path::PathBuf;

use anyhow::Result;
use monolayer::AnyModel;
use monolayer::fs::replace_file;
use serde_json::json;

use super::{Outcome, WRITES};
use crate::output::count;

/// Write a model in another format: ONNX
///
/// Inputs: `input_ids` int64 [batch, n] (`inputs` [batch, n, d] where tokens are vectors) and `attention_mask` int64 [batch, n],
/// 0 on padding. Output: `logits` [batch, n, labels], or `outputs`. Batch and n may be anything. A start token is put before
/// every sequence by the graph itself.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer export model --onnx model.onnx")]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// The ONNX file to write
    #[arg(long, value_name = "FILE", help_heading = WRITES)]
    onnx: PathBuf,
}

pub fn run(args: &Args) -> Result<Outcome> {
    let bytes = AnyModel::open(&args.model)?.onnx()?;
    replace_file(&args.onnx, &bytes)?;
    let file = args.onnx.display();
    let json = json!({ "file": file.to_string(), "bytes": bytes.len() });
    Ok(Outcome::done(json, format!("{file}: {} bytes\n", count(bytes.len()))))
}
