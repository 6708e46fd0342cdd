//! Proposition 1, and the first step of its proof.

use dashu_ratio::RBig;
use monolayer::Result;
use monolayer::approximate::Approximator;
use monolayer::approximate::expression::Expression;
use monolayer::approximate::function::Function as _;
use monolayer::approximate::measured_distance::distance;

use super::{Claim, Context, Finding};
use crate::approximation_study::slope;

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "proposition-1",
        number: "Proposition 1, (1), (19)",
        statement: "one single-head layer between two feed-forward blocks gets within any ε, in d_p, of a continuous equivariant function",
        printed: r"1 \le p < \infty \Rightarrow for any f \in F_{PE} (permutation equivariant, continuous, on a compact domain in R^{d \times n}) and \epsilon > 0 there is g \in T_2 = \{F_2^{(FF)} \circ F_S^{(SA)} \circ F_1^{(FF)} : R^{n \times d} \to R^{n \times d}\} (19) with one-layer and single-head self-attention such that d_p(f, g) < \epsilon, d_p(f_1, f_2) := (\int ||f_1(X) - f_2(X)||_p^p dX)^{1/p} (1)",
        note: "(19) prints R^{n×d} → R^{n×d} for R^{d×n} → R^{d×n}. The run is for p = 2 on the cube.",
        run: "three functions on grids of 3, 6 and 12, compiled: the certified bound falls like 1/grid, and the measured distance keeps it",
        code: ("crates/monolayer/src/approximate/mod.rs", "compile"),
        mutation: "W^(O) = 0",
        find: proposition_1,
    },
    Claim {
        id: "equation-55",
        number: "(51) to (55)",
        statement: "a step function on a grid is near f in d_p (repaired: f extended continuously, not by zero)",
        printed: r"f continuous on a compact set, normalized without loss of generality: f(Z) = 0 (51) for any Z \in R^{d \times n} \setminus [0, 1]^{d \times n}, -1 \le f(Z) \le 1 (52) for any Z \in [-1, 1]^{d \times n}, G_D = \{1/D, 2/D, \dots, 1\}^{d \times n} \subset R^{d \times n} (53), \bar{f}(Z) = \sum_{L \in G_D} f(L) 1_{Z \in L + [-1/D, 0]^{d \times n}} (54): d_p(f, \bar{f}) < \epsilon/3 (55) for some D \in N, because of uniform continuity of f",
        note: "(54) needs f at all of G_D. (51) gives it outside the cube; if the domain is not the whole cube, no extension inside is printed, and by zero it need not be continuous. On a domain that is the whole cube (55) holds all the same: f(x) = x, d = n = 1, is 1/(2D) away for p = 1. (52) has [−1,1] beside [0,1] in (51), without harm. The closed cells of (54) overlap on faces, a set of measure 0.",
        run: "d = n = 1, f = 1 on the compact K = [0,1] without the open intervals of radius 2^(−D)/(8(D+1)) around all k/D: f at all k/D for D to 64, the measure of K, both distances",
        code: ("crates/monolayer-lab/src/claims/approximation.rs", "equation_55"),
        mutation: "the continuous extension in the place of zero",
        find: equation_55,
    },
];

fn proposition_1(context: &Context) -> Result<Finding> {
    let grids = context.effort(12, 24);
    let approximator = Approximator::new();
    let (mut keeps, mut falls) = (true, true);
    let (mut ratio, mut slowest, mut coarse, mut fine, mut ids) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64, 0);
    for name in ["zoo:wave", "zoo:bump", "zoo:attention"] {
        let f = Expression::parse(name, 1)?.at_length(3)?;
        let mut bounds = Vec::new();
        for grid in [grids / 4, grids / 2, grids] {
            let mut g = approximator.compile(&f, grid)?;
            if context.mutated {
                let attention = g.model.transformer.layers.iter_mut().filter_map(|layer| layer.attention.as_mut());
                attention.flat_map(|attention| &mut attention.heads).for_each(|head| head.w_o.data.fill(0.0));
            }
            let (bound, entries) = (g.certified(), f.dim() * f.length());
            let measured = distance(&|x, y| f.values(x, y), &|x, y| g.evaluate(x, y), entries, 2.0, 1 << 14, 1);
            keeps &= measured.distance - 4.0 * measured.error <= bound;
            ratio = ratio.max(measured.distance / bound);
            ids = ids.max(g.order.len());
            bounds.push((grid as f64, bound));
        }
        let slope = slope(&bounds);
        falls &= slope < -0.8;
        slowest = if slowest == 0.0 { slope } else { slowest.max(slope) };
        coarse = coarse.max(bounds[0].1);
        fine = fine.max(bounds[2].1);
    }
    let finding = Finding::printed(keeps && falls)
        .count("functions", 3)
        .count("finest grid", grids)
        .count("ids at the finest grid", ids)
        .number("largest bound at the coarsest grid", coarse)
        .number("largest bound at the finest grid", fine)
        .number("slowest fall: bound ~ grid to the power", slowest)
        .number("largest measured distance over its bound", ratio);
    Ok(if keeps && falls {
        finding
    } else {
        finding.counterexample("a measured distance above its bound, or a slow fall")
    })
}

/// Whether `k / D` is in one of the open intervals that K leaves out, for granularities up to `most`.
fn left_out(k: u32, levels: u32, most: u32) -> bool {
    let fraction = |k: u32, levels: u32| RBig::from(k) / RBig::from(levels);
    let x = fraction(k, levels);
    (1..=most).any(|other| {
        let nearest = (f64::from(k) / f64::from(levels) * f64::from(other)).round() as u32;
        let off = fraction(nearest, other) - &x;
        let off = if off < RBig::ZERO { -off } else { off };
        let radius = RBig::ONE / (RBig::from(8 * (other + 1)) * RBig::from(1_u128 << other));
        off < radius
    })
}

fn equation_55(context: &Context) -> Result<Finding> {
    let most = 64;
    // (D + 1) intervals of length 2 * 2^-D / (8 (D + 1)) for each D: 2^-D / 4, and 1/4 in all.
    let removed = (1..=most).map(|d| RBig::ONE / RBig::from(4 * (1_u128 << d))).fold(RBig::ZERO, |sum, x| sum + x);
    let measure = 1.0 - 0.25;
    // f is 1 on K. Where its extension is 0 on the whole grid, the step function is 0, and K's measure is the distance; where it is
    // 1 on the whole grid, the distance on K is 0.
    let zeros = |levels: u32, by_zero: bool| (1..=levels).filter(|&k| by_zero && left_out(k, levels, most)).count();
    let nearest = |by_zero: bool| {
        let distance = |levels: u32| measure * zeros(levels, by_zero) as f64 / f64::from(levels);
        (1..=most).map(distance).fold(f64::INFINITY, f64::min)
    };
    let by_zero = !context.mutated;
    let all: usize = (1..=most).map(|levels| zeros(levels, by_zero)).sum();
    let (nearest, continuous) = (nearest(by_zero), nearest(false));
    Ok(Finding::repaired(nearest < 1.0 / 3.0, continuous < 1.0 / 3.0)
        .number("measure left out, to D = 64", removed.to_f64().value())
        .count("points of all grids to D = 64", (1..=most as usize).sum())
        .count("where f extended by zero is 0", all)
        .number("smallest distance d₁, extended by zero", nearest)
        .number("distance on K, extended continuously", continuous)
        .counterexample("(54) needs f at every k/D, and no extension to the cube is printed for a domain K inside it. By zero it fails: p = 1, ε = 1, K of measure 3/4 or more without any k/D, f = 1 on K: then f̄ = 0 and d₁(f, f̄) ≥ 3/4 for every D, where less than 1/3 is asked for"))
}
