//! How finely keys and queries are cut, from the tolerance: the constants of docs/attention.md, and the bound that they give.

use super::grading::Grading;
use super::moments::Chunks;

/// Phases of keys within reach of the top stay below this angle, on both sides, on the Bernstein ellipse of a panel.
const ANGLE: f64 = 1.25;
/// What keys beyond a panel's width may weigh on its ellipse, against the top key.
const BEYOND: f64 = 0.01;
/// The unit roundoff of the arithmetic, double precision for both types.
pub(super) const U: f64 = f64::EPSILON / 2.0;
/// Moments of a bin that there is code for.
pub(super) const TERMS: [usize; 4] = [4, 8, 12, 16];
/// Nodes of a panel that there is code for.
pub(super) const NODES: [usize; 4] = [4, 8, 12, 16];
/// Bins of a group, whose sums are formed first.
pub(super) const GROUP: usize = 16;

/// What is known of keys and queries before they are cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub keys: usize,
    pub queries: usize,
    /// The smallest and the largest key.
    pub low: f64,
    pub high: f64,
    /// The largest |y|.
    pub largest: f64,
}

impl Extent {
    /// Whether widths and products stay clear of overflow and underflow.
    pub fn is_moderate(&self) -> bool {
        let limits = 2.0_f64.powi(-240)..2.0_f64.powi(240);
        let moderate = |x: f64| x == 0.0 || limits.contains(&x);
        let size = self.high.abs().max(self.low.abs());
        size < limits.end && moderate(self.high - self.low) && moderate(self.largest)
    }
}

/// Bins of keys, panels of queries, and what they promise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub terms: usize,
    pub nodes: usize,
    pub bins: Grading,
    pub panels: Grading,
    /// Keys whose score is below the top one's by more than this are left out.
    pub reach: f64,
    /// What it was made for.
    pub tolerance: f64,
    /// |y| times half the width of a bin is at most this.
    pub delta: f64,
    /// Seconds, roughly.
    pub cost: f64,
    /// The proved error, over the largest distance of a value from their middle.
    pub bound: f64,
}

/// The largest x in a range for which an increasing function stays below a limit.
fn largest_below(limit: f64, (mut low, mut high): (f64, f64), function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..24 {
        let middle = (low * high).sqrt();
        if function(middle) <= limit { low = middle } else { high = middle }
    }
    low
}

/// What Chebyshev's polynomial of so many terms leaves of e^x for |x| <= delta, relatively.
pub(super) fn truncation(terms: usize, delta: f64) -> f64 {
    let power = (1..=terms).fold(2.0, |product, j| product * delta / (2 * j) as f64);
    let next = delta / (2 * (terms + 1)) as f64;
    power * (delta + delta * delta / 4.0 / (terms + 1) as f64).exp() / (1.0 - next)
}

/// The coefficients of that polynomial: those of 1, x, x^2, ...
pub(super) fn exponential(terms: usize, delta: f64) -> Vec<f64> {
    // I_j(delta) by its series.
    let bessel = |j: usize| {
        let mut term = (1..=j).fold(1.0, |product, i| product * delta / (2 * i) as f64);
        let mut sum = 0.0;
        for i in 1..40 {
            sum += term;
            term *= delta * delta / 4.0 / (i * (i + j)) as f64;
        }
        sum
    };
    let (mut before, mut chebyshev) = (vec![0.0; terms], vec![0.0; terms]);
    chebyshev[0] = 1.0;
    let mut sum = vec![0.0; terms];
    for j in 0..terms {
        let coefficient = bessel(j) * if j == 0 { 1.0 } else { 2.0 };
        sum.iter_mut().zip(&chebyshev).for_each(|(sum, c)| *sum += coefficient * c);
        let twice = if j == 0 { 1.0 } else { 2.0 };
        let next = |l: usize| if l == 0 { 0.0 } else { twice * chebyshev[l - 1] } - before[l];
        let next: Vec<f64> = (0..terms).map(next).collect();
        before = std::mem::replace(&mut chebyshev, next);
    }
    let mut power = 1.0;
    for c in &mut sum {
        *c /= power;
        power *= delta;
    }
    sum
}

/// The widest bins, in units of a score, for which so many terms leave at most this.
pub(super) fn widest(terms: usize, left: f64) -> f64 {
    // Wider bins need larger coefficients, which round.
    let most = if left < 1e-12 { 1.0 } else { 2.0 };
    largest_below(left, (1e-9, most), |delta| truncation(terms, delta))
}

/// The widest bins for which so many terms, 12 or more, and their derivative leave at most this; and what they leave.
pub(super) fn widest_slope(terms: usize, left: f64) -> (f64, f64) {
    // The j-th Chebyshev polynomial is j^2 times as steep as it is large.
    let leaves = |delta: f64| truncation(terms, delta) * (1.1 * (terms * terms) as f64 / delta).max(1.0);
    let most = if left < 1e-12 { 1.0 } else { 2.0 };
    let delta = largest_below(left, (1e-9, most), leaves);
    (delta, leaves(delta))
}

/// What interpolation at so many nodes leaves, over the largest value, for the ellipse of parameter rho.
fn interpolation(nodes: usize, rho: f64) -> f64 {
    4.0 * (1.0 + BEYOND) / (ANGLE.cos() - BEYOND) * rho.powi(1 - nodes as i32) / (rho - 1.0)
}

/// A width or a largest query that may be zero, as a divisor: all that it divides is then zero, too.
pub(super) fn positive(x: f64) -> f64 {
    x.max(2.0_f64.powi(-240))
}

/// The smallest parameter of an ellipse for which so many nodes leave at most this.
fn roundest(nodes: usize, left: f64) -> f64 {
    1.0 / largest_below(left, (1e-12, 1.0 / 6.0), |x| interpolation(nodes, 1.0 / x))
}

/// A number of terms and the width of bins, or a number of nodes and the parameter of ellipses.
type Cut = (usize, f64);

/// The smallest power of two that is at least x, as its exponent.
pub(super) fn bits(x: f64) -> u32 {
    (x.log2().ceil() as u32).clamp(1, 24)
}

impl Plan {
    /// The plan for a number of moments and nodes.
    fn new(extent: &Extent, tolerance: f64, (terms, delta): Cut, (nodes, rho): Cut, functions: usize) -> Self {
        let (width, n) = (extent.high - extent.low, extent.keys as f64);
        let (w, y) = (positive(width), positive(extent.largest));
        // Panels (step 3 of the proof).
        let (major, minor) = (f64::midpoint(rho, 1.0 / rho), (rho - 1.0 / rho) / 2.0);
        let half_panel = (2.0 * ANGLE / (minor * w)).min(y);
        let within = (n / BEYOND).ln();
        let panel_bits = bits(minor * within / (2.0 * ANGLE) + major);
        let panels = Grading::new(half_panel, panel_bits, extent.largest);
        // Bins (step 1). A panel's queries differ by a little, and so does their reach.
        let reach = (32.0 * n / tolerance).ln();
        let furthest = reach * (1.0 + 2.0 / f64::from(1 << panel_bits)) + 2.0 * half_panel * w;
        let bins = Grading::new((delta / y).min(w / 2.0), bits(furthest / delta), width / 2.0);
        let mut plan = Self { terms, nodes, bins, panels, reach, delta, tolerance, cost: 0.0, bound: 0.0 };
        plan.bound = plan.error(extent, rho, functions);
        plan.cost = plan.seconds(extent, functions);
        plan
    }

    /// The cheapest plan.
    pub fn best(extent: &Extent, tolerance: f64, functions: usize) -> Self {
        let tolerance = tolerance.max(f64::EPSILON);
        let deltas = TERMS.map(|terms| (terms, widest(terms, tolerance / 32.0)));
        let rhos = NODES.map(|nodes| (nodes, roundest(nodes, tolerance / 2.0)));
        let plans =
            deltas.iter().flat_map(|&delta| rhos.map(|rho| Self::new(extent, tolerance, delta, rho, functions)));
        plans.min_by(|a, b| a.cost.total_cmp(&b.cost)).expect("there are plans")
    }

    /// The error of `g` over the largest |v| (values centered), as docs/attention.md derives it.
    fn error(&self, extent: &Extent, rho: f64, functions: usize) -> f64 {
        let delta = self.delta;
        let n = extent.keys as f64;
        let grow = (2.0 * delta).exp();
        let additions = Chunks::new(extent.keys, 2 * self.bins.count * functions * self.terms).additions;
        // Moments and their polynomial, the exponential, the sum over bins, all relative to positive sums.
        let polynomial = grow * (additions + 10 + 2 * self.terms) as f64 * U;
        let sums = (6 + GROUP + 2 * self.bins.count / GROUP) as f64 * U;
        let relative = truncation(self.terms, delta) + n * (-self.reach).exp() + polynomial + sums;
        // Scores that are off by 5 u of themselves move the mean by 5 u ln n at most.
        let scores = 2.0 * U * (5.0 * n.max(1.0).ln() + 3.0 * delta);
        let node = 2.0 * relative / (1.0 - relative) + scores + 3.0 * U;
        let lebesgue = 1.0 + std::f64::consts::FRAC_2_PI * (self.nodes as f64).ln();
        // The coefficients of the polynomial, in absolute values.
        let ratio = (1.0 + 2.0_f64.sqrt()) / rho;
        let size = 1.0 + 4.0 / (ANGLE.cos() - BEYOND) * ratio / (1.0 - ratio);
        let evaluation = (4 * self.nodes + 6) as f64 * U * size;
        interpolation(self.nodes, rho) + lebesgue * node + evaluation
    }

    /// Roughly how long it takes. Measured constants: they decide what is taken, never what comes out.
    fn seconds(&self, extent: &Extent, functions: usize) -> f64 {
        let numbers = (functions * self.terms) as f64;
        let keys = extent.keys as f64 * (1.5e-9 + 0.10e-9 * numbers);
        let queries = extent.queries as f64 * (1.2e-9 + 0.20e-9 * self.nodes as f64 * (functions - 1) as f64);
        let panels = (2 * self.panels.count) as f64;
        // Bins within reach of a panel.
        let bins = (2.0 * self.bins.count as f64).min(extent.keys as f64);
        let pairs = panels * bins;
        let memory = 2.0 * self.bins.count as f64 * numbers * 2e-9;
        20e-6 + memory + keys + queries + pairs * self.nodes as f64 * (0.8e-9 + 0.06e-9 * numbers) + panels * 50e-9
    }
}

/// Roughly how long direct sums take.
pub(super) fn direct_seconds(extent: &Extent, lanes: usize) -> f64 {
    extent.keys as f64 * extent.queries as f64 * 6e-9 / lanes as f64 + 3e-8 * extent.queries as f64
}
