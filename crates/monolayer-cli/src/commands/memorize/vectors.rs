//! What is said of the methods that work on any vectors.

use monolayer::memorize::proof_constants::PaperProof;
use monolayer::memorize::{DeepDetails, HingeDetails, paper_parameters};
use monolayer::{Compiled, Dataset};
use serde_json::{Value, json};

use super::{Args, candidates, tokens_note, with_counts};
use crate::output::{count, table};

fn row(name: &str, value: String, note: &str) -> Vec<String> {
    vec![name.to_owned(), value, note.to_owned()]
}

/// Of plateaus and curves.
pub fn hinges(
    args: &Args,
    data: &Dataset,
    compiled: &Compiled,
    hinges: &HingeDetails,
    seconds: f64,
) -> (Value, String) {
    let right = compiled.right();
    let model = compiled.model();
    let config = model.config();
    let hidden = config.layers[0].hidden;
    let proof = &hinges.proof;
    let json = with_counts(
        data,
        compiled,
        &json!({
            "hidden": hidden,
            "ids": compiled.context_ids(),
            "runs": hinges.runs,
            "d": config.d,
            "dtype": config.dtype,
            "max_length": config.max_length,
            "parameters": model.parameters(),
            "nonzero": model.nonzero_parameters(),
            "paper_parameters": paper_parameters(data, 1, config.d),
            "smallest_gap": compiled.gap(),
            "candidates": candidates(compiled),
            "certified": right,
            "real_error": proof.real_error,
            "float_error": proof.float_error,
            "seconds": seconds,
        }),
    );
    let rows = [
        row(
            "right",
            count(right),
            &format!(
                "{}; proved in f64, rounding included, whatever the order of the sums",
                tokens_note(data, compiled)
            ),
        ),
        row("sequences right", count(compiled.sequences_right()), &format!("of {}", count(data.sequences()))),
        row("ids", count(compiled.context_ids()), &format!("in {} runs of equal labels", count(hinges.runs))),
        row("hidden units", count(hidden), ""),
        row("smallest gap", format!("{:.1e}", compiled.gap()), "of the ids' standard deviation"),
        row("error, real", format!("{:.1e}", proof.real_error), "|F(X) - Y| is at most this, proved"),
        row(
            "error, f64",
            format!("{:.1e}", proof.float_error),
            "the same with rounding, whatever the order of the sums",
        ),
        row("seconds", format!("{seconds:.2}"), ""),
    ];
    (json, table(&rows, &[2]) + &args.next())
}

/// Of many thin layers.
pub fn deep(data: &Dataset, compiled: &Compiled, deep: &DeepDetails, seconds: f64) -> (Value, String) {
    let right = compiled.right();
    let config = compiled.model().config();
    let layers = config.layers.len();
    let json = with_counts(
        data,
        compiled,
        &json!({
            "layers": layers,
            "hidden": config.layers.iter().map(|layer| layer.hidden).sum::<usize>(),
            "ids": compiled.context_ids(),
            "d": config.d,
            "dtype": config.dtype,
            "nonzero": deep.nonzero,
            "nonzero_one_layer": deep.one_layer,
            "paper_parameters": paper_parameters(data, 1, config.d),
            "smallest_gap": compiled.gap(),
            "certified": right,
            "seconds": seconds,
        }),
    );
    let rows = [
        row("right", count(right), &format!("{}; evaluated in exact rational arithmetic", tokens_note(data, compiled))),
        row("sequences right", count(compiled.sequences_right()), &format!("of {}", count(data.sequences()))),
        row("ids", count(compiled.context_ids()), ""),
        row("layers", count(layers), "one attention, then feed-forward layers that read the bits of packed numbers"),
        row("numbers not 0", count(deep.nonzero), &format!("one hidden layer would take {}", count(deep.one_layer))),
        row("seconds", format!("{seconds:.2}"), ""),
    ];
    (json, table(&rows, &[2]))
}

/// Of the paper's own constants, on a toy.
pub fn paper(data: &Dataset, compiled: &Compiled, proof: &PaperProof, seconds: f64) -> (Value, String) {
    let json = json!({
        "tokens": data.tokens(),
        "sequences": data.sequences(),
        "free": compiled.free().len(),
        "method": compiled.method(),
        "ids": compiled.context_ids(),
        "hidden": proof.block.b1.len(),
        "log2_delta": proof.log2_delta,
        "log2_gap": proof.log2_gap,
        "bits": proof.bits,
        "log2_error": proof.log2_error,
        "seconds": seconds,
    });
    let rows = [
        row("ids", count(compiled.context_ids()), ""),
        row("delta of Theorem 2", format!("2^{:.1}", proof.log2_delta), "eq. 8"),
        row("smallest gap found", format!("2^{:.1}", proof.log2_gap), "proved"),
        row("bits", count(proof.bits), "of every number in the computation"),
        row("|F(X) - Y|", format!("2^{:.1}", proof.log2_error), "at most, proved in real arithmetic"),
        row("seconds", format!("{seconds:.2}"), "nothing is written: these numbers fit no float"),
    ];
    (json, table(&rows, &[2]))
}
