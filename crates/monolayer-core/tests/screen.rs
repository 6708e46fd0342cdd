//! Units that the tables call off must not be on by the rule for one unit, which is much sharper.

use monolayer_core::model::Mask;
use monolayer_core::rules::ball::Ball;
use monolayer_core::rules::forward::{Block, skip};
use monolayer_core::rules::prepare::{Attention, FeedForward};
use monolayer_core::rules::screen::Screen;
use monolayer_core::rules::sum::Arithmetic;
use monolayer_core::{Dyadic, Format};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ x >> 31) % n
    }

    /// A number of the format around 2^scale, over so many binades; often short, sometimes zero.
    fn number(&mut self, format: Format, scale: i32, spread: u64) -> Dyadic {
        if self.below(6) == 0 {
            return Dyadic::ZERO;
        }
        let bits = 1 + self.below(format.bits() as u64) as u32;
        let m = (1 << (bits - 1)) + self.below(1 << (bits - 1)) as i64;
        let e = scale - bits as i32 + self.below(spread + 1) as i32 - (spread / 2) as i32;
        let m = if self.below(2) == 0 { m } else { -m };
        Dyadic::new(m, e).nearest(format).unwrap_or(Dyadic::ZERO)
    }
}

fn largest(rows: &[Vec<Dyadic>], c: usize) -> Ball {
    let sizes = rows.iter().map(|x| Ball::exact(x[c]).size());
    sizes.reduce(|a, b| if a.plus(b.minus()).is_negative() { b } else { a }).unwrap_or(Ball::ZERO)
}

/// One block, its words and places: how many units were off by the tables, and on by the rule.
fn look(random: &mut Random, arithmetic: Arithmetic, format: Format) -> Option<(usize, usize)> {
    let d = 1 + random.below(4) as usize;
    let spread = [0, 4, 30, 60][random.below(4) as usize];
    let scale = |random: &mut Random| random.below(40) as i32 - 20;
    let (x, w, b, v) = (scale(random), scale(random), scale(random), scale(random));
    let mut row = |n: usize, scale: i32| (0..n).map(|_| random.number(format, scale, spread)).collect::<Vec<_>>();
    let words: Vec<Vec<Dyadic>> = (0..3).map(|_| row(d, x)).collect();
    let places: Vec<Vec<Dyadic>> = (0..2).map(|_| row(d, x - 3)).collect();
    let sparse = |row: Vec<Dyadic>| row.into_iter().enumerate().filter(|(_, w)| !w.is_zero()).collect::<Vec<_>>();
    let w1: Vec<_> = (0..12).map(|_| sparse(row(d, w))).collect();
    let b1 = row(12, b + w);
    let part = FeedForward { w1, b1, w2: vec![Dyadic::ZERO; 12 * d], b2: vec![Dyadic::ZERO; d] };
    let w_o: Vec<_> = (0..d).map(|_| sparse(row(2, x - v))).collect();
    let values: Vec<Dyadic> = row(4, v);
    let attention =
        Attention { hard: false, heads: 1, size: 2, mask: Mask::None, w_q: vec![], w_k: vec![], w_v: vec![], w_o };
    let block = Block::new(Some(&attention), Some(&part));
    let z: Vec<Vec<Ball>> = values.chunks(2).map(|z| z.iter().map(|z| Ball::exact(*z)).collect()).collect();
    let hull: Vec<Ball> = (0..2).map(|k| z[0][k].hull(z[1][k])).collect();
    let (mut sizes, mut both) = (Vec::new(), Vec::new());
    for c in 0..d {
        let (word, place) = (largest(&words, c), largest(&places, c));
        both.push(!word.is_zero() && !place.is_zero());
        sizes.push(word.plus(place).scaled(i32::from(both[c])).size());
    }
    let screen = Screen::new(arithmetic, &block, &sizes, &both, &hull)?;
    let (mut off, mut on) = (0, 0);
    for (word, place) in words.iter().flat_map(|word| places.iter().map(move |place| (word, place))) {
        let (of_word, of_place) = (screen.entries(word), screen.entries(place));
        let sum = |(x, y): (&Dyadic, &Dyadic)| match arithmetic {
            Arithmetic::Real => x.plus_exactly(*y),
            Arithmetic::Float { format, .. } => x.plus(*y, format),
        };
        let Some(x) = word.iter().zip(place).map(sum).collect::<Option<Vec<_>>>() else { continue };
        let x: Vec<Ball> = x.into_iter().map(Ball::exact).collect();
        for z in &z {
            let token = skip(arithmetic, Some(&attention), &x, z)?;
            for j in 0..12 {
                let is_off = screen.is_off(j, of_word[j], of_place[j], screen.of_heads(block.gains(j), z, j));
                let unit = block.unit(arithmetic, &token, j)?;
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
