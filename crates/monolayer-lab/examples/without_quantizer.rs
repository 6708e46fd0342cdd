//! The open question of section 6: how far does one rank-1 layer get without the quantizer F1?
//!
//!     cargo run --release -p monolayer-lab --example without_quantizer [-- --conjecture]
//!
//! Beside each other, the distance d_2 of f from its mean (no model at all), from the compiled layer without quantizer, from the
//! best read-out of that layer whatever its size (the floor), and from a model with a quantizer and no more hidden units. Then the
//! functions of the conjecture in docs/unquantized.md: how much of their square is left.

use monolayer::Lipschitz;
use monolayer::approximate::Approximator;
use monolayer::approximate::expression::Expression;
use monolayer_lab::approximation_study::{Row, without_quantizer};
use std::f64::consts::TAU;

const FUNCTIONS: [&str; 9] = [
    "x# + mean(x#)",
    "sin(2*pi*x#)*mean(x#)",
    "2*(x# - mean(x#))",
    "1.5*(max(x#) - min(x#))",
    "exp(-10*((x# - 0.5)^2 + var(x#)))",
    "sin(2*pi*x# + pi*mean(x#))",
    "tanh(6*(x# - mean(x#)))",
    "abs(2*x# - max(x#))",
    "(1 - cos(pi*sum(step(x# - 0.5))))/2",
];
const HIDDEN: usize = 400;
const POINTS: usize = 16_384;

/// `f(Z)_k = prod_{j,t} cos(2 pi N z(j)_t) e_1` for several N: the part of its square that the best read-out leaves, beside the
/// conjectured limit `1 - 2^(-d(n-1))`.
fn conjecture() {
    println!("\nproduct of cosines: relative squared error, at least about (measured) | conjectured limit");
    for (d, n, most) in [(1, 2, 8), (1, 3, 4), (2, 2, 2)] {
        for waves in [1, 2, 4, 8].into_iter().filter(|&waves| waves <= most) {
            let product = move |x: &[f64], y: &mut [f64]| {
                let product: f64 = x.iter().map(|x| (TAU * f64::from(waves) * x).cos()).product();
                y.chunks_exact_mut(d).for_each(|y| {
                    y.fill(0.0);
                    y[0] = product;
                });
            };
            let constant = TAU * f64::from(waves) * (d * n) as f64;
            let f =
                Lipschitz { name: "a product".to_owned(), dim: d, length: n, equivariant: true, constant, f: product };
            let found = without_quantizer(&f, HIDDEN, POINTS, 0);
            // The square of f is 2^-dn on average, for each token.
            let square = n as f64 * 0.5_f64.powi((d * n) as i32);
            println!(
                "d = {d}, n = {n}, N = {waves}: {:.4} ({:.4}) | {}",
                found.floor.powi(2) / square,
                found.measured.distance.powi(2) / square,
                1.0 - 0.5_f64.powi((d * (n - 1)) as i32)
            );
        }
    }
}

fn main() -> monolayer::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("--conjecture") {
        conjecture();
        return Ok(());
    }
    println!(
        "d_2 from f, {HIDDEN} hidden units: mean | without quantizer (floor; kappa, beta) | with quantizer (bound)"
    );
    for formula in FUNCTIONS {
        for (d, n) in [(1, 2), (1, 3), (2, 2)] {
            let text: Vec<String> = (1..=d).map(|k| formula.replace('#', &k.to_string())).collect();
            let f = Expression::parse(&text.join("; "), d)?.at_length(n)?;
            let without = without_quantizer(&f, HIDDEN, POINTS, 0);
            let approximator = Approximator::new();
            let fits = |grid: &u64| approximator.ids(&f, *grid).is_some_and(|ids| 2 * ids < HIDDEN as u64);
            let grids = (1..=HIDDEN as u64).take_while(fits);
            let models = grids.map(|grid| approximator.compile(&f, grid as usize)).collect::<Result<Vec<_>, _>>()?;
            let best =
                models.iter().min_by(|a, b| a.certified().total_cmp(&b.certified())).expect("a grid of one part");
            let with = Row::new(&f, best, 2.0, POINTS);
            println!(
                "{:<72} d = {d}, n = {n}  {:.4} | {:.4} ({:.4}; {:.3}, {:.3}) | {:.4} ({})",
                text.join("; "),
                without.constant.distance,
                without.measured.distance,
                without.floor,
                without.kappa,
                without.beta,
                with.measured.distance,
                with.bound
            );
        }
    }
    conjecture();
    Ok(())
}
