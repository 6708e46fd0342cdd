//! Theorem 1: hardmax.

use std::collections::HashSet;

use dashu_ratio::RBig;
use monolayer::Result;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};
use monolayer::paper::hardmax::{HardmaxLayer, draw, line, mean_pooling, printed_pair};

use super::support::{self, apart, outputs, pairs_below};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "theorem-1",
        number: "Theorem 1, (5)",
        statement: "no 1-layer hardmax self-attention, of any number of heads, is a contextual mapping",
        printed: r"F_H^{(SA)}(Z) = Z + \sum_{i=1}^h W_i^{(O)} (W_i^{(V)} Z) \sigma_H[(W_i^{(K)} Z)^T (W_i^{(Q)} Z)] (5), Z \in R^{d \times n}, W_i^{(V)}, W_i^{(K)}, W_i^{(Q)} \in R^{s \times d}, W_i^{(O)} \in R^{d \times s}: 1-layer multi-head self-attention F_H^{(SA)} cannot be a contextual mapping",
        note: "No number of tokens is printed: n = 4 decides. Ties are shared equally, which is a choice within the paper's \"sum to one\".",
        run: "(1,2,5,6)v and (1,3,4,6)v through random layers, exactly: equal outputs at v and 6v for every one",
        code: ("crates/monolayer/src/paper/hardmax/mod.rs", "witness"),
        mutation: "the second sequence is (1,3,5,6)v",
        find: theorem_1,
    },
    Claim {
        id: "theorem-1-proof",
        number: "Theorem 1, proof, (22) to (24)",
        statement: "no hardmax layer tells (α₁v, α₂v, α₄v) from (α₁v, α₃v, α₄v)",
        printed: r"v \in R^d nonzero, V = \{\alpha_1 v, \alpha_2 v, \alpha_3 v, \alpha_4 v\} \subset R^d (22) for some \alpha_1 < \alpha_2 < \alpha_3 < \alpha_4; (W_i^{(K)} v a^T)^T (W_i^{(Q)} v a^T) = a (W_i^{(K)} v)^T (W_i^{(Q)} v) a^T (23), a \in \{\alpha_1, \alpha_2, \alpha_3, \alpha_4\}^n \subset R^n; (W_i^{(K)} v a^T)^T (W_i^{(Q)} \alpha_2 v) = a (W_i^{(K)} v)^T (W_i^{(Q)} v) \alpha_2 = (W_i^{(K)} v)^T (W_i^{(Q)} v) \alpha_2 \cdot a (24); its maximum is achieved only where a is \alpha_1 or \alpha_4, so no number of heads distinguishes (\alpha_1 v, \alpha_2 v, \alpha_4 v) and (\alpha_1 v, \alpha_3 v, \alpha_4 v)",
        note: "The scalar in (24) may be 0. Then all places tie, and a head that shares ties equally takes the mean of all tokens. So it fails for every choice of α, v and d: with h = 1, W^(Q) = 0 and W^(O)W^(V)v = v the outputs at α₁v differ by (α₃ − α₂)v/3. The paper prints no rule for ties but that they sum to one. (24) itself holds.",
        run: "all α₁ < α₂ < α₃ < α₄ from −5 to 5: both sequences through a head whose query is 0, exactly, against (α₃ − α₂)/3",
        code: ("crates/monolayer/src/paper/hardmax/mod.rs", "printed_pair"),
        mutation: "the head's query does not vanish",
        find: theorem_1_proof,
    },
    Claim {
        id: "theorem-1-three-tokens",
        number: "beside Theorem 1",
        statement: "with three tokens and no zero token, a hardmax layer of three heads can be a contextual mapping",
        printed: "",
        note: "Where Theorem 1 stops. For one or two tokens mean pooling is one, too.",
        run: "three heads (mean, largest, smallest) on all sets of three numbers of {1, …, 6}, exactly",
        code: ("crates/monolayer/src/paper/hardmax/mod.rs", "HardmaxLayer"),
        mutation: "without the head that takes the mean",
        find: three_tokens,
    },
    Claim {
        id: "theorem-1-zero-token",
        number: "beside Theorem 1",
        statement: "with three tokens, no hardmax layer tells (0,1,4)v from (0,2,3)v at the zero token",
        printed: "",
        note: "",
        run: "both through random layers, exactly",
        code: ("crates/monolayer/src/paper/hardmax/mod.rs", "HardmaxLayer"),
        mutation: "the second sequence is (0,2,4)v",
        find: zero_token,
    },
    Claim {
        id: "theorem-1-softmax",
        number: "Theorems 1 and 2, sections 3.3, 3.4",
        statement: "softmax of rank 1 tells apart what no hardmax layer does",
        printed: r"F_H^{(SA)} of (5) cannot be a contextual mapping (Theorem 1); F_S^{(SA)} with h = 1, the ranks of W^{(V)}, W^{(K)}, W^{(Q)} all 1, is an (r, \delta)-contextual mapping (Theorem 2)",
        note: "",
        run: "(1,2,5,6) and (1,3,4,6) through one rank-1 layer, enclosed: apart at 1 and at 6",
        code: ("crates/monolayer/src/paper/hardmax/mod.rs", "softmax_gap"),
        mutation: "the query's weight is 0",
        find: softmax,
    },
];

/// How many random layers give two sequences exactly equal outputs at the places given.
fn blind(layers: usize, sequences: [&[i64]; 2], places: &[usize]) -> usize {
    let is_blind = |number: &u64| {
        let (attention, v) = draw(1, *number);
        let layer = HardmaxLayer::new(&attention);
        let [a, b] = sequences.map(|sequence| layer.apply(&line(sequence, &v)));
        places.iter().all(|&place| a.row(place) == b.row(place))
    };
    (0..layers as u64).filter(is_blind).count()
}

/// A head that reads the first of four coordinates and writes to another.
fn head(query: i64, into: usize) -> AttentionHead<RBig> {
    let unit = |c: usize, x: i64| Matrix::from_fn(1, 4, move |_, j| RBig::from(if j == c { x } else { 0 }));
    let w_o = Matrix::new(4, 1, unit(into, 1).data);
    AttentionHead { w_q: unit(0, query), w_k: unit(0, 1), w_v: unit(0, 1), w_o }
}

fn theorem_1(context: &Context) -> Result<Finding> {
    let layers = context.effort(1000, 10_000);
    let second: &[i64] = context.mutate(&[1, 3, 4, 6], &[1, 3, 5, 6]);
    let blind = blind(layers, [&[1, 2, 5, 6], second], &[0, 3]);
    Ok(Finding::printed(blind == layers).count("random layers", layers).count("that cannot tell the pair apart", blind))
}

fn three_tokens(context: &Context) -> Result<Finding> {
    let heads = vec![head(context.mutate(0, 1), 1), head(1, 2), head(-1, 3)];
    let layer = HardmaxLayer::new(&Attention { kind: AttentionKind::Hardmax, mask: Mask::None, heads });
    let v = [RBig::ONE, RBig::ZERO, RBig::ZERO, RBig::ZERO];
    let (mut contexts, mut different) = (0, HashSet::new());
    for (a, b, c) in (1..=6).flat_map(|a| (1..a).flat_map(move |b| (1..b).map(move |c| (a, b, c)))) {
        let out = layer.apply(&line(&[a, b, c], &v));
        contexts += out.rows;
        different.extend(out.iter_rows().map(<[RBig]>::to_vec));
    }
    Ok(Finding::ours(different.len() == contexts)
        .count("tokens in sets of three", contexts)
        .count("different outputs", different.len()))
}

fn theorem_1_proof(context: &Context) -> Result<Finding> {
    let mut attention = mean_pooling(1);
    if context.mutated {
        attention.heads[0].w_q = attention.heads[0].w_k.clone();
    }
    let layer = HardmaxLayer::new(&attention);
    // At the first token of (a1, a2, a4) and of (a1, a3, a4).
    let outputs = |[a1, a2, a3, a4]: [i64; 4]| {
        [[a1, a2, a4], [a1, a3, a4]].map(|sequence| layer.apply(&line(&sequence, &[RBig::ONE])).row(0)[0].clone())
    };
    let (mut choices, mut blind, mut as_argued) = (0, 0, 0);
    for (a2, a3) in pairs_below(11).map(|(i, j)| (j as i64 - 5, i as i64 - 5)) {
        for (a1, a4) in (-5..a2).flat_map(|a1| (a3 + 1..=5).map(move |a4| (a1, a4))) {
            let [a, b] = outputs([a1, a2, a3, a4]);
            choices += 1;
            blind += usize::from(a == b);
            as_argued += usize::from(b - a == RBig::from(a3 - a2) / RBig::from(3));
        }
    }
    let found = printed_pair(&layer, &[RBig::ONE])?;
    let [a, b] = [0, 1].map(|i| &found.outputs[i][0][0]);
    // Printed for some alpha: one choice that is not told apart would do.
    Ok(Finding::printed(blind > 0 || as_argued < choices)
        .count("choices of α", choices)
        .count("that the head does not tell apart", blind)
        .count("that differ by (α₃ − α₂)/3", as_argued)
        .number("output for (1,2,4)", a.to_f64().value())
        .number("output for (1,3,4)", b.to_f64().value())
        .counterexample(format!(
            "every α: h = 1, W^(Q) = 0, W^(O)W^(V)v = v, ties shared equally: the outputs at α₁v differ by (α₃ − α₂)v/3. α = 1, 2, 3, 4: {a} at 4 for (1,2,4) and {b} for (1,3,4)"
        )))
}

fn zero_token(context: &Context) -> Result<Finding> {
    let layers = context.effort(1000, 10_000);
    let second: &[i64] = context.mutate(&[0, 2, 3], &[0, 2, 4]);
    let blind = blind(layers, [&[0, 1, 4], second], &[0]);
    Ok(Finding::ours(blind == layers).count("random layers", layers).count("that cannot tell the pair apart", blind))
}

fn softmax(context: &Context) -> Result<Finding> {
    let attention = support::line(AttentionKind::Softmax, Mask::None, context.mutate(0.25, 0.0), 1.0);
    let (a, b) = (outputs(&attention, &[1.0, 2.0, 5.0, 6.0])?, outputs(&attention, &[1.0, 3.0, 4.0, 6.0])?);
    let gap = |place: usize| (a[place] - b[place]).mignitude();
    Ok(Finding::printed([0, 3].iter().all(|&place| apart(a[place], b[place])))
        .number("gap at 1", gap(0))
        .number("gap at 6", gap(3)))
}
