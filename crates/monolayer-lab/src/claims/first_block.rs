//! The first feed-forward block in the proof of Proposition 1, (56) to (62).

use monolayer::data::separation::separation;
use monolayer::{Matrix, Result};

use super::{Claim, Context, Finding};
use crate::printed_units::{block, first_block, penalty, quant, ramp, staircase, sum};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "equations-56-57",
        number: "(56), (57)",
        statement: "a sum of ramps is the staircase quant_D, but for the ramps themselves",
        printed: r"any small \delta > 0, any z \in R: \frac{\sigma_R[z/\delta] - \sigma_R[z/\delta - 1]}{D} = 0 (z < 0), z/\delta D (0 \le z < \delta), 1/D (\delta \le z) (56); \sum_{t=0}^{D-1} \frac{\sigma_R[z/\delta - t/\delta D] - \sigma_R[z/\delta - 1 - t/\delta D]}{D} \approx quant_D(z) = 0 (z < 0), 1/D (0 \le z < 1/D), \dots, 1 (1 - 1/D \le z) (57)",
        note: "",
        run: "D = 8, δ = 1/64, exactly: (56) at −1, 1/128 and 1/2; (57) against quant_D at all multiples of 1/256 from −1 to 2 outside [t/D, t/D + δ)",
        code: ("crates/monolayer-lab/src/printed_units.rs", "staircase"),
        mutation: "t = 1 to D − 1",
        find: staircases,
    },
    Claim {
        id: "equation-58",
        number: "(58)",
        statement: "the staircase with its last step taken off has the levels 1/D, …, 1 on [0,1] and 0 outside (repaired: t = 0 to D − 1)",
        printed: r"\sum_{t=1}^D \frac{\sigma_R[z/\delta - t/\delta D] - \sigma_R[z/\delta - 1 - t/\delta D]}{D} - (\sigma_R[z/\delta - 1/\delta] - \sigma_R[z/\delta - 1 - 1/\delta]) (58) is, approximately, a quantizer of [0, 1] with the values \{1/D, \dots, 1\}; on R \setminus [0, 1] it is 0",
        note: "As printed it is 0 outside, as said; inside, every cell is one level too low. The level 0 would break (66).",
        run: "D = 8, δ = 1/64, exactly: the centers of all cells, and −1, 2 and 1000",
        code: ("crates/monolayer-lab/src/printed_units.rs", "staircase"),
        mutation: "the repair without the subtracted step",
        find: equation_58,
    },
    Claim {
        id: "equation-59",
        number: "(59)",
        statement: "the penalty is 0 inside the cube and −1 outside (repaired: signs −, +, −, +)",
        printed: r"\sigma_R[(z-1)/\delta] - \sigma_R[(z-1)/\delta - 1] - \sigma_R[-z/\delta] - \sigma_R[-z/\delta - 1] \approx penalty(z) = -1 (z \le 0), 0 (0 < z \le 1), -1 (1 < z) (59)",
        note: "penalty is −1 at z = 0, which is in [0,1]: see equation-66.",
        run: "the hidden units at −1/2, 1/2 and 3/2 with δ = 1/1000",
        code: ("crates/monolayer-lab/src/printed_units.rs", "penalty"),
        mutation: "a sign of the repaired units is swapped",
        find: equation_59,
    },
    Claim {
        id: "equation-60",
        number: "(60), (3)",
        statement: "a feed-forward block adds up penalties over all tokens",
        printed: r"the first feed-forward layer F_1^{(FF)} approximates \bar{F}_1^{(FF)}(Z) = quant_D^{d \times n}(Z) + \sum_{t=1}^d \sum_{k=1}^n penalty(Z_{t,k}) (60); F^{(FF)}(H)_{:,k} = H_{:,k} + W^{(2)} \sigma_R[W^{(1)} H_{:,k} + b^{(1)}] + b^{(2)} \in R^d (3)",
        note: "False for n ≥ 2, whatever the block: (3) computes token 1 from token 1 alone, and (60) does not. The run shows it for the block of the units (57) and (59), the latter with signs repaired. (60) also adds a number to a matrix. The penalty can be left out where d_p is over the compact domain of f, which is normalized into the cube; only for (51) and d_p over all of R^{d×n} something must tell that another token is outside.",
        run: "d = 1, n = 2, D = 4: (60) and the block of the units (57) and (59) (repaired), token 2 moved from 5/8 to 3/2",
        code: ("crates/monolayer/src/paper/feed_forward.rs", "apply"),
        mutation: "n = 1, the token itself is moved",
        find: equation_60,
    },
    Claim {
        id: "equation-61",
        number: "(61)",
        statement: "the longest column of the first block's output has length dn√d",
        printed: r"\max_{Z \in R^{d \times n}} ||F_1^{(FF)}(Z)_{:,k}|| = dn \cdot \sqrt{d} (61) for any k \in [n]",
        note: "Read with the bar of (60) over F₁, as (64) to (66) are. F₁ of the units (59) as printed has no maximum, which is (59)'s fault; with their signs repaired (61) is right for F₁, too.",
        run: "d = 2, n = 3, D = 4: (60) on all entries from {−1, 1/8, 1, 2}; d = n = 1, δ = 1/1024: the units (57) and (59), repaired, from −2 to 3, exactly",
        code: ("crates/monolayer-lab/src/printed_units.rs", "first_block"),
        mutation: "n√d in the place of dn√d",
        find: equation_61,
    },
    Claim {
        id: "grid-separated",
        number: "before (63)",
        statement: "the grid without duplicates is tokenwise (1/D, √d, 1/D)-separated (repaired: any r_min < √d/D, r_max > √d, ε < 1/D)",
        printed: r"the members of \tilde{G}_D count as tokenwise (1/D, \sqrt{d}, 1/D)-separated",
        note: "Definition 1 is strict. For d ≥ 2 the first condition holds, since the smallest norm is √d/D.",
        run: "the norms and distances of the grid's tokens for d = 1, D = 4",
        code: ("crates/monolayer/src/data/separation.rs", "separation"),
        mutation: "ε = 1/D in the repair, too",
        find: grid_separated,
    },
];

fn staircases(context: &Context) -> Result<Finding> {
    let (levels, steepness) = (8, 64.0);
    let one: Vec<_> = ramp(0.0, steepness, 1.0 / 8.0).to_vec();
    let ramps = [-1.0, 1.0 / 128.0, 0.5].map(|z| sum(&one, z));
    let units = staircase(levels, context.mutate(0, 1)..=levels - 1, steepness);
    let (mut points, mut different) = (0, 0);
    for z in (-256..=512).map(|i| f64::from(i) / 256.0) {
        let after = (z * 8.0).rem_euclid(1.0) / 8.0;
        if (0.0..1.0).contains(&z) && after < 1.0 / steepness {
            continue;
        }
        points += 1;
        different += usize::from(sum(&units, z) != quant(levels, z));
    }
    Ok(Finding::printed(ramps == [0.0, 1.0 / 16.0, 1.0 / 8.0] && different == 0)
        .number("(56) at 1/128", ramps[1])
        .number("(56) at 1/2", ramps[2])
        .count("points", points)
        .count("where (57) differs from quant_D", different))
}

fn equation_58(context: &Context) -> Result<Finding> {
    let (levels, steepness) = (8_usize, 64.0);
    let center = |c: usize| (c as f64 + 0.5) / levels as f64;
    let last = ramp(1.0, steepness, -1.0).to_vec();
    let printed = [staircase(levels, 1..=levels, steepness), last.clone()].concat();
    let taken_off = if context.mutated { Vec::new() } else { last };
    let repaired = [staircase(levels, 0..=levels - 1, steepness), taken_off].concat();
    let inside = |units: &[_]| {
        (0..levels).map(|c| (sum(units, center(c)) - (c + 1) as f64 / levels as f64).abs()).fold(0.0, f64::max)
    };
    let outside = |units: &[_]| [-1.0, 2.0, 1000.0].map(|z| sum(units, z).abs()).into_iter().fold(0.0, f64::max);
    let holds = |units: &[_]| inside(units) == 0.0 && outside(units) == 0.0;
    Ok(Finding::repaired(holds(&printed), holds(&repaired))
        .number("largest error inside, as printed", inside(&printed))
        .number("largest value outside, as printed", outside(&printed))
        .number("largest error inside, repaired", inside(&repaired))
        .number("largest value outside, repaired", outside(&repaired))
        .counterexample(format!(
            "D = 8, δ = 1/64: {} at 1/16, the center of the first cell, where 1/8 is meant; {} at 15/16, where 1 is meant",
            sum(&printed, center(0)),
            sum(&printed, center(7))
        )))
}

fn equation_59(context: &Context) -> Result<Finding> {
    let values = |s: f64, s2: f64| [-0.5, 0.5, 1.5].map(|z| sum(&penalty(1000.0, s, s2), z));
    let (printed, repaired) = (values(1.0, -1.0), values(context.mutate(-1.0, 1.0), 1.0));
    let meant = [-1.0, 0.0, -1.0];
    Ok(Finding::repaired(printed == meant, repaired == meant)
        .number("as printed at −1/2", printed[0])
        .number("as printed at 3/2", printed[2])
        .number("repaired at −1/2", repaired[0])
        .number("repaired at 3/2", repaired[2])
        .counterexample(format!(
            "δ = 1/1000: {} at −1/2 and {} at 3/2, where −1 is meant at both",
            printed[0], printed[2]
        )))
}

fn equation_60(context: &Context) -> Result<Finding> {
    // The block's skip is taken off again.
    let of_block = |z: &[f64], (s, s2): (f64, f64)| {
        let units = block(&[staircase(4, 0..=3, 1024.0), penalty(1024.0, s, s2)].concat());
        units.apply(&Matrix::new(z.len(), 1, z.to_vec())).data[0] - z[0]
    };
    let [before, after]: [&[f64]; 2] = context.mutate([&[0.625, 0.625], &[0.625, 1.5]], [&[0.625], &[1.5]]);
    let printed = [before, after].map(|z| first_block(4, z)[0]);
    let run = [before, after].map(|z| of_block(z, (-1.0, 1.0)));
    let moved = of_block(after, (1.0, -1.0)) - of_block(before, (1.0, -1.0));
    Ok(Finding::printed(printed == run)
        .number("(60) at token 1, token 2 inside", printed[0])
        .number("(60) at token 1, token 2 outside", printed[1])
        .number("block at token 1, token 2 inside", run[0])
        .number("block at token 1, token 2 outside", run[1])
        .number("with (59) as printed, the block moves token 1 by", moved)
        .counterexample(format!(
            "d = 1, n = 2, D = 4: from Z = (5/8, 5/8) to (5/8, 3/2) (60) moves token 1 from {} to {}, a block leaves it at {}",
            printed[0], printed[1], run[1]
        )))
}

fn equation_61(context: &Context) -> Result<Finding> {
    let (d, n, levels) = (2, 3, 4);
    let claimed = context.mutate(d as f64, 1.0) * n as f64 * (d as f64).sqrt();
    let mut longest = 0.0_f64;
    for i in 0..4_usize.pow((d * n) as u32) {
        let z: Vec<f64> = (0..d * n).map(|c| [-1.0, 0.125, 1.0, 2.0][i >> (2 * c) & 3]).collect();
        let out = first_block(levels, &z);
        longest = out.chunks_exact(d).map(|x| x.iter().map(|x| x * x).sum::<f64>()).fold(longest, f64::max);
    }
    // F₁ itself, d = n = 1: its units with the signs of (59) repaired are nowhere longer.
    let units = [staircase(levels, 0..=levels - 1, 1024.0), penalty(1024.0, -1.0, 1.0)].concat();
    let of_units = (-8192..=12_288).map(|i| sum(&units, f64::from(i) / 4096.0).abs()).fold(0.0, f64::max);
    let holds = (longest.sqrt() - claimed).abs() < 1e-12 && of_units == 1.0;
    let finding = Finding::printed(holds)
        .number("longest column of (60)", longest.sqrt())
        .number("dn√d", claimed)
        .number("d = n = 1: longest of F₁ with (59) repaired", of_units);
    Ok(if holds { finding } else { finding.counterexample("the longest column has another length") })
}

fn grid_separated(context: &Context) -> Result<Finding> {
    let tokens = [0.25, 0.5, 0.75, 1.0];
    let found = separation(1, &tokens);
    let separated = |r_min: f64, r_max: f64, epsilon: f64| {
        let norms = tokens.iter().all(|&x: &f64| x.abs() > r_min && x.abs() < r_max);
        norms && tokens.windows(2).all(|pair| pair[1] - pair[0] > epsilon)
    };
    Ok(Finding::repaired(separated(0.25, 1.0, 0.25), separated(0.249, 1.001, context.mutate(0.249, 0.25)))
        .number("smallest norm", found.r_min)
        .number("largest norm", found.r_max)
        .number("smallest distance", found.epsilon)
        .counterexample("d = 1, D = 4: norms from 1/4 to 1 and distances from 1/4, where more than 1/4, less than 1 and more than 1/4 are asked for"))
}
