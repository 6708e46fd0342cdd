//! The claim "distance": d_p between a model and a function is at most a bound over the cube `[0,1]^(d x n)` (eq. 1, Proposition 1).
//!
//! On a product of plateaus of the quantizer the model's output is nearly one number per coordinate. The cube is cut into tiles, one
//! per product, which share the ramps between them; on boxes inside a tile the function is enclosed, and the mean of
//! |f - g|^p is bounded; ramps are priced with the farthest that model and function can be apart anywhere.

use std::cmp::Ordering::Greater;
use std::collections::BTreeMap;

use super::big::Big;
use super::expression::{BITS, Boxed, Expression, View, raised};
use super::forward::Exact;
use super::hinges::{Block, Hinges};
use super::real::{Rational, Real, Scaled, Way};
use crate::model::{Mask, Model, Numbers};
use crate::number::Dyadic;

/// Bits of the attention in real arithmetic.
const FINE: usize = 200;
/// Numbers that cells may take up in memory, and boxes that are looked at, at most; eight times as many where the claim is near.
const CELLS: usize = 1 << 22;
const BOXES: usize = 1 << 17;
/// Integrals over boxes are below 2 to this power, and multiples of 2 to minus it or so.
const FAR: i64 = 4000;

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

/// From one number to another.
type Side = (Scaled, Scaled);

/// A plateau of a coordinate.
struct Part {
    /// Where the coordinate is, ramps shared out among neighbors: tiles cover [0, 1].
    tile: Side,
    /// Where it is certainly on the plateau.
    plateau: Side,
    /// What the quantizer reads there, the position's entry included.
    at: Real,
}

/// A box inside a tile, for one coordinate of the output.
#[derive(Clone)]
struct Leaf {
    sides: Vec<Side>,
    own: usize,
    output: usize,
    /// The model's output.
    level: Real,
    /// How many places of the output token and orders of the others it stands for.
    weight: i64,
    /// The function, where it has bounds.
    view: Option<View>,
    /// Contains the integral of |f - g|^p, then.
    sum: Side,
}

struct Check {
    functions: Vec<Expression>,
    p: Real,
    /// By what smaller boxes could take away: those without bounds are last.
    leaves: BTreeMap<(Scaled, usize), Leaf>,
    /// The sums of the others.
    sum: Side,
    looked: usize,
}

/// Checks a claim about a model of floats of the kind of eq. 19: in real arithmetic, or in binary64 where `attend` says what programs
/// make of attention (the feed-forward blocks follow the lemma of `Block::apply`).
pub fn check(model: &Model, claim: Claim, attend: Option<Attend>) -> Found {
    judge(model, claim, attend).unwrap_or((None, Real::UNBOUNDED))
}

fn judge(model: &Model, claim: Claim, attend: Option<Attend>) -> Option<Found> {
    let (n, d, p, bound) = (claim.length, model.d, claim.p.enclosure(BITS), claim.bound.enclosure(BITS));
    p.compare(&Real::whole(1)).filter(|order| order.is_ge())?;
    // A power would forget the sign of a bound.
    bound.ends().filter(|(low, _)| low.sign().is_ge())?;
    let functions = Expression::parse(claim.function, d)?;
    let small = (1..=64).contains(&n.checked_mul(d)?) && model.max_length.is_none_or(|most| n <= most);
    let plain = model.embedding.is_none() && model.head.is_none() && model.start.is_none();
    let [layer] = model.layers.as_slice() else { return None };
    let attention = layer.attention.as_ref().filter(|a| small && plain && !a.hard && a.mask == Mask::None)?;
    // Shapes first.
    let (exact, floats) = (Exact::new(model)?, attend.is_some());
    let quantizer = Block::new(model.pre_feed_forward.as_ref()?, d, floats)?;
    let readout = Block::new(layer.feed_forward.as_ref()?, d, floats)?;
    let output = |codes: &[Vec<Real>], own: usize| match attend {
        Some(attend) => readout.apply(&attend(codes, own)?),
        None => readout.apply(&exact.attend(attention, codes, &[own], FINE)?.swap_remove(0)),
    };
    // Permuting the tokens permutes the outputs where nothing tells their places.
    let symmetric = model.positions.is_none() && !claim.function.contains("place");
    let (mut tokens, mut wide, mut flat) = (Vec::new(), Vec::new(), Real::whole(1));
    for place in 0..n {
        let entry = |t: usize| match &model.positions {
            Some(Numbers::Floats(tensor)) => (place * d + t < tensor.len()).then(|| tensor.get(place * d + t)),
            Some(_) => None,
            None => Some(Dyadic::ZERO),
        };
        let entries = (0..d).map(entry).collect::<Option<Vec<_>>>()?;
        let sides: Vec<_> = quantizer.tables.iter().zip(&entries).map(|(table, p)| parts(table, d, *p)).collect();
        for side in &sides {
            let length = side.iter().fold(Scaled::ZERO, |sum, part| sum.plus(&width(&part.plateau)));
            flat = flat.times(&Real::point(length), BITS);
        }
        wide.push(quantizer.apply(&entries.iter().map(|p| domain(*p)).collect::<Vec<_>>())?);
        tokens.push(token_cells(&sides, &quantizer)?);
    }
    let nothing = (Scaled::ZERO, Scaled::ZERO);
    let mut check = Check { functions, p, leaves: BTreeMap::new(), sum: nothing.clone(), looked: 0 };
    let (mut tuple, mut left) = (vec![0; n], CELLS);
    loop {
        for own in 0..if symmetric { 1 } else { n } {
            left = left.checked_sub(n * d)?;
            let (sides, codes): (Vec<_>, Vec<_>) = (0..n).map(|place| tokens[place][tuple[place]].clone()).unzip();
            let weight = if symmetric { arrangements(&tuple)? } else { 1 };
            for (output, level) in output(&codes, own)?.into_iter().enumerate() {
                let (sides, sum) = (sides.concat(), nothing.clone());
                check.look(Leaf { sides, own, output, level, weight, view: None, sum });
            }
        }
        // The next tuple; up to symmetry, the others' cells ascend.
        let Some(place) = (0..n).rev().find(|&place| tuple[place] + 1 < tokens[place].len()) else { break };
        let next = tuple[place] + 1;
        tuple[place..].fill(if symmetric && place > 0 { next } else { 0 });
        tuple[place] = next;
    }
    let anywhere = (0..n).map(|own| output(&wide, own)).collect::<Option<Vec<_>>>()?;
    let steep = Real::whole(1).minus(&flat, BITS).relu().times(&Real::whole(n as i64), BITS);
    check.run(&bound, &anywhere, &steep)
}

fn width((lo, hi): &Side) -> Scaled {
    hi.plus(&lo.negated())
}

impl Check {
    /// Cuts boxes until the claim is decided, or too many were looked at. `anywhere` are the model's outputs anywhere in the cube, a list
    /// per place; `steep` is the measure of the sequences with some coordinate on a ramp, times n.
    fn run(&mut self, bound: &Real, anywhere: &[Vec<Real>], steep: &Real) -> Option<Found> {
        let (target, mut next) = (raised(bound, &self.p), 0);
        // Near: at most 5/4 of it.
        let near = target.times(&Real::whole(5), BITS);
        loop {
            // The loosest box: too small to have bounds, or to matter.
            let ((loose, _), leaf) = self.leaves.last_key_value()?;
            let tiny = leaf.view.is_none() && leaf.sides.iter().all(|side| width(side).top() <= -30);
            let most = if self.sum.1.scaled(2) <= *near.ends()?.1 { 8 * BOXES } else { BOXES };
            let done = tiny || self.looked > most || loose.top() <= 1 - FAR || loose.scaled(40) <= self.sum.1;
            if leaf.view.is_some() && (done || self.looked >= next) {
                next = self.looked + self.leaves.len() / 4 + 16;
                // Tiles reach over the ramps, where the model may be anywhere.
                let ramps = self.ramps(anywhere).times(steep, BITS);
                let lower = Real::point(self.sum.0.clone()).minus(&ramps, BITS).relu();
                let upper = Real::point(self.sum.1.clone()).plus(&ramps, BITS);
                let holds = (upper.ends()?.1 <= target.ends()?.0).then_some(true);
                let verdict = holds.or((lower.compare(&target) == Some(Greater)).then_some(false));
                if verdict.is_some() || done {
                    return Some((verdict, raised(&lower.hull(&upper), &Real::whole(1).over(&self.p, BITS))));
                }
            }
            let (_, leaf) = self.leaves.pop_last().filter(|_| !done)?;
            self.sum = (self.sum.0.plus(&leaf.sum.0.negated()), self.sum.1.plus(&leaf.sum.1.negated()));
            for sides in halves(&leaf) {
                self.look(Leaf { sides, ..leaf.clone() });
            }
        }
    }

    /// The sum over the outputs of the farthest that model and function can be apart, to the power of p. All boxes have bounds.
    fn ramps(&self, anywhere: &[Vec<Real>]) -> Real {
        let apart = |output: usize| {
            let views = self.leaves.values().filter(|leaf| leaf.output == output).filter_map(|leaf| leaf.view.as_ref());
            let range = views.map(|view| view.range.clone()).reduce(|a, b| a.hull(&b)).unwrap_or(Real::UNBOUNDED);
            let far = |model: &Vec<Real>| range.minus(&model[output], BITS).abs();
            raised(&anywhere.iter().map(far).fold(Real::ZERO, |most, far| most.max(&far)), &self.p)
        };
        Real::sum((0..self.functions.len()).map(apart), BITS)
    }

    /// Adds a box.
    fn look(&mut self, mut leaf: Leaf) {
        self.looked += 1;
        leaf.view = self.functions[leaf.output].over(&Boxed::new(&leaf.sides, leaf.own));
        let widths = leaf.sides.iter().map(|side| Real::point(width(side)));
        let volume = widths.fold(Real::whole(leaf.weight), |volume, width| volume.times(&width, BITS));
        let sum = leaf.view.as_ref().and_then(|view| self.mean(view, &leaf)).map(|mean| mean.times(&volume, BITS));
        // Sums are exact: their terms are neither too large nor too fine.
        let bounds = sum.as_ref().and_then(Real::ends).filter(|(_, hi)| hi.top() < FAR);
        let lower = bounds.filter(|(lo, _)| lo.top() > -FAR).map_or(Scaled::ZERO, |(lo, _)| lo.clone());
        let upper = bounds.map_or(Scaled::ZERO, |(_, hi)| hi.clone().max(Scaled::new(Big::ONE, -FAR)));
        let loose = bounds.map_or(Scaled::new(Big::ONE, 1 << 40), |_| width(&(lower.clone(), upper.clone())));
        self.sum = (self.sum.0.plus(&lower), self.sum.1.plus(&upper));
        (leaf.view, leaf.sum) = (leaf.view.filter(|_| bounds.is_some()), (lower, upper));
        self.leaves.insert((loose, self.looked), leaf);
    }

    /// An enclosure of the mean of |f - g|^p over a box where g lies in `level`.
    ///
    /// Lemma. With x = c + u, f - g = a + s.u + r, where a = f(c) - m, m and s the middles of level and slopes, and |r| at most the
    /// sum of the slopes' radii times |u_i| and of level's. The u_i are independent, uniform and even, with squares of mean
    /// h_i^2 / 3: the second moment of the first two is a^2 + sum of (s_i h_i)^2 / 3; that of r is at most that of
    /// rho.|u|, (rho.h)^2 / 4 + sum of (rho_i h_i)^2 / 12, apart from level's radius. So, by Minkowski's inequality, the norm N of
    /// f - g in L^2 is between the difference and the sum of both roots. With M the largest |f - g|: for p <= 2 the mean is at
    /// most N^p (Jensen) and at least N^2 / M^(2 - p); for p >= 2 at most N^2 M^(p - 2) and at least N^p.
    fn mean(&self, view: &View, leaf: &Leaf) -> Option<Real> {
        let apart = view.range.minus(&leaf.level, BITS).abs();
        let by_range = raised(&apart, &self.p);
        let (middle, spread) = leaf.level.middle(BITS)?;
        let (mut moved, mut rest, mut squares) = (Real::ZERO, Real::ZERO, Real::ZERO);
        for (slope, side) in view.slopes.iter().zip(&leaf.sides) {
            let Some((s, radius)) = slope.middle(BITS) else { return Some(by_range) };
            let half = Real::point(width(side).scaled(-1));
            let blur = Real::point(radius).times(&half, BITS);
            moved = moved.plus(&Real::point(s).times(&half, BITS).power(2, BITS), BITS);
            (rest, squares) = (rest.plus(&blur, BITS), squares.plus(&blur.power(2, BITS), BITS));
        }
        let a = view.center.minus(&Real::point(middle), BITS);
        let known = a.power(2, BITS).plus(&moved.over(&Real::whole(3), BITS), BITS).sqrt();
        let rest = rest.power(2, BITS).over(&Real::whole(4), BITS).plus(&squares.over(&Real::whole(12), BITS), BITS);
        let rest = rest.sqrt().plus(&Real::point(spread), BITS);
        let norm = known.plus(&rest.hull(&rest.negated()), BITS).relu();
        let (beyond, largest) = (self.p.minus(&Real::whole(2), BITS), Real::point(apart.ends()?.1.clone()));
        let other = || norm.power(2, BITS).times(&raised(&largest, &beyond), BITS);
        let found = if beyond == Real::ZERO { norm.power(2, BITS) } else { raised(&norm, &self.p).hull(&other()) };
        Some(found.meet(&by_range))
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
        let slope = table.lines.get(piece).map_or(Scaled::ZERO, |line| line[c].0.clone());
        slope.negated().max(slope)
    };
    let flat = |i: usize, c: usize| size(i, c).scaled(10) <= size(i.wrapping_sub(1), c).max(size(i + 1, c));
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
                before.tile.1 = start.clone().rounded(36, Way::Down).max(before.plateau.1.clone());
                before.tile.1.clone()
            });
            let at = Real::new(from.clone(), to.clone());
            parts.push(Part { tile: (edge, one.clone()), plateau: (start, end), at });
        }
    }
    parts
}

/// The sides and the quantizer's output for each choice of a part per coordinate.
fn token_cells(sides: &[Vec<Part>], quantizer: &Block) -> Option<Vec<(Vec<Side>, Vec<Real>)>> {
    let mut cells: Vec<Vec<&Part>> = vec![vec![]];
    for side in sides {
        (1..=CELLS / cells.len()).contains(&side.len()).then_some(())?;
        let longer = |cell: Vec<_>| side.iter().map(move |part| [&cell[..], &[part]].concat());
        cells = cells.into_iter().flat_map(longer).collect();
    }
    let cell = |parts: Vec<&Part>| {
        let at: Vec<Real> = parts.iter().map(|part| part.at.clone()).collect();
        Some((parts.iter().map(|part| part.tile.clone()).collect(), quantizer.apply(&at)?))
    };
    cells.into_iter().map(cell).collect()
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
fn halves(leaf: &Leaf) -> [Vec<Side>; 2] {
    let blur = |i: usize| {
        let slope = leaf.view.as_ref().and_then(|view| view.slopes[i].middle(BITS));
        let (radius, side) =
            (slope.map_or(Scaled::new(Big::ONE, 1 << 39), |(_, radius)| radius), width(&leaf.sides[i]));
        (radius.times(&side), side)
    };
    let i = (0..leaf.sides.len()).max_by_key(|&i| blur(i)).unwrap_or(0);
    let middle = leaf.sides[i].0.plus(&leaf.sides[i].1).scaled(-1);
    let mut halves = [leaf.sides.clone(), leaf.sides.clone()];
    (halves[0][i].1, halves[1][i].0) = (middle.clone(), middle);
    halves
}

#[cfg(test)]
mod tests;
