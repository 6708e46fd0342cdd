//! The claim "distance": d_p between a model and a function is at most a bound over the cube `[0,1]^(d x n)` (eq. 1, Proposition 1).
//!
//! On a product of plateaus of the quantizer the model's output is nearly one number per coordinate. The cube is cut into tiles, one
//! per product, which share the ramps between them; on boxes inside a tile the function is enclosed, and the mean of
//! |f - g|^p is bounded; ramps are priced with the farthest that model and function can be apart anywhere.

use std::collections::BTreeMap;

use super::big::Big;
use super::expression::{BITS, Boxed, Expression, View, whole};
use super::forward::Exact;
use super::hinges::{Block, Hinges};
use super::real::{Rational, Real, Scaled, Way};
use crate::model::{Mask, Model, Numbers};
use crate::number::Dyadic;

/// Bits of the attention in real arithmetic.
const FINE: usize = 200;
/// Numbers that cells may take up in memory, and boxes that are looked at, at most.
const CELLS: usize = 1 << 22;
const BOXES: usize = 1 << 18;

/// A claim, as written.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The exponent, at least 1.
    pub p: &'a Rational,
    /// What d_p is at most.
    pub bound: &'a Rational,
    /// One expression per coordinate.
    pub function: &'a str,
    /// Tokens of a sequence.
    pub length: usize,
}

/// What a program in binary64 makes of a sequence of tokens at one position: the token after attention (eq. 2), the token itself
/// included, for any covered program and any floats in the given enclosures; nothing where it may overflow.
pub type Attend<'a> = &'a dyn Fn(&[Vec<Real>], usize) -> Option<Vec<Real>>;

/// What was found: whether the claim holds (nothing: unknown), and an enclosure of d_p.
pub type Found = (Option<bool>, Real);

/// A plateau of a coordinate.
struct Part {
    /// Where the coordinate is, ramps shared out among neighbors: tiles cover [0, 1].
    tile: (Scaled, Scaled),
    /// Where it is certainly on the plateau.
    plateau: (Scaled, Scaled),
    /// What the quantizer reads there, the position's entry included.
    at: Real,
}

/// A tile of the cube as one output token sees it.
struct Cell {
    sides: Vec<Real>,
    own: usize,
    /// How many places of the output token and orders of the others it stands for.
    weight: i64,
    /// The model's output.
    levels: Vec<Real>,
}

/// A box of a tile, for one coordinate of the output.
struct Leaf {
    cell: usize,
    output: usize,
    sides: Vec<Real>,
    /// The function, where it has bounds.
    view: Option<View>,
    /// The integral of |f - g|^p lies between these.
    sum: (Scaled, Scaled),
}

struct Check<'a> {
    model: &'a Model,
    functions: Vec<Expression>,
    p: Real,
    cells: Vec<Cell>,
    /// The model's outputs anywhere in the cube.
    anywhere: Vec<Real>,
    /// The measure of the sequences with some coordinate on a ramp, times n.
    steep: Real,
    leaves: BTreeMap<(Scaled, usize), Leaf>,
    /// Leaves without bounds.
    open: usize,
    sum: (Scaled, Scaled),
    looked: usize,
}

/// Checks a claim about a model of floats of the kind of eq. 19: in real arithmetic, or in binary64 where `attend` says what programs
/// make of attention (the feed-forward blocks follow the lemma of [`Block::apply`]).
pub fn check(model: &Model, claim: Claim, attend: Option<Attend>) -> Found {
    let bound = claim.bound.enclosure(BITS);
    // A power would forget the sign of the bound.
    if bound.ends().is_none_or(|(low, _)| low.sign().is_lt()) {
        return (None, Real::UNBOUNDED);
    }
    let found = Check::new(model, claim, attend).and_then(|mut check| check.run(&check.raised(&bound)));
    found.unwrap_or((None, Real::UNBOUNDED))
}

impl<'a> Check<'a> {
    fn new(model: &'a Model, claim: Claim, attend: Option<Attend>) -> Option<Self> {
        let (n, d, p) = (claim.length, model.d, claim.p.enclosure(BITS));
        let functions = Expression::parse(claim.function, d)?;
        let one = Scaled::new(Big::ONE, 0);
        let small = (1..=64).contains(&n.checked_mul(d)?) && model.max_length.is_none_or(|most| n <= most);
        let plain = model.embedding.is_none() && model.head.is_none() && model.start.is_none() && *p.ends()?.0 >= one;
        let [layer] = model.layers.as_slice() else { return None };
        let attention = layer.attention.as_ref().filter(|a| small && plain && !a.hard && a.mask == Mask::None)?;
        let quantizer = Block::new(model.pre_feed_forward.as_ref()?, d, attend.is_some())?;
        let readout = Block::new(layer.feed_forward.as_ref()?, d, attend.is_some())?;
        let exact = Exact::new(model)?;
        let output = |codes: &[Vec<Real>], own: usize| {
            let h = match attend {
                Some(attend) => attend(codes, own)?,
                None => exact.attend(attention, codes, &[own], FINE)?.swap_remove(0),
            };
            readout.apply(&h)
        };
        let symmetric = model.positions.is_none() && functions.iter().all(Expression::is_equivariant);
        let entry = |place: usize, t: usize| match &model.positions {
            Some(Numbers::Floats(tensor)) => Some(tensor.get(place * d + t)),
            Some(_) => None,
            None => Some(Dyadic::ZERO),
        };
        let mut check = Self {
            model,
            functions,
            p,
            cells: vec![],
            anywhere: vec![],
            steep: Real::ZERO,
            leaves: BTreeMap::new(),
            open: 0,
            sum: (Scaled::ZERO, Scaled::ZERO),
            looked: 0,
        };
        let (mut tokens, mut wide, mut flat) = (Vec::new(), Vec::new(), Real::whole(1));
        for place in 0..n {
            let entries = (0..d).map(|t| entry(place, t)).collect::<Option<Vec<_>>>()?;
            let sides: Vec<Vec<Part>> =
                quantizer.tables.iter().zip(&entries).map(|(table, p)| parts(table, d, *p)).collect();
            for side in &sides {
                let lengths = side.iter().map(|part| Real::point(part.plateau.1.plus(&part.plateau.0.negated())));
                flat = flat.times(&lengths.fold(Real::ZERO, |sum, length| sum.plus(&length, BITS)), BITS);
            }
            wide.push(quantizer.apply(&entries.iter().map(|p| domain(*p)).collect::<Vec<_>>())?);
            tokens.push(token_cells(&sides, &quantizer)?);
        }
        check.steep = Real::whole(1).minus(&flat, BITS).relu().times(&Real::whole(n as i64), BITS);
        check.anywhere = output(&wide, 0)?;
        for own in 1..n {
            check.anywhere = check.anywhere.iter().zip(output(&wide, own)?).map(|(a, b)| a.hull(&b)).collect();
        }
        let mut tuple = vec![0; n];
        loop {
            for own in 0..if symmetric { 1 } else { n } {
                let cell = |place: usize| &tokens[place][tuple[place]];
                let codes: Vec<Vec<Real>> = (0..n).map(|place| cell(place).1.clone()).collect();
                let sides = (0..n).flat_map(|place| cell(place).0.clone()).collect();
                let weight = if symmetric { arrangements(&tuple)? } else { 1 };
                check.cells.push(Cell { sides, own, weight, levels: output(&codes, own)? });
            }
            // The next tuple; up to symmetry, the others' cells ascend.
            let Some(place) = (0..n).rev().find(|&place| tuple[place] + 1 < tokens[place].len()) else { break };
            let next = tuple[place] + 1;
            tuple[place..].fill(if symmetric && place > 0 { next } else { 0 });
            tuple[place] = next;
            if check.cells.len() * n * d > CELLS {
                return None;
            }
        }
        Some(check)
    }

    /// x^p for x >= 0.
    fn raised(&self, x: &Real) -> Real {
        whole(&self.p).map_or_else(|| x.pow(&self.p, BITS), |k| x.power(k, BITS))
    }

    fn run(&mut self, target: &Real) -> Option<Found> {
        for cell in 0..self.cells.len() {
            for output in 0..self.model.d {
                self.look(cell, output, self.cells[cell].sides.clone())?;
            }
        }
        let mut next = 0;
        loop {
            let done = self.looked > BOXES;
            if done || self.looked >= next {
                next = self.looked + self.leaves.len() / 8 + 16;
                let (lower, upper) = self.total();
                let root = Real::whole(1).over(&self.p, BITS);
                let root = |x: &Real| if whole(&self.p) == Some(2) { x.sqrt() } else { x.pow(&root, BITS) };
                let verdict = match (upper.ends()?.1 <= target.ends()?.0, lower.ends()?.0 > target.ends()?.1) {
                    (true, _) if self.open == 0 => Some(true),
                    (_, true) if self.open == 0 => Some(false),
                    _ => None,
                };
                if verdict.is_some() || done {
                    return Some((
                        verdict,
                        if self.open == 0 { root(&lower).hull(&root(&upper)) } else { Real::UNBOUNDED },
                    ));
                }
            }
            let (_, leaf) = self.leaves.pop_last()?;
            self.sum.0 = self.sum.0.plus(&leaf.sum.0.negated());
            self.sum.1 = self.sum.1.plus(&leaf.sum.1.negated());
            self.open -= usize::from(leaf.view.is_none());
            for half in halves(&leaf) {
                self.look(leaf.cell, leaf.output, half)?;
            }
        }
    }

    /// Bounds on d_p^p, ramps included. Tiles reach over the ramps, where the model may be anywhere.
    fn total(&self) -> (Real, Real) {
        let mut ramps = Real::ZERO;
        for (c, anywhere) in self.anywhere.iter().enumerate() {
            let views = self.leaves.values().filter(|leaf| leaf.output == c).filter_map(|leaf| leaf.view.as_ref());
            let range = views.map(|view| view.range.clone()).reduce(|a, b| a.hull(&b)).unwrap_or(Real::ZERO);
            ramps = ramps.plus(&self.raised(&range.minus(anywhere, BITS).abs()), BITS);
        }
        let ramps = ramps.times(&self.steep, BITS);
        let sum = |x: &Scaled| Real::point(x.clone());
        (sum(&self.sum.0).minus(&ramps, BITS).relu(), sum(&self.sum.1).plus(&ramps, BITS))
    }

    /// Adds a box. What is loose about it is what smaller boxes could take away, or beyond all where it has no bounds.
    fn look(&mut self, cell: usize, output: usize, sides: Vec<Real>) -> Option<()> {
        self.looked += 1;
        let of = &self.cells[cell];
        let view = self.functions[output].over(&Boxed::new(&sides, of.own));
        let (mut loose, mut sum) = (Scaled::new(Big::ONE, 1 << 40), (Scaled::ZERO, Scaled::ZERO));
        let mean = view.as_ref().and_then(|view| self.mean(view, &sides, &of.levels[output]));
        let view = view.filter(|_| mean.is_some());
        if let Some(mean) = mean {
            let width =
                |side: &Real| side.ends().map_or(Real::UNBOUNDED, |(lo, hi)| Real::point(hi.plus(&lo.negated())));
            let volume = sides.iter().fold(Real::whole(of.weight), |volume, side| volume.times(&width(side), BITS));
            let part = mean.times(&volume, BITS);
            let (lower, upper) = part.ends()?;
            sum = (lower.clone(), upper.clone());
            loose = upper.plus(&lower.negated());
        } else {
            self.open += 1;
        }
        self.sum = (self.sum.0.plus(&sum.0), self.sum.1.plus(&sum.1));
        self.leaves.insert((loose, self.looked), Leaf { cell, output, sides, view, sum });
        Some(())
    }

    /// An enclosure of the mean of |f - g|^p over a box where g lies in `level`.
    ///
    /// Lemma. With x = c + u, f - g = a + s.u + r, where a = f(c) - m, m and s the middles of level and slopes, and |r| at most the
    /// sum of the slopes' radii times |u_i| and of level's. The u_i are independent, uniform and even, with squares of mean
    /// h_i^2 / 3: the second moment of the first two is a^2 + sum of (s_i h_i)^2 / 3; that of r is at most that of
    /// rho.|u|, (rho.h)^2 / 4 + sum of (rho_i h_i)^2 / 12, apart from level's radius. So, by Minkowski's inequality, the norm N of
    /// f - g in L^2 is between the difference and the sum of both roots. With M the largest |f - g|: for p <= 2 the mean is at
    /// most N^p (Jensen) and at least N^2 / M^(2 - p); for p >= 2 at most N^2 M^(p - 2) and at least N^p.
    fn mean(&self, view: &View, sides: &[Real], level: &Real) -> Option<Real> {
        let apart = view.range.minus(level, BITS).abs();
        let by_range = self.raised(&apart);
        let (middle, spread) = level.middle(BITS)?;
        let (mut moved, mut rest, mut squares) = (Real::ZERO, Real::ZERO, Real::ZERO);
        for (slope, side) in view.slopes.iter().zip(sides) {
            let Some((s, radius)) = slope.middle(BITS) else { return Some(by_range) };
            let (lo, hi) = side.ends()?;
            let half = Real::point(hi.plus(&lo.negated()).scaled(-1));
            let blur = Real::point(radius).times(&half, BITS);
            moved = moved.plus(&Real::point(s).times(&half, BITS).power(2, BITS), BITS);
            (rest, squares) = (rest.plus(&blur, BITS), squares.plus(&blur.power(2, BITS), BITS));
        }
        let a = view.center.minus(&Real::point(middle), BITS);
        let known = a.power(2, BITS).plus(&moved.over(&Real::whole(3), BITS), BITS).sqrt();
        let rest = rest.power(2, BITS).over(&Real::whole(4), BITS).plus(&squares.over(&Real::whole(12), BITS), BITS);
        let rest = rest.sqrt().plus(&Real::point(spread), BITS);
        let norm = known.plus(&rest.hull(&rest.negated()), BITS).relu();
        let (two, largest) = (Real::whole(2), Real::point(apart.ends()?.1.clone()));
        if whole(&self.p) == Some(2) {
            return Some(norm.power(2, BITS).meet(&by_range));
        }
        let (power, square, beyond) = (self.raised(&norm), norm.power(2, BITS), self.p.minus(&two, BITS));
        let other = square.times(&largest.pow(&beyond, BITS), BITS);
        let (power, other) = if *self.p.ends()?.0 >= *two.ends()?.0 { (power, other) } else { (other, power) };
        Some(power.hull(&other).meet(&by_range))
    }
}

/// What the quantizer reads of a coordinate in [0, 1], with this entry of a position added and perhaps rounded.
fn domain(p: Dyadic) -> Real {
    let p = Scaled::from(p);
    Real::new(p.clone(), p.plus(&Scaled::new(Big::ONE, 0)).rounded(53, Way::Up))
}

/// Cuts a coordinate into plateaus: pieces much flatter than a neighbor. Which ones they are is of no matter to what is proved.
fn parts(table: &Hinges, d: usize, p: Dyadic) -> Vec<Part> {
    let (whole, zero, one) = (domain(p), Scaled::ZERO, Scaled::new(Big::ONE, 0));
    let Some((lo, hi)) = whole.ends() else { return vec![] };
    let first = table.places.partition_point(|place| place <= lo);
    let last = table.places.partition_point(|place| place < hi);
    let size = |piece: usize, c: usize| {
        table.lines.get(piece).map_or(zero.clone(), |line| {
            let slope = &line[c].0;
            slope.clone().max(slope.negated())
        })
    };
    let flat =
        |piece: usize, c: usize| size(piece, c).scaled(10) <= size(piece.wrapping_sub(1), c).max(size(piece + 1, c));
    let minus = Scaled::from(p).negated();
    let mut parts: Vec<Part> = Vec::new();
    for piece in first..=last {
        let from = if piece == first { lo } else { &table.places[piece - 1] };
        let to = if piece == last { hi } else { &table.places[piece] };
        let start = from.plus(&minus).rounded(53, Way::Up).max(zero.clone());
        let end = to.plus(&minus).rounded(53, Way::Down).min(one.clone());
        if start < end && (0..d).all(|c| flat(piece, c)) {
            let edge = parts.last_mut().map_or(zero.clone(), |before| {
                // A short number on the ramp.
                let edge = before.plateau.1.plus(&start).scaled(-1).rounded(36, Way::Down);
                before.tile.1 = edge.max(before.plateau.1.clone()).min(start.clone());
                before.tile.1.clone()
            });
            let at = Real::new(from.clone(), to.clone());
            parts.push(Part { tile: (edge, one.clone()), plateau: (start, end), at });
        }
    }
    parts
}

/// The sides and the quantizer's output for each choice of a part per coordinate.
fn token_cells(sides: &[Vec<Part>], quantizer: &Block) -> Option<Vec<(Vec<Real>, Vec<Real>)>> {
    let count = sides
        .iter()
        .try_fold(1_usize, |all, side| all.checked_mul(side.len()))
        .filter(|count| (1..=CELLS).contains(count))?;
    let cell = |mut rest: usize| {
        let (mut tile, mut at) = (Vec::new(), Vec::new());
        for side in sides {
            let part = &side[rest % side.len()];
            rest /= side.len();
            tile.push(Real::new(part.tile.0.clone(), part.tile.1.clone()));
            at.push(part.at.clone());
        }
        Some((tile, quantizer.apply(&at)?))
    };
    (0..count).map(cell).collect()
}

/// n times (n - 1)! over the factorials of how often each cell occurs among the others.
fn arrangements(tuple: &[usize]) -> Option<i64> {
    let (mut orders, mut run) = (tuple.len() as i64, 0);
    for k in 1..tuple.len() {
        run = if k > 1 && tuple[k] == tuple[k - 1] { run + 1 } else { 1 };
        orders = orders.checked_mul(k as i64)? / run;
    }
    Some(orders)
}

/// A box cut in two across the entry whose slopes are known least.
fn halves(leaf: &Leaf) -> [Vec<Real>; 2] {
    let blur = |i: usize| {
        let width = |x: &Real| x.ends().map_or(Scaled::new(Big::ONE, 1 << 39), |(lo, hi)| hi.plus(&lo.negated()));
        let side = width(&leaf.sides[i]);
        let slope = leaf.view.as_ref().map_or(side.clone(), |view| width(&view.slopes[i]));
        (slope.times(&side), side)
    };
    let i = (0..leaf.sides.len()).max_by_key(|&i| blur(i)).unwrap_or(0);
    let mut halves = [leaf.sides.clone(), leaf.sides.clone()];
    if let Some((lo, hi)) = leaf.sides[i].ends() {
        let middle = lo.plus(hi).scaled(-1);
        (halves[0][i], halves[1][i]) = (Real::new(lo.clone(), middle.clone()), Real::new(middle, hi.clone()));
    }
    halves
}

#[cfg(test)]
mod tests;
