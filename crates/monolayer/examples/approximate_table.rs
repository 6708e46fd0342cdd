//! Functions, sizes and bounds: what is certified, what is measured, what it takes, and how the error falls with the grid.
//!
//!     cargo run --release -p monolayer --example approximate_table [MOST_IDS]
//!
//! Ends with an error if a measured distance is above a certified bound, or a bound above what was asked for.

use monolayer::approximate::{Approximation, Approximator, Reached};
use monolayer::distance::{Measured, distance};
use monolayer::expression::{Expression, Program};
use monolayer::function::Function as _;

/// Functions of one coordinate; with more, the same in every coordinate. Each varies by 0.05 at least over the cube.
const FUNCTIONS: [&str; 11] = [
    "sin(2*pi*x#)*mean(x#)",
    "2*x#*mean(x#)",
    "2*(x# - mean(x#))",
    "max(x#) - min(x#)",
    "3*x#*var(x#) + x#",
    "exp(-10*((x# - 0.5)^2 + var(x#)))",
    "sin(2*pi*x# + pi*mean(x#))",
    "sum(x#*exp(8*own#*x#))/sum(exp(8*own#*x#))",
    "tanh(6*(x# - mean(x#)))",
    "abs(2*x# - max(x#))",
    "step(x# - 0.5)*(1 + mean(x#))",
];
const SIZES: [(usize, usize); 3] = [(1, 2), (1, 3), (2, 2)];
const EPSILONS: [f64; 3] = [0.3, 0.1, 0.03];
const POINTS: usize = 8192;

fn main() -> monolayer::Result<()> {
    let most_ids = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(40_000);
    let approximator = Approximator { most_ids, effort: 16, ..Approximator::default() };
    let mut broken = 0;
    for formula in FUNCTIONS {
        for (d, n) in SIZES {
            let text: Vec<String> = (1..=d).map(|k| formula.replace('#', &k.to_string())).collect();
            let f = Expression::parse(&text.join("; "), d)?.at_length(n)?;
            println!("{}   d = {d}, n = {n}, variance {:.3}", text.join("; "), variance(&f));
            for epsilon in EPSILONS {
                broken += usize::from(!row(&approximator, &f, epsilon)?);
            }
            println!("  error falls like grid^-{:.2}", slope(&approximator, &f)?);
        }
    }
    assert_eq!(broken, 0, "bounds that do not hold");
    Ok(())
}

/// One line of the table; whether measured <= bound <= epsilon.
fn row(approximator: &Approximator, f: &Program, epsilon: f64) -> monolayer::Result<bool> {
    match approximator.reach(f, epsilon, &|_| ())? {
        Reached::Met(g) => {
            let measured = measure(f, &g);
            let holds =
                measured.distance - 3.0 * measured.error <= g.bound.inside && g.bound.inside <= epsilon && g.floats;
            println!(
                "  epsilon {epsilon:<5} bound {:.4}  measured {:.4} +- {:.0e}  grid {:?}  ids {}  hidden {}  {}",
                g.bound.inside,
                measured.distance,
                measured.error,
                monolayer::approximate::parts(&g.grid),
                g.order.len(),
                g.units().1,
                if holds { "holds" } else { "BROKEN" }
            );
            Ok(holds)
        }
        Reached::Short { needed, .. } => {
            println!("  epsilon {epsilon:<5} skipped: it would take {needed:?}");
            Ok(true)
        }
    }
}

fn measure(f: &Program, g: &Approximation) -> Measured {
    distance(&|x, y| f.values(x, y), &|x, y| g.evaluate(x, y), f.dim() * f.length(), 2.0, POINTS, 1)
}

/// The variance of the outputs over the cube, per entry.
fn variance(f: &Program) -> f64 {
    let entries = f.dim() * f.length();
    let zero = |_: &[f64], y: &mut [f64]| y.fill(0.0);
    let norm =
        |p: f64| distance(&|x, y| f.values(x, y), &zero, entries, p, POINTS, 2).distance.powf(p) / entries as f64;
    let lift = 8.0;
    // E |f + c| = E f + c where f > -c.
    let mean = distance(
        &|x, y| {
            f.values(x, y);
            y.iter_mut().for_each(|y| *y += lift);
        },
        &zero,
        entries,
        1.0,
        POINTS,
        2,
    )
    .distance
        / entries as f64
        - lift;
    norm(2.0) - mean * mean
}

/// The exponent of the grid in the bound, fitted to equal parts.
fn slope(approximator: &Approximator, f: &Program) -> monolayer::Result<f64> {
    let grids = if f.dim() * f.length() > 3 { [3, 4, 6, 9] } else { [4, 6, 9, 14] };
    let mut points = Vec::new();
    for grid in grids {
        points.push(((grid as f64).ln(), approximator.compile(f, grid, &|_| ())?.bound.inside.ln()));
    }
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    let covariance = mean(&|p| (p.0 - x) * (p.1 - y));
    Ok(-covariance / mean(&|p| (p.0 - x) * (p.0 - x)))
}
