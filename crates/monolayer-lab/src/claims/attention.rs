//! The overview of Theorem 2's proof, any head size, and the rank-1 attention of section 5.

use monolayer::arithmetic::{Ball, Number as _};
use monolayer::context_map::{ContextMap, Projection};
use monolayer::model::rank::rank;
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};
use monolayer::paper::boltzmann::{Boltzmann, g};
use monolayer::{Matrix, Result};

use super::support::{rng, vectors};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "equations-9-to-13",
        number: "(9) to (13)",
        statement: "one projected token's weighted averages differ as the Boltzmann values of its scores do",
        printed: r"W^{(V)}, W^{(K)}, W^{(Q)} \in R^{1 \times d}: (W^{(V)} X^{(i)}) \sigma_S[(W^{(K)} X^{(i)})^T (W^{(Q)} X^{(i)})] \in R^{1 \times n} (9); |(W^{(V)} X^{(i)}) \sigma_S[(W^{(K)} X^{(i)})^T (W^{(Q)} X^{(i)}_{:,k})] - (W^{(V)} X^{(j)}) \sigma_S[(W^{(K)} X^{(j)})^T (W^{(Q)} X^{(j)}_{:,l})]| > \epsilon (10) with some \epsilon > 0 for any distinct i, j \in [N] and any k, l \in [n] such that X^{(i)}_{:,k} = X^{(j)}_{:,l} and V^{(i)} \ne V^{(j)}; W^{(V)} = W^{(K)} = W^{(Q)} = w^T, w \in R^d, c ||v_a - v_b|| \le |w^T v_a - w^T v_b| \le ||v_a - v_b|| (11) for any v_a, v_b \in V with some 0 < c < 1; t = X^{(i)}_{:,k} = X^{(j)}_{:,l}: |w^T t| \cdot |(w^T X^{(i)}) \sigma_S[(w^T X^{(i)})^T (w^T t)] - (w^T X^{(j)}) \sigma_S[(w^T X^{(j)})^T (w^T t)]| \ge |(a^{(i)})^T \sigma_S[a^{(i)}] - (a^{(j)})^T \sigma_S[a^{(j)}]| (12), a^{(i)} = (w^T X^{(i)})^T (w^T t) \in R^n, a^{(j)} = (w^T X^{(j)})^T (w^T t) \in R^n; boltz : R^n \to R, a \mapsto a^T \sigma_S[a] (13)",
        note: "(12) is an equality.",
        run: "w = (3/5, 4/5), t = (1,2), X^(1) = (t, (−2,1)), X^(2) = (t, (2,−1)): each number of the chain",
        code: ("crates/monolayer-lab/src/claims/attention.rs", "chain"),
        mutation: "the second average at another query",
        find: chain,
    },
    Claim {
        id: "theorem-2-head-size",
        number: "Theorem 2, (29) to (32), footnote 2",
        statement: "any head size serves: weights of rank 1 give the same map for every s",
        printed: r"W^{(O)} \in R^{d \times s}, W^{(V)}, W^{(K)}, W^{(Q)} \in R^{s \times d}, the ranks of W^{(V)}, W^{(K)}, W^{(Q)} all 1, any s; \delta = 2 \log n + 3, any u, u' \in R^s with |u^T u'| = (|V| + 1)^4 \frac{\pi d}{8} \frac{\delta}{\epsilon r_{\min}} (29); there is a unit vector v \in R^d such that |(W^{(K)} v_a)^T (W^{(Q)} v_c) - (W^{(K)} v_b)^T (W^{(Q)} v_c)| > \delta (30), \frac{1}{(|V| + 1)^2} \sqrt{\frac{8}{\pi d}} ||v_c|| \le |v^T v_c| \le ||v_c|| (31) for any v_a, v_b, v_c \in V with v_a \ne v_b, W^{(K)} = u v^T, W^{(Q)} = u' v^T; W^{(V)} = u'' v^T, u'' \in R^s nonzero, ||W^{(O)} u''|| = \frac{\epsilon}{4 r_{\max}} (32); footnote 2: W^{(V)} = u' v^T, W^{(K)} = u' v^T, W^{(Q)} = u v'^T for arbitrary u, u', u'' \in R^s satisfying certain constraints, v, v' \in R^d unit vectors",
        note: "Footnote 2 exchanges the letters u, u' of the proof and takes u'' = u'; its u'' is not used. That may be the transcription's.",
        run: "heads of size 1 to 6 with exact ranks, as in the proof and as in footnote 2, their outputs against those of size 1",
        code: ("crates/monolayer/src/context_map/map.rs", "attention"),
        mutation: "one entry of W^(K) is doubled",
        find: head_size,
    },
    Claim {
        id: "equation-20",
        number: "(20)",
        statement: "rank-1 attention is (2) with one head of size 1 whose keys and values share their vector",
        printed: r"F_S^{(R1)}(Z) = Z + W^{(O)} (v_1^T Z) \sigma_S[(v_1^T Z)^T (v_2^T Z)] \in R^{d \times n} (20), v_1, v_2 \in R^d, W^{(O)} \in R^{d \times 1}",
        note: "The sentence after (20) says that value and query share v₁; in (20) value and key do.",
        run: "(2) with s = 1 against (20), token by token t + W^(O) g(v₂ᵀt), on random sequences, in balls",
        code: ("crates/monolayer/src/paper/attention.rs", "rank_one"),
        mutation: "the skip is dropped",
        find: equation_20,
    },
];

fn ball(x: f64) -> Ball {
    Ball::new(x, 1000)
}

fn chain(context: &Context) -> Result<Finding> {
    let dot = |x: [f64; 2]| 0.6 * x[0] + 0.8 * x[1];
    let (t, x, y) = ([1.0, 2.0], [-2.0, 1.0], [2.0, -1.0]);
    let share = |a: [f64; 2], b: [f64; 2]| (dot(a) - dot(b)).abs() / (a[0] - b[0]).hypot(a[1] - b[1]);
    let shares = [share(t, x), share(t, y), share(x, y)];
    let (c, most) = shares.iter().fold((f64::MAX, f64::MIN), |(lo, hi), &x| (lo.min(x), hi.max(x)));
    let query = dot(t);
    let average = |other: [f64; 2], query: f64| g(&[dot(t), dot(other)], &query);
    let averages = [average(x, query)?, average(y, context.mutate(query, dot(y)))?];
    let boltz =
        |other: [f64; 2]| Ok::<_, monolayer::Error>(Boltzmann::at(&[dot(t) * query, dot(other) * query])?.value());
    let values = [boltz(x)?, boltz(y)?];
    let gap = (averages[0] - averages[1]).abs();
    let (left, right) = (query.abs() * gap, (values[0] - values[1]).abs());
    Ok(Finding::printed(c > 0.0 && c < 1.0 && most <= 1.0 && gap > 0.0 && (left - right).abs() < 1e-14)
        .number("(11): smallest c", c)
        .number("(11): largest share", most)
        .number("(9) at t in X^(1)", averages[0])
        .number("(9) at t in X^(2)", averages[1])
        .number("(10)", gap)
        .number("boltz of a^(1)", values[0])
        .number("boltz of a^(2)", values[1])
        .number("(12), left", left)
        .number("(12), right", right))
}

/// A head as footnote 2 prints it: `W_V = W_K = u' v^T`, `W_Q = u v'^T`, and `W_O u' = w`.
fn footnote_2(map: &ContextMap, s: usize) -> Attention<f64> {
    // u' = (1, 0, ..., 0), u = (1, 2, 2, ...): their product is 1, and v' carries the scale.
    let row = |scale: fn(usize) -> f64, v: &[f64]| Matrix::from_fn(s, v.len(), |i, j| scale(i) * v[j]);
    let first = |i: usize| if i == 0 { 1.0 } else { 0.0 };
    let head = AttentionHead {
        w_q: row(|i| if i == 0 { 1.0 } else { 2.0 }, &map.v_q),
        w_k: row(first, &map.v),
        w_v: row(first, &map.v),
        w_o: Matrix::from_fn(map.w.len(), s, |j, i| first(i) * map.w[j]),
    };
    Attention { kind: AttentionKind::Softmax, mask: Mask::None, heads: vec![head] }
}

fn head_size(context: &Context) -> Result<Finding> {
    let d = 4;
    let rng = &mut rng(3);
    let map = ContextMap::new(&Projection { v: vectors(rng, 1, d), kappa: 2.0 }, vectors(rng, 1, d));
    let z = Matrix::new(5, d, vectors(rng, 5, d));
    let plain = map.attention(Mask::None, 1).apply(&z)?;
    let (mut heads, mut largest_rank, mut largest) = (0, 0, 0.0_f64);
    for mut attention in (1..=6).flat_map(|s| [map.attention(Mask::None, s), footnote_2(&map, s)]) {
        if context.mutated {
            attention.heads[0].w_k.data[0] *= 2.0;
        }
        let head = &attention.heads[0];
        let ranks = [&head.w_q, &head.w_k, &head.w_v, &head.w_o].map(|m| rank(m.cols, &m.data));
        largest_rank = ranks.into_iter().fold(largest_rank, usize::max);
        let out = attention.apply(&z)?;
        largest = out.data.iter().zip(&plain.data).fold(largest, |m, (a, b)| m.max((a - b).abs()));
        heads += 1;
    }
    Ok(Finding::printed(largest_rank == 1 && largest < 1e-14)
        .count("heads", heads)
        .count("largest rank", largest_rank)
        .number("largest difference of outputs", largest))
}

fn equation_20(context: &Context) -> Result<Finding> {
    let (d, n) = (3, 7);
    let mut largest = 0.0_f64;
    let sequences = context.effort(100, 1000);
    for seed in 0..sequences as u64 {
        let rng = &mut rng(seed);
        let draw = |count: usize, rng: &mut _| vectors(rng, count, d).into_iter().map(ball).collect::<Vec<Ball>>();
        let (v1, v2, w, z) = (draw(1, rng), draw(1, rng), draw(1, rng), Matrix::new(n, d, draw(n, rng)));
        let out = Attention::rank_one(Mask::None, &v1, &v2, &w).apply(&z)?;
        let dot = |a: &[Ball], b: &[Ball]| a.iter().zip(b).fold(Ball::zero(), |sum, (a, b)| sum + a.clone() * b);
        let p: Vec<Ball> = z.iter_rows().map(|x| dot(x, &v1)).collect();
        for (t, row) in z.iter_rows().zip(out.iter_rows()) {
            let id = g(&p, &dot(t, &v2))?;
            for ((t, w), out) in t.iter().zip(&w).zip(row) {
                let skip = context.mutate(t.clone(), Ball::zero());
                largest = largest.max((skip + w.clone() * &id - out).to_interval().magnitude());
            }
        }
    }
    Ok(Finding::printed(largest < 1e-200).count("sequences", sequences).number("largest difference", largest))
}
