//! Large models are kept as their files have them, and sums that tokens share are formed once: the same numbers must come out.

use std::sync::Arc;

use monolayer_core::model::{Numbers, Sparse, Tensor};
use monolayer_core::rules::ball::Ball;
use monolayer_core::rules::matrix::{Fixed, Matrix};
use monolayer_core::rules::sum::{Arithmetic, Points, Term, Together, sum};
use monolayer_core::{Dyadic, Format, Stored};

use crate::common::Random;

const ARITHMETICS: [Arithmetic; 3] = [
    Arithmetic::Real,
    Arithmetic::Float { format: Format::F32, exp_ulp: 4 },
    Arithmetic::Float { format: Format::F64, exp_ulp: 4 },
];

/// A double: often zero, else of any size from the smallest to the largest, or of few bits.
fn number(random: &mut Random, scale: i32, spread: usize) -> f64 {
    match random.below(8) {
        0 => 0.0,
        1 => -0.0,
        2..5 => (random.below(33) as f64 - 16.0) * 2_f64.powi(scale),
        _ => {
            let m = random.below(1 << 52) as f64 - 2_f64.powi(51);
            m * 2_f64.powi(scale - 51 + random.below(spread + 1) as i32)
        }
    }
}

fn dyadic(x: f64) -> Dyadic {
    Dyadic::from_bits(Format::F64, x.to_bits()).unwrap()
}

/// A matrix dense in memory, in the bytes of a dense file, and in those of a sparse one.
fn three(arithmetic: Arithmetic, rows: usize, entries: &[f64]) -> [Option<Matrix>; 3] {
    let (columns, bytes) = (entries.len() / rows, |x: &f64| x.to_le_bytes());
    let shape = vec![rows, columns];
    let dense = Tensor::dense(shape.clone(), Stored::F64, entries.iter().flat_map(bytes).collect());
    // Every other zero is stored, as a file may have it.
    let stored: Vec<usize> = (0..entries.len()).filter(|&i| entries[i] != 0.0 || i % 2 == 0).collect();
    let starts = (0..=rows).map(|row| stored.partition_point(|i| *i < row * columns) as u32);
    let sparse = Sparse { columns: stored.iter().map(|i| (i % columns) as u32).collect(), rows: starts.collect() };
    let values: Vec<u8> = stored.iter().flat_map(|i| entries[*i].to_le_bytes()).collect();
    let sparse = Tensor { shape, stored: Stored::F64, bytes: Arc::new(values), sparse: Some(Arc::new(sparse)) };
    let (dense, sparse) = (Numbers::Floats(dense), Numbers::Floats(sparse));
    [Matrix::new(&dense, arithmetic), Matrix::keeping(&dense, arithmetic, 0), Matrix::new(&sparse, arithmetic)]
}

#[test]
fn matrices_have_the_same_numbers_wherever_they_are() {
    let mut random = Random(5);
    let (mut fitting, mut overflowing, mut long) = (0, 0, 0);
    for round in 0..20_000 {
        let arithmetic = ARITHMETICS[round % 3];
        let (rows, columns) = (1 + random.below(4), 1 + random.below(40));
        let scale = [-1070, -150, -30, 0, 30, 126, 127, 1000][random.below(8)];
        let entries: Vec<f64> = (0..rows * columns).map(|_| number(&mut random, scale, 20)).collect();
        if entries.iter().any(|x| !x.is_finite()) {
            continue;
        }
        let [Some(here), Some(there), Some(sparse)] = three(arithmetic, rows, &entries) else {
            assert!(three(arithmetic, rows, &entries).iter().all(Option::is_none), "only some overflow");
            overflowing += 1;
            continue;
        };
        fitting += 1;
        for matrix in [&there, &sparse] {
            assert_eq!(matrix.rows(), rows);
            assert!((0..rows * columns).all(|i| matrix.at(i) == here.at(i)));
            assert!((0..rows).all(|row| matrix.weights(row).eq(here.weights(row))));
        }
        // Long sums in fixed point.
        let x = |c: usize| Ball { m: (1 << 40) + c as i64, r: 3, e: -40 };
        let Some(fixed) = Fixed::new(arithmetic, (0..columns).map(|c| (c, x(c), x(c)))) else { continue };
        let total = |matrix: &Matrix| {
            let terms = || matrix.weights(0).map(|(c, w)| Term::weighted(w, x(c)));
            matrix.sum(arithmetic, 0, (Some(&fixed), Ball::ZERO), terms, &[Term::addend(x(0))])
        };
        assert_eq!(total(&there), total(&here));
        assert_eq!(total(&sparse), total(&here));
        long += 1;
    }
    assert!(fitting > 10_000 && overflowing > 100 && long > 300, "{fitting}, {overflowing}, {long}");
}

#[test]
fn sums_that_are_formed_once_are_the_same() {
    let mut random = Random(6);
    let (mut same, mut asked) = (0, 0);
    for round in 0..60_000 {
        let arithmetic = ARITHMETICS[round % 3];
        let (scale, spread) = ([-1070, -520, -60, 0, 20, 500][random.below(6)], [0, 8, 60, 400][random.below(4)]);
        let mut term = |exact: bool| {
            let ball = Ball::exact(dyadic(number(&mut random, scale, spread)));
            let r = if exact || ball.is_zero() { 0 } else { 1_u64 << random.below(20) };
            let (m, e) = (ball.m << 8, ball.e - 8);
            let ball = if r == 0 { ball } else { Ball { m, r, e } };
            let weight = dyadic(number(&mut random, 0, spread / 4));
            if random.below(4) == 0 || weight.is_zero() { Term::addend(ball) } else { Term::weighted(weight, ball) }
        };
        let points: Vec<Term> = (0..=round % 30).map(|_| term(true)).collect();
        let others: Vec<Term> = (0..round % 4).map(|i| term(i == 2)).collect();
        let Some(known) = Points::new(points.iter().copied()) else { continue };
        match known.and(arithmetic, &others) {
            Together::Found(found) => {
                assert_eq!(found, sum(arithmetic, points.iter().chain(&others).copied()));
                same += 1;
            }
            Together::Ask => asked += 1,
        }
    }
    assert!(same > 10_000 && asked > 1000, "{same} the same, {asked} had to be asked");
    assert!(Points::new(std::iter::once(Term::addend(Ball { m: 5, r: 1, e: 0 }))).is_none());
}
