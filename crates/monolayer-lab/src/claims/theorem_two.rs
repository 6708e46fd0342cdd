//! The proof of Theorem 2, from (25) to (41), and the case n = 1.

use std::f64::consts::PI;

use monolayer::arithmetic::{Ball, Interval, Number};
use monolayer::context_map::theorem_weights::weights::Scale;
use monolayer::context_map::theorem_weights::{Way, toys};
use monolayer::data::positions::Positions;
use monolayer::data::separation::{Separation, separation};
use monolayer::model::exact::map_attention;
use monolayer::paper::attention::{Attention, Mask};
use monolayer::paper::boltzmann::{boltz, g};
use monolayer::paper::theorem_two::Guarantee;
use monolayer::{Dataset, Matrix, Result};
use serde_json::json;

use super::support::{dataset, float, pairs_below, rng, vectors};
use super::theorem_scale::certified;
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "equation-7",
        number: "(7), (26), (27), (32) to (34), (46)",
        statement: "attention adds less than ε/4 to a token, so ids are shorter than r = r_max + ε/4",
        printed: r"W^{(V)} = u'' v^T, ||W^{(O)} u''|| = \frac{\epsilon}{4 r_{\max}} (32) \Rightarrow ||W^{(O)} (W^{(V)} X^{(i)}) \sigma_S[(W^{(K)} X^{(i)})^T (W^{(Q)} X^{(i)}_{:,k})]|| = ||\sum_{k'=1}^n s^k_{k'} W^{(O)} (W^{(V)} X^{(i)})_{:,k'}|| \le \sum_{k'=1}^n s^k_{k'} ||W^{(O)} (W^{(V)} X^{(i)})_{:,k'}|| \le \max_{k' \in [n]} ||W^{(O)} (W^{(V)} X^{(i)})_{:,k'}|| = \max_{k' \in [n]} ||W^{(O)} u'' v^T X^{(i)}_{:,k'}|| = ||W^{(O)} u''|| \cdot \max_{k' \in [n]} |v^T X^{(i)}_{:,k'}| \le \frac{\epsilon}{4 r_{\max}} \cdot \max_{k' \in [n]} ||X^{(i)}_{:,k'}|| (33) < \frac{\epsilon}{4} (34), (26), s^k_{k'} = \sigma_S[(W^{(K)} X^{(i)})^T (W^{(Q)} X^{(i)}_{:,k})]_{k'}; ||F_S^{(SA)}(X^{(i)})_{:,k}|| \le ||X^{(i)}_{:,k}|| + ||W^{(O)} (W^{(V)} X^{(i)}) \sigma_S[(W^{(K)} X^{(i)})^T (W^{(Q)} X^{(i)}_{:,k})]|| < r_{\max} + \frac{\epsilon}{4} (27) for any i \in [N] and k \in [n]; r = r_{\max} + \frac{\epsilon}{4} (7), (46)",
        note: "",
        run: "the proof's weights on all pairs of four vectors, what attention adds and ids enclosed",
        code: ("crates/monolayer/src/paper/theorem_two.rs", "Guarantee"),
        mutation: "W^(O) eight times as long",
        find: equation_7,
    },
    Claim {
        id: "equation-28",
        number: "(28)",
        statement: "ids of different tokens are more than ε/2 apart",
        printed: r"||F_S^{(SA)}(X^{(i)})_{:,k} - F_S^{(SA)}(X^{(j)})_{:,l}|| \ge ||X^{(i)}_{:,k} - X^{(j)}_{:,l}|| - ||W^{(O)} (W^{(V)} X^{(i)}) \sigma_S[(W^{(K)} X^{(i)})^T (W^{(Q)} X^{(i)}_{:,k})]|| - ||W^{(O)} (W^{(V)} X^{(j)}) \sigma_S[(W^{(K)} X^{(j)})^T (W^{(Q)} X^{(j)}_{:,l})]|| > \epsilon - \frac{\epsilon}{4} - \frac{\epsilon}{4} = \frac{\epsilon}{2} (28) for any i, j \in [N] and k, l \in [n] such that X^{(i)}_{:,k} \ne X^{(j)}_{:,l}",
        note: "That δ of (8) is at most ε/2, which Theorem 2 needs here, is not said but true: (8)/(ε/2) < 8 (log n)² / ((n+1)⁴ (2 log n + 3) π), since ε < 2 r_max, r_min < r_max and |V| ≥ n.",
        run: "the proof's weights on all pairs of four vectors, ids enclosed; the bound of (8)/(ε/2) for n to 1000",
        code: ("crates/monolayer-lab/src/claims/theorem_two.rs", "equation_28"),
        mutation: "W^(O) eight times as long",
        find: equation_28,
    },
    Claim {
        id: "theorem-2-one-token",
        number: "Theorem 2, (8), n = 1",
        statement: "for n = 1 δ of (8) is 0, and ids are more than 0 apart",
        printed: r"F_S^{(SA)} with h = 1 is an (r, \delta)-contextual mapping, \delta = \frac{2 (\log n)^2 \epsilon^2 r_{\min}}{r_{\max}^2 (|V| + 1)^4 (2 \log n + 3) \pi d} \exp(-(|V| + 1)^4 \frac{(2 \log n + 3) \pi d r_{\max}^2}{4 \epsilon r_{\min}}) (8)",
        note: "By (28) the gap is even above ε/2.",
        run: "single tokens through attention with W^(O) of (32), enclosed",
        code: ("crates/monolayer/src/paper/theorem_two.rs", "log2_delta"),
        mutation: "W^(O) = −1",
        find: one_token,
    },
    Claim {
        id: "equation-38",
        number: "(35) to (38)",
        statement: "no score is above r of (37) in absolute value (as printed, uᵀu'ᵀ stands for uᵀu')",
        printed: r"X^{(i)}_{:,k} = X^{(j)}_{:,l}, V^{(i)} \ne V^{(j)}: a^{(i)} = (W^{(K)} X^{(i)})^T (W^{(Q)} X^{(i)}_{:,k}) \in R^n (35), a^{(j)} = (W^{(K)} X^{(j)})^T (W^{(Q)} X^{(j)}_{:,l}) \in R^n (36) are tokenwise (r, \delta)-separated, r = (|V| + 1)^4 \frac{\pi d \delta r_{\max}^2}{8 \epsilon r_{\min}} (37); |a^{(i)}_{k'}| = |(W^{(K)} X^{(i)}_{:,k'})^T (W^{(Q)} X^{(i)}_{:,k})| = |(v^T X^{(i)}_{:,k'})^T| \cdot |u^T u'^T| \cdot |(v^T X^{(i)}_{:,k})| \le (|V| + 1)^4 \frac{\pi d}{8 \epsilon r_{\min}} \delta r_{\max}^2 (38) for any k' \in [n], and the same for a^{(j)}",
        note: "The second prime sign of a transpose may be the transcription's.",
        run: "all scores of all pairs of four vectors, |uᵀu'| as in (29), against (37); whether the product can be formed for s = 2",
        code: ("crates/monolayer-lab/src/claims/theorem_two.rs", "equation_38"),
        mutation: "half of the bound",
        find: equation_38,
    },
    Claim {
        id: "equation-41",
        number: "(39) to (41)",
        statement: "the gap of Boltzmann values is the gap of mean values times |vᵀX^(i)_{:,k}| |uᵀu'| (as printed, |u'ᵀu'|)",
        printed: r"X^{(i)}_{:,k} = X^{(j)}_{:,l}, V^{(i)} \ne V^{(j)}: |boltz(a^{(i)}) - boltz(a^{(j)})| > \delta' = (\log n)^2 e^{-2r} (39), |(a^{(i)})^T \sigma_S[a^{(i)}] - (a^{(j)})^T \sigma_S[a^{(j)}]| > \delta' (40); \delta' < |(a^{(i)})^T \sigma_S[a^{(i)}] - (a^{(j)})^T \sigma_S[a^{(j)}]| = |(X^{(i)}_{:,k})^T (W^{(Q)})^T W^{(K)} (X^{(i)} \sigma_S[a^{(i)}] - X^{(j)} \sigma_S[a^{(j)}])| = |(X^{(i)}_{:,k})^T v u'^T u v^T (X^{(i)} \sigma_S[a^{(i)}] - X^{(j)} \sigma_S[a^{(j)}])| = |v^T X^{(i)}_{:,k}| \cdot |u'^T u'| \cdot |(v^T X^{(i)}) \sigma_S[a^{(i)}] - (v^T X^{(j)}) \sigma_S[a^{(j)}]| \le r_{\max} \cdot (|V| + 1)^4 \frac{\pi d}{8} \frac{\delta}{\epsilon r_{\min}} \cdot |(v^T X^{(i)}) \sigma_S[a^{(i)}] - (v^T X^{(j)}) \sigma_S[a^{(j)}]| (41)",
        note: "The line before has u'ᵀu; u'ᵀu' may be the transcription's.",
        run: "(0.9, 0.4) in two pairs of four vectors with u = 1, u' as in (29), in balls of 8,192 bits: both sides of the equation",
        code: ("crates/monolayer-lab/src/claims/theorem_two.rs", "equation_41"),
        mutation: "2 uᵀu' in the repair",
        find: equation_41,
    },
];

/// Four vectors in the plane.
pub const VOCABULARY: [[f64; 2]; 4] = [[0.9, 0.4], [-0.7, 0.8], [0.2, -1.1], [1.3, -0.5]];

/// All pairs of them.
pub const VOCABULARY_PAIRS: [(usize, usize); 6] = [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)];

/// All pairs as sequences with labels.
pub fn toy() -> Result<Dataset> {
    let pair =
        |(i, j): (usize, usize)| (vec![VOCABULARY[i].to_vec(), VOCABULARY[j].to_vec()], vec![json!(i), json!(i + j)]);
    dataset(&VOCABULARY_PAIRS.map(pair))
}

/// The attention of the proof for all pairs of the four vectors, its output weight times a factor.
pub fn paper_attention<N: Number>(factor: f64, number: impl Fn(&f64) -> N + Copy) -> Result<Attention<N>> {
    let found = certified(&toys::four(), Scale::Paper, Way::Identity, &Positions::None)?;
    let mut attention = found.weights.map.attention(Mask::None, 1);
    attention.heads[0].w_o.data.iter_mut().for_each(|w| *w *= factor);
    Ok(map_attention(&attention, number))
}

/// A unit vector of the plane.
pub fn unit(angle: f64) -> [f64; 2] {
    [angle.cos(), angle.sin()]
}

/// The projections of the four vectors.
pub fn projections(v: [f64; 2]) -> [f64; 4] {
    VOCABULARY.map(|x| x[0] * v[0] + x[1] * v[1])
}

/// `|u . u'|` of (29) for the four vectors in pairs.
pub fn kappa(constants: &Separation) -> f64 {
    625.0 * 2.0 * PI / 8.0 * (2.0 * 2_f64.ln() + 3.0) / (constants.epsilon * constants.r_min)
}

fn norm(x: &mut dyn Iterator<Item = Interval>) -> Interval {
    x.fold(Interval::zero(), |sum, x| sum + x.square()).sqrt()
}

/// `(token, id, what attention added)` for all places of all pairs.
fn ids(factor: f64) -> Result<Vec<(usize, Vec<Interval>, f64)>> {
    let attention = paper_attention(factor, |&x| Interval::point(x))?;
    let mut all = Vec::new();
    for (i, j) in VOCABULARY_PAIRS {
        let tokens = [VOCABULARY[i], VOCABULARY[j]].concat();
        let z = Matrix::new(2, 2, tokens.into_iter().map(Interval::point).collect());
        let out = attention.apply(&z)?;
        for ((token, x), id) in [i, j].into_iter().zip(z.iter_rows()).zip(out.iter_rows()) {
            let added = norm(&mut id.iter().zip(x).map(|(&a, &b)| a - b)).hi();
            all.push((token, id.to_vec(), added));
        }
    }
    Ok(all)
}

fn equation_7(context: &Context) -> Result<Finding> {
    let constants = separation(2, &VOCABULARY.concat());
    let (r, quarter) = (constants.r_max + constants.epsilon / 4.0, constants.epsilon / 4.0);
    let ids = ids(context.mutate(1.0, 8.0))?;
    let longest = ids.iter().map(|id| norm(&mut id.1.iter().copied()).hi()).fold(0.0, f64::max);
    let added = ids.iter().map(|id| id.2).fold(0.0, f64::max);
    Ok(Finding::printed(longest < r && added < quarter)
        .number("most that attention adds", added)
        .number("ε/4", quarter)
        .number("longest id", longest)
        .number("r of (7)", r))
}

fn equation_28(context: &Context) -> Result<Finding> {
    let constants = separation(2, &VOCABULARY.concat());
    let half = constants.epsilon / 2.0;
    let ids = ids(context.mutate(1.0, 8.0))?;
    let added = ids.iter().map(|id| id.2).fold(0.0, f64::max);
    let apart = |(i, j): (usize, usize)| norm(&mut ids[i].1.iter().zip(&ids[j].1).map(|(&a, &b)| a - b)).lo();
    let smallest = pairs_below(ids.len()).filter(|&(i, j)| ids[i].0 != ids[j].0).map(apart).fold(f64::MAX, f64::min);
    let share = |n: f64| 8.0 * n.ln().powi(2) / ((n + 1.0).powi(4) * (2.0 * n.ln() + 3.0) * PI);
    let largest = (2..=1000).map(|n| share(f64::from(n))).fold(0.0, f64::max);
    Ok(Finding::printed(added < constants.epsilon / 4.0 && smallest > half && largest < 1.0)
        .number("smallest distance of ids of different tokens", smallest)
        .number("ε/2", half)
        .number("(8)/(ε/2) at most, any data", largest))
}

fn one_token(context: &Context) -> Result<Finding> {
    let constants = Separation { r_min: 1.0, r_max: 2.0, epsilon: 1.0 };
    let formula = Guarantee::new(3, 1, 1, &constants).map_or(f64::NAN, |found| found.log2_delta.exp2());
    let mut smallest = f64::INFINITY;
    for seed in 0..20 {
        let tokens = vectors(&mut rng(seed), 10, 1);
        let s = separation(1, &tokens);
        // The id of t alone is t + w t.
        let w = Interval::point(context.mutate(s.epsilon / (4.0 * s.r_max), -1.0));
        let mut ids: Vec<Interval> = tokens.iter().map(|&t| Interval::point(t) + w * Interval::point(t)).collect();
        ids.sort_by(|a, b| a.center().total_cmp(&b.center()));
        let gap = ids.windows(2).map(|pair| (pair[1] - pair[0]).lo()).fold(f64::INFINITY, f64::min);
        smallest = smallest.min(gap / s.epsilon);
    }
    Ok(Finding::printed(smallest > formula).number("δ of (8)", formula).number("smallest gap over ε", smallest))
}

fn equation_38(context: &Context) -> Result<Finding> {
    let constants = separation(2, &VOCABULARY.concat());
    let kappa = kappa(&constants);
    let scores = projections(unit(1.7));
    let pairs = VOCABULARY_PAIRS.iter().flat_map(|&(i, j)| [(i, i), (i, j), (j, i), (j, j)]);
    let largest = pairs.map(|(i, j)| (kappa * scores[i] * scores[j]).abs()).fold(0.0, f64::max);
    let r = kappa * constants.r_max * context.mutate(constants.r_max, constants.r_max / 2.0);
    // A product of matrices exists where the columns of the first are the rows of the second: both are 1 x s as printed.
    let exists = |first: [usize; 2], second: [usize; 2]| first[1] == second[0];
    let sizes = 1..=4_usize;
    let printed = sizes.clone().filter(|&s| exists([1, s], [1, s])).count();
    let repaired = sizes.filter(|&s| exists([1, s], [s, 1])).count();
    Ok(Finding::repaired(printed == 4, repaired == 4 && largest <= r)
        .count("head sizes 1 to 4 for which uᵀu'ᵀ exists", printed)
        .count("head sizes for which uᵀu' exists", repaired)
        .number("largest score", largest)
        .number("r of (37)", r)
        .number("|uᵀu'| of (29)", kappa)
        .counterexample("s = 2: uᵀ and u'ᵀ are both 1 × 2, so uᵀu'ᵀ is no product; Theorem 2 allows every s"))
}

fn equation_41(context: &Context) -> Result<Finding> {
    let ball = |x: f64| Ball::new(x, 1 << 13);
    let constants = separation(2, &VOCABULARY.concat());
    let kappa = kappa(&constants);
    let p = projections(unit(1.7));
    let query = ball(kappa) * ball(p[0]);
    let [values, boltzmann] = {
        let of = |other: usize| -> Result<[Ball; 2]> {
            let keys = [p[0], p[other]].map(ball);
            let scores = keys.clone().map(|key| key * &query);
            Ok([g(&keys, &query)?, boltz(&scores)?])
        };
        let ([a, c], [b, d]) = (of(1)?, of(2)?);
        [(a - b).abs(), (c - d).abs()]
    };
    let share = |factor: f64| ball(p[0]).abs() * ball(factor) * &values / &boltzmann;
    let (printed, repaired) = (share(kappa * kappa), share(kappa * context.mutate(1.0, 2.0)));
    let bound = ball(constants.r_max) * ball(kappa) * &values;
    let is_one = |x: &Ball| (x.clone() - Ball::one()).to_interval().magnitude() < 1e-12;
    Ok(Finding::repaired(is_one(&printed), is_one(&repaired) && boltzmann.certainly_less(&bound))
        .number("log2 of the gap of Boltzmann values", boltzmann.log2_abs().center())
        .number("printed right side over the left", float(&printed))
        .number("repaired right side over the left", float(&repaired))
        .number("|uᵀu'|", kappa)
        .number("|u'ᵀu'|", kappa * kappa)
        .counterexample(format!(
            "u = 1, u' = {kappa:.4} as in (29): the right side is {:.1} times the left, u'ᵀu' = {:.0}",
            float(&printed),
            kappa * kappa
        )))
}
