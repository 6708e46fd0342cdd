//! Lemmas 2 and 3, and footnote 3.

use std::f64::consts::PI;

use monolayer::Result;
use monolayer::arithmetic::{Ball, Interval, Number as _};
use monolayer::data::separation::separation;
use monolayer::paper::boltzmann::g;
use monolayer::paper::projection;
use monolayer::paper::theorem_two::Guarantee;

use super::support::{pairs_below, rng, vectors};
use super::theorem_two::{VOCABULARY, kappa, projections, unit};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "lemma-2",
        number: "Lemma 2, (72)",
        statement: "some unit vector keeps finitely many points √(8/(πd))/|X|² of their distances apart",
        printed: r"d \in N, X \subset R^d finite \Rightarrow there is a unit vector v \in R^d such that \frac{1}{|X|^2} \sqrt{\frac{8}{\pi d}} ||x - x'|| \le |v^T (x - x')| \le ||x - x'|| (72) for any x, x' \in X",
        note: "v is a little shorter than 1 here, since floats cannot be a unit vector: the lower bound is the harder for it.",
        run: "directions drawn and verified for random points, all pairs again in intervals",
        code: ("crates/monolayer/src/paper/projection.rs", "lemma_2"),
        mutation: "|X| in the place of |X|²",
        find: lemma_2,
    },
    Claim {
        id: "lemma-3",
        number: "Lemma 3, (73) to (79), (29) to (31)",
        statement: "|uᵀu'| of (73) puts the scores of different keys more than δ apart for every query",
        printed: r"V \subset R^d finite, (r_{\min}, r_{\max}, \epsilon)-separated, r_{\min} > 0, any \delta > 0 \Rightarrow there is a unit vector v \in R^d such that for any u, u' \in R^s with |u^T u'| = (|V| + 1)^4 \frac{\pi d}{8} \frac{\delta}{\epsilon r_{\min}} (73): |(W^{(K)} v_a)^T (W^{(Q)} v_c) - (W^{(K)} v_b)^T (W^{(Q)} v_c)| > \delta (74), \frac{1}{(|V| + 1)^2} \sqrt{\frac{8}{\pi d}} ||v_c|| \le |v^T v_c| \le ||v_c|| (75) for any v_a, v_b, v_c \in V with v_a \ne v_b, W^{(K)} = u v^T, W^{(Q)} = u' v^T; proof: \frac{1}{(|V| + 1)^2} \sqrt{\frac{8}{\pi d}} ||v_a - v_b|| \le |v^T (v_a - v_b)| \le ||v_a - v_b|| (76) for any v_a, v_b \in V \cup \{0\} such that v_a \ne v_b, (77) is (75), (78) is (73), |(W^{(K)} v_a)^T (W^{(Q)} v_c) - (W^{(K)} v_b)^T (W^{(Q)} v_c)| = |(v_a - v_b)^T (W^{(K)})^T (W^{(Q)} v_c)| = |(v_a - v_b)^T v| \cdot |u^T u'| \cdot |v^T v_c| \ge \frac{1}{(|V| + 1)^2} \sqrt{\frac{8}{\pi d}} ||v_a - v_b|| \cdot (|V| + 1)^4 \frac{\pi d}{8} \frac{\delta}{\epsilon r_{\min}} \cdot \frac{1}{(|V| + 1)^2} \sqrt{\frac{8}{\pi d}} ||v_c|| > \delta (79)",
        note: "|uᵀu'| is rounded up by a few units in the last place of a float.",
        run: "random vocabularies: all scores bounded from below, and (75) for every token in intervals",
        code: ("crates/monolayer/src/paper/projection.rs", "lemma_3"),
        mutation: "|V| + 1 in (73) without its power of 4",
        find: lemma_3,
    },
    Claim {
        id: "footnote-3",
        number: "footnote 3, (72)",
        statement: "keys and queries may use different unit vectors v, v' that satisfy (72) for V ∪ {0}, the set of Lemma 3's proof",
        printed: r"in Lemma 3 different unit vectors v, v' \in R^d may be used, W^{(K)} = u v^T, W^{(Q)} = u' v'^T, as long as v and v' satisfy \frac{1}{|X|^2} \sqrt{\frac{8}{\pi d}} ||x - x'|| \le |v^T (x - x')| \le ||x - x'|| (72) for any x, x' \in X",
        note: "The values take the keys' vector v. (72) is for a set X, which the footnote does not name; the proof of Lemma 3 takes V ∪ {0}. V alone would not do: v' may be orthogonal to a token.",
        run: "four vectors, |uᵀu'| of (29): v, v' at angles 0.1 and 1.7, scores and ids (in balls) against 2 log 2 + 3 and (8); v' orthogonal to a token, which satisfies (72) for V",
        code: ("crates/monolayer-lab/src/claims/projection.rs", "footnote_3"),
        mutation: "v' is orthogonal to a token, so that (72) holds for V only",
        find: footnote_3,
    },
];

fn lemma_2(context: &Context) -> Result<Finding> {
    let (size, runs) = (60, context.effort(100, 1000));
    let (mut tries, mut smallest) = (0, f64::INFINITY);
    for seed in 0..runs as u64 {
        let d = 1 + seed as usize % 6;
        let points = vectors(&mut rng(seed), size, d);
        let found = projection::lemma_2(d, &points, seed)?;
        tries += found.tries;
        let rows: Vec<&[f64]> = points.chunks_exact(d).collect();
        let n = Interval::point(size as f64);
        let share = (Interval::point(8.0) / (Interval::pi() * Interval::point(d as f64))).sqrt();
        let share = share / context.mutate(n.square(), n);
        for (i, j) in pairs_below(size) {
            let apart: Vec<Interval> =
                rows[i].iter().zip(rows[j]).map(|(&x, &y)| Interval::point(x) - Interval::point(y)).collect();
            let sum = |terms: &mut dyn Iterator<Item = Interval>| terms.fold(Interval::point(0.0), |sum, x| sum + x);
            let distance = sum(&mut apart.iter().map(|x| x.square())).sqrt();
            let along = sum(&mut apart.iter().zip(&found.v).map(|(&x, &v)| x * Interval::point(v)));
            smallest = smallest.min(along.mignitude() / (share * distance).hi());
        }
    }
    Ok(Finding::printed(smallest >= 1.0)
        .count("sets of 60 points", runs)
        .number("directions tried for each", tries as f64 / runs as f64)
        .number("smallest share over the bound", smallest))
}

fn lemma_3(context: &Context) -> Result<Finding> {
    let (size, d, runs) = (12, 3, context.effort(100, 1000));
    let delta = 2.0 * 10_f64.ln() + 3.0;
    let wrong = f64::from(size as u32 + 1).powi(-3);
    let bound = (8.0 / (PI * d as f64)).sqrt() / f64::from(size as u32 + 1).powi(2);
    let (mut smallest, mut share, mut largest) = (f64::INFINITY, f64::INFINITY, 0.0_f64);
    for seed in 0..runs as u64 {
        let tokens = vectors(&mut rng(seed), size, d);
        let found = projection::lemma_3(d, &tokens, delta, seed)?;
        smallest = smallest.min(found.apart * context.mutate(1.0, wrong) / delta);
        for token in tokens.chunks_exact(d) {
            let sum = |terms: &mut dyn Iterator<Item = Interval>| terms.fold(Interval::zero(), |sum, x| sum + x);
            let norm = sum(&mut token.iter().map(|&x| Interval::point(x).square())).sqrt();
            let along = token.iter().zip(&found.direction.v).map(|(&x, &v)| Interval::point(x) * Interval::point(v));
            let along = sum(&mut along.into_iter());
            share = share.min(along.mignitude() / norm.hi() / bound);
            largest = largest.max(along.magnitude() / norm.lo());
        }
    }
    Ok(Finding::printed(smallest > 1.0 && share >= 1.0 && largest <= 1.0)
        .count("vocabularies", runs)
        .number("smallest distance of scores over δ", smallest)
        .number("(75): smallest |vᵀv_c| over its bound", share)
        .number("(75): largest |vᵀv_c|/‖v_c‖", largest))
}

/// The smallest distance of scores `kappa (v . a - v . b) (v' . c)`, a != b.
fn least_gap(kappa: f64, keys: [f64; 4], queries: [f64; 4]) -> f64 {
    let gaps = pairs_below(4).flat_map(|(i, j)| queries.map(|q| (kappa * (keys[i] - keys[j]) * q).abs()));
    gaps.fold(f64::INFINITY, f64::min)
}

/// The smallest share of a distance that a projection keeps, the origin included or not.
fn least_share(projected: [f64; 4], with_origin: bool) -> f64 {
    let length = |x: [f64; 2]| x[0].hypot(x[1]);
    let between = pairs_below(4).map(|(i, j)| {
        let apart = [VOCABULARY[i][0] - VOCABULARY[j][0], VOCABULARY[i][1] - VOCABULARY[j][1]];
        (projected[i] - projected[j]).abs() / length(apart)
    });
    let origin = (0..4).filter(|_| with_origin).map(|i| projected[i].abs() / length(VOCABULARY[i]));
    between.chain(origin).fold(f64::INFINITY, f64::min)
}

fn footnote_3(context: &Context) -> Result<Finding> {
    let constants = separation(2, &VOCABULARY.concat());
    let (kappa, delta) = (kappa(&constants), 2.0 * 2_f64.ln() + 3.0);
    let log2_8 = Guarantee::new(4, 2, 2, &constants).map_or(f64::NAN, |found| found.log2_delta);
    let length = 1.3_f64.hypot(0.5);
    let orthogonal = projections([0.5 / length, 1.3 / length]);
    let keys = projections(unit(0.1));
    let queries = context.mutate(projections(unit(1.7)), orthogonal);
    let bound = |points: f64| (8.0 / (2.0 * PI)).sqrt() / points / points;
    let scores = least_gap(kappa, keys, queries);
    let both = [keys, queries].iter().all(|p| least_share(*p, true) >= bound(5.0));
    // Ids of token c with a against c with b: w (g - g).
    let ball = |x: f64| Ball::new(x, 1 << 13);
    let log2_w = (constants.epsilon / (4.0 * constants.r_max)).log2();
    let mut closest = f64::INFINITY;
    for c in 0..4 {
        let others: Vec<usize> = (0..4).filter(|&a| a != c).collect();
        let query = ball(kappa) * ball(queries[c]);
        let values =
            others.iter().map(|&a| g(&[ball(keys[c]), ball(keys[a])], &query)).collect::<Result<Vec<Ball>>>()?;
        for (i, j) in pairs_below(3) {
            closest = closest.min((values[i].clone() - &values[j]).log2_abs().lo() + log2_w);
        }
    }
    Ok(Finding::printed(both && scores > delta && closest > log2_8)
        .number("least distance of scores, v' orthogonal to a token", least_gap(kappa, keys, orthogonal))
        .number("share kept by that v' on V", least_share(orthogonal, false))
        .number("share that (72) asks for on V", bound(4.0))
        .number("least distance of scores, angles 0.1 and 1.7", scores)
        .number("2 log 2 + 3", delta)
        .number("log2 of the smallest gap of ids", closest)
        .number("log2 of δ of (8)", log2_8))
}
