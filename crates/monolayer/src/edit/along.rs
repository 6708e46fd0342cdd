//! One word at one place, along the id: which labels can win among the ids of an interval, whatever the order of summation.
//!
//! At a fixed word and place every hidden unit is a hinge along the id, so scores are linear between hinges. Bounds are rounded
//! outward, and each label has a bound of its own: a unit that moves one label's score far leaves those of others as they are.

use std::cell::OnceCell;

use super::lines::{Line, PartialSums, TokenLines};
use crate::arithmetic::float_model::{DOUBLE, FloatFormat, Up, sum_above};
use crate::memorize::gated::Unit;

/// An interval of ids, both ends included.
pub type Ids = (f64, f64);

/// A model at one word and place, with more units.
pub struct Along<'a> {
    token: &'a TokenLines<'a>,
    more: Vec<Line<'a>>,
    /// How the coordinates of labels are rounded, and the score of each label.
    coordinates: SumRounding,
    rounding: Vec<SumRounding>,
}

/// What the scores are for the ids of an interval.
struct IntervalScores<'b, 'a> {
    /// Of each label at both ends, without the units that may or may not fire.
    ends: Vec<[f64; 2]>,
    sums: PartialSums<'b, 'a>,
    /// How far each coordinate of labels can be off but for these units, and the sum of the absolute values of what it adds up; where
    /// it was asked for.
    bounds: Vec<OnceCell<(Up, Up)>>,
}

impl IntervalScores<'_, '_> {
    /// The label that wins in the middle, nearly.
    fn first(&self) -> usize {
        let middle = |l: usize| 0.5 * self.ends[l][0] + 0.5 * self.ends[l][1];
        (1..self.ends.len()).fold(0, |best, l| if middle(l) > middle(best) { l } else { best })
    }
}

/// Labels that can win, and the one that wins in the middle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rivals {
    /// The label that wins in the middle, nearly.
    pub label: usize,
    /// All labels that are not proved to lose, this one included.
    pub all: Vec<usize>,
}

impl Rivals {
    /// The label, where it is certain.
    pub fn certain(&self) -> Option<usize> {
        (self.all.len() == 1).then_some(self.label)
    }
}

/// Gains are computed in double precision: this part of the sizes of their terms is millions of times their rounding.
const SLACK: f64 = 1e-9;

/// What [`FloatFormat::sum_error`] says of sums of so many terms: in the program, and in double precision.
struct SumRounding {
    program: (Up, Up),
    own: (Up, Up),
    most: f64,
}

impl SumRounding {
    fn new(format: &FloatFormat, terms: usize) -> Self {
        let of = |format: &FloatFormat| (format.gamma(terms + 1), Up::count(terms + 1) * Up::new(format.subnormal()));
        Self { program: of(format), own: of(&DOUBLE), most: format.largest / 4.0 }
    }

    fn of(&self, sum: Up, own: Up) -> Up {
        if sum.get() > self.most {
            return Up::UNKNOWN;
        }
        self.program.0 * sum + self.program.1 + self.own.0 * own + self.own.1
    }
}

impl<'a> Along<'a> {
    /// A model at a word and a place, with more units.
    pub fn new(token: &'a TokenLines<'a>, units: impl Iterator<Item = &'a Unit>) -> Self {
        let more: Vec<Line> = units.filter_map(|unit| token.line(unit)).collect();
        // Beside the units, the token itself and the output bias are added up.
        let coordinates = SumRounding::new(&token.format, token.lines.len() + more.len() + 2);
        let terms = |row: &[f64]| row.iter().filter(|&&c| c != 0.0).count() + 1;
        let rounding = token.stored.head.iter_rows().map(|row| SumRounding::new(&token.format, terms(row))).collect();
        Self { token, more, coordinates, rounding }
    }

    /// Where units begin or end to fire, each with how far rounding moves that place.
    pub fn bends(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.token.lines.iter().chain(&self.more).filter_map(Line::bend)
    }

    /// What the units of the model without more add up to for ids of an interval.
    pub fn stored_sums(&self, ids: Ids) -> PartialSums<'a, 'a> {
        self.token.sums(ids)
    }

    /// The labels that can win for ids of an interval, by what [`Self::stored_sums`] says of it.
    pub fn rivals(&self, stored: &PartialSums<'a, 'a>) -> Rivals {
        self.rivals_of(&self.scores(stored.clone()))
    }

    /// The same by slower, closer bounds.
    pub fn rivals_one_by_one(&self, ids: Ids) -> Rivals {
        self.rivals_of(&self.scores(self.token.sums_one_by_one(ids)))
    }

    /// Whether one of some labels can win for ids of an interval.
    pub fn may_win(&self, stored: &PartialSums<'a, 'a>, mut labels: impl Iterator<Item = usize>) -> bool {
        let scores = self.scores(stored.clone());
        let first = scores.first();
        let error = self.score_error(&scores, first);
        labels.any(|l| l == first || !self.loses(&scores, l, (first, error)))
    }

    fn rivals_of(&self, scores: &IntervalScores) -> Rivals {
        let label = scores.first();
        let error = self.score_error(scores, label);
        let all = (0..self.rounding.len()).filter(|&l| l == label || !self.loses(scores, l, (label, error))).collect();
        Rivals { label, all }
    }

    /// Whether a label's score is certainly below that of another one, whose error is given.
    fn loses(&self, scores: &IntervalScores, label: usize, other: (usize, Up)) -> bool {
        // What is not a number is not below 0.
        self.most_above(scores, label, other) < 0.0
    }

    /// The most that the score of each label can be above that of another, for ids of an interval.
    pub fn most_over(&self, ids: Ids, other: usize) -> Vec<f64> {
        let scores = self.scores(self.token.sums_one_by_one(ids));
        let error = self.score_error(&scores, other);
        (0..self.rounding.len()).map(|label| self.most_above(&scores, label, (other, error))).collect()
    }

    fn most_above(&self, scores: &IntervalScores, label: usize, (other, error): (usize, Up)) -> f64 {
        let [a, b] = [0, 1].map(|end| scores.ends[label][end] - scores.ends[other][end]);
        let gained = |&(line, most): &(&Line, Up)| {
            let gains = line.gains(self.token.stored);
            let slack = SLACK * (gains.sizes[label] + gains.sizes[other]);
            let gain = gains.of_label[label] - gains.of_label[other] + slack;
            Up::new(if gain < 0.0 { 0.0 } else { gain }) * most
        };
        let gained: Up = scores.sums.doubtful.iter().map(gained).sum();
        sum_above(a.max(b).next_up(), (self.score_error(scores, label) + error + gained).get())
    }

    fn scores<'b>(&'b self, stored: PartialSums<'b, 'a>) -> IntervalScores<'b, 'a> {
        let mut sums = stored;
        self.more.iter().for_each(|line| sums.add(line));
        let score = |(row, bias): (&[f64], &f64)| {
            let mut ends = [0.0, 0.0];
            for (weight, coordinate) in row.iter().zip(&sums.ends) {
                ends[0] += weight * coordinate[0];
                ends[1] += weight * coordinate[1];
            }
            ends.map(|end| end + bias)
        };
        let ends = self.token.stored.head.iter_rows().zip(&self.token.stored.bias).map(score).collect();
        IntervalScores { ends, bounds: vec![OnceCell::new(); sums.ends.len()], sums }
    }

    /// How far the score of a label can be off, but for units that may or may not fire.
    fn score_error(&self, scores: &IntervalScores, label: usize) -> Up {
        let (mut moved, mut size) = (Up::ZERO, Up::ZERO);
        let row = self.token.stored.head.row(label).iter().enumerate();
        for (i, &weight) in row.filter(|&(_, &weight)| weight != 0.0) {
            let (off, sum) = *scores.bounds[i].get_or_init(|| {
                let bound = scores.sums.bound(i);
                (bound.moved + self.coordinates.of(bound.sum, bound.own), bound.sum)
            });
            moved = moved + Up::size(weight) * off;
            size = size + Up::size(weight) * (sum + off);
        }
        let size = size + Up::size(self.token.stored.bias[label]);
        moved + self.rounding[label].of(size, size)
    }

    /// What the score of each label can do for ids of an interval through some of the units that were added.
    pub fn effects(&self, ids: Ids, of: impl Fn(&Unit) -> bool) -> Vec<Effect> {
        let mut effects = vec![Effect::default(); self.rounding.len()];
        for line in self.more.iter().filter(|line| of(line.unit) && line.may_fire(ids)) {
            for (effect, more) in effects.iter_mut().zip(line.effects(self.token.stored)) {
                effect.rises |= more.rises;
                effect.falls |= more.falls;
            }
        }
        effects
    }
}

/// What new units can do to the score of a label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effect {
    /// It may rise.
    pub rises: bool,
    /// It may fall.
    pub falls: bool,
}
