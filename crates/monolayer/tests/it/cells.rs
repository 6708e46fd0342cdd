//! Cells of sequences, their levels, and certified errors against measured ones.

use monolayer::approximate::cells::{Cell, Cells, Grid, GridSearch, Levels, levels, search_grid};
use monolayer::approximate::expression::{Expression, Program};
use monolayer::approximate::function::{Function, Lipschitz};
use monolayer::approximate::measured_distance::{Measured, distance};
use proptest::prelude::*;

fn program(text: &str, dim: usize, length: usize) -> Program {
    Expression::parse(text, dim).unwrap_or_else(|error| panic!("{error}")).at_length(length).unwrap()
}

/// The staircase: every token has the level of its cell.
fn staircase(grid: &Grid, found: &Levels, sequence: &[f64], outputs: &mut [f64]) {
    let d = grid.edges.len();
    let cells: Vec<u32> = sequence.chunks(d).map(|token| grid.token_cell(token)).collect();
    for token in 0..cells.len() {
        let cell = if found.cells.symmetric {
            let mut tokens = cells.clone();
            tokens.swap(0, token);
            tokens[1..].sort_unstable();
            Cell { token: 0, tokens }
        } else {
            Cell { token, tokens: cells.clone() }
        };
        let index = found.cells.index(&cell) as usize;
        outputs[token * d..(token + 1) * d].copy_from_slice(&found.levels[index * d..(index + 1) * d]);
    }
}

fn measured(f: &dyn Function, grid: &Grid, found: &Levels, p: f64) -> Measured {
    let g = |x: &[f64], y: &mut [f64]| staircase(grid, found, x, y);
    distance(&|x: &[f64], y: &mut [f64]| f.values(x, y), &g, f.dim() * f.length(), p, 20_000, 7)
}

/// Checks that the certified error holds and is at most `slack` times the measured one.
fn check(f: &dyn Function, grid: &Grid, p: f64, slack: f64, name: &str) -> f64 {
    let found = levels(f, grid, p, 64, &|_, _| ()).unwrap();
    let certified = found.error.powf(1.0 / p);
    let measured = measured(f, grid, &found, p);
    assert!(measured.distance - 5.0 * measured.error <= certified, "{name}: {certified} certified, {measured:?}");
    assert!(
        certified <= slack * (measured.distance + 5.0 * measured.error) + 1e-3,
        "{name}: {certified}, {measured:?}"
    );
    // The largest error of a cell bounds the error at its center.
    let mut outputs = vec![0.0; f.dim() * f.length()];
    for index in (0..found.cells.count().unwrap()).step_by(37) {
        let cell = found.cells.cell(index);
        let center: Vec<f64> = grid.sequence_box(&cell).iter().map(|x| x.center()).collect();
        f.values(&center, &mut outputs);
        for k in 0..f.dim() {
            let (value, at) = (outputs[cell.token * f.dim() + k], index as usize * f.dim() + k);
            assert!((value - found.levels[at]).abs() <= found.sup[at] + 1e-12, "{name}");
            assert!(found.range[k].contains(value), "{name}");
        }
    }
    certified
}

proptest! {
    #[test]
    fn cells_are_numbered(m in 1_u64..9, n in 1_usize..5, symmetric: bool) {
        let cells = Cells { token_cells: m, length: n, symmetric };
        let count = cells.count().unwrap();
        let mut boxes = 0.0;
        for index in 0..count {
            let cell = cells.cell(index);
            prop_assert_eq!(cells.index(&cell), index);
            prop_assert!(cell.tokens.len() == n && cell.tokens.iter().all(|c| u64::from(*c) < m));
            boxes += cells.multiplicity(&cell);
        }
        // Once per place, or once for the one place that stands for all.
        prop_assert_eq!(boxes, (m.pow(n as u32) * if symmetric { 1 } else { n as u64 }) as f64);
    }
}

#[test]
fn counts_that_do_not_fit() {
    let cells = |token_cells, length| Cells { token_cells, length, symmetric: true };
    assert_eq!(cells(16, 3).count(), Some(2176));
    assert_eq!(cells(36, 2).count(), Some(1296));
    assert_eq!(cells(1 << 31, 8).count(), None);
    let large = cells(1 << 20, 3);
    let last = large.count().unwrap() - 1;
    assert_eq!(large.cell(last).tokens, [(1 << 20) - 1; 3]);
    assert!(levels(&program("x1", 1, 3), &Grid::uniform(1, 100_000), 2.0, 1, &|_, _| ()).is_err());
    assert!(levels(&program("x1", 1, 3), &Grid::uniform(1, 2), 0.5, 1, &|_, _| ()).is_err());
}

#[test]
fn tokens_find_their_cells() {
    let grid = Grid { edges: vec![vec![0.0, 0.25, 1.0], vec![0.0, 0.5, 0.75, 1.0]] };
    assert_eq!(grid.token_cells(), 6);
    for (token, cell) in [([0.0, 0.0], 0), ([0.25, 0.6], 4), ([1.0, 1.0], 5), ([0.2, 0.75], 2)] {
        assert_eq!(grid.token_cell(&token), cell);
        assert!(grid.token_box(cell).iter().zip(token).all(|(side, x)| side.contains(x)));
    }
}

#[test]
fn certified_errors_hold_and_are_tight() {
    for (text, slack) in [
        ("centering", 1.02),
        ("softmax", 1.05),
        ("attention", 1.2),
        ("rank", 1.1),
        ("nearest", 1.05),
        ("gated", 1.1),
        ("xor", 1.1),
        ("bump", 1.1),
        ("wave", 1.05),
        ("maximum", 1.05),
        ("sin(2*pi*x1)*max(x1)", 1.05),
        ("sqrt(abs(x1 - mean(x1)))", 1.2),
        ("step(x1 - 0.3)*mean(x1)", 1.05),
        ("x1/(0.1 + sum(x1))", 1.1),
        ("abs(x1 - 0.37)^0.3", 1.05),
    ] {
        for (length, parts) in [(2, 20), (3, 8)] {
            check(&program(text, 1, length), &Grid::uniform(1, parts), 2.0, slack, text);
        }
    }
    check(&program("x1*mean(x2); x2 - max(x1)", 2, 2), &Grid::uniform(2, 5), 2.0, 1.05, "two coordinates");
    check(&program("wave", 1, 1), &Grid::uniform(1, 50), 2.0, 1.02, "one token");
}

#[test]
fn other_norms() {
    for (p, slack) in [(1.0, 1.2), (1.5, 1.15), (3.0, 1.2), (4.0, 1.15), (6.0, 1.5)] {
        for text in ["wave", "rank", "maximum"] {
            check(&program(text, 1, 2), &Grid::uniform(1, 16), p, slack, &format!("{text}, p = {p}"));
        }
    }
}

#[test]
fn jumps_along_edges_cost_next_to_nothing() {
    let certified = check(&program("xor", 1, 2), &Grid::uniform(1, 16), 2.0, 1.0, "xor");
    assert!(certified < 1e-3, "{certified}");
    // The multiple of 2^-31 nearest to 0.3.
    let grid = Grid { edges: vec![vec![0.0, 644_245_094.0 / f64::from(1_u32 << 31), 1.0]] };
    let certified = check(&program("step(x1 - 0.3)", 1, 2), &grid, 2.0, 1.0, "step");
    assert!(certified < 1e-3, "{certified}");
}

#[test]
fn errors_fall_as_the_grid_gets_finer() {
    let error = |text: &str, parts: usize| {
        levels(&program(text, 1, 2), &Grid::uniform(1, parts), 2.0, 64, &|_, _| ()).unwrap().error.sqrt()
    };
    // Like 1/D for a Lipschitz function, like D^(-1/2) for one that jumps off the grid.
    let smooth = (error("wave", 8) / error("wave", 64)).log2() / 3.0;
    assert!((smooth - 1.0).abs() < 0.05, "{smooth}");
    let jumping = (error("rank", 8) / error("rank", 64)).log2() / 3.0;
    assert!((jumping - 0.5).abs() < 0.05, "{jumping}");
}

#[test]
fn a_closure_with_a_lipschitz_constant() {
    let f = |x: &[f64], y: &mut [f64]| {
        for (token, output) in y.iter_mut().enumerate() {
            *output = (3.0 * x[token]).sin() * x.iter().sum::<f64>() / 2.0;
        }
    };
    let f = Lipschitz { name: "a closure".to_owned(), dim: 1, length: 2, equivariant: true, constant: 4.0, f };
    assert!(f.assumption().unwrap().contains("constant 4"));
    // Of the function no more is known than values and the constant, which is above its slopes.
    check(&f, &Grid::uniform(1, 10), 2.0, 2.0, "closure");
    let places = |x: &[f64], y: &mut [f64]| {
        y[0] = x[0] - x[1];
        y[1] = x[0] * x[1];
    };
    let places =
        Lipschitz { name: "a closure".to_owned(), dim: 1, length: 2, equivariant: false, constant: 2.0, f: places };
    check(&places, &Grid::uniform(1, 10), 2.0, 2.0, "a closure that is not equivariant");
    check(&program("x1*place - sum(place*x1)/4", 1, 2), &Grid::uniform(1, 10), 2.0, 1.02, "places");
}

#[test]
fn plans_meet_their_targets() {
    for (text, dim, length) in [
        ("centering", 1, 2),
        ("rank", 1, 2),
        ("bump", 1, 3),
        ("xor", 1, 3),
        ("x1; 0*x2", 2, 2),
        ("step(x1 - 0.37)", 1, 2),
    ] {
        let f = program(text, dim, length);
        let GridSearch::Found { grid, levels: found } = search_grid(&f, 2.0, 0.1, 50_000, 32, &|_, _| ()).unwrap()
        else {
            panic!("{text}: too fine");
        };
        assert!(found.error.sqrt() <= 0.1, "{text}: {}", found.error.sqrt());
        let ends = |edges: &Vec<f64>| edges[0] == 0.0 && edges[edges.len() - 1] == 1.0;
        assert!(grid.edges.iter().all(|edges| ends(edges) && edges.is_sorted_by(|a, b| a < b)), "{grid:?}");
        let meets =
            |parts: &usize| levels(&f, &Grid::uniform(dim, *parts), 2.0, 32, &|_, _| ()).unwrap().error.sqrt() <= 0.1;
        let uniform = (1..200).find(meets).map_or(200, |parts| parts.pow(dim as u32)) as u64;
        assert!(grid.token_cells() <= uniform, "{text}: {} cells, {uniform} equal ones", grid.token_cells());
        if text.contains("0.37") {
            assert_eq!(grid.token_cells(), 2, "an edge at the jump");
        }
    }
    let GridSearch::TooFine { parts, ids, reached } =
        search_grid(&program("wave", 1, 3), 2.0, 0.003, 50_000, 8, &|_, _| ()).unwrap()
    else {
        panic!("fine enough");
    };
    // From the error at 16 parts, of the order of 1/D, about 16 * 0.158 / 0.003.
    assert!((600..1200).contains(&parts[0]), "{parts:?}");
    assert!(ids.unwrap() > 50_000 && reached.unwrap().0 > 0.003);
}

#[test]
fn distances_are_measured_with_their_error() {
    let f = |x: &[f64], y: &mut [f64]| y.copy_from_slice(x);
    let zero = |_: &[f64], y: &mut [f64]| y.fill(0.0);
    // The integral of x^2 is 1/3, for each of two entries.
    let measured = distance(&f, &zero, 2, 2.0, 10_000, 1);
    assert!((measured.distance - (2.0_f64 / 3.0).sqrt()).abs() < 5.0 * measured.error + 1e-9, "{measured:?}");
    assert!(measured.error > 0.0 && measured.error < 1e-4 && measured.points >= 9_000, "{measured:?}");
    assert_eq!(distance(&f, &f, 3, 1.0, 1000, 1).distance, 0.0);
    assert_eq!(measured, distance(&f, &zero, 2, 2.0, 10_000, 1));
}
