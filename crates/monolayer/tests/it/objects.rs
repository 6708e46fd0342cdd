//! The fast forward pass against the plain definitions, and the plain definitions over intervals and balls.

use monolayer::arithmetic::kernels::{self, Real};
use monolayer::arithmetic::matrix::Matrix;
use monolayer::arithmetic::{Ball, Interval, Number};
use monolayer::model::forward;
use monolayer::paper::attention::{Attention, AttentionKind, Mask};
use monolayer::paper::transformer::{Layer, Transformer};
use proptest::prelude::*;

/// The fast pass on sequences packed one after another.
fn fast<R: Real>(transformer: &Transformer<R>, sequences: &[Matrix<f64>]) -> Vec<Vec<f64>> {
    let mut offsets = vec![0];
    for z in sequences {
        offsets.push(offsets[offsets.len() - 1] + z.rows);
    }
    let mut h: Vec<R> = sequences.iter().flat_map(|z| &z.data).map(|&x| R::from_f64(x)).collect();
    forward::transform(transformer, &offsets, &mut h);
    let d = transformer.d;
    offsets.windows(2).map(|w| h[w[0] * d..w[1] * d].iter().map(|x| x.to_f64()).collect()).collect()
}

fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// `max|a - b| / max|b|`.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest(b)
}

/// Whether every hardmax score that is not the largest is below it by more than `gap`: then rounding changes no choice.
fn clear_choices(transformer: &Transformer<f64>, z: &Matrix<f64>, gap: f64) -> bool {
    let mut z = transformer.pre_feed_forward.as_ref().map_or(z.clone(), |f| f.apply(z));
    for layer in &transformer.layers {
        if layer.attention.as_ref().is_some_and(|a| a.kind == AttentionKind::Hardmax && !clear_layer(a, &z, gap)) {
            return false;
        }
        z = layer.apply(&z).unwrap();
    }
    true
}

fn clear_layer(attention: &Attention<f64>, z: &Matrix<f64>, gap: f64) -> bool {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let project = |w: &Matrix<f64>| Matrix::from_fn(z.rows, w.rows, |i, j| dot(z.row(i), w.row(j)));
    attention.heads.iter().all(|head| {
        let (q, k) = (project(&head.w_q), project(&head.w_k));
        (0..z.rows).all(|query| {
            let keys = (0..z.rows).filter(|&key| attention.mask.visible(query, key));
            let scores: Vec<f64> = keys.map(|key| dot(k.row(key), q.row(query))).collect();
            let top = scores.iter().copied().fold(f64::MIN, f64::max);
            scores.iter().all(|&s| s == top || s < top - gap)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn fast_equals_plain(case in crate::random::case(300)) {
        let (transformer, sequences) = case.draw();
        prop_assume!(sequences.iter().all(|z| clear_choices(&transformer, z, 1e-4)));
        let single = fast(&crate::random::map(&transformer, |&x| x as f32), &sequences);
        let double = fast(&transformer, &sequences);
        for (i, z) in sequences.iter().enumerate() {
            let plain = transformer.apply(z).unwrap().data;
            // Outputs that nearly cancel have lost their digits already.
            prop_assume!(largest(&plain) > 0.1 * largest(&z.data));
            let (e32, e64) = (difference(&single[i], &plain), difference(&double[i], &plain));
            prop_assert!(e32 <= 1e-5, "f32, sequence {i}: {e32:.1e}");
            prop_assert!(e64 <= 1e-12, "f64, sequence {i}: {e64:.1e}");
        }
    }

    #[test]
    fn intervals_enclose_the_exact_output(case in crate::random::case(12)) {
        // Every layer multiplies widths by its sizes: after two layers six digits or more are left.
        let (mut transformer, sequences) = case.draw();
        transformer.layers.truncate(2);
        prop_assume!(sequences.iter().all(|z| clear_choices(&transformer, z, 1e-9)));
        let rigorous = crate::random::map(&transformer, |&x| Interval::point(x));
        let precise = crate::random::map(&transformer, |&x| Ball::new(x, 160));
        for z in &sequences {
            let plain = transformer.apply(z).unwrap();
            let largest = largest(&plain.data).max(largest(&z.data));
            // Repeated tokens are computed alike, but enclosures with a width are not certainly equal: hardmax then stops.
            let (Ok(enclosure), Ok(exact)) = (
                rigorous.apply(&z.map(|&x| Interval::point(x))),
                precise.apply(&z.map(|&x| Ball::new(x, 160))),
            ) else {
                prop_assert!(case.layers.iter().any(|l| matches!(l.attention, Some((AttentionKind::Hardmax, ..)))));
                continue;
            };
            for ((x, e), b) in plain.data.iter().zip(&enclosure.data).zip(&exact.data) {
                // 160 bits leave of the exact output no more than an interval between two neighboring floats.
                let b = b.to_interval();
                prop_assert!(b.width() <= 1e-15 * largest && (x - b.center()).abs() <= 1e-12 * largest, "{x} {b:?}");
                prop_assert!(e.lo() <= b.hi() && b.lo() <= e.hi(), "{b:?} is not in {e:?}");
                prop_assert!(e.width() <= 1e-6 * largest, "{x} {e:?}");
            }
        }
    }

    #[test]
    fn portable_loops_equal_vectorized_ones(scores in prop::collection::vec(-40.0_f64..10.0, 1..400)) {
        fn both<R: Real>(scores: &[f64], tolerance: f64) -> Result<(), TestCaseError> {
            let scores: Vec<R> = scores.iter().map(|&x| R::from_f64(x)).collect();
            let run = |soften: bool| {
                let mut weights = scores.clone();
                let total = if soften { kernels::soften(&mut weights) } else { kernels::harden(&mut weights) };
                (kernels::dot(&weights, &scores) / total).to_f64()
            };
            for soften in [true, false] {
                let (portable, wide) = (run(soften), kernels::vectorized(|| run(soften)));
                prop_assert!((portable - wide).abs() <= tolerance * portable.abs().max(1.0), "{portable} {wide}");
            }
            Ok(())
        }
        both::<f32>(&scores, 1e-5)?;
        both::<f64>(&scores, 1e-14)?;
    }
}

/// Integer scores are exact in any order of summation, so the ties of eq. 5 are too: between different tokens, in both
/// precisions, for every enclosure.
#[test]
fn hardmax_ties_are_exact() {
    let z = Matrix::new(5, 2, vec![1.0, 2.0, 3.0, 0.0, 1.0, 2.0, -1.0, 2.0, 2.0, 1.0]);
    let row = |x: f64, y: f64| Matrix::new(1, 2, vec![x, y]);
    // Scores are (x + y)(query): tokens 1, 2, 3 and 5 tie.
    let head = monolayer::paper::attention::AttentionHead {
        w_q: row(1.0, 1.0),
        w_k: row(1.0, 1.0),
        w_v: row(1.0, 0.0),
        w_o: Matrix::new(2, 1, vec![4.0, -8.0]),
    };
    let attention = Attention { kind: AttentionKind::Hardmax, mask: Mask::None, heads: vec![head] };
    let transformer = Transformer {
        d: 2,
        pre_feed_forward: None,
        layers: vec![Layer { attention: Some(attention), feed_forward: None }],
    };
    // The mean of the tied first coordinates is (1 + 3 + 1 + 2) / 4.
    let expected: Vec<f64> = z.iter_rows().flat_map(|t| [t[0] + 7.0, t[1] - 14.0]).collect();
    assert_eq!(transformer.apply(&z).unwrap().data, expected);
    assert_eq!(fast(&transformer, std::slice::from_ref(&z))[0], expected);
    assert_eq!(fast(&crate::random::map(&transformer, |&x| x as f32), std::slice::from_ref(&z))[0], expected);
    let rigorous = crate::random::map(&transformer, |&x| Interval::point(x));
    let enclosure = rigorous.apply(&z.map(|&x| Interval::point(x))).unwrap().data;
    assert!(enclosure.iter().zip(&expected).all(|(e, &x)| e.certainly_equal(&Interval::point(x))), "{enclosure:?}");
}
