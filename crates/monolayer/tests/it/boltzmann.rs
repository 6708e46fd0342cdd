//! The Boltzmann operator, its derivatives, and the lemmas about it.

use monolayer::arithmetic::{Ball, Interval, Number};
use monolayer::paper::boltzmann::{Boltzmann, boltz, difference, g, g_derivative, log_partition};
use monolayer::paper::lemmas::{equation_120, lemma_1, lemma_4, lemma_5, lemma_6, lemma_7, lemma_m, lemma_s};
use proptest::prelude::*;

fn balls(a: &[f64], precision: usize) -> Vec<Ball> {
    a.iter().map(|&x| Ball::new(x, precision)).collect()
}

/// The nearest float, up to a rounding or two.
fn float(x: &Ball) -> f64 {
    x.to_interval().center()
}

fn vector() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![
        prop::collection::vec(-5.0..5.0, 1..8),
        prop::collection::vec(-300.0..300.0, 1..8),
        prop::collection::vec((-3_i32..3).prop_map(f64::from), 1..8),
        (prop::collection::vec(-1.0..1.0, 1..8), -1e9..1e9)
            .prop_map(|(a, shift)| a.iter().map(|x: &f64| x + shift).collect()),
    ]
}

/// `a` with `a_i` moved by `step`.
fn moved(a: &[Ball], i: usize, step: f64) -> Vec<Ball> {
    let mut a = a.to_vec();
    a[i] = a[i].clone() + Ball::from_f64(step);
    a
}

/// Whether a float is right to 12 digits of `scale`, or so small that floats end there.
fn close(x: f64, exact: f64, scale: f64) -> bool {
    (x - exact).abs() <= 1e-12 * scale + 1e-300
}

proptest! {
    #[test]
    fn value_partition_and_entropy(a in vector()) {
        let point = Boltzmann::at(&a).unwrap();
        let exact = balls(&a, 300);
        let (value, partition) = (boltz(&exact).unwrap(), log_partition(&exact).unwrap());
        let scale = a.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        prop_assert!(close(point.value(), float(&value), scale * 1e-2));
        prop_assert!(close(point.log_partition(), float(&partition), scale * 1e-2));
        prop_assert!(close(point.entropy(), float(&(partition - value)), 1.0));
        prop_assert!(point.entropy() <= (a.len() as f64).ln() + 1e-14);
    }

    #[test]
    fn enclosures_of_the_value_contain_it(a in vector()) {
        let value = boltz(&balls(&a, 300)).unwrap().to_interval();
        let points: Vec<Interval> = a.iter().map(|&x| Interval::point(x)).collect();
        let enclosure = boltz(&points).unwrap();
        prop_assert!(enclosure.lo() <= value.hi() && value.lo() <= enclosure.hi());
        let scale = a.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        prop_assert!(enclosure.width() <= 1e-13 * scale);
        prop_assert!(enclosure.contains(value.center()) || enclosure.width() < 1e-300);
    }

    #[test]
    fn derivatives_are_limits_of_differences(a in vector(), i in 0_usize..8, j in 0_usize..8) {
        let (i, j) = (i % a.len(), j % a.len());
        let point = Boltzmann::at(&a).unwrap();
        let exact = balls(&a, 3000);
        let step = 2_f64.powi(-100);
        let value = |s: f64, t: f64| boltz(&moved(&moved(&exact, i, s), j, t)).unwrap();
        let first = (value(step, 0.0) - value(-step, 0.0)) / Ball::from_f64(2.0 * step);
        let second = (value(step, step) - value(step, -step) - value(-step, step) + value(-step, -step))
            / Ball::from_f64(4.0 * step * step);
        let spread = a.iter().fold(1.0, |m: f64, x| m.max((x - point.value()).abs()));
        let (p, q) = (point.probabilities[i], point.probabilities[j]);
        prop_assert!(close(point.gradient()[i], float(&first), p * spread), "{:?} {:?}", point.gradient()[i], first);
        let scale = spread * if i == j { p } else { p * q };
        prop_assert!(close(point.mixed_derivative(i, j), float(&second), scale), "{:?}", float(&second));
        prop_assert_eq!(point.mixed_derivative(i, j), point.mixed_derivative(j, i));
    }

    #[test]
    fn g_is_increasing_and_bounded(p in prop::collection::vec(-3.0..3.0, 1..8), y in -20.0..20.0) {
        let exact = balls(&p, 400);
        let y = Ball::new(y, 400);
        let value = g(&exact, &y).unwrap();
        let scores: Vec<Ball> = exact.iter().map(|x| x.clone() * &y).collect();
        let gap = y.clone() * &value - boltz(&scores).unwrap();
        prop_assert!(gap.to_interval().contains(0.0) && gap.to_interval().width() < 1e-90);

        let step = Ball::from_f64(2_f64.powi(-100));
        let quotient = (g(&exact, &(y.clone() + &step)).unwrap() - value) / step;
        let derivative = g_derivative(&exact, &y).unwrap();
        prop_assert!(close(float(&derivative), float(&quotient), 1.0));
        let float_derivative = g_derivative(&p, &float(&y)).unwrap();
        prop_assert!(float_derivative >= 0.0 && close(float_derivative, float(&derivative), 10.0));
    }

    #[test]
    fn differences_need_no_bits_for_what_is_common(a in vector(), b in vector()) {
        prop_assume!(a.iter().chain(&b).all(|x| x.abs() < 400.0));
        let exact = boltz(&balls(&a, 2000)).unwrap() - boltz(&balls(&b, 2000)).unwrap();
        let few = difference(&a, &b, 128).unwrap();
        let (x, y) = (exact.to_interval(), few.to_interval());
        prop_assert!(x.lo() <= y.hi() && y.lo() <= x.hi(), "{x:?} {y:?}");
        prop_assert!(!exact.certainly_less(&few) && !few.certainly_less(&exact));
    }
}

#[test]
fn any_finite_numbers_will_do() {
    let point = Boltzmann::at(&[f64::MAX, f64::MIN, f64::MAX]).unwrap();
    assert_eq!(point.value(), f64::MAX);
    assert_eq!(point.gradient(), [0.5, 0.0, 0.5]);
    assert_eq!(point.mixed_derivative(0, 1), 0.0);
    assert_eq!(Boltzmann::at(&[7.0]).unwrap().value(), 7.0);
    assert_eq!(Boltzmann::at(&[7.0]).unwrap().entropy(), 0.0);
    assert!(Boltzmann::at(&[]).is_err() && boltz::<f64>(&[]).is_err() && difference(&[], &[1.0], 64).is_err());
    assert!(Boltzmann::at(&[1.0, f64::NAN]).unwrap_err().to_string().contains("element 1"));
}

/// Decreasing numbers from `start`, each at least `gap` below the last, some by just that, some by far more.
fn ladder(start: f64, gap: f64, steps: &[f64]) -> Vec<f64> {
    let mut x = start;
    let mut rungs = vec![x];
    for step in steps {
        // Rounding must not close the gap.
        x -= gap * (1.0 + step) + 1e-15 * x.abs() + 1e-12;
        rungs.push(x);
    }
    rungs
}

/// Steps of a ladder: none, small, large, huge.
fn steps(most: usize) -> impl Strategy<Value = Vec<f64>> {
    let step = prop_oneof![4 => Just(0.0), 1 => 0.0..0.1, 1 => 0.0..10.0, 1 => 0.0..1e6, 1 => 0.0..1e12];
    prop::collection::vec(step, 0..most)
}

fn start() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), -100.0..100.0, -1e6..1e6]
}

/// Two sets of `n` rungs of a ladder of `2 n` or fewer.
fn equal_sizes(max: usize) -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    (1..=max, start()).prop_flat_map(|(n, start)| {
        (n..=2 * n).prop_flat_map(move |rungs| {
            let indices = || prop::sample::subsequence((0..rungs).collect::<Vec<_>>(), n);
            let steps = prop::collection::vec(steps(2).prop_map(|s| s.first().copied().unwrap_or(0.0)), rungs - 1);
            (steps, indices(), indices()).prop_map(move |(steps, i, j)| {
                let rungs = ladder(start, 2.0 * (n as f64).ln() + 3.0, &steps);
                let pick = |indices: Vec<usize>| indices.into_iter().map(|i| rungs[i]).collect::<Vec<_>>();
                (pick(i), pick(j))
            })
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn lemmas_1_and_7_hold((a, mut b) in equal_sizes(8)) {
        let r = a.iter().chain(&b).fold(0.0, |m: f64, x| m.max(x.abs()));
        if a == b {
            b.reverse();
            prop_assert!(lemma_1(&a, &b, r).unwrap_err().to_string().contains("equal as sets"));
            prop_assert!(lemma_7(&a, &b).is_err());
        } else {
            let (first, seventh) = (lemma_1(&a, &b, r).unwrap(), lemma_7(&a, &b).unwrap());
            prop_assert!(first.holds() && !first.fails(), "{first:?}");
            prop_assert!(seventh.holds(), "{seventh:?}");
            prop_assert!(lemma_7(&b, &a).unwrap().holds());
        }
    }

    #[test]
    fn lemmas_4_and_5_hold(mut a in vector(), beyond in prop_oneof![Just(0.0), 0.0..1.0, 0.0..1e3, 0.0..1e15]) {
        let max = a.iter().copied().fold(f64::MIN, f64::max);
        let n = (a.len() + 1) as f64;
        for (distance, lemma) in [(1.0, lemma_4 as fn(&[f64], usize) -> _), (3.0, lemma_5)] {
            let needed = n.ln() + distance;
            a.insert(0, max - needed - beyond - 1e-15 * (max.abs() + beyond) - 1e-14);
            let statement = lemma(&a, 0).unwrap();
            prop_assert!(statement.holds(), "{statement:?}");
            a[0] = max - needed + 1e-9 + 1e-15 * max.abs();
            prop_assert!(lemma(&a, 0).is_err());
            a.remove(0);
        }
    }

    #[test]
    fn lemma_6_holds(
        shared in prop::collection::vec(-20.0..20.0, 1..8),
        more in prop_oneof![0.0..1e-6, 0.0..1.0, 0.0..100.0],
        (beyond, step) in (prop_oneof![Just(0.0), 0.0..1.0, 0.0..50.0], prop_oneof![1e-6..1e-3, 1e-3..1.0, 1.0..50.0]),
    ) {
        let n = shared.len() + 1;
        let delta = (n as f64).ln() + 3.0 + 1e-12 + more;
        let max = shared.iter().copied().fold(f64::MIN, f64::max);
        let a_n = max - delta - beyond - 1e-12 * (1.0 + delta);
        let with = |last: f64| [&shared[..], &[last]].concat();
        let statement = lemma_6(&with(a_n), &with(a_n - step), delta).unwrap();
        prop_assert!(statement.holds(), "{statement:?}");
        // The hypotheses: delta above log n + 3, the last number of a below max - delta, that of b below it.
        prop_assert!(lemma_6(&with(a_n), &with(a_n - step), (n as f64).ln() + 3.0 - 1e-12).is_err());
        prop_assert!(lemma_6(&with(max - delta + 1e-9), &with(a_n - step), delta).is_err());
        prop_assert!(lemma_6(&with(a_n), &with(a_n), delta).is_err());
    }

    #[test]
    fn equation_120_holds(start in start(), steps in steps(9), k in 0_usize..10) {
        let n = steps.len() + 1;
        let a = ladder(start, 2.0 * (n as f64).ln() + 3.0, &steps);
        match equation_120(&a, k) {
            Ok(statements) => prop_assert!(statements.iter().all(monolayer::paper::lemmas::Inequality::holds), "{statements:?}"),
            Err(_) => prop_assert!(k == 0 || k + 1 >= n),
        }
    }

    #[test]
    fn lemma_s_holds(
        start in start(),
        delta in prop_oneof![Just(1.5), Just(2.0), Just(3.0), 1.45..4.0, 4.0..1e4],
        steps in steps(12),
        (in_a, in_b) in (any::<u16>(), any::<u16>()),
    ) {
        let rungs = ladder(start, delta, &steps);
        let pick = |mask: u16| {
            (0..rungs.len()).filter(|&i| mask >> i & 1 == 1).map(|i| rungs[i]).collect::<Vec<_>>()
        };
        let (a, b) = (pick(in_a), pick(in_b));
        prop_assume!(!a.is_empty() && !b.is_empty() && a != b);
        let statement = lemma_s(&a, &b, delta).unwrap();
        prop_assert!(statement.holds(), "{statement:?}");
    }

    #[test]
    fn lemma_m_holds(
        start in start(),
        steps in steps(6),
        counts in prop::collection::vec((0_usize..4, 0_usize..4), 6),
        large in prop_oneof![Just(1_usize), 1_usize..20],
    ) {
        let sizes = |side: fn(&(usize, usize)) -> usize| counts.iter().map(side).sum::<usize>() * large;
        let n = sizes(|c| c.0).max(sizes(|c| c.1)).max(1);
        let rungs = ladder(start, 2.0 * (n as f64).ln() + 3.0, &steps);
        let pick = |side: fn(&(usize, usize)) -> usize| {
            let repeat = |(&x, c)| std::iter::repeat_n(x, side(c) * large);
            rungs.iter().zip(&counts).flat_map(repeat).collect::<Vec<f64>>()
        };
        let (a, b) = (pick(|c| c.0), pick(|c| c.1));
        prop_assume!(!a.is_empty() && !b.is_empty());
        match lemma_m(&a, &b) {
            Ok(statement) => prop_assert!(statement.holds(), "{statement:?}"),
            Err(error) => {
                // Equal normalized multisets: equal values, whatever the precision.
                prop_assert!(error.to_string().contains("normalized multisets are equal"), "{error}");
                prop_assert!(difference(&a, &b, 64).unwrap().certainly_equal(&Ball::zero()));
            }
        }
    }
}

#[test]
fn the_constant_of_lemma_s() {
    for (delta, constant) in [(1.5, 0.0927), (2.0, 0.8816), (3.0, 2.395)] {
        let statement = lemma_s(&[0.0], &[0.0, -delta], delta).unwrap();
        let c = float(&statement.right) * delta.exp();
        assert!((c - constant).abs() < 5e-4 * constant.max(0.2), "{c} {constant}");
    }
    assert!(lemma_s(&[0.0], &[0.0, -1.43], 1.43).unwrap_err().to_string().contains("theta"));
}

#[test]
fn lemma_s_is_not_far_from_the_truth() {
    // One set has the number where they first differ, the other all that follow.
    let mut smallest = f64::INFINITY;
    for n in 2..30 {
        let tail: Vec<f64> = (2..n).map(|i| -3.0 * f64::from(i)).collect();
        let without = [&[0.0], &tail[..]].concat();
        let statement = lemma_s(&[0.0, -3.0], &without, 3.0).unwrap();
        assert!(statement.holds());
        smallest = smallest.min(float(&(statement.left / statement.right)));
    }
    assert!(smallest < 1.2, "{smallest}");
}

#[test]
fn scales_beyond_floats_are_decided() {
    // e^-1e15 has an exponent of 51 bits.
    let (a, b) = ([0.0, -1e15, -2e15], [0.0, -1e15, -3e15]);
    let statement = lemma_7(&a, &b).unwrap();
    assert!(statement.holds());
    assert!(statement.left.log2_abs().hi() < -2.8e15);
    assert!(lemma_1(&a, &b, 3e15).unwrap().holds());
    assert!(lemma_s(&a, &b, 1e15).unwrap().holds());
    assert!(lemma_m(&a, &[0.0, 0.0, -1e15]).unwrap().holds());
    assert!(lemma_4(&a, 2).unwrap().holds() && lemma_5(&a, 1).unwrap().holds());
}

#[test]
fn one_token_is_no_exception() {
    assert!(lemma_1(&[0.0], &[3.5], 4.0).unwrap().holds());
    assert!(lemma_7(&[0.0], &[3.5]).unwrap().holds());
    assert!(lemma_s(&[0.0], &[3.5], 3.5).unwrap().holds());
    assert!(lemma_m(&[0.0], &[3.5]).unwrap().holds());
}

#[test]
fn hypotheses_are_named() {
    let why = |result: monolayer::Result<monolayer::paper::lemmas::Inequality>| result.unwrap_err().to_string();
    assert!(why(lemma_1(&[0.0, 1.0], &[0.0, 9.0], 9.0)).contains("1 and 0 are not more than 4.38"));
    assert!(why(lemma_1(&[0.0, 9.0], &[0.0, 0.0], 9.0)).contains("0 appears twice"));
    assert!(why(lemma_1(&[0.0, 9.0], &[0.0], 9.0)).contains("lengths 2 and 1"));
    assert!(why(lemma_1(&[0.0, 9.0], &[0.0, 18.0], 17.0)).contains("[-17, 17]"));
    assert!(why(lemma_1(&[0.0], &[9.0], f64::NAN)).contains("NaN"));
    assert!(why(lemma_1(&[0.0], &[f64::INFINITY], f64::INFINITY)).contains("real line"));
    assert!(why(lemma_4(&[0.0], 1)).contains("no element 1"));
    assert!(why(lemma_5(&[0.0, -3.0], 1)).contains("not below max a - log n - 3"));
    assert!(why(lemma_s(&[0.0], &[0.0], 3.0)).contains("equal"));
    assert!(why(lemma_s(&[0.0], &[], 3.0)).contains("empty"));
    assert!(why(lemma_m(&[0.0, -9.0], &[0.0, -9.0, 0.0, -9.0])).contains("normalized multisets are equal"));
    assert!(equation_120(&[0.0, -9.0, -18.0], 0).is_err() && equation_120(&[0.0, -9.0, -18.0], 2).is_err());
    assert!(why(lemma_6(&[0.0], &[-1.0], 9.0)).contains("below 2"));
    assert!(why(lemma_6(&[0.0, -9.0], &[1.0, -10.0], 5.0)).contains("finite and equal"));
}

/// Lemma 6 at two points, to the digits that the formulas give.
#[test]
fn lemma_6_in_numbers() {
    let sides = |a: &[f64], b: &[f64], delta: f64| {
        let statement = lemma_6(a, b, delta).unwrap();
        [float(&statement.left), float(&statement.right)]
    };
    let near = |found: [f64; 2], meant: [f64; 2]| found.iter().zip(meant).all(|(x, y)| (x / y - 1.0).abs() < 1e-8);
    assert!(near(sides(&[0.0, -5.0], &[0.0, -6.0], 4.0), [0.018_628_515_7, 0.008_176_600_9]));
    assert!(near(sides(&[2.0, 0.0, -5.0], &[2.0, 0.0, -6.0], 6.9), [0.003_133_763_11, 0.001_713_655_81]));
}

/// Cases in which Lemmas S and M are nearly equalities: constants a little larger would be wrong, for M any larger one.
#[test]
fn the_constants_of_lemmas_s_and_m_are_nearly_sharp() {
    let ratio = |statement: monolayer::paper::lemmas::Inequality| (statement.left / statement.right).to_interval();
    // One score below the maximum, against all scores from the next one on.
    let rest: Vec<f64> = (0..12).filter(|&k| k != 1).map(|k| -3.0 * f64::from(k)).collect();
    let s = ratio(lemma_s(&[0.0, -3.0], &rest, 3.0).unwrap());
    assert!(s.lo() > 1.0 && s.hi() < 1.06, "{s:?}");
    // n - 1 times the maximum and once the next score, against once the maximum and n - 1 times the score after that.
    for (n, most) in [(2, 1.0694), (10, 1.0210), (100, 1.00221), (1000, 1.00023)] {
        let step = 2.0 * f64::from(n).ln() + 3.0 + 1e-9;
        let rest = n as usize - 1;
        let many = [vec![0.0; rest], vec![-step]].concat();
        let few = [vec![0.0], vec![-2.0 * step; rest]].concat();
        let m = ratio(lemma_m(&many, &few).unwrap());
        assert!(m.lo() > 1.0 && m.hi() < most, "{n}: {m:?}");
    }
}
