//! `monolayer unquantized`: section 6's open question, Theorems A and B of docs/unquantized.md.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use dashu_ratio::RBig;
use monolayer::arithmetic::Ball;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::paper::hardmax::mean_pooling;
use monolayer::paper::unquantized::{Collision, Instance, Twin, collision, collisions, twin, twins};
use serde_json::{Value, json};

use super::exact_layer::{attention_of, number, shortened};
use super::{DOES, Outcome, READS, Shared};
use crate::output::{Progress, count};

/// Show what one attention layer without a quantizer cannot do: two sequences that collide, for any weights
///
/// The function is f(Z)_k = z_k + (1/(n-1)) sum_j (z_k1 - z_j1)^2 e_1 on [-1, 1]^d, continuous and permutation equivariant. The
/// layer maps the last tokens of both sequences to the same vector, exactly, while f differs there by 1 or more. So whatever
/// tokenwise map follows the layer has an error of at least 1/2 in the sup norm. This answers a question of the paper's section 6
/// for that norm; docs/unquantized.md has the proof. Without DIR, random layers are used, with 1 to 8 heads of size 1 to 8 and d
/// from 1 to 8, singular ones among them. The same is shown on [1, 2]^d, where no token is 0, for another function and an error of
/// at least 1/8 (Theorem B of docs/unquantized.md). Exit code 1 if a layer tells the two sequences apart.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer unquantized --draws 10000")]
pub struct Args {
    /// Model directory; the weights of one of its attention layers are used, without what precedes it
    #[arg(value_name = "DIR")]
    model: Option<PathBuf>,
    /// Layer to use, counted from 0 (default: the first one with attention)
    #[arg(long, value_name = "I", requires = "model", help_heading = READS)]
    layer: Option<usize>,
    /// Number of tokens in a sequence, at least 2
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=10_000), help_heading = DOES)]
    length: u32,
    /// Number of random layers
    #[arg(long, value_name = "N", default_value_t = 2000, conflicts_with = "model", value_parser = clap::value_parser!(u32).range(1..), help_heading = DOES)]
    draws: u32,
    /// Seed of the random layers
    #[arg(long, default_value_t = 0, conflicts_with = "model", help_heading = DOES)]
    seed: u64,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    match &args.model {
        Some(dir) => of_model(args, dir),
        None => at_random(args, shared),
    }
}

/// The two sequences for one layer.
fn of_model(args: &Args, dir: &Path) -> Result<Outcome> {
    let start = Instant::now();
    let (index, attention) = attention_of(dir, args.layer)?;
    let found = collision(&attention, args.length as usize)?;
    let instance = Instance::new();
    let away = twin(&instance, &attention, args.length as usize)?;
    let same_scores = instance.same_scores(&attention, args.length as usize);
    let (heads, size, d) = (attention.heads.len(), attention.heads[0].w_q.rows, attention.heads[0].w_q.cols);
    let json = json!({
        "layer": index,
        "heads": heads,
        "head_size": size,
        "d": d,
        "length": args.length,
        "bound": number(&found.distance()) / 2.0,
        "witness": collision_json(&found),
        "exact": true,
        "theorem_b": {
            "bound": bound(&instance),
            "exact": true,
            "instance": instance_json(&instance, d, args.length as usize),
            "same_scores": same_scores,
            "witness": twin_json(&away),
        },
        "seconds": start.elapsed().as_secs_f64(),
    });
    let text = format!(
        "layer {index}: heads: {heads}, of size {size}, on tokens of dimension {d}\n\n{}\n{}",
        text(&found),
        text_b(&instance, &away)
    );
    Ok(Outcome::decided(json, text, found.holds() && same_scores && keeps_theorem_b(&instance, &away)))
}

/// Random layers.
fn at_random(args: &Args, shared: &Shared) -> Result<Outcome> {
    let start = Instant::now();
    let progress = Progress::new(shared, "Theorem A", args.draws as usize, "layers");
    let tally = collisions(args.draws as usize, args.length as usize, args.seed, || progress.add(1))?;
    let instance = Instance::new();
    progress.stage("Theorem B", args.draws as usize);
    let away = twins(&instance, args.draws as usize, args.length as usize, args.seed, || progress.add(1))?;
    drop(progress);
    let example = collision(&mean_pooling(1), args.length as usize)?;
    let near = twin(&instance, &mean_pooling(1), args.length as usize)?;
    let json = json!({
        "length": args.length,
        "draws": tally.layers,
        "collide": tally.colliding,
        "singular": tally.singular,
        "smallest_distance": tally.distance.to_string(),
        "bound": number(&tally.distance) / 2.0,
        "witness": collision_json(&example),
        "exact": true,
        "theorem_b": {
            "bound": bound(&instance),
            "exact": true,
            "instance": instance_json(&instance, 1, args.length as usize),
            "same_scores": away.same_scores,
            "collide": away.colliding,
            "smallest_distance": away.distance,
            "witness": twin_json(&near),
        },
        "seconds": start.elapsed().as_secs_f64(),
    });
    let text = format!(
        "{} random softmax layers, in exact arithmetic:\n  {} map two tokens to the same vector where f differs by 1 or more \
         (smallest difference {:.6})\n  {} of them have a singular I + sum W_O W_V\n\nby hand, d = 1, a head that adds the mean of all tokens:\n{}\n{}{} of {} random layers have such a pair \
         (smallest distance, certified: {:.6})\n\ndone in {:.1} s\n",
        count(tally.layers),
        count(tally.colliding),
        number(&tally.distance),
        count(tally.singular),
        text(&example),
        text_b(&instance, &near),
        count(away.colliding),
        count(away.layers),
        away.distance,
        start.elapsed().as_secs_f64(),
    );
    let all = [tally.colliding, away.colliding, away.same_scores].into_iter().all(|found| found == tally.layers);
    Ok(Outcome::decided(json, text, all))
}

/// What there is to say of one layer.
fn text(found: &Collision) -> String {
    let vector = |x: &[RBig]| shortened(&x.iter().map(|x| format!("{:.6}", number(x))).collect::<Vec<_>>());
    let sequence = |z: &Matrix<RBig>| {
        let (first, last) = (z.row(0), z.row(z.rows - 1));
        if first == last {
            return format!("all {} tokens ({})", z.rows, vector(last));
        }
        format!("{} times ({}), then ({})", z.rows - 1, vector(first), vector(last))
    };
    format!(
        "  first   {}\n  second  {}\n\noutput at the last token (rounded here, compared exactly):\n  first   ({})\n  second  ({})\n\
         {}\n\nf at the last token:\n  first   ({})\n  second  ({})\n{:.6} apart in the sup norm: whatever follows the layer, \
         its error is at least {:.6}\n",
        sequence(&found.sequences[0]),
        sequence(&found.sequences[1]),
        vector(&found.outputs[0]),
        vector(&found.outputs[1]),
        if found.outputs[0] == found.outputs[1] { "equal as rational numbers" } else { "DIFFERENT" },
        vector(&found.targets[0]),
        vector(&found.targets[1]),
        number(&found.distance()),
        number(&found.distance()) / 2.0,
    )
}

/// The error of Theorem B.
fn bound(instance: &Instance) -> f64 {
    instance.bound().map_or(0.0, |bound| number(&bound))
}

/// Whether a layer has what Theorem B promises: f twice the bound apart, certified up to 2^-20.
fn keeps_theorem_b(instance: &Instance, found: &Twin) -> bool {
    found.inside() && found.distance() >= 2.0 * bound(instance) - 2_f64.powi(-20)
}

/// Theorem B, and what there is to say of one layer.
fn text_b(instance: &Instance, found: &Twin) -> String {
    let vector = |x: &[RBig]| shortened(&x.iter().map(|x| format!("{:.6}", number(x))).collect::<Vec<_>>());
    let ([x, z], [x2, z2]) = (&instance.first, &instance.second);
    let constant: Vec<String> = found.constant.iter().map(|c| format!("{:.6}", c.to_interval().center())).collect();
    format!(
        "without a zero token, on [1, 2]^d: the last tokens of ({z}, .., {x}) and ({z2}, .., {x2}) have the same scores, and the \
         second function asks for numbers {} off: an error of at least {} for every layer\n  here    ({}), .., ({})\n  and     all \
         tokens ({})\ncollide, and the function is at least {:.6} apart\n",
        instance.gap(),
        instance.bound().map_or_else(|| "0".to_owned(), |bound| bound.to_string()),
        vector(found.sequence.row(0)),
        vector(found.sequence.row(found.sequence.rows - 1)),
        shortened(&constant),
        found.distance(),
    )
}

fn exact(row: &[RBig]) -> Vec<String> {
    row.iter().map(ToString::to_string).collect()
}

fn instance_json(instance: &Instance, d: usize, length: usize) -> Value {
    json!({
        "sequences": instance.sequences(d, length).each_ref().map(|z| z.iter_rows().map(exact).collect::<Vec<_>>()),
        "factor": instance.factor.to_string(),
        "targets": instance.values().each_ref().map(ToString::to_string),
        "gap": instance.gap().to_string(),
        "clearance": instance.clearance().to_string(),
        "bound": instance.bound().map(|bound| bound.to_string()),
    })
}

fn twin_json(found: &Twin) -> Value {
    let enclosed = |c: &Ball| [c.to_interval().lo(), c.to_interval().hi()];
    json!({
        "sequence": found.sequence.iter_rows().map(exact).collect::<Vec<_>>(),
        "constant": found.constant.iter().map(enclosed).collect::<Vec<_>>(),
        "target": exact(&found.target),
        "distance_at_least": found.distance(),
        "singular": found.singular,
    })
}

fn collision_json(found: &Collision) -> Value {
    json!({
        "sequences": found.sequences.each_ref().map(|z| z.iter_rows().map(exact).collect::<Vec<_>>()),
        "outputs": found.outputs.each_ref().map(|row| exact(row)),
        "targets": found.targets.each_ref().map(|row| exact(row)),
        "distance": found.distance().to_string(),
        "singular": found.singular,
        "holds": found.holds(),
    })
}
