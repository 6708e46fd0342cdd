//! The second feed-forward block in the proof of Proposition 1, (67) to (71).

use monolayer::Result;

use super::{Claim, Context, Finding};
use crate::printed_units::{Unit, bump, penalty, quant, staircase, step_penalty, sum};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "equation-67",
        number: "(67), (68), one coordinate",
        statement: "the bump is f(L) at its center, and in [0,1] (repaired: a factor 2, the last term inside the sum, between 0 and f(L))",
        printed: r"bump_R(Z) = \frac{f(L)}{dn} \sum_{t=1}^d \sum_{k=1}^n (\sigma_R[R (Z_{t,k} - L_{t,k}) - 1] - \sigma_R[R (Z_{t,k} - L_{t,k})]) (67) + \sigma_R[R (Z_{t,k} - L_{t,k}) + 1] (68), R > 0, a bump function for each L \in \tilde{G}_D; F_2^{(FF)} is their sum, 0 \le F_2^{(FF)} \le 1",
        note: "The missing factor 2 may be the transcription's. The parenthesis closes before the last term, which needs t and k. Without the factor no R is large enough: beyond L + 1/R the three units add up to R(Z − L). Repaired, a bump is between 0 and f(L), which (52) allows to be negative.",
        run: "d = n = D = L = 1: the hidden units for R = 1, 16, 1024 and 2^20 at R(Z − L) = −1000, −1, −1/2, 0, 1/2, 1, 2 and 1000; f(L) = 1, and in the repair f(L) = 1, 1/2 and −1",
        code: ("crates/monolayer-lab/src/printed_units.rs", "bump"),
        mutation: "a factor of 3",
        find: equation_67,
    },
    Claim {
        id: "equation-68",
        number: "(67), (68), and the bounds after them",
        statement: "the sum of all bumps takes each L to f(L), what lies below 1/4D to 0, and stays between 0 and 1",
        printed: r"bump_R(Z) = \frac{f(L)}{dn} \sum_{t=1}^d \sum_{k=1}^n (\sigma_R[R (Z_{t,k} - L_{t,k}) - 1] - \sigma_R[R (Z_{t,k} - L_{t,k})]) (67) + \sigma_R[R (Z_{t,k} - L_{t,k}) + 1] (68) for each L \in \tilde{G}_D, added up to F_2^{(FF)}: if R > 0 is large enough, F_2^{(FF)} is f(L) at each L \in \tilde{G}_D and 0 at Z \in (-\infty, 1/4D)^{d \times n}; 0 \le F_2^{(FF)} \le 1 always",
        note: "A sum of bumps of coordinates is no bump: cells that share a coordinate add up. The bumps are also centered at L and not at its context id, and a feed-forward block cannot add up over k. f may be negative by (52). The last term of (67), (68) is taken inside the sum, since it needs t and k.",
        run: "the last term inside the sum; d = 1, n = 2, D = 3, R = 1000, f ≡ 1 and f ≡ −1, without and with the factor 2: F₂ at the points of G̃_D and below 1/4D; d = 2, n = 1, D = 2: F₂ at (1/2, 1/2)",
        code: ("crates/monolayer-lab/src/claims/second_block.rs", "all_bumps"),
        mutation: "d = n = 1, the bound 0 ≤ F₂ for f ≡ 1 only",
        find: equation_68,
    },
    Claim {
        id: "equation-69",
        number: "(69)",
        statement: "narrow ramps change the whole network little in d_p, given (60)",
        printed: r"d_p(F_2^{(FF)} \circ F_S^{(SA)} \circ F_1^{(FF)}, F_2^{(FF)} \circ F_S^{(SA)} \circ \bar{F}_1^{(FF)}) < \frac{\epsilon}{3} (69) for sufficiently small \delta > 0",
        note: "The run measures an area, not d_p for the F₂ of (67), (68), which equation-68 finds false: \"holds\" is for every bounded F₂ that does what is said of it. Where no entry is positive (65) gives 0 on both sides. With a penalty of each token by itself, all that (3) can do, the area would be infinite: the defect is (60)'s.",
        run: "d = 1, n = 2, D = 4: the area where F₁ (ramps of δ, (59) repaired, penalties added up) differs from F̄₁ and one has a positive entry, for δ = 1/16, 1/32, 1/64",
        code: ("crates/monolayer-lab/src/claims/second_block.rs", "differing_area"),
        mutation: "each token's penalty by itself",
        find: equation_69,
    },
    Claim {
        id: "equation-70",
        number: "(70)",
        statement: "the share of cells with duplicate tokens vanishes like D^(−d)",
        printed: r"|G_D \setminus \tilde{G}_D| = O(D^{-d} |G_D|); d_p(F_2^{(FF)} \circ F_S^{(SA)} \circ \bar{F}_1^{(FF)}, \bar{f}) < \frac{\epsilon}{3} (70) for sufficiently large D",
        note: "The run counts cells, which is what (70) rests on; it does not measure d_p for the F₂ of (67), (68), which equation-68 finds false. \"Holds\" is for the share, and for an F₂ that does what is said of it. (71) follows from (55) and (70) as printed, with F̄₁; for the Transformer it needs F₁ without the bar, and (69).",
        run: "cells counted for d = 1, 2, n = 2, 3 and D to 32, against n(n−1)/2 D^(−d)",
        code: ("crates/monolayer-lab/src/claims/second_block.rs", "share_with_equal_tokens"),
        mutation: "D^(−dn) in the place of D^(−d)",
        find: equation_70,
    },
    Claim {
        id: "equation-70-volume",
        number: "before (70)",
        statement: "a cell has area D^(−d) (repaired: D^(−dn))",
        printed: r"there are |G_D \setminus \tilde{G}_D| = O(D^{-d} |G_D|) L \in G_D with equal tokens, and the cell of each has area D^{-d}",
        note: "The share above is what the proof needs.",
        run: "the area of all cells of the unit cube, d = 1, n = 2, D = 4",
        code: ("crates/monolayer-lab/src/claims/second_block.rs", "volume"),
        mutation: "D^(−d(n+1)) in the repair",
        find: volume,
    },
];

fn equation_67(context: &Context) -> Result<Finding> {
    let scales = [1.0, 16.0, 1024.0, 1_048_576.0];
    // The bump of d = n = L = 1, in multiples of 1/R from its center: these are exact.
    let values = |f: f64, scale: f64, middle: f64| {
        [-1000.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 1000.0].map(|z| bumps(f, scale, &[1.0], middle, &[1.0 + z / scale]))
    };
    // At the center f(L), and between low and high everywhere.
    let holds = |values: [f64; 8], f: f64, [low, high]: [f64; 2]| {
        values[3] == f && values.iter().all(|value| (low..=high).contains(value))
    };
    // For large enough R: some R would do.
    let printed = scales.iter().any(|&scale| holds(values(1.0, scale, 1.0), 1.0, [0.0, 1.0]));
    let repaired = scales.iter().all(|&scale| {
        let middle = context.mutate(2.0, 3.0);
        [1.0, 0.5, -1.0].iter().all(|&f: &f64| holds(values(f, scale, middle), f, [f.min(0.0), f.max(0.0)]))
    });
    let at = |scale: f64, middle: f64| bumps(1.0, scale, &[1.0], middle, &[3.0]);
    let [a, b, c] = [1.0, 16.0, 1024.0].map(|scale| at(scale, 1.0));
    Ok(Finding::repaired(printed, repaired)
        .number("as printed at L + 2/R, R = 1", values(1.0, 1.0, 1.0)[6])
        .number("R = 2^20", values(1.0, scales[3], 1.0)[6])
        .number("as printed at L + 2, R = 1024", c)
        .number("repaired at L + 2, R = 1024", at(1024.0, 2.0))
        .counterexample(format!(
            "d = n = 1, f(L) = 1, every R: R z at Z = L + z for z ≥ 1/R, where at most 1 is printed; R = 1, 16, 1024: {a}, {b}, {c} at L + 2"
        )))
}

/// (67), (68) for a center: `f(L)/(dn)` times the sum of the bumps of all coordinates, the factor `middle` on the middle term.
fn bumps(f: f64, scale: f64, center: &[f64], middle: f64, z: &[f64]) -> f64 {
    let of = |(z, l): (&f64, &f64)| sum(&bump(middle), scale * (z - l));
    f / center.len() as f64 * z.iter().zip(center).map(of).sum::<f64>()
}

/// The sum over all sequences of n different numbers `1/D, ..., 1`, for d = 1.
fn all_bumps(n: usize, levels: usize, f: f64, middle: f64, z: &[f64]) -> f64 {
    centers(n, levels).iter().map(|center| bumps(f, 1000.0, center, middle, z)).sum()
}

/// The members of the grid without duplicates, for d = 1 and n = 1 or 2.
fn centers(n: usize, levels: usize) -> Vec<Vec<f64>> {
    let level = |i: usize| (i + 1) as f64 / levels as f64;
    let all = (0..levels.pow(n as u32)).map(|i| (0..n).map(|k| i / levels.pow(k as u32) % levels).collect::<Vec<_>>());
    all.filter(|cell| n == 1 || cell[0] != cell[1]).map(|cell| cell.into_iter().map(level).collect()).collect()
}

fn equation_68(context: &Context) -> Result<Finding> {
    let (n, levels) = (context.mutate(2, 1), 3);
    // With the middle term as printed, and with its factor 2.
    let at_centers = |f: f64, middle: f64| {
        centers(n, levels).iter().map(|l| all_bumps(n, levels, f, middle, l)).collect::<Vec<f64>>()
    };
    let holds = |middle: f64| {
        let (ones, minus) = (at_centers(1.0, middle), at_centers(-1.0, middle));
        let is = |values: &[f64], f: f64| values.iter().all(|x| (x - f).abs() < 1e-9);
        let below = all_bumps(n, levels, 1.0, middle, &vec![0.05; n]) == 0.0;
        // f = -1 cannot be between 0 and 1.
        let bounded = ones.iter().all(|x| (-1e-9..=1.0 + 1e-9).contains(x)) && (context.mutated || minus[0] >= 0.0);
        is(&ones, 1.0) && is(&minus, -1.0) && below && bounded
    };
    let (ones, minus, printed) = (at_centers(1.0, 2.0)[0], at_centers(-1.0, 2.0)[0], at_centers(1.0, 1.0)[0]);
    // d = 2, n = 1, D = 2: the four tokens of the grid, two of which share a coordinate with (1/2, 1/2).
    let tokens = [[0.5, 0.5], [0.5, 1.0], [1.0, 0.5], [1.0, 1.0]];
    let plane: f64 = tokens.iter().map(|token| bumps(1.0, 1000.0, token, 2.0, &[0.5, 0.5])).sum();
    Ok(Finding::repaired(holds(1.0), holds(2.0))
        .number("without the factor 2, f ≡ 1: F₂(1/3, 2/3)", printed)
        .number("with the factor 2, f ≡ 1: F₂(1/3, 2/3)", ones)
        .number("with the factor 2, f ≡ −1: F₂(1/3, 2/3)", minus)
        .number("d = 2, n = 1, D = 2, with the factor 2, f ≡ 1: F₂(1/2, 1/2)", plane)
        .counterexample(format!(
            "d = 1, n = 2, D = 3, R = 1000, f ≡ 1: F₂(1/3, 2/3) is {printed:.4}, where 1 is claimed; with the factor 2 it is {ones:.4}, and {minus:.4} for f ≡ −1. d = 2, n = 1, D = 2, f ≡ 1, with the factor 2: F₂(1/2, 1/2) is {plane:.4}"
        )))
}

/// The area of `[-1/4, 9/4]^2` where the first block with ramps and (60) differ and one of them has a positive entry, for d = 1,
/// n = 2, D = 4.
fn differing_area(ramps: f64, by_token: bool) -> f64 {
    let (levels, cells) = (4, 1024.0);
    let (stairs, penalties): (Vec<Unit>, Vec<Unit>) =
        (staircase(levels, 0..=levels - 1, 1.0 / ramps), penalty(1.0 / ramps, -1.0, 1.0));
    let side: Vec<[f64; 4]> = (0..2560)
        .map(|i| (f64::from(i) + 0.5) / cells - 0.25)
        .map(|z| [sum(&stairs, z), sum(&penalties, z), quant(levels, z), step_penalty(z)])
        .collect();
    let mut differ = 0_usize;
    for x in &side {
        for y in &side {
            let entries = |level: usize| {
                let (own, other) = (level + 1, if by_token { 0.0 } else { 1.0 });
                [x[level] + x[own] + other * y[own], y[level] + y[own] + other * x[own]]
            };
            let (a, b) = (entries(0), entries(2));
            let same = (a[0] - b[0]).abs() < 1e-9 && (a[1] - b[1]).abs() < 1e-9;
            differ += usize::from(!same && [a[0], a[1], b[0], b[1]].iter().any(|&x| x > 1e-9));
        }
    }
    differ as f64 / (cells * cells)
}

fn equation_69(context: &Context) -> Result<Finding> {
    let widths = [1.0 / 16.0, 1.0 / 32.0, 1.0 / 64.0];
    let areas = widths.map(|ramps| differing_area(ramps, context.mutated));
    let bounds = widths.map(|x: f64| (1.0 + 2.0 * x).powi(2) - (1.0 - 4.0 * x).powi(2));
    let within = areas.iter().zip(bounds).all(|(&area, bound)| area <= bound);
    let finding = Finding::printed(within && areas[1] < 0.6 * areas[0] && areas[2] < 0.6 * areas[1])
        .number("area for δ = 1/16", areas[0])
        .number("area for δ = 1/32", areas[1])
        .number("area for δ = 1/64", areas[2])
        .number("(1+2δ)² − (1−Dδ)² for δ = 1/64", bounds[2]);
    Ok(if finding.printed { finding } else { finding.counterexample("the area grows with the box") })
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
        .number("largest share over n(n−1)/2 D^(−d)", largest)
        .number("share for d = 1, n = 3, D = 32", share_with_equal_tokens(32.0, 3)))
}

fn volume(context: &Context) -> Result<Finding> {
    let (d, n, levels) = (1, 2, 4.0_f64);
    let all = |power: i32| levels.powi(d * n) * levels.powi(-power);
    let (printed, repaired) = (all(d), all(d * context.mutate(n, n + 1)));
    Ok(Finding::repaired(printed == 1.0, repaired == 1.0)
        .number("area of all cells, each D^(−d)", printed)
        .number("each D^(−dn)", repaired)
        .counterexample("d = 1, n = 2, D = 4: sixteen cells of area 1/4 would have an area of 4, and the cube has 1"))
}
