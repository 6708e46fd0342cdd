//! `monolayer memorize` for the methods that work on any vectors.

use std::time::Instant;

use anyhow::Result;
use monolayer::Dataset;
use monolayer::data::Labels;
use monolayer::data::context::Agreement;
use monolayer::memorize::deep::{DeepMemo, memorize_deep};
use monolayer::memorize::paper::{PaperMemo, memorize_paper};
use monolayer::memorize::paper_parameters;
use monolayer::memorize::vectors::{Method, VectorMemo, VectorOptions, memorize_vectors};
use monolayer::model;
use monolayer::model::certificate::{self, Claim};
use monolayer::model::exact;
use monolayer::model::exact_file;
use serde_json::{Value, json};

use super::{Args, MethodArg, PrecisionArg, conflicts};
use crate::commands::{Outcome, Shared};
use crate::output::{Progress, count, table};

/// The most bits that the paper's own constants may ask for.
const MOST_BITS: usize = 1 << 16;

pub fn run(args: &Args, method: MethodArg, data: &Dataset, shared: &Shared, start: Instant) -> Result<Outcome> {
    if args.unknown || args.embedding == "free" || matches!(args.precision, PrecisionArg::F32) {
        return Err(monolayer::Error::request(
            format!("--unknown, --embedding free and --precision f32 do not go with --method {}", method.name()),
            "they are for --method gated",
        )
        .into());
    }
    let options = VectorOptions {
        method: if method == MethodArg::Interpolate { Method::Interpolate } else { Method::Plateau },
        embedding: args.embedding.parse()?,
        positions: args.positions.clone(),
        mask: args.mask.into(),
        seed: args.seed,
        candidates: args.candidates,
    };
    let progress = Progress::new(shared, "searching", args.candidates);
    let tell = |tried: usize, _gap: f64| progress.add(tried);
    match method {
        MethodArg::Paper => {
            let memo = memorize_paper(data, &options.embedding, args.seed, MOST_BITS)?;
            Ok(paper(data, &memo, start))
        }
        MethodArg::Deep => deep(args, data, &memorize_deep(data, &options, &tell)?, start),
        _ => vectors(args, method, data, &memorize_vectors(data, &options, &tell)?, start),
    }
}

fn vectors(args: &Args, method: MethodArg, data: &Dataset, memo: &VectorMemo, start: Instant) -> Result<Outcome> {
    let possible = data.tokens() - memo.agreement.impossible.len();
    let right = possible - memo.undecided.len();
    let mut model = memo.model.clone();
    model.source = args.source(method, memo.candidates, data);
    let mut claims = claims(data, memo, right);
    claims.extend(Claim::ranks(&model));
    let certify = |dir: &std::path::Path| certificate::write(dir, data, memo.agreement.impossible.len(), &claims);
    model::file::write(&model, args.out()?, certify)?;
    let seconds = start.elapsed().as_secs_f64();
    let config = model::file::config(&model);
    let tensors = model::file::tensors(&model);
    let hidden = config.layers[0].hidden;
    let json = json!({
        "tokens": data.tokens(),
        "sequences": data.sequences(),
        "memorized": right,
        "possible": possible,
        "conflicts": conflicts(data, &memo.agreement.impossible),
        "method": method.name(),
        "hidden": hidden,
        "ids": memo.distinct,
        "runs": memo.runs,
        "d": config.d,
        "dtype": config.dtype,
        "max_length": config.max_length,
        "parameters": tensors.iter().map(|t| t.2.len()).sum::<usize>(),
        "nonzero": tensors.iter().map(|t| t.2.iter().filter(|&&x| x != 0.0).count()).sum::<usize>(),
        "paper_parameters": paper_parameters(data, 1, config.d),
        "smallest_gap": memo.gap,
        "candidates": memo.candidates,
        "certified": right,
        "real_error": memo.proof.real_error,
        "float_error": memo.proof.float_error,
        "seconds": seconds,
    });
    let row = |name: &str, value: String, note: &str| vec![name.to_owned(), value, note.to_owned()];
    let rows = [
        row("right", count(right), "proved in f64, in any order of summation"),
        row("possible", count(possible), &format!("of {} tokens", count(data.tokens()))),
        row("ids", count(memo.distinct), &format!("in {} runs of equal labels", count(memo.runs))),
        row("hidden units", count(hidden), ""),
        row("smallest gap", format!("{:.1e}", memo.gap), "of the ids' standard deviation"),
        row("error, real", format!("{:.1e}", memo.proof.real_error), "|F(X) - Y| is at most this, proved"),
        row(
            "error, f64",
            format!("{:.1e}", memo.proof.float_error),
            "the same with rounding, in any order of summation",
        ),
        row("seconds", format!("{seconds:.2}"), ""),
    ];
    let text = table(&rows, &[2]) + &args.next();
    Ok(Outcome::decided(json, text, args.holds(right == possible, &memo.agreement.impossible)))
}

/// Classes are claimed as labels, vectors as outputs.
fn claims(data: &Dataset, memo: &VectorMemo, right: usize) -> Vec<Claim> {
    let place = |&t: &usize| {
        let place = data.place(t);
        (place.sequence.unwrap_or(0), place.token.unwrap_or(0))
    };
    match data.labels {
        Labels::Classes { .. } => vec![Claim::Labels {
            arithmetic: "f64".to_owned(),
            right,
            undecided: memo.undecided.iter().map(place).collect(),
            smallest_margin_ratio: memo.proof.ratio.iter().copied().fold(1.0, f64::min),
        }],
        // A checker with bounds of its own needs some room, also where the error is 0: enclosures never decide an equality.
        _ => [("real", memo.proof.real_error), ("f64", memo.proof.float_error)]
            .map(|(arithmetic, error)| Claim::Outputs {
                arithmetic: arithmetic.to_owned(),
                tolerance: (4.0 * error).max(1e-300),
            })
            .to_vec(),
    }
}

fn deep(args: &Args, data: &Dataset, memo: &DeepMemo, start: Instant) -> Result<Outcome> {
    let exact = &memo.exact;
    let right = exactly_right(data, memo)?;
    let mut model = exact.model.clone();
    model.source = args.source(MethodArg::Deep, args.candidates, data);
    let impossible = exact.agreement.impossible.len();
    let claims = exact_claims(data, right);
    let certify = |dir: &std::path::Path| certificate::write(dir, data, impossible, &claims);
    exact_file::write(&model, args.out()?, certify)?;
    let seconds = start.elapsed().as_secs_f64();
    let possible = data.tokens() - exact.agreement.impossible.len();
    let layers = model.transformer.layers.len();
    let json = json!({
        "tokens": data.tokens(),
        "sequences": data.sequences(),
        "memorized": right,
        "possible": possible,
        "conflicts": conflicts(data, &exact.agreement.impossible),
        "method": "deep",
        "layers": layers,
        "hidden": model.transformer.layers.iter().map(|l| l.feed_forward.as_ref().map_or(0, |f| f.b1.len())).sum::<usize>(),
        "ids": exact.distinct,
        "d": model.transformer.d,
        "dtype": "exact",
        "nonzero": memo.nonzero,
        "nonzero_one_layer": memo.one_layer,
        "paper_parameters": paper_parameters(data, 1, model.transformer.d),
        "smallest_gap": exact.gap,
        "certified": right,
        "seconds": seconds,
    });
    let row = |name: &str, value: String, note: &str| vec![name.to_owned(), value, note.to_owned()];
    let rows = [
        row("right", count(right), &format!("of {} possible, evaluated in exact rational arithmetic", count(possible))),
        row("ids", count(exact.distinct), ""),
        row("layers", count(layers), "one attention, then feed-forward layers that read the bits of packed numbers"),
        row("numbers not 0", count(memo.nonzero), &format!("one hidden layer would take {}", count(memo.one_layer))),
        row("seconds", format!("{seconds:.2}"), ""),
    ];
    Ok(Outcome::decided(json, table(&rows, &[2]), args.holds(right == possible, &exact.agreement.impossible)))
}

/// What is claimed of exact numbers, in real arithmetic: all possible labels, or outputs with no error but for the room that
/// enclosures need.
fn exact_claims(data: &Dataset, right: usize) -> Vec<Claim> {
    let arithmetic = "real".to_owned();
    match data.labels {
        Labels::Classes { .. } => {
            vec![Claim::Labels { arithmetic, right, undecided: Vec::new(), smallest_margin_ratio: 1.0 }]
        }
        _ => vec![Claim::Outputs { arithmetic, tolerance: 1e-300 }],
    }
}

/// Possible tokens whose label comes out exactly.
fn exactly_right(data: &Dataset, memo: &DeepMemo) -> Result<usize> {
    let agreement: &Agreement = &memo.exact.agreement;
    let mut impossible = vec![false; data.tokens()];
    agreement.impossible.iter().for_each(|&t| impossible[t] = true);
    let right: Vec<bool> = match &data.labels {
        Labels::Classes { ids, .. } => {
            exact::labels(&memo.exact.model, data)?.iter().zip(ids).map(|(found, label)| found == label).collect()
        }
        Labels::Vectors { d, data: wanted } => {
            let equal = |(found, wanted): (&Vec<_>, &[f64])| {
                found.iter().zip(wanted).all(|(found, &wanted)| *found == exact::rational(wanted))
            };
            exact::outputs(&memo.exact.model, data)?.iter().zip(wanted.chunks_exact(*d)).map(equal).collect()
        }
        Labels::None => Vec::new(),
    };
    Ok(right.iter().zip(&impossible).filter(|&(&right, &impossible)| right && !impossible).count())
}

/// The paper's own constants, on a toy: nothing to write, since its numbers need more bits than a file of floats has.
fn paper(data: &Dataset, memo: &PaperMemo, start: Instant) -> Outcome {
    let seconds = start.elapsed().as_secs_f64();
    let json: Value = json!({
        "tokens": data.tokens(),
        "sequences": data.sequences(),
        "method": "paper",
        "ids": memo.distinct,
        "hidden": memo.block.b1.len(),
        "log2_delta": memo.log2_delta,
        "log2_gap": memo.log2_gap,
        "bits": memo.bits,
        "log2_error": memo.log2_error,
        "seconds": seconds,
    });
    let row = |name: &str, value: String, note: &str| vec![name.to_owned(), value, note.to_owned()];
    let rows = [
        row("ids", count(memo.distinct), ""),
        row("delta of Theorem 2", format!("2^{:.1}", memo.log2_delta), "eq. 8"),
        row("smallest gap found", format!("2^{:.1}", memo.log2_gap), "proved"),
        row("bits", count(memo.bits), "of every number in the computation"),
        row("|F(X) - Y|", format!("2^{:.1}", memo.log2_error), "at most, proved in real arithmetic"),
        row("seconds", format!("{seconds:.2}"), "nothing is written: these numbers fit no float"),
    ];
    Outcome::done(json, table(&rows, &[2]))
}
