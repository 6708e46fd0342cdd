//! What the rules found of a sequence, written out for others to check: an enclosure of every key, query, value, score, weight,
//! head value, hidden unit that may be on, output and label score. Nothing is decided here.

use std::fmt::Write as _;

use crate::model::Attention;
use crate::rules::attention::{Projected, Seen, Weights, project, weights};
use crate::rules::ball::Ball;
use crate::rules::judge::Judge;
use crate::rules::matrix::Matrix;
use crate::rules::network::{Block, Network};
use crate::rules::sum::Arithmetic;

/// A JSON line per token of a sequence (the start token's first), for each block of the model; nothing where a program may
/// overflow. An enclosure is `[low, high, e]`: from low 2^e to high 2^e.
pub fn witness(judge: &Judge, sequence: usize) -> Option<String> {
    let (network, arithmetic) = (judge.network, judge.network.arithmetic);
    let mut tokens = judge.tokens(sequence, 0)?;
    let mut out = String::new();
    for (b, block) in network.blocks.iter().enumerate() {
        let projected = match &block.attention {
            Some(layer) => Some((layer, project(arithmetic, layer, &tokens)?)),
            None => None,
        };
        let mut next = Vec::new();
        for i in 0..tokens.len() {
            let _ = write!(out, "{{\"sequence\":{sequence},\"token\":{i},\"block\":{b}");
            let mut z = vec![];
            if let Some((layer, projected)) = &projected {
                let seen = Seen::new(&layer.mask, i, tokens.len(), network.start);
                attention(&mut out, arithmetic, layer, projected, i, &seen)?;
                z = projected.read(arithmetic, layer, i, &seen)?;
                field(&mut out, "heads", &z);
            }
            next.push(feed_forward(&mut out, network, block, &tokens[i], &z)?);
            if let (Some((weight, _)), true) = (&network.head, b + 1 == network.blocks.len()) {
                let scores = (0..weight.rows()).map(|l| network.score(l, &next[i]));
                let scores = scores.map(|sum| Some(sum?.computed())).collect::<Option<Vec<_>>>()?;
                field(&mut out, "labels", &scores);
            }
            out.push_str("}\n");
        }
        tokens = next;
    }
    Some(out)
}

fn attention(
    out: &mut String,
    arithmetic: Arithmetic,
    layer: &Attention<Matrix>,
    projected: &Projected,
    i: usize,
    seen: &Seen,
) -> Option<()> {
    let width = layer.heads * layer.size;
    let own = |of: &[Ball]| of[i * width..(i + 1) * width].to_vec();
    field(out, "keys", &own(&projected.keys));
    field(out, "queries", &own(&projected.queries));
    field(out, "values", &own(&projected.values));
    let sees: Vec<String> = seen.iter().map(|j| j.to_string()).collect();
    let _ = write!(out, ",\"sees\":[{}]", sees.join(","));
    for head in 0..layer.heads {
        let columns = head * layer.size..(head + 1) * layer.size;
        let scores = projected.scores(arithmetic, i, &columns, seen)?;
        field(out, &format!("scores {head}"), &scores);
        if let Weights::Known(weights) = weights(arithmetic, layer.hard, &scores) {
            field(out, &format!("weights {head}"), &weights);
        }
    }
    Some(())
}

fn feed_forward(out: &mut String, network: &Network, block: &Block, x: &[Ball], z: &[Ball]) -> Option<Vec<Ball>> {
    let token = block.skip(network.arithmetic, x, z)?;
    field(out, "attended", &token.whole);
    let output = network.output(block, &token, None)?;
    let on = output.units.iter().filter(|unit| !unit.after.is_zero());
    let on: Vec<String> = on.map(|unit| format!("[{},{}]", unit.index, ends(unit.before))).collect();
    let _ = write!(out, ",\"units\":[{}]", on.join(","));
    field(out, "outputs", &output.whole);
    Some(output.whole)
}

fn ends(x: Ball) -> String {
    let (low, high, e) = x.ends();
    format!("[{low},{high},{e}]")
}

fn field(out: &mut String, name: &str, balls: &[Ball]) {
    let balls: Vec<String> = balls.iter().map(|x| ends(*x)).collect();
    let _ = write!(out, ",\"{name}\":[{}]", balls.join(","));
}
