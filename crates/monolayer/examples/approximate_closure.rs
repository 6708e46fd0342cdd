//! A closure into one rank-1 attention layer, with a certified bound on the error:
//! cargo run --release -p monolayer --example approximate_closure

use monolayer::{Approximator, Lipschitz, Result};

pub(crate) fn main() -> Result<()> {
    // Each token of a sequence of two becomes its distance from the mean. The constant 1 is what the author vouches for.
    let distance = |x: &[f64], y: &mut [f64]| {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        y.iter_mut().zip(x).for_each(|(y, x)| *y = (x - mean).abs());
    };
    let name = "distance from the mean".to_owned();
    let f = Lipschitz { name, dim: 1, length: 2, equivariant: true, constant: 1.0, f: distance };
    let approximation = Approximator::new().p(2.0).compile(&f, 16)?;
    println!("{} ids, d_2 at most {:.4}", approximation.ids.len(), approximation.certified());

    let mut outputs = [0.0; 2];
    approximation.evaluate(&[0.2, 0.8], &mut outputs);
    println!("f(0.2, 0.8) is (0.3, 0.3); the model says {outputs:.3?}");
    assert!(approximation.certified() < 0.1 && outputs.iter().all(|y| (y - 0.3).abs() < 0.1));
    Ok(())
}
