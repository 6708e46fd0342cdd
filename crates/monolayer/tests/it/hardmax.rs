//! Theorem 1, in exact arithmetic.

use std::collections::HashSet;

use dashu_ratio::RBig;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::arithmetic::{Interval, Number as _};
use monolayer::model::exact::map_attention;
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};
use monolayer::paper::hardmax::{self, HardmaxLayer, draws, line, mean_pooling, printed_pair, softmax_gap, witness};
use proptest::prelude::*;

fn integers(numbers: &[i64]) -> Vec<RBig> {
    numbers.iter().map(|&x| RBig::from(x)).collect()
}

/// A third of whole numbers, so that denominators matter.
fn thirds(rows: usize, cols: usize, numbers: &mut impl Iterator<Item = i64>) -> Matrix<RBig> {
    Matrix::from_fn(rows, cols, |_, _| RBig::from(numbers.next().unwrap()) / RBig::from(3))
}

/// Several heads of rational weights, small enough for ties, and a direction.
fn attention() -> impl Strategy<Value = (Attention<RBig>, Vec<RBig>)> {
    (1..5_usize, 1..4_usize, 1..5_usize, any::<bool>()).prop_flat_map(|(d, s, heads, causal)| {
        let weights = prop::collection::vec(-3..=3_i64, heads * 4 * s * d);
        (weights, prop::collection::vec(-3..=3_i64, d)).prop_map(move |(weights, mut v)| {
            let numbers = &mut weights.into_iter();
            let mut head = || AttentionHead {
                w_q: thirds(s, d, numbers),
                w_k: thirds(s, d, numbers),
                w_v: thirds(s, d, numbers),
                w_o: thirds(d, s, numbers),
            };
            v[0] = if v[0] == 0 { 1 } else { v[0] };
            let mask = if causal { Mask::Causal } else { Mask::None };
            let heads = (0..heads).map(|_| head()).collect();
            (Attention { kind: AttentionKind::Hardmax, mask, heads }, integers(&v))
        })
    })
}

proptest! {
    /// Intervals around three times the weights: scores are exact integers there, and the output encloses the exact one.
    #[test]
    fn exact_hardmax_is_equation_5((attention, v) in attention(), a in prop::collection::vec(-4..=4_i64, 1..6)) {
        let tripled = map_attention(&attention, |x| x * RBig::from(3));
        let number = |x: &RBig| Interval::from_f64(x.to_f64().value());
        let z = line(&a, &v);
        let exact = HardmaxLayer::new(&tripled).apply(&z);
        let enclosed = map_attention(&tripled, number).apply(&z.map(number)).unwrap();
        for (exact, enclosed) in exact.data.iter().zip(&enclosed.data) {
            prop_assert!(enclosed.width() < 1e-9 && (enclosed.center() - exact.to_f64().value()).abs() < 1e-9);
        }
        // A factor of 3 in W_Q and W_K changes no choice; in W_V and W_O it is one of 9 in what attention adds.
        let thirds = HardmaxLayer::new(&attention).apply(&z);
        for ((x, third), tripled) in z.data.iter().zip(&thirds.data).zip(&exact.data) {
            prop_assert_eq!((third - x) * RBig::from(9), tripled - x);
        }
    }

    #[test]
    fn no_layer_tells_the_pair_apart((attention, v) in attention(), length in 4..9_usize) {
        let found = witness(&HardmaxLayer::new(&attention), &v, length).unwrap();
        prop_assert!(found.blind(), "{found:?}");
        let places = if attention.mask == Mask::Causal { 1 } else { length - 2 };
        prop_assert_eq!((found.shared.len(), found.sequences[0].len()), (places, length));
        prop_assert!(softmax_gap(&v, length).unwrap().gap.is_certainly_positive());
    }

    /// n = 3 with a zero token, which sees only the mean: {0, 1, 4} and {0, 2, 3} are the same to it.
    #[test]
    fn a_zero_token_sees_the_mean((mut attention, v) in attention()) {
        attention.mask = Mask::None;
        let layer = HardmaxLayer::new(&attention);
        let output = |a: &[i64]| layer.apply(&line(a, &v)).row(0).to_vec();
        prop_assert_eq!(output(&[0, 1, 4]), output(&[0, 2, 3]));
    }
}

#[test]
fn two_thousand_random_layers() {
    let tally = draws(2000, 4, 1).unwrap();
    assert_eq!((tally.layers, tally.blind), (2000, 2000));
    assert_eq!(tally.largest + tally.smallest + tally.mean, tally.heads);
    assert!(tally.largest > 2000 && tally.smallest > 2000 && tally.mean > 2000, "{tally:?}");
    // Only layers of a mean or more tell the printed pair apart, and not all of them have one.
    assert!((1000..2000).contains(&tally.separate_printed_pair), "{tally:?}");
    assert_eq!(draws(100, 11, 2).unwrap().blind, 100);
}

#[test]
fn the_printed_pair_is_told_apart() {
    let found = printed_pair(&HardmaxLayer::new(&mean_pooling(2)), &integers(&[1, 0])).unwrap();
    assert!(!found.blind());
    let thirds = |x: i64| vec![vec![RBig::from(x) / RBig::from(3), RBig::ZERO]];
    // 4 + 7/3 and 4 + 8/3.
    assert_eq!(found.outputs, [thirds(19), thirds(20)]);
    // The other pair is safe from it.
    assert!(witness(&HardmaxLayer::new(&mean_pooling(2)), &integers(&[1, 0]), 4).unwrap().blind());
}

/// d = 1 is embedded in the first coordinate: `head(query, into)` reads it and writes to coordinate `into`.
fn head(query: i64, into: usize) -> AttentionHead<RBig> {
    let unit = |c: usize, x: i64| Matrix::from_fn(1, 4, move |_, j| RBig::from(if j == c { x } else { 0 }));
    let w_o = Matrix::new(4, 1, unit(into, 1).data);
    AttentionHead { w_q: unit(0, query), w_k: unit(0, 1), w_v: unit(0, 1), w_o }
}

/// The outputs of a layer at all tokens of all sets of up to `most` of the numbers 1 to 6, and how many there are.
fn outputs(heads: Vec<AttentionHead<RBig>>, sizes: std::ops::RangeInclusive<u32>) -> (usize, HashSet<Vec<RBig>>) {
    let layer = HardmaxLayer::new(&Attention { kind: AttentionKind::Hardmax, mask: Mask::None, heads });
    let sets = (1..1_u32 << 6).filter(|set| sizes.contains(&set.count_ones()));
    let rows = sets.flat_map(|set| {
        let tokens: Vec<i64> = (1..=6).filter(|a| set >> (a - 1) & 1 == 1).collect();
        layer.apply(&line(&tokens, &integers(&[1, 0, 0, 0]))).iter_rows().map(<[_]>::to_vec).collect::<Vec<_>>()
    });
    let rows: Vec<Vec<RBig>> = rows.collect();
    (rows.len(), rows.into_iter().collect())
}

#[test]
fn three_heads_are_a_contextual_mapping_of_three_tokens() {
    let (contexts, different) = outputs(vec![head(0, 1), head(1, 2), head(-1, 3)], 3..=3);
    assert_eq!((contexts, different.len()), (60, 60));
    // And no more of four: {1, 2, 5, 6} and {1, 3, 4, 6} are among the sets.
    let (contexts, different) = outputs(vec![head(0, 1), head(1, 2), head(-1, 3)], 4..=4);
    assert!(different.len() < contexts);
    // Without the mean, none of three.
    let (contexts, different) = outputs(vec![head(1, 2), head(-1, 3)], 3..=3);
    assert!(different.len() < contexts);
}

#[test]
fn mean_pooling_is_a_contextual_mapping_of_two_tokens() {
    let (contexts, different) = outputs(vec![head(0, 1)], 1..=2);
    assert_eq!((contexts, different.len()), (36, 36));
}

#[test]
fn what_is_no_witness() {
    let layer = HardmaxLayer::new(&mean_pooling(1));
    let error = witness(&layer, &integers(&[1]), 3).unwrap_err().to_string();
    assert!(error.contains("does not hold for 3 tokens"), "{error}");
    assert!(witness(&layer, &integers(&[0]), 4).unwrap_err().to_string().contains("zero"));
    assert!(hardmax::draws(1, 3, 0).is_err() && softmax_gap(&integers(&[0]), 4).is_err());
}

/// Directions of any size, and long sequences.
#[test]
fn softmax_tells_the_pair_apart() {
    for (v, length) in [(1e-200, 4), (1e200, 4), (-0.3, 200)] {
        let gap = softmax_gap(&[RBig::ZERO, monolayer::arithmetic::rational(v)], length).unwrap();
        assert!(gap.coordinate == 1 && gap.gap.is_certainly_positive(), "{v} {gap:?}");
        assert!(gap.gap.to_interval().lo() > 0.1 * f64::abs(v), "{v} {gap:?}");
    }
}
