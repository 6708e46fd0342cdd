//! The hidden units that may fire for one word at one place: hinges along the id, sorted by where they open.
//!
//! What all units add up to for the ids of an interval is read from sums over those that certainly fire, which stand first in
//! their order, and from the few that open near the interval, which are looked at one by one.

use std::cell::OnceCell;

use super::along::{Effect, Ids};
use crate::arithmetic::float_model::{DOUBLE, FloatFormat, Up, sum_above, sum_below};
use crate::memorize::gated::Unit;
use crate::memorize::gated::stored::Stored;
use crate::memorize::gated::token_units::OpenUnit;

/// A word at a place, with the stored units that may fire for it.
pub struct TokenLines<'a> {
    pub stored: &'a Stored,
    pub format: FloatFormat,
    /// What stands in the coordinates of labels without any unit.
    constant: &'a [f64],
    code: Vec<f64>,
    range: Ids,
    pub lines: Vec<Line<'a>>,
    /// Those that open to the right, and those that open to the left, whose ids are mirrored.
    opening: [Opening; 2],
    /// All others.
    rest: Vec<usize>,
    /// How far a sum over lines is off in double precision, per size of its terms; and what may be lost below the smallest number.
    rounding: (Up, Up),
}

/// A unit that may fire for some id of the range.
pub struct Line<'a> {
    pub unit: &'a Unit,
    /// What it computes before the ReLU at id 0, nearly.
    start: f64,
    /// How far what a program computes can be from `start` plus the weight times the id, for every id of the range.
    error: Up,
    /// What it adds to coordinates of labels, where that is not 0.
    outputs: Vec<(usize, f64)>,
    gains: OnceCell<Gains>,
    effects: OnceCell<Vec<Effect>>,
}

/// What a unit adds to the score of each label, nearly, and the sizes of the terms of that.
pub struct Gains {
    pub of_label: Vec<f64>,
    pub sizes: Vec<f64>,
}

/// Units that open in one direction.
#[derive(Default)]
struct Opening {
    /// Their numbers, in the order of the ids from which on they certainly fire; and these ids.
    lines: Vec<usize>,
    fires: Vec<f64>,
    /// The ids up to which each certainly does not fire, and the least of these for it and all that follow.
    shut: Vec<f64>,
    first_shut: Vec<f64>,
    /// Sums over the first of them, for each number of them: one for each coordinate of labels.
    sums: Vec<CoordinateSum>,
}

/// What units that fire add to a coordinate: linear in the id.
#[derive(Debug, Clone, Copy)]
struct CoordinateSum {
    /// At id 0, and per unit of the id: what is added, and its terms without signs of outputs.
    added: (f64, f64),
    size: (f64, f64),
    /// The sizes of the terms of both.
    own: (Up, Up),
    /// How far the units' own errors move it.
    moved: Up,
}

/// What units add up to in the coordinates of labels, for the ids of an interval.
#[derive(Clone)]
pub struct PartialSums<'b, 'a> {
    ids: Ids,
    /// In each coordinate at both ends of the interval, without the units that may or may not fire.
    pub ends: Vec<[f64; 2]>,
    constant: &'b [f64],
    /// Sums over units that fire for all ids of the interval: those that open to the right, and to the left.
    firing: [&'b [CoordinateSum]; 2],
    rounding: (Up, Up),
    /// Units that were looked at, the most each can compute, and whether it certainly fires for all ids.
    looked: Vec<(&'b Line<'a>, Up, bool)>,
    /// Those of them that may or may not fire.
    pub doubtful: Vec<(&'b Line<'a>, Up)>,
}

/// How what units add up to in a coordinate is bounded.
#[derive(Debug, Clone, Copy)]
pub struct CoordinateBound {
    /// The absolute values of what is added up: as a program does, and as is done here.
    pub sum: Up,
    pub own: Up,
    /// How far the units' own errors move it.
    pub moved: Up,
}

impl<'a> TokenLines<'a> {
    /// A model at a word and a place, for the ids of `range`.
    pub fn new(stored: &'a Stored, (word, place): (u32, usize), range: Ids, format: FloatFormat) -> Self {
        let place = if stored.places.cols == 0 { &[][..] } else { stored.places.row(place) };
        let code = [stored.words.row(word as usize), place].concat();
        let constant = stored.carried.row(word as usize);
        let (opening, rounding) = (Default::default(), (Up::ZERO, Up::ZERO));
        let mut token =
            Self { stored, format, constant, code, range, lines: Vec::new(), opening, rest: Vec::new(), rounding };
        token.lines = stored.units.iter().filter_map(|unit| token.line(unit)).collect();
        token.sort();
        token
    }

    /// A unit as a line; none where it certainly does not fire for any id of the range.
    pub fn line<'b>(&self, unit: &'b Unit) -> Option<Line<'b>> {
        if !may_fire(unit, &self.code, self.range) {
            return None;
        }
        let open = OpenUnit::new(unit, &self.code);
        let (before, error) = open.before(self.range, &self.format);
        if stays_shut(before, error) {
            return None;
        }
        let outputs = unit.output.iter().copied().enumerate().filter(|&(_, o)| o != 0.0).collect();
        Some(Line { unit, start: open.start, error, outputs, gains: OnceCell::new(), effects: OnceCell::new() })
    }

    fn sort(&mut self) {
        let mut opening: [Vec<(f64, f64, usize)>; 2] = Default::default();
        for (i, line) in self.lines.iter().enumerate() {
            match line.opens() {
                Some((leftward, shut, fires)) => opening[usize::from(leftward)].push((fires, shut, i)),
                None => self.rest.push(i),
            }
        }
        self.opening = opening.map(|list| Opening::new(list, &self.lines, self.constant.len()));
        // A product for each line, their sum, a product with the id, and one more sum.
        let steps = self.lines.len() + 8;
        self.rounding = (DOUBLE.gamma(steps), Up::count(2 * steps) * Up::new(DOUBLE.subnormal()));
    }

    /// What the stored units add up to for the ids of an interval.
    pub fn sums(&self, ids: Ids) -> PartialSums<'_, 'a> {
        let mut sums = PartialSums::new(ids, self.constant, self.rounding);
        for (opening, leftward) in self.opening.iter().zip([false, true]) {
            let (from, to) = if leftward { (-ids.1, -ids.0) } else { ids };
            let fire = opening.fires.partition_point(|&fires| fires <= from);
            sums.add_firing(opening.of_first(fire, self.constant.len()), leftward);
            for i in (fire..opening.lines.len()).take_while(|&i| opening.first_shut[i] < to) {
                if opening.shut[i] < to {
                    sums.add(&self.lines[opening.lines[i]]);
                }
            }
        }
        self.rest.iter().for_each(|&i| sums.add(&self.lines[i]));
        sums
    }

    /// The same, unit by unit: its bounds are a little closer.
    pub fn sums_one_by_one(&self, ids: Ids) -> PartialSums<'_, 'a> {
        let mut sums = PartialSums::new(ids, self.constant, self.rounding);
        self.lines.iter().for_each(|line| sums.add(line));
        sums
    }
}

impl Line<'_> {
    /// What it computes before the ReLU at both ends of an interval, but for its error.
    fn before(&self, (low, high): Ids) -> [f64; 2] {
        [self.start + self.unit.id * low, self.start + self.unit.id * high]
    }

    /// The size of what it adds to a coordinate of labels; none where that is 0.
    fn output(&self, coordinate: usize) -> Option<Up> {
        self.outputs.iter().find(|&&(c, _)| c == coordinate).map(|&(_, o)| Up::size(o))
    }

    /// Whether it may fire for an id of an interval.
    pub fn may_fire(&self, ids: Ids) -> bool {
        !stays_shut(self.before(ids), self.error)
    }

    /// The id at which it begins or ends to fire, and how far rounding moves that; none where there is no such id.
    pub fn bend(&self) -> Option<(f64, f64)> {
        let slope = self.unit.id;
        let (at, off) = (-self.start / slope, self.error.get() / slope.abs());
        (slope != 0.0 && at.is_finite() && off.is_finite()).then_some((at, off))
    }

    /// Whether it opens to the left, where ids count with the other sign; the id up to which it certainly does not fire, and the
    /// one from which on it certainly does. None where these were not found.
    fn opens(&self) -> Option<(bool, f64, f64)> {
        let error = self.error.get();
        let value = |id: f64| self.start + self.unit.id * id;
        if self.unit.id == 0.0 {
            return (sum_below(self.start, -error) >= 0.0).then_some((false, f64::NEG_INFINITY, f64::NEG_INFINITY));
        }
        let leftward = self.unit.id < 0.0;
        let mirrored = |id: f64| if leftward { -id } else { id };
        let (at, off) = self.bend()?;
        let (at, step) = (mirrored(at), BEND * off.max(f64::EPSILON * at.abs()));
        // Computed values are monotone in the id, so that what holds at one id does at all further ones.
        let tries = || [1.0, 2.0, 4.0].into_iter();
        let fires = tries().map(|n| at + n * step).find(|&id| sum_below(value(mirrored(id)), -error) >= 0.0)?;
        let shut = tries().map(|n| at - n * step).find(|&id| sum_above(value(mirrored(id)), error) <= 0.0)?;
        Some((leftward, shut, fires))
    }

    /// What it adds to the score of each label.
    pub fn gains(&self, stored: &Stored) -> &Gains {
        let gain = |row: &[f64]| self.outputs.iter().map(|&(c, o)| row[c] * o).sum::<f64>();
        let size = |row: &[f64]| self.outputs.iter().map(|&(c, o)| (row[c] * o).abs()).sum::<f64>();
        self.gains.get_or_init(|| Gains {
            of_label: stored.head.iter_rows().map(gain).collect(),
            sizes: stored.head.iter_rows().map(size).collect(),
        })
    }

    /// What the score of each label can do when it fires.
    pub fn effects(&self, stored: &Stored) -> &[Effect] {
        let effect = |row: &[f64]| {
            let mut effect = Effect::default();
            for &(c, o) in self.outputs.iter().filter(|&&(c, _)| row[c] != 0.0) {
                // Not by the product, which may underflow.
                let positive = (row[c] > 0.0) == (o > 0.0);
                effect.rises |= positive;
                effect.falls |= !positive;
            }
            effect
        };
        self.effects.get_or_init(|| stored.head.iter_rows().map(effect).collect())
    }
}

/// Whether a unit with these values at the ends of an interval, but for an error, certainly does not fire in it. Of what is not a
/// number nothing is certain.
fn stays_shut(before: [f64; 2], error: Up) -> bool {
    before.iter().all(|&before| sum_above(before, error.get()) <= 0.0)
}

/// How far from a bend a unit is looked at closely, over how far rounding moves it.
pub const BEND: f64 = 1.01;

impl Opening {
    /// Units by the ids from which on they fire and up to which they do not, and their numbers.
    fn new(mut list: Vec<(f64, f64, usize)>, lines: &[Line], width: usize) -> Self {
        list.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
        let zero = CoordinateSum { added: (0.0, 0.0), size: (0.0, 0.0), own: (Up::ZERO, Up::ZERO), moved: Up::ZERO };
        let mut last = vec![zero; width];
        let mut sums = last.clone();
        for &(_, _, i) in &list {
            let line = &lines[i];
            line.outputs.iter().for_each(|&(c, o)| last[c].add(o, line));
            sums.extend_from_slice(&last);
        }
        let shut: Vec<f64> = list.iter().map(|line| line.1).collect();
        let mut first_shut = shut.clone();
        for i in (1..first_shut.len()).rev() {
            first_shut[i - 1] = first_shut[i - 1].min(first_shut[i]);
        }
        let (fires, lines) = list.iter().map(|line| (line.0, line.2)).unzip();
        Self { lines, fires, shut, first_shut, sums }
    }

    fn of_first(&self, count: usize, width: usize) -> &[CoordinateSum] {
        &self.sums[count * width..(count + 1) * width]
    }
}

impl CoordinateSum {
    fn add(&mut self, output: f64, line: &Line) {
        let (start, slope, size) = (line.start, line.unit.id, output.abs());
        self.added = (self.added.0 + output * start, self.added.1 + output * slope);
        self.size = (self.size.0 + size * start, self.size.1 + size * slope);
        let size = Up::new(size);
        self.own = (self.own.0 + size * Up::size(start), self.own.1 + size * Up::size(slope));
        self.moved = self.moved + size * line.error;
    }
}

impl<'b, 'a> PartialSums<'b, 'a> {
    fn new(ids: Ids, constant: &'b [f64], rounding: (Up, Up)) -> Self {
        let ends = constant.iter().map(|&x| [x, x]).collect();
        Self { ids, ends, constant, firing: [&[]; 2], rounding, looked: Vec::new(), doubtful: Vec::new() }
    }

    /// Units that fire for all ids of the interval.
    fn add_firing(&mut self, sums: &'b [CoordinateSum], leftward: bool) {
        let (low, high) = self.ids;
        for (end, sum) in self.ends.iter_mut().zip(sums) {
            end[0] += sum.added.0 + sum.added.1 * low;
            end[1] += sum.added.0 + sum.added.1 * high;
        }
        self.firing[usize::from(leftward)] = sums;
    }

    /// One unit.
    pub fn add(&mut self, line: &'b Line<'a>) {
        let before = line.before(self.ids);
        if stays_shut(before, line.error) {
            return;
        }
        let error = line.error.get();
        // What is not a number stays so.
        let most =
            before.map(|before| sum_above(before, error)).map(|most| Up::new(if most < 0.0 { 0.0 } else { most }));
        let (most, certain) = (most[0].max(most[1]), before.iter().all(|&before| sum_below(before, -error) >= 0.0));
        self.looked.push((line, most, certain));
        if !certain {
            self.doubtful.push((line, most));
            return;
        }
        for &(c, o) in &line.outputs {
            self.ends[c].iter_mut().zip(before).for_each(|(end, h)| *end += o * h);
        }
    }

    /// How a coordinate is bounded.
    pub fn bound(&self, coordinate: usize) -> CoordinateBound {
        let constant = Up::size(self.constant[coordinate]);
        let mut bound = CoordinateBound { sum: constant, own: constant, moved: Up::ZERO };
        let (low, high) = self.ids;
        let reach = Up::size(low).max(Up::size(high));
        let lost = self.rounding.1 * (Up::count(1) + reach);
        // The most that units compute is at the end to which they open.
        for (sum, open_end) in self.firing.iter().zip([high, low]) {
            let Some(sum) = sum.get(coordinate) else { continue };
            let terms = sum.own.0 + sum.own.1 * reach;
            // What is exactly 0 stays so.
            let off = if terms == Up::ZERO { Up::ZERO } else { self.rounding.0 * terms + lost };
            let most = sum.size.0 + sum.size.1 * open_end;
            // What is not a number stays so.
            let most = Up::new(if most < 0.0 { 0.0 } else { most });
            bound.own = bound.own + terms + off;
            bound.sum = bound.sum + most + off + sum.moved;
            bound.moved = bound.moved + sum.moved + off;
        }
        for &(line, most, certain) in &self.looked {
            let Some(output) = line.output(coordinate) else { continue };
            bound.sum = bound.sum + output * most;
            if certain {
                bound.own = bound.own + output * most;
                bound.moved = bound.moved + output * line.error;
            }
        }
        bound
    }
}

/// Whether a unit may fire for an id of a range, by a rough bound: a ten-thousandth of the sizes of the terms is far more than any
/// rounding of sums of so few. Sums of more terms, or of numbers that may overflow, are looked at more closely.
fn may_fire(unit: &Unit, code: &[f64], (low, high): Ids) -> bool {
    let (mut gate, mut size) = (unit.bias, unit.bias.abs());
    for (w, x) in unit.code.iter().zip(code) {
        gate += w * x;
        size += (w * x).abs();
    }
    let id = (unit.id * low).max(unit.id * high);
    size += (unit.id * low).abs().max((unit.id * high).abs());
    code.len() > 1000 || !(1e-30..1e30).contains(&size) || gate + id > -1e-4 * size
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::site::Site;
    use crate::{Dataset, Memorizer, Precision};
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt as _, SeedableRng as _};

    /// Sums over sorted units hold what units say one by one, for intervals of all widths, at bends and beside them.
    #[test]
    fn sorted_as_one_by_one() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let sequence = |_| (0..5).map(|_| format!("w{}", random.random_range(0..4))).collect::<Vec<_>>();
        let tokens: Vec<Vec<String>> = (0..200).map(sequence).collect();
        let mut label = || tokens.iter().map(|s| s.iter().map(|_| random.random_range(0..3)).collect()).collect();
        let labels: Vec<Vec<usize>> = label();
        let name = |rows: &[Vec<usize>]| rows.iter().map(|r| r.iter().map(|l| format!("L{l}")).collect()).collect();
        let names: Vec<Vec<String>> = name(&labels);
        let data = Dataset::from_sequences(&tokens, &names).unwrap();
        let (mut firing, mut doubtful) = (0, 0);
        for precision in [Precision::F32, Precision::F64] {
            let model = Memorizer::new().precision(precision).candidates(4).compile(&data).unwrap().model().clone();
            let site = Site::new(&model).unwrap();
            for pair in (0..4).flat_map(|word| (0..site.stored.places.rows).map(move |place| (word, place))) {
                let token = TokenLines::new(&site.stored, pair, site.range, site.format);
                let mut ids: Vec<f64> = vec![site.range.0, site.range.1];
                ids.extend(
                    token.lines.iter().filter_map(Line::bend).flat_map(|(at, off)| [at - BEND * off, at, at + off]),
                );
                ids.retain(|id| site.range.0 <= *id && *id <= site.range.1);
                for _ in 0..200 {
                    let low = ids[random.random_range(0..ids.len())];
                    let width = 10_f64.powi(random.random_range(-12..2)) * f64::from(random.random_range(0..3_u8));
                    let at = (low, (low + width).min(site.range.1));
                    let (sums, one) = (token.sums(at), token.sums_one_by_one(at));
                    let units = |sums: &PartialSums| {
                        let mut units: Vec<*const Unit> =
                            sums.doubtful.iter().map(|(l, _)| &raw const *l.unit).collect();
                        units.sort();
                        units
                    };
                    assert_eq!(units(&sums), units(&one));
                    doubtful += sums.doubtful.len();
                    for c in 0..sums.ends.len() {
                        let (a, b) = (sums.bound(c), one.bound(c));
                        let off = (a.moved + DOUBLE.sum_error(token.lines.len() + 8, a.own + b.own)).get();
                        assert!(sums.ends[c].iter().zip(one.ends[c]).all(|(x, y)| (x - y).abs() <= off));
                        assert!(
                            a.sum.get() >= b.sum.get() * (1.0 - 1e-9) && a.moved.get() >= b.moved.get() * (1.0 - 1e-9)
                        );
                        // Not much looser, either.
                        assert!(a.sum.get() <= b.sum.get() * (1.0 + 1e-6) + 1e-6 * a.own.get());
                        firing += usize::from(a.own.get() > 0.0);
                    }
                }
            }
        }
        assert!(firing > 1000 && doubtful > 100, "{firing} {doubtful}");
    }

    /// A unit whose sum overflows to what is not a number may fire, for all that is known.
    #[test]
    fn what_is_not_a_number_may_fire() {
        let data = Dataset::from_sequences(&[["a", "b"], ["b", "b"]], &[["X", "Y"], ["Y", "Z"]]).unwrap();
        let model = Memorizer::new().precision(Precision::F64).compile(&data).unwrap().model().clone();
        let site = Site::new(&model).unwrap();
        let token = TokenLines::new(&site.stored, (0, 0), site.range, site.format);
        let output = vec![1.0; site.stored.head.cols];
        for (weight, id) in [(f64::MAX, -f64::MAX), (-f64::MAX, f64::MAX), (f64::MAX, 0.0), (f64::MAX, f64::MAX)] {
            // Weights of both signs for the word's own entries: sums of either sign overflow on the way.
            let code: Vec<f64> =
                token.code.iter().enumerate().map(|(i, x)| if i % 2 == 0 { weight * x } else { -weight * x }).collect();
            let unit = Unit { code: code.into(), id, bias: 0.0, output: output.clone() };
            let line = token.line(&unit).expect("it may fire");
            assert!(line.may_fire(site.range));
            let mut sums = PartialSums::new(site.range, token.constant, token.rounding);
            sums.add(&line);
            assert_eq!(sums.doubtful.len(), 1);
            assert_eq!(sums.doubtful[0].1, Up::UNKNOWN);
        }
        assert!(!stays_shut([f64::NAN, -1.0], Up::ZERO) && !stays_shut([-1.0, f64::NAN], Up::ZERO));
        assert!(stays_shut([-1.0, -2.0], Up::ZERO));
    }
}
