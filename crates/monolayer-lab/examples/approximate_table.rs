//! Functions, sizes and bounds: what is certified, what is measured, what it takes, and how the error falls with the grid.
//!
//!     cargo run --release -p monolayer-lab --example approximate_table [MOST_IDS]
//!
//! Ends with an error if a measured distance is above a certified bound, or a bound above what was asked for.

use monolayer::approximate::expression::{Expression, Program};
use monolayer::approximate::function::Function as _;
use monolayer::approximate::{Approximator, Needed, SmallestGrid};
use monolayer_lab::approximation_study::{Row, series, slope, variance};

/// Functions of one coordinate; with more, the same in every coordinate. All but the last are Lipschitz.
const FUNCTIONS: [&str; 12] = [
    "sin(2*pi*x#)*mean(x#)",
    "2*x#*mean(x#)",
    "2*(x# - mean(x#))",
    "1.5*(max(x#) - min(x#))",
    "3*x#*var(x#) + x#",
    "exp(-10*((x# - 0.5)^2 + var(x#)))",
    "sin(2*pi*x# + pi*mean(x#))",
    "1.5*sum(x#*exp(8*own#*x#))/sum(exp(8*own#*x#))",
    "tanh(6*(x# - mean(x#)))",
    "abs(2*x# - max(x#))",
    "max(x#)*exp(-x#)*2",
    "step(x# - 0.5)*(1 + mean(x#))",
];
const SIZES: [(usize, usize); 3] = [(1, 2), (1, 3), (2, 2)];
const EPSILONS: [f64; 3] = [0.3, 0.1, 0.03];
/// The variance over the cube that every function has at least.
const VARIANCE: f64 = 0.05;

/// How many cases came out how.
#[derive(Default)]
struct Count {
    hold: usize,
    skipped: usize,
    broken: usize,
}

fn main() -> monolayer::Result<()> {
    let most_ids = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(40_000);
    let approximator = Approximator::new().most_ids(most_ids).effort(16);
    let mut count = Count::default();
    for formula in FUNCTIONS {
        for (d, n) in SIZES {
            let text: Vec<String> = (1..=d).map(|k| formula.replace('#', &k.to_string())).collect();
            let f = Expression::parse(&text.join("; "), d)?.at_length(n)?;
            let variance = variance(&f, 1 << 14);
            println!("{}   d = {d}, n = {n}, variance {variance:.3}", text.join("; "));
            assert!(variance >= VARIANCE, "{variance}");
            for epsilon in EPSILONS {
                row(&approximator, &f, epsilon, &mut count)?;
            }
            against_the_grid(&approximator, &f)?;
        }
    }
    println!("{} hold, {} skipped for ids, {} broken", count.hold, count.skipped, count.broken);
    assert_eq!(count.broken, 0, "bounds that do not hold");
    Ok(())
}

/// As many sequences as take seconds.
fn points(f: &Program, hidden: usize) -> usize {
    (4e9 / (4 * f.length() * f.dim() * hidden) as f64).clamp(1024.0, 65_536.0) as usize
}

/// One line of the table: measured <= bound <= epsilon, or what it would take.
fn row(approximator: &Approximator, f: &Program, epsilon: f64, count: &mut Count) -> monolayer::Result<()> {
    let g = match approximator.compile_within(f, epsilon)? {
        SmallestGrid::Met(g) => g,
        SmallestGrid::TooFine { needed, .. } => {
            count.skipped += 1;
            println!("  epsilon {epsilon:<5} skipped for ids: {}", needed.map_or("no grid does".to_owned(), told));
            return Ok(());
        }
    };
    let row = Row::new(f, &g, 2.0, points(f, g.size().hidden));
    let measured = row.measured;
    let verdict = if !(row.floats && row.bound <= epsilon) || measured.distance - 3.0 * measured.error > row.bound {
        count.broken += 1;
        "BROKEN"
    } else {
        count.hold += 1;
        if measured.distance <= row.bound { "holds" } else { "holds, within the measurement's error" }
    };
    println!(
        "  epsilon {epsilon:<5} bound {:<7} measured {:.5} +- {:.0e}  grid {}  ids {}  hidden {} (plain {})  {verdict}",
        row.bound,
        measured.distance,
        measured.error,
        by(&row.grid),
        row.size.ids,
        row.size.hidden,
        row.plain.hidden
    );
    Ok(())
}

/// What it would take.
fn told(needed: Needed) -> String {
    let Needed { grid, ids } = needed;
    let ids =
        ids.map_or("more than 2^63 ids".to_owned(), |ids| format!("{ids} ids, about {} hidden units", 2 * ids + 1));
    format!("it would take a grid of about {}: {ids}", by(&grid))
}

/// The parts of all coordinates.
fn by<T: ToString>(parts: &[T]) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ")
}

/// The error against equal parts, and the slopes fitted to it.
fn against_the_grid(approximator: &Approximator, f: &Program) -> monolayer::Result<()> {
    let grids: &[usize] = if f.dim() * f.length() > 3 { &[3, 4, 6, 8] } else { &[4, 6, 8, 12, 16] };
    let rows = series(approximator, f, grids, 8192)?;
    let fitted = |of: fn(&Row) -> f64| slope(&rows.iter().map(|row| (row.grid[0] as f64, of(row))).collect::<Vec<_>>());
    let errors: Vec<String> = rows
        .iter()
        .map(|row| format!("{}: {:.4} (plain {:.4})", row.grid[0], row.measured.distance, row.plain_measured.distance))
        .collect();
    println!(
        "  error against the grid  {}  slope {:.2}, of the bound {:.2}",
        errors.join("  "),
        fitted(|row| row.measured.distance),
        fitted(|row| row.bound)
    );
    Ok(())
}
