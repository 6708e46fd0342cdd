//! Theorem 2 at its own scale, where ids are far closer than floats can tell, and beside it.

use dashu_ratio::RBig;
use monolayer::context_map::View;
use monolayer::context_map::coincidence;
use monolayer::context_map::float_weights::FloatWeights;
use monolayer::context_map::theorem_weights::weights::Scale;
use monolayer::context_map::theorem_weights::{Certified, Request, Way, certify, toys};
use monolayer::data::Format;
use monolayer::data::embedding::Embedding;
use monolayer::data::positions::Positions;
use monolayer::data::token_vectors::TokenVectors;
use monolayer::paper::attention::Mask;
use monolayer::{Dataset, Result};
use serde_json::json;

use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "theorem-2",
        number: "Theorem 2, (6) to (8)",
        statement: "one softmax layer of one head with W^(V), W^(K), W^(Q) of rank 1 is an (r, δ)-contextual mapping",
        printed: r"X^{(1)}, \dots, X^{(N)} \in R^{d \times n}, X^{(i)}_{:,k} \ne X^{(i)}_{:,l} (6) for any i \in [N] and k, l \in [n], tokenwise (r_{\min}, r_{\max}, \epsilon)-separated \Rightarrow there are W^{(O)} \in R^{d \times s}, W^{(V)}, W^{(K)}, W^{(Q)} \in R^{s \times d}, the ranks of W^{(V)}, W^{(K)}, W^{(Q)} all 1, with which F_S^{(SA)}, h = 1, is an (r, \delta)-contextual mapping, r = r_{\max} + \frac{\epsilon}{4} (7), \delta = \frac{2 (\log n)^2 \epsilon^2 r_{\min}}{r_{\max}^2 (|V| + 1)^4 (2 \log n + 3) \pi d} \exp(-(|V| + 1)^4 \frac{(2 \log n + 3) \pi d r_{\max}^2}{4 \epsilon r_{\min}}) (8)",
        note: "(6) is read with k ≠ l. The proof takes δ = 2 log n + 3 where (14) asks for more: finitely many strict inequalities leave room. Here |uᵀu'| of (29) is rounded up to 13 bits.",
        run: "toys of 4 and 5 vectors with the proof's weights: norms against (7), gaps proved in two ways against (8)",
        code: ("crates/monolayer/src/context_map/theorem_weights/mod.rs", "certify"),
        mutation: "a tenth of the exponent in (8)",
        find: theorem_2,
    },
    Claim {
        id: "theorem-2-zero-token",
        number: "beside Theorem 2, Definition 1",
        statement: "r_min > 0 is necessary: a zero token has the same id in {0,1,4}v and {0,2,3}v, whatever the weights",
        printed: "",
        note: "Definition 1 excludes a zero token for every r_min ≥ 0; Lemma 3 and Corollary 1 print r_min > 0. For r_min = 0 (8) is undefined.",
        run: "the ids at the zero token compared exactly: for a query of 0 they are equal if and only if the means are",
        code: ("crates/monolayer/src/context_map/coincidence.rs", "key"),
        mutation: "the second set is {0,2,4}",
        find: zero_token,
    },
    Claim {
        id: "theorem-2-corpus",
        number: "Theorem 2, (8), on a corpus",
        statement: "the proof's weights tell all contexts of a corpus with positions apart, by more than δ of (8)",
        printed: r"F_S^{(SA)} with h = 1 is an (r, \delta)-contextual mapping, \delta = \frac{2 (\log n)^2 \epsilon^2 r_{\min}}{r_{\max}^2 (|V| + 1)^4 (2 \log n + 3) \pi d} \exp(-(|V| + 1)^4 \frac{(2 \log n + 3) \pi d r_{\max}^2}{4 \epsilon r_{\min}}) (8)",
        note: "Lengths differ here, which Theorem 2 leaves to Remark 1.",
        run: "the corpus with the proof's weights, neighboring ids compared at their first difference, in logarithms",
        code: ("crates/monolayer/src/context_map/theorem_weights/gap_in_logarithms.rs", "GapInLogarithms"),
        mutation: "a thousandth of the exponent in (8)",
        find: corpus,
    },
    Claim {
        id: "theorem-2-plus",
        number: "beside Theorem 2",
        statement: "smaller weights than the proof's are a contextual mapping with larger gaps (Lemma S in place of Lemma 1)",
        printed: "",
        note: "",
        run: "toys of 4 and 5 vectors, both weights, gaps proved",
        code: ("crates/monolayer/src/context_map/theorem_weights/weights.rs", "Weights"),
        mutation: "the two are exchanged",
        find: plus,
    },
    Claim {
        id: "theorem-2-floats",
        number: "beside Theorem 2",
        statement: "weights that a float holds can be a contextual mapping, too",
        printed: "",
        note: "",
        run: "a search for weights on sets that share their means, its gap certified",
        code: ("crates/monolayer/src/context_map/float_weights.rs", "build"),
        mutation: "the query's weight is 0",
        find: floats,
    },
];

/// Bits that the direct way may use.
const MOST_BITS: usize = 1 << 17;

/// The map of Theorem 2 for a dataset, certified.
pub fn certified(data: &Dataset, scale: Scale, way: Way, positions: &Positions) -> Result<Certified> {
    let vectors = TokenVectors::new(data, &Embedding::Sign(64), positions, 0, 0)?;
    let request = Request { scale, way, max_bits: MOST_BITS, seed: 0, candidates: 20 };
    certify(&View::new(data, &vectors, Mask::None), &request)
}

/// The logarithm of the gap that was proved.
fn log2_gap(found: &Certified) -> f64 {
    found.log2_delta().unwrap_or(f64::NEG_INFINITY)
}

fn theorem_2(context: &Context) -> Result<Finding> {
    let [four, five] =
        [toys::four(), toys::five()].map(|data| certified(&data, Scale::Paper, Way::Direct, &Positions::None));
    let (four, five) = (four?, five?);
    let again = certified(&toys::five(), Scale::Paper, Way::Identity, &Positions::None)?;
    let log2_of_8 = |found: &Certified| found.theorem_above * context.mutate(1.0, 0.1);
    let holds = |found: &Certified| found.r < found.theorem.r && log2_gap(found) > log2_of_8(found);
    let disagreement = (log2_gap(&five) / log2_gap(&again) - 1.0).abs();
    Ok(Finding::printed(holds(&four) && holds(&five) && disagreement < 1e-6)
        .number("four vectors, pairs: ids are shorter than", four.r)
        .number("r of (7)", four.theorem.r)
        .number("log2 of the gap", log2_gap(&four))
        .number("log2 of δ of (8)", log2_of_8(&four))
        .number("five vectors, triples: log2 of the gap", log2_gap(&five))
        .number("log2 of δ of (8) there", log2_of_8(&five))
        .number("both ways differ by, relatively", disagreement))
}

fn zero_token(context: &Context) -> Result<Finding> {
    // d = 1 and v = 1.
    let key = |tokens: [i64; 3]| coincidence::key(&RBig::ZERO, &tokens.map(RBig::from));
    let second = context.mutate([0, 2, 3], [0, 2, 4]);
    let sum = |tokens: [i64; 3]| tokens.iter().sum::<i64>() as f64;
    Ok(Finding::ours(key([0, 1, 4]) == key(second))
        .number("mean of {0,1,4}", sum([0, 1, 4]) / 3.0)
        .number("mean of the second set", sum(second) / 3.0))
}

fn corpus(context: &Context) -> Result<Finding> {
    let found = certified(&context.data, Scale::Paper, Way::Identity, &Positions::Auto)?;
    let log2_of_8 = found.theorem_above * context.mutate(1.0, 1e-3);
    Ok(Finding::printed(log2_gap(&found) > log2_of_8)
        .count("different (word, place)", found.weights.separation.vocabulary)
        .count("neighboring pairs of ids", found.identity.as_ref().map_or(0, |way| way.pairs))
        .number("log2 of δ of (8)", log2_of_8)
        .number("log2 of the gap, proved", log2_gap(&found))
        .number("|uᵀu'|", found.weights.kappa))
}

fn plus(context: &Context) -> Result<Finding> {
    let mut finding = Finding::ours(true);
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

fn floats(context: &Context) -> Result<Finding> {
    let sequences = [[1.0, 2.0, 5.0, 6.0], [1.0, 3.0, 4.0, 6.0], [1.0, 2.0, 4.0, 7.0], [2.0, 3.0, 4.0, 5.0]];
    let lines = sequences.map(|tokens: [f64; 4]| json!({ "tokens": tokens.map(|x| [x]) }).to_string());
    let data = Dataset::read("sets", Format::JsonLines, lines.join("\n").as_bytes())?;
    let vectors = TokenVectors::new(&data, &Embedding::Sign(1), &Positions::None, 0, 0)?;
    let view = View::new(&data, &vectors, Mask::None);
    let kappa = context.mutate(None, Some(0.0));
    let scale = FloatWeights { labels_only: false, kappa, w_o: None, seed: 0, candidates: 32 };
    let found = scale.build(&view, None)?;
    let log2_delta = found.certificate.log2_delta().unwrap_or(f64::NEG_INFINITY);
    Ok(Finding::ours(found.certificate.holds())
        .count("contexts", view.contexts.count)
        .count("pairs with equal ids", found.certificate.coinciding.len())
        .number("log2 of δ, certified", log2_delta))
}
