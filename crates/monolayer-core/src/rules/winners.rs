//! The labels that a program may give a token.

use super::ball::Ball;
use super::judge::MANY_RIVALS;
use super::network::{Attended, Block, Network, Output};

/// All labels that some program may give, and maybe others: those that no other certainly wins over. Nothing where a program may
/// overflow, or without labels.
pub fn winners(network: &Network, block: &Block, token: &Attended, output: &Output) -> Option<Vec<usize>> {
    let (labels, mut y) = (network.head.as_ref()?.0.rows(), output.whole.clone());
    let prepared = block.prepare(token, output);
    let best = network.leader(&y)?;
    let mut near = network.rivals(&y, best);
    if near.as_ref().is_some_and(|near| near.len() > MANY_RIVALS) {
        y = prepared.sharpened(network.head_columns());
        near = network.rivals(&y, best);
    }
    // Of equal scores that of the lower label wins.
    let above = |a: usize, b: usize, margin: Ball| if a < b { margin.is_not_negative() } else { margin.is_positive() };
    let wins = |a: usize, b: usize| {
        let (own, other) = (network.score(a, &y)?, network.score(b, &y)?);
        let rounding = own.rounding.plus(other.rounding);
        let rough = own.computed().plus(other.computed().minus());
        Some(above(a, b, rough) || above(a, b, network.margin(&prepared, a, b).plus(rounding)))
    };
    let mut open = vec![best];
    for l in near.unwrap_or_else(|| (0..labels).filter(|l| *l != best).collect()) {
        if !wins(best, l)? {
            open.push(l);
        }
    }
    // Who is beaten by another that is open is not given: of those that are left, some label wins over it.
    let mut at = 0;
    while at < open.len() && open.len() > 2 {
        let beaten = |by: &usize| Some(*by != open[at] && wins(*by, open[at])?);
        let beaten = open.iter().map(beaten).collect::<Option<Vec<bool>>>()?.contains(&true);
        if beaten {
            open.remove(at);
        } else {
            at += 1;
        }
    }
    open.sort_unstable();
    Some(open)
}
