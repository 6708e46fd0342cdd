//! The positions (48) in the proof of Corollary 2, and the constants (49), (50).

use std::f64::consts::{LN_2, PI};

use monolayer::data::separation::{Separation, separation};
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};
use monolayer::paper::counterexamples::{
    equation_48 as printed_positions, equation_48_radius as smallest_outside, equation_48_separation as closest,
};
use monolayer::paper::theorem_two::Guarantee;
use monolayer::{Matrix, Result};
use rand::RngExt as _;

use super::support::{near, rng, vectors};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "equation-48",
        number: "(48)",
        statement: "positions E keep tokens separated and without duplicates (repaired: E_k = c k e₁, c ≥ 2 r_max + ε)",
        printed: r"E \in R^{d \times n}, every row (2 r_{\max}, 4 r_{\max}, \dots, 2n r_{\max}) (48); X^{(1)} + E, \dots, X^{(N)} + E are tokenwise (r_{\max}, (2n+1) r_{\max}, \epsilon)-separated; no X^{(i)} + E has a duplicate token",
        note: "Corollary 2 asks for some E and stands. As printed, no duplicates and norms above r_max do hold. Of Definition 1's conditions the distances fail for d < 4 (for d ≥ 4 they hold as soon as there are two different tokens; with one token ε may be anything), the radius for d ≥ 2, where (2n√d + 1) r_max is right. Repaired, the constants are (r_max, nc + r_max, ε).",
        run: "the printed E: all pairs of vectors with entries −1, 0 and 1 at places 1 and 2, d = 1 to 4, and the smallest such token that leaves the ball; either E's norms, distances and duplicates on random vocabularies",
        code: ("crates/monolayer/src/paper/counterexamples.rs", "equation_48_separation"),
        mutation: "c = r_max/2",
        find: equation_48,
    },
    Claim {
        id: "equation-49",
        number: "(49), (50)",
        statement: "with positions, ids are within r of (49) and δ of (50) apart (repaired: for the repaired E and its constants)",
        printed: r"by Theorem 2 there are W^{(O)} \in R^{d \times s}, W^V, W^K, W^Q \in R^{s \times d} with which F_S^{(SA)}, h = 1, is an (r, \delta)-contextual mapping for X^{(1)} + E, \dots, X^{(N)} + E, r = (2n+1) r_{\max} + \frac{\epsilon}{4} (49), \delta = \frac{2 (\log n)^2 \epsilon^2}{(2n+1)^2 r_{\max} (nN+1)^4 (2 \log n + 3) \pi d} \cdot \exp(-(2n+1)^2 (nN+1)^4 \frac{(2 \log n + 3) \pi d r_{\max}}{4 \epsilon}) (50)",
        note: "As a substitution (r_max, (2n+1) r_max and nN for r_min, r_max and |V|) into (7), (8) both are right; E of (48) does not have those constants for d ≥ 2. On the line of h a head takes id k to X_k − C g_k, g_k a softmax mean of X₁ < X₂, and g₂/g₁ ≤ 2X₂/(X₁+X₂) whatever the scores; both ids shorter than r would need C > 0 and g₂/g₁ > (X₂−r)/(X₁+r).",
        run: "the substitution at n = 2, N = 1, d = 1, r_max = 2, ε = 1; d = 100, n = 2, N = 1: a lower bound of the longer id for any head against (49), and random heads against the bound",
        code: ("crates/monolayer-lab/src/claims/positions.rs", "equation_49"),
        mutation: "the repair keeps the radius (49)",
        find: equation_49,
    },
];

/// What became of the conditions of Definition 1 on random vocabularies: the least norm over r_max and the duplicates with the printed
/// E, and with `E_k = c k e_1` the least norm over r_max, the largest over `nc + r_max`, and the least distance over epsilon.
struct WithPlaces {
    lowest: f64,
    duplicates: usize,
    repaired_lowest: f64,
    repaired_longest: f64,
    repaired_closest: f64,
}

fn with_places(context: &Context, vocabularies: usize) -> WithPlaces {
    let (words, n) = (10, 5);
    let mut found = WithPlaces {
        lowest: f64::INFINITY,
        duplicates: 0,
        repaired_lowest: f64::INFINITY,
        repaired_longest: 0.0,
        repaired_closest: f64::INFINITY,
    };
    for seed in 0..vocabularies as u64 {
        let d = 1 + seed as usize % 4;
        let tokens = vectors(&mut rng(seed), words, d);
        let before = separation(d, &tokens);
        let r_max = before.r_max * (1.0 + 1e-9);
        let places = printed_positions(d, n, r_max);
        let moved: Vec<f64> = places
            .iter_rows()
            .flat_map(|e| tokens.chunks_exact(d).flat_map(|x| x.iter().zip(e).map(|(x, e)| x + e)).collect::<Vec<_>>())
            .collect();
        found.lowest = found.lowest.min(separation(d, &moved).r_min / r_max);
        // A token at one place and a token at another, in one sequence.
        let rows: Vec<&[f64]> = moved.chunks_exact(d).collect();
        let same = |i: usize| (0..i).filter(|j| j / words != i / words && rows[*j] == rows[i]).count();
        found.duplicates += (0..rows.len()).map(same).sum::<usize>();
        let c = context.mutate(2.0 * before.r_max + before.epsilon, before.r_max / 2.0) * (1.0 + 1e-12);
        let at = |k: usize| tokens.iter().enumerate().map(move |(i, x)| if i % d == 0 { x + c * k as f64 } else { *x });
        let after = separation(d, &(1..=n).flat_map(at).collect::<Vec<f64>>());
        found.repaired_lowest = found.repaired_lowest.min(after.r_min / r_max);
        found.repaired_longest = found.repaired_longest.max(after.r_max / (n as f64 * c + r_max));
        found.repaired_closest = found.repaired_closest.min(after.epsilon / before.epsilon);
    }
    found
}

fn equation_48(context: &Context) -> Result<Finding> {
    // Tokens 1 and -1 with r_max = 1.001: 1 at place 1 against -1 at place 2.
    let (r_max, epsilon) = (1.001, 1.9);
    let printed: Vec<f64> = [1.0, 2.0].iter().flat_map(|k| [1.0 + 2.0 * k * r_max, -1.0 + 2.0 * k * r_max]).collect();
    let distance = separation(1, &printed).epsilon;
    let share = |d: usize| closest(d).map_or(1.0, |found| found.distance / found.epsilon);
    let outside = smallest_outside();
    let vocabularies = context.effort(100, 1000);
    let found = with_places(context, vocabularies);
    // Adding a place rounds.
    let room = 1.0 - 1e-9;
    let repaired = found.repaired_closest > room && found.repaired_lowest > room && found.repaired_longest < 1.0 + 1e-9;
    let text = outside.as_ref().map_or(String::new(), |found| {
        format!(
            "; d = {}, n = {}, token {:?}, r_max = {:.4}: norm {:.4} with its position, where less than {:.4} is claimed",
            found.token.len(),
            found.n,
            found.token,
            found.r_max,
            found.norm,
            found.claimed
        )
    });
    let holds = distance >= epsilon && outside.is_none() && found.lowest > room && found.duplicates == 0;
    Ok(Finding::repaired(holds, repaired)
        .number("printed E, d = 1, tokens 1 and −1, r_max = 1.001, ε = 1.9: distance", distance)
        .number("printed E: least distance over ε, d = 2", share(2))
        .number("d = 3", share(3))
        .number("d = 4", share(4))
        .number("printed E: norm with its position", outside.as_ref().map_or(0.0, |found| found.norm))
        .number("where less is claimed than", outside.as_ref().map_or(0.0, |found| found.claimed))
        .number("printed E: smallest norm over r_max", found.lowest)
        .count("printed E: duplicates", found.duplicates)
        .count("vocabularies", vocabularies)
        .number("repaired E: smallest norm over r_max", found.repaired_lowest)
        .number("repaired E: largest norm over nc + r_max", found.repaired_longest)
        .number("repaired E: smallest distance over ε", found.repaired_closest)
        .counterexample(format!(
            "d = 1, tokens 1 and −1, r_max = 1.001, ε = 1.9: 1 at place 1 and −1 at place 2 are {distance:.3} apart{text}"
        )))
}

/// The binary logarithm of (50).
fn log2_50(n: f64, sequences: f64, d: f64, r_max: f64, epsilon: f64) -> f64 {
    let a = (n * sequences + 1.0).powi(4) * (2.0 * n.ln() + 3.0) * PI * d;
    let odd = (2.0 * n + 1.0).powi(2);
    let front = 2.0 * n.ln().powi(2) * epsilon * epsilon / (odd * r_max * a);
    front.log2() - odd * a * r_max / (4.0 * epsilon) / LN_2
}

/// Two tokens on a line, at `low` and `high` times a unit vector, `0 < low < high`: how long the longer of their ids is at least,
/// whatever the weights of one head.
///
/// On that line an id is `x - c g` with a number c, the same for both, and g the mean of the tokens under softmax with scores
/// proportional to their product with x. If the scores increase, g of `low` is at least the plain mean and g of `high` at most
/// `high`; if they decrease, more steeply for `high`, g of `high` is at most g of `low`. So the quotient q of the two is at most
/// `2 high / (low + high)`. Both ids are shorter than r only for c > 0 and `(high - r) / (low + r) < q`.
fn longer_id_at_least(low: f64, high: f64) -> f64 {
    let q = 2.0 * high / (low + high);
    (high - low * q) / (1.0 + q)
}

/// The shortest that random heads make the longer id of these two tokens, d = 100. Half of them write along the line only, which is
/// best.
fn longer_id_found(low: f64, high: f64, heads: usize) -> Result<f64> {
    let rng = &mut rng(49);
    let d = 100;
    let z = Matrix::from_fn(2, d, |k, _| [low, high][k] / 10.0);
    let mut shortest = f64::INFINITY;
    for i in 0..heads {
        let s = rng.random_range(1..4);
        let mut matrix = |rows: usize, cols: usize| Matrix::new(rows, cols, vectors(rng, rows, cols));
        let (w_k, w_v, w_q, w_o) = (matrix(s, d), matrix(s, d), matrix(s, d), matrix(d, s));
        let w_o = if i % 2 == 0 { Matrix::from_fn(d, s, |_, c| w_o.row(0)[c]) } else { w_o };
        let scale = 10_f64.powf(rng.random_range(-5.0..1.0));
        let mut head = AttentionHead { w_q: w_q.map(|x| x * scale), w_k, w_v, w_o };
        // What it adds along the line is about as long as the tokens, and opposite.
        let along = |head: &AttentionHead<f64>| -> Result<f64> {
            let out = one_head(head.clone()).apply(&z)?;
            Ok((out.row(1).iter().sum::<f64>() / 10.0 - high) / high)
        };
        let factor = -rng.random_range(0.5..1.5) / along(&head)?;
        head.w_o = head.w_o.map(|x| x * factor);
        let out = one_head(head).apply(&z)?;
        let longer = out.iter_rows().map(|id| id.iter().map(|x| x * x).sum::<f64>().sqrt()).fold(0.0, f64::max);
        shortest = shortest.min(longer);
    }
    Ok(shortest)
}

fn one_head(head: AttentionHead<f64>) -> Attention<f64> {
    Attention { kind: AttentionKind::Softmax, mask: Mask::None, heads: vec![head] }
}

fn equation_49(context: &Context) -> Result<Finding> {
    let substituted = Guarantee::new(2, 2, 1, &Separation { r_min: 2.0, r_max: 10.0, epsilon: 1.0 });
    let (r, log2) = substituted.map_or((f64::NAN, f64::NAN), |found| (found.r, found.log2_delta));
    let same = r == 10.25 && near(log2, log2_50(2.0, 1.0, 1.0, 2.0, 1.0));
    // d = 100, n = 2, the sequence (-h, h) with h = (1, ..., 1)/10, and the printed E: all tokens are multiples of h.
    let (n, r_max, epsilon) = (2.0, 1.001, 1.9);
    let claimed = (2.0 * n + 1.0) * r_max + epsilon / 4.0;
    let [low, high] = [(-1.0, 1.0), (1.0, 2.0)].map(|(x, k)| x + 2.0 * k * r_max * 10.0);
    let least = longer_id_at_least(low, high);
    let heads = context.effort(2000, 40_000);
    let found = longer_id_found(low, high, heads)?;
    // The repaired E: c k e_1, and r = nc + r_max + epsilon / 4.
    let c = 2.0 * r_max + epsilon;
    let (longest, radius) = (1.0 + n * c + epsilon / 4.0, n * c + r_max + epsilon / 4.0);
    let bounded = found >= least;
    Ok(Finding::repaired(
        same && (least < claimed || !bounded),
        same && bounded && longest < context.mutate(radius, claimed),
    )
    .number("substitution: log2 of (8)", log2)
    .number("log2 of (50)", log2_50(2.0, 1.0, 1.0, 2.0, 1.0))
    .number("d = 100, n = 2: length of the longer id, at least", least)
    .count("random heads", heads)
    .number("shortest longer id among them", found)
    .number("r of (49)", claimed)
    .number("repaired: length of an id, at most", longest)
    .number("repaired radius", radius)
    .counterexample(format!(
        "N = 1, n = 2, d = 100, h = (1,…,1)/10, X = (−h, h), r_max = 1.001, ε = 1.9: X + E = ({low:.2} h, {high:.2} h), and for all weights of one head one id has length {:.3} or more, where (49) is {claimed:.3}",
        (least * 1000.0).floor() / 1000.0
    )))
}
