//! Rank-1 softmax attention in linear time.
//!
//! A head of size 1 has a number for each key, value and query, and its output is one function of one number,
//!
//! `g(y) = sum_i v_i e^(y k_i) / sum_i e^(y k_i)`,
//!
//! so that n queries over n keys need not cost n^2 products. [`FastAttention`] cuts the keys into bins, takes moments of each,
//! evaluates g at a few nodes, and reads the queries off polynomials: two passes over the tokens, no exponential for any of
//! them. Where there are few tokens it takes direct sums. docs/attention.md has the method and the proof of its error. That
//! nearly linear time is possible is a theorem: Gupta, Huang, Saha, Xu and Ye, arXiv 2505.14840.
//!
//! The error is that of the result against the exact softmax of the numbers given, over the largest distance of a value from
//! the middle of the values, whatever the range of keys and queries; the rounding of the result to its type comes on top.
//! Results lie between the smallest and the largest value. A query that sees no key gets 0. Numbers that are not finite are
//! refused.

mod backward;
mod causal;
mod causal_backward;
mod direct;
mod forward;
mod grading;
mod limits;
mod moments;
mod panels;
mod plan;
mod powers_of_two;
mod query_sums;
mod running;
mod scan;
mod streaming;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::arithmetic::kernels::Real;
use crate::error::{Error, Result};
use crate::paper::mask::Mask;
use causal::{CausalPlan, Masked};
use direct::DirectSums;
use limits::Limits;
use plan::{Extent, Plan, direct_seconds};
pub use streaming::StreamingHead;

/// Keys, values and queries of one head and one sequence. There are as many values as keys.
///
/// ```
/// use monolayer::attention::{FastAttention, HeadInputs};
///
/// let inputs = HeadInputs { keys: &[0.0_f64, 1.0], values: &[1.0, 2.0], queries: &[0.0] };
/// let mut out = [0.0];
/// FastAttention::new().forward(inputs, &mut out)?;
/// assert_eq!(out, [1.5]);
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct HeadInputs<'a, R> {
    /// A number for each token that may be seen.
    pub keys: &'a [R],
    /// What is averaged.
    pub values: &'a [R],
    /// A number for each token that sees.
    pub queries: &'a [R],
}

/// The gradient of a loss with respect to [`HeadInputs`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gradients<R> {
    /// Of the keys.
    pub keys: Vec<R>,
    /// Of the values.
    pub values: Vec<R>,
    /// Of the queries.
    pub queries: Vec<R>,
}

/// How a result was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Every query with every key.
    Direct,
    /// Moments of bins.
    Moments,
}

/// What was done, and the error that is proved for it.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// How.
    pub route: Route,
    /// Bins that keys were sorted into; 0 for direct sums.
    pub bins: usize,
    /// Nodes at which g was evaluated; 0 for direct sums and causal masks.
    pub nodes: usize,
    /// The proved error, over the largest distance of a value from the middle of the values; of gradients, over what
    /// docs/attention.md compares them with.
    pub bound: f64,
}

/// Rank-1 attention: the tolerance, the mask, and what must be done directly.
#[derive(Debug, Clone)]
pub struct FastAttention {
    tolerance: Option<f64>,
    mask: Mask,
    route: Option<Route>,
}

impl Default for FastAttention {
    fn default() -> Self {
        Self::new()
    }
}

/// Numbers that a head can have. The loops are compiled in this crate, once for each type, and not in every crate that calls
/// them, where they may be optimized less.
pub trait HeadNumber: Sized {
    /// [`FastAttention::forward`].
    fn head_forward(attention: &FastAttention, inputs: HeadInputs<Self>, out: &mut [Self]) -> Result<Work>;

    /// [`FastAttention::backward`].
    fn head_backward(
        attention: &FastAttention,
        inputs: HeadInputs<Self>,
        upstream: &[Self],
        gradients: &mut Gradients<Self>,
    ) -> Result<Work>;
}

macro_rules! head_number {
    ($type:ty) => {
        impl HeadNumber for $type {
            fn head_forward(attention: &FastAttention, inputs: HeadInputs<Self>, out: &mut [Self]) -> Result<Work> {
                attention.forward_here(inputs, out)
            }

            fn head_backward(
                attention: &FastAttention,
                inputs: HeadInputs<Self>,
                upstream: &[Self],
                gradients: &mut Gradients<Self>,
            ) -> Result<Work> {
                attention.backward_here(inputs, upstream, gradients)
            }
        }
    };
}

head_number!(f32);
head_number!(f64);

/// Causal attention by running moments, which are in double precision for both types.
fn causal_forward<R: Real>(plan: &CausalPlan, known: &Known<R>, inputs: HeadInputs<R>, prefix: usize, out: &mut [R]) {
    let middle = forward::middle(known.limits);
    let (low, high) = (known.limits.low.to_f64(), known.limits.high.to_f64());
    let load = |range: Range<usize>, [keys, values, queries]: &mut causal::TokenBlock| {
        for (i, at) in range.enumerate().take(causal::BLOCK) {
            (keys[i], queries[i]) = (inputs.keys[at].to_f64(), inputs.queries[at].to_f64());
            values[i] = inputs.values[at].to_f64() - middle;
        }
    };
    // Each chunk is written once, by whoever computes it.
    let chunks: Vec<_> = out.chunks_mut(scan::CHUNK).map(Mutex::new).collect();
    let store = |chunk: usize, means: &[f64]| {
        let mut out = chunks[chunk].lock().unwrap_or_else(PoisonError::into_inner);
        for (out, mean) in out.iter_mut().zip(means) {
            *out = R::from_f64((mean + middle).max(low).min(high));
        }
    };
    let all = Masked { tokens: inputs.keys.len(), prefix, load: &load, store: &store };
    causal::causal(plan, &known.extent, all);
}

/// What is known before anything is computed.
struct Known<R> {
    extent: Extent,
    limits: Limits<R>,
    keys: Limits<R>,
}

impl FastAttention {
    /// No mask, and a tolerance of the type's rounding.
    pub fn new() -> Self {
        Self { tolerance: None, mask: Mask::None, route: None }
    }

    /// The error that truncation may add, over the largest distance of a value from the middle of the values.
    #[must_use]
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = Some(tolerance);
        self
    }

    /// Which keys a query sees: all, those up to its own, or a prefix and those up to its own.
    #[must_use]
    pub fn mask(mut self, mask: Mask) -> Self {
        self.mask = mask;
        self
    }

    /// Takes one route, where it would choose the faster one.
    #[must_use]
    pub fn route(mut self, route: Route) -> Self {
        self.route = Some(route);
        self
    }

    /// The output of each query.
    pub fn forward<R: Real>(&self, inputs: HeadInputs<R>, out: &mut [R]) -> Result<Work> {
        R::head_forward(self, inputs, out)
    }

    /// The gradients of keys, values and queries, from that of the output.
    pub fn backward<R: Real>(
        &self,
        inputs: HeadInputs<R>,
        upstream: &[R],
        gradients: &mut Gradients<R>,
    ) -> Result<Work> {
        R::head_backward(self, inputs, upstream, gradients)
    }

    fn forward_here<R: Real>(&self, inputs: HeadInputs<R>, out: &mut [R]) -> Result<Work> {
        let prefix = self.check(&inputs, out.len())?;
        let Some(known) = known(&inputs)? else {
            out.fill(R::ZERO);
            return Ok(direct_work::<R>(0));
        };
        let n = inputs.keys.len();
        if let Some(prefix) = prefix {
            let plan = CausalPlan::best(&known.extent, self.tolerance_for::<R>());
            if self.is_direct::<R>(&known, 2.0 * plan.cost) || plan.bins > MOST_BINS {
                DirectSums::new(inputs.keys, known.keys, inputs.values, known.limits).run(
                    inputs.queries,
                    &|i| n.min(prefix.max(i + 1)),
                    out,
                );
                return Ok(direct_work::<R>(n));
            }
            causal_forward(&plan, &known, inputs, prefix, out);
            return Ok(Work { route: Route::Moments, bins: plan.bins, nodes: 0, bound: plan.bound });
        }
        let Some(plan) = self.plan::<R>(&known, 2, 1.0) else {
            DirectSums::new(inputs.keys, known.keys, inputs.values, known.limits).run(inputs.queries, &|_| n, out);
            return Ok(direct_work::<R>(n));
        };
        forward::forward(&plan, &known.extent, (inputs.keys, inputs.values, inputs.queries), known.limits, out);
        Ok(moments_work(&plan))
    }

    fn backward_here<R: Real>(
        &self,
        inputs: HeadInputs<R>,
        upstream: &[R],
        gradients: &mut Gradients<R>,
    ) -> Result<Work> {
        let prefix = self.check(&inputs, upstream.len())?;
        let n = inputs.keys.len();
        gradients.keys.resize(n, R::ZERO);
        gradients.values.resize(n, R::ZERO);
        gradients.queries.resize(inputs.queries.len(), R::ZERO);
        let Some(known) = known(&inputs)? else {
            gradients.keys.fill(R::ZERO);
            gradients.values.fill(R::ZERO);
            gradients.queries.fill(R::ZERO);
            return Ok(direct_work::<R>(0));
        };
        let of_upstream = Limits::new("upstream gradient", upstream)?;
        let largest = of_upstream.high.to_f64().max(-of_upstream.low.to_f64());
        // Where gradients may be beyond the type, errors over the largest of them may be, too: direct sums have smaller ones.
        let fits = powers_of_two::fits::<R>(&known.extent, known.limits, largest);
        if let Some(prefix) = prefix.filter(|_| fits) {
            let plan = CausalPlan::for_gradients(&known.extent, self.tolerance_for::<R>());
            if !self.is_direct::<R>(&known, plan.cost / GRADIENT) && plan.bins <= MOST_BINS {
                let all = (inputs, upstream, prefix);
                causal_backward::backward(&plan, &known.extent, all, (known.limits, largest), gradients);
                return Ok(Work { route: Route::Moments, bins: plan.bins, nodes: 0, bound: plan.bound });
            }
        } else if prefix.is_none()
            && fits
            && backward::is_moderate(&known.extent, known.limits)
            && let Some(plan) = self.plan::<R>(&known, 3, backward::FINER)
        {
            backward::backward(&plan, &known.extent, (inputs, upstream), (known.limits, largest), gradients);
            return Ok(moments_work(&plan));
        }
        let seen = |i: usize| prefix.map_or(n, |prefix| n.min(prefix.max(i + 1)));
        let sums = DirectSums::new(inputs.keys, known.keys, inputs.values, known.limits);
        sums.backward(inputs.queries, upstream, &seen, gradients);
        let bound = direct::gradient_bound::<R>(n, inputs.queries.len());
        Ok(Work { bound, ..direct_work::<R>(n) })
    }

    /// [`Self::forward`] for sequences packed one after another, `offsets` as in [`crate::Dataset`], and several heads: all
    /// tokens of the first head, then those of the next.
    pub fn forward_packed<R: Real>(
        &self,
        offsets: &[usize],
        inputs: HeadInputs<R>,
        out: &mut [R],
    ) -> Result<Vec<Work>> {
        let tokens = offsets.last().copied().unwrap_or(0);
        let increasing = offsets.first() == Some(&0) && offsets.is_sorted();
        let heads = out.len().checked_div(tokens).unwrap_or(0);
        let lengths = [inputs.keys, inputs.values, inputs.queries].map(<[R]>::len);
        if !increasing || lengths.iter().any(|&length| length != heads * tokens || length != out.len()) {
            return Err(Error::mismatch(
                format!("{lengths:?} keys, values and queries and room for {} outputs, for {tokens} tokens", out.len()),
                "give offsets from 0 on, and as many of each for every head as there are tokens",
            ));
        }
        let mut rows = Vec::new();
        let mut rest = out;
        for start in (0..heads).map(|head| head * tokens) {
            for window in offsets.windows(2) {
                let (row, others) = rest.split_at_mut(window[1] - window[0]);
                rows.push((start + window[0]..start + window[1], row));
                rest = others;
            }
        }
        let row = |(range, out): (Range<usize>, &mut [R])| {
            let part = |numbers| {
                let numbers: &[R] = numbers;
                &numbers[range.clone()]
            };
            let (keys, values, queries) = (part(inputs.keys), part(inputs.values), part(inputs.queries));
            self.forward(HeadInputs { keys, values, queries }, out)
        };
        rows.into_par_iter().map(row).collect()
    }

    /// [`Self::forward`] for rows of one width, filled up with padding: of each row the first tokens, as many as `lengths`
    /// says, are there, and see each other. Outputs of padding are 0.
    pub fn forward_padded<R: Real>(
        &self,
        width: usize,
        lengths: &[usize],
        inputs: HeadInputs<R>,
        out: &mut [R],
    ) -> Result<Vec<Work>> {
        let sizes = [inputs.keys.len(), inputs.values.len(), inputs.queries.len(), out.len()];
        if lengths.iter().any(|&length| length > width) || sizes.iter().any(|&size| size != width * lengths.len()) {
            return Err(Error::mismatch(
                format!("{sizes:?} numbers for {} rows of width {width}", lengths.len()),
                "give full rows, none of whose lengths is above the width",
            ));
        }
        out.fill(R::ZERO);
        let row = |(i, out): (usize, &mut [R])| {
            let range = i * width..i * width + lengths[i];
            let (keys, values) = (&inputs.keys[range.clone()], &inputs.values[range.clone()]);
            self.forward(HeadInputs { keys, values, queries: &inputs.queries[range] }, &mut out[..lengths[i]])
        };
        out.par_chunks_mut(width.max(1)).enumerate().take(lengths.len()).map(row).collect()
    }

    /// The prefix, if the mask is causal; an error where sizes or the mask do not fit.
    fn check<R>(&self, inputs: &HeadInputs<R>, outputs: usize) -> Result<Option<usize>> {
        let (keys, values, queries) = (inputs.keys.len(), inputs.values.len(), inputs.queries.len());
        if keys != values || queries != outputs {
            return Err(Error::mismatch(
                format!("{keys} keys with {values} values, {queries} queries with {outputs} outputs"),
                "give as many values as keys, and as many outputs as queries",
            ));
        }
        if self.tolerance.is_some_and(|tolerance| !(tolerance > 0.0 && tolerance <= 0.1)) {
            return Err(Error::setting("a `tolerance` that is not above 0 and at most 0.1", "leave it out"));
        }
        let prefix = match self.mask {
            Mask::None => return Ok(None),
            Mask::Causal => 0,
            Mask::Prefix(k) => k,
            Mask::Band(..) | Mask::Matrix(_) => {
                return Err(Error::setting(
                    "a band or a matrix as a `mask`",
                    "take none, causal or prefix: other masks have no running moments",
                ));
            }
        };
        if keys == queries {
            return Ok(Some(prefix));
        }
        Err(Error::mismatch(format!("{queries} queries for {keys} keys under a mask"), "give as many of both"))
    }

    fn tolerance_for<R: Real>(&self) -> f64 {
        self.tolerance.unwrap_or(R::UNIT_ROUNDOFF.to_f64())
    }

    /// Whether direct sums are asked for, or must be taken, or take less than `seconds`.
    fn is_direct<R: Real>(&self, known: &Known<R>, seconds: f64) -> bool {
        let lanes = 64 / size_of::<R>();
        let faster = direct_seconds(&known.extent, lanes) <= seconds && self.is_direct_enough::<R>(known);
        !known.extent.is_moderate()
            || !is_moderate_value(&known.limits)
            || match self.route {
                Some(route) => route == Route::Direct,
                None => faster,
            }
    }

    /// Whether direct sums keep the tolerance, where one was set.
    fn is_direct_enough<R: Real>(&self, known: &Known<R>) -> bool {
        let bound = direct::bound::<R>(known.extent.keys);
        self.tolerance.is_none_or(|tolerance| bound <= tolerance.max(1e-12))
    }

    /// The plan, or none where direct sums are better.
    fn plan<R: Real>(&self, known: &Known<R>, functions: usize, finer: f64) -> Option<Plan> {
        // Whatever the plan, it costs more than this.
        if self.is_direct(known, 20e-6) {
            return None;
        }
        let plan = Plan::best(&known.extent, self.tolerance_for::<R>() / finer, functions);
        (!self.is_direct(known, plan.cost) && 2 * plan.bins.count <= MOST_BINS).then_some(plan)
    }
}

/// Direct gradients take so many times as long as direct means, of which a causal mask leaves half.
const GRADIENT: f64 = 1.5;

/// More bins than this would take too much memory; direct sums take their place.
const MOST_BINS: usize = 1 << 16;

fn direct_work<R: Real>(keys: usize) -> Work {
    Work { route: Route::Direct, bins: 0, nodes: 0, bound: direct::bound::<R>(keys) }
}

fn moments_work(plan: &Plan) -> Work {
    let nodes = 2 * plan.panels.count * plan.nodes;
    Work { route: Route::Moments, bins: 2 * plan.bins.count, nodes, bound: plan.bound }
}

/// Whether sums of values stay clear of overflow and underflow.
fn is_moderate_value<R: Real>(limits: &Limits<R>) -> bool {
    let size = (limits.high.to_f64() * 0.5 - limits.low.to_f64() * 0.5).abs();
    let largest = limits.high.to_f64().abs().max(limits.low.to_f64().abs());
    largest < 2.0_f64.powi(900) && (size == 0.0 || size > 2.0_f64.powi(-900))
}

/// The ranges of all numbers; nothing where there is no key or no query.
fn known<R: Real>(inputs: &HeadInputs<R>) -> Result<Option<Known<R>>> {
    let HeadInputs { keys, values, queries } = *inputs;
    if keys.is_empty() || queries.is_empty() {
        return Ok(None);
    }
    let (key_limits, limits) = (Limits::new("key", keys)?, Limits::new("value", values)?);
    let of_queries = Limits::new("query", queries)?;
    let largest = of_queries.high.to_f64().max(-of_queries.low.to_f64());
    let (low, high) = (key_limits.low.to_f64(), key_limits.high.to_f64());
    let extent = Extent { keys: keys.len(), queries: queries.len(), low, high, largest };
    Ok(Some(Known { extent, limits, keys: key_limits }))
}
