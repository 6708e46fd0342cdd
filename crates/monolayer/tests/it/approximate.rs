//! Proposition 1, rebuilt: what a compiled function gives in cells, between them, outside the cube, and how far it is from f.

use monolayer::approximate::cells::Cell;
use monolayer::approximate::expression::{Expression, Program};
use monolayer::approximate::function::{Function, Lipschitz};
use monolayer::approximate::measured_distance::distance;
use monolayer::approximate::{Approximation, Approximator, SmallestGrid};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

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
    Approximator::new().effort(4).compile(f, grid).unwrap()
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
            let approximator = Approximator::new().most_ids(30_000).effort(16);
            let SmallestGrid::Met(g) = approximator.compile_within(&f, epsilon).unwrap() else { panic!("{text}") };
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
        name: "max(x1), a closure".to_owned(),
        dim: 1,
        length: 2,
        equivariant: true,
        constant: 1.0,
        f: |x: &[f64], y: &mut [f64]| {
            let most = x[0].max(x[1]);
            y.fill(most);
        },
    };
    let g = Approximator::new().compile(&f, 16).unwrap();
    assert!(g.vouched.as_deref().is_some_and(|text| text.contains("constant 1")), "{:?}", g.vouched);
    let dir = tempfile::tempdir().unwrap();
    g.save(dir.path().join("m")).unwrap();
    let certificate = std::fs::read_to_string(dir.path().join("m/certificate.json")).unwrap();
    assert!(certificate.contains("Lipschitz with constant 1") && certificate.contains("\"distance\""), "{certificate}");
}

#[test]
fn what_is_too_much_is_refused_with_numbers() {
    let f = program("x1*mean(x1)", 1, 3);
    let approximator = Approximator::new().most_ids(1000).effort(1);
    let error = approximator.compile(&f, 50).unwrap_err().to_string();
    assert!(error.contains("63750 ids, about 127501 hidden units"), "{error}");
    // Refused before anything of that size is made.
    let error = approximator.compile(&f, 1 << 60).unwrap_err().to_string();
    assert!(error.contains("more than 2^63 ids"), "{error}");
    let SmallestGrid::TooFine { needed, tried } = approximator.compile_within(&f, 0.001).unwrap() else { panic!() };
    let needed = needed.unwrap();
    assert!(needed.grid[0] > 100 && needed.ids.unwrap() > 1_000_000 && !tried.is_empty(), "{needed:?}");
    assert!(approximator.compile(&f, 0).is_err() && approximator.compile_within(&f, 0.0).is_err());
}

/// The outputs of many sequences at once, row-major.
fn outputs(g: &Approximation, mut sequences: Vec<f64>) -> Vec<f64> {
    let (n, d) = (g.cells.length, g.grid.edges.len());
    let offsets: Vec<usize> = (0..=sequences.len() / (n * d)).map(|i| i * n).collect();
    monolayer::model::forward::transform(&g.model.transformer, &offsets, &mut sequences);
    sequences
}

/// Functions, d, n and grids of about 10,000 and of more than 20,000 ids, with as many cells to look at.
const LARGE: [(&str, usize, usize, usize, usize); 6] = [
    ("x1*mean(x1)", 1, 2, 100, 10_000),
    ("sin(5*x1) + max(x1)", 1, 3, 26, 9126),
    ("x1*mean(x2); x2 - max(x1)", 2, 2, 10, 10_000),
    ("sin(5*x1)*mean(x1)", 1, 2, 150, 1000),
    ("x1*mean(x1) - min(x1)", 1, 3, 35, 1000),
    ("x1*mean(x2); abs(x1 - x2)", 2, 2, 13, 1000),
];

/// At every center of 10,000 cells g is the level; with 22,500 ids and more, too; permuted, and outside the cube.
#[test]
fn many_ids_hold_in_double_precision() {
    for (text, d, n, grid, look) in LARGE {
        let f = program(text, d, n);
        let g = Approximator::new().effort(1).compile(&f, grid).unwrap();
        assert!(g.floats && g.order.len() >= look && (look > 1000 || g.order.len() > 20_000), "{text}");
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let every = g.order.len() / look;
        let cells: Vec<Cell> = (0..look).map(|i| g.cells.cell((i * every) as u64)).collect();
        let center = |cell: &Cell| g.grid.sequence_box(cell).iter().map(|side| side.center()).collect::<Vec<f64>>();
        let out = outputs(&g, cells.iter().flat_map(center).collect());
        for (i, out) in out.chunks_exact(n * d).enumerate() {
            let level = &g.levels[i * every * d..(i * every + 1) * d];
            let near = out[..d].iter().zip(level).all(|(g, level)| (g - level).abs() <= 1e-6);
            assert!(near, "{text}, {:?}: {out:?} {level:?}", cells[i]);
        }
        let turned = |cell: &Cell| {
            let mut center = center(cell);
            center.rotate_left(d);
            center
        };
        let permuted = outputs(&g, cells[..500].iter().flat_map(turned).collect());
        for (out, permuted) in out.chunks_exact(n * d).zip(permuted.chunks_exact(n * d)) {
            let (head, tail) = out.split_at(d);
            assert!(permuted.iter().zip(tail.iter().chain(head)).all(|(a, b)| (a - b).abs() <= 1e-6), "{text}");
        }
        let mut outside = |_| {
            let mut x: Vec<f64> = (0..d * n).map(|_| rng.random_range(-0.2..1.2)).collect();
            let far = 2.0 * g.ramp * (rng.random_range(0.0..1.0) * (5e5 / g.ramp).ln()).exp();
            x[rng.random_range(0..d * n)] = if rng.random_range(0..2) == 0 { -far } else { 1.0 + far };
            x
        };
        let out = outputs(&g, (0..500).flat_map(&mut outside).collect());
        assert!(out.iter().all(|y| y.abs() <= 1e-6), "{text}");
    }
}

/// A million ids, proved in double precision.
#[test]
fn a_million_ids() {
    let f = program("x1*mean(x1)", 1, 2);
    let g = Approximator::new().effort(1).compile(&f, 1000).unwrap();
    assert!(g.order.len() == 1_000_000 && g.floats && g.bound.rounding == 0.0);
}
