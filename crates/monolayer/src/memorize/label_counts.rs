//! Remark 2 from below: how many bits the labels of a dataset are, and how many numbers must hold them.
//!
//! A model of P numbers of b bits is one of at most `2^(P b)` models, so that an architecture which can take any of M
//! labelings has `P b >= log2 M`. Of a dataset with T tokens, K contexts and C classes, in which D contexts have another label
//! than their word's commonest:
//!
//! - the labels, written one by one, are `T log2 C` bits;
//! - its contexts have `C^K` labelings, `K log2 C` bits; these are the first where no context repeats;
//! - given each word's commonest label, `binom(K, D) (C - 1)^D` of them deviate from it in exactly D contexts. The logarithm
//!   of this number is what it takes to say which contexts deviate, and to what label.

use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::data::context::{Contexts, check_mask};
use crate::error::Result;
use crate::paper::mask::Mask;

/// What is counted of a dataset's labels.
///
/// ```
/// use monolayer::memorize::LabelCounts;
/// use monolayer::{Dataset, Mask};
///
/// let data = Dataset::from_sequences(&[["a", "b"], ["a", "c"]], &[["X", "Y"], ["Y", "Y"]])?;
/// let counts = LabelCounts::new(&data, &Mask::None, false)?.expect("it has labels");
/// // The two contexts of a have different labels; X comes first, so Y deviates: one of four contexts, to one other label.
/// assert_eq!((counts.contexts, counts.deviating, counts.bits_given_words()), (4, 1, 2.0));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelCounts {
    /// Tokens with a label.
    pub tokens: usize,
    /// Different labels.
    pub classes: usize,
    /// Different contexts of these.
    pub contexts: usize,
    /// Contexts whose label, the commonest of their tokens', is not the commonest of their word's.
    pub deviating: usize,
}

impl LabelCounts {
    /// Counts; nothing for data without labels. An error where the mask has no room for a sequence.
    pub fn new(data: &Dataset, mask: &Mask, positions: bool) -> Result<Option<Self>> {
        Self::with_start(None, data, mask, positions)
    }

    /// The same for sequences that stand behind a start token, as [`Contexts::with_start`] takes it.
    pub fn with_start(start: Option<u32>, data: &Dataset, mask: &Mask, positions: bool) -> Result<Option<Self>> {
        check_mask(data, mask)?;
        let Some(labels) = data.label_ids() else { return Ok(None) };
        let words = data.token_ids();
        let contexts = Contexts::with_start(start, &words, &data.offsets, mask, positions);
        let of_words = Contexts::of_words(&words);
        let (of_context, of_word) = (contexts.agree(&labels).label, of_words.agree(&labels).label);
        let mut deviates = vec![false; contexts.count];
        for (&context, &word) in contexts.of_token.iter().zip(&of_words.of_token) {
            let label = of_context[context as usize];
            deviates[context as usize] = label.is_some() && label != of_word[word as usize];
        }
        // What may have any label takes nothing to be said.
        let mut classes: Vec<u32> = labels.into_iter().flatten().collect();
        let tokens = classes.len();
        classes.sort_unstable();
        classes.dedup();
        Ok(Some(Self {
            tokens,
            classes: classes.len(),
            contexts: of_context.iter().flatten().count(),
            deviating: deviates.iter().filter(|&&deviates| deviates).count(),
        }))
    }

    /// `T log2 C`.
    pub fn bits(&self) -> f64 {
        self.tokens as f64 * self.bits_of_a_label()
    }

    /// `K log2 C`.
    pub fn bits_of_contexts(&self) -> f64 {
        self.contexts as f64 * self.bits_of_a_label()
    }

    /// `log2 (binom(K, D) (C - 1)^D)`.
    pub fn bits_given_words(&self) -> f64 {
        let rest = self.contexts - self.deviating;
        // binom(K, D) is the product of (K - D + i) / i; 0 of no deviations, with one class, too.
        let one = |i: usize| ((rest + i) as f64 / i as f64).log2() + ((self.classes - 1) as f64).log2();
        (1..=self.deviating).map(one).sum()
    }

    fn bits_of_a_label(&self) -> f64 {
        (self.classes.max(1) as f64).log2()
    }
}

/// The fewest numbers of `width` bits that hold so many bits.
pub fn least_parameters(bits: f64, width: usize) -> usize {
    (bits / width as f64).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(tokens: usize, classes: usize, contexts: usize, deviating: usize) -> LabelCounts {
        LabelCounts { tokens, classes, contexts, deviating }
    }

    #[test]
    fn formulas_of_a_toy_by_hand() {
        // 12 tokens with 8 labels: 36 bits. 10 contexts: 30. Three of them deviate: binom(10, 3) = 120 ways to choose them,
        // 7^3 = 343 ways to relabel them, log2 41160 together.
        let toy = counts(12, 8, 10, 3);
        assert_eq!((toy.bits(), toy.bits_of_contexts()), (36.0, 30.0));
        assert!((toy.bits_given_words() - 41_160_f64.log2()).abs() < 1e-12);
        // All deviate: one way to choose them.
        assert_eq!(counts(4, 3, 4, 4).bits_given_words(), 4.0);
        assert_eq!(counts(4, 2, 4, 4).bits_given_words(), 0.0);
        for nothing in [counts(5, 1, 5, 0), counts(0, 0, 0, 0)] {
            assert_eq!((nothing.bits(), nothing.bits_given_words()), (0.0, 0.0));
        }
        assert_eq!([0.0, 32.0, 32.5, 64.0].map(|bits| least_parameters(bits, 32)), [0, 1, 2, 2]);
    }

    #[test]
    fn the_count_is_that_of_labelings() {
        // All labelings of 5 contexts with 3 labels that differ from a given one in D places, one by one.
        for deviating in 0..=5 {
            let labelings = (0..3_usize.pow(5)).filter(|code| {
                let digits = (0..5).map(|place| code / 3_usize.pow(place) % 3);
                digits.filter(|&digit| digit != 1).count() == deviating
            });
            let bits = (labelings.count() as f64).log2();
            assert!((counts(5, 3, 5, deviating).bits_given_words() - bits).abs() < 1e-12, "{deviating}");
        }
    }

    #[test]
    fn contexts_are_counted_as_the_mask_and_places_show_them() {
        // b is X, X and Y: one of its three contexts deviates; a has one label.
        let data =
            Dataset::from_sequences(&[["a", "b"], ["b", "a"], ["b", "b"]], &[["X", "X"], ["Y", "X"], ["X", "X"]]);
        let data = data.unwrap();
        let of = |mask: &Mask, positions| LabelCounts::new(&data, mask, positions).unwrap().unwrap();
        // (a, {a, b}), (b, {a, b}) with a tie that X wins, (b, {b}).
        assert_eq!(of(&Mask::None, false), counts(6, 2, 3, 0));
        assert_eq!(of(&Mask::None, true), counts(6, 2, 6, 1));
        // (a), (b after a), (b) with Y, X and X, (a after b).
        assert_eq!(of(&Mask::Causal, false), counts(6, 2, 4, 0));
        // Seen from the end: (a before b), (b), (b before a) with Y, (a).
        assert_eq!(of(&Mask::matrix(2, vec![1, 1, 0, 1]).unwrap(), false), counts(6, 2, 4, 1));
        // Of b's three contexts with places, two have a label.
        let free = Dataset::read("x", crate::data::Format::Conll, "a X\nb _\n\nb Y\na X\n\nb X\n".as_bytes()).unwrap();
        assert_eq!(LabelCounts::new(&free, &Mask::None, true).unwrap(), Some(counts(4, 2, 4, 1)));
        assert!(LabelCounts::new(&data, &Mask::matrix(1, vec![1]).unwrap(), false).is_err());
        let unlabeled = Dataset::read("x", crate::data::Format::Conll, "a\nb\n".as_bytes()).unwrap();
        assert_eq!(LabelCounts::new(&unlabeled, &Mask::None, false).unwrap(), None);
    }
}
