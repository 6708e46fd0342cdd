//! Long sums in fixed point: against the rule for single terms, and against programs in binary32.

use monolayer_core::exact::big::Big;
use monolayer_core::exact::real::Scaled;
use monolayer_core::model::{Numbers, Tensor};
use monolayer_core::rules::ball::Ball;
use monolayer_core::rules::matrix::{Fixed, Matrix};
use monolayer_core::rules::sum::{Arithmetic, Term, sum};
use monolayer_core::{Dyadic, Format, Stored};

use crate::common::Random;

const F32: Arithmetic = Arithmetic::Float { format: Format::F32, exp_ulp: 4 };

/// A number of binary32 near 2^scale, over so many binades, sometimes zero.
fn number(random: &mut Random, scale: i32, spread: usize) -> f32 {
    if random.below(9) == 0 {
        return 0.0;
    }
    let e = (scale + random.below(spread + 1) as i32).clamp(-149, 126);
    let x = (1.0 + random.below(1 << 23) as f64 / f64::from(1 << 23)) * 2_f64.powi(e);
    (if random.below(2) == 0 { x } else { -x }) as f32
}

fn dyadic(x: f32) -> Dyadic {
    Dyadic::from_bits(Format::F32, x.to_bits().into()).expect("finite")
}

fn ends(ball: Ball) -> (Scaled, Scaled) {
    let (low, high, e) = ball.ends();
    (Scaled::new(Big::from(low), e.into()), Scaled::new(Big::from(high), e.into()))
}

fn holds(ball: Ball, x: &Scaled) -> bool {
    let (low, high) = ends(ball);
    low <= *x && *x <= high
}

/// What a program computes that takes the terms in this order, fusing some products.
fn program(terms: &[(f32, f32)], bias: f32, random: &mut Random) -> f32 {
    let mut order: Vec<usize> = (0..terms.len()).collect();
    let style = random.below(4);
    match style {
        0 => order.sort_by(|&a, &b| (terms[a].0 * terms[a].1).abs().total_cmp(&(terms[b].0 * terms[b].1).abs())),
        1 => order.sort_by(|&a, &b| (terms[b].0 * terms[b].1).total_cmp(&(terms[a].0 * terms[a].1))),
        _ => (1..order.len()).for_each(|i| order.swap(i, random.below(i + 1))),
    }
    let lanes = 1 + random.below(8);
    let mut sums = vec![0.0_f32; lanes];
    sums[0] = if random.below(2) == 0 { bias } else { 0.0 };
    let late = sums[0] == 0.0;
    for (at, i) in order.into_iter().enumerate() {
        let (w, x) = terms[i];
        let sum = &mut sums[at % lanes];
        *sum = if random.below(2) == 0 { w.mul_add(x, *sum) } else { *sum + w * x };
    }
    let all = sums.into_iter().reduce(|a, b| a + b).unwrap();
    if late { all + bias } else { all }
}

#[test]
fn no_program_leaves_the_bounds() {
    let mut random = Random(6);
    let (mut bounded, mut total, mut wider) = (0, 0, 0.0_f64);
    for round in 0..30_000 {
        let n = 16 + random.below(if round % 50 == 0 { 3000 } else { 40 });
        let scale = [-140, -80, -10, 0, 20, 60][random.below(6)];
        let (spread, weights) = ([0, 3, 20, 90][random.below(4)], [-60, -6, 0, 30][random.below(4)]);
        let row: Vec<f32> = (0..n).map(|_| number(&mut random, weights, spread)).collect();
        let x: Vec<f32> = (0..n).map(|_| number(&mut random, scale, spread)).collect();
        let bias = number(&mut random, scale + weights + 3, 6);
        let bytes = row.iter().flat_map(|w| w.to_le_bytes()).collect();
        let numbers = Numbers::Floats(Tensor::dense(vec![1, n], Stored::F32, bytes));
        // Each number lies in its ball; some of its radius is shared.
        let wide = [0, 1, 9, 30][random.below(4)];
        let ball = |x: f32, random: &mut Random| {
            let own = Ball::exact(dyadic(x));
            let (m, r) = (own.m << 30, 1_u64 << random.below(wide + 1));
            let own = Ball { m: m + random.below(2 * r as usize + 1) as i64 - r as i64, r, e: own.e - 30 };
            if x == 0.0 { Ball::ZERO } else { own }
        };
        let balls: Vec<Ball> = x.iter().map(|x| ball(*x, &mut random)).collect();
        // A row that is not in fixed point goes by the rule for single terms, which is tested elsewhere.
        if row
            .iter()
            .any(|w| *w != 0.0 && w.abs() < 2_f32.powi(-30) * row.iter().fold(0_f32, |top, w| top.max(w.abs())))
        {
            continue;
        }
        let Some(fixed) = Fixed::new(F32, balls.iter().enumerate().map(|(c, x)| (c, *x, *x))) else { continue };
        let matrix = Matrix::new(&numbers, F32).unwrap();
        let bias_term = Term::addend(Ball::exact(dyadic(bias)));
        let found = matrix.sum(F32, 0, (Some(&fixed), Ball::ZERO), std::iter::empty, &[bias_term]);
        let single = row.iter().zip(&balls).map(|(w, x)| Term::weighted(dyadic(*w), *x)).chain([bias_term]);
        let single = sum(F32, single);
        total += 1;
        assert_eq!(found.is_some(), single.is_some(), "one rule sees an overflow and the other does not");
        let (Some(found), Some(single)) = (found, single) else { continue };
        bounded += 1;
        let terms: Vec<(f32, f32)> = row.iter().copied().zip(x.iter().copied()).collect();
        let product = |(w, x): &(f32, f32)| Scaled::from(dyadic(*w)).times(&dyadic(*x).into());
        let exact = terms.iter().map(product).fold(Scaled::from(dyadic(bias)), |sum, x| sum.plus(&x));
        assert!(holds(found.exact, &exact), "the exact sum is not in {found:?}");
        for _ in 0..8 {
            let computed = Scaled::from(dyadic(program(&terms, bias, &mut random)));
            assert!(holds(found.computed(), &computed), "{computed:?} is not in {found:?}");
            assert!(holds(found.rounding, &computed.plus(&exact.negated())), "more rounding than {found:?}");
        }
        let size = |ball: Ball| ball.r as f64 * 2_f64.powi(ball.e);
        let ratio = size(found.computed()) / size(single.computed());
        wider = wider.max(if ratio.is_finite() { ratio } else { 0.0 });
        // Half of the numbers may be known exactly, which the rule for single terms uses; it is never much sharper.
        assert!(ratio.is_nan() || ratio < 8.0, "{ratio}: {found:?} {single:?}");
    }
    println!("{bounded} of {total} long sums bounded, at most {wider:.2} times as wide as by single terms");
    assert!(bounded > 15_000, "only {bounded} of {total}");
}

/// What is shared between numbers counts for the sizes of partial sums, not for the sum.
#[test]
fn what_is_shared_stays_apart() {
    let n = 32;
    let bytes = (0..n).flat_map(|i| if i % 2 == 0 { 1_f32 } else { -1.0 }.to_le_bytes()).collect();
    let numbers = Numbers::Floats(Tensor::dense(vec![1, n], Stored::F32, bytes));
    let matrix = Matrix::new(&numbers, F32).unwrap();
    let own = Ball { m: 1 << 40, r: 1, e: -40 };
    let whole = Ball { r: 1 << 45, ..own };
    let apart = Fixed::new(F32, (0..n).map(|c| (c, own, whole))).unwrap();
    let found = matrix.sum(F32, 0, (Some(&apart), Ball::ZERO), std::iter::empty, &[]).unwrap();
    assert!(found.exact.size().is_below(Ball::power(-30)));
    // Partial sums reach 16 times 33, so that 31 additions may each be off by 2^(9-24).
    let rounding = found.rounding.size();
    assert!(
        !rounding.is_below(Ball::pack(31, 0, 8 - 24)) && rounding.is_below(Ball::pack(80, 0, 10 - 24)),
        "{rounding:?}"
    );
}
