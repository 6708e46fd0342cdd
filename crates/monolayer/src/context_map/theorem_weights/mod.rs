//! Theorem 2 at its own scale: weights so large that every gap has a closed formula, certified on the contexts of a dataset.
//!
//! The weights ([`weights`]) are floats; the ids are not. They are `2^-1000` and far less apart, up to `2^-1e22` for a corpus,
//! and two ways prove it: [`gap_in_balls`] evaluates them with as many bits as that takes, [`gap_in_logarithms`] takes the differences apart
//! first and needs logarithms only. Ids of different tokens are apart as in the proof of Theorem 2:
//! `epsilon - |w| (|g| + |g'|)`.

pub mod gap_in_balls;
pub mod gap_in_logarithms;
pub mod scores;
pub mod toys;
pub mod weights;

use self::gap_in_balls::GapInBalls;
use self::gap_in_logarithms::GapInLogarithms;
use self::scores::TokenScores;
use self::weights::{Scale, Weights};
use crate::arithmetic::Interval;
use crate::arithmetic::rounding::add_up;
use crate::context_map::proved_gaps::{largest, log2_below, norm, other_token};
use crate::context_map::{Groups, View};
use crate::error::{Error, Result};
use crate::paper::theorem_two::Guarantee;

/// How to prove that ids of one token differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Evaluate the ids with balls and subtract.
    Direct,
    /// Enclose the logarithms of the differences, term by term.
    Identity,
    /// The identity, and the direct way too where few bits suffice.
    Auto,
}

/// The bits up to which [`Way::Auto`] evaluates directly as well.
const FEW_BITS: f64 = 16_384.0;

/// What to build and how to prove it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// The weights.
    pub scale: Scale,
    /// The proof.
    pub way: Way,
    /// The bits that the direct way may use.
    pub max_bits: usize,
    /// The seed of directions.
    pub seed: u64,
    /// Directions that [`Scale::Certified`] chooses from.
    pub candidates: usize,
}

/// A contextual map at the scale of the theorem, with what was proved of it.
#[derive(Debug, Clone)]
pub struct Certified {
    /// The weights, and Definition 1 for the tokens.
    pub weights: Weights,
    /// (7) and (8).
    pub theorem: Guarantee,
    /// A number certainly above the logarithm of (8).
    pub theorem_above: f64,
    /// How far apart the scores of different tokens certainly are, for every query.
    pub apart: f64,
    /// The smallest distance of ids of one token, by the identity; `None` where the way was not taken.
    pub identity: Option<GapInLogarithms>,
    /// The same, evaluated.
    pub direct: Option<GapInBalls>,
    /// A lower bound of the distance of ids of different tokens.
    pub other_token: f64,
    /// The binary logarithm of `|w|`, which turns distances of g into distances of ids.
    pub log2_w: Interval,
    /// Ids are shorter than this.
    pub r: f64,
}

/// Builds the weights of Theorem 2 for the tokens of a dataset, and proves that they are a contextual map there.
pub fn certify(view: &View, request: &Request) -> Result<Certified> {
    let weights = Weights::new(view, request.scale, request.seed, request.candidates)?;
    let separation = &weights.separation;
    let speaks = "the weights exist only where Theorem 2 speaks";
    let (n, d) = (weights.n, view.vectors.d());
    let theorem = Guarantee::new(separation.vocabulary, n, d, &separation.constants).expect(speaks);
    let theorem_above = Guarantee::log2_delta_above(separation.vocabulary, n, d, &separation.constants).expect(speaks);

    let scores = TokenScores::new(view, &weights.map)?;
    let apart = scores.apart();
    if apart < weights.needed {
        return Err(Error::too_close(
            format!("scores are proved to be {apart} apart only, where the lemmas ask for {}", weights.needed),
            "some tokens are too close for double precision",
        ));
    }
    let groups = Groups::by_context(view);
    let found = GapInLogarithms::new(&scores, &groups);
    let (identity, direct) = match request.way {
        Way::Direct => (None, Some(gap_in_balls::within(&scores, &groups, &found, request.max_bits)?)),
        Way::Auto if found.bits() <= FEW_BITS.min(request.max_bits as f64) => {
            let direct = gap_in_balls::within(&scores, &groups, &found, request.max_bits)?;
            (Some(found), Some(direct))
        }
        Way::Identity | Way::Auto => (Some(found), None),
    };
    let w = norm(&weights.map.w);
    let shift = w * Interval::point(largest(view, &weights.map.v));
    Ok(Certified {
        theorem,
        theorem_above,
        apart,
        identity,
        direct,
        other_token: other_token(view, &weights.map, separation, shift),
        log2_w: w.ln() / Interval::point(2.0).ln(),
        r: add_up(separation.r_max_above, shift.hi()).next_up(),
        weights,
    })
}

impl Certified {
    /// Two tokens with the closest ids of one token, and an enclosure of the logarithm of their distance; `None` where no token
    /// has two contexts.
    pub fn same_token(&self) -> Option<(Interval, (usize, usize))> {
        let of_g = self.identity.as_ref().map_or_else(|| self.direct.as_ref()?.closest, |way| way.closest);
        of_g.map(|(log2, tokens)| (log2 + self.log2_w, tokens))
    }

    /// The binary logarithm of delta: a lower bound of the distance of any two different ids; infinite where there is one only,
    /// `None` where two may be equal.
    pub fn log2_delta(&self) -> Option<f64> {
        let same = self.same_token().map_or(f64::INFINITY, |(log2, _)| log2.lo());
        let other = if self.other_token.is_finite() { log2_below(self.other_token) } else { f64::INFINITY };
        self.holds().then(|| same.min(other))
    }

    /// Whether any two contexts are proved to have different ids.
    pub fn holds(&self) -> bool {
        self.other_token > 0.0 && self.identity.as_ref().is_none_or(|way| way.undecided.is_empty())
    }

    /// Whether the gap is proved to exceed the delta of (8).
    pub fn exceeds_theorem(&self) -> bool {
        self.log2_delta().is_some_and(|log2| log2 > self.theorem_above)
    }
}
