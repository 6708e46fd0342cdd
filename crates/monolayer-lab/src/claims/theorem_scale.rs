//! Theorem 2 at its own scale, where ids are far closer than floats can tell.

use dashu_ratio::RBig;
use monolayer::context_map::View;
use monolayer::context_map::coincidence;
use monolayer::context_map::theorem_weights::weights::Scale;
use monolayer::context_map::theorem_weights::{Certified, Request, Way, certify, toys};
use monolayer::data::embedding::Embedding;
use monolayer::data::positions::Positions;
use monolayer::data::token_vectors::TokenVectors;
use monolayer::paper::attention::Mask;
use monolayer::paper::counterexamples::equation_47;
use monolayer::{Dataset, Result};

use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "theorem-2",
        place: "Theorem 2",
        statement: "one softmax layer of rank 1 is an (r, delta)-contextual mapping (repaired: r_min > 0)",
        run: "a zero token; toys of 4 and 5 vectors with the paper's weights, gaps proved in two ways, against delta of (8)",
        code: ("crates/monolayer/src/context_map/theorem_weights/mod.rs", "certify"),
        mutation: "a tenth of the exponent in (8)",
        find: theorem_2,
    },
    Claim {
        id: "theorem-2-corpus",
        place: "Theorem 2, on a corpus",
        statement: "the theorem's own weights tell all contexts of a corpus with positions apart, by more than delta of (8)",
        run: "the corpus with the paper's weights, neighboring ids compared at their first difference, in logarithms",
        code: ("crates/monolayer/src/context_map/theorem_weights/identity.rs", "Identity"),
        mutation: "a thousandth of the exponent in (8)",
        find: corpus,
    },
    Claim {
        id: "theorem-2-plus",
        place: "Theorem 2, with Lemma S in place of Lemma 1",
        statement: "smaller weights than the paper's are a contextual mapping with larger gaps",
        run: "toys of 4 and 5 vectors, both weights, gaps proved",
        code: ("crates/monolayer/src/context_map/theorem_weights/weights.rs", "Weights"),
        mutation: "the two are exchanged",
        find: plus,
    },
    Claim {
        id: "equation-42",
        place: "(42)",
        statement: "the gap of g is above (42) (repaired: times 8 epsilon r_min)",
        run: "pairs of three small numbers with the paper's weights, the gap bounded from above",
        code: ("crates/monolayer/src/paper/counterexamples.rs", "equation_47"),
        mutation: "the repair drops the factor, too",
        find: equation_42,
    },
    Claim {
        id: "equation-47",
        place: "(47)",
        statement: "the gap of ids is above (47) (repaired: (8))",
        run: "pairs of three small numbers with the paper's weights, the gap bounded from above",
        code: ("crates/monolayer/src/paper/counterexamples.rs", "equation_47"),
        mutation: "(47) in the place of (8)",
        find: equation_47_itself,
    },
];

/// Bits that the direct way may use.
const MOST_BITS: usize = 1 << 17;

/// The map of Theorem 2 for a dataset, certified.
fn certified(data: &Dataset, scale: Scale, way: Way, positions: &Positions) -> Result<Certified> {
    let vectors = TokenVectors::new(data, &Embedding::Sign(64), positions, 0, 0)?;
    let request = Request { scale, way, max_bits: MOST_BITS, seed: 0, candidates: 20 };
    certify(&View::new(data, &vectors, Mask::None), &request)
}

/// The logarithm of the gap that was proved.
fn log2_gap(found: &Certified) -> f64 {
    found.log2_delta().unwrap_or(f64::NEG_INFINITY)
}

fn theorem_2(context: &Context) -> Result<Finding> {
    // For a query of 0, ids are equal exactly if the means of the projected tokens are; d = 1 and v = 1.
    let key = |tokens: [i64; 3]| coincidence::key(&RBig::ZERO, &tokens.map(RBig::from));
    let zero_token_blind = key([0, 1, 4]) == key([0, 2, 3]);
    let [four, five] =
        [toys::four(), toys::five()].map(|data| certified(&data, Scale::Paper, Way::Direct, &Positions::None));
    let (four, five) = (four?, five?);
    let again = certified(&toys::five(), Scale::Paper, Way::Identity, &Positions::None)?;
    let log2_of_8 = |found: &Certified| found.theorem_above * context.mutate(1.0, 0.1);
    let above = |found: &Certified| log2_gap(found) > log2_of_8(found);
    let disagreement = (log2_gap(&five) / log2_gap(&again) - 1.0).abs();
    let holds = above(&four) && above(&five) && disagreement < 1e-6;
    Ok(Finding::repaired(!zero_token_blind && holds, holds)
        .number("four vectors, pairs: log2 of the gap", log2_gap(&four))
        .number("of delta (8)", log2_of_8(&four))
        .number("five vectors, triples: log2 of the gap", log2_gap(&five))
        .number("of delta (8) there", log2_of_8(&five))
        .number("both ways differ by, relatively", disagreement)
        .counterexample("a zero token has the same id in {0, 1, 4} and {0, 2, 3}, whatever the weights"))
}

fn corpus(context: &Context) -> Result<Finding> {
    let found = certified(&context.data, Scale::Paper, Way::Identity, &Positions::Auto)?;
    let log2_of_8 = found.theorem_above * context.mutate(1.0, 1e-3);
    Ok(Finding::printed(log2_gap(&found) > log2_of_8)
        .count("different (word, place)", found.weights.separation.vocabulary)
        .count("neighboring pairs of ids", found.identity.as_ref().map_or(0, |way| way.pairs))
        .number("log2 of delta (8)", log2_of_8)
        .number("log2 of the gap, proved", log2_gap(&found))
        .number("kappa", found.weights.kappa))
}

fn plus(context: &Context) -> Result<Finding> {
    let mut finding = Finding::printed(true);
    let names =
        [["log2 of the gap, four vectors", "paper's, four"], ["log2 of the gap, five vectors", "paper's, five"]];
    for (names, data) in names.into_iter().zip([toys::four(), toys::five()]) {
        let paper = certified(&data, Scale::Paper, Way::Identity, &Positions::None)?;
        let smaller = certified(&data, Scale::Certified, Way::Identity, &Positions::None)?;
        let (a, b) = context.mutate((&paper, &smaller), (&smaller, &paper));
        finding.printed &= log2_gap(a) < log2_gap(b) && b.weights.kappa < a.weights.kappa;
        finding = finding.number(names[0], log2_gap(b)).number(names[1], log2_gap(a));
    }
    Ok(finding)
}

fn equation_42(context: &Context) -> Result<Finding> {
    let found = equation_47()?;
    // (8) is (42), repaired, times the length of W_O.
    let repaired = found.log2_ids > context.mutate(found.log2_8, found.log2_47);
    Ok(Finding::repaired(found.log2_g >= found.log2_42, repaired)
        .number("log2 of (42)", found.log2_42)
        .number("log2 of the gap of g, at most", found.log2_g)
        .counterexample(format!("pairs of {:?} times 2^-{}", found.tokens, found.power)))
}

fn equation_47_itself(context: &Context) -> Result<Finding> {
    let found = equation_47()?;
    let repaired = found.log2_ids > context.mutate(found.log2_8, found.log2_47);
    Ok(Finding::repaired(found.log2_ids >= found.log2_47, repaired)
        .number("log2 of (47)", found.log2_47)
        .number("log2 of the gap of ids, at most", found.log2_ids)
        .number("log2 of (8)", found.log2_8)
        .counterexample(format!("pairs of {:?} times 2^-{}", found.tokens, found.power)))
}
