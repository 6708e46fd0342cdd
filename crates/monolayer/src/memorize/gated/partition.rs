//! Hidden units that tokens share by word, by place, by both or by neither, over one-hot codes.

use std::collections::BTreeMap;

use super::label_hinges::{self, MostRuns};
use super::{DEFAULT_STRENGTH, GatePlan, Gated, HingeGate, WordGroup, ids_too_close};
use crate::error::Result;
use crate::memorize::alphabet::architecture::Gates;

/// How many runs may have a part in a segment, by list: its word and its place, 0 where they do not count. Any number where a list is
/// not named.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListLimits(BTreeMap<(u32, usize), MostRuns>);

impl ListLimits {
    fn of(&self, list: (u32, usize)) -> MostRuns {
        self.0.get(&list).copied().unwrap_or(MostRuns::ANY)
    }

    /// Allows fewer for a list; whether it had any to spare.
    pub fn lower(&mut self, list: (u32, usize)) -> bool {
        let fewer = self.of(list).fewer();
        self.0.extend(fewer.map(|fewer| (list, fewer)));
        fewer.is_some()
    }
}

impl GatePlan<'_> {
    /// The hidden units, rounded to a precision by `round`, where tokens share them as `gates` say. The default label wins
    /// without units; whatever differs from it is hinges. The limits are lowered where no hinges were found.
    pub fn partition_units(&self, gates: Gates, limits: &mut ListLimits, round: fn(f64) -> f64) -> Result<Gated> {
        let (by_word, by_place) = gates.reads();
        let (low, high) = self.id_range();
        let mut units = Vec::new();
        for group in self.groups(by_word, by_place)? {
            let list = (group.word, group.place);
            let hinges = |most: MostRuns| {
                if label_hinges::cost(&group.runs, self.default, most) == 0 {
                    return Some(Vec::new());
                }
                let range = group.range(self.default, most, low, high);
                let gate = self.one_hot_gate(&group, (by_word, by_place), range);
                self.hinges(&group.runs, &gate, (self.default, DEFAULT_STRENGTH), most, round)
            };
            let mut found = hinges(limits.of(list));
            while found.is_none() && limits.lower(list) {
                found = hinges(limits.of(list));
            }
            units.extend(found.ok_or_else(ids_too_close)?);
        }
        let counts = [0, 0, units.len()];
        let default = self.output(&[(self.default, DEFAULT_STRENGTH)], round);
        Ok(Gated { units, counts, default, base: vec![self.default; self.view.vectors.words.rows] })
    }

    /// A gate that holds a group open: 1 for its word and 1 for its place, where they count. All other tokens lack 1 at least.
    fn one_hot_gate(&self, group: &WordGroup, (by_word, by_place): (bool, bool), range: f64) -> HingeGate {
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
        HingeGate { own: code.iter().sum(), code: code.into(), slope }
    }
}
