//! The smallest distance of ids, evaluated: balls whose precision doubles until no two ids of a token overlap.

use super::gap_in_logarithms::GapInLogarithms;
use super::scores::TokenScores;
use crate::arithmetic::parallel;
use crate::arithmetic::sorting;
use crate::arithmetic::{Ball, Interval, Magnitude, Number};
use crate::context_map::{Groups, Member};
use crate::error::{Error, Result};

/// The bits of the first balls.
const FIRST_BITS: usize = 128;

/// Distances are enclosed this tightly, relatively.
const RELATIVE: f64 = 1e-9;

/// The closest ids of one token.
#[derive(Debug, Clone, PartialEq)]
pub struct GapInBalls {
    /// An enclosure of the binary logarithm of the smallest distance of `g`, and two tokens that have it; `None` where no token
    /// has two contexts.
    pub closest: Option<(Interval, (usize, usize))>,
    /// How many ids were evaluated.
    pub ids: usize,
    /// The bits that it took.
    pub bits: usize,
}

/// The direct way, unless it is known to take more than `max_bits` bits.
pub fn within(scores: &TokenScores, groups: &Groups, known: &GapInLogarithms, max_bits: usize) -> Result<GapInBalls> {
    if known.bits() > max_bits as f64 {
        return Err(too_many(known.bits(), max_bits));
    }
    evaluate(scores, groups, max_bits)
}

/// Evaluates all members of all groups and subtracts neighbors.
pub fn evaluate(scores: &TokenScores, groups: &Groups, max_bits: usize) -> Result<GapInBalls> {
    let all = parallel::try_map(groups.0.len(), |i| of_group(scores, &groups.0[i], max_bits))?;
    let mut found = GapInBalls { closest: None, ids: groups.0.iter().map(Vec::len).sum(), bits: FIRST_BITS };
    for (bits, steps) in all {
        found.bits = found.bits.max(bits);
        for (log2, tokens) in steps {
            found.closest = Some(match found.closest {
                None => (log2, tokens),
                Some((best, of)) => (log2.min(best), if log2.lo() < best.lo() { tokens } else { of }),
            });
        }
    }
    Ok(found)
}

type Spacing = (Interval, (usize, usize));

/// The bits it took, and the distances of neighboring ids.
fn of_group(scores: &TokenScores, group: &[Member], max_bits: usize) -> Result<(usize, Vec<Spacing>)> {
    let mut bits = FIRST_BITS.min(max_bits);
    loop {
        let mut ids = ids(scores, group, bits);
        sorting::sort_by(&mut ids, |a, b| {
            let (a, b) = (a.0.midpoint(), b.0.midpoint());
            b.certainly_less(&a).cmp(&a.certainly_less(&b))
        });
        let step = |pair: &[(Ball, usize)]| {
            let (lower, upper) = (pair[1].0.clone() - &pair[0].0).absolute_bounds();
            let known = !lower.is_zero() && lower * Magnitude::new(1.0 + RELATIVE, 0) >= upper;
            known.then(|| (lower.log2().hull(upper.log2()), (pair[0].1, pair[1].1)))
        };
        if let Some(steps) = ids.windows(2).map(step).collect() {
            return Ok((bits, steps));
        }
        if bits == max_bits {
            return Err(too_many(2.0 * max_bits as f64, max_bits));
        }
        bits = (2 * bits).min(max_bits);
    }
}

/// `g = sum p_i e^(y p_i) / sum e^(y p_i)` of each member, at a number of bits. A power that several contexts share is
/// evaluated once; all are over that of the largest score in the group.
fn ids(scores: &TokenScores, group: &[Member], bits: usize) -> Vec<(Ball, usize)> {
    let view = scores.view;
    let project = |v: &[f64], t: usize| {
        let dot = |x: &[f64]| {
            let terms = x.iter().zip(v).map(|(&x, &v)| Ball::new(x, bits) * Ball::new(v, bits));
            terms.fold(Ball::new(0.0, bits), |sum, term| sum + term)
        };
        let word = dot(view.vectors.words.row(view.token_ids[t] as usize));
        view.vectors.positions.as_ref().map_or(word.clone(), |places| word + dot(places.row(view.place(t).1)))
    };
    let y = project(&scores.map.v_q, group[0].token);
    let mut seen: Vec<(u32, usize)> =
        group.iter().flat_map(|m| view.visible(m.token)).map(|t| (scores.rank[t], t)).collect();
    seen.sort_unstable();
    seen.dedup_by_key(|x| x.0);
    let keys: Vec<Ball> = seen.iter().map(|&(_, t)| project(&scores.map.v, t)).collect();
    // The largest score has the largest key or, for a negative query, the smallest.
    let top = if y.is_certainly_positive() { &keys[keys.len() - 1] } else { &keys[0] };
    let powers: Vec<Ball> = parallel::map_slice(&keys, |p| (y.clone() * (p.clone() - top)).exp());
    let id = |m: &Member| {
        let (mut sum, mut z) = (Ball::new(0.0, bits), Ball::new(0.0, bits));
        for t in view.visible(m.token) {
            let i = seen.binary_search_by_key(&scores.rank[t], |x| x.0).expect("a key of the group");
            sum = sum + keys[i].clone() * &powers[i];
            z = z + &powers[i];
        }
        (sum / z, m.token)
    };
    group.iter().map(id).collect()
}

/// The error of a request that takes more bits than allowed.
fn too_many(bits: f64, max_bits: usize) -> Error {
    let size = if bits < 1e15 {
        format!("{bits:.0} bits, {:.0} bytes", (bits / 8.0).ceil())
    } else {
        format!("{bits:.3e} bits, {:.3e} bytes", bits / 8.0)
    };
    Error::too_large(
        format!("evaluating the ids takes {size} for each number, and `max_bits` is {max_bits}"),
        "use `way` identity, which needs no more than double precision, or raise `max_bits`",
    )
}
