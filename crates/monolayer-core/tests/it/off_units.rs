//! Units that the tables call off must not be on by the rule for one unit, which is much sharper.

use monolayer_core::model::{Attention, Dtype, FeedForward, Layer, Mask, Model, Numbers, Tensor};
use monolayer_core::rules::ball::Ball;
use monolayer_core::rules::judge::{Inputs, Vectors};
use monolayer_core::rules::network::Network;
use monolayer_core::rules::off_units::OffUnits;
use monolayer_core::rules::sum::Arithmetic;
use monolayer_core::{Dyadic, Format, Stored};

use crate::common::Random;

const UNITS: usize = 12;

/// A number of the format around 2^scale, over so many binades; often short, sometimes zero.
fn number(random: &mut Random, format: Format, scale: i32, spread: usize) -> f64 {
    if random.below(6) == 0 {
        return 0.0;
    }
    let bits = 1 + random.below(format.bits() as usize) as u32;
    let m = (1 << (bits - 1)) + random.below(1 << (bits - 1)) as i64;
    let e = scale - bits as i32 + random.below(spread + 1) as i32 - (spread / 2) as i32;
    let m = if random.below(2) == 0 { m } else { -m };
    let x = m as f64 * 2_f64.powi(e);
    if format == Format::F32 { f64::from(x as f32) } else { x }
}

fn numbers(shape: &[usize], format: Format, entries: &[f64]) -> Numbers {
    let (stored, bytes) = match format {
        Format::F32 => (Stored::F32, entries.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect()),
        Format::F64 => (Stored::F64, entries.iter().flat_map(|x| x.to_le_bytes()).collect()),
    };
    Numbers::Floats(Tensor::dense(shape.to_vec(), stored, bytes))
}

fn dyadic(x: f64) -> Dyadic {
    Dyadic::from_bits(Format::F64, x.to_bits()).unwrap()
}

/// A model of one layer: its weights from `draw`, at scales of words, of weights, of biases and of values.
fn one_layer(
    (d, format): (usize, Format),
    places: &[f64],
    [x, w, b, v]: [i32; 4],
    draw: &mut impl FnMut(usize, i32) -> Vec<f64>,
) -> Model {
    let tensor = |shape: &[usize], entries: &[f64]| numbers(shape, format, entries);
    let part = FeedForward {
        hidden: UNITS,
        w1: tensor(&[UNITS, d], &draw(UNITS * d, w)),
        b1: tensor(&[UNITS], &draw(UNITS, b + w)),
        w2: tensor(&[d, UNITS], &vec![0.0; UNITS * d]),
        b2: tensor(&[d], &vec![0.0; d]),
    };
    let zero = tensor(&[1, 2, d], &vec![0.0; 2 * d]);
    let attention = Attention {
        hard: false,
        heads: 1,
        size: 2,
        mask: Mask::None,
        w_q: zero.clone(),
        w_k: zero.clone(),
        w_v: zero,
        w_o: tensor(&[1, d, 2], &draw(2 * d, x - v)),
    };
    Model {
        d,
        dtype: Dtype::Float(format),
        max_length: Some(2),
        vocabulary: None,
        start: None,
        embedding: None,
        positions: Some(tensor(&[2, d], places)),
        pre_feed_forward: None,
        layers: vec![Layer { attention: Some(attention), feed_forward: Some(part) }],
        head: None,
    }
}

/// One block, its words and places: how many units were off by the tables, and on by the rule.
fn look(random: &mut Random, arithmetic: Arithmetic, format: Format) -> Option<(usize, usize)> {
    let d = 1 + random.below(4);
    let spread = [0, 4, 30, 60][random.below(4)];
    let scale = |random: &mut Random| random.below(40) as i32 - 20;
    let (x, w, b, v) = (scale(random), scale(random), scale(random), scale(random));
    let mut draw = |n: usize, scale: i32| (0..n).map(|_| number(random, format, scale, spread)).collect::<Vec<f64>>();
    let (words, places, values) = (draw(3 * d, x), draw(2 * d, x - 3), draw(4, v));
    let model = one_layer((d, format), &places, [x, w, b, v], &mut draw);
    let network = Network::new(&model, arithmetic)?;
    let vectors: Vec<Vec<Dyadic>> = words.chunks(d).map(|x| x.iter().map(|x| dyadic(*x)).collect()).collect();
    let inputs = Inputs { vectors: Vectors::Given(&vectors), ids: &[0, 1, 2, 0], offsets: &[0, 2, 4], start: None };
    let z: Vec<Vec<Ball>> = values.chunks(2).map(|z| z.iter().map(|z| Ball::exact(dyadic(*z))).collect()).collect();
    let range: Vec<Ball> = (0..2).map(|k| z[0][k].span(z[1][k])).collect();
    let off_units = OffUnits::new(&network, &inputs, &range, 1)?;
    let anywhere = off_units.anywhere(&range);
    let (block, mut off, mut on) = (&network.blocks[0], 0, 0);
    for (vector, place) in vectors.iter().flat_map(|word| (0..2).map(move |place| (word, place))) {
        // The word wherever it may be, and this token alone.
        let word = off_units.among(vector, &anywhere)?;
        let screen = off_units.screen(&range, 1);
        let among = |z: &mut dyn Iterator<Item = &[Ball]>| {
            screen.among(&[off_units.item(vector, std::iter::once((place, z)))]).pop()?.pop()?
        };
        let wherever = among(&mut z.iter().map(Vec::as_slice))?;
        let Some(x) = network.input(vector, place) else { continue };
        let x: Vec<Ball> = x.into_iter().map(Ball::exact).collect();
        for z in &z {
            let (token, open) = (block.skip(arithmetic, &x, z)?, off_units.open(&word, place, z));
            let numbers = |open: Vec<(usize, usize)>| open.into_iter().map(|(_, j)| j).collect::<Vec<usize>>();
            let alone = numbers(screen.open(&among(&mut std::iter::once(z.as_slice()))?, place, z));
            // What short numbers leave open is decided as without them.
            assert_eq!((&alone, &numbers(screen.open(&wherever, place, z))), (&open, &open));
            for j in 0..UNITS {
                let (is_off, unit) = (!alone.contains(&j), block.unit(arithmetic, &token, j)?);
                off += usize::from(is_off);
                on += usize::from(unit.before.is_positive());
                assert!(!(is_off && unit.before.is_positive()), "unit {j} is called off and gives {:?}", unit.before);
            }
        }
    }
    Some((off, on))
}

#[test]
fn no_unit_that_is_on_is_called_off() {
    let mut random = Random(21);
    let (mut off, mut on) = (0, 0);
    for round in 0..60_000 {
        let format = if round % 2 == 0 { Format::F32 } else { Format::F64 };
        let arithmetic = if round % 5 == 0 { Arithmetic::Real } else { Arithmetic::Float { format, exp_ulp: 4 } };
        if let Some((more, others)) = look(&mut random, arithmetic, format) {
            off += more;
            on += others;
        }
    }
    assert!(off > 100_000 && on > 100_000, "{off} off, {on} on");
}
