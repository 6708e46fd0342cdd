//! Definition 2, certified: the (r, delta) that the weights of a contextual map really have, in real arithmetic.
//!
//! Ids of one token are `|w| |g - g'|` apart, and [`IdOrder`] bounds that from below. Ids of different tokens are at least
//! `epsilon - |w| (|g| + |g'|)` apart, and at least as far as the parts of the tokens orthogonal to w.

use crate::arithmetic::rounding::{add_up, div_down, mul_down};
use crate::arithmetic::{Interval, Magnitude, Number};
use crate::context_map::coincidence::{Reason, reason};
use crate::context_map::order::{Gaps, IdOrder, projections};
use crate::context_map::token_separation::{TokenSeparation, token_separation};
use crate::context_map::{ContextMap, Groups, View};

/// The bits at which certification gives up, unless asked otherwise.
pub const MOST_BITS: usize = 1 << 15;

/// What was proved of a contextual map on the contexts of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvedGaps {
    /// Ids are shorter than this.
    pub r: f64,
    /// The smallest distance of two different ids of one token.
    pub same_token: Distance,
    /// The same between contexts with different labels.
    pub labelled: Option<Distance>,
    /// A lower bound of the distance of ids of different tokens; infinite where there is one token only, 0 where nothing is
    /// known.
    pub other_token: f64,
    /// Pairs of contexts with exactly equal ids, and why.
    pub coinciding: Vec<(usize, usize, Reason)>,
    /// Pairs of contexts that the bits did not suffice to tell apart.
    pub undecided: Vec<(usize, usize)>,
    /// The largest number of bits that was needed: 53 where intervals sufficed.
    pub bits: usize,
}

/// The distance of the two closest ids that should differ, as a lower bound: 0 where two are equal or may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distance {
    /// Of the numbers `g`; infinite where there is nothing to tell apart.
    pub g: f64,
    /// The binary logarithm of the distance of `g`, which may be too small for a float.
    pub log2_g: f64,
    /// The binary logarithm of the distance of the ids.
    pub log2: f64,
    /// Two tokens that have them.
    pub tokens: Option<(usize, usize)>,
}

impl ProvedGaps {
    /// Certifies a map. `label` has one label for each context.
    pub fn new(
        view: &View,
        map: &ContextMap,
        separation: &TokenSeparation,
        label: Option<&[Option<u32>]>,
        most_bits: usize,
    ) -> Self {
        let groups = Groups::by_context(view);
        let context = |t: usize| view.contexts.of_token[t];
        let w = norm(&map.w);
        let largest_g = largest(view, &map.v);
        let shift = w * Interval::point(largest_g);
        let mut certificate = Self {
            r: add_up(separation.r_max_above, shift.hi()).next_up(),
            same_token: Distance::NONE,
            labelled: label.map(|_| Distance::NONE),
            other_token: other_token(view, map, separation, shift),
            coinciding: Vec::new(),
            undecided: Vec::new(),
            bits: 53,
        };
        if w.hi() == 0.0 {
            let pairs = groups.0.iter().flat_map(|group| group[1..].iter().map(|m| (group[0].token, m.token)));
            certificate.coinciding = pairs.map(|(a, b)| (a, b, Reason::NoOutput)).collect();
            return certificate;
        }
        let order = IdOrder::new(view, map, &groups, most_bits);
        let gaps = order.gaps(|t| Some(context(t)));
        certificate.bits = order.bits;
        certificate.same_token = Distance::new(&gaps, w);
        certificate.labelled = label.map(|label| Distance::new(&order.gaps(|t| label[context(t) as usize]), w));
        certificate.coinciding = gaps.coinciding.iter().map(|&(a, b)| (a, b, reason(view, map, a, b))).collect();
        certificate.undecided = gaps.undecided;
        certificate
    }

    /// Whether the map is proved to be a contextual map: any two contexts have different ids.
    pub fn holds(&self) -> bool {
        self.coinciding.is_empty() && self.undecided.is_empty() && self.other_token > 0.0
    }

    /// The binary logarithm of delta: a lower bound of the distance of any two different ids. Infinite where there is one id
    /// only, `None` where two contexts share an id or may do so.
    pub fn log2_delta(&self) -> Option<f64> {
        let other = if self.other_token.is_finite() { log2_below(self.other_token) } else { f64::INFINITY };
        self.holds().then(|| self.same_token.log2.min(other))
    }
}

impl Distance {
    /// Nothing to tell apart.
    const NONE: Self = Self { g: f64::INFINITY, log2_g: f64::INFINITY, log2: f64::INFINITY, tokens: None };

    fn new(gaps: &Gaps, w: Interval) -> Self {
        let pair = gaps.coinciding.first().or(gaps.undecided.first());
        if let Some(&tokens) = pair {
            return Self { g: 0.0, log2_g: f64::NEG_INFINITY, log2: f64::NEG_INFINITY, tokens: Some(tokens) };
        }
        let Some((distance, tokens)) = gaps.smallest else { return Self::NONE };
        let log2_g = distance.log2();
        let log2 = log2_g + Interval::point(log2_below(w.lo()));
        Self { g: float_below(distance), log2_g: log2_g.lo(), log2: log2.lo(), tokens: Some(tokens) }
    }
}

/// The length of `w` for which ids of different tokens stay apart, eq. 32: `epsilon / (4 max |p|)`, rounded down.
pub fn output_length(view: &View, v: &[f64], separation: &TokenSeparation) -> f64 {
    let epsilon = if separation.epsilon_below.is_finite() { separation.epsilon_below } else { 1.0 };
    let largest = largest(view, v);
    if largest > 0.0 { div_down(epsilon, 4.0 * largest) } else { 1.0 }
}

/// An upper bound of `|v . x|` for all tokens, hence of `|g|`, which is a mean of such numbers.
pub(crate) fn largest(view: &View, v: &[f64]) -> f64 {
    projections(view, v).iter().map(|p| p.magnitude()).fold(0.0, f64::max)
}

/// An enclosure of the length of a vector.
pub(crate) fn norm(w: &[f64]) -> Interval {
    match w.iter().filter(|&&x| x != 0.0).collect::<Vec<_>>()[..] {
        // One entry: exact, whatever its size.
        [x] => Interval::point(x.abs()),
        _ => w.iter().map(|&x| Interval::point(x).square()).fold(Interval::point(0.0), |sum, x| sum + x).sqrt(),
    }
}

/// A lower bound of the distance of ids of different tokens.
pub(crate) fn other_token(view: &View, map: &ContextMap, separation: &TokenSeparation, shift: Interval) -> f64 {
    if separation.vocabulary == 1 {
        return f64::INFINITY;
    }
    let near = Interval::point(separation.epsilon_below) - shift - shift;
    if near.lo() > 0.0 {
        return near.lo();
    }
    // The coordinates that w leaves alone.
    let mut vectors = view.vectors.clone();
    let free = |c: usize| map.w[c] == 0.0;
    for x in std::iter::once(&mut vectors.words).chain(&mut vectors.positions) {
        let d = x.cols;
        x.data.chunks_exact_mut(d).for_each(|row| (0..d).filter(|&c| !free(c)).for_each(|c| row[c] = 0.0));
    }
    let rest = View { vectors: &vectors, ..view.clone() };
    // Two tokens with the same rest are an error there, and unknown here.
    token_separation(&rest).map_or(0.0, |rest| rest.epsilon_below)
}

/// A float at most the number; 0 where it is below all normal floats.
fn float_below(x: Magnitude) -> f64 {
    let (fraction, exponent) = x.parts();
    if exponent >= -1022 { mul_down(fraction, 2_f64.powi(exponent.min(1023) as i32)) } else { 0.0 }
}

/// A lower bound of the binary logarithm of a positive float.
pub(crate) fn log2_below(x: f64) -> f64 {
    (Interval::point(x).ln() / Interval::point(2.0).ln()).lo()
}
