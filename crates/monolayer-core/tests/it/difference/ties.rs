//! Equal scores, and scores that rounding decides: what Rule 12 says of them must be so for every program.

use super::toy::{Program, Toy, dyadic, label, name};
use super::{Change, Verdict, check};
use monolayer_core::model::Mask;

/// A word whose value is 0 and one whose value is 4, the id, and coordinates that the head reads; scores of two labels.
fn toy(carried: [f64; 3], head: [[f64; 3]; 2], bias: [f64; 2]) -> Toy {
    let row = |code: [f64; 3], rest: [f64; 3]| [code, rest].concat();
    Toy {
        single: true,
        d: 6,
        labels: 2,
        hidden: 0,
        words: vec![row([1.0, 0.0, 0.0], carried), row([0.0, 1.0, 0.0], carried)],
        places: None,
        start: None,
        mask: Mask::None,
        attention: [vec![0.0; 6], vec![0.0; 6], row([0.0, 4.0, 0.0], [0.0; 3]), row([0.0, 0.0, 1.0], [0.0; 3])],
        w1: vec![],
        b1: vec![],
        w2: vec![],
        b2: vec![0.0; 6],
        head: head.map(|weights| row([0.0; 3], weights)).to_vec(),
        bias: bias.to_vec(),
    }
}

/// The toy with one unit: its weight on the id, its bias, and what it adds to the coordinates.
fn with(toy: &Toy, id: f64, bias: f64, adds: [f64; 3]) -> Toy {
    let mut toy = toy.clone();
    toy.add(vec![0.0, 0.0, id, 0.0, 0.0, 0.0], bias, [[0.0; 3], adds].concat());
    toy
}

/// Both words are named, for these ids and labels.
fn changes(id: (f64, f64), labels: (usize, usize)) -> Vec<Change> {
    let id = (dyadic(id.0), dyadic(id.1));
    let labels = (format!("L{}", labels.0), format!("L{}", labels.1));
    (0..2).map(|w| Change { word: name(w), place: None, id, labels: Some(labels.clone()) }).collect()
}

const EACH_ITS_OWN: [[f64; 3]; 2] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];

/// Where scores are equal the lower label is given, and that is known: a unit that makes them equal changes nothing.
#[test]
fn of_equal_scores_the_lower_label_wins() {
    // A unit of zeros, in whose place the other comes.
    let spare = |carried: [f64; 3]| with(&toy(carried, EACH_ITS_OWN, [0.0; 2]), 0.0, 0.0, [0.0; 3]);
    let old = spare([1.0, 0.0, 0.0]);
    let equal = with(&old, 0.0, 1.0, [0.0, 1.0, 0.0]);
    assert_eq!(check(&old, &equal, &changes((-1e30, 1e30), (0, 0)), Some(8)).verdict, Verdict::Right);
    // The other way round the label changes.
    let old = spare([0.0, 1.0, 0.0]);
    let equal = with(&old, 0.0, 1.0, [1.0, 0.0, 0.0]);
    assert_ne!(check(&old, &equal, &changes((-1e30, 1e30), (0, 0)), Some(8)).verdict, Verdict::Right);
    assert_eq!(check(&old, &equal, &changes((-1e30, 1e30), (1, 0)), Some(8)).verdict, Verdict::Right);
}

/// At id 0 both scores are 0, and label 0 is given; at every id above, label 1.
#[test]
fn the_end_of_an_interval_may_be_a_tie() {
    let none = toy([0.0; 3], EACH_ITS_OWN, [0.0; 2]);
    let old = with(&none, 1.0, 0.0, [0.0, 1.0, 0.0]);
    let new = with(&none, 0.0, 5.0, [0.0, 1.0, 0.0]);
    let least = f64::from(f32::from_bits(1));
    assert_eq!(check(&old, &new, &changes((-1e30, 0.0), (0, 1)), Some(8)).verdict, Verdict::Right);
    assert_ne!(check(&old, &new, &changes((-1e30, -least), (0, 1)), Some(8)).verdict, Verdict::Right);
}

/// The score of label 1 is 2^24 - 2^24 + 1: programs that add 1 to 2^24 first get 0, which is less than 1/2.
#[test]
fn the_last_sum_is_rounded() {
    let large = 2_f64.powi(24);
    let none = toy([large, -large, 0.0], [[0.0; 3], [1.0; 3]], [0.5, 0.0]);
    let [old, new] = [1.0, 1024.0].map(|bias| with(&none, 0.0, bias, [0.0, 0.0, 1.0]));
    let given = |toy: &Toy, seed: u64| label(&Program { seed, single: true }.scores(toy, &toy.input(0, 0), 0.0, 1));
    let becomes = |seed: u64| (given(&old, seed), given(&new, seed));
    assert!((0..100).any(|seed| becomes(seed) == (1, 1)) && (0..100).any(|seed| becomes(seed) == (0, 1)));
    assert_ne!(check(&old, &new, &changes((-1e30, 1e30), (0, 0)), Some(8)).verdict, Verdict::Right);
    assert_eq!(check(&old, &new, &changes((-1e30, 1e30), (0, 1)), Some(8)).verdict, Verdict::Right);
}

/// The score of label 1 is 2^24 + 1, which every program rounds to 2^24, the score of label 0: its bound is met exactly, and a margin
/// that may be 0 is no win for the higher label.
#[test]
fn rounding_may_make_a_tie() {
    let none = toy([2_f64.powi(24), 0.0, 0.0], [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], [0.0; 2]);
    let [old, new] = [1.0, 1024.0].map(|bias| with(&none, 0.0, bias, [0.0, 1.0, 0.0]));
    let given = |toy: &Toy, seed: u64| label(&Program { seed, single: true }.scores(toy, &toy.input(0, 0), 0.0, 1));
    assert!((0..100).all(|seed| (given(&old, seed), given(&new, seed)) == (0, 1)));
    assert_ne!(check(&old, &new, &changes((-1e30, 1e30), (0, 0)), Some(8)).verdict, Verdict::Right);
    assert_eq!(check(&old, &new, &changes((-1e30, 1e30), (0, 1)), Some(8)).verdict, Verdict::Right);
}
