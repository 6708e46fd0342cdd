//! Proposition 1: universal approximation, and the equations of its proof.

use crate::approximation_study::slope;
use monolayer::approximate::Approximator;
use monolayer::approximate::distance::distance;
use monolayer::approximate::expression::Expression;
use monolayer::approximate::function::Function as _;
use monolayer::{Matrix, Result};

use super::{Claim, Context, Finding};
use crate::printed_units::{block, bump, penalty, quantizer, sum};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "proposition-1",
        place: "Proposition 1",
        statement: "one rank-1 layer between two feed-forward blocks gets within any epsilon, in d_p, of a continuous equivariant function",
        run: "three functions on grids of 3, 6 and 12, compiled: the certified bound falls like 1/grid, and the measured distance keeps it",
        code: ("crates/monolayer/src/approximate/mod.rs", "compile"),
        mutation: "W_O = 0",
        find: proposition_1,
    },
    Claim {
        id: "equation-51",
        place: "(51), (52)",
        statement: "a function on a compact domain may be brought to the unit cube and extended by zero (repaired: in L^p only)",
        run: "1 on [0, 1], extended by zero, against ramps of ever smaller width: sup norm and L^2 norm of the difference",
        code: ("crates/monolayer-lab/src/claims/proposition.rs", "equation_51"),
        mutation: "the repair is read in the sup norm",
        find: equation_51,
    },
    Claim {
        id: "equation-58",
        place: "(58)",
        statement: "the quantizer's sum over t = 0..D has the levels 0, 1/D, ..., 1 (repaired: t = 0..D-1)",
        run: "the hidden units at cell centers and outside the cube",
        code: ("crates/monolayer-lab/src/printed_units.rs", "quantizer"),
        mutation: "the repaired sum ends at D-2",
        find: equation_58,
    },
    Claim {
        id: "equation-59",
        place: "(59)",
        statement: "the penalty is 0 inside the cube and -1 outside (repaired: two signs)",
        run: "the hidden units at -0.5, 0.5 and 1.5 with ramps of 1/1000",
        code: ("crates/monolayer-lab/src/printed_units.rs", "penalty"),
        mutation: "a sign of the repaired units is swapped",
        find: equation_59,
    },
    Claim {
        id: "equation-60",
        place: "(60)",
        statement: "a feed-forward block lets a token know that another one is outside the cube",
        run: "the penalty as a block on two tokens, the second moved out of the cube",
        code: ("crates/monolayer/src/paper/feed_forward.rs", "apply"),
        mutation: "the first token is moved, too",
        find: equation_60,
    },
    Claim {
        id: "equation-67",
        place: "(67)",
        statement: "the bump is 1 at its center and vanishes far away (repaired: a factor 2 on the middle unit)",
        run: "the hidden units from -1000 to 1000",
        code: ("crates/monolayer-lab/src/printed_units.rs", "bump"),
        mutation: "a factor of 3",
        find: equation_67,
    },
    Claim {
        id: "equation-68",
        place: "(67), (68)",
        statement: "a sum of bumps, one per coordinate, is a bump in d dimensions",
        run: "repaired bumps at the center and far away along one axis, d = 2",
        code: ("crates/monolayer-lab/src/printed_units.rs", "bump"),
        mutation: "d = 1",
        find: equation_68,
    },
    Claim {
        id: "equation-69",
        place: "(69)",
        statement: "the set where the quantizer is between two levels has a measure that vanishes with the ramps' width (repaired: within the cube)",
        run: "its area in [-R, R]^2 for growing R, and its share of the cube for shrinking ramps",
        code: ("crates/monolayer-lab/src/claims/proposition.rs", "between_levels"),
        mutation: "a box of 100 in the place of the cube",
        find: equation_69,
    },
    Claim {
        id: "equation-70",
        place: "(70)",
        statement: "the share of cells with equal tokens vanishes like D^(-d)",
        run: "cells counted for d = 1, 2, n = 2, 3 and D to 32, against n (n-1) / 2 D^(-d)",
        code: ("crates/monolayer-lab/src/claims/proposition.rs", "share_with_equal_tokens"),
        mutation: "D^(-dn) in the place of D^(-d)",
        find: equation_70,
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

/// `(sup, L^2)` of the difference between 1 on [0, 1], extended by zero, and a trapezoid with ramps of a width outside.
fn distances(width: f64) -> (f64, f64) {
    let steps = 4096;
    // Outside the cube on one side; inside they agree.
    let differences = (0..steps).map(|i| 1.0 - (f64::from(i) + 0.5) / f64::from(steps));
    let (sup, square) = differences.fold((0.0_f64, 0.0), |(sup, sum), x| (sup.max(x), sum + x * x));
    (sup, (2.0 * square / f64::from(steps) * width).sqrt())
}

fn equation_51(context: &Context) -> Result<Finding> {
    let widths = (1..=20).map(|k| 0.5_f64.powi(k));
    let (sup, l2) = widths.map(distances).fold((f64::INFINITY, f64::INFINITY), |m, x| (m.0.min(x.0), m.1.min(x.1)));
    Ok(Finding::repaired(sup < 0.5, context.mutate(l2, sup) < 1e-3)
        .number("smallest distance in the sup norm", sup)
        .number("smallest distance in L^2", l2)
        .counterexample("a continuous function is at least 1/2 off at a jump of 1"))
}

fn equation_58(context: &Context) -> Result<Finding> {
    let (levels, steepness) = (8, 1024.0);
    let center = |c: usize| (c as f64 + 0.5) / levels as f64;
    let off = |last: usize| {
        let units = quantizer(levels, last, steepness);
        let inside = (0..levels).map(|c| (center(c), (c + 1) as f64 / levels as f64));
        let places = inside.chain([(-1.0, 0.0), (2.0, 1.0)]);
        places.map(|(z, level)| (sum(&units, z) - level).abs()).fold(0.0, f64::max)
    };
    let (printed, repaired) = (off(levels), off(context.mutate(levels - 1, levels - 2)));
    let beyond = sum(&quantizer(levels, levels, steepness), 2.0);
    Ok(Finding::repaired(printed < 1e-9, repaired < 1e-9)
        .number("largest error as printed", printed)
        .number("largest error repaired", repaired)
        .counterexample(format!("D = 8: {beyond} beyond the cube, where 1 is meant")))
}

fn equation_59(context: &Context) -> Result<Finding> {
    let values = |s: f64, s2: f64| [-0.5, 0.5, 1.5].map(|z| sum(&penalty(1000.0, s, s2), z));
    let (printed, repaired) = (values(1.0, -1.0), values(context.mutate(-1.0, 1.0), 1.0));
    let meant = [-1.0, 0.0, -1.0];
    Ok(Finding::repaired(printed == meant, repaired == meant)
        .number("as printed at -0.5", printed[0])
        .number("as printed at 1.5", printed[2])
        .number("repaired at -0.5", repaired[0])
        .number("repaired at 1.5", repaired[2])
        .counterexample(format!("{} at -0.5 and {} at 1.5, where -1 is meant", printed[0], printed[2])))
}

fn equation_60(context: &Context) -> Result<Finding> {
    let penalty = block(&penalty(1000.0, -1.0, 1.0));
    let first = |tokens: [f64; 2]| penalty.apply(&Matrix::new(2, 1, tokens.to_vec())).data[0];
    let (inside, outside) = (first([0.5, 0.5]), first([context.mutate(0.5, 1.75), 1.5]));
    Ok(Finding::printed((inside - outside).abs() > 0.0)
        .number("token 1 while token 2 is inside", inside)
        .number("token 1 while token 2 is outside", outside)
        .counterexample("token 2 moves from 0.5 to 1.5, and the output at token 1 stays"))
}

fn equation_67(context: &Context) -> Result<Finding> {
    let values = |middle: f64| [-1000.0, -1.0, 0.0, 1.0, 1000.0].map(|z| sum(&bump(middle), z));
    let (printed, repaired) = (values(1.0), values(context.mutate(2.0, 3.0)));
    let meant = [0.0, 0.0, 1.0, 0.0, 0.0];
    Ok(Finding::repaired(printed == meant, repaired == meant)
        .number("as printed at 1000", printed[4])
        .number("repaired at 1000", repaired[4])
        .counterexample(format!("{} at 1000, where 0 is meant", printed[4])))
}

fn equation_68(context: &Context) -> Result<Finding> {
    let d = context.mutate(2, 1);
    let at = |z: &[f64]| z.iter().take(d).map(|&z| sum(&bump(2.0), z)).sum::<f64>();
    let (center, along, away) = (at(&[0.0, 0.0]), at(&[1000.0, 0.0]), at(&[1000.0, 1000.0]));
    Ok(Finding::printed(center > 0.0 && along == 0.0 && away == 0.0)
        .number("at the center", center)
        .number("at (1000, 0)", along)
        .number("at (1000, 1000)", away)
        .counterexample("in two dimensions it is 1 at (1000, 0)"))
}

/// The length of the part of the line where the quantizer is between two levels, all of which is in [0, 1].
fn between_levels(levels: usize, steepness: f64) -> f64 {
    let units = quantizer(levels, levels - 1, steepness);
    let steps = 1 << 14;
    let between = |i: &i32| {
        let value = sum(&units, (f64::from(*i) + 0.5) / f64::from(steps)) * levels as f64;
        (value - value.round()).abs() > 1e-6
    };
    (0..steps).filter(between).count() as f64 / f64::from(steps)
}

fn equation_69(context: &Context) -> Result<Finding> {
    let levels = 4;
    // In a square: all but the product of the two sets where it is at a level.
    let area = |side: f64, steepness: f64| side * side - (side - between_levels(levels, steepness)).powi(2);
    let growth = area(2000.0, 256.0) / area(20.0, 256.0);
    let narrow = area(context.mutate(1.0, 100.0), 1024.0);
    Ok(Finding::repaired(growth < 2.0, narrow <= 2.0 * levels as f64 / 1024.0 * 1.01)
        .number("area in [-10, 10]^2", area(20.0, 256.0))
        .number("area in [-1000, 1000]^2", area(2000.0, 256.0))
        .number("share of the cube, ramps of 1/256", area(1.0, 256.0))
        .number("share of the cube, ramps of 1/1024", narrow)
        .counterexample("strips reach to infinity: the area in [-R, R]^2 grows like R"))
}

/// The share of the `D^(dn)` cells in which two of the n tokens are in the same one of `D^d` cells.
fn share_with_equal_tokens(cells: f64, n: i32) -> f64 {
    1.0 - (0..n).map(|i| 1.0 - f64::from(i) / cells).product::<f64>()
}

fn equation_70(context: &Context) -> Result<Finding> {
    let mut largest = 0.0_f64;
    for (d, n) in [(1, 2), (1, 3), (2, 2), (2, 3)] {
        for levels in [4.0_f64, 8.0, 16.0, 32.0] {
            let share = share_with_equal_tokens(levels.powi(d), n);
            let rate = levels.powi(-context.mutate(d, d * n)) * f64::from(n * (n - 1)) / 2.0;
            largest = largest.max(share / rate);
        }
    }
    Ok(Finding::printed(largest <= 1.0 + 1e-12)
        .number("largest share over n (n-1) / 2 D^(-d)", largest)
        .number("share for d = 1, n = 3, D = 32", share_with_equal_tokens(32.0, 3)))
}
