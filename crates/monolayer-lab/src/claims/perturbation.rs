//! What attention adds to the quantized input in the proof of Proposition 1, (63) to (66).

use monolayer::paper::attention::{Attention, Mask};
use monolayer::{Matrix, Result};
use rand::RngExt as _;
use rand::rngs::ChaCha8Rng;

use super::support::{rng, vectors};
use super::{Claim, Context, Finding};
use crate::printed_units::first_block;

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "equation-63",
        number: "(63), (64)",
        statement: "attention moves a token by less than 1/(4√d D) of the longest token's length (repaired: at most)",
        printed: r"||F_S^{(SA)}(Z)_{:,k} - Z_{:,k}|| < \frac{1}{4 \sqrt{d} D} \max_{k' \in [n]} ||Z_{:,k'}|| (63) for any k \in [n] and Z \in R^{d \times n}; ||F_S^{(SA)} \circ F_1^{(FF)}(Z_{:,k}) - F^{(FF)}(Z_{:,k})|| < \frac{dn}{4D} (64)",
        note: "The run takes any rank-1 weights with unit v and ||W^(O)u''|| = 1/(4√d D), which is (32) for ε = 1/D, r_max = √d. With constants strictly beyond these, as Definition 1 asks for, W^(O) is shorter, and (63) for Z ≠ 0 and (64) are strict: Z = 0 alone is left. (64) is read with F̄₁ of (60) in both places and at (Z)_{:,k}: its bars, an index 1 and the place of (Z) are slips.",
        run: "Z = 0; d = 1, D = 4, v = 1, W^(O) = 1/16: Z = (3,3), exactly, and (60) of (−1,−1); random weights and sequences, Z = 0 under each of them",
        code: ("crates/monolayer-lab/src/claims/perturbation.rs", "equation_63"),
        mutation: "half of the repaired bound",
        find: equation_63,
    },
    Claim {
        id: "equation-65",
        number: "(65)",
        statement: "outside the cube, every entry after attention is below 1/4D",
        printed: r"for large enough D, F_S^{(SA)} \circ F_1^{(FF)}(Z)_{t,k} < \frac{1}{4D} (\forall t \in [d], k \in [n]) (65) for Z \in R^{d \times n} \setminus [0, 1]^{d \times n}",
        note: "Read and run with the bar of (60) over F₁, as (61). It does not follow from (64), whose dn/4D no D makes smaller than 1/4D, but from counting: with m ≥ 1 coordinates outside, entries of (60) are in [−m, 1−m], attention adds at most m/4D, and 1 − m + m/4D ≤ 1/4D.",
        run: "(60) for four (d, n, D), entries from {−1, 2, 1/2D, 1 − 1/2D, 1}, random unit v and W^(O) of length 1/(4√d D), any scale of scores",
        code: ("crates/monolayer-lab/src/claims/perturbation.rs", "largest_outside"),
        mutation: "the bound is divided by dn",
        find: equation_65,
    },
    Claim {
        id: "equation-66",
        number: "(66)",
        statement: "inside the cube, every entry after attention is above 3/4D (repaired: on (0,1]^{d×n}, D ≥ 2, with the staircase (57))",
        printed: r"for large enough D, F_S^{(SA)} \circ F_1^{(FF)}(Z)_{t,k} > \frac{3}{4D} (\forall t \in [d], k \in [n]) (66) for Z \in [0, 1]^{d \times n}",
        note: "Read with the bar of (60) over F₁, as (61). penalty(0) = −1 in (59), so the entries of (60) at Z = (1/2, 0) are in [1/D − 1, 0], attention adds at most (1 − 1/D)/4D, and token 2 is at most (1/D − 1)(1 − 1/4D) ≤ 0: for every D and all weights that satisfy (63). Repaired, D = 1 is an equality: d = 1, Z = (1/2, 1/2), W^(O) = −1/4 gives 3/4.",
        run: "(60) for four (d, n, D), random entries in (0,1], random weights, up to rounding; Z = (1/2, 0) for d = 1, n = 2, every D to 1024, either sign of W^(O), scores 0 and not",
        code: ("crates/monolayer-lab/src/claims/perturbation.rs", "equation_66"),
        mutation: "W^(O) eight times as long",
        find: equation_66,
    },
];

/// Dimensions, tokens and granularities.
const CASES: [(usize, usize, usize); 4] = [(1, 2, 4), (2, 2, 4), (2, 3, 2), (1, 3, 8)];

/// A unit vector.
fn unit(rng: &mut ChaCha8Rng, d: usize) -> Vec<f64> {
    let v = vectors(rng, 1, d);
    let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
    v.into_iter().map(|x| x / length).collect()
}

/// Rank-1 attention with unit v, `W_O` of a length, and some scale of the scores.
fn attention(rng: &mut ChaCha8Rng, d: usize, length: f64) -> Attention<f64> {
    let scale = [0.0, 1.0, 50.0, 1000.0][rng.random_range(0..4)];
    let v = unit(rng, d);
    let w: Vec<f64> = unit(rng, d).into_iter().map(|x| x * length).collect();
    Attention::rank_one(Mask::None, &v, &v.iter().map(|x| x * scale).collect::<Vec<_>>(), &w)
}

fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// d = 1 with v = 1, scores 0 and an output weight: what it makes of numbers.
fn line(w_o: f64, z: &[f64]) -> Result<Vec<f64>> {
    Ok(Attention::rank_one(Mask::None, &[1.0], &[0.0], &[w_o]).apply(&Matrix::new(z.len(), 1, z.to_vec()))?.data)
}

fn equation_63(context: &Context) -> Result<Finding> {
    // 1 / (4 sqrt(d) D) = 1/16.
    let moved = |z: &[f64]| Ok::<_, monolayer::Error>((line(1.0 / 16.0, z)?[0] - z[0]).abs());
    let (constant, mut zero) = (moved(&[3.0, 3.0])?, moved(&[0.0, 0.0])?);
    let far = first_block(4, &[-1.0, -1.0]);
    let of_block = moved(&far)?;
    let rng = &mut rng(63);
    let draws = context.effort(4000, 40_000);
    let mut largest = 0.0_f64;
    for _ in 0..draws {
        let (d, n, levels) = CASES[rng.random_range(0..4)];
        let most = 1.0 / (4.0 * (d as f64).sqrt() * levels as f64);
        let attention = attention(rng, d, most);
        let z = Matrix::new(n, d, vectors(rng, n, d).into_iter().map(|x| 5.0 * x).collect());
        let longest = z.iter_rows().map(length).fold(0.0, f64::max);
        zero = zero.max(length(&attention.apply(&z.map(|_| 0.0))?.data));
        let out = attention.apply(&z)?;
        for (x, y) in z.iter_rows().zip(out.iter_rows()) {
            let by = length(&y.iter().zip(x).map(|(y, x)| y - x).collect::<Vec<_>>());
            largest = largest.max(by / (most * longest));
        }
    }
    largest = largest.max(constant / (3.0 / 16.0));
    let printed = zero < 0.0 && constant < 3.0 / 16.0 && of_block < 2.0 / 16.0;
    let repaired = zero <= 0.0 && largest <= context.mutate(1.0, 0.5) * (1.0 + 1e-12);
    Ok(Finding::repaired(printed, repaired)
        .number("Z = 0: largest left side of (63), right side 0", zero)
        .number("Z = (3,3): left side of (63)", constant)
        .number("right side", 3.0 / 16.0)
        .number("(60) of (−1,−1): left side of (64)", of_block)
        .number("dn/4D", 2.0 / 16.0)
        .number("largest left side over right side", largest)
        .counterexample("Z = 0, all weights: (63) says 0 < 0. With the printed constants (1/D, √d, 1/D) also elsewhere: d = 1, D = 4, v = 1, W^(O) = 1/16, both sides of (63) are 3/16 at Z = (3,3), those of (64) 1/8 at Z = (−1,−1)"))
}

/// The largest entry after attention, over 1/4D, for random sequences with an entry outside [0, 1].
fn largest_outside(rng: &mut ChaCha8Rng, (d, n, levels): (usize, usize, usize), draws: usize) -> Result<f64> {
    let step = 1.0 / (2.0 * levels as f64);
    let mut largest = f64::MIN;
    for _ in 0..draws {
        let mut z: Vec<f64> = (0..d * n).map(|_| [-1.0, 2.0, step, 1.0 - step, 1.0][rng.random_range(0..5)]).collect();
        if z.iter().all(|z| (0.0..=1.0).contains(z)) {
            z[0] = -1.0;
        }
        let attention = attention(rng, d, 1.0 / (4.0 * (d as f64).sqrt() * levels as f64));
        let out = attention.apply(&Matrix::new(n, d, first_block(levels, &z)))?;
        largest = out.data.iter().fold(largest, |m, &x| m.max(x * 4.0 * levels as f64));
    }
    Ok(largest)
}

fn equation_65(context: &Context) -> Result<Finding> {
    let rng = &mut rng(65);
    let draws = context.effort(2000, 40_000);
    let names = ["(d,n,D) = (1,2,4): largest entry over 1/4D", "(2,2,4)", "(2,3,2)", "(1,3,8)"];
    let mut finding = Finding::printed(true).count("draws for each", draws);
    for (name, case) in names.into_iter().zip(CASES) {
        let largest = largest_outside(rng, case, draws)?;
        finding.printed &= largest < context.mutate(1.0, 1.0 / (case.0 * case.1) as f64);
        finding = finding.number(name, largest);
    }
    // Exactly: Z = (-1, 1), scores 0, W_O = -1/16: 1/32 against 1/16.
    let exact = line(-1.0 / 16.0, &first_block(4, &[-1.0, 1.0]))?;
    finding.printed &= exact[1] == 1.0 / 32.0 && exact[1] < context.mutate(1.0, 0.5) / 16.0;
    let finding = finding.number("Z = (−1, 1), D = 4, W^(O) = −1/16: entry of token 2", exact[1]);
    Ok(if finding.printed { finding } else { finding.counterexample("d = 1, n = 2, D = 4, Z = (−1, 1): 1/32") })
}

fn equation_66(context: &Context) -> Result<Finding> {
    let rng = &mut rng(66);
    let draws = context.effort(4000, 40_000);
    let mut smallest = f64::INFINITY;
    for _ in 0..draws {
        let (d, n, levels) = CASES[rng.random_range(0..4)];
        let z: Vec<f64> = (0..d * n).map(|_| 1.0 - rng.random::<f64>()).collect();
        let factor = context.mutate(1.0, 8.0);
        let attention = attention(rng, d, factor / (4.0 * (d as f64).sqrt() * levels as f64));
        let out = attention.apply(&Matrix::new(n, d, first_block(levels, &z)))?;
        smallest = out.data.iter().fold(smallest, |m, &x| m.min(x * levels as f64));
    }
    let (met, ratio) = on_a_face(1024)?;
    let one = line(-0.25, &first_block(1, &[0.5, 0.5]))?;
    // The argument for every D is one for every D that is run.
    Ok(Finding::repaired(met > 0 || ratio < 1.0 - 1e-12, smallest > 0.75 * (1.0 - 1e-12))
        .count("draws on (0,1]^{d×n}", draws)
        .number("smallest entry there, times D", smallest)
        .count("Z = (1/2, 0), D = 1 to 1024: how often (66) holds", met)
        .number("D > 1: entry of token 2 over (1/D − 1)(1 − 1/4D), at least", ratio)
        .number("D = 1, Z = (1/2, 1/2): entry", one[0])
        .counterexample("d = 1, n = 2, Z = (1/2, 0), every D, all weights that satisfy (63): (60) is 1/D − 1 at token 2, attention adds at most (1 − 1/D)/4D, so the entry is at most (1/D − 1)(1 − 1/4D) ≤ 0, where more than 3/4D is claimed"))
}

/// (66) at `Z = (1/2, 0)` for d = 1, n = 2 and every D up to `most`, both signs of W_O, and scores of several scales: how often it
/// holds, and the smallest ratio of token 2's entry to `(1/D - 1)(1 - 1/4D)`, which is 1 or more if that negative bound holds.
fn on_a_face(most: usize) -> Result<(usize, f64)> {
    let (mut met, mut ratio) = (0, f64::INFINITY);
    for levels in 1..=most {
        let quarter = 1.0 / (4.0 * levels as f64);
        let face = first_block(levels, &[0.5, 0.0]);
        for (w_o, query) in [quarter, -quarter].into_iter().flat_map(|w| [0.0, 1.0, -50.0].map(|query| (w, query))) {
            let attention = Attention::rank_one(Mask::None, &[1.0], &[query], &[w_o]);
            let out = attention.apply(&Matrix::new(2, 1, face.clone()))?.data;
            met += usize::from(out.iter().all(|&x| x > 3.0 * quarter));
            if levels > 1 {
                ratio = ratio.min(out[1] / ((4.0 * quarter - 1.0) * (1.0 - quarter)));
            }
        }
    }
    Ok((met, ratio))
}
