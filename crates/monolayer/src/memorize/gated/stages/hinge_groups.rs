//! Hinges for words at places with several labels, and the proof of every label, in the model's numbers and in double
//! precision: each group by itself, because the units of all others are shut there.

use super::contexts::GroupContext;
use super::ids::RoundedId;
use super::word_blocks::WordUnits;
use super::word_groups::WordPlace;
use crate::arithmetic::float_model::{FloatFormat, Up, sum_above, sum_below};
use crate::arithmetic::matrix::Matrix;
use crate::memorize::gated::halfspace_cover::Halfspace;
use crate::memorize::gated::label_hinges::{self, MostRuns, Run};
use crate::memorize::gated::token_units::{ScoreParts, TokenUnits};
use crate::memorize::gated::{DEFAULT_STRENGTH, HingeGate, Unit, WordGroup};

/// What all groups have in common.
pub struct GroupBuilder<'a> {
    /// The numbers of the model, but for its hidden units.
    pub parts: &'a ScoreParts,
    /// The units that give words their base labels.
    pub words: &'a WordUnits,
    /// The base label of each word.
    pub base: &'a [u32],
    /// The label that wins without units.
    pub default: u32,
    /// A vector per label.
    pub label_codes: &'a Matrix<f64>,
    /// In how many entries any two codes of words, and any two of places, differ at least.
    pub distances: (usize, usize),
    /// The row of positions of the first place.
    pub first_place: usize,
    /// Bounds of all ids.
    pub range: (f64, f64),
    /// The model's numbers, and those of the second proof.
    pub formats: [FloatFormat; 2],
    /// Rounds to the model's numbers.
    pub round: fn(f64) -> f64,
}

/// The units of a group, and for each context, in the order given, the margin of its label over its error in both formats.
pub struct GroupUnits {
    /// The units.
    pub units: Vec<Unit>,
    /// Above 1 exactly where the label is proved.
    pub ratios: Vec<[f64; 2]>,
    /// Whether the units are proved shut for all other words and places.
    pub shut: bool,
    /// The smallest distance of ids with different labels.
    pub gap: f64,
}

impl GroupBuilder<'_> {
    /// The units of the contexts of one group; none where two ids are too close.
    pub fn group(&self, (word, place): WordPlace, contexts: &[GroupContext], ids: &[RoundedId]) -> Option<GroupUnits> {
        let mut sorted: Vec<(f64, u32)> =
            ids.iter().zip(contexts).map(|(id, context)| (id.center, context.label)).collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let differ = sorted.windows(2).filter(|pair| pair[0].1 != pair[1].1);
        let gap = differ.map(|pair| pair[1].0 - pair[0].0).fold(f64::INFINITY, f64::min);
        if gap <= 0.0 {
            return None;
        }
        let runs = label_hinges::runs(sorted.into_iter());
        let (base, strength) = self.base_label(word);
        let gate = self.gate((word, place), &runs, base);
        let units = gate.hinges(&runs, (base, strength), MostRuns::TWO, self.label_codes, self.round)?;
        let shut = units.iter().all(|unit| self.is_shut_elsewhere(unit));
        let ratios = self.ratios((word, place), contexts, ids, &units);
        Some(GroupUnits { units, ratios, shut, gap })
    }

    /// The base label of a word, and by how much it wins without hinges.
    fn base_label(&self, word: u32) -> (u32, f64) {
        let base = self.base[word as usize];
        let strength = if base == self.default { DEFAULT_STRENGTH } else { self.words.strength[word as usize] };
        (base, strength)
    }

    /// The code of a word and a place is the gate: of all codes it has the largest product with itself.
    fn gate(&self, (word, place): WordPlace, runs: &[Run], base: u32) -> HingeGate {
        let stored = &self.parts.stored;
        let around = |code: &[f64], distance: usize| Halfspace {
            normal: code.to_vec(),
            id: 0.0,
            threshold: (code.len() - distance) as f64,
            margin: distance as f64,
            holds: Vec::new(),
            members: Vec::new(),
        };
        let word_part = around(stored.words.row(word as usize), self.distances.0);
        let place_row = (stored.places.cols > 0).then(|| stored.places.row(self.first_place + place as usize));
        let place_part = place_row.map(|row| around(row, self.distances.1));
        let group = WordGroup { word, place: place as usize, runs: runs.to_vec() };
        let range = group.range(base, MostRuns::TWO, self.range.0, self.range.1);
        HingeGate::new(&word_part, place_part.as_ref(), range)
    }

    /// Whether a unit is shut for every other word and place, in every program: there its gate is lower by twice the smaller
    /// distance at least.
    fn is_shut_elsewhere(&self, unit: &Unit) -> bool {
        let own: f64 = unit.code.iter().map(|x| x.abs()).sum();
        let drop = 2.0
            * if self.parts.stored.places.cols > 0 { self.distances.0.min(self.distances.1) } else { self.distances.0 }
                as f64;
        let ends = [unit.id * self.range.0, unit.id * self.range.1];
        let most = ends[0].max(ends[1]).next_up();
        let size = Up::size(own) + Up::size(unit.bias) + Up::size(ends[0].abs().max(ends[1].abs()).next_up());
        let rounding = self.formats[0].sum_error(unit.code.len() + 2, size);
        // Sums of whole numbers are exact.
        sum_above(sum_above(sum_above(own - drop, unit.bias), most), rounding.get()) < 0.0 && rounding.is_known()
    }

    fn ratios(
        &self,
        (word, place): WordPlace,
        contexts: &[GroupContext],
        ids: &[RoundedId],
        units: &[Unit],
    ) -> Vec<[f64; 2]> {
        let at = if self.parts.stored.places.cols > 0 { self.first_place + place as usize } else { 0 };
        let of_word = self.words.of_word[word as usize].iter().map(|&j| &self.words.units[j as usize]);
        let token = TokenUnits::with(self.parts, (word, at), of_word.chain(units));
        let ratio = |(context, id): (&GroupContext, &RoundedId)| {
            [0, 1].map(|k| {
                let error = id.errors[k];
                if !error.is_finite() {
                    return 0.0;
                }
                let range = (sum_below(id.center, -error), sum_above(id.center, error));
                token.ratio(context.label as usize, range, &self.formats[k])
            })
        };
        contexts.iter().zip(ids).map(ratio).collect()
    }

    /// The margins of the base label of a word over their errors, where no hinge is open.
    pub fn word_ratios(&self, word: u32) -> [f64; 2] {
        let of_word = self.words.of_word[word as usize].iter().map(|&j| &self.words.units[j as usize]);
        let token = TokenUnits::with(self.parts, (word, 0), of_word);
        [0, 1].map(|k| token.ratio(self.base[word as usize] as usize, (0.0, 0.0), &self.formats[k]))
    }
}
