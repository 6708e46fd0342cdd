//! Appendix C: masks.

use monolayer::arithmetic::{Interval, Number as _};
use monolayer::context_map::View;
use monolayer::context_map::float_weights::FloatWeights;
use monolayer::data::Format;
use monolayer::data::embedding::Embedding;
use monolayer::data::positions::Positions;
use monolayer::data::token_vectors::TokenVectors;
use monolayer::paper::attention::{AttentionKind, Mask};
use monolayer::paper::boltzmann::{Boltzmann, difference};
use monolayer::paper::lemmas;
use monolayer::{Dataset, Matrix, Result};

use super::support::{apart, ball, gap, line, outputs, pairs_below};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "appendix-c",
        number: "Appendix C, (132)",
        statement: "masked attention is a contextual mapping: it tells what is visible apart",
        printed: r"Theorem 2 extends to \sigma_S[(W_{l,i}^{(K)} Z)^T (W_{l,i}^{(Q)} Z) + C] \in R^{d \times n} (132) in the place of the softmax of (2), C \in R^{n \times n} with elements 0 or -\infty",
        note: "The softmax is n × n, and the index l is not used elsewhere. Here lengths differ and duplicates are allowed: multisets are told apart.",
        run: "a causal mask on sequences whose pasts share their means, gaps certified",
        code: ("crates/monolayer/src/context_map/proved_gaps.rs", "ProvedGaps"),
        mutation: "the query's weight is 0",
        find: appendix_c,
    },
    Claim {
        id: "equation-133",
        number: "(133)",
        statement: "boltz under a mask is the mean over what is visible",
        printed: r"boltz(a + c) = (a + c)^T \sigma_S[a + c] = a^T \sigma_S[a + c] + c^T \sigma_S[a + c] = a^T \sigma_S[a + c] (133) for any mask c \in R^n with elements 0 or -\infty",
        note: "(−∞)·0 is meant to be 0. c = (−∞, …, −∞) is left out: its softmax is 0/0 (docs/errata.md, slips).",
        run: "a = (3,1,2) and the seven masks that show something: through masked attention, and boltz of what is visible",
        code: ("crates/monolayer/src/paper/attention.rs", "apply_masked"),
        mutation: "nothing is masked",
        find: equation_133,
    },
    Claim {
        id: "appendix-c-lengths",
        number: "beside Remark 1, Appendix C",
        statement: "the constant of Lemma 1 is for vectors of one length; for different lengths up to n Lemma S serves",
        printed: "",
        note: "Lemma 1 has one n, and Appendix C claims separation without a constant. For masks of one separated vector the constant does survive.",
        run: "{r} and {r, −r} for n = 100; all pairs of masks of a ladder of up to 5 numbers",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_s"),
        mutation: "twice the constant of Lemma S",
        find: lengths,
    },
    Claim {
        id: "appendix-c-order",
        number: "beside Appendix C",
        statement: "a causal mask alone does not show a token the order of those before it",
        printed: "",
        note: "Appendix C does not speak of order.",
        run: "the last token of (1,2,3) and of (2,1,3) under a causal mask, enclosed",
        code: ("crates/monolayer/src/paper/mask.rs", "Mask"),
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
        .number("log2 of δ, certified", found.log2_delta().unwrap_or(f64::NEG_INFINITY)))
}

fn order(context: &Context) -> Result<Finding> {
    let attention = line(AttentionKind::Softmax, Mask::Causal, 0.5, 1.0);
    let step = context.mutate(0.0, 0.25);
    let last = |tokens: [f64; 3]| -> Result<_> {
        let placed: Vec<f64> = (0..3).map(|k| tokens[k] + step * k as f64).collect();
        Ok(outputs(&attention, &placed)?[2])
    };
    let (a, b) = (last([1.0, 2.0, 3.0])?, last([2.0, 1.0, 3.0])?);
    Ok(Finding::ours(!apart(a, b)).number("output after (1,2)", a.center()).number("output after (2,1)", b.center()))
}

fn equation_133(context: &Context) -> Result<Finding> {
    // The query is token 1 at place 2, so that scores are the tokens themselves; W_O = 1.
    let attention = line(AttentionKind::Softmax, Mask::None, 1.0, 1.0);
    let a = [3.0, 1.0, 2.0];
    let z = Matrix::new(3, 1, a.map(Interval::point).to_vec());
    let (mut held, mut example) = (0, [0.0; 2]);
    // All masks but the one that hides everything.
    for mask in 1..8_usize {
        let sees = |key: usize| mask >> key & 1 == 1;
        let masked = attention.apply_masked(&z, |_, key| sees(key) || context.mutated)?.data[1] - Interval::one();
        let visible = Boltzmann::at(&(0..3).filter(|&key| sees(key)).map(|key| a[key]).collect::<Vec<f64>>())?.value();
        held += usize::from(masked.contains(visible) || (masked.center() - visible).abs() < 1e-14);
        if mask == 0b101 {
            example = [masked.center(), visible];
        }
    }
    Ok(Finding::printed(held == 7)
        .count("masks that show something", 7)
        .count("where (133) holds", held)
        .number("c = (0,−∞,0): aᵀσ_S[a + c]", example[0])
        .number("boltz(3, 2)", example[1]))
}

fn lengths(context: &Context) -> Result<Finding> {
    let n = 100_f64;
    let r = n.ln() + 1.5 + 1e-9;
    let distance = difference(&[r], &[r, -r], 192)?.abs();
    let claimed = |n: f64, r: f64| ball(n).ln() * ball(n).ln() * (ball(-2.0) * ball(r)).exp();
    let ratio = (distance.clone() / claimed(n, r)).to_interval();
    let mut other = lemmas::lemma_s(&[r], &[r, -r], 2.0 * r)?;
    other.right = other.right * ball(context.mutate(1.0, 2.0));
    let mut smallest = f64::INFINITY;
    for n in 2..=5_usize {
        let step = gap(n) + 1e-9;
        let top = step * (n - 1) as f64 / 2.0;
        let numbers: Vec<f64> = (0..n).map(|i| top - step * i as f64).collect();
        let seen = |mask: usize| (0..n).filter(|i| mask >> i & 1 == 1).map(|i| numbers[i]).collect::<Vec<f64>>();
        let bound = claimed(n as f64, top);
        for (i, j) in pairs_below((1 << n) - 1) {
            let apart = difference(&seen(i + 1), &seen(j + 1), 192)?.abs() / &bound;
            smallest = smallest.min(apart.to_interval().lo());
        }
    }
    Ok(Finding::ours(ratio.hi() < 1.0 && other.holds() && smallest > 1.0)
        .number("gap over the bound of Lemma 1, n = 100", ratio.center())
        .number("gap over the bound of Lemma S", distance.to_interval().center() / other.right.to_interval().center())
        .number("masks of one vector: smallest gap over the bound of Lemma 1", smallest))
}
