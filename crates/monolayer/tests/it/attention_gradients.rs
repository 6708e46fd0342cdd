//! Gradients of attention in linear time: against balls at every scale, against each other, finite differences, threads.

use monolayer::Mask;
use monolayer::arithmetic::kernels::Real;
use monolayer::arithmetic::{Ball, Number as _};
use monolayer::attention::{FastAttention, Gradients, HeadInputs, Route, Work};
use proptest::prelude::*;

use crate::attention::{in_f32, numbers, wild};

/// Bits of the balls.
const PRECISION: usize = 300;

fn ball(x: f64) -> Ball {
    Ball::new(x, PRECISION)
}

/// The exact gradients, and what their errors are compared with.
struct ExactGradients {
    /// Of keys, values and queries.
    exact: [Vec<Ball>; 3],
    sizes: [Vec<Ball>; 3],
}

/// The spread of values: the largest distance from their middle.
fn spread<R: Real>(list: &[R]) -> f64 {
    let of = |f: fn(f64, f64) -> f64| list.iter().map(|x| x.to_f64()).reduce(f).unwrap();
    of(f64::max) / 2.0 - of(f64::min) / 2.0
}

fn seen(mask: &Mask, i: usize, n: usize) -> usize {
    match mask {
        Mask::None => n,
        Mask::Prefix(k) => n.min((i + 1).max(*k)),
        _ => i + 1,
    }
}

/// The key of the top score.
fn top(keys: &[f64], y: f64) -> f64 {
    keys.iter().copied().reduce(if y < 0.0 { f64::min } else { f64::max }).unwrap()
}

/// The weights of a query: those below e^-1400 are taken for 0.
fn weights(keys: &[f64], y: f64) -> Vec<Ball> {
    let top = top(keys, y);
    let weight = |&k: &f64| {
        let score = ball(y) * (ball(k) - &ball(top));
        if ball(-1400.0).certainly_less(&score) { score.exp() } else { ball(0.0) }
    };
    let weights: Vec<Ball> = keys.iter().map(weight).collect();
    let total = weights.iter().fold(ball(0.0), |sum, weight| sum + weight);
    weights.into_iter().map(|weight| weight / total.clone()).collect()
}

impl ExactGradients {
    /// Without a mask, moments leave out keys by their weight: errors are compared with sums over all queries.
    fn new<R: Real>(inputs: HeadInputs<R>, upstream: &[R], mask: &Mask, route: Route) -> Self {
        let [keys, values, queries, upstream] = [inputs.keys, inputs.values, inputs.queries, upstream]
            .map(|x| x.iter().map(|x| x.to_f64()).collect::<Vec<_>>());
        let (n, m) = (keys.len(), queries.len());
        let zeros = || [vec![ball(0.0); n], vec![ball(0.0); n], vec![ball(0.0); m]];
        let (mut exact, mut sizes) = (zeros(), zeros());
        let (half, width) = (ball(spread(inputs.values)), ball(2.0) * ball(spread(inputs.keys)));
        for j in 0..m {
            let count = seen(mask, j, n);
            let top = top(&keys[..count], queries[j]);
            let weights = weights(&keys[..count], queries[j]);
            // From the first value on, so that equal ones leave nothing.
            let apart = |v: f64| ball(v) - &ball(values[0]);
            let mean = weights.iter().zip(&values).fold(ball(0.0), |sum, (p, &v)| sum + p.clone() * apart(v));
            let (y, up) = (ball(queries[j]), ball(upstream[j]));
            for i in 0..count {
                let p = &weights[i];
                let apart = up.clone() * p.clone() * (apart(values[i]) - &mean);
                exact[0][i] = exact[0][i].clone() + apart.clone() * y.clone();
                exact[1][i] = exact[1][i].clone() + up.clone() * p.clone();
                exact[2][j] = exact[2][j].clone() + apart * (ball(keys[i]) - ball(keys[0]));
                // p (1 + s), s the distance of the score from the top one, which is not above ln(1 / p).
                let below = (queries[j].abs() * (keys[i] - top).abs()).min(1400.0);
                let all = *mask == Mask::None && route == Route::Moments;
                let size = up.abs() * if all { ball(1.0) } else { p.clone() * ball(1.0 + below) };
                sizes[0][i] = sizes[0][i].clone() + size.clone() * y.abs() * half.clone();
                sizes[1][i] = sizes[1][i].clone() + size;
            }
            sizes[2][j] = up.abs() * half.clone() * width.clone();
        }
        Self { exact, sizes }
    }
}

fn check<R: Real>(inputs: HeadInputs<R>, upstream: &[R], mask: &Mask, route: Route) {
    let mut found = Gradients::default();
    let attention = FastAttention::new().mask(mask.clone()).route(route);
    let work = attention.backward(inputs, upstream, &mut found).unwrap();
    let ExactGradients { exact, sizes } = ExactGradients::new(inputs, upstream, mask, work.route);
    let largest = |list: &[R]| list.iter().fold(0.0, |a: f64, b| a.max(b.to_f64().abs()));
    // What underflows on the way: below the smallest numbers, over the largest of each.
    let tiny = |sizes: &[f64]| {
        sizes.iter().fold(ball(inputs.queries.len() as f64 * 64.0 * R::SMALLEST.to_f64()), |a, &b| a * ball(b))
    };
    let (up, half) = (largest(upstream), spread(inputs.values));
    let tiny = [tiny(&[up, half, largest(inputs.queries)]), tiny(&[up]), tiny(&[up, half, spread(inputs.keys), 2.0])];
    let u = R::UNIT_ROUNDOFF.to_f64();
    for (list, found) in [&found.keys, &found.values, &found.queries].into_iter().enumerate() {
        for (i, x) in found.iter().enumerate() {
            let exact = &exact[list][i];
            let rounding = exact.abs() * ball(2.0 * u) + ball(R::SMALLEST.to_f64()) + &tiny[list];
            let allowed = sizes[list][i].clone() * ball(bound(work)) + rounding;
            if !x.finite() {
                // Only what has no number of the type. Where that may be, sums are direct.
                let beyond = ball(R::LARGEST.to_f64()).certainly_less(&(exact.abs() + allowed));
                assert!(beyond && work.route == Route::Direct, "{} {list} {i} {mask:?} {work:?}: {x:?}", R::NAME);
                continue;
            }
            let error = (exact.clone() - &ball(x.to_f64())).abs();
            let fine = error.certainly_less(&allowed);
            assert!(fine, "{} {list} {i} {mask:?} {work:?}: {x:?}, off by {error:?}, not {allowed:?}", R::NAME);
        }
    }
}

/// What is promised. Without a mask the bound is that of the functions that are cut, and derivatives lose some digits.
fn bound(work: Work) -> f64 {
    if work.route == Route::Moments && work.nodes > 0 { 256.0 * work.bound } else { work.bound }
}

fn check_all<R: Real>(keys: &[R], values: &[R], queries: &[R], upstream: &[R]) {
    let inputs = HeadInputs { keys, values, queries };
    for route in [Route::Moments, Route::Direct] {
        for mask in [Mask::None, Mask::Causal, Mask::Prefix(keys.len() / 2), Mask::Prefix(keys.len() + 3)] {
            check(inputs, upstream, &mask, route);
        }
    }
}

fn check_both(lists: [&[f64]; 4]) {
    let [keys, values, queries, upstream] = lists;
    check_all(keys, values, queries, upstream);
    let [keys, values, queries, upstream] = lists.map(in_f32);
    check_all(&keys, &values, &queries, &upstream);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn gradients_at_every_scale(
        (keys, values, queries, upstream) in (1..40_usize).prop_flat_map(|n| (wild(n), wild(n), wild(n), wild(n)))
    ) {
        check_both([&keys, &values, &queries, &upstream]);
    }
}

#[test]
fn gradients_at_the_edges() {
    let normal = [0.3, -1.2, 2.5, 0.0, -0.7, 1.9];
    let same = [0.7; 6];
    let clusters = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
    let outlier = [0.1, 0.2, 1e6, -0.3, 0.4, 0.0];
    let tiny = [5e-324, -5e-324, 0.0, 1e-310, f64::MIN_POSITIVE, -1e-320];
    let huge = [f64::MAX, f64::MIN, 0.0, 1.0, -1e300, f64::MAX];
    let thousands = [4000.0, -3000.0, 2999.9999, 3000.0, 0.0, -4000.0];
    let all = [normal, same, clusters, outlier, tiny, huge, thousands];
    for keys in &all {
        for values in &all {
            for queries in &all {
                for upstream in [&normal, &tiny, &huge] {
                    check_both([keys, values, queries, upstream]);
                }
            }
        }
    }
}

/// A top score that moves up with every key, and down: keys to come are far beyond the top of those seen.
#[test]
fn keys_that_grow_and_shrink() {
    let n = 90;
    for range in [1.0, 40.0, 800.0, 3000.0] {
        let up: Vec<f64> = (0..n).map(|i| range * f64::from(i) / f64::from(n)).collect();
        let down: Vec<f64> = up.iter().rev().copied().collect();
        let (values, upstream) = (numbers(n as usize, 1.0, 2), numbers(n as usize, 1.0, 4));
        for keys in [&up, &down] {
            for sign in [1.0, -1.0] {
                let queries: Vec<f64> = numbers(n as usize, 0.5, 3).iter().map(|y| sign * (1.0 + y)).collect();
                let inputs = HeadInputs { keys, values: &values, queries: &queries };
                for mask in [Mask::Causal, Mask::Prefix(20)] {
                    check(inputs, &upstream, &mask, Route::Moments);
                }
            }
        }
    }
}

#[test]
fn both_routes_have_the_same_gradients_under_masks() {
    let n = 5000;
    for (scale, y) in [(1.0, 1.0), (1e-6, 2.0), (10.0, 10.0), (300.0, 1.0), (0.0, 1.0), (1.0, 0.0)] {
        let (keys, values, queries) = (numbers(n, scale, 5), numbers(n, 1.0, 6), numbers(n, y, 7));
        let upstream = numbers(n, 1.0, 8);
        let inputs = HeadInputs { keys: &keys, values: &values, queries: &queries };
        for mask in [Mask::Causal, Mask::Prefix(2100), Mask::Prefix(7)] {
            let gradients = |route| {
                let mut found = Gradients::default();
                let attention = FastAttention::new().mask(mask.clone()).route(route);
                assert_eq!(attention.backward(inputs, &upstream, &mut found).unwrap().route, route);
                found
            };
            let (a, b) = (gradients(Route::Moments), gradients(Route::Direct));
            // Over what the sums of the largest key could be if all terms had one sign.
            let size = |x: &[f64]| x.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
            for (name, a, b) in
                [("keys", &a.keys, &b.keys), ("values", &a.values, &b.values), ("queries", &a.queries, &b.queries)]
            {
                let largest = size(b);
                for (i, (a, b)) in a.iter().zip(b).enumerate() {
                    assert!((a - b).abs() <= 1e-11 * largest, "{name} {i} {scale} {y} {mask:?}: {a} {b}");
                }
            }
        }
    }
}

#[test]
fn moments_are_chosen_for_long_sequences() {
    let n = 20_000;
    let (keys, values, queries) = (numbers(n, 2.0, 1), numbers(n, 1.0, 2), numbers(n, 2.0, 3));
    let inputs = HeadInputs { keys: &keys, values: &values, queries: &queries };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            [Mask::Causal, Mask::Prefix(5000)].map(|mask| {
                let mut found = Gradients::default();
                let work = FastAttention::new().mask(mask).backward(inputs, &values, &mut found).unwrap();
                assert_eq!(work.route, Route::Moments);
                assert!(work.bound < 1e-11, "{work:?}");
                found
            })
        })
    };
    assert_eq!(run(1), run(2));
}
