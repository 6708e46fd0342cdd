//! The positions (48) in the proof of Corollary 2, and the constants (49), (50).

use std::f64::consts::{LN_2, PI};

use monolayer::Result;
use monolayer::data::separation::{Separation, separation};
use monolayer::paper::counterexamples::{
    equation_48 as printed_positions, equation_48_radius as smallest_outside, equation_48_separation as closest,
};
use monolayer::paper::theorem_two::Guarantee;

use super::support::{near, rng, vectors};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "equation-48",
        number: "(48)",
        statement: "positions E keep tokens separated and without duplicates (repaired: E_k = c k e₁, c ≥ 2 r_max + ε)",
        printed: r"E \in R^{d \times n}, every row (2 r_{\max}, 4 r_{\max}, \dots, 2n r_{\max}) (48); X^{(1)} + E, \dots, X^{(N)} + E are tokenwise (r_{\max}, (2n+1) r_{\max}, \epsilon)-separated; no X^{(i)} + E has a duplicate token",
        note: "Corollary 2 asks for some E and stands. As printed, no duplicates and norms above r_max do hold; the two entries below say what does not. Repaired, the constants are (r_max, nc + r_max, ε).",
        run: "the printed E on 1 and −1; the printed E's norms and the repaired E's distances on random vocabularies",
        code: ("crates/monolayer/src/data/separation.rs", "separation"),
        mutation: "c = r_max/2",
        find: equation_48,
    },
    Claim {
        id: "equation-48-radius",
        number: "(48), radius",
        statement: "tokens with positions are shorter than (2n+1) r_max (repaired: (2n√d + 1) r_max)",
        printed: r"E \in R^{d \times n}, every row (2 r_{\max}, 4 r_{\max}, \dots, 2n r_{\max}) (48); X^{(1)} + E, \dots, X^{(N)} + E are tokenwise (r_{\max}, (2n+1) r_{\max}, \epsilon)-separated: condition 2 of Definition 1, ||X^{(i)}_{:,k} + E_{:,k}|| < (2n+1) r_{\max} for any i \in [N] and k \in [n]",
        note: "True for d = 1.",
        run: "the smallest token with entries −1, 0 and 1 that leaves the ball; the repaired radius for d to 4, n to 4",
        code: ("crates/monolayer/src/paper/counterexamples.rs", "equation_48_radius"),
        mutation: "the repair is (2n + 1.1) r_max",
        find: radius,
    },
    Claim {
        id: "equation-48-separation",
        number: "(48), separation",
        statement: "different tokens with positions are more than ε apart",
        printed: r"E \in R^{d \times n}, every row (2 r_{\max}, 4 r_{\max}, \dots, 2n r_{\max}) (48); X^{(1)} + E, \dots, X^{(N)} + E are tokenwise (r_{\max}, (2n+1) r_{\max}, \epsilon)-separated: condition 3 of Definition 1, ||X^{(i)}_{:,k} + E_{:,k} - X^{(j)}_{:,l} - E_{:,l}|| > \epsilon for any i, j \in [N] and k, l \in [n] with X^{(i)}_{:,k} + E_{:,k} \ne X^{(j)}_{:,l} + E_{:,l}",
        note: "For d ≥ 4 it holds as soon as there are two different tokens. With a single token ε may be anything, and it fails in every dimension.",
        run: "all pairs of vectors with entries −1, 0 and 1 at places 1 and 2, d = 1 to 4; one token with ε = 100",
        code: ("crates/monolayer/src/paper/counterexamples.rs", "equation_48_separation"),
        mutation: "d = 4, two tokens",
        find: apart,
    },
    Claim {
        id: "equation-49",
        number: "(49), (50)",
        statement: "with positions, ids are within r of (49) and δ of (50) apart (repaired: for the repaired E and its constants)",
        printed: r"by Theorem 2 there are W^{(O)} \in R^{d \times s}, W^V, W^K, W^Q \in R^{s \times d} such that F_S^{(SA)} with h = 1 is an (r, \delta)-contextual mapping for X^{(1)} + E, \dots, X^{(N)} + E, r = (2n+1) r_{\max} + \frac{\epsilon}{4} (49), \delta = \frac{2 (\log n)^2 \epsilon^2}{(2n+1)^2 r_{\max} (nN+1)^4 (2 \log n + 3) \pi d} \cdot \exp(-(2n+1)^2 (nN+1)^4 \frac{(2 \log n + 3) \pi d r_{\max}}{4 \epsilon}) (50)",
        note: "As a substitution (r_max, (2n+1) r_max and nN for r_min, r_max and |V|) into (7), (8) both are right; E of (48) does not have those constants for d ≥ 2.",
        run: "the substitution at n = 2, N = 1, d = 1, r_max = 2, ε = 1; the least length of an id for d = 4, n = 2 against (49)",
        code: ("crates/monolayer-lab/src/claims/positions.rs", "equation_49"),
        mutation: "the repair keeps the radius (49)",
        find: equation_49,
    },
];

fn equation_48(context: &Context) -> Result<Finding> {
    // Tokens 1 and -1 with r_max = 1.001: 1 at place 1 against -1 at place 2.
    let (r_max, epsilon) = (1.001, 1.9);
    let printed: Vec<f64> = [1.0, 2.0].iter().flat_map(|k| [1.0 + 2.0 * k * r_max, -1.0 + 2.0 * k * r_max]).collect();
    let distance = separation(1, &printed).epsilon;
    let (mut smallest, mut lowest, mut duplicates) = (f64::INFINITY, f64::INFINITY, 0);
    let vocabularies = context.effort(100, 1000);
    for seed in 0..vocabularies as u64 {
        let (d, words) = (1 + seed as usize % 4, 10);
        let tokens = vectors(&mut rng(seed), words, d);
        let before = separation(d, &tokens);
        let r_max = before.r_max * (1.0 + 1e-9);
        let places = printed_positions(d, 5, r_max);
        let moved: Vec<f64> = places
            .iter_rows()
            .flat_map(|e| tokens.chunks_exact(d).flat_map(|x| x.iter().zip(e).map(|(x, e)| x + e)).collect::<Vec<_>>())
            .collect();
        lowest = lowest.min(separation(d, &moved).r_min / r_max);
        // A token at one place and a token at another, in one sequence.
        let rows: Vec<&[f64]> = moved.chunks_exact(d).collect();
        let same = |i: usize| (0..i).filter(|j| j / words != i / words && rows[*j] == rows[i]).count();
        duplicates += (0..rows.len()).map(same).sum::<usize>();
        let c = context.mutate(2.0 * before.r_max + before.epsilon, before.r_max / 2.0) * (1.0 + 1e-12);
        let at = |k: usize| tokens.iter().enumerate().map(move |(i, x)| if i % d == 0 { x + c * k as f64 } else { *x });
        let after = separation(d, &(1..=5).flat_map(at).collect::<Vec<f64>>());
        smallest = smallest.min(after.epsilon / before.epsilon);
    }
    // Adding a place rounds.
    Ok(Finding::repaired(distance >= epsilon, smallest > 1.0 - 1e-9 && lowest > 1.0 - 1e-9 && duplicates == 0)
        .number("distance with the printed E", distance)
        .number("ε before", epsilon)
        .number("printed E: smallest norm over r_max", lowest)
        .count("printed E: duplicates", duplicates)
        .count("vocabularies with the repaired E", vocabularies)
        .number("smallest ε after over before", smallest)
        .counterexample(
            "d = 1, tokens 1 and −1, r_max = 1.001, ε = 1.9: 1 at place 1 and −1 at place 2 are 0.002 apart",
        ))
}

fn radius(context: &Context) -> Result<Finding> {
    let found = smallest_outside();
    let mut holds = true;
    for (d, n) in (1..=4_usize).flat_map(|d| (1..=4_usize).map(move |n| (d, n))) {
        // The longest that a token of norm 1 < r_max gets.
        let (r_max, factor) = (1.0 + 1.0 / 1024.0, context.mutate((d as f64).sqrt(), 1.0));
        let along = vec![1.0 / (d as f64).sqrt() + 2.0 * n as f64 * r_max; d];
        holds &= separation(d, &along).r_max < (2.0 * n as f64 * factor + context.mutate(1.0, 1.1)) * r_max;
    }
    let (norm, claimed) = found.as_ref().map_or((0.0, 0.0), |found| (found.norm, found.claimed));
    let text = found.as_ref().map_or(String::new(), |found| {
        format!(
            "d = {}, n = {}, token {:?}, r_max = {:.4}: norm {norm:.4} with its position, where less than {claimed:.4} is claimed",
            found.token.len(),
            found.n,
            found.token,
            found.r_max
        )
    });
    Ok(Finding::repaired(found.is_none(), holds)
        .number("norm with position", norm)
        .number("claimed radius", claimed)
        .counterexample(text))
}

fn apart(context: &Context) -> Result<Finding> {
    let share = |d: usize| closest(d).map_or(1.0, |found| found.distance / found.epsilon);
    let smallest = context.mutate(1..=4, 4..=4).map(share).fold(f64::INFINITY, f64::min);
    // One token: places 1 and 2 are 2 r_max sqrt(d) apart, and epsilon may be anything.
    let places = printed_positions(4, 2, 1.001);
    let alone = separation(4, &places.data).epsilon;
    Ok(Finding::printed(smallest >= 1.0 && (context.mutated || alone > 100.0))
        .number("distance over ε, d = 1", share(1))
        .number("d = 2", share(2))
        .number("d = 3", share(3))
        .number("d = 4", share(4))
        .number("one token, d = 4, r_max = 1.001, ε = 100: distance", alone)
        .counterexample(
            "d = 1, tokens 1 and −1, r_max = 1.001, ε just below 2: 1 at place 1 and −1 at place 2 are 0.002 apart",
        ))
}

/// The binary logarithm of (50).
fn log2_50(n: f64, sequences: f64, d: f64, r_max: f64, epsilon: f64) -> f64 {
    let a = (n * sequences + 1.0).powi(4) * (2.0 * n.ln() + 3.0) * PI * d;
    let odd = (2.0 * n + 1.0).powi(2);
    let front = 2.0 * n.ln().powi(2) * epsilon * epsilon / (odd * r_max * a);
    front.log2() - odd * a * r_max / (4.0 * epsilon) / LN_2
}

fn equation_49(context: &Context) -> Result<Finding> {
    let substituted = Guarantee::new(2, 2, 1, &Separation { r_min: 2.0, r_max: 10.0, epsilon: 1.0 });
    let (r, log2) = substituted.map_or((f64::NAN, f64::NAN), |found| (found.r, found.log2_delta));
    let same = r == 10.25 && near(log2, log2_50(2.0, 1.0, 1.0, 2.0, 1.0));
    // d = 4, n = 2, tokens of norm 1 along the diagonal: the printed E, at place 2.
    let (n, r_max, epsilon) = (2.0, 1.001, 1.9);
    let claimed = (2.0 * n + 1.0) * r_max + epsilon / 4.0;
    let at = |x: f64, k: f64| separation(4, &[x + 2.0 * k * r_max; 4]).r_max;
    let added = epsilon / (4.0 * (2.0 * n + 1.0) * r_max) * at(0.5, n);
    let least = at(-0.5, n) - added;
    // The repaired E: c k e_1, and r = nc + r_max + epsilon / 4.
    let c = 2.0 * r_max + epsilon;
    let (longest, radius) = (1.0 + n * c + epsilon / 4.0, n * c + r_max + epsilon / 4.0);
    Ok(Finding::repaired(same && least < claimed, same && longest < context.mutate(radius, claimed))
        .number("substitution: log2 of (8)", log2)
        .number("log2 of (50)", log2_50(2.0, 1.0, 1.0, 2.0, 1.0))
        .number("d = 4, n = 2: length of an id at place 2, at least", least)
        .number("r of (49)", claimed)
        .number("repaired: length of an id, at most", longest)
        .number("repaired radius", radius)
        .counterexample(format!(
            "Theorem 2 does not give it, as X + E is not within (2n+1) r_max. With the proof's weights, d = 4, n = 2, token −(1,1,1,1)/2, r_max = 1.001, ε = 1.9, the id at place 2 is longer than {least:.3}, and (49) is {claimed:.3}; other weights may be within it"
        )))
}
