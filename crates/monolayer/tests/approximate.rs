//! Proposition 1, rebuilt: what a compiled function gives in cells, between them, outside the cube, and how far it is from f.

use monolayer::approximate::{Approximation, Approximator, Reached};
use monolayer::cells::Cell;
use monolayer::distance::distance;
use monolayer::expression::{Expression, Program};
use monolayer::function::{Function, Lipschitz};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

fn program(text: &str, dim: usize, length: usize) -> Program {
    Expression::parse(text, dim).unwrap().at_length(length).unwrap()
}

/// Functions with d, n and a grid: equivariant ones of every kind of codes, and one that uses places.
const CASES: [(&str, usize, usize, usize); 10] = [
    ("x1*mean(x1)", 1, 3, 1),
    ("x1*mean(x2); x2 - max(x1)", 2, 3, 1),
    ("x1^2", 1, 1, 5),
    ("x1*mean(x1)", 1, 2, 9),
    ("sin(5*x1) + max(x1)", 1, 3, 11),
    ("x1 - 3*var(x1)", 1, 4, 6),
    ("x1*mean(x2); x2 - max(x1)", 2, 2, 5),
    ("x1*mean(x2); x2 - max(x1)", 2, 3, 3),
    ("place*x1 - mean(x1)", 1, 3, 5),
    ("x2*place; mean(x1*place)", 2, 2, 3),
];

fn compile(f: &Program, grid: usize) -> Approximation {
    Approximator { effort: 4, ..Approximator::default() }.compile(f, grid, &|_| ()).unwrap()
}

/// A point of each token's cell, somewhere off the ramps.
fn inside(g: &Approximation, cell: &Cell, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let token = |&t: &u32| g.grid.token_box(t);
    let free =
        |rng: &mut ChaCha8Rng, lo: f64, hi: f64| lo + g.ramp + rng.random_range(0.0..1.0) * (hi - lo - 2.0 * g.ramp);
    cell.tokens.iter().flat_map(token).map(|side| free(rng, side.lo(), side.hi())).collect()
}

#[test]
fn every_cell_gets_its_level_exactly() {
    for (text, d, n, grid) in CASES {
        let g = compile(&program(text, d, n), grid);
        assert!(g.floats && g.bound.rounding == 0.0, "{text}");
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut out = vec![0.0; d * n];
        for i in 0..g.order.len() as u64 {
            let cell = g.cells.cell(i);
            g.evaluate(&inside(&g, &cell, &mut rng), &mut out);
            let level = &g.levels[i as usize * d..(i as usize + 1) * d];
            assert_eq!(&out[cell.token * d..(cell.token + 1) * d], level, "{text}, cell {cell:?}");
        }
    }
}

#[test]
fn levels_are_near_the_function() {
    for (text, d, n, grid) in CASES {
        let f = program(text, d, n);
        let g = compile(&f, grid);
        let (mut y, mut z) = (vec![0.0; d * n], vec![0.0; d * n]);
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for _ in 0..500 {
            let x: Vec<f64> = (0..d * n).map(|_| rng.random_range(0.0..1.0)).collect();
            f.values(&x, &mut y);
            g.evaluate(&x, &mut z);
            // Slopes of these functions are below 6, and halves of cells are away from their middles.
            assert!(y.iter().zip(&z).all(|(y, z)| (y - z).abs() < 8.0 / grid as f64), "{text} at {x:?}: {y:?} {z:?}");
        }
    }
}

#[test]
fn permuted_sequences_have_permuted_outputs() {
    for (text, d, n, grid) in CASES.iter().filter(|case| !case.0.contains("place")) {
        let g = compile(&program(text, *d, *n), *grid);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (mut y, mut z) = (vec![0.0; d * n], vec![0.0; d * n]);
        for _ in 0..300 {
            let x: Vec<f64> = (0..d * n).map(|_| rng.random_range(0.0..1.0)).collect();
            let mut turned = x.clone();
            turned.rotate_left(*d);
            g.evaluate(&x, &mut y);
            g.evaluate(&turned, &mut z);
            y.rotate_left(*d);
            assert_eq!(y, z, "{text} at {x:?}");
        }
    }
}

/// One coordinate more than two ramps outside makes all outputs 0, whatever the other tokens are.
#[test]
fn outside_the_cube_the_output_is_zero() {
    for (text, d, n, grid) in CASES.iter().filter(|case| !case.0.contains("place")) {
        let g = compile(&program(text, *d, *n), *grid);
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut out = vec![0.0; d * n];
        for _ in 0..1000 {
            let mut x: Vec<f64> = (0..d * n).map(|_| rng.random_range(-0.2..1.2)).collect();
            let far = (2.0 * g.ramp).ln() + rng.random_range(0.0..1.0) * (1e6_f64 / (2.0 * g.ramp)).ln();
            let far = far.exp().max(2.0 * g.ramp);
            x[rng.random_range(0..d * n)] = if rng.random_range(0..2) == 0 { -far } else { 1.0 + far };
            g.evaluate(&x, &mut out);
            assert!(out.iter().all(|y| y.abs() <= 1e-6), "{text} at {x:?}: {out:?}");
        }
    }
}

#[test]
fn the_bound_holds_and_is_met() {
    let cases =
        [("x1*mean(x1)", 1, 2), ("sin(2*pi*x1)*mean(x1)", 1, 2), ("max(x1) - x1", 1, 3), ("x1*x2; mean(x1)", 2, 2)];
    for (text, d, n) in cases {
        let f = program(text, d, n);
        for epsilon in [0.3, 0.1] {
            let approximator = Approximator { most_ids: 30_000, effort: 16, ..Approximator::default() };
            let Reached::Met(g) = approximator.reach(&f, epsilon, &|_| ()).unwrap() else { panic!("{text}") };
            assert!(g.floats && g.bound.inside <= epsilon && g.bound.inside <= g.bound.everywhere, "{:?}", g.bound);
            let measured = distance(&|x, y| f.values(x, y), &|x, y| g.evaluate(x, y), d * n, 2.0, 4096, 7);
            assert!(measured.distance - 4.0 * measured.error <= g.bound.inside, "{text}: {measured:?} {:?}", g.bound);
            // A bound far from the truth would hold, too.
            assert!(measured.distance >= 0.5 * g.bound.inside, "{text}: {measured:?} {:?}", g.bound);
        }
    }
}

/// The error falls like 1 / D for a Lipschitz function.
#[test]
fn the_error_falls_with_the_grid() {
    let f = program("sin(3*x1) + mean(x1)^2", 1, 2);
    let bound = |grid| compile(&f, grid).bound.inside;
    let slope = (bound(8) / bound(32)).ln() / 4.0_f64.ln();
    assert!((slope - 1.0).abs() < 0.1, "{slope}");
}

#[test]
fn closures_come_with_a_constant() {
    let f = Lipschitz {
        dim: 1,
        length: 2,
        equivariant: true,
        constant: 1.0,
        f: |x: &[f64], y: &mut [f64]| {
            let most = x[0].max(x[1]);
            y.fill(most);
        },
    };
    let g = Approximator::default().compile(&f, 16, &|_| ()).unwrap();
    assert!(g.vouched.as_deref().is_some_and(|text| text.contains("constant 1")), "{:?}", g.vouched);
    let dir = tempfile::tempdir().unwrap();
    g.save(&dir.path().join("m"), 2.0, "max(x1), a closure", |_| Ok(())).unwrap();
    let certificate = std::fs::read_to_string(dir.path().join("m/certificate.json")).unwrap();
    assert!(certificate.contains("Lipschitz with constant 1") && certificate.contains("\"distance\""), "{certificate}");
}

#[test]
fn what_is_too_much_is_refused_with_numbers() {
    let f = program("x1*mean(x1)", 1, 3);
    let approximator = Approximator { most_ids: 1000, effort: 1, ..Approximator::default() };
    let error = approximator.compile(&f, 50, &|_| ()).unwrap_err().to_string();
    assert!(error.contains("63750 ids"), "{error}");
    let Reached::Short { needed, tried } = approximator.reach(&f, 0.001, &|_| ()).unwrap() else { panic!() };
    let needed = needed.unwrap();
    assert!(needed.grid[0] > 100 && needed.ids.unwrap() > 1_000_000 && !tried.is_empty(), "{needed:?}");
    assert!(approximator.compile(&f, 0, &|_| ()).is_err() && approximator.reach(&f, 0.0, &|_| ()).is_err());
}

/// A million ids, proved in double precision; run with `--ignored --release`.
#[test]
#[ignore = "takes a minute without optimization"]
fn a_million_ids() {
    let f = program("x1*mean(x1)", 1, 2);
    let g = Approximator { effort: 1, ..Approximator::default() }.compile(&f, 1000, &|_| ()).unwrap();
    assert!(g.order.len() == 1_000_000 && g.floats && g.bound.rounding == 0.0);
}
