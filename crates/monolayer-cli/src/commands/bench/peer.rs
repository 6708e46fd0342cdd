//! The training job in PyTorch: benches/peers/train_torch.py, in its fastest mode.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;

/// The peer's fastest run.
#[derive(Serialize)]
pub struct Peer {
    pub mode: &'static str,
    pub threads: usize,
    pub tokens_per_second: f64,
    pub seconds_per_epoch: f64,
    /// Cores that other programs kept busy meanwhile.
    pub others_cores: Option<f64>,
}

/// The peer with so many layers on a CoNLL file, eager and compiled, on one thread and on two; `steps` of 0 is whole epochs.
pub fn fastest(python: &Path, data: &str, layers: usize, epochs: usize, steps: usize) -> Result<Peer> {
    let script = Path::new("benches/peers/train_torch.py");
    let numbers = [layers, epochs, steps].map(|n| n.to_string());
    let mut best: Option<Peer> = None;
    for mode in ["eager", "compile"] {
        for threads in [1, 2] {
            let output = Command::new(python)
                .arg(script)
                .args(["--data", data, "--layers", &numbers[0], "--epochs", &numbers[1], "--steps", &numbers[2]])
                .args(["--mode", mode, "--threads", &threads.to_string()])
                .output()
                .with_context(|| format!("could not run {} {}", python.display(), script.display()))?;
            let line = String::from_utf8_lossy(&output.stdout);
            let report: Option<Value> = line.lines().last().and_then(|l| serde_json::from_str(l).ok());
            let number = |name: &str| report.as_ref().and_then(|r| r[name].as_f64());
            let (Some(rate), Some(seconds)) = (number("tokens_per_second"), number("seconds_per_epoch")) else {
                continue;
            };
            if best.as_ref().is_none_or(|best| rate > best.tokens_per_second) {
                let others_cores = number("others_cores");
                best = Some(Peer { mode, threads, tokens_per_second: rate, seconds_per_epoch: seconds, others_cores });
            }
        }
    }
    let Some(best) = best else {
        bail!("{} printed no figure; run it by hand to see why (from the root of the repository)", script.display());
    };
    Ok(best)
}
