//! The constants (42) to (47), and what (8) does when tokens are scaled.

use monolayer::Result;
use monolayer::data::separation::{Separation, separation};
use monolayer::paper::counterexamples::{equation_42 as small_for_42, equation_47 as small_for_47, log2_42, log2_47};
use monolayer::paper::theorem_two::Guarantee;

use super::theorem_two::VOCABULARY;
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "equation-42",
        number: "(42), (43), (44)",
        statement: "ids of one token in different sets are further apart than (42) (repaired: times 8 ε r_min)",
        printed: r"X^{(i)}_{:,k} = X^{(j)}_{:,l}, V^{(i)} \ne V^{(j)}: ||F_S^{(SA)}(X^{(i)})_{:,k} - F_S^{(SA)}(X^{(j)})_{:,l}|| = ||W^{(O)} (W^{(V)} X^{(i)}) \sigma_S[a^{(i)}] - W^{(O)} (W^{(V)} X^{(j)}) \sigma_S[a^{(j)}]|| = ||W^{(O)} u''|| \cdot |(v^T X^{(i)}) \sigma_S[a^{(i)}] - (v^T X^{(j)}) \sigma_S[a^{(j)}]| > \frac{\epsilon}{4 r_{\max}} \cdot \frac{\delta'}{(|V| + 1)^4 \pi d \delta r_{\max}} (42), \delta = 2 \log n + 3 (43), \delta' = (\log n)^2 e^{-2r} with r = (|V| + 1)^4 \frac{\pi d \delta r_{\max}^2}{8 \epsilon r_{\min}} (44)",
        note: "(45) has the factor, and (41) gives it: its absence may be the transcription's. The run is for the proof's weights (29) to (32), of which (42) speaks, with |uᵀu'| exactly as in (29) and constants strictly beyond the norms and distances, and only for n = 2, d = 1. For 8 ε r_min ≥ 1 the printed bound is not above (45), so true.",
        run: "pairs of three numbers up to 4 times 2^-p with the proof's weights, the gap enclosed in balls: the smallest p",
        code: ("crates/monolayer/src/paper/counterexamples.rs", "equation_42"),
        mutation: "the repair drops the factor, too",
        find: equation_42,
    },
    Claim {
        id: "equation-45",
        number: "(45)",
        statement: "plugging (43) and (44) into (42) gives (8) (as printed, it gives (8)/(8 ε r_min))",
        printed: r"by plugging (43) and (44), the right side \frac{\epsilon}{4 r_{\max}} \cdot \frac{\delta'}{(|V| + 1)^4 \pi d \delta r_{\max}} of (42) is simplified as ||F_S^{(SA)}(X^{(i)})_{:,k} - F_S^{(SA)}(X^{(j)})_{:,l}|| > \frac{2 (\log n)^2 \epsilon^2 r_{\min}}{r_{\max}^2 (|V| + 1)^4 (2 \log n + 3) \pi d} \exp(-(|V| + 1)^4 \frac{(2 \log n + 3) \pi d r_{\max}^2}{4 \epsilon r_{\min}}) (45)",
        note: "(45) itself is (8), which holds. The slip is (42)'s and may be the transcription's.",
        run: "both formulas for |V| = 5, n = 7, d = 3, r_min = 3, r_max = 17, ε = 2",
        code: ("crates/monolayer/src/paper/counterexamples.rs", "log2_42"),
        mutation: "4 ε r_min in the place of 8 ε r_min",
        find: equation_45,
    },
    Claim {
        id: "equation-47",
        number: "(46), (47), proof of Corollary 1",
        statement: "some weights give ids further apart than (47), as Theorem 2 is cited for (repaired: (8), without harm to Corollary 1)",
        printed: r"by Theorem 2 there are W^{(O)} \in R^{d \times s}, W^{(V)}, W^{(K)}, W^{(Q)} \in R^{s \times d} with which F_S^{(SA)}, h = 1, is an (r, \delta)-contextual mapping for X^{(1)}, \dots, X^{(N)}, r = r_{\max} + \frac{\epsilon}{4} (46), \delta = \frac{\epsilon r_{\min} \log n}{r_{\max}^2 (|V| + 1)^4 (2 \log n + 3) \pi d} \cdot \exp(-(|V| + 1)^4 \frac{(2 \log n + 3) \pi d r_{\max}^2}{4 \epsilon r_{\min}}) (47)",
        note: "(47) is (8)/(2 ε log n): stronger than (8) where 2 ε log n < 1. It does not change when all tokens are scaled.",
        run: "pairs of −4, −3, 4 times 2^-p: the p from which the proof's ids are closer than (47), and the p from which twice the radius (46) is below it",
        code: ("crates/monolayer/src/paper/counterexamples.rs", "equation_47"),
        mutation: "(47) in the place of (8)",
        find: equation_47,
    },
    Claim {
        id: "delta-scaling",
        number: "beside (8), (45)",
        statement: "δ of (8) scales like a length when all tokens are scaled",
        printed: "",
        note: "",
        run: "the formula for tokens scaled by powers of two",
        code: ("crates/monolayer/src/paper/theorem_two.rs", "Guarantee"),
        mutation: "the factor 8 ε r_min is dropped",
        find: delta_scaling,
    },
];

fn equation_42(context: &Context) -> Result<Finding> {
    let found = small_for_42();
    let repaired = found.log2_ids.lo() > context.mutate(found.log2_8, found.log2_42);
    Ok(Finding::repaired(found.log2_ids.hi() >= found.log2_42, repaired)
        .number("log2 of (42)", found.log2_42)
        .number("log2 of the closest ids, at most", found.log2_ids.hi())
        .number("log2 of (42) times 8 ε r_min, that is (8)", found.log2_8)
        .counterexample(format!(
            "tokens {:?} times 2^-{} in pairs, d = 1: (42) is 2^{:.3}, the closest ids are 2^{:.3} apart",
            found.tokens,
            found.power,
            found.log2_42,
            found.log2_ids.hi()
        )))
}

fn equation_45(context: &Context) -> Result<Finding> {
    let s = Separation { r_min: 3.0, r_max: 17.0, epsilon: 2.0 };
    let log2_8 = Guarantee::new(5, 7, 3, &s).map_or(f64::NAN, |found| found.log2_delta);
    // Logarithms of some hundred thousand: the quotient keeps ten digits.
    let quotient = (log2_8 - log2_42(5, 7, 3, &s)).exp2();
    let missing = context.mutate(8.0, 4.0) * s.epsilon * s.r_min;
    let beside = (log2_8 - log2_47(5, 7, 3, &s)).exp2();
    Ok(Finding::repaired((quotient - 1.0).abs() < 1e-6, (quotient / missing - 1.0).abs() < 1e-6)
        .number("(45) over (42)", quotient)
        .number("8 ε r_min", missing)
        .number("(45) over (47)", beside)
        .counterexample(format!(
            "|V| = 5, n = 7, d = 3, r_min = 3, r_max = 17, ε = 2: (45) is {quotient:.4} times (42), so it does not follow"
        )))
}

fn equation_47(context: &Context) -> Result<Finding> {
    let [weights, maps] = small_for_47();
    // All ids of a contextual mapping are in a ball of radius r, so less than 2 r apart.
    let printed = weights.log2_ids.hi() >= weights.log2_47 && maps.log2_diameter >= maps.log2_47;
    let repaired = weights.log2_ids.lo() > context.mutate(weights.log2_8, weights.log2_47);
    Ok(Finding::repaired(printed, repaired)
        .number("log2 of (47)", weights.log2_47)
        .number("log2 of the closest ids, at most", weights.log2_ids.hi())
        .number("log2 of (8)", weights.log2_8)
        .number("power for every map", f64::from(maps.power))
        .number("log2 of 2(r_max + ε/4) there", maps.log2_diameter)
        .counterexample(format!(
            "pairs of −4, −3, 4 times 2^-{}: (47) is 2^{:.3}, the proof's ids are 2^{:.3} apart; times 2^-{} no map at all has such a gap within radius r",
            weights.power,
            weights.log2_47,
            weights.log2_ids.hi(),
            maps.power
        )))
}

fn delta_scaling(context: &Context) -> Result<Finding> {
    let unit = separation(2, &VOCABULARY.concat());
    let log2_delta = |power: i32| {
        let s = 2_f64.powi(power);
        let scaled = Separation { r_min: s * unit.r_min, r_max: s * unit.r_max, epsilon: s * unit.epsilon };
        let log2_delta = Guarantee::new(4, 2, 2, &scaled).map_or(f64::NAN, |found| found.log2_delta);
        log2_delta - context.mutate(0.0, (8.0 * scaled.epsilon * scaled.r_min).log2())
    };
    let off = |power: i32| (log2_delta(power) - log2_delta(0) - f64::from(power)).abs();
    let largest = (-20..=20).map(off).fold(0.0, f64::max);
    Ok(Finding::ours(largest < 1e-6)
        .number("log2 of δ", log2_delta(0))
        .number("largest departure from scaling, log2", largest))
}
