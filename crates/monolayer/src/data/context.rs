//! Contexts (Definition 2, made precise) and the labels they allow.
//!
//! Attention sees exactly a token and the normalized multiset of the tokens visible to it: the sequences `(x, y)` and
//! `(x, y, x, y)` look alike to every layer, whatever its weights. So a context here is (token, normalized multiset of
//! visible tokens); with positions, tokens are (word, place) and nothing repeats.

use std::collections::HashMap;

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::paper::mask::{Mask, Seen};

/// The id of a start token that is none of the words.
pub const START: u32 = u32::MAX;

/// The context of every token of a dataset, contexts numbered in order of first appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contexts {
    /// The context of each token.
    pub of_token: Vec<u32>,
    /// How many contexts there are.
    pub count: usize,
}

impl Contexts {
    /// The contexts of ragged sequences of token ids; `offsets` as in [`crate::Dataset`]. The mask must have room for the
    /// longest sequence: see [`check_mask`].
    pub fn new(ids: &[u32], offsets: &[usize], mask: &Mask, positions: bool) -> Self {
        Self::with_start(None, ids, offsets, mask, positions)
    }

    /// The same for sequences that stand behind a start token, where one is given: by its id, which is that of a word if it is
    /// that word, and [`START`] if it is none. Every token sees it; it has no context of its own.
    pub fn with_start(start: Option<u32>, ids: &[u32], offsets: &[usize], mask: &Mask, positions: bool) -> Self {
        let mut keys = ContextKeys::new(start, mask, positions);
        let mut numbers = HashMap::new();
        let mut of_token = Vec::with_capacity(ids.len());
        for window in offsets.windows(2) {
            let sequence = &ids[window[0]..window[1]];
            keys.each(
                sequence,
                |_| true,
                |place, key| {
                    let next = numbers.len() as u32;
                    let token = (sequence[place], if positions { place as u32 + 1 } else { 0 });
                    of_token.push(*numbers.entry((token, key)).or_insert(next));
                },
            );
        }
        Self { of_token, count: numbers.len() }
    }

    /// Each token is its own context, whatever stands around it: what a model without attention sees.
    pub fn of_words(ids: &[u32]) -> Self {
        let offsets: Vec<usize> = (0..=ids.len()).collect();
        Self::new(ids, &offsets, &Mask::None, false)
    }

    /// Which labels the contexts allow. Tokens without a label ask for nothing.
    pub fn agree(&self, labels: &[Option<u32>]) -> Agreement {
        let mut counts: HashMap<(u32, u32), (u32, usize)> = HashMap::new();
        for (t, (&context, label)) in self.of_token.iter().zip(labels).enumerate() {
            if let Some(label) = *label {
                counts.entry((context, label)).or_insert((0, t)).0 += 1;
            }
        }
        // The commonest label of each context; among equals the one that comes first in the file.
        let mut best = vec![(0, std::cmp::Reverse(usize::MAX), None); self.count];
        for ((context, label), (count, first)) in counts {
            let slot = &mut best[context as usize];
            *slot = (*slot).max((count, std::cmp::Reverse(first), Some(label)));
        }
        let label: Vec<Option<u32>> = best.into_iter().map(|(_, _, label)| label).collect();
        let (mut impossible, mut free) = (Vec::new(), Vec::new());
        for (t, own) in labels.iter().enumerate() {
            if own.is_none() {
                free.push(t);
            } else if *own != label[self.of_token[t] as usize] {
                impossible.push(t);
            }
        }
        Agreement { label, possible: labels.len() - impossible.len() - free.len(), impossible, free }
    }
}

/// Reads what tokens see: tokens with the same word (at the same place, where positions count) and equal keys have one context.
pub(crate) struct ContextKeys<'a> {
    start: Measure,
    mask: &'a Mask,
    positions: bool,
    inverses: Inverses,
    /// Of the tokens before each place of a sequence, so that a range costs no more than a token.
    sums: Vec<Measure>,
}

impl<'a> ContextKeys<'a> {
    /// For sequences behind a start token, where one is given, as in [`Contexts::with_start`].
    pub fn new(start: Option<u32>, mask: &'a Mask, positions: bool) -> Self {
        // At a place of its own where places count.
        let start = start.map_or(Measure::default(), |id| Measure::default().plus((id, 0)));
        Self { start, mask, positions, inverses: Inverses::default(), sums: Vec::new() }
    }

    /// The keys of the tokens at the places wanted of a sequence, in order.
    pub fn each(&mut self, sequence: &[u32], wanted: impl Fn(usize) -> bool, mut see: impl FnMut(usize, [u64; 2])) {
        self.sums.clear();
        self.sums.push(Measure::default());
        for (place, &id) in sequence.iter().enumerate() {
            let place_number = if self.positions { place as u32 + 1 } else { 0 };
            self.sums.push(self.sums[place].plus((id, place_number)));
        }
        let sums = &self.sums;
        for place in (0..sequence.len()).filter(|&place| wanted(place)) {
            let visible = match self.mask.seen(place, sequence.len()) {
                Seen::Range(range) => sums[range.end].minus(sums[range.start]),
                row => {
                    let alone = |place: usize| sums[place + 1].minus(sums[place]);
                    row.places().map(alone).fold(Measure::default(), Measure::and)
                }
            };
            see(place, visible.and(self.start).normalized(&mut self.inverses));
        }
    }
}

/// An error where a mask has no room for a sequence of a dataset.
pub fn check_mask(data: &Dataset, mask: &Mask) -> Result<()> {
    let too_long = |most: usize| (0..data.sequences()).find(|&i| data.range(i).len() > most).map(|i| (i, most));
    let Some((i, most)) = mask.longest().and_then(too_long) else { return Ok(()) };
    let mut place = data.location(data.offsets[i]);
    place.token = None;
    let what = format!("{} tokens where the mask is for {most}", data.range(i).len());
    Err(Error::data(place, what, "split the sequence, or use a larger mask"))
}

/// What labels a dataset's contexts allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// The commonest label of each context; among equals the one that comes first in the dataset. None where all tokens of
    /// the context are free.
    pub label: Vec<Option<u32>>,
    /// The tokens with another label than their context's: no weights get them right.
    pub impossible: Vec<usize>,
    /// The tokens for which any label will do.
    pub free: Vec<usize>,
    /// How many tokens can be right: all others.
    pub possible: usize,
}

/// Numbers the rows of a row-major `[rows, d]` array so that equal rows (`0.0` equals `-0.0`) get equal numbers, in order
/// of first appearance. Returns the number of each row and the first row of each number.
pub fn distinct_rows(d: usize, data: &[f64]) -> (Vec<u32>, Vec<usize>) {
    let mut numbers: HashMap<Vec<u64>, u32> = HashMap::new();
    let mut first = Vec::new();
    let of_row = data
        .chunks_exact(d)
        .enumerate()
        .map(|(i, row)| {
            *numbers.entry(row.iter().map(|x| (x + 0.0).to_bits()).collect()).or_insert_with(|| {
                first.push(i);
                first.len() as u32 - 1
            })
        })
        .collect();
    (of_row, first)
}

/// The prime 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;

fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

/// A fingerprint of a multiset of tokens: the sums of two random numbers per token, modulo a prime of 61 bits.
/// Divided by the multiset's size it depends on the normalized multiset alone, and different ones agree with
/// probability about 2^-122.
#[derive(Debug, Default, Clone, Copy)]
struct Measure {
    sums: [u64; 2],
    size: usize,
}

impl Measure {
    /// With one more token.
    fn plus(self, (id, place): (u32, u32)) -> Self {
        let bytes = (u64::from(id) << 32 | u64::from(place)).to_le_bytes();
        let hash = blake3::hash(&bytes);
        let number = |lane: usize| {
            let half = hash.as_bytes()[8 * lane..8 * lane + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(half) % PRIME
        };
        self.and(Self { sums: [number(0), number(1)], size: 1 })
    }

    /// Both together.
    fn and(self, other: Self) -> Self {
        let lane = |lane: usize| (self.sums[lane] + other.sums[lane]) % PRIME;
        Self { sums: [lane(0), lane(1)], size: self.size + other.size }
    }

    /// Without a part of it.
    fn minus(self, part: Self) -> Self {
        let lane = |lane: usize| (self.sums[lane] + PRIME - part.sums[lane]) % PRIME;
        Self { sums: [lane(0), lane(1)], size: self.size - part.size }
    }

    fn normalized(&self, inverses: &mut Inverses) -> [u64; 2] {
        let inverse = inverses.of(self.size);
        self.sums.map(|sum| times(sum, inverse))
    }
}

/// Inverses of small numbers modulo the prime.
#[derive(Default)]
struct Inverses(Vec<u64>);

impl Inverses {
    fn of(&mut self, n: usize) -> u64 {
        while self.0.len() <= n {
            // Fermat: n^(p-2) is the inverse of n.
            let (mut power, mut base, mut exponent) = (1, self.0.len() as u64, PRIME - 2);
            while exponent > 0 {
                if exponent & 1 == 1 {
                    power = times(power, base);
                }
                base = times(base, base);
                exponent >>= 1;
            }
            self.0.push(power);
        }
        self.0[n]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contexts(sequences: &[&[u32]], mask: &Mask, positions: bool) -> Vec<u32> {
        let mut offsets = vec![0];
        sequences.iter().for_each(|s| offsets.push(offsets.last().unwrap() + s.len()));
        Contexts::new(&sequences.concat(), &offsets, mask, positions).of_token
    }

    #[test]
    fn a_context_is_a_normalized_multiset() {
        assert_eq!(contexts(&[&[1, 2], &[2, 1, 2, 1]], &Mask::None, false), [0, 1, 1, 0, 1, 0]);
        assert_eq!(contexts(&[&[1, 2], &[1, 2, 2]], &Mask::None, false), [0, 1, 2, 3, 3]);
    }

    #[test]
    fn positions_and_masks() {
        assert_eq!(contexts(&[&[1, 1]], &Mask::None, true), [0, 1]);
        assert_eq!(contexts(&[&[1, 2], &[1, 3]], &Mask::Causal, false), [0, 1, 0, 2]);
        assert_eq!(contexts(&[&[1, 1, 1]], &Mask::Causal, false), [0, 0, 0]);
        assert_eq!(contexts(&[&[1, 2, 1], &[2, 1, 1]], &Mask::Causal, true), [0, 1, 2, 3, 4, 5]);
        assert_eq!(contexts(&[&[1, 2, 3], &[1, 2, 4]], &Mask::Prefix(2), false), [0, 1, 2, 0, 1, 3]);
        assert_eq!(contexts(&[&[1, 2, 3], &[4, 2, 3]], &Mask::Band(1, 0), false), [0, 1, 2, 3, 4, 2]);
        let matrix = Mask::matrix(3, vec![1, 0, 1, 0, 1, 0, 0, 0, 1]).unwrap();
        assert_eq!(contexts(&[&[1, 2, 3], &[1, 3, 3], &[2, 2]], &matrix, false), [0, 1, 2, 0, 2, 2, 1, 1]);
    }

    #[test]
    fn majority_with_ties_to_the_first() {
        let contexts = Contexts::of_words(&[7, 7, 7, 8, 8]);
        let agreement = contexts.agree(&[4, 3, 3, 9, 2].map(Some));
        let label = vec![Some(3), Some(9)];
        assert_eq!(agreement, Agreement { label, impossible: vec![0, 4], free: vec![], possible: 3 });
    }

    #[test]
    fn free_tokens_have_no_vote() {
        let contexts = Contexts::of_words(&[7, 7, 7, 7, 8, 8]);
        let agreement = contexts.agree(&[None, None, None, Some(4), None, None]);
        let expected =
            Agreement { label: vec![Some(4), None], impossible: vec![], free: vec![0, 1, 2, 4, 5], possible: 1 };
        assert_eq!(agreement, expected);
    }

    #[test]
    fn equal_rows_share_a_number() {
        let (of_row, first) = distinct_rows(2, &[0.0, 1.0, 2.0, 1.0, -0.0, 1.0]);
        assert_eq!((of_row, first), (vec![0, 1, 0], vec![0, 1]));
    }

    /// The definition, word for word: sorted tokens with multiplicities divided by their greatest common divisor.
    fn plain_key(sequence: &[u32]) -> Vec<(u32, usize)> {
        let mut counts = std::collections::BTreeMap::new();
        sequence.iter().for_each(|&id| *counts.entry(id).or_insert(0) += 1);
        let gcd = counts.values().fold(0, |mut a: usize, &b| {
            let mut b: usize = b;
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a
        });
        counts.into_iter().map(|(id, count)| (id, count / gcd)).collect()
    }

    proptest! {
        #[test]
        fn fingerprints_agree_with_the_definition(
            a in prop::collection::vec(0_u32..3, 1..9),
            b in prop::collection::vec(0_u32..3, 1..9),
            which in 0..5_usize,
        ) {
            let long = a.len().max(b.len());
            let checkered = (0..long * long).map(|at| u8::from((at / long + at % long) % 2 == 0)).collect();
            let masks =
                [Mask::None, Mask::Causal, Mask::Prefix(3), Mask::Band(2, 1), Mask::matrix(long, checkered).unwrap()];
            let mask = &masks[which];
            let numbers = contexts(&[&a, &b], mask, false);
            let seen = |s: &[u32], place: usize| {
                let visible = s.iter().enumerate().filter(|&(key, _)| mask.visible(place, key));
                plain_key(&visible.map(|(_, &id)| id).collect::<Vec<u32>>())
            };
            for i in 0..a.len() {
                for j in 0..b.len() {
                    let same = a[i] == b[j] && seen(&a, i) == seen(&b, j);
                    prop_assert_eq!(numbers[i] == numbers[a.len() + j], same, "{:?}", mask);
                }
            }
        }
    }
}
