//! The weights of Theorem 2, as printed and as small as the lemmas allow.

use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};

use super::scores::has_duplicates;
use crate::arithmetic::Interval;
use crate::arithmetic::parallel;
use crate::context_map::order::projections;
use crate::context_map::proved_gaps::{largest, output_length};
use crate::context_map::token_separation::{TokenSeparation, token_separation, tokens};
use crate::context_map::{ContextMap, Projection, View};
use crate::error::{Error, Result};
use crate::paper::projection::{Points, lemma_2_for, length, shortened};
use crate::paper::theorem_two::{output_norm, query_scale, score_gap};

/// How large the weights are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Theorem 2 as printed: v from Lemma 2, `u . u'` from (29), rounded up to 13 bits, `W_O` from (32).
    Paper,
    /// Theorem 2+: no larger than Lemmas S and M ask for, given the projections that v really has.
    Certified,
}

/// The weights, and what they were made from.
#[derive(Debug, Clone)]
pub struct Weights {
    /// The weights.
    pub map: ContextMap,
    /// `u . u'`: queries are so many times keys.
    pub kappa: f64,
    /// Directions that were tried.
    pub tries: usize,
    /// Definition 1 for the tokens.
    pub separation: TokenSeparation,
    /// The longest sequence.
    pub n: usize,
    /// Whether some context has a token twice.
    pub multisets: bool,
    /// How far apart scores must be, rounded up: `2 ln n + 3`, or 2 for sets at [`Scale::Certified`].
    pub needed: f64,
    /// What Theorem 2+ promises of these weights: a lower bound of the logarithm of the smallest distance of ids.
    pub log2_promise: f64,
}

/// A scale not below `kappa`, of 13 bits: times the 40 bits of an entry of v it is a float, so `W_Q = kappa W_K` exactly.
fn short_above(kappa: f64) -> f64 {
    // Projections are enclosed, hence a little more than kappa.
    let above = kappa * (1.0 + 1.0 / (1_u64 << 40) as f64);
    let unit = 2_f64.powi(above.log2().floor() as i32 - 12);
    (above / unit).ceil() * unit
}

impl Weights {
    /// The weights for the tokens of a dataset. There must be two different ones, and none may be 0.
    pub fn new(view: &View, scale: Scale, seed: u64, candidates: usize) -> Result<Self> {
        let separation = token_separation(view)?;
        if separation.vocabulary < 2 {
            return Err(Error::undefined(
                "all tokens are equal: there is nothing to tell apart",
                "Theorem 2 is about two or more different tokens",
            ));
        }
        if separation.r_min_below == 0.0 || separation.epsilon_below == 0.0 {
            return Err(Error::undefined(
                format!("Theorem 2 does not apply: r_min is {}", separation.constants.r_min),
                "it asks for r_min > 0, since a zero token sees only the mean; leave zero tokens out, or use `scale` tight",
            ));
        }
        let n = view.offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(1);
        let multisets = has_duplicates(view);
        match scale {
            Scale::Paper => paper(view, separation, n, multisets, seed),
            Scale::Certified => certified(view, separation, n, multisets, seed, candidates),
        }
    }
}

/// Theorem 2 as printed.
fn paper(view: &View, separation: TokenSeparation, n: usize, multisets: bool, seed: u64) -> Result<Weights> {
    let direction = lemma_2_for(&TokenTable::new(view, &separation), seed)?;
    let gap = score_gap(n);
    let (epsilon, r_min) = (separation.epsilon_below, separation.r_min_below);
    let kappa = short_above(query_scale(separation.vocabulary, view.vectors.d(), gap, epsilon, r_min).hi());
    let w_o = output_norm(epsilon, separation.r_max_above).lo();
    let map = weights(view, &direction.v, kappa, w_o);
    let log2_promise = promise(view, &map, &separation, n, multisets, gap.hi());
    Ok(Weights { map, kappa, tries: direction.tries, separation, n, multisets, needed: gap.hi(), log2_promise })
}

/// Theorem 2+: the direction for which exponents are smallest, and the smallest scale that the lemmas allow there.
fn certified(
    view: &View,
    separation: TokenSeparation,
    n: usize,
    multisets: bool,
    seed: u64,
    candidates: usize,
) -> Result<Weights> {
    let needed = if multisets { score_gap(n).hi() } else { 2.0 };
    let vocabulary = TokenTable::new(view, &separation);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = || shortened((0..view.vectors.d()).map(|_| StandardNormal.sample(&mut rng)).collect());
    let directions: Vec<Vec<f64>> = (0..candidates.max(1)).map(|_| draw()).collect();
    // The largest exponent, kappa P_Q W, up to a factor that all share.
    let exponent = |v: &Vec<f64>| {
        let shape = Shape::new(&vocabulary, v)?;
        Some(shape.largest_query * shape.width / (shape.gap * shape.smallest_query))
    };
    let exponents: Vec<Option<f64>> = parallel::map_slice(&directions, exponent);
    let best = (0..directions.len()).filter(|&i| exponents[i].is_some()).min_by(|&i, &j| {
        let exponent = |i: usize| exponents[i].unwrap_or(f64::INFINITY);
        exponent(i).total_cmp(&exponent(j))
    });
    let too_close =
        || Error::too_close("no direction keeps the tokens apart", "some are too close for double precision");
    let v = &directions[best.ok_or_else(too_close)?];
    let shape = Shape::new(&vocabulary, v).ok_or_else(too_close)?;
    let kappa = (Interval::point(needed) / (Interval::point(shape.gap) * Interval::point(shape.smallest_query))).hi();
    let kappa = short_above(kappa);
    let map = weights(view, v, kappa, output_length(view, v, &separation));
    let log2_promise = promise(view, &map, &separation, n, multisets, needed);
    Ok(Weights { map, kappa, tries: directions.len(), separation, n, multisets, needed, log2_promise })
}

/// `W_K = W_V = v^T`, `W_Q = kappa v^T`, and `W_O` along the last axis: any direction will do.
fn weights(view: &View, v: &[f64], kappa: f64, w_o: f64) -> ContextMap {
    let mut w = vec![0.0; view.vectors.d()];
    w[view.vectors.d() - 1] = w_o;
    ContextMap::new(&Projection { v: v.to_vec(), kappa }, w)
}

/// The delta of Theorem 2+: `min(epsilon / 2, |w| C e^(-P_Q W) / P_Q)`, `P_Q` the largest query, `W` the width of the keys, `C`
/// 0.88 for sets (Lemma S) and `0.9 (2 ln n + 3) / n^2` for multisets (Lemma M, whose constant is 0.9004).
fn promise(view: &View, map: &ContextMap, separation: &TokenSeparation, n: usize, multisets: bool, needed: f64) -> f64 {
    let keys = projections(view, &map.v);
    let lowest = keys.iter().map(|p| p.lo()).fold(f64::INFINITY, f64::min);
    let highest = keys.iter().map(|p| p.hi()).fold(f64::NEG_INFINITY, f64::max);
    let point = Interval::point;
    let query = point(largest(view, &map.v_q));
    let constant = if multisets { point(0.9) * point(needed) / point(n as f64).square() } else { point(0.88) };
    let w = point(map.w[map.w.len() - 1]);
    let same = (constant * w / query).ln() - query * (point(highest) - point(lowest));
    let other = (point(separation.epsilon_below) / point(2.0)).ln();
    (same.min(other) / point(2.0).ln()).lo()
}

/// The different tokens of a dataset and, last, 0: what Lemma 2 must keep apart for Theorem 2.
struct TokenTable<'a> {
    view: &'a View<'a>,
    tokens: Vec<(u32, usize)>,
    r_max: f64,
}

impl<'a> TokenTable<'a> {
    fn new(view: &'a View<'a>, separation: &TokenSeparation) -> Self {
        Self { view, tokens: tokens(view), r_max: separation.r_max_above }
    }

    /// The coordinates of a token, or of 0 after the last one.
    fn coordinates(&self, i: usize) -> Vec<Interval> {
        let vectors = self.view.vectors;
        let Some(&(id, place)) = self.tokens.get(i) else {
            return vec![Interval::point(0.0); vectors.d()];
        };
        let word = vectors.words.row(id as usize).iter().map(|&x| Interval::point(x));
        match &vectors.positions {
            Some(places) => word.zip(places.row(place)).map(|(x, &p)| x + Interval::point(p)).collect(),
            None => word.collect(),
        }
    }
}

impl Points for TokenTable<'_> {
    fn d(&self) -> usize {
        self.view.vectors.d()
    }

    fn project(&self, v: &[f64]) -> Vec<Interval> {
        let vectors = self.view.vectors;
        let dot = |x: &[f64]| {
            let terms = x.iter().zip(v).filter(|&(&x, _)| x != 0.0);
            terms.fold(Interval::point(0.0), |sum, (&x, &v)| sum + Interval::point(x) * Interval::point(v))
        };
        let words: Vec<Interval> = vectors.words.iter_rows().map(dot).collect();
        let places: Vec<Interval> =
            vectors.positions.as_ref().map_or_else(Vec::new, |places| places.iter_rows().map(dot).collect());
        let of = |&(id, place): &(u32, usize)| {
            words[id as usize] + places.get(place).copied().unwrap_or(Interval::point(0.0))
        };
        self.tokens.iter().map(of).chain([Interval::point(0.0)]).collect()
    }

    fn distance(&self, i: usize, j: usize) -> Interval {
        length(self.coordinates(i).into_iter().zip(self.coordinates(j)).map(|(x, y)| x - y))
    }

    fn diameter(&self) -> f64 {
        2.0 * self.r_max
    }
}

/// What a direction makes of the tokens.
struct Shape {
    /// A lower bound of the distance of two keys.
    gap: f64,
    /// The distance of the outermost ones.
    width: f64,
    /// A lower bound of `|v . t|`.
    smallest_query: f64,
    /// The largest `|v . t|`.
    largest_query: f64,
}

impl Shape {
    /// `None` where two keys, or a key and 0, are not certainly different.
    fn new(vocabulary: &TokenTable, v: &[f64]) -> Option<Self> {
        let mut keys = vocabulary.project(v);
        keys.pop();
        keys.sort_unstable_by(|a, b| a.center().total_cmp(&b.center()));
        let fold =
            |f: fn(&Interval) -> f64, start: f64, pick: fn(f64, f64) -> f64| keys.iter().map(f).fold(start, pick);
        let shape = Self {
            gap: keys.windows(2).map(|pair| (pair[1] - pair[0]).lo()).fold(f64::INFINITY, f64::min),
            width: keys[keys.len() - 1].hi() - keys[0].lo(),
            smallest_query: fold(|p| p.mignitude(), f64::INFINITY, f64::min),
            largest_query: fold(|p| p.magnitude(), 0.0, f64::max),
        };
        (shape.gap > 0.0 && shape.smallest_query > 0.0).then_some(shape)
    }
}
