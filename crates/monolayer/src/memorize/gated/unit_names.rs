//! What the hidden units of a gated model do, read off its weights, whatever construction made them.

use super::Unit;
use super::off_units::Token;
use super::proof::LabelProver;
use super::stored::Stored;
use crate::arithmetic::kernels::{Real, dot};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::model::Model;
use crate::model::names::{Coordinate, Firing, ModelNames, NamedUnit, UnitKind};

/// Up to so many labels are listed however little a unit adds to them.
const ALL_LABELS: usize = 16;

/// Names for a model that was looked at by a prover, for data with these ids; nothing for a model that reads or writes elsewhere than
/// gated ones do.
pub fn names<R: Real>(prover: &LabelProver, model: &Model<R>, context_ids: &[f64]) -> Option<ModelNames> {
    let (stored, tokens) = prover.open_units()?;
    let range = |(low, high): (f64, f64), &id: &f64| (low.min(id), high.max(id));
    let ids = context_ids.iter().fold((f64::INFINITY, f64::NEG_INFINITY), range);
    let mut firing = vec![Vec::new(); stored.units.len()];
    for (token, units) in tokens {
        units.iter().for_each(|&j| firing[j as usize].push(token));
    }
    let words = model.words.as_ref()?.vocabulary.names();
    let namer = UnitNamer { stored, words, labels: &model.head.as_ref()?.labels };
    let units = parallel::map(firing.len().min(stored.units.len()), |j| namer.unit(j, &stored.units[j], &firing[j]));
    Some(ModelNames::new([ids.0, ids.1], namer.coordinates(), units))
}

/// Names units of a model.
pub struct UnitNamer<'a> {
    /// Its numbers.
    pub stored: &'a Stored,
    /// Its words.
    pub words: &'a [String],
    /// Its labels.
    pub labels: &'a [String],
}

impl UnitNamer<'_> {
    /// A unit, from the tokens for which it is not proved shut.
    pub fn unit(&self, j: usize, unit: &Unit, tokens: &[Token]) -> NamedUnit {
        let (word, place) = unit.code.split_at(self.stored.words.cols);
        let [reads_word, reads_place] = [word, place].map(|weights| weights.iter().any(|&w| w != 0.0));
        let mut fires: Vec<(u32, usize, f64)> = Vec::new();
        for token in tokens {
            let (w, k) = (token.word as usize, token.place);
            let gate = dot(word, self.stored.words.row(w)) + dot(place, self.stored.places.row(k)) + unit.bias;
            let value = if unit.id == 0.0 { gate } else { 0.0 - gate / unit.id };
            let open = match unit.id {
                0.0 => value > 0.0,
                slope if slope > 0.0 => value < token.ids.1,
                _ => value > token.ids.0,
            };
            if open {
                fires.push((if reads_word { token.word } else { 0 }, if reads_place { k } else { 0 }, value));
            }
        }
        fires.sort_unstable_by_key(|&(word, place, _)| (word, place));
        fires.dedup_by_key(|&mut (word, place, _)| (word, place));
        let firing = |&(w, k, value): &(u32, usize, f64)| Firing {
            word: reads_word.then(|| self.words[w as usize].clone()),
            place: reads_place.then_some(k),
            id_above: (unit.id > 0.0).then_some(value),
            id_below: (unit.id < 0.0).then_some(value),
        };
        let ends = |ends: [f64; 2], &(_, _, value): &(u32, usize, f64)| [ends[0].min(value), ends[1].max(value)];
        let ends = fires.iter().fold([f64::INFINITY, f64::NEG_INFINITY], ends);
        let kind = match (unit.id == 0.0, reads_place) {
            (true, false) => UnitKind::Word,
            (true, true) => UnitKind::Place,
            (false, _) => UnitKind::Context,
        };
        let (adds, adds_others) = self.adds(unit);
        let activation = (unit.id == 0.0 && !fires.is_empty()).then_some(ends);
        NamedUnit { unit: j, kind, fires: fires.iter().map(firing).collect(), activation, adds, adds_others }
    }

    /// What a unit adds to labels, and the most that it adds to one that is not listed: where there are many, those that get
    /// less than half as much as another.
    fn adds(&self, unit: &Unit) -> (std::collections::BTreeMap<String, f64>, Option<f64>) {
        let slope = if unit.id == 0.0 { 1.0 } else { unit.id.abs() };
        let scores: Vec<f64> = self.stored.head.iter_rows().map(|row| slope * dot(row, &unit.output)).collect();
        let most = scores.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let many = scores.iter().filter(|&&x| x != 0.0).count() > ALL_LABELS;
        let listed = |x: f64| x != 0.0 && (!many || x.abs() >= most / 2.0);
        let others = scores.iter().filter(|&&x| !listed(x)).fold(0.0, |most: f64, x| most.max(x.abs()));
        let adds = self.labels.iter().zip(&scores).filter(|&(_, &x)| listed(x)).map(|(l, &x)| (l.clone(), x));
        (adds.collect(), Some(others).filter(|&x| x > 0.0))
    }

    /// What each coordinate holds.
    pub fn coordinates(&self) -> Vec<Coordinate> {
        let Stored { words, places, head, .. } = self.stored;
        let name = |names: &[String], i: usize| names[i].clone();
        let words = owners(words).map(|w| Coordinate::WordCode { word: w.map(|w| name(self.words, w)) });
        let places = owners(places).map(|place| Coordinate::PositionCode { place });
        let labels = owners(head).map(|l| Coordinate::Label { label: l.map(|l| name(self.labels, l)) });
        words.chain(places).chain([Coordinate::ContextId]).chain(labels).collect()
    }
}

/// For each column of a matrix the row that has its only entry other than 0, where there is one.
fn owners(matrix: &Matrix<f64>) -> impl Iterator<Item = Option<usize>> + '_ {
    (0..matrix.cols).map(|column| {
        let mut rows = (0..matrix.rows).filter(|&row| matrix.row(row)[column] != 0.0);
        let first = rows.next();
        first.filter(|_| rows.next().is_none())
    })
}
