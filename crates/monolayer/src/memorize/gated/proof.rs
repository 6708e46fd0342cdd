//! The proof that a gated model gets a token right in floating point, in any order of summation, at a cost that grows with
//! the data: for each word and place, the units that are not proved shut (`shut_units`) are looked at, and no others.
//!
//! The proof speaks of the stored numbers (`stored`), whatever the sizes of the codes: of machine numbers of a
//! `FloatFormat`, with subnormal numbers and without overflow, and an exponential within
//! `EXP_ULP` units in the last place. With sign codes and a projection on a dyadic grid, projections
//! and gates are exact; what rounds is the softmax, the hinges, and the sum over open units. Its own floats are rounded
//! outward, and a bound that is not a finite number proves nothing.

use std::cell::OnceCell;

use rayon::prelude::*;

use super::Unit;
use super::off_units::{Token, open_units};
use super::stored::Stored;
use crate::arithmetic::float_model::{ANY_GRID, DOUBLE, FloatFormat, Up, grid, power, sum_above, sum_below};
use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::context_map::View;
use crate::data::context::Agreement;
use crate::memorize::id_rounding::{ContextId, context_ids};
use crate::model::Model;

/// What is to be proved of a gated model: the label of every context.
pub struct LabelProver<'a> {
    view: &'a View<'a>,
    agreement: &'a Agreement,
    /// `None` where the model is not of the form that is proved here.
    parts: Option<ModelParts>,
}

/// The model, and what is known of its tokens before labels are looked at.
struct ModelParts {
    stored: Stored,
    /// One token of each context, those of one (word, place) together, and their ids.
    tokens: Vec<usize>,
    ids: Vec<ContextId>,
    groups: Vec<ProofGroup>,
    /// The sizes of the head's rows: the largest sum of absolute values, the most terms, the largest bias.
    head: (Up, usize, Up),
    /// The columns of the head, so that the scores of all labels are summed side by side.
    columns: Matrix<f64>,
}

/// The contexts of one word at one place.
struct ProofGroup {
    members: std::ops::Range<usize>,
    /// The word, the place, and the ids that a program can compute for them.
    token: Token,
    /// The units that are not proved shut.
    open: Vec<u32>,
}

/// What was proved of each context.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelProof {
    /// The score margin of each context's label over its error bound; above 1 exactly where the label is proved.
    pub ratio: Vec<f64>,
}

impl LabelProof {
    /// Whether the label of a context is proved.
    pub fn certain(&self, context: u32) -> bool {
        self.ratio[context as usize] > 1.0
    }

    /// The smallest ratio.
    pub fn smallest_ratio(&self) -> f64 {
        self.ratio.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

impl<'a> LabelProver<'a> {
    /// The claim that `model` gives every context its label.
    pub fn new<R: Real>(view: &'a View<'a>, agreement: &'a Agreement, model: &Model<R>) -> Self {
        let stored = Stored::new(model, view.vectors.word_columns, view.vectors.used);
        Self { view, agreement, parts: stored.map(|stored| ModelParts::new(view, stored, &FloatFormat::of::<R>())) }
    }

    /// The numbers of the model, and the units that are not proved shut for each word at each place. `None` where the model is
    /// not of the form that is proved here.
    pub fn open_units(&self) -> Option<(&Stored, impl Iterator<Item = (Token, &[u32])>)> {
        let parts = self.parts.as_ref()?;
        Some((&parts.stored, parts.groups.iter().map(|group| (group.token, &group.open[..]))))
    }

    /// Proves what can be proved in machine numbers like `R`, which are those of the model or finer.
    pub fn prove<R: Real>(&self) -> LabelProof {
        let mut ratio = vec![0.0; self.view.contexts.count];
        let Some(parts) = &self.parts else { return LabelProof { ratio } };
        let format = FloatFormat::of::<R>();
        let of_group = |group: &ProofGroup| self.ratios(parts, group, &format);
        let found: Vec<Vec<f64>> = parts.groups.par_iter().map(of_group).collect();
        for (&token, value) in parts.tokens.iter().zip(found.into_iter().flatten()) {
            ratio[self.view.contexts.of_token[token] as usize] = value;
        }
        LabelProof { ratio }
    }

    /// The ratios of the contexts of a group.
    fn ratios(&self, parts: &ModelParts, group: &ProofGroup, format: &FloatFormat) -> Vec<f64> {
        let token_units = TokenUnits::new(parts, group);
        let label = |m: usize| self.agreement.label[self.view.contexts.of_token[parts.tokens[m]] as usize];
        // Where no open unit reads the id, all contexts with one label are alike.
        let mut known: Vec<(usize, f64)> = Vec::new();
        let ratio = |m: usize| {
            // Where any label will do, any margin does.
            let Some(label) = label(m).map(|label| label as usize) else { return f64::INFINITY };
            let id = &parts.ids[m];
            let error = id.error(format);
            if !error.is_known() {
                return 0.0;
            }
            if token_units.reads_id {
                let range = (sum_below(id.center, -error.get()), sum_above(id.center, error.get()));
                return token_units.ratio(label, range, format);
            }
            if let Some(&(_, ratio)) = known.iter().find(|&&(l, _)| l == label) {
                return ratio;
            }
            let ratio = token_units.ratio(label, (0.0, 0.0), format);
            known.push((label, ratio));
            ratio
        };
        group.members.clone().map(ratio).collect()
    }
}

impl ModelParts {
    fn new(view: &View, stored: Stored, format: &FloatFormat) -> Self {
        let tokens = representatives(view);
        let ids = context_ids(view, &stored, &tokens);
        let mut groups: Vec<ProofGroup> = Vec::new();
        for (m, &t) in tokens.iter().enumerate() {
            let (word, place) = key(view, t);
            match groups.last_mut() {
                Some(group) if (group.token.word, group.token.place) == (word, place) => group.members.end = m + 1,
                _ => {
                    let token = Token { word, place, ids: (0.0, 0.0) };
                    groups.push(ProofGroup { members: m..m + 1, token, open: Vec::new() });
                }
            }
        }
        let errors: Vec<Up> = ids.par_iter().map(|id| id.error(format)).collect();
        for group in &mut groups {
            // Nothing is claimed of a token whose id is not known.
            let known = group.members.clone().filter(|&m| errors[m].is_known());
            let ends =
                known.map(|m| (sum_below(ids[m].center, -errors[m].get()), sum_above(ids[m].center, errors[m].get())));
            group.token.ids = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0.0, 0.0));
        }
        let ranges: Vec<Token> = groups.iter().map(|group| group.token).collect();
        let open = open_units(&stored, &ranges, format);
        groups.iter_mut().zip(open).for_each(|(group, open)| group.open = open);
        let sizes = |row: &[f64]| row.iter().map(|&x| Up::size(x)).sum::<Up>();
        let head = (
            stored.head.iter_rows().map(sizes).fold(Up::ZERO, Up::max),
            stored.head.iter_rows().map(|row| row.iter().filter(|&&x| x != 0.0).count()).max().unwrap_or(0),
            stored.bias.iter().map(|&b| Up::size(b)).fold(Up::ZERO, Up::max),
        );
        let columns = Matrix::from_fn(stored.head.cols, stored.head.rows, |c, l| stored.head.row(l)[c]);
        Self { stored, tokens, ids, groups, head, columns }
    }
}

/// One token of each context, those of one (word, place) together. A context may occur in sequences of several lengths;
/// the longest rounds most.
fn representatives(view: &View) -> Vec<usize> {
    let mut first = vec![usize::MAX; view.contexts.count];
    for (t, &context) in view.contexts.of_token.iter().enumerate() {
        let slot = &mut first[context as usize];
        if *slot == usize::MAX || view.seen(t).0.count() > view.seen(*slot).0.count() {
            *slot = t;
        }
    }
    first.par_sort_by_cached_key(|&t| (key(view, t), t));
    first
}

/// The word of a token and the number of its position, which is 0 where positions are not used.
pub(super) fn key(view: &View, token: usize) -> (u32, usize) {
    let vectors = view.vectors;
    let place = if vectors.positions.is_some() { vectors.first_place() + view.place(token).1 } else { 0 };
    (view.token_ids[token], place)
}

/// A token (word, place) with the units that can fire for it in some context.
struct TokenUnits<'a> {
    parts: &'a ModelParts,
    open: Vec<OpenUnit<'a>>,
    /// What stands in the coordinates of labels without any unit.
    constant: &'a [f64],
    reads_id: bool,
    /// What each open unit adds to the score of each label, nearly; for those that were asked for.
    gains: Vec<OnceCell<Vec<f64>>>,
}

/// A unit that is not proved shut.
struct OpenUnit<'a> {
    unit: &'a Unit,
    /// What it computes before the ReLU at id 0: the gate and the bias, which nearly cancel; and how far this is off.
    start: f64,
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
    fn new(parts: &'a ModelParts, group: &ProofGroup) -> Self {
        let stored = &parts.stored;
        let place = if stored.places.cols == 0 { &[][..] } else { stored.places.row(group.token.place) };
        let code = [stored.words.row(group.token.word as usize), place].concat();
        let open: Vec<OpenUnit> = group.open.iter().map(|&j| OpenUnit::new(&stored.units[j as usize], &code)).collect();
        let reads_id = open.iter().any(|open| open.unit.id != 0.0);
        let gains = vec![OnceCell::new(); open.len()];
        Self { parts, open, constant: stored.carried.row(group.token.word as usize), reads_id, gains }
    }

    /// The margin of the label over its error bound, in the worst case over the other labels and the ids of an interval:
    /// above 1 exactly where the label is proved.
    fn ratio(&self, label: usize, ids: (f64, f64), format: &FloatFormat) -> f64 {
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
        let reach = Up::size(low).max(Up::size(high));
        for (i, open) in self.open.iter().enumerate() {
            let before = [low, high].map(|id| open.start + open.unit.id * id);
            // The units' error in the program, and that of the two operations here.
            let own = open.off + DOUBLE.sum_error(2, Up::size(open.start) + Up::size(open.unit.id) * reach);
            let error = open.error((low, high), format) + own;
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
    fn new(unit: &'a Unit, code: &[f64]) -> Self {
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
