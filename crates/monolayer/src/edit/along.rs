//! One word at one place, along the id: which labels can win among the ids of an interval, whatever the order of summation.
//!
//! At a fixed word and place every hidden unit is a hinge along the id, so scores are linear between hinges. Bounds are rounded
//! outward, and each label has a bound of its own: a unit that moves one label's score far leaves those of others as they are.

use super::lines::{Line, PartialSums, TokenLines};
use crate::arithmetic::float_model::{DOUBLE, FloatFormat, Up, sum_above};
use crate::memorize::gated::Unit;

/// An interval of ids, both ends included.
pub type Ids = (f64, f64);

/// A model at one word and place, with more units.
pub struct Along<'a> {
    token: &'a TokenLines<'a>,
    more: Vec<Line<'a>>,
    /// What rounds the coordinates of labels, and the score of each label.
    coordinates: SumRounding,
    scores: Vec<SumRounding>,
}

/// What the scores are for the ids of an interval.
struct IntervalScores<'b, 'a> {
    /// At both ends, without the units that may or may not fire.
    ends: [Vec<f64>; 2],
    /// How far each score can be off, but for these units.
    error: Vec<Up>,
    /// These units, and the most each can compute.
    doubtful: Vec<(&'b Line<'a>, Up)>,
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
        let scores = token.stored.head.iter_rows().map(|row| SumRounding::new(&token.format, terms(row))).collect();
        Self { token, more, coordinates, scores }
    }

    /// Where units begin or end to fire, each with how far rounding moves that place.
    pub fn bends(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.token.lines.iter().chain(&self.more).filter_map(Line::bend)
    }

    /// The labels that can win for ids of an interval.
    pub fn rivals(&self, ids: Ids) -> Rivals {
        self.rivals_of(&self.scores(self.token.sums(ids, &self.more)))
    }

    /// The same by slower, closer bounds.
    pub fn rivals_one_by_one(&self, ids: Ids) -> Rivals {
        self.rivals_of(&self.scores(self.token.sums_one_by_one(ids, &self.more)))
    }

    fn rivals_of(&self, scores: &IntervalScores) -> Rivals {
        let middle = |l: usize| 0.5 * scores.ends[0][l] + 0.5 * scores.ends[1][l];
        let labels = self.scores.len();
        let label = (1..labels).fold(0, |best, l| if middle(l) > middle(best) { l } else { best });
        // What is not a number is not below 0.
        let loses = |l: usize| self.most_above(scores, l, label) < 0.0;
        let all = (0..labels).filter(|&l| l == label || !loses(l)).collect();
        Rivals { label, all }
    }

    /// The most that the score of each label can be above that of another, for ids of an interval.
    pub fn most_over(&self, ids: Ids, other: usize) -> Vec<f64> {
        let scores = self.scores(self.token.sums_one_by_one(ids, &self.more));
        (0..self.scores.len()).map(|label| self.most_above(&scores, label, other)).collect()
    }

    fn most_above(&self, scores: &IntervalScores, label: usize, other: usize) -> f64 {
        let [a, b] = [0, 1].map(|end| scores.ends[end][label] - scores.ends[end][other]);
        let gained = |&(line, most): &(&Line, Up)| {
            let gains = line.gains(self.token.stored);
            let slack = SLACK * (gains.sizes[label] + gains.sizes[other]);
            Up::new((gains.of_label[label] - gains.of_label[other] + slack).max(0.0)) * most
        };
        let gained: Up = scores.doubtful.iter().map(gained).sum();
        sum_above(a.max(b).next_up(), (scores.error[label] + scores.error[other] + gained).get())
    }

    fn scores<'b>(&'b self, sums: PartialSums<'b, 'a>) -> IntervalScores<'b, 'a> {
        let off = |c: usize| sums.moved[c] + self.coordinates.of(sums.sum[c], sums.own[c]);
        let coordinate: Vec<Up> = (0..sums.sum.len()).map(off).collect();
        let error = (0..self.scores.len()).map(|l| self.score_error(l, &sums.sum, &coordinate)).collect();
        IntervalScores { ends: sums.ends.map(|end| self.read_out(&end)), error, doubtful: sums.doubtful }
    }

    fn score_error(&self, label: usize, sum: &[Up], coordinate: &[Up]) -> Up {
        let (mut moved, mut size) = (Up::ZERO, Up::ZERO);
        for (i, &c) in self.token.stored.head.row(label).iter().enumerate().filter(|&(_, &c)| c != 0.0) {
            moved = moved + Up::size(c) * coordinate[i];
            size = size + Up::size(c) * (sum[i] + coordinate[i]);
        }
        let size = size + Up::size(self.token.stored.bias[label]);
        moved + self.scores[label].of(size, size)
    }

    fn read_out(&self, output: &[f64]) -> Vec<f64> {
        let score = |(row, bias): (&[f64], &f64)| row.iter().zip(output).map(|(c, o)| c * o).sum::<f64>() + bias;
        self.token.stored.head.iter_rows().zip(&self.token.stored.bias).map(score).collect()
    }

    /// What the score of each label can do for ids of an interval through some of the units that were added.
    pub fn effects(&self, ids: Ids, of: impl Fn(&Unit) -> bool) -> Vec<Effect> {
        let mut effects = vec![Effect::default(); self.scores.len()];
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
