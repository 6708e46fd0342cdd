//! What hidden units add up to for one word at one place, along the id: score margins and their rounding, in any order of
//! summation, for the ids of an interval.

use std::cell::OnceCell;

use super::Unit;
use super::stored::Stored;
use crate::arithmetic::float_model::{ANY_GRID, DOUBLE, FloatFormat, Up, grid, power, sum_above, sum_below};
use crate::arithmetic::matrix::Matrix;

/// The numbers of a model, prepared for sums of scores.
pub struct ScoreParts {
    /// The numbers.
    pub stored: Stored,
    /// The sizes of the head's rows: the largest sum of absolute values, the most terms, the largest bias.
    head: (Up, usize, Up),
    /// The columns of the head, so that the scores of all labels are summed side by side.
    columns: Matrix<f64>,
}

impl ScoreParts {
    /// Prepares the numbers of a model.
    pub fn new(stored: Stored) -> Self {
        let sizes = |row: &[f64]| row.iter().map(|&x| Up::size(x)).sum::<Up>();
        let head = (
            stored.head.iter_rows().map(sizes).fold(Up::ZERO, Up::max),
            stored.head.iter_rows().map(|row| row.iter().filter(|&&x| x != 0.0).count()).max().unwrap_or(0),
            stored.bias.iter().map(|&b| Up::size(b)).fold(Up::ZERO, Up::max),
        );
        let columns = Matrix::from_fn(stored.head.cols, stored.head.rows, |c, l| stored.head.row(l)[c]);
        Self { stored, head, columns }
    }
}

/// A token (word, place) with the units that can fire for it in some context.
pub struct TokenUnits<'a> {
    parts: &'a ScoreParts,
    open: Vec<OpenUnit<'a>>,
    /// What stands in the coordinates of labels without any unit.
    constant: &'a [f64],
    /// Whether one of them reads the id.
    pub reads_id: bool,
    /// What each open unit adds to the score of each label, nearly; for those that were asked for.
    gains: Vec<OnceCell<Vec<f64>>>,
}

/// A unit that is not proved shut.
pub struct OpenUnit<'a> {
    /// The unit.
    pub unit: &'a Unit,
    /// What it computes before the ReLU at id 0: the gate and the bias, which nearly cancel; and how far this is off.
    pub start: f64,
    off: Up,
    /// The sums of its positive and of its negative terms, but for the id's.
    above: Up,
    below: Up,
    /// The terms of the gate are multiples of 2 to this power.
    grid: i32,
    /// Its largest output weight.
    weight: Up,
}

/// What the units add up to for the ids of an interval.
struct UnitSums {
    /// The coordinates of labels at both ends, without doubtful units.
    ends: [Vec<f64>; 2],
    /// Units that may or may not fire, by their number among the open ones, and the most each can give.
    doubtful: Vec<(usize, Up)>,
    /// What a coordinate adds up, in absolute values, at most: as a program does, and as was done here.
    sum: Up,
    own_sum: Up,
    /// How far the units' own errors move a coordinate.
    moved: Up,
}

impl<'a> TokenUnits<'a> {
    /// The token of a word and a place, with some units.
    pub fn new(parts: &'a ScoreParts, token: (u32, usize), open: &[u32]) -> Self {
        Self::with(parts, token, open.iter().map(|&j| &parts.stored.units[j as usize]))
    }

    /// The same for units that may be others than those of the numbers.
    pub fn with(parts: &'a ScoreParts, (word, at): (u32, usize), open: impl Iterator<Item = &'a Unit>) -> Self {
        let stored = &parts.stored;
        let place = if stored.places.cols == 0 { &[][..] } else { stored.places.row(at) };
        let code = [stored.words.row(word as usize), place].concat();
        let open: Vec<OpenUnit> = open.map(|unit| OpenUnit::new(unit, &code)).collect();
        let reads_id = open.iter().any(|open| open.unit.id != 0.0);
        let gains = vec![OnceCell::new(); open.len()];
        Self { parts, open, constant: stored.carried.row(word as usize), reads_id, gains }
    }

    /// The margin of the label over its error bound, in the worst case over the other labels and the ids of an interval:
    /// above 1 exactly where the label is proved.
    pub fn ratio(&self, label: usize, ids: (f64, f64), format: &FloatFormat) -> f64 {
        let outputs = self.outputs(ids, format);
        let error = self.score_error(&outputs, format);
        if !error.is_known() {
            return 0.0;
        }
        let scores = outputs.ends.each_ref().map(|output| self.scores(output));
        let most = (!outputs.doubtful.is_empty()).then(|| self.most_losses(&outputs, label));
        let mut ratio = f64::INFINITY;
        for other in (0..scores[0].len()).filter(|&other| other != label) {
            // Scores are linear between hinges, so that without doubtful units the ends are the worst.
            let [a, b] = [0, 1].map(|end| scores[end][label] - scores[end][other]);
            let over = |loss: Up| {
                let low = sum_below(a.min(b).next_down(), -(error + error + loss).get());
                let margin = 0.5 * a + 0.5 * b;
                let relative = margin / (margin - low);
                // What is not a number is not above 0.
                match (low > 0.0, relative > 0.0) {
                    (true, _) => relative.max(1.0_f64.next_up()),
                    (false, true) => relative.min(1.0),
                    (false, false) => 0.0,
                }
            };
            // The more is lost, the smaller the ratio: a rough bound tells of most labels that they are not the worst.
            if most.as_ref().is_none_or(|most| over(Up::new(most[other])) < ratio) {
                ratio = ratio.min(over(self.loss(&outputs, label, other)));
            }
        }
        ratio
    }

    /// A little more than doubtful units can take from the margin of a label over each other one. Slack that is millions of times
    /// the rounding of these sums, and of those of [`Self::loss`], is cheaper than care.
    fn most_losses(&self, outputs: &UnitSums, label: usize) -> Vec<f64> {
        const SLACK: f64 = 1e-9;
        let mut most = vec![0.0; self.parts.columns.cols];
        for &(i, up_to) in &outputs.doubtful {
            let gains = self.gains[i].get_or_init(|| self.label_sums(&self.open[i].unit.output));
            let slack = SLACK * (self.parts.head.0 * self.open[i].weight).get();
            let own = gains[label] - slack;
            most.iter_mut().zip(gains).for_each(|(most, gain)| *most += up_to.get() * (gain - own).max(0.0));
        }
        most.into_iter().map(|most| most * (1.0 + SLACK)).collect()
    }

    fn outputs(&self, (low, high): (f64, f64), format: &FloatFormat) -> UnitSums {
        let constant = self.constant.iter().map(|&x| Up::size(x)).fold(Up::ZERO, Up::max);
        let mut out = UnitSums {
            ends: [self.constant.to_vec(), self.constant.to_vec()],
            doubtful: Vec::new(),
            sum: constant,
            own_sum: constant,
            moved: Up::ZERO,
        };
        for (i, open) in self.open.iter().enumerate() {
            let (before, error) = open.before((low, high), format);
            let lowest = sum_below(before[0].min(before[1]), -error.get());
            let most = sum_above(before[0].max(before[1]), error.get());
            if most <= 0.0 {
                continue;
            }
            // Not a number is unknown.
            let most = Up::new(most);
            out.sum = out.sum + open.weight * most;
            if lowest >= 0.0 {
                for (end, h) in out.ends.iter_mut().zip(before) {
                    end.iter_mut().zip(&open.unit.output).for_each(|(o, w)| *o += w * h);
                }
                out.own_sum = out.own_sum + open.weight * most;
                out.moved = out.moved + open.weight * error;
            } else {
                out.doubtful.push((i, most));
            }
        }
        out
    }

    /// How much of each label's code there is in some coordinates of labels.
    fn label_sums(&self, output: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.parts.columns.cols];
        for (column, &o) in self.parts.columns.iter_rows().zip(output) {
            sums.iter_mut().zip(column).for_each(|(sum, c)| *sum += c * o);
        }
        sums
    }

    /// The labels' scores.
    fn scores(&self, output: &[f64]) -> Vec<f64> {
        let mut scores = self.label_sums(output);
        scores.iter_mut().zip(&self.parts.stored.bias).for_each(|(score, bias)| *score += bias);
        scores
    }

    /// How far a score can be from the true one, but for doubtful units: in the program, and as computed here.
    fn score_error(&self, outputs: &UnitSums, format: &FloatFormat) -> Up {
        let (row, terms, bias) = self.parts.head;
        // The units, the token itself, and the output bias.
        let units = self.open.len() + 2;
        let coordinate =
            outputs.moved + format.sum_error(units, outputs.sum) + DOUBLE.sum_error(units, outputs.own_sum);
        let size = row * (outputs.sum + coordinate) + bias;
        row * coordinate + format.sum_error(terms + 1, size) + DOUBLE.sum_error(terms + 1, size)
    }

    /// How much doubtful units can take from the margin of a label over another.
    fn loss(&self, outputs: &UnitSums, label: usize, other: usize) -> Up {
        let (own, others) = (self.parts.stored.head.row(label), self.parts.stored.head.row(other));
        let of_unit = |&(i, most): &(usize, Up)| {
            let terms = || own.iter().zip(others).zip(&self.open[i].unit.output).map(|((a, b), w)| (b - a) * w);
            let size: Up = terms().map(Up::size).sum();
            // The differences and the products are rounded, then their sum.
            let gain = terms().sum::<f64>() + DOUBLE.sum_error(own.len() + 2, size).get();
            if gain <= 0.0 { Up::ZERO } else { Up::new(gain.next_up()) * most }
        };
        outputs.doubtful.iter().map(of_unit).sum()
    }
}

/// Partial sums are a little larger than the sums of their terms: by their rounding, which is far below this part of them.
const GROWTH: f64 = 1.0 + 1.0 / 1024.0;

impl<'a> OpenUnit<'a> {
    /// A unit at a token's code.
    pub fn new(unit: &'a Unit, code: &[f64]) -> Self {
        let mut gate = 0.0;
        let (mut above, mut below) = (Up::ZERO, Up::ZERO);
        for (&w, &x) in unit.code.iter().zip(code) {
            let term = w * x;
            gate += term;
            if term > 0.0 || (w > 0.0) == (x > 0.0) {
                above = above + Up::size(w) * Up::size(x);
            } else {
                below = below + Up::size(w) * Up::size(x);
            }
        }
        let of_term = |(w, x): (&f64, &f64)| grid(&[*w]) + grid(&[*x]);
        let grid = unit.code.iter().zip(code).map(of_term).min().unwrap_or(ANY_GRID);
        let size = above + below;
        let gate_off = if DOUBLE.is_exact(grid, size) { Up::ZERO } else { DOUBLE.sum_error(unit.code.len(), size) };
        let start = gate + unit.bias;
        if unit.bias > 0.0 {
            above = above + Up::size(unit.bias);
        } else {
            below = below + Up::size(unit.bias);
        }
        let weight = unit.output.iter().map(|&x| Up::size(x)).fold(Up::ZERO, Up::max);
        let off = gate_off + Up::new(DOUBLE.u) * Up::size(start.abs().next_up());
        Self { unit, start, off, above, below, grid, weight }
    }

    /// What it computes before the ReLU at both ends of an interval of ids, and how far a program's can be from that.
    pub fn before(&self, (low, high): (f64, f64), format: &FloatFormat) -> ([f64; 2], Up) {
        let before = [low, high].map(|id| self.start + self.unit.id * id);
        let reach = Up::size(low).max(Up::size(high));
        // The unit's error in the program, and that of the two operations here.
        let own = self.off + DOUBLE.sum_error(2, Up::size(self.start) + Up::size(self.unit.id) * reach);
        (before, self.error((low, high), format) + own)
    }

    /// How far the computed value can be from the true one before the ReLU, for an id of an interval, taken as exact.
    ///
    /// Where the terms of the gate are multiples of the spacing of numbers of the size of the largest partial sum, and the bias
    /// is too, sums of these are exact in any order. The id's term is finer: from the moment it enters, a partial sum is
    /// rounded to the grid of its own size, and again only when it grows to a coarser grid, which makes a geometric series
    /// that adds up to less than the spacing of the coarsest. A bias off the grid does the same once more.
    fn error(&self, (low, high): (f64, f64), format: &FloatFormat) -> Up {
        let slope = Up::size(self.unit.id);
        let (up, down) = if self.unit.id > 0.0 { (high, -low) } else { (-low, high) };
        let (up, down) = (slope * Up::new(up.max(0.0)), slope * Up::new(down.max(0.0)));
        let term = up.max(down);
        let any = format.sum_error(self.unit.code.len() + 2, self.above + self.below + term);
        // No partial sum is larger than all positive terms, or all negative ones, together.
        let size = Up::new(GROWTH) * (self.above + up).max(self.below + down);
        let spacing = format.spacing(size);
        if !spacing.is_known() || power(self.grid) < spacing.get() {
            return any;
        }
        let fine = [self.unit.id != 0.0, self.unit.bias % spacing.get() != 0.0];
        let product = if fine[0] { Up::new(format.u) * term + Up::new(format.subnormal()) } else { Up::ZERO };
        let rounded = Up::count(fine.iter().filter(|&&fine| fine).count()) * spacing + product;
        if rounded < any { rounded } else { any }
    }
}
