//! Theorem A: no attention layer without a quantizer comes near its function.

use dashu_ratio::RBig;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};
use monolayer::paper::unquantized::{Collision, collision, collisions, draw_layer, target};

fn one_head(d: usize, entry: impl Fn(usize, usize) -> i64) -> Attention<RBig> {
    let identity = Matrix::from_fn(d, d, |r, c| RBig::from(i64::from(r == c)));
    let w_o = Matrix::from_fn(d, d, |r, c| RBig::from(entry(r, c)));
    let head = AttentionHead { w_q: identity.clone(), w_k: identity.clone(), w_v: identity, w_o };
    Attention { kind: AttentionKind::Softmax, mask: Mask::None, heads: vec![head] }
}

#[test]
fn random_layers_of_every_kind_collide() {
    for (length, seed) in [(2, 1), (3, 2), (6, 3)] {
        let tally = collisions(400, length, seed, || {}).unwrap();
        assert_eq!((tally.layers, tally.colliding), (400, 400));
        assert!(tally.singular > 100 && tally.singular < 250, "{}", tally.singular);
        assert!(tally.distance >= RBig::ONE);
    }
}

/// By hand: d = 1, n = 2, M = 1. The tokens 0 of (-1, 0) and -1/4 of (-1/4, -1/4) both become -1/2; f is 1 and -1/4.
#[test]
fn one_number() {
    let found = collision(&one_head(1, |_, _| 1), 2).unwrap();
    let quarter = RBig::from_parts(1.into(), 4_u8.into());
    assert_eq!(found.sequences[0].data, [-RBig::ONE, RBig::ZERO]);
    assert_eq!(found.sequences[1].data, [-&quarter, -&quarter]);
    assert_eq!(found.outputs[0], [-&quarter - &quarter]);
    assert_eq!(found.distance(), RBig::ONE + quarter);
    assert!(found.holds() && !found.singular);
    let flat = collision(&one_head(3, |r, c| -i64::from(r == c)), 4).unwrap();
    assert!(flat.singular && flat.holds() && flat.distance() == RBig::from(2));
}

/// What is compared is what the layer gives: a wrong pair is seen.
#[test]
fn a_wrong_pair_does_not_hold() {
    let layer = one_head(2, |r, c| i64::from(r == c));
    let found = collision(&layer, 3).unwrap();
    assert!(found.holds());
    let [a, b] = &found.sequences;
    let nearer = b.map(|x| x * RBig::from_parts(9.into(), 10_u8.into()));
    assert!(!Collision::new(&layer, [a.clone(), nearer], false).unwrap().holds());
    assert!(!Collision::new(&layer, [a.clone(), a.clone()], false).unwrap().holds());
    let outside = [a.map(|x| x * RBig::from(2)), b.map(|x| x * RBig::from(2))];
    assert!(!Collision::new(&layer, outside, false).unwrap().holds());
    // A last token with unequal scores has an output that is no rational number.
    let crooked = Matrix::from_fn(3, 2, |r, _| RBig::from(i64::from(r == 2)));
    let error = Collision::new(&layer, [crooked, b.clone()], false).unwrap_err().to_string();
    assert!(error.contains("scores of the last token differ"), "{error}");
    assert!(collision(&layer, 1).is_err());
}

#[test]
fn the_function_is_equivariant_and_fixes_constant_sequences() {
    let layer = draw_layer(5, 7);
    let z = collision(&layer, 4).unwrap().sequences[0].clone();
    let swapped = Matrix::from_fn(z.rows, z.cols, |r, c| z.row(if r == 0 { 3 } else { r % 3 })[c].clone());
    assert_eq!(target(&z, 3), target(&swapped, 0));
    let constant = Matrix::from_fn(3, 2, |_, c| RBig::from(c as i64));
    assert_eq!(target(&constant, 1), [RBig::ZERO, RBig::ONE]);
}
