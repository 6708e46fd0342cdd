//! One word at one place, along the id: which labels can win among the ids of an interval, whatever the order of summation.
//!
//! At a fixed word and place every hidden unit is a hinge along the id, so scores are linear between hinges. Bounds are rounded
//! outward, and each label has a bound of its own: a unit that moves one label's score far leaves those of others as they are.

use crate::arithmetic::float_model::{DOUBLE, FloatFormat, Up, sum_above, sum_below};
use crate::memorize::gated::Unit;
use crate::memorize::gated::stored::Stored;
use crate::memorize::gated::token_units::OpenUnit;

/// An interval of ids, both ends included.
pub type Ids = (f64, f64);

/// A model at one word and place.
pub struct Along<'a> {
    stored: &'a Stored,
    /// What stands in the coordinates of labels without any unit.
    constant: &'a [f64],
    lines: Vec<Line<'a>>,
    format: FloatFormat,
}

/// A unit that may fire for some id of the range.
struct Line<'a> {
    unit: &'a Unit,
    /// What it computes before the ReLU at id 0, nearly.
    start: f64,
    /// How far what a program computes can be from `start` plus the weight times the id, for every id of the range.
    error: Up,
    /// What it adds to coordinates of labels, where that is not 0.
    outputs: Vec<(usize, f64)>,
    /// What it adds to the score of each label, nearly.
    gains: Vec<f64>,
    /// The sizes of the terms of a gain.
    gain_sizes: Vec<f64>,
}

/// What the scores are for the ids of an interval.
struct IntervalScores {
    /// At both ends, without the units that may or may not fire.
    ends: [Vec<f64>; 2],
    /// How far each score can be off, but for these units.
    error: Vec<Up>,
    /// These units, and the most each can compute.
    doubtful: Vec<(usize, Up)>,
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

impl Line<'_> {
    /// What it computes before the ReLU at both ends of an interval, but for its error.
    fn before(&self, (low, high): Ids) -> [f64; 2] {
        [self.start + self.unit.id * low, self.start + self.unit.id * high]
    }
}

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
    /// A model's units, those that may fire for an id of `range`, at a word and a place.
    pub fn new(
        stored: &'a Stored,
        units: impl Iterator<Item = &'a Unit>,
        (word, place): (u32, usize),
        range: Ids,
        format: FloatFormat,
    ) -> Self {
        let code = code(stored, word, place);
        let mut along = Self { stored, constant: stored.carried.row(word as usize), lines: Vec::new(), format };
        for unit in units.filter(|unit| may_fire(unit, &code, range)) {
            along.add(unit, &code, range);
        }
        along
    }

    fn add(&mut self, unit: &'a Unit, code: &[f64], range: Ids) {
        let open = OpenUnit::new(unit, code);
        let (before, error) = open.before(range, &self.format);
        if sum_above(before[0].max(before[1]), error.get()) <= 0.0 {
            return;
        }
        let start = open.start;
        let gain = |row: &[f64]| row.iter().zip(&unit.output).map(|(c, o)| c * o).sum::<f64>();
        let size = |row: &[f64]| row.iter().zip(&unit.output).map(|(c, o)| (c * o).abs()).sum::<f64>();
        let gains = self.stored.head.iter_rows().map(gain).collect();
        let gain_sizes = self.stored.head.iter_rows().map(size).collect();
        let outputs = unit.output.iter().copied().enumerate().filter(|&(_, o)| o != 0.0).collect();
        self.lines.push(Line { unit, start, error, outputs, gains, gain_sizes });
    }

    /// Whether any unit may fire.
    pub fn can_fire(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Where units begin or end to fire, each with how far rounding moves that place.
    pub fn bends(&self) -> Vec<(f64, f64)> {
        let bend = |line: &Line| {
            let slope = line.unit.id;
            let (at, off) = (-line.start / slope, line.error.get() / slope.abs());
            (slope != 0.0 && at.is_finite() && off.is_finite()).then_some((at, off))
        };
        self.lines.iter().filter_map(bend).collect()
    }

    /// The labels that can win for ids of an interval.
    pub fn rivals(&self, ids: Ids) -> Rivals {
        let scores = self.scores(ids);
        let middle = |l: usize| 0.5 * scores.ends[0][l] + 0.5 * scores.ends[1][l];
        let labels = self.stored.bias.len();
        let label = (1..labels).fold(0, |best, l| if middle(l) > middle(best) { l } else { best });
        // What is not a number is not below 0.
        let loses = |l: usize| self.most_above(&scores, l, label) < 0.0;
        let all = (0..labels).filter(|&l| l == label || !loses(l)).collect();
        Rivals { label, all }
    }

    /// The most that the score of one label can be above that of another, for ids of an interval.
    pub fn most_over(&self, ids: Ids, label: usize, other: usize) -> f64 {
        self.most_above(&self.scores(ids), label, other)
    }

    fn most_above(&self, scores: &IntervalScores, label: usize, other: usize) -> f64 {
        let [a, b] = [0, 1].map(|end| scores.ends[end][label] - scores.ends[end][other]);
        let gained = |&(i, most): &(usize, Up)| {
            let line = &self.lines[i];
            let slack = SLACK * (line.gain_sizes[label] + line.gain_sizes[other]);
            Up::new((line.gains[label] - line.gains[other] + slack).max(0.0)) * most
        };
        let gained: Up = scores.doubtful.iter().map(gained).sum();
        sum_above(a.max(b).next_up(), (scores.error[label] + scores.error[other] + gained).get())
    }

    fn scores(&self, ids: Ids) -> IntervalScores {
        let width = self.constant.len();
        let mut ends = [self.constant.to_vec(), self.constant.to_vec()];
        // What a coordinate adds up, in absolute values: as a program does, and as is done here; and how far units' own errors
        // move it.
        let mut sum: Vec<Up> = self.constant.iter().map(|&x| Up::size(x)).collect();
        let mut own = sum.clone();
        let mut moved = vec![Up::ZERO; width];
        let mut doubtful = Vec::new();
        for (i, line) in self.lines.iter().enumerate() {
            let (before, error) = (line.before(ids), line.error);
            let lowest = sum_below(before[0].min(before[1]), -error.get());
            let most = sum_above(before[0].max(before[1]), error.get());
            if most <= 0.0 {
                continue;
            }
            let most = Up::new(most);
            let certain = lowest >= 0.0;
            for &(c, o) in &line.outputs {
                sum[c] = sum[c] + Up::size(o) * most;
                if certain {
                    ends.iter_mut().zip(before).for_each(|(end, h)| end[c] += o * h);
                    own[c] = own[c] + Up::size(o) * most;
                    moved[c] = moved[c] + Up::size(o) * error;
                }
            }
            if !certain {
                doubtful.push((i, most));
            }
        }
        // Beside the units, the token itself and the output bias are added up.
        let rounding = SumRounding::new(&self.format, self.lines.len() + 2);
        let coordinate: Vec<Up> = (0..width).map(|c| moved[c] + rounding.of(sum[c], own[c])).collect();
        let error = (0..self.stored.bias.len()).map(|l| self.score_error(l, &sum, &coordinate)).collect();
        IntervalScores { ends: ends.map(|end| self.read_out(&end)), error, doubtful }
    }

    fn score_error(&self, label: usize, sum: &[Up], coordinate: &[Up]) -> Up {
        let terms = || self.stored.head.row(label).iter().enumerate().filter(|&(_, &c)| c != 0.0);
        let moved: Up = terms().map(|(i, &c)| Up::size(c) * coordinate[i]).sum();
        let size: Up = terms().map(|(i, &c)| Up::size(c) * (sum[i] + coordinate[i])).sum();
        let (size, count) = (size + Up::size(self.stored.bias[label]), terms().count() + 1);
        moved + self.format.sum_error(count, size) + DOUBLE.sum_error(count, size)
    }

    fn read_out(&self, output: &[f64]) -> Vec<f64> {
        let score = |(row, bias): (&[f64], &f64)| row.iter().zip(output).map(|(c, o)| c * o).sum::<f64>() + bias;
        self.stored.head.iter_rows().zip(&self.stored.bias).map(score).collect()
    }

    /// For each of some units, of those that may fire for an id of an interval, what the score of each label can do when it fires.
    pub fn effects(&self, ids: Ids, labels: usize, of: impl Fn(&Unit) -> bool) -> Vec<Effect> {
        let mut effects = vec![Effect::default(); labels];
        for line in self.lines.iter().filter(|line| of(line.unit)) {
            let before = line.before(ids);
            if sum_above(before[0].max(before[1]), line.error.get()) <= 0.0 {
                continue;
            }
            for (effect, row) in effects.iter_mut().zip(self.stored.head.iter_rows()) {
                for term in row.iter().zip(&line.unit.output) {
                    // Not by the product, which may underflow.
                    let (positive, zero) = ((*term.0 > 0.0) == (*term.1 > 0.0), *term.0 == 0.0 || *term.1 == 0.0);
                    effect.rises |= !zero && positive;
                    effect.falls |= !zero && !positive;
                }
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

/// What a token has in the coordinates of codes.
pub fn code(stored: &Stored, word: u32, place: usize) -> Vec<f64> {
    let place = if stored.places.cols == 0 { &[][..] } else { stored.places.row(place) };
    [stored.words.row(word as usize), place].concat()
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
