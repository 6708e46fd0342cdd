//! Hidden units that tokens share by word, by place, by both or by neither, over one-hot codes.

use super::{DEFAULT_STRENGTH, Gate, GatePlan, Gated, WordGroup, label_hinges};
use crate::error::Result;
use crate::memorize::alphabet::architecture::Gates;

impl GatePlan<'_> {
    /// The hidden units, rounded to a precision by `round`, where tokens share them as `gates` say. The default label wins
    /// without units; whatever differs from it is hinges.
    pub fn partition_units(&self, gates: Gates, round: fn(f64) -> f64) -> Result<Gated> {
        let (by_word, by_place) = gates.reads();
        let (low, high) = self.id_range();
        let mut units = Vec::new();
        for group in self.groups(by_word, by_place)? {
            if label_hinges::cost(&group.runs, self.default) > 0 {
                let gate = self.one_hot_gate(&group, (by_word, by_place), group.range(self.default, low, high));
                units.extend(self.hinges(&group.runs, &gate, self.default, DEFAULT_STRENGTH, round)?);
            }
        }
        let counts = [0, 0, units.len()];
        let default = self.output(&[(self.default, DEFAULT_STRENGTH)], round);
        Ok(Gated { units, counts, default, base: vec![self.default; self.view.vectors.words.rows] })
    }

    /// A gate that holds a group open: 1 for its word and 1 for its place, where they count. All other tokens lack 1 at least.
    fn one_hot_gate(&self, group: &WordGroup, (by_word, by_place): (bool, bool), range: f64) -> Gate {
        let vectors = self.view.vectors;
        let mut code = vec![0.0; vectors.used];
        if by_word {
            code[group.word as usize] = 1.0;
        }
        if by_place {
            code[vectors.word_columns + vectors.first_place() + group.place] = 1.0;
        }
        // A power of two: the weight of the id rounds nothing.
        let slope = (0.9 / range).log2().floor().exp2();
        Gate { own: code.iter().sum(), code, slope }
    }
}
