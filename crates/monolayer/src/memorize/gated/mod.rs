//! Token-gated hidden units: each fires for its own tokens only, so that nothing but the contexts of one token must be told
//! apart, and words with one label cost next to nothing.
//!
//! Every word has a base label. Halfspaces around words share the work of giving it ([`halfspace_cover`]); the commonest label
//! needs none. Contexts with another label than their word's get it from halfspaces over words, places and the context id g,
//! each of which holds contexts of many words (`exceptions`). Where the label changes too often along g, or between ids that
//! are too near each other, hinges along g, open for one (word, place) only, do the rest (`label_hinges`).

mod assembly;
pub mod code_points;
mod compile;
mod exceptions;
pub mod halfspace_cover;
mod heights;
pub mod knots;
pub(crate) mod label_hinges;
pub(crate) mod off_units;
mod partition;
pub mod proof;
pub(super) mod stages;
pub(crate) mod stored;
pub(crate) mod token_units;
pub(crate) mod unit_names;

pub(super) use compile::memorize_words;

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::context_map::{View, standard_deviation};
use crate::error::{Error, Result};
use crate::memorize::settings::Effort;
use code_points::{CodePoints, Codes, IdScale};
use exceptions::{ExceptionUnits, Exceptions};
use halfspace_cover::{CoverEffort, Halfspace, Target, cover};
use label_hinges::{MostRuns, Run, SidedHinge};

/// How far the commonest label wins where no unit fires; units win by 1 at least.
const DEFAULT_STRENGTH: f64 = 0.25;

/// A hidden unit: what it reads of the token's code and of the id g, and what it adds to the coordinates of labels. Its numbers
/// are those of the model, rounded to the model's precision.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Its weights on the coordinates of codes, from the first. Units with one gate share them.
    pub code: Arc<[f64]>,
    /// Its weight on the id.
    pub id: f64,
    /// Its bias.
    pub bias: f64,
    /// What it adds to the coordinates of labels, per unit of what it computes.
    pub output: Vec<f64>,
}

/// The hidden units, and what words get from elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Gated {
    /// The units: first those that give words their base label, then those for exceptions, then hinges.
    pub units: Vec<Unit>,
    /// How many there are for words, how many others read no id, and how many read it.
    pub counts: [usize; 3],
    /// What stands in the coordinates of labels where no unit fires: a little of the default label.
    pub default: Vec<f64>,
    /// The base label of each word.
    pub base: Vec<u32>,
}

/// All contexts of one word, at one place where positions are used.
struct WordGroup {
    word: u32,
    place: usize,
    runs: Vec<Run>,
}

impl WordGroup {
    /// How far above the lowest hinge ids can be, where all ids are from `low` to `high`.
    fn range(&self, base: u32, most: MostRuns, low: f64, high: f64) -> f64 {
        let reach = high - (self.runs[0].first - label_hinges::overhang(&self.runs, base, most));
        // The gate keeps a tenth of its drop as room for rounding, which has room for a little more reach.
        if reach > 1.1 * (high - low) { reach } else { high - low }
    }
}

/// What a gated block is built from.
pub struct GatePlan<'a> {
    /// The data and their codes.
    pub view: &'a View<'a>,
    /// The context id of each token.
    pub context_ids: &'a [f64],
    /// The label of each context; none where any will do.
    pub label: &'a [Option<u32>],
    /// The commonest label.
    pub default: u32,
    /// A vector per label.
    pub label_codes: &'a Matrix<f64>,
    /// Whether the embedding carries the base labels, so that no units need to.
    pub free: bool,
    /// Whether units for exceptions must be off for unknown words, whose code is 0.
    pub unknown: bool,
    /// How long halfspaces are searched for.
    pub effort: Effort,
}

/// What a gated block is made of, before its hinges are rounded to a precision.
pub struct Covered {
    groups: Vec<WordGroup>,
    base: Vec<u32>,
    /// How strongly each word gets its base label.
    strength: Vec<f64>,
    word_units: Vec<Unit>,
    exception_units: Vec<Unit>,
    /// A gate for each group that is left to hinges.
    gates: Vec<(usize, HingeGate)>,
}

impl GatePlan<'_> {
    /// Halfspaces and gates: what does not depend on the precision of the model. With `hinges_only`, exceptions are hinges'
    /// business alone: more units, wider margins.
    pub fn cover(&self, hinges_only: bool) -> Result<Covered> {
        let groups = self.groups(true, self.view.vectors.positions.is_some())?;
        let base = self.bases(&groups);
        let words = Codes::new(self.word_codes());
        let places = self.place_codes().map(Codes::new);
        let mut strength: Vec<f64> = base.iter().map(|&label| if label == self.default { 0.0 } else { 1.0 }).collect();
        let mut word_units = Vec::new();
        if !self.free {
            strength.fill(0.0);
            let units = self.word_units(&words, &base, &self.free_words(&groups))?;
            for (unit, holds) in &units {
                for &w in holds {
                    strength[w as usize] += unit.before(words.row(w as usize), 0.0) * size(&unit.output);
                }
            }
            word_units = units.into_iter().map(|(unit, _)| unit).collect();
        }
        let n = self.context_ids.len() as f64;
        let exceptions = Exceptions {
            groups: &groups,
            words: &words,
            places: places.as_ref(),
            base: &base,
            strength: &strength,
            default: self.default,
            label_codes: self.label_codes,
            ids: IdScale::new(self.context_ids.iter().sum::<f64>() / n, standard_deviation(self.context_ids)),
            id_range: self.id_range(),
            unknown: self.unknown,
            effort: self.effort.for_exceptions(),
        };
        let ExceptionUnits { units, hinged } =
            if hinges_only { exceptions.left_to_hinges() } else { exceptions.units() };
        let gates = self.gates(&groups, &hinged, &words, places.as_ref(), &base)?;
        Ok(Covered { groups, base, strength, word_units, exception_units: units, gates })
    }

    /// The lowest and the highest id.
    fn id_range(&self) -> (f64, f64) {
        self.context_ids.iter().fold((f64::MAX, f64::MIN), |(l, h), &g| (l.min(g), h.max(g)))
    }

    /// The hidden units, rounded to a precision by `round`, that give every context its label.
    pub fn units(&self, covered: &Covered, round: fn(f64) -> f64) -> Result<Gated> {
        let Covered { groups, base, strength, word_units, exception_units, gates } = covered;
        let mut units: Vec<Unit> = word_units.iter().chain(exception_units).cloned().collect();
        let hinges = |i: usize| {
            let (g, gate) = &gates[i];
            let word = groups[*g].word as usize;
            let strength = if base[word] == self.default { DEFAULT_STRENGTH } else { strength[word] };
            self.hinges(&groups[*g].runs, gate, (base[word], strength), MostRuns::TWO, round).ok_or_else(ids_too_close)
        };
        units.extend(parallel::try_map(gates.len(), hinges)?.into_iter().flatten());
        let places = exception_units.iter().filter(|unit| unit.id == 0.0).count();
        let counts = [word_units.len(), places, units.len() - word_units.len() - places];
        let default = self.output(&[(self.default, DEFAULT_STRENGTH)], round);
        Ok(Gated { units, counts, default, base: base.clone() })
    }

    /// Strengths of labels as numbers in the coordinates of labels.
    fn output(&self, strengths: &[(u32, f64)], round: fn(f64) -> f64) -> Vec<f64> {
        label_output(self.label_codes, strengths, round)
    }

    /// The contexts of each token, as runs of equally labeled ids. Contexts for which any label will do are left out: they get
    /// what their neighbors along the ids get. Words and places that do not count are 0.
    fn groups(&self, words: bool, places: bool) -> Result<Vec<WordGroup>> {
        let mut seen = vec![false; self.label.len()];
        let mut entries: Vec<(u32, usize, f64, u32)> = Vec::with_capacity(self.label.len());
        let mut t = 0;
        for window in self.view.offsets.windows(2) {
            for place in 0..window[1] - window[0] {
                let context = self.view.contexts.of_token[t] as usize;
                if !std::mem::replace(&mut seen[context], true)
                    && let Some(label) = self.label[context]
                {
                    let word = if words { self.view.token_ids[t] } else { 0 };
                    entries.push((word, if places { place } else { 0 }, self.context_ids[t], label));
                }
                t += 1;
            }
        }
        entries.par_sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        let same_token = |a: &(u32, usize, f64, u32), b: &(u32, usize, f64, u32)| (a.0, a.1) == (b.0, b.1);
        let mut groups = Vec::new();
        for group in entries.chunk_by(same_token) {
            let equal = |pair: &[(u32, usize, f64, u32)]| pair[0].2 == pair[1].2 && pair[0].3 != pair[1].3;
            if group.windows(2).any(equal) {
                return Err(Error::too_close(
                    "two contexts with different labels have the same id under every projection tried",
                    "raise `candidates`, or try another `seed` or a larger code dimension",
                ));
            }
            let runs = label_hinges::runs(group.iter().map(|&(_, _, id, label)| (id, label)));
            groups.push(WordGroup { word: group[0].0, place: group[0].1, runs });
        }
        Ok(groups)
    }

    /// The base label of each word: the one that leaves the fewest units to add.
    fn bases(&self, groups: &[WordGroup]) -> Vec<u32> {
        let mut bases = vec![self.default; self.view.vectors.words.rows];
        for word in groups.chunk_by(|a, b| a.word == b.word) {
            let mut labels: Vec<u32> = word.iter().flat_map(|g| g.runs.iter().map(|r| r.label)).collect();
            labels.push(self.default);
            labels.sort_unstable();
            labels.dedup();
            let left =
                |&label: &u32| word.iter().map(|g| label_hinges::cost(&g.runs, label, MostRuns::TWO)).sum::<usize>();
            // A base label costs a share of a unit, so among equals the default wins.
            let best = labels.iter().min_by_key(|&label| (left(label), *label != self.default, *label));
            bases[word[0].word as usize] = *best.expect("the default at least");
        }
        bases
    }

    /// The columns of codes that words use.
    fn word_codes(&self) -> Matrix<f64> {
        columns(&self.view.vectors.words, 0..self.view.vectors.word_columns)
    }

    /// The columns of codes that places use, where positions are used; without that of the start token, which has no units.
    fn place_codes(&self) -> Option<Matrix<f64>> {
        let vectors = self.view.vectors;
        vectors.positions.as_ref().map(|rows| {
            let mut codes = columns(rows, vectors.word_columns..vectors.used);
            codes.rows -= vectors.first_place();
            codes.data.drain(..vectors.first_place() * codes.cols);
            codes
        })
    }

    /// The words in the data for which any label will do wherever they stand.
    fn free_words(&self, groups: &[WordGroup]) -> Vec<bool> {
        let mut free = vec![false; self.view.vectors.words.rows];
        self.view.token_ids.iter().for_each(|&word| free[word as usize] = true);
        groups.iter().for_each(|group| free[group.word as usize] = false);
        free
    }

    /// Units that give words their base label, and the words that each fires for.
    fn word_units(&self, words: &Codes, base: &[u32], free: &[bool]) -> Result<Vec<(Unit, Vec<u32>)>> {
        let mut targets: Vec<Vec<usize>> = vec![Vec::new(); self.label_codes.rows];
        for (w, &label) in base.iter().enumerate().filter(|&(_, &label)| label != self.default) {
            targets[label as usize].push(w);
        }
        let list: Vec<(u32, u32)> = (0..base.len() as u32).map(|w| (w, 0)).collect();
        let points = CodePoints::new(words, None, &list);
        let with_targets: Vec<u32> = (0..targets.len() as u32).filter(|&l| !targets[l as usize].is_empty()).collect();
        let of_label = |i: usize| -> Result<Vec<(Unit, Vec<u32>)>> {
            let label = with_targets[i];
            let words = &targets[label as usize];
            let targets: Vec<Target> = words.iter().map(|&point| Target { point, ids: (0.0, 0.0) }).collect();
            let other = |(&b, &free): (&u32, &bool)| (b != label && !free).then_some((0.0, 0.0));
            let forbidden: Vec<Option<(f64, f64)>> = base.iter().zip(free).map(other).collect();
            let (halfspaces, failed) = cover(&points, &targets, &forbidden, self.effort.for_words());
            if let Some(&target) = failed.first() {
                return Err(too_close("word", words[target]));
            }
            Ok(halfspaces.into_iter().map(|h| (self.halfspace_unit(&h, label), h.holds)).collect())
        };
        Ok(parallel::try_map(with_targets.len(), of_label)?.concat())
    }

    /// A unit that fires inside a halfspace and gives the points it was made for at least 1. Powers of two keep the
    /// arithmetic of sign codes exact.
    fn halfspace_unit(&self, halfspace: &Halfspace, label: u32) -> Unit {
        let scale = halfspace.margin.log2().floor().exp2();
        Unit {
            code: halfspace.normal.clone().into(),
            id: 0.0,
            bias: -halfspace.threshold,
            output: self.output(&[(label, 1.0 / scale)], |x| x),
        }
    }

    /// A gate for each group that is left to hinges.
    fn gates(
        &self,
        groups: &[WordGroup],
        hinged: &[usize],
        words: &Codes,
        places: Option<&Codes>,
        base: &[u32],
    ) -> Result<Vec<(usize, HingeGate)>> {
        let (low, high) = self.id_range();
        let mut used_places: Vec<usize> = hinged.iter().map(|&g| groups[g].place).collect();
        used_places.sort_unstable();
        used_places.dedup();
        let place_gates: HashMap<usize, Halfspace> = match places {
            Some(codes) => {
                let all: Vec<(u32, u32)> = (0..self.place_count() as u32).map(|k| (k, 0)).collect();
                let gate =
                    |&k: &usize| alone(codes, &all, k).ok_or_else(|| too_close("place", k)).map(|gate| (k, gate));
                used_places.iter().map(gate).collect::<Result<_>>()?
            }
            None => HashMap::new(),
        };
        let all: Vec<(u32, u32)> = (0..self.view.vectors.words.rows as u32).map(|w| (w, 0)).collect();
        let by_word: Vec<&[usize]> = hinged.chunk_by(|&a, &b| groups[a].word == groups[b].word).collect();
        let of_word = |i: usize| -> Result<Vec<(usize, HingeGate)>> {
            let list = by_word[i];
            let word = groups[list[0]].word as usize;
            let word_gate = alone(words, &all, word).ok_or_else(|| too_close("word", word))?;
            let gate = |&g: &usize| {
                let range = groups[g].range(base[word], MostRuns::TWO, low, high);
                (g, HingeGate::new(&word_gate, place_gates.get(&groups[g].place), range))
            };
            Ok(list.iter().map(gate).collect())
        };
        Ok(parallel::try_map(by_word.len(), of_word)?.into_iter().flatten().collect())
    }

    fn place_count(&self) -> usize {
        self.view.vectors.positions.as_ref().map_or(0, |p| p.rows - self.view.vectors.first_place())
    }

    /// Hinges along the id for the tokens that a gate holds open, where a base label of some strength wins without them.
    fn hinges(
        &self,
        runs: &[Run],
        gate: &HingeGate,
        (base, strength): (u32, f64),
        most: MostRuns,
        round: fn(f64) -> f64,
    ) -> Option<Vec<Unit>> {
        gate.hinges(runs, (base, strength), most, self.label_codes, round)
    }
}

/// The halfspace that holds one code and none of the others.
pub(crate) fn alone(codes: &Codes, list: &[(u32, u32)], code: usize) -> Option<Halfspace> {
    let others: Vec<Option<(f64, f64)>> = (0..list.len()).map(|i| (i != code).then_some((0.0, 0.0))).collect();
    let target = Target { point: code, ids: (0.0, 0.0) };
    let found = cover(&CodePoints::new(codes, None, list), &[target], &others, CoverEffort::ALONE);
    found.0.into_iter().next()
}

fn ids_too_close() -> Error {
    Error::too_close("the ids of two contexts are too close for the precision of the model", "use `precision` f64")
}

fn too_close(what: &str, number: usize) -> Error {
    Error::too_close(
        format!("the code of {what} number {} is too close to others", number + 1),
        "use codes of a larger dimension, as in `embedding` sign:96 `positions` sign:64",
    )
}

impl Unit {
    /// Whether all its numbers are finite.
    fn is_finite(&self) -> bool {
        self.code.iter().chain(&self.output).chain([&self.id, &self.bias]).all(|x| x.is_finite())
    }

    /// What the unit computes before the ReLU.
    pub fn before(&self, code: &[f64], id: f64) -> f64 {
        let gate: f64 = self.code.iter().zip(code).map(|(w, x)| w * x).sum();
        // The gate and the bias nearly cancel for the unit's own token: add them first.
        (gate + self.bias) + self.id * id
    }
}

/// Strengths of labels as numbers in the coordinates of labels.
fn label_output(label_codes: &Matrix<f64>, strengths: &[(u32, f64)], round: fn(f64) -> f64) -> Vec<f64> {
    let mut out = vec![0.0; label_codes.cols];
    for &(label, strength) in strengths {
        out.iter_mut().zip(label_codes.row(label as usize)).for_each(|(o, c)| *o += strength * c);
    }
    out.into_iter().map(round).collect()
}

/// The largest entry in absolute value.
fn size(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// What holds a hinge shut for all tokens but one.
struct HingeGate {
    code: Arc<[f64]>,
    /// `code . x` at the token itself; elsewhere it is so much lower that the id cannot make up for it.
    own: f64,
    /// The weight of the id.
    slope: f64,
}

impl HingeGate {
    /// Hinges along the id for the tokens that the gate holds open, where a base label of some strength wins without them.
    fn hinges(
        &self,
        runs: &[Run],
        (base, strength): (u32, f64),
        most: MostRuns,
        label_codes: &Matrix<f64>,
        round: fn(f64) -> f64,
    ) -> Option<Vec<Unit>> {
        let slope = round(self.slope);
        let bias = |at: f64| round(-self.own - slope * at);
        let place = |at: f64| (-self.own - bias(at)) / slope;
        let hinges = label_hinges::hinges(runs, base, strength, most, place)?;
        let unit = |SidedHinge { leftward, hinge }: &SidedHinge| {
            let per_step: Vec<(u32, f64)> = hinge.bends.iter().map(|&(label, bend)| (label, bend / slope)).collect();
            let output = label_output(label_codes, &per_step, round);
            let id = if *leftward { -slope } else { slope };
            Unit { code: self.code.clone(), id, bias: bias(hinge.at), output }
        };
        Some(hinges.iter().map(unit).collect())
    }

    /// A gate for a word, at a place where positions are used, for ids that are at most `range` above the lowest hinge.
    fn new(word: &Halfspace, place: Option<&Halfspace>, range: f64) -> Self {
        let parts = || std::iter::once(word).chain(place);
        let drop = parts().map(|h| 2.0 * h.margin).fold(f64::INFINITY, f64::min);
        // As steep as the drop allows, with some room for rounding: the steeper, the less rounding of the gate matters.
        let slope = (0.9 * drop / range).clamp(LEAST_SLOPE, 1.0 / LEAST_SLOPE);
        Self {
            code: parts().flat_map(|h| &h.normal).copied().collect(),
            own: parts().map(|h| h.threshold + h.margin).sum(),
            slope,
        }
    }
}

/// Slopes stay within what double precision holds.
const LEAST_SLOPE: f64 = 1e-270;

/// Some columns of a matrix.
fn columns(rows: &Matrix<f64>, columns: std::ops::Range<usize>) -> Matrix<f64> {
    let data = rows.iter_rows().flat_map(|row| &row[columns.clone()]).copied().collect();
    Matrix::new(rows.rows, columns.len(), data)
}
