//! Equations 6, 20, 38, 83 and 97: rank-1 attention and the Boltzmann operator.

use monolayer::arithmetic::{Ball, Number as _};
use monolayer::context_map::{ContextMap, Projection};
use monolayer::model::rank::rank;
use monolayer::paper::attention::{Attention, Mask};
use monolayer::paper::boltzmann::{Boltzmann, boltz, g};
use monolayer::{Matrix, Result};
use rand::RngExt as _;

use super::support::{float, rng, vectors};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "equation-20",
        place: "(6), (20)",
        statement: "rank-1 attention gives t + W_O g(v2.t): of the other tokens it knows the one number g",
        run: "(2) against t + w g(y) on random sequences, in balls",
        code: ("crates/monolayer/src/paper/attention.rs", "rank_one"),
        mutation: "the skip is dropped",
        find: equation_20,
    },
    Claim {
        id: "equation-38",
        place: "(38), (41)",
        statement: "any head size serves: W_Q, W_K, W_V and W_O of rank 1 give the same map",
        run: "heads of size 1 to 6 with exact ranks, their outputs against those of size 1",
        code: ("crates/monolayer/src/context_map/map.rs", "attention"),
        mutation: "one entry of W_K is doubled",
        find: equation_38,
    },
    Claim {
        id: "equation-83",
        place: "(83)",
        statement: "d boltz / d a_i = p_i (1 + a_i - boltz(a))",
        run: "the formula against difference quotients in balls of 1000 bits",
        code: ("crates/monolayer/src/paper/boltzmann.rs", "gradient"),
        mutation: "the sign of boltz(a) is swapped",
        find: equation_83,
    },
    Claim {
        id: "equation-97",
        place: "(97)",
        statement: "d^2 boltz / d a_i^2 = p_i (1 + (1 - 2 p_i) (1 + a_i - boltz(a)))",
        run: "the formula against second difference quotients in balls of 1000 bits",
        code: ("crates/monolayer/src/paper/boltzmann.rs", "second_derivative"),
        mutation: "1 - 2 p_i becomes 1 - p_i",
        find: equation_97,
    },
];

/// Bits for quotients of differences of 2^-100.
const BITS: usize = 1000;

fn ball(x: f64) -> Ball {
    Ball::new(x, BITS)
}

fn equation_20(context: &Context) -> Result<Finding> {
    let (d, n) = (3, 7);
    let mut largest = 0.0_f64;
    let sequences = context.effort(100, 1000);
    for seed in 0..sequences as u64 {
        let rng = &mut rng(seed);
        let draw = |count: usize, rng: &mut _| vectors(rng, count, d).into_iter().map(ball).collect::<Vec<Ball>>();
        let (v1, v2, w, z) = (draw(1, rng), draw(1, rng), draw(1, rng), Matrix::new(n, d, draw(n, rng)));
        let out = Attention::rank_one(Mask::None, &v1, &v2, &w).apply(&z)?;
        let dot = |a: &[Ball], b: &[Ball]| a.iter().zip(b).fold(Ball::zero(), |sum, (a, b)| sum + a.clone() * b);
        let p: Vec<Ball> = z.iter_rows().map(|x| dot(x, &v1)).collect();
        for (t, row) in z.iter_rows().zip(out.iter_rows()) {
            let id = g(&p, &dot(t, &v2))?;
            for ((t, w), out) in t.iter().zip(&w).zip(row) {
                let skip = context.mutate(t.clone(), Ball::zero());
                largest = largest.max((skip + w.clone() * &id - out).to_interval().magnitude());
            }
        }
    }
    Ok(Finding::printed(largest < 1e-200).count("sequences", sequences).number("largest difference", largest))
}

fn equation_38(context: &Context) -> Result<Finding> {
    let d = 4;
    let rng = &mut rng(3);
    let map = ContextMap::new(&Projection { v: vectors(rng, 1, d), kappa: 2.0 }, vectors(rng, 1, d));
    let z = Matrix::new(5, d, vectors(rng, 5, d));
    let plain = map.attention(Mask::None, 1).apply(&z)?;
    let (mut largest_rank, mut largest) = (0, 0.0_f64);
    for s in 1..=6 {
        let mut attention = map.attention(Mask::None, s);
        if context.mutated {
            attention.heads[0].w_k.data[0] *= 2.0;
        }
        let head = &attention.heads[0];
        let ranks = [&head.w_q, &head.w_k, &head.w_v, &head.w_o].map(|m| rank(m.cols, &m.data));
        largest_rank = ranks.into_iter().fold(largest_rank, usize::max);
        let out = attention.apply(&z)?;
        largest = out.data.iter().zip(&plain.data).fold(largest, |m, (a, b)| m.max((a - b).abs()));
    }
    Ok(Finding::printed(largest_rank == 1 && largest < 1e-14)
        .count("largest rank", largest_rank)
        .number("largest difference of outputs", largest))
}

/// Random points, and for each the largest difference between a formula and the limit of a quotient.
fn largest_difference(
    points: usize,
    formula: impl Fn(&Boltzmann, &[f64], usize) -> f64,
    quotient: impl Fn(&dyn Fn(f64) -> Ball) -> Ball,
) -> Result<f64> {
    let rng = &mut rng(5);
    let mut largest = 0.0_f64;
    for _ in 0..points {
        let n = rng.random_range(2..7);
        let a: Vec<f64> = vectors(rng, n, 1).iter().map(|x| 4.0 * x).collect();
        let (point, i) = (Boltzmann::at(&a)?, rng.random_range(0..n));
        let value = |step: f64| {
            let moved = |j: usize| if i == j { ball(a[j]) + ball(step) } else { ball(a[j]) };
            boltz(&(0..n).map(moved).collect::<Vec<Ball>>()).expect("not empty")
        };
        largest = largest.max((formula(&point, &a, i) - float(&quotient(&value))).abs());
    }
    Ok(largest)
}

/// The step of quotients.
const STEP: f64 = 1.0 / (1_u128 << 100) as f64;

fn equation_83(context: &Context) -> Result<Finding> {
    let points = context.effort(500, 5000);
    let formula = |point: &Boltzmann, a: &[f64], i: usize| {
        context.mutate(point.gradient()[i], point.probabilities[i] * (1.0 + a[i] + point.value()))
    };
    let quotient = |value: &dyn Fn(f64) -> Ball| (value(STEP) - value(-STEP)) / ball(2.0 * STEP);
    let largest = largest_difference(points, formula, quotient)?;
    Ok(Finding::printed(largest < 1e-12).count("points", points).number("largest difference", largest))
}

fn equation_97(context: &Context) -> Result<Finding> {
    let points = context.effort(500, 5000);
    let formula = |point: &Boltzmann, a: &[f64], i: usize| {
        let p = point.probabilities[i];
        context.mutate(point.second_derivative(i), p * (1.0 + (1.0 - p) * (1.0 + a[i] - point.value())))
    };
    let quotient =
        |value: &dyn Fn(f64) -> Ball| (value(STEP) - value(0.0) - value(0.0) + value(-STEP)) / ball(STEP) / ball(STEP);
    let largest = largest_difference(points, formula, quotient)?;
    Ok(Finding::printed(largest < 1e-12).count("points", points).number("largest difference", largest))
}
