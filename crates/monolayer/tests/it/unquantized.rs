//! Theorems A, B and F: no attention layer without a quantizer comes near their functions.

use dashu_int::IBig;
use dashu_ratio::RBig;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::arithmetic::{Ball, Number as _};
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};
use monolayer::paper::unquantized::{
    Collision, Instance, Twin, collision, collisions, draw_layer, mean_squared_distance, scores_and_values, target,
    twin, unseen_direction,
};

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

fn hundredths(x: i64) -> RBig {
    RBig::from(x) / RBig::from(100)
}

/// The numbers of docs/unquantized.md, exactly.
#[test]
fn the_instance_of_theorem_b() {
    let instance = Instance::new();
    assert!(instance.scales());
    assert_eq!(instance.values(), [hundredths(145), hundredths(125)]);
    assert_eq!((instance.gap(), instance.clearance()), (hundredths(45), hundredths(25)));
    assert_eq!(instance.bound(), Some(RBig::ONE / RBig::from(8)));
    let constant = Matrix::from_fn(4, 3, |_, c| hundredths(100 + 30 * c as i64));
    assert_eq!(instance.target(&constant, 2), constant.row(2));
    // Other numbers: not the first sequence scaled; a function that an average is.
    let elsewhere = Instance { second: [hundredths(150), hundredths(180)], ..Instance::new() };
    assert!(!elsewhere.scales() && elsewhere.bound().is_none());
    let mean = Instance { dip: RBig::ZERO, ..Instance::new() };
    assert_eq!((mean.gap(), mean.bound()), (RBig::ZERO, Some(RBig::ZERO)));
}

/// The layer itself maps the two sequences to the same vector: evaluated as (2) is, in balls.
fn collides(layer: &Attention<RBig>, found: &Twin) -> bool {
    let bits = 3000;
    let exact = |x: &RBig| -> Ball {
        let whole = |x: &IBig| {
            let digits = x.to_string();
            let number = |part: &str| Ball::new(part.parse::<f64>().unwrap(), bits);
            let (sign, digits) = digits.strip_prefix('-').map_or((1.0, &*digits), |rest| (-1.0, rest));
            let sum = digits.chars().fold(number("0"), |sum, c| sum * number("10") + number(&c.to_string()));
            sum * Ball::new(sign, bits)
        };
        whole(x.numerator()) / whole(&IBig::from(x.denominator().clone()))
    };
    let heads = layer.heads.iter().map(|head| AttentionHead {
        w_q: head.w_q.map(exact),
        w_k: head.w_k.map(exact),
        w_v: head.w_v.map(exact),
        w_o: head.w_o.map(exact),
    });
    let balls = Attention { kind: layer.kind, mask: layer.mask.clone(), heads: heads.collect() };
    let last = found.sequence.rows - 1;
    let constant = Matrix::from_fn(last + 1, found.constant.len(), |_, c| found.constant[c].clone());
    let [a, b] = [found.sequence.map(exact), constant].map(|z| balls.apply(&z).unwrap());
    a.row(last).iter().zip(b.row(last)).all(|(a, b)| {
        let apart = (a.clone() - b).abs();
        // They are equal: 0 is in the ball, which is small against the numbers.
        !apart.is_certainly_positive() && apart.to_interval().hi() <= 1e-9 * (1.0 + a.abs().to_interval().hi())
    })
}

#[test]
fn every_layer_has_a_twin_in_theorem_b() {
    let instance = Instance::new();
    let least = 0.25 - 2_f64.powi(-20);
    let (mut singular, mut on_the_way) = (0, 0);
    for number in 0..200 {
        let layer = draw_layer(11, number);
        let length = 2 + number as usize % 4;
        let found = twin(&instance, &layer, length).unwrap();
        assert!(found.inside(), "{number}: {found:?}");
        assert!(found.distance() >= if found.singular { 1.0 } else { least }, "{number}: {}", found.distance());
        assert!(instance.same_scores(&layer, length), "{number}");
        singular += usize::from(found.singular);
        on_the_way +=
            usize::from(!found.singular && !instance.sequences(found.sequence.cols, length).contains(&found.sequence));
        if number < 60 {
            assert!(collides(&layer, &found), "{number}");
        }
    }
    assert!(singular > 40 && on_the_way > 20, "{singular} {on_the_way}");
    // Two sequences that are not one scaled by the other have other scores.
    let elsewhere = Instance { second: [hundredths(150), hundredths(180)], ..Instance::new() };
    assert!(!elsewhere.same_scores(&one_head(2, |r, c| i64::from(r == c)), 3));
    // A layer of zeros leaves x, and 1/4 is what it gets: no more is promised.
    let zeros = twin(&instance, &one_head(2, |_, _| 0), 3).unwrap();
    assert!(zeros.distance() < 0.2501 && zeros.inside() && !zeros.singular, "{zeros:?}");
    assert!(twin(&instance, &one_head(2, |_, _| 0), 1).is_err());
}

/// Theorem F by hand, and on random layers: a direction is there exactly if the rows do not span the space.
#[test]
fn what_keys_and_values_do_not_span_is_unseen() {
    let whole = |x: i64| RBig::from(x);
    let line =
        |v: [i64; 3]| Attention::rank_one(Mask::None, &v.map(whole), &[1, 1, 1].map(whole), &[1, 0, 0].map(whole));
    // Orthogonal to (1, 2, 0), with largest entry 1.
    assert_eq!(unseen_direction(&line([1, 2, 0])), Some(vec![whole(-1), hundredths(50), whole(0)]));
    assert_eq!(unseen_direction(&one_head(3, |_, _| 0)), None);
    let mut found = [0, 0];
    for number in 0..300 {
        let layer = draw_layer(13, number);
        let rows: usize = layer.heads.iter().map(|head| head.w_k.rows + head.w_v.rows).sum();
        let d = layer.heads[0].w_k.cols;
        let Some(c) = unseen_direction(&layer) else {
            found[0] += 1;
            assert!(rows >= d, "{number}");
            continue;
        };
        found[1] += 1;
        let z = Matrix::from_fn(3, d, |r, t| hundredths(7 * r as i64 - 5 * t as i64));
        let moved = Matrix::from_fn(3, d, |r, t| if r == 1 { z.row(1)[t].clone() } else { &z.row(r)[t] + &c[t] });
        assert_eq!(scores_and_values(&layer, &z, 1), scores_and_values(&layer, &moved, 1), "{number}");
        let around = Matrix::from_fn(3, d, |r, t| if r == 1 { RBig::ZERO } else { c[t].clone() });
        assert!(mean_squared_distance(&around, 1) >= RBig::ONE, "{number}");
    }
    assert!(found[0] > 100 && found[1] > 20, "{found:?}");
    // The function by hand: the token (1, 1) among (1, 0) and (0, 1).
    let z = Matrix::new(3, 2, [1, 0, 1, 1, 0, 1].map(whole).to_vec());
    assert_eq!(mean_squared_distance(&z, 1), RBig::ONE);
}
