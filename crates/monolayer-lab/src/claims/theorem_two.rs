//! Theorem 2 and its constants.

use monolayer::arithmetic::{Interval, Number as _};
use monolayer::context_map::View;
use monolayer::context_map::float_weights::FloatWeights;
use monolayer::data::embedding::Embedding;
use monolayer::data::positions::Positions;
use monolayer::data::separation::{Separation, separation};
use monolayer::data::token_vectors::TokenVectors;
use monolayer::model::exact::map_attention;
use monolayer::paper::attention::Mask;
use monolayer::paper::theorem_two::Guarantee;
use monolayer::{Compiled, Dataset, Matrix, Memorizer, Method, Result};
use serde_json::{Value, json};

use super::support::{dataset, rng, vectors};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "theorem-2-one-token",
        place: "Theorem 2, n = 1",
        statement: "delta of (8) is positive for n = 1 (repaired: the gap is above epsilon / 2)",
        run: "the formula; single tokens through attention with W_O of (32), enclosed",
        code: ("crates/monolayer/src/paper/theorem_two.rs", "log2_delta"),
        mutation: "W_O = -1",
        find: one_token,
    },
    Claim {
        id: "theorem-2-floats",
        place: "Theorem 2, at the size of floats",
        statement: "weights that a float holds can be a contextual mapping, too",
        run: "a search for weights on sets that share their means, its gap certified",
        code: ("crates/monolayer/src/context_map/float_weights.rs", "build"),
        mutation: "kappa = 0",
        find: floats,
    },
    Claim {
        id: "equation-7",
        place: "(7), (32)",
        statement: "ids are shorter than r = r_max + epsilon / 4",
        run: "the paper's weights on all pairs of four vectors, ids enclosed",
        code: ("crates/monolayer/src/paper/theorem_two.rs", "Guarantee"),
        mutation: "W_O eight times as long",
        find: equation_7,
    },
    Claim {
        id: "equation-8",
        place: "(8), (45)",
        statement: "delta of (8) scales like a length when all tokens are scaled",
        run: "the formula for tokens scaled by powers of two",
        code: ("crates/monolayer/src/paper/theorem_two.rs", "Guarantee"),
        mutation: "the factor 8 epsilon r_min is dropped",
        find: equation_8,
    },
];

/// Four vectors in the plane.
const VOCABULARY: [[f64; 2]; 4] = [[0.9, 0.4], [-0.7, 0.8], [0.2, -1.1], [1.3, -0.5]];

/// All pairs of them as sequences.
pub fn toy() -> Result<Dataset> {
    let pair =
        |i: usize, j: usize| (vec![VOCABULARY[i].to_vec(), VOCABULARY[j].to_vec()], vec![json!(i), json!(i + j)]);
    dataset(&(0..4).flat_map(|i| (0..i).map(move |j| pair(i, j))).collect::<Vec<_>>())
}

/// The paper's weights for it.
fn paper_weights(data: &Dataset) -> Result<Compiled> {
    Memorizer::new().method(Method::Paper).max_bits(1 << 15).compile(data)
}

fn one_token(context: &Context) -> Result<Finding> {
    let constants = Separation { r_min: 1.0, r_max: 2.0, epsilon: 1.0 };
    let formula = Guarantee::new(3, 1, 1, &constants).map_or(0.0, |found| found.log2_delta.exp2());
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
    Ok(Finding::repaired(formula > 0.0, smallest > 0.5)
        .number("delta of (8)", formula)
        .number("smallest gap over epsilon", smallest)
        .counterexample("(log 1)^2 = 0"))
}

fn floats(context: &Context) -> Result<Finding> {
    let sequence = |tokens: [f64; 4]| (tokens.map(|x| vec![x]).to_vec(), Vec::<Value>::new());
    let sequences = [[1.0, 2.0, 5.0, 6.0], [1.0, 3.0, 4.0, 6.0], [1.0, 2.0, 4.0, 7.0], [2.0, 3.0, 4.0, 5.0]];
    let lines: Vec<String> = sequences.map(|s| json!({ "tokens": sequence(s).0 }).to_string()).to_vec();
    let data = Dataset::read("sets", monolayer::data::Format::JsonLines, lines.join("\n").as_bytes())?;
    let vectors = TokenVectors::new(&data, &Embedding::Sign(1), &Positions::None, 0, 0)?;
    let view = View::new(&data, &vectors, Mask::None);
    let kappa = context.mutate(None, Some(0.0));
    let scale = FloatWeights { labels_only: false, kappa, w_o: None, seed: 0, candidates: 32 };
    let found = scale.build(&view, None)?;
    let log2_delta = found.certificate.log2_delta().unwrap_or(f64::NEG_INFINITY);
    Ok(Finding::printed(found.certificate.holds())
        .count("contexts", view.contexts.count)
        .count("pairs with equal ids", found.certificate.coinciding.len())
        .number("log2 of delta, certified", log2_delta))
}

fn equation_7(context: &Context) -> Result<Finding> {
    let data = toy()?;
    let mut attention = paper_weights(&data)?.paper().expect("the paper's constants").attention.clone();
    attention.heads[0].w_o.data.iter_mut().for_each(|w| *w *= context.mutate(1.0, 8.0));
    let attention = map_attention(&attention, |&x| Interval::point(x));
    let constants = separation(2, &VOCABULARY.concat());
    let r = constants.r_max + constants.epsilon / 4.0;
    let mut longest = 0.0_f64;
    for (i, j) in (0..4).flat_map(|i| (0..i).map(move |j| (i, j))) {
        let tokens = [VOCABULARY[i], VOCABULARY[j]].concat();
        let z = Matrix::new(2, 2, tokens.into_iter().map(Interval::point).collect());
        let norm = |id: &[Interval]| id.iter().fold(Interval::zero(), |sum, x| sum + x.square()).sqrt().hi();
        longest = attention.apply(&z)?.iter_rows().map(norm).fold(longest, f64::max);
    }
    Ok(Finding::printed(longest < r).number("longest id", longest).number("r of (7)", r))
}

fn equation_8(context: &Context) -> Result<Finding> {
    let unit = separation(2, &VOCABULARY.concat());
    let log2_delta = |power: i32| {
        let s = 2_f64.powi(power);
        let scaled = Separation { r_min: s * unit.r_min, r_max: s * unit.r_max, epsilon: s * unit.epsilon };
        let log2_delta = Guarantee::new(4, 2, 2, &scaled).map_or(f64::NAN, |found| found.log2_delta);
        log2_delta - context.mutate(0.0, (8.0 * scaled.epsilon * scaled.r_min).log2())
    };
    let off = |power: i32| (log2_delta(power) - log2_delta(0) - f64::from(power)).abs();
    let largest = (-20..=20).map(off).fold(0.0, f64::max);
    Ok(Finding::printed(largest < 1e-6)
        .number("log2 of delta", log2_delta(0))
        .number("largest departure from scaling, log2", largest))
}
