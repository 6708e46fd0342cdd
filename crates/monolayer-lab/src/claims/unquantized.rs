//! Section 6's open question: Theorems A, B and F of docs/unquantized.md. They are monolayer's own, so the paper prints none of this.

use dashu_ratio::RBig;
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};
use monolayer::paper::hardmax::mean_pooling;
use monolayer::paper::unquantized::{
    Collision, Instance, collision, draw_layer, mean_squared_distance, scores_and_values, twin, unseen_direction,
};
use monolayer::{Matrix, Result};
use rand::RngExt as _;
use rand::rngs::ChaCha8Rng;
use rayon::prelude::*;

use super::support::rng;
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "unquantized-a",
        number: "answers section 6, sup norm",
        statement: "Theorem A: without F₁, no attention layer and tokenwise map come within 1/2 of one continuous equivariant f",
        printed: "",
        note: "Section 6 asks whether the first feed-forward layer is needed. f(Z)_k = z_k + (1/(n−1)) Σ_j (z_k1 − z_j1)² e₁ on [−1,1]^d, any heads and weights, n ≥ 2; proof in docs/unquantized.md.",
        run: "random layers of up to 8 heads, a third of them singular, n = 2 to 5: two sequences with equal outputs and f at least 1 apart, in exact arithmetic",
        code: ("crates/monolayer/src/paper/unquantized/mod.rs", "collision"),
        mutation: "each by itself: the second sequence is 999/1000 of itself; 51/100 in the place of 1/2; tokens are rounded to multiples of 1/8 first",
        find: theorem_a,
    },
    Claim {
        id: "unquantized-b",
        number: "answers section 6, sup norm, no zero token",
        statement: "Theorem B: on [1,2]^d, where no token is 0, no layer without F₁ comes within 1/8 of another f",
        printed: "",
        note: "The instance (f, two sequences, their paths) is rational and exact. For a layer, the second sequence is constant and irrational: enclosed in balls, and certified up to 2^(−20). Proof in docs/unquantized.md.",
        run: "the numbers of the instance; random layers of up to 8 heads, n = 2 to 5: the scores of both sequences are equal, exactly, and a sequence and a constant one with equal outputs have f at least 1/4 − 2^(−20) apart",
        code: ("crates/monolayer/src/paper/unquantized/no_zero_token.rs", "twin"),
        mutation: "each by itself: the second sequence is (3/2, 9/5, …), which is not the first one scaled; 1/7 in the place of 1/8; f is the mean",
        find: theorem_b,
    },
    Claim {
        id: "unquantized-f",
        number: "answers section 6, low rank",
        statement: "Theorem F: without F₁, no layer (20) with d ≥ 2, nor any whose keys and values do not span R^d, comes near a third f, in L^1 either",
        printed: "",
        note: "f(Z)_k = (1/(n−1)) Σ_j |z_j − z_k|² e₁: an error of at least 1/2 in the sup norm on [−1,1]^d, and of 2^(−d)/(64(n−1)) in L^1 on [0,1]^d; proof in docs/unquantized.md.",
        run: "random layers (20), and of h heads of size s with 2sh < d, n = 2 to 5, exactly: moving the other tokens along c, orthogonal to all keys and values, changes no score and no value; (0, c, …, c) and 0 have f at least 1 apart; the mean of |t² + bt + a| over [0,1] against 1/16",
        code: ("crates/monolayer/src/paper/unquantized/unseen_direction.rs", "unseen_direction"),
        mutation: "each by itself: the token itself is moved, too; c has a part along a key; 51/100 in the place of 1/2; 1/15 in the place of 1/16",
        find: theorem_f,
    },
];

/// Theorem A, or a statement that looks like it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum A {
    Stated,
    /// The second sequence is moved a little.
    Moved,
    /// An error of 51/100 is claimed.
    Larger,
    /// Tokens are rounded to multiples of 1/8 before the layer: there is a quantizer.
    Quantized,
}

/// Theorem B, or a statement that looks like it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum B {
    Stated,
    /// The second sequence is not the first one scaled.
    Unscaled,
    /// An error of 1/7 is claimed.
    Larger,
    /// f is the mean of a token and the others, which a layer computes.
    Mean,
}

/// Theorem F, or a statement that looks like it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum F {
    Stated,
    /// The token whose output is looked at is moved, too.
    Together,
    /// The direction has a part along a key.
    Seen,
    /// An error of 51/100 is claimed.
    Larger,
    /// A quadratic is claimed to be 1/15 off in the mean.
    Farther,
}

fn ratio(a: i64, b: i64) -> RBig {
    RBig::from(a) / RBig::from(b)
}

/// Layers, among them two plain ones: all weights 0, and the mean of all tokens.
fn layers(count: usize) -> Vec<(Attention<RBig>, usize)> {
    let mut zero = mean_pooling(2);
    zero.heads[0].w_o = zero.heads[0].w_o.map(|_| RBig::ZERO);
    let drawn = (0..count).map(|i| (draw_layer(6, i as u64), 2 + i % 4));
    [(zero, 2), (mean_pooling(1), 3)].into_iter().chain(drawn).collect()
}

fn a(what: A, count: usize) -> Result<Finding> {
    let least = if what == A::Larger { ratio(102, 100) } else { RBig::ONE };
    let one = |(layer, length): &(Attention<RBig>, usize)| -> Result<(bool, bool, RBig)> {
        let found = collision(layer, *length)?;
        let [first, second] = found.sequences.clone();
        let sequences = match what {
            A::Moved => [first, second.map(|x| x * ratio(999, 1000))],
            A::Quantized => [first, second].map(|z| z.map(|x| (x * RBig::from(8)).round() / RBig::from(8))),
            _ => [first, second],
        };
        // What is promised is of the sequences themselves; the quantizer changes what the layer sees of them.
        let seen = Collision::new(layer, sequences, found.singular)?;
        let distance = if what == A::Quantized { found.distance() } else { seen.distance() };
        let inside = seen.sequences.iter().flat_map(|z| &z.data).all(|x| *x >= -RBig::ONE && *x <= RBig::ONE);
        Ok((inside && seen.outputs[0] == seen.outputs[1] && distance >= least, found.singular, distance))
    };
    let all = layers(count).par_iter().map(one).collect::<Result<Vec<_>>>()?;
    let held = all.iter().filter(|found| found.0).count();
    let smallest = all.iter().map(|found| found.2.clone()).min().unwrap_or(RBig::ZERO);
    Ok(Finding::ours(held == all.len())
        .count("layers", all.len())
        .count("with such sequences", held)
        .count("of them singular", all.iter().filter(|found| found.1).count())
        .number("smallest distance of f", smallest.to_f64().value()))
}

fn b(what: B, count: usize) -> Result<Finding> {
    let mut instance = Instance::new();
    match what {
        B::Unscaled => instance.second[1] = ratio(9, 5),
        B::Mean => instance.dip = RBig::ZERO,
        B::Stated | B::Larger => {}
    }
    let claimed = if what == B::Larger { ratio(1, 7) } else { ratio(1, 8) };
    let least = 2.0 * claimed.to_f64().value() - 2_f64.powi(-20);
    let one = |(layer, length): &(Attention<RBig>, usize)| -> Result<(bool, bool, f64)> {
        let found = twin(&instance, layer, *length)?;
        let same = instance.same_scores(layer, *length);
        Ok((same && found.inside() && found.distance() >= least, found.singular, found.distance()))
    };
    let all = layers(count).par_iter().map(one).collect::<Result<Vec<_>>>()?;
    let held = all.iter().filter(|found| found.0).count();
    let bound = instance.bound().unwrap_or(RBig::ZERO);
    Ok(Finding::ours(bound >= claimed && held == all.len())
        .number("gap of f", instance.gap().to_f64().value())
        .number("clearance on the paths", instance.clearance().to_f64().value())
        .number("error at least, exactly", bound.to_f64().value())
        .count("layers", all.len())
        .count("with such sequences", held)
        .count("of them singular", all.iter().filter(|found| found.1).count())
        .number("smallest distance of f, certified", all.iter().map(|found| found.2).fold(f64::INFINITY, f64::min)))
}

/// A layer whose keys and values do not span the space: (20), or few heads in many dimensions. The first one sees e₁ alone, d = 2.
fn low_rank(rng: &mut ChaCha8Rng, number: usize) -> Attention<RBig> {
    if number == 0 {
        let e1 = [RBig::ONE, RBig::ZERO];
        return Attention::rank_one(Mask::None, &e1, &e1, &e1);
    }
    let (heads, s) = (rng.random_range(1..=2), rng.random_range(1..=2));
    let one_vector = number.is_multiple_of(3);
    let d = rng.random_range(1..=3) + if one_vector { 1 } else { 2 * s * heads };
    let mut matrix = |rows, cols| Matrix::from_fn(rows, cols, |_, _| ratio(rng.random_range(-9..=9), 4));
    if one_vector {
        let [v1, v2, w_o] = [0; 3].map(|_| matrix(1, d).data);
        return Attention::rank_one(Mask::None, &v1, &v2, &w_o);
    }
    let head = |_| AttentionHead { w_q: matrix(s, d), w_k: matrix(s, d), w_v: matrix(s, d), w_o: matrix(d, s) };
    Attention { kind: AttentionKind::Softmax, mask: Mask::None, heads: (0..heads).map(head).collect() }
}

/// Whether a layer does not see its other tokens move along the direction, and how far f is apart at (0, c, …, c) and 0.
fn unseen(what: F, number: usize) -> Option<(bool, RBig)> {
    let rng = &mut rng(number as u64);
    let layer = low_rank(rng, number);
    let mut c = unseen_direction(&layer)?;
    if what == F::Seen {
        c.iter_mut().zip(layer.heads[0].w_k.row(0)).for_each(|(c, k)| *c += k);
    }
    let (d, n) = (c.len(), 2 + number % 4);
    let z = Matrix::from_fn(n, d, |_, _| ratio(rng.random_range(-8..=8), 8));
    let steps: Vec<RBig> = (0..n).map(|_| ratio(rng.random_range(1..=8), 8)).collect();
    let stays = |row: usize| row == 0 && what != F::Together;
    let moved = Matrix::from_fn(n, d, |r, t| {
        let x = z.row(r)[t].clone();
        if stays(r) { x } else { x + &steps[r] * &c[t] }
    });
    let same = z.row(0) == moved.row(0) && scores_and_values(&layer, &z, 0) == scores_and_values(&layer, &moved, 0);
    let around_zero = Matrix::from_fn(n, d, |r, t| if r == 0 { RBig::ZERO } else { c[t].clone() });
    Some((same, mean_squared_distance(&around_zero, 0)))
}

/// The mean of |t² + bt + a| over [0, 1].
fn mean_of_quadratic(b: f64, a: f64) -> f64 {
    let whole = |t: f64| t * t * t / 3.0 + b * t * t / 2.0 + a * t;
    let root = (b * b / 4.0 - a).max(0.0).sqrt();
    let ends = [0.0, (-b / 2.0 - root).clamp(0.0, 1.0), (-b / 2.0 + root).clamp(0.0, 1.0), 1.0];
    ends.windows(2).map(|pair| (whole(pair[1]) - whole(pair[0])).abs()).sum()
}

fn f(what: F, count: usize) -> Result<Finding> {
    let least = if what == F::Larger { ratio(102, 100) } else { RBig::ONE };
    let all: Vec<_> = (0..count).into_par_iter().map(|number| unseen(what, number)).collect();
    let held = all.iter().flatten().filter(|(same, distance)| *same && *distance >= least).count();
    let smallest = all.iter().flatten().map(|found| found.1.clone()).min().unwrap_or(RBig::ZERO);
    let grid = |from: i32, to: i32| (from..=to).map(|i| f64::from(i) / 64.0);
    let quadratics = grid(-128, 64).flat_map(|b| grid(-64, 64).map(move |a| mean_of_quadratic(b, a)));
    let nearest = quadratics.fold(f64::INFINITY, f64::min);
    let claimed = if what == F::Farther { 1.0 / 15.0 } else { 1.0 / 16.0 };
    Ok(Finding::ours(held == count && nearest > claimed - 1e-12)
        .count("layers", count)
        .count("that do not see the direction", held)
        .number("smallest distance of f", smallest.to_f64().value())
        .number("smallest mean of |t² + bt + a| over [0,1]", nearest))
}

/// The first statement that its run finds true, or else the last one.
fn one_that_holds(statements: impl Iterator<Item = Result<Finding>>) -> Result<Finding> {
    let all = statements.collect::<Result<Vec<_>>>()?;
    let index = all.iter().position(|finding| finding.verdict().is_some()).unwrap_or(all.len() - 1);
    Ok(all.into_iter().nth(index).expect("some statement"))
}

fn theorem_a(context: &Context) -> Result<Finding> {
    let statements: &[A] = context.mutate(&[A::Stated], &[A::Moved, A::Larger, A::Quantized]);
    one_that_holds(statements.iter().map(|&what| a(what, context.effort(200, 10_000))))
}

fn theorem_b(context: &Context) -> Result<Finding> {
    let statements: &[B] = context.mutate(&[B::Stated], &[B::Unscaled, B::Larger, B::Mean]);
    one_that_holds(statements.iter().map(|&what| b(what, context.effort(100, 2000))))
}

fn theorem_f(context: &Context) -> Result<Finding> {
    let statements: &[F] = context.mutate(&[F::Stated], &[F::Together, F::Seen, F::Larger, F::Farther]);
    one_that_holds(statements.iter().map(|&what| f(what, context.effort(500, 20_000))))
}
