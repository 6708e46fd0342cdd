//! Which hidden units can fire for which tokens: every unit that is not listed is proved shut, whatever the context, the
//! order of summation, and the sizes of the codes.
//!
//! What a unit computes before the ReLU is `n . x + m . z + b + s g` for a word x, a place z and an id g. A table of `n . x`
//! for all words and a bound for all places and ids shut most units for most words at once; what is left is looked at place by
//! place, first with the rounding of the largest terms there are, then with that of the token's own. Both the table, computed
//! in double precision, and the program are off by at most `gamma` times the sizes of the terms, and `sum_i |n_i x_i| <= |n| |x|`.

use std::collections::HashMap;

use super::Unit;
use super::stored::Stored;
use crate::arithmetic::float_model::{DOUBLE, FloatFormat, Up, sum_above};
use crate::arithmetic::kernels;
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::arithmetic::sign_codes::SignCodes;

/// A word at a place, and the ids its contexts can have.
#[derive(Debug, Clone, Copy)]
pub struct Token {
    /// The word.
    pub word: u32,
    /// The place; 0 where there are no positions.
    pub place: usize,
    /// The lowest and the highest id that a program can compute.
    pub ids: (f64, f64),
}

/// Rows of weights whose products with all words are computed at a time.
const ROWS: usize = 16;

/// The units that can fire for each of the tokens, which are sorted by word.
pub fn open_units(stored: &Stored, tokens: &[Token], format: &FloatFormat) -> Vec<Vec<u32>> {
    let mut open = vec![Vec::new(); tokens.len()];
    if tokens.is_empty() || stored.units.is_empty() {
        return open;
    }
    let search = ShutSearch::new(stored, tokens, format);
    let rows: Vec<usize> = (0..search.rows.len()).collect();
    let found = parallel::map_chunks(&rows, ROWS, |_, rows| search.run(rows));
    for (token, unit) in found.into_iter().flatten() {
        open[token].push(unit);
    }
    open.iter_mut().for_each(|list| list.sort_unstable());
    open
}

/// The units with the same weights on words and on places.
struct GateUnits {
    place_row: usize,
    units: Vec<u32>,
}

/// Different rows of weights on words, and the gates of each.
struct GateRow<'a> {
    weights: &'a [f64],
    norm: Up,
    gates: Vec<GateUnits>,
}

/// Different rows of weights on places: their products with all places.
struct PlaceRow {
    products: Vec<f64>,
    highest: f64,
    norm: Up,
}

struct ShutSearch<'a> {
    stored: &'a Stored,
    tokens: &'a [Token],
    /// The tokens of word w are `starts[w]..starts[w + 1]`.
    starts: Vec<usize>,
    rows: Vec<GateRow<'a>>,
    place_rows: Vec<PlaceRow>,
    /// The words up to the first that is not made of +1 and -1, as that of unknown words.
    signs: Option<SignCodes>,
    word_norms: Vec<Up>,
    place_norms: Vec<Up>,
    largest_word: Up,
    largest_place: Up,
    ids: (f64, f64),
    /// What rounding adds, relative to the sizes of all terms, and at least.
    relative: Up,
    least: Up,
    /// Above this, sums may overflow.
    most: f64,
}

impl<'a> ShutSearch<'a> {
    fn new(stored: &'a Stored, tokens: &'a [Token], format: &FloatFormat) -> Self {
        let split = stored.words.cols;
        let mut rows: Vec<GateRow> = Vec::new();
        let mut place_rows = Vec::new();
        let (mut of_row, mut of_place, mut of_gate) = (HashMap::new(), HashMap::new(), HashMap::new());
        let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
        for (j, unit) in (0..).zip(&stored.units) {
            let (word, place) = unit.code.split_at(split);
            let row = *of_row.entry(bits(word)).or_insert_with(|| {
                rows.push(GateRow { weights: word, norm: norm(word), gates: Vec::new() });
                rows.len() - 1
            });
            let place_row = *of_place.entry(bits(place)).or_insert_with(|| {
                place_rows.push(PlaceRow::new(place, &stored.places));
                place_rows.len() - 1
            });
            let gates = &mut rows[row].gates;
            let gate = *of_gate.entry((row, place_row)).or_insert_with(|| {
                gates.push(GateUnits { place_row, units: Vec::new() });
                gates.len() - 1
            });
            gates[gate].units.push(j);
        }
        let norms = |m: &Matrix<f64>| (0..m.rows).map(|i| norm(m.row(i))).collect::<Vec<_>>();
        let (word_norms, place_norms) = (norms(&stored.words), norms(&stored.places));
        let largest = |norms: &[Up]| norms.iter().copied().fold(Up::ZERO, Up::max);
        let of_word = |w: usize| tokens.partition_point(|t| (t.word as usize) < w);
        // Two sums of all codes, the id and the bias: the table's and the program's.
        let terms = stored.key.len() + 2;
        let range = |(low, high): (f64, f64), t: &Token| (low.min(t.ids.0), high.max(t.ids.1));
        Self {
            stored,
            tokens,
            starts: (0..=stored.words.rows).map(of_word).collect(),
            rows,
            place_rows,
            signs: leading_signs(&stored.words),
            largest_word: largest(&word_norms),
            largest_place: largest(&place_norms),
            word_norms,
            place_norms,
            ids: tokens.iter().fold((f64::INFINITY, f64::NEG_INFINITY), range),
            relative: format.gamma(terms + 1) + DOUBLE.gamma(terms + 1),
            least: Up::count(terms + 1) * (Up::new(format.subnormal()) + Up::new(DOUBLE.subnormal())),
            most: format.largest / 4.0,
        }
    }

    /// The tokens and units, of some rows, that are not proved shut.
    fn run(&self, rows: &[usize]) -> Vec<(usize, u32)> {
        let (words, d) = (&self.stored.words, self.stored.words.cols);
        let weights: Vec<f64> = rows.iter().flat_map(|&r| self.rows[r].weights).copied().collect();
        let mut table = vec![0.0; rows.len() * words.rows];
        let whole = |(out, &r): (&mut [f64], &usize)| self.whole_products(self.rows[r].weights, out);
        if d > 0 && !table.chunks_exact_mut(words.rows).zip(rows).all(whole) {
            kernels::product(&weights, &words.data, d, &mut table, false, kernels::Parallelism::None);
        }
        let mut found = Vec::new();
        for (&r, products) in rows.iter().zip(table.chunks_exact(words.rows)) {
            for gate in &self.rows[r].gates {
                let limit = self.limit(&self.rows[r], gate);
                let rough = |&j: &u32| self.rough_limit(&self.rows[r], gate, &self.stored.units[j as usize]);
                let limits: Vec<f64> = gate.units.iter().map(rough).collect();
                // Not "above": a product that is not a number is not below any limit.
                for (w, _) in products.iter().enumerate().filter(|&(_, &product)| !at_most(product, limit)) {
                    self.look(&self.rows[r], gate, &limits, w, products[w], &mut found);
                }
            }
        }
        found
    }

    /// The products of a row with all words, exactly, where words are signs and weights are small whole numbers; whether they are.
    fn whole_products(&self, weights: &[f64], out: &mut [f64]) -> bool {
        let Some(signs) = &self.signs else { return false };
        let (first, rest) = out.split_at_mut(signs.rows());
        for (i, out) in rest.iter_mut().enumerate() {
            *out = kernels::dot(weights, self.stored.words.row(signs.rows() + i));
        }
        signs.whole_products(weights, first)
    }

    /// Words whose product with the row is at most this have all units of the gate shut, at any place and for any id.
    fn limit(&self, row: &GateRow, gate: &GateUnits) -> f64 {
        let places = &self.place_rows[gate.place_row];
        let sizes = row.norm * self.largest_word + places.norm * self.largest_place;
        let highest = |&j: &u32| self.highest(&self.stored.units[j as usize], sizes, self.ids);
        let highest = gate.units.iter().map(highest).fold(f64::NEG_INFINITY, f64::max);
        -sum_above(places.highest, highest)
    }

    /// Looks at the units of a gate, with their rough limits, for all tokens of a word.
    fn look(
        &self,
        row: &GateRow,
        gate: &GateUnits,
        limits: &[f64],
        w: usize,
        product: f64,
        found: &mut Vec<(usize, u32)>,
    ) {
        let places = &self.place_rows[gate.place_row];
        let word = row.norm * self.word_norms[w];
        for t in self.starts[w]..self.starts[w + 1] {
            let Token { place, ids, .. } = self.tokens[t];
            let near = product + places.products[place];
            for (&j, &limit) in gate.units.iter().zip(limits) {
                let unit = &self.stored.units[j as usize];
                if at_most(near + (unit.id * ids.0).max(unit.id * ids.1), limit) {
                    continue;
                }
                let sizes = word + places.norm * self.place_norms[place];
                let gate_value = sum_above(product, places.products[place]);
                if !at_most(sum_above(gate_value, self.highest(unit, sizes, ids)), 0.0) {
                    found.push((t, j));
                }
            }
        }
    }

    /// A unit is shut for a token if the product with its word, plus that with its place, plus the most that its ids add, is at
    /// most this as double precision has it. These two sums and the product with the id are rounded three times, each time by
    /// 2^-53 of the sizes of the terms: `gamma(8)` is more. Not a number where sums may overflow.
    fn rough_limit(&self, row: &GateRow, gate: &GateUnits, unit: &Unit) -> f64 {
        let places = &self.place_rows[gate.place_row];
        let sizes = row.norm * self.largest_word + places.norm * self.largest_place;
        let ids = Up::size(unit.id) * Up::size(self.ids.0).max(Up::size(self.ids.1));
        let sizes = sizes + ids + Up::size(unit.bias);
        if sizes.get() > self.most {
            return f64::NAN;
        }
        let rounding = (self.relative + DOUBLE.gamma(8)) * sizes + self.least + self.least;
        -sum_above(unit.bias, rounding.get())
    }

    /// The most that bias, id and rounding add to the gate of a unit, whose terms have these sizes; infinite where sums may
    /// overflow.
    fn highest(&self, unit: &Unit, sizes: Up, (low, high): (f64, f64)) -> f64 {
        let slope = Up::size(unit.id);
        let sizes = sizes + Up::size(unit.bias) + slope * Up::size(low).max(Up::size(high));
        if sizes.get() > self.most {
            return f64::INFINITY;
        }
        let from_id = if unit.id == 0.0 { 0.0 } else { (unit.id * low).max(unit.id * high).next_up() };
        let rounding = self.relative * sizes + self.least;
        sum_above(sum_above(unit.bias, from_id), rounding.get())
    }
}

/// The rows before the first that has other numbers than +1 and -1, if these are most of them.
fn leading_signs(rows: &Matrix<f64>) -> Option<SignCodes> {
    let signs = rows.iter_rows().take_while(|row| row.iter().all(|x| x.abs() == 1.0)).count();
    let leading = Matrix::new(signs, rows.cols, rows.data[..signs * rows.cols].to_vec());
    if signs > rows.rows / 2 { SignCodes::new(&leading, 0..rows.cols) } else { None }
}

impl PlaceRow {
    fn new(weights: &[f64], places: &Matrix<f64>) -> Self {
        let dot = |i: usize| weights.iter().zip(places.row(i)).map(|(w, x)| w * x).sum();
        let products: Vec<f64> = (0..places.rows).map(dot).collect();
        let highest = products.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { products, highest, norm: norm(weights) }
    }
}

/// Whether `a <= b`; not where one of them is not a number.
fn at_most(a: f64, b: f64) -> bool {
    a <= b
}

/// An upper bound of the length of a vector.
fn norm(x: &[f64]) -> Up {
    x.iter().map(|&x| Up::size(x) * Up::size(x)).sum::<Up>().root()
}
