//! The rule of sums against all programs: every order, every tree, every choice of fusing, for up to seven terms in binary32.

#[path = "../../../monolayer-check/examples/soundness/trees.rs"]
mod all_trees;

use monolayer_core::exact::big::Big;
use monolayer_core::exact::real::Scaled;
use monolayer_core::rules::ball::Ball;
use monolayer_core::rules::sum::{Arithmetic, Sum, Term, sum};
use monolayer_core::{Dyadic, Format};

use crate::common::Random;

const F32: Arithmetic = Arithmetic::Float { format: Format::F32, exp_ulp: 4 };

/// Sizes where rounding, cancellation, underflow and overflow are near: as numbers and as bits.
const POOL: [f32; 24] = [
    0.0,
    1.0,
    1.000_000_1,
    0.999_999_94,
    1.5,
    3.0,
    0.333_333_34,
    5.960_464_5e-8,
    5.960_465e-8,
    2.980_232_2e-8,
    1.192_092_9e-7,
    8_388_609.0,
    16_777_215.0,
    3.402_823_5e38,
    1.701_411_8e38,
    8.507_059e37,
    1.844_674_4e19,
    1.175_494_4e-38,
    1.175_494_2e-38,
    1e-45,
    3e-45,
    4.2e-43,
    1.084_202_2e-19,
    3.741_444e-23,
];

/// A number of a kind.
fn number(random: &mut Random, kind: usize) -> f32 {
    let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
    let x = match kind {
        // Ties and cancellations among few values.
        0 => POOL[1 + random.below(10)],
        // Anything.
        1 => POOL[random.below(POOL.len())],
        // Powers of two, small and large.
        2 => 2_f32.powi(random.below(40) as i32 - 30),
        // Subnormal products.
        3 => POOL[17 + random.below(7)] * POOL[1 + random.below(8)],
        _ => f32::from_bits(0x3F00_0000 + random.below(1 << 25) as u32),
    };
    sign * x
}

fn dyadic(x: f32) -> Dyadic {
    Dyadic::from_bits(Format::F32, x.to_bits().into()).expect("finite")
}

/// A ball with x in it, somewhere; x itself where it is exact.
fn ball(x: f32, random: &mut Random) -> Ball {
    let own = Ball::exact(dyadic(x));
    let wide = [1, 1 << 10, 1 << 16][random.below(3)];
    let m = own.m << 12;
    match random.below(4) {
        0 => Ball { m, r: wide, e: own.e - 12 },
        1 => Ball { m: m + wide as i64, r: wide, e: own.e - 12 },
        2 => Ball { m: m - wide as i64, r: wide, e: own.e - 12 },
        _ => own,
    }
}

fn exact(terms: &[(f32, f32)], bias: Option<f32>) -> Scaled {
    let product = |&(w, x): &(f32, f32)| Scaled::from(dyadic(w)).times(&dyadic(x).into());
    let start = bias.map_or(Scaled::ZERO, |b| dyadic(b).into());
    terms.iter().map(product).fold(start, |sum, x| sum.plus(&x))
}

fn ends(ball: Ball) -> (Scaled, Scaled) {
    let (low, high, e) = ball.ends();
    (Scaled::new(Big::from(low), e.into()), Scaled::new(Big::from(high), e.into()))
}

/// What a program reaches must be within both parts of a sum. Gives log2 of the bound over what was reached.
fn compare(terms: &[(f32, f32)], bias: Option<f32>, found: Option<Sum>) -> Option<i64> {
    let reached = all_trees::worst_deviation(terms, bias);
    let found = found?;
    assert!(!reached.overflow, "{terms:?} {bias:?} overflows");
    let value = exact(terms, bias);
    let (low, high) = ends(found.exact);
    assert!(low <= value && value <= high, "{terms:?} {bias:?}: the exact sum is not in {found:?}");
    let (low, high) = ends(found.computed());
    let (least, most) = ends(found.rounding);
    let mut widest = Scaled::ZERO;
    for x in [reached.low, reached.high] {
        let x = Scaled::from(dyadic(x));
        assert!(low <= x && x <= high, "{terms:?} {bias:?}: {x:?} is not in {found:?}");
        let off = x.plus(&value.negated());
        assert!(least <= off && off <= most, "{terms:?} {bias:?}: {off:?} is more rounding than {found:?}");
        widest = widest.max(off.clone()).max(off.negated());
    }
    (widest > Scaled::ZERO).then(|| most.top() - widest.top())
}

#[test]
fn no_tree_leaves_the_bounds() {
    let mut random = Random(14);
    let (mut decided, mut ratios) = (0, [0_usize; 12]);
    for round in 0..40_000 {
        let most = [2, 3, 4, 5, 6, 7][if round % 40 > 0 { random.below(3) } else { random.below(6) }];
        let n = 1 + random.below(most);
        let kind = random.below(6);
        let mut terms: Vec<(f32, f32)> = Vec::new();
        for i in 0..n {
            let first = number(&mut random, kind);
            let other_kind = random.0 as usize % 5;
            let pair = (first, number(&mut random, other_kind));
            // Every third term cancels another.
            let other = terms.get(i / 2).copied().filter(|_| random.below(3) == 0);
            terms.push(other.map_or(pair, |(w, x)| (-w, x)));
        }
        let bias = (n < 7 && random.below(2) == 0).then(|| number(&mut random, kind));
        let mut one = |x: f32| if random.below(2) == 0 { Ball::exact(dyadic(x)) } else { ball(x, &mut random) };
        let addend = bias.map_or(Ball::ZERO, &mut one);
        let balls: Vec<Ball> = terms.iter().map(|(_, x)| one(*x)).collect();
        let wide: Vec<Ball> = terms.iter().map(|(w, _)| one(*w)).collect();
        let weights = || terms.iter().map(|(w, _)| dyadic(*w));
        let weighted = weights().zip(&balls).map(|(w, x)| Term::weighted(w, *x));
        let sums = [
            sum(F32, weighted.chain([Term::addend(addend)])),
            sum(F32, wide.iter().zip(&balls).map(|(a, b)| Term::product(*a, *b)).chain([Term::addend(addend)])),
        ];
        for found in sums {
            decided += usize::from(found.is_some());
            if let Some(ratio) = compare(&terms, bias, found) {
                ratios[ratio.clamp(0, 11) as usize] += 1;
            }
        }
    }
    println!("{decided} sums bounded; by log2 of the bound over the worst tree: {ratios:?}");
    assert!(decided > 40_000, "only {decided} sums have bounds");
    assert!(ratios[0] + ratios[1] > 7_000, "the bounds are loose: {ratios:?}");
}
