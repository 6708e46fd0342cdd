//! `monolayer hardmax`: Theorem 1.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use dashu_ratio::RBig;
use monolayer::paper::attention::{Attention, AttentionKind, Mask};
use monolayer::paper::hardmax::{
    HardmaxLayer, SoftmaxGap, Witness, draws, mean_pooling, printed_pair, softmax_gap, witness,
};
use serde_json::{Value, json};

use super::exact_layer::{attention_of, number, shortened};
use super::{DOES, Outcome, READS, Shared};
use crate::output::count;

/// Run Theorem 1: two sequences that no hardmax layer can tell apart at a token they share, and softmax weights that can
///
/// The two outputs are computed in exact rational arithmetic and compared; tied scores share the weight equally. Without
/// DIR, random layers are used, with 1 to 8 heads of size 1 to 8 and d from 1 to 16. Exit code 1 if two outputs differ.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer hardmax --draws 2000")]
pub struct Args {
    /// Model directory; its attention weights are used with hardmax
    #[arg(value_name = "DIR")]
    model: Option<PathBuf>,
    /// Layer to use, counted from 0 (default: the first one with attention)
    #[arg(long, value_name = "I", requires = "model", help_heading = READS)]
    layer: Option<usize>,
    /// Number of tokens in a sequence, at least 4
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = length, help_heading = DOES)]
    length: usize,
    /// Number of random layers, or with DIR of random directions v (default: 2000 layers, 20 directions)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = DOES)]
    draws: Option<u32>,
    /// Seed of the random layers or directions
    #[arg(long, default_value_t = 0, help_heading = DOES)]
    seed: u64,
}

/// At least 4, where the theorem begins, and no more than a run can hold.
fn length(text: &str) -> Result<usize, String> {
    let n: usize = text.parse().map_err(|_| format!("{text:?} is not a number of tokens"))?;
    match n {
        4..=10_000 => Ok(n),
        0..4 => Err("with fewer than 4 tokens the theorem does not hold: three heads can tell all apart".to_owned()),
        _ => Err("ask for at most 10000 tokens".to_owned()),
    }
}

pub fn run(args: &Args, _shared: &Shared) -> Result<Outcome> {
    match &args.model {
        Some(dir) => of_model(args, dir),
        None => at_random(args),
    }
}

/// The witness against one layer.
fn of_model(args: &Args, dir: &Path) -> Result<Outcome> {
    let start = Instant::now();
    let (index, attention) = attention_of(dir, args.layer)?;
    let layer = HardmaxLayer::new(&attention);
    let d = attention.heads[0].w_q.cols;
    let directions = args.draws.unwrap_or(20) as usize;
    let mut blind = 0;
    for i in 1..directions {
        blind += usize::from(witness(&layer, &direction(d, args.seed, i), args.length)?.blind());
    }
    let v = direction(d, args.seed, 0);
    let found = witness(&layer, &v, args.length)?;
    blind += usize::from(found.blind());
    let printed = printed_pair(&layer, &v)?;
    let softmax = softmax_gap(&v, args.length)?;
    let json = json!({
        "layer": index,
        "kind": attention.kind,
        "heads": attention.heads.len(),
        "head_size": attention.heads[0].w_q.rows,
        "d": d,
        "length": args.length,
        "draws": directions,
        "blind": blind,
        "v": v.iter().map(number).collect::<Vec<f64>>(),
        "witness": witness_json(&found, &v),
        "separates_printed_pair": !printed.blind(),
        "softmax": softmax_json(&softmax),
        "seconds": start.elapsed().as_secs_f64(),
    });
    let text =
        model_text((index, &attention), &v, &found, &printed, (blind, directions)) + &softmax_text(&softmax) + "\n";
    Ok(Outcome::decided(json, text, blind == directions && softmax.gap.is_certainly_positive()))
}

/// What there is to say of one layer.
fn model_text(
    (index, attention): (usize, &Attention<RBig>),
    v: &[RBig],
    found: &Witness,
    printed: &Witness,
    (blind, directions): (usize, usize),
) -> String {
    let d = attention.heads[0].w_q.cols;
    let read_as = match attention.kind {
        AttentionKind::Hardmax => "",
        AttentionKind::Softmax => "; the model uses softmax: its weights are read as those of a hardmax layer",
    };
    let shown = |part: &Vec<i64>| shortened(&part.iter().map(ToString::to_string).collect::<Vec<_>>());
    format!(
        "layer {index}: {} of size {} on tokens of dimension {d}{read_as}\n\n\
         v = ({})\n  first   ({}) v\n  second  ({}) v\n\n\
         output at the last token, {} v (rounded here, compared exactly):\n  first   ({})\n  second  ({})\n\
         {} at {}; so for {} of {} directions v\n\n\
         the paper's pair, (1, 2, 4) v and (1, 3, 4) v: this layer {}\n",
        if attention.heads.len() == 1 { "1 head".to_owned() } else { format!("{} heads", attention.heads.len()) },
        attention.heads[0].w_q.rows,
        shortened(&v.iter().map(ToString::to_string).collect::<Vec<_>>()),
        shown(&found.sequences[0]),
        shown(&found.sequences[1]),
        found.sequences[0][found.sequences[0].len() - 1],
        shortened(&decimals(found, 0)),
        shortened(&decimals(found, 1)),
        if found.blind() { "equal as rational numbers" } else { "DIFFERENT" },
        match (&attention.mask, found.shared.len()) {
            (Mask::None, shared) => format!("each of {shared} shared tokens"),
            (Mask::Causal, _) => "the last token, the only one that sees all under the causal mask".to_owned(),
            (_, shared) => format!("{shared} of the shared tokens, those that see all under the mask"),
        },
        count(blind),
        count(directions),
        if printed.blind() { "does not tell it apart, either" } else { "tells it apart" },
    )
}

/// Random layers.
fn at_random(args: &Args) -> Result<Outcome> {
    let start = Instant::now();
    let tally = draws(args.draws.unwrap_or(2000) as usize, args.length, args.seed)?;
    let one = [RBig::ONE];
    let pooling = HardmaxLayer::new(&mean_pooling(1));
    let printed = printed_pair(&pooling, &one)?;
    let softmax = softmax_gap(&one, args.length)?;
    let json = json!({
        "length": args.length,
        "draws": tally.layers,
        "blind": tally.blind,
        "heads": { "all": tally.heads, "largest": tally.largest, "smallest": tally.smallest, "mean": tally.mean },
        "separate_printed_pair": tally.separate_printed_pair,
        "witness": witness_json(&witness(&pooling, &one, args.length)?, &one),
        "printed_pair": witness_json(&printed, &one),
        "softmax": softmax_json(&softmax),
        "seconds": start.elapsed().as_secs_f64(),
    });
    let common = if args.length > 4 { ", each after 7 v, 8 v, ... in common" } else { "" };
    let text = format!(
        "{} random hardmax layers on (1, 2, 5, 6) v and (1, 3, 4, 6) v{common}, in exact arithmetic:\n  \
         {} give equal outputs at every shared token\n  \
         from the last token, of {} heads {} attend to the largest token, {} to the smallest, {} to all ((W_K v) . (W_Q v) = 0)\n\n\
         the paper's pair, (1, 2, 4) v and (1, 3, 4) v: {} of these layers tell it apart; at 4, mean pooling gives {} and {}\n\
         {}\n",
        count(tally.layers),
        count(tally.blind),
        count(tally.heads),
        count(tally.largest),
        count(tally.smallest),
        count(tally.mean),
        count(tally.separate_printed_pair),
        printed.outputs[0][0][0],
        printed.outputs[1][0][0],
        softmax_text(&softmax),
    );
    Ok(Outcome::decided(json, text, tally.blind == tally.layers && softmax.gap.is_certainly_positive()))
}

/// A direction whose entries are 1, 2 or 3 and their negatives, from the hash of seed and number.
fn direction(d: usize, seed: u64, number: usize) -> Vec<RBig> {
    let mut bytes = vec![0; d];
    blake3::Hasher::new().update(format!("direction {seed} {number}").as_bytes()).finalize_xof().fill(&mut bytes);
    bytes.iter().map(|b| RBig::from([-3, -2, -1, 1, 2, 3][usize::from(b % 6)])).collect()
}

/// The output at the last token as decimals.
fn decimals(found: &Witness, which: usize) -> Vec<String> {
    let last = found.outputs[which].last().map(Vec::as_slice).unwrap_or_default();
    last.iter().map(|x| format!("{:.6}", number(x))).collect()
}

fn witness_json(found: &Witness, v: &[RBig]) -> Value {
    let vectors = |multiples: &Vec<i64>| -> Vec<Vec<f64>> {
        multiples.iter().map(|&a| v.iter().map(|x| number(&(RBig::from(a) * x))).collect()).collect()
    };
    let text = |row: &Vec<RBig>| row.iter().map(ToString::to_string).collect::<Vec<String>>();
    json!({
        "multiples": found.sequences,
        "sequences": found.sequences.each_ref().map(vectors),
        "shared": found.shared.iter().map(|place| place + 1).collect::<Vec<usize>>(),
        "outputs": found.outputs.each_ref().map(|rows| rows.iter().map(text).collect::<Vec<_>>()),
        "equal": found.blind(),
    })
}

fn softmax_json(softmax: &SoftmaxGap) -> Value {
    let gap = softmax.gap.to_interval();
    json!({ "coordinate": softmax.coordinate, "v1": softmax.v1, "v2": softmax.v2, "w_o": softmax.v1.recip(), "gap": [gap.lo(), gap.hi()] })
}

fn softmax_text(softmax: &SoftmaxGap) -> String {
    let c = softmax.coordinate + 1;
    format!(
        "softmax, rank 1 (v1 = {} e_{c}, v2 = {} e_{c}, W_O = {} e_{c}): outputs at the last token are {:.6e} apart, certified",
        softmax.v1,
        softmax.v2,
        softmax.v1.recip(),
        softmax.gap.to_interval().lo()
    )
}
