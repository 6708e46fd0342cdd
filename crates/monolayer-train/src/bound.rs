//! The arithmetic that training cannot do without: the products of its linear maps, forward and back. What
//! `monolayer bench train` measures beside a run.

use monolayer::bench::fastest;
use rayon::prelude::*;

use crate::architecture::Architecture;
use crate::product::product;

/// The linear maps of a model, as (inputs, outputs).
fn linear_maps(a: &Architecture) -> Vec<(usize, usize)> {
    let (d, q) = (a.dim, a.hidden);
    let layer = [(d, a.projections()), (a.mixed(), d), (d, q), (q, d)];
    let mut maps: Vec<(usize, usize)> = std::iter::repeat_n(layer, a.layers).flatten().collect();
    maps.extend(a.labels.map(|labels| (d, labels)));
    maps.retain(|&(inputs, outputs)| inputs * outputs > 0);
    maps
}

/// Operations for a token, forward and back: each entry of a map is multiplied and added three times, for the output, for the
/// gradient of the input and for that of the entry.
pub fn operations(a: &Architecture) -> f64 {
    linear_maps(a).iter().map(|&(inputs, outputs)| 6.0 * (inputs * outputs) as f64).sum()
}

/// Seconds that the products take for a token on all threads, in f32 and in chunks of `chunk` tokens, with nothing between them.
pub fn seconds_per_token(a: &Architecture, chunk: usize) -> f64 {
    let maps = linear_maps(a);
    let widest = maps.iter().map(|&(inputs, outputs)| inputs.max(outputs)).max().unwrap_or(0);
    let largest = maps.iter().map(|&(inputs, outputs)| inputs * outputs).max().unwrap_or(0);
    let chunks = 16 * rayon::current_num_threads();
    let weights = vec![0.5_f32; largest];
    let seconds = fastest(|| {
        (0..chunks).into_par_iter().with_max_len(1).for_each_init(
            || (vec![0.5_f32; chunk * widest], vec![0.5; chunk * widest], vec![0.0; largest]),
            |(x, y, gradient), _| {
                for &(inputs, outputs) in &maps {
                    let (w, wide) = (&weights[..inputs * outputs], chunk * outputs);
                    product((chunk, outputs, inputs), (x, (inputs, 1)), (w, (1, inputs)), &mut y[..wide], false);
                    product((outputs, inputs, chunk), (&y[..wide], (1, outputs)), (x, (inputs, 1)), gradient, false);
                    let x = &mut x[..chunk * inputs];
                    product((chunk, inputs, outputs), (&y[..wide], (outputs, 1)), (w, (inputs, 1)), x, false);
                    // Numbers stay of one size, however many products follow each other.
                    x.fill(0.5);
                }
            },
        );
    });
    seconds / (chunks * chunk) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn operations_of_the_reference() {
        let a = Options::default().architecture(Some(100), None, Some(8), 50).unwrap();
        // d = 64, q = 256: two projections and one column for attention, two matrices, a head of 8 labels.
        assert_eq!(operations(&a), 6.0 * f64::from(2 * 64 + 64 + 2 * 64 * 256 + 64 * 8));
        assert!(seconds_per_token(&Architecture { dim: 8, hidden: 8, ..a }, 16) > 0.0);
    }
}
