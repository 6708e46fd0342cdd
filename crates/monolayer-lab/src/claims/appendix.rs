//! Appendix C: masks.

use monolayer::context_map::View;
use monolayer::context_map::float_weights::FloatWeights;
use monolayer::data::Format;
use monolayer::data::embedding::Embedding;
use monolayer::data::positions::Positions;
use monolayer::data::token_vectors::TokenVectors;
use monolayer::paper::attention::{AttentionKind, Mask};
use monolayer::{Dataset, Result};

use super::support::{apart, line, outputs};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "appendix-c",
        place: "Appendix C, (132)",
        statement: "masked attention is a contextual mapping: it tells visible multisets apart",
        run: "a causal mask on sequences whose pasts share their means, gaps certified",
        code: ("crates/monolayer/src/context_map/certificate.rs", "Certificate"),
        mutation: "kappa = 0",
        find: appendix_c,
    },
    Claim {
        id: "appendix-c-empty",
        place: "Appendix C, (132)",
        statement: "softmax of a column that is masked throughout is defined (repaired: such masks are an error)",
        run: "a mask that hides every token from one query",
        code: ("crates/monolayer/src/paper/attention.rs", "apply_masked"),
        mutation: "the query sees itself",
        find: empty,
    },
    Claim {
        id: "appendix-c-order",
        place: "Appendix C, a reading of it",
        statement: "a causal mask alone shows a token the order of those before it",
        run: "the last token of (1,2,3) and of (2,1,3) under a causal mask, enclosed",
        code: ("crates/monolayer/src/paper/attention.rs", "Mask"),
        mutation: "small positions are added",
        find: order,
    },
];

fn appendix_c(context: &Context) -> Result<Finding> {
    let lines = "{\"tokens\": [[1], [4], [9]]}\n{\"tokens\": [[2], [3], [9]]}\n{\"tokens\": [[3], [9], [1]]}";
    let data = Dataset::read("prefixes", Format::JsonLines, lines.as_bytes())?;
    let vectors = TokenVectors::new(&data, &Embedding::Sign(1), &Positions::None, 0, 0)?;
    let view = View::new(&data, &vectors, Mask::Causal);
    let kappa = context.mutate(None, Some(0.0));
    let scale = FloatWeights { labels_only: false, kappa, w_o: None, seed: 0, candidates: 32 };
    let found = scale.build(&view, None)?.certificate;
    Ok(Finding::printed(found.holds())
        .count("contexts", view.contexts.count)
        .count("pairs with equal ids", found.coinciding.len())
        .number("log2 of delta, certified", found.log2_delta().unwrap_or(f64::NEG_INFINITY)))
}

fn empty(context: &Context) -> Result<Finding> {
    let attention = line(AttentionKind::Softmax, Mask::None, 0.5, 1.0);
    let z = monolayer::Matrix::new(2, 1, [1.0, 2.0].map(monolayer::arithmetic::Interval::point).to_vec());
    let result = attention.apply_masked(&z, |query, key| query == 0 || context.mutated && key == 1);
    Ok(Finding::repaired(result.is_ok(), result.is_err())
        .count("errors", usize::from(result.is_err()))
        .counterexample(result.err().map_or(String::new(), |error| error.to_string())))
}

fn order(context: &Context) -> Result<Finding> {
    let attention = line(AttentionKind::Softmax, Mask::Causal, 0.5, 1.0);
    let step = context.mutate(0.0, 0.25);
    let last = |tokens: [f64; 3]| -> Result<_> {
        let placed: Vec<f64> = (0..3).map(|k| tokens[k] + step * k as f64).collect();
        Ok(outputs(&attention, &placed)?[2])
    };
    let (a, b) = (last([1.0, 2.0, 3.0])?, last([2.0, 1.0, 3.0])?);
    Ok(Finding::printed(apart(a, b))
        .number("output after (1,2)", a.center())
        .number("output after (2,1)", b.center())
        .counterexample("(1,2,3) and (2,1,3): the last token sees the same multiset"))
}
