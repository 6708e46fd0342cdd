//! Attention in linear time: its bound against balls at every scale, gradients, masks, streams, threads.

use monolayer::Mask;
use monolayer::arithmetic::kernels::Real;
use monolayer::arithmetic::{Ball, Number as _};
use monolayer::attention::{FastAttention, Gradients, HeadInputs, Route, StreamingHead, Work};
use proptest::prelude::*;

/// Bits of the balls.
const PRECISION: usize = 300;

/// The exact mean of a query, as a ball.
fn exact<R: Real>(keys: &[R], values: &[R], y: R) -> Ball {
    let ball = |x: R| Ball::new(x.to_f64(), PRECISION);
    let further = |a: &R, b: &R| a.partial_cmp(b).unwrap();
    let top =
        if y < R::ZERO { keys.iter().min_by(|a, b| further(a, b)) } else { keys.iter().max_by(|a, b| further(a, b)) };
    let top = ball(*top.unwrap());
    let (mut total, mut sum) = (Ball::new(0.0, PRECISION), Ball::new(0.0, PRECISION));
    for (&k, &v) in keys.iter().zip(values) {
        let score = ball(y) * (ball(k) - &top);
        // What is left out is below 2^-2000 of the rest.
        if Ball::new(-2000.0, PRECISION).certainly_less(&score) {
            let weight = score.exp();
            sum = sum + weight.clone() * &ball(v);
            total = total + weight;
        }
    }
    sum / total
}

/// Asserts the bound for some outputs: that of the work, times the largest distance of a value from their middle, and the
/// rounding of the result.
fn check<R: Real>(inputs: HeadInputs<R>, mask: &Mask, out: &[R], work: Work) {
    let size = |f: fn(f64, f64) -> f64| inputs.values.iter().map(|v| v.to_f64()).reduce(f).unwrap();
    let (low, high) = (size(f64::min), size(f64::max));
    let (half, largest) = (high / 2.0 - low / 2.0, low.abs().max(high.abs()));
    let rounding = 4.0 * R::UNIT_ROUNDOFF.to_f64() * largest + R::SMALLEST.to_f64();
    for (i, &mean) in out.iter().enumerate() {
        let seen = match mask {
            Mask::None => inputs.keys.len(),
            Mask::Prefix(k) => inputs.keys.len().min((i + 1).max(*k)),
            _ => i + 1,
        };
        let want = exact(&inputs.keys[..seen], &inputs.values[..seen], inputs.queries[i]);
        let error = (want - &Ball::new(mean.to_f64(), PRECISION)).abs();
        let allowed = Ball::new(work.bound * half, PRECISION) + &Ball::new(rounding, PRECISION);
        assert!(error.certainly_less(&allowed), "{} {i} {mask:?} {work:?}: {mean:?}, off by {error:?}", R::NAME);
        assert!(low <= mean.to_f64() && mean.to_f64() <= high);
    }
}

/// All routes and masks.
fn check_all<R: Real>(keys: &[R], values: &[R], queries: &[R]) {
    let inputs = HeadInputs { keys, values, queries };
    for route in [Route::Moments, Route::Direct] {
        for mask in [Mask::None, Mask::Causal, Mask::Prefix(keys.len() / 2)] {
            if mask != Mask::None && keys.len() != queries.len() {
                continue;
            }
            let mut out = vec![R::ZERO; queries.len()];
            let work = FastAttention::new().route(route).mask(mask.clone()).forward(inputs, &mut out).unwrap();
            check(inputs, &mask, &out, work);
        }
    }
}

pub(crate) fn in_f32(x: &[f64]) -> Vec<f32> {
    x.iter().map(|&x| (x as f32).clamp(f32::MIN, f32::MAX)).collect()
}

fn check_both(keys: &[f64], values: &[f64], queries: &[f64]) {
    check_all(keys, values, queries);
    check_all(&in_f32(keys), &in_f32(values), &in_f32(queries));
}

/// Numbers of one scale, around zero or far from it, in clusters, or with an outlier.
pub(crate) fn wild(count: usize) -> impl Strategy<Value = Vec<f64>> {
    let scale = prop_oneof![
        Just(1.0),
        (-3.0..3.0_f64).prop_map(|e| 10_f64.powf(e)),
        (-300.0..300.0_f64).prop_map(|e| 10_f64.powf(e))
    ];
    let offset = prop_oneof![Just(0.0), -1e6..1e6_f64, -2.0..2.0_f64];
    (scale, offset, 0..5_u32, prop::collection::vec(-1.0..1.0_f64, count)).prop_map(
        |(scale, offset, kind, mut list)| {
            for (i, x) in list.iter_mut().enumerate() {
                *x = match kind {
                    2 if i == 1 => 1e6,
                    0 | 2 => *x,
                    1 => x.signum() + 1e-9 * *x,
                    3 => 0.5,
                    _ => x.signum() * (12.0 * *x).exp(),
                };
                *x = ((offset + *x) * scale).clamp(f64::MIN, f64::MAX);
            }
            list
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_bound_holds_at_every_scale((keys, values, queries) in (1..24_usize).prop_flat_map(|n| (wild(n), wild(n), wild(n)))) {
        check_both(&keys, &values, &queries);
    }

    #[test]
    fn a_tolerance_is_kept(tolerance in 1e-12..0.05_f64, keys in wild(40), queries in wild(30)) {
        let values: Vec<f64> = (0..40).map(|i| f64::from(i % 7) - 3.0).collect();
        let inputs = HeadInputs { keys: &keys, values: &values, queries: &queries };
        let mut out = vec![0.0; 30];
        let work = FastAttention::new().route(Route::Moments).tolerance(tolerance).forward(inputs, &mut out).unwrap();
        prop_assert!(work.bound <= tolerance + 1e-10);
        check(inputs, &Mask::None, &out, work);
    }
}

#[test]
fn numbers_at_the_edges() {
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
                check_both(keys, values, queries);
            }
        }
    }
    check_both(&[3.0], &[5.0], &[1e300]);
}

#[test]
fn no_tokens_and_no_numbers() {
    let attention = FastAttention::new();
    let mut out = [7.0_f64, 7.0];
    attention.forward(HeadInputs { keys: &[], values: &[], queries: &[1.0, 2.0] }, &mut out).unwrap();
    assert_eq!(out, [0.0, 0.0]);
    attention.forward(HeadInputs::<f64> { keys: &[], values: &[], queries: &[] }, &mut []).unwrap();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let list = [1.0, bad];
        for place in 0..3 {
            let pick = |i: usize| if i == place { &list[..] } else { &[1.0, 2.0][..] };
            let inputs = HeadInputs { keys: pick(0), values: pick(1), queries: pick(2) };
            let error = attention.forward(inputs, &mut out).unwrap_err().to_string();
            assert!(error.contains(["key 1", "value 1", "query 1"][place]), "{error}");
        }
    }
    let inputs = HeadInputs { keys: &[1.0, 2.0], values: &[1.0], queries: &[1.0] };
    assert!(attention.forward(inputs, &mut [0.0]).is_err());
    let inputs = HeadInputs { keys: &[1.0, 2.0], values: &[1.0, 2.0], queries: &[1.0] };
    assert!(attention.clone().mask(Mask::Causal).forward(inputs, &mut [0.0]).is_err());
    assert!(attention.clone().mask(Mask::Band(1, 1)).forward(inputs, &mut [0.0]).is_err());
    assert!(attention.tolerance(0.0).forward(inputs, &mut [0.0]).is_err());
}

/// Numbers without a pattern, of a scale.
pub(crate) fn numbers(count: usize, scale: f64, seed: u64) -> Vec<f64> {
    let mut state = seed * 2 + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..count).map(|_| scale * (next() + next() + next() + next() - 2.0)).collect()
}

#[test]
fn long_sequences_keep_the_bound() {
    let n = 3000;
    for scale in [0.0, 1e-3, 1.0, 5.0, 60.0] {
        let (keys, values, queries) = (numbers(n, scale, 1), numbers(n, 1.0, 2), numbers(n, scale, 3));
        for mask in [Mask::None, Mask::Causal, Mask::Prefix(1000)] {
            let inputs = HeadInputs { keys: &keys, values: &values, queries: &queries };
            let mut out = vec![0.0; n];
            let attention = FastAttention::new().mask(mask.clone());
            if scale < 10.0 {
                let chosen = attention.clone().forward(inputs, &mut out).unwrap().route;
                assert_eq!(chosen, Route::Moments, "{scale} {mask:?}");
            }
            let work = attention.route(Route::Moments).forward(inputs, &mut out).unwrap();
            assert_eq!(work.route, Route::Moments, "{scale} {mask:?}");
            // Some of the queries, the first and the last among them.
            for i in [0, 1, 15, 16, 17, 999, 1000, 2047, 2048, 2500, n - 1] {
                let seen = match mask {
                    Mask::None => n,
                    Mask::Prefix(k) => k.max(i + 1),
                    _ => i + 1,
                };
                let some = HeadInputs { keys: &keys[..seen], values: &values[..seen], queries: &queries[i..=i] };
                check(some, &Mask::None, &out[i..=i], work);
            }
        }
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let n = 200;
    for (scale, mask) in [(1.0, Mask::None), (3.0, Mask::None), (1.0, Mask::Causal), (1.0, Mask::Prefix(50))] {
        let lists = [numbers(n, scale, 1), numbers(n, 1.0, 2), numbers(n, scale, 3)];
        let upstream = numbers(n, 1.0, 4);
        let attention = FastAttention::new().mask(mask.clone());
        let loss = |lists: &[Vec<f64>; 3]| {
            let [keys, values, queries] = lists;
            let mut out = vec![0.0; n];
            attention.clone().route(Route::Direct).forward(HeadInputs { keys, values, queries }, &mut out).unwrap();
            out.iter().zip(&upstream).map(|(g, u)| g * u).sum::<f64>()
        };
        for route in [Route::Direct, Route::Moments] {
            let [keys, values, queries] = &lists;
            let mut found = Gradients::default();
            let inputs = HeadInputs { keys, values, queries };
            attention.clone().route(route).backward(inputs, &upstream, &mut found).unwrap();
            for (list, gradient) in [&found.keys, &found.values, &found.queries].into_iter().enumerate() {
                for i in (0..n).step_by(17) {
                    let step = 1e-5;
                    let moved = |by: f64| {
                        let mut moved = lists.clone();
                        moved[list][i] += by;
                        loss(&moved)
                    };
                    let difference = (moved(step) - moved(-step)) / (2.0 * step);
                    let error = (difference - gradient[i]).abs();
                    assert!(error <= 1e-7 * (1.0 + difference.abs()), "{list} {i} {route:?} {mask:?} {error}");
                }
            }
        }
    }
}

#[test]
fn both_routes_have_the_same_gradients() {
    let n = 700;
    for (scale, y) in [(1.0, 1.0), (1e-6, 2.0), (30.0, 30.0), (1e4, 1.0), (0.0, 1.0)] {
        let (keys, values, queries) = (numbers(n, scale, 5), numbers(n, 1.0, 6), numbers(n, y, 7));
        let upstream = numbers(n, 1.0, 8);
        let inputs = HeadInputs { keys: &keys, values: &values, queries: &queries };
        let gradients = |route| {
            let mut found = Gradients::default();
            FastAttention::new().route(route).backward(inputs, &upstream, &mut found).unwrap();
            found
        };
        let (a, b) = (gradients(Route::Moments), gradients(Route::Direct));
        let total = upstream.iter().copied().map(f64::abs).sum::<f64>();
        let width = 4.0 * scale;
        // Over what the sums could be if all terms had one sign.
        for (a, b, size) in
            [(&a.keys, &b.keys, 4.0 * y * total), (&a.values, &b.values, total), (&a.queries, &b.queries, 4.0 * width)]
        {
            for (a, b) in a.iter().zip(b) {
                assert!((a - b).abs() <= 1e-13 * size, "{scale} {y}: {a} {b}");
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let n = 20_000;
    let (keys, values, queries) = (numbers(n, 2.0, 1), numbers(n, 1.0, 2), numbers(n, 2.0, 3));
    let inputs = HeadInputs { keys: &keys, values: &values, queries: &queries };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (mut out, mut causal, mut gradients) = (vec![0.0; n], vec![0.0; n], Gradients::default());
            FastAttention::new().forward(inputs, &mut out).unwrap();
            FastAttention::new().mask(Mask::Causal).forward(inputs, &mut causal).unwrap();
            FastAttention::new().backward(inputs, &values, &mut gradients).unwrap();
            (out, causal, gradients)
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn a_stream_is_the_causal_mask() {
    let n = 500;
    let (keys, values, queries) = (numbers(n, 2.0, 1), numbers(n, 1.0, 2), numbers(n, 3.0, 3));
    let mut out = vec![0.0; n];
    let inputs = HeadInputs { keys: &keys, values: &values, queries: &queries };
    FastAttention::new().mask(Mask::Causal).route(Route::Direct).forward(inputs, &mut out).unwrap();
    // Keys from -0.1 to 0.1 were declared: bins are added as others come.
    let mut head = StreamingHead::new(-0.1, 0.1, 6.0).unwrap();
    let declared = head.bins();
    for i in 0..n {
        let mean = head.push(keys[i], values[i], queries[i]).unwrap();
        assert!((mean - out[i]).abs() <= 1e-13, "{i}: {mean} {}", out[i]);
    }
    assert!(head.bins() > declared && head.tokens() == n);
    assert!(
        head.push(0.0, 0.0, 6.1).is_err()
            && head.push(f64::NAN, 0.0, 0.0).is_err()
            && head.push(1e9, 0.0, 0.0).is_err()
    );
    assert_eq!(head.tokens(), n);
    assert!(
        StreamingHead::<f64>::new(1.0, -1.0, 1.0).is_err()
            && StreamingHead::<f64>::new(0.0, 1.0, f64::INFINITY).is_err()
    );
}

#[test]
fn batches_are_their_rows() {
    let offsets = [0, 3, 3, 10, 400];
    let (keys, values, queries) = (numbers(800, 2.0, 1), numbers(800, 1.0, 2), numbers(800, 3.0, 3));
    let inputs = HeadInputs { keys: &keys, values: &values, queries: &queries };
    let attention = FastAttention::new().mask(Mask::Causal);
    let mut out = vec![0.0; 800];
    attention.forward_packed(&offsets, inputs, &mut out).unwrap();
    let row = |range: std::ops::Range<usize>| {
        let mut row = vec![0.0; range.len()];
        let inputs =
            HeadInputs { keys: &keys[range.clone()], values: &values[range.clone()], queries: &queries[range] };
        attention.forward(inputs, &mut row).unwrap();
        row
    };
    assert_eq!(out[3..10], row(3..10));
    assert_eq!(out[410..800], row(410..800));
    attention.forward_padded(200, &[200, 0, 7, 100], inputs, &mut out).unwrap();
    assert_eq!(out[400..407], row(400..407));
    assert!(out[200..400].iter().chain(&out[407..600]).all(|&x| x == 0.0));
    assert!(attention.forward_packed(&[0, 5, 3], inputs, &mut out).is_err());
    assert!(attention.forward_padded(200, &[201, 0, 0, 0], inputs, &mut out).is_err());
}
