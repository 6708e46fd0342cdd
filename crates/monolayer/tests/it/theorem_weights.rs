//! Theorem 2 at its own scale: both ways of proof, against each other, against the formula, and against all pairs.

use monolayer::arithmetic::{Ball, Interval, Number};
use monolayer::context_map::theorem_weights::gap_in_balls::evaluate;
use monolayer::context_map::theorem_weights::scores::TokenScores;
use monolayer::context_map::theorem_weights::weights::Scale;
use monolayer::context_map::theorem_weights::{Certified, Request, Way, certify, toys};
use monolayer::context_map::{Groups, View};
use monolayer::data::Format;
use monolayer::data::embedding::Embedding;
use monolayer::data::positions::Positions;
use monolayer::data::token_vectors::TokenVectors;
use monolayer::paper::attention::Mask;
use monolayer::paper::boltzmann::g;
use monolayer::{Dataset, Result};
use proptest::prelude::*;

fn request(scale: Scale, way: Way) -> Request {
    Request { scale, way, max_bits: 1 << 21, seed: 0, candidates: 20 }
}

fn vectors(data: &Dataset, positions: &str) -> TokenVectors {
    TokenVectors::new(data, &Embedding::Sign(64), &positions.parse::<Positions>().unwrap(), 0, 0).unwrap()
}

fn certified(data: &Dataset, scale: Scale, way: Way) -> Result<Certified> {
    let vectors = vectors(data, "none");
    certify(&View::new(data, &vectors, Mask::None), &request(scale, way))
}

/// (8), term by term.
fn formula_8(size: f64, n: f64, d: f64, r_min: f64, r_max: f64, epsilon: f64) -> f64 {
    let a = (size + 1.0).powi(4) * (2.0 * n.ln() + 3.0) * std::f64::consts::PI * d;
    let prefactor = 2.0 * n.ln().powi(2) * epsilon.powi(2) * r_min / (r_max.powi(2) * a);
    prefactor.log2() - a * r_max.powi(2) / (4.0 * epsilon * r_min) * std::f64::consts::LOG2_E
}

/// Both ways, the formula, and the order of all three numbers.
fn both_ways(data: &Dataset, size: f64, n: f64) {
    for scale in [Scale::Paper, Scale::Certified] {
        let found = certified(data, scale, Way::Auto).unwrap();
        let constants = found.weights.separation.constants;
        let formula = formula_8(size, n, 2.0, constants.r_min, constants.r_max, constants.epsilon);
        assert!((found.theorem.log2_delta - formula).abs() < 1e-9 * formula.abs());
        let identity = found.identity.as_ref().unwrap().closest.unwrap().0;
        let direct = certified(data, scale, Way::Direct).unwrap().direct.unwrap();
        assert!(direct.bits > (-identity.hi()) as usize);
        let direct = direct.closest.unwrap().0;
        assert!((direct.lo() - identity.lo()).abs() <= 1e-6 * direct.lo().abs(), "{direct:?} {identity:?}");
        assert!(identity.lo() <= direct.hi() && direct.lo() <= identity.hi());
        assert!(found.holds() && found.exceeds_theorem());
        let gap = found.log2_delta().unwrap();
        assert!(gap > formula && gap >= found.weights.log2_promise, "{gap} {formula}");
        assert!(found.r <= found.theorem.r * (1.0 + 1e-9));
    }
}

#[test]
fn four_vectors_all_pairs() {
    both_ways(&toys::four(), 4.0, 2.0);
}

#[test]
fn five_vectors_all_triples() {
    both_ways(&toys::five(), 5.0, 3.0);
}

#[test]
fn nine_vectors_by_the_identity() {
    let found = certified(&toys::nine(), Scale::Paper, Way::Auto).unwrap();
    assert!(found.direct.is_none() && found.exceeds_theorem());
    assert!(found.theorem.log2_delta < -4e5, "{}", found.theorem.log2_delta);
    let few = Request { max_bits: 1 << 12, ..request(Scale::Paper, Way::Direct) };
    let data = toys::nine();
    let vectors = vectors(&data, "none");
    let error = certify(&View::new(&data, &vectors, Mask::None), &few).unwrap_err().to_string();
    assert!(error.contains("bits, ") && error.contains("bytes for each number, and `max_bits` is 4096"), "{error}");
}

/// Three triples of the nine vectors, evaluated with hundreds of thousands of bits.
#[test]
#[ignore = "slow: tools/test --slow"]
fn nine_vectors_directly() {
    let data = toys::nine();
    let vectors = vectors(&data, "none");
    let view = View::new(&data, &vectors, Mask::None);
    let found = certify(&view, &request(Scale::Paper, Way::Identity)).unwrap();
    let (identity, (a, b)) = found.identity.as_ref().unwrap().closest.unwrap();
    // The two sequences with the closest ids, and the first other one.
    let sequences = [view.place(a).0, view.place(b).0];
    let third = (0..data.sequences()).find(|s| !sequences.contains(s)).unwrap();
    let chosen = [sequences[0], sequences[1], third];
    let mut groups = Groups::by_context(&view);
    groups.0.iter_mut().for_each(|group| group.retain(|m| chosen.contains(&view.place(m.token).0)));
    groups.0.retain(|group| group.len() > 1);
    let scores = TokenScores::new(&view, &found.weights.map).unwrap();
    let direct = evaluate(&scores, &groups, 1 << 21).unwrap();
    eprintln!("{direct:?}, by the identity {identity:?}");
    let direct = direct.closest.unwrap().0;
    assert!((direct.lo() - identity.lo()).abs() <= 1e-6 * direct.lo().abs());
}

/// Small sequences of small vectors.
fn sequences() -> impl Strategy<Value = Vec<Vec<[i32; 2]>>> {
    let token = [1..4_i32, -3..4_i32];
    prop::collection::vec(prop::collection::vec(token, 1..5), 1..6)
}

fn dataset(sequences: &[Vec<[i32; 2]>]) -> Dataset {
    let lines: Vec<String> = sequences.iter().map(|s| serde_json::json!({ "tokens": s }).to_string()).collect();
    Dataset::read("test", Format::JsonLines, lines.join("\n").as_bytes()).unwrap()
}

/// The smallest distance of `g` over all pairs of contexts of one token, evaluated at many bits.
fn all_pairs(view: &View, found: &Certified, bits: usize) -> Option<Interval> {
    let map = &found.weights.map;
    let project = |v: &[f64], t: usize| {
        let x = view.vectors.vector(view.token_ids[t], view.place(t).1);
        x.iter().zip(v).fold(Ball::new(0.0, bits), |sum, (&x, &v)| sum + Ball::new(x, bits) * Ball::new(v, bits))
    };
    let id = |t: usize| {
        let keys: Vec<Ball> = view.visible(t).map(|i| project(&map.v, i)).collect();
        g(&keys, &project(&map.v_q, t)).unwrap()
    };
    let mut smallest: Option<Interval> = None;
    for group in Groups::by_context(view).0 {
        let ids: Vec<Ball> = group.iter().map(|m| id(m.token)).collect();
        for (i, a) in ids.iter().enumerate() {
            for b in &ids[..i] {
                let log2 = (a.clone() - b).log2_abs();
                smallest = Some(smallest.map_or(log2, |x| x.min(log2)));
            }
        }
    }
    smallest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Sets and multisets of any lengths, masked or not: neighbors by the identity against all pairs by evaluation, and what
    /// Theorem 2+ promises.
    #[test]
    fn neighbors_against_all_pairs(sequences in sequences(), causal: bool, paper: bool) {
        let data = dataset(&sequences);
        let vectors = vectors(&data, "none");
        let view = View::new(&data, &vectors, if causal { Mask::Causal } else { Mask::None });
        prop_assume!(vectors.words.rows > 1 && vectors.words.rows < if paper { 4 } else { 9 });
        let scale = if paper { Scale::Paper } else { Scale::Certified };
        let found = certify(&view, &request(scale, Way::Identity)).unwrap();
        prop_assert!(found.holds());
        let identity = found.identity.as_ref().unwrap();
        let bits = identity.bits() as usize;
        prop_assume!(bits < 20_000);
        let plain = all_pairs(&view, &found, bits + 64);
        prop_assert_eq!(plain.is_some(), identity.closest.is_some());
        if let (Some(plain), Some((log2, _))) = (plain, identity.closest) {
            prop_assert!(plain.lo() <= log2.hi() && log2.lo() <= plain.hi(), "{plain:?} {log2:?}");
            prop_assert!(log2.width() <= 1e-9 * log2.lo().abs().max(1.0), "{log2:?}");
        }
        prop_assert!(found.log2_delta().unwrap() >= found.weights.log2_promise);
    }
}

/// Two contexts of one token, one score apart by exactly 2, come near the promise of Theorem 2+: `2 / (1 + e^-2)` against 0.88.
#[test]
fn the_constant_of_the_promise() {
    let lines = "{\"tokens\": [[1]]}\n{\"tokens\": [[1], [-1]]}";
    let data = Dataset::read("test", Format::JsonLines, lines.as_bytes()).unwrap();
    let found = certified(&data, Scale::Certified, Way::Auto).unwrap();
    let ratio = (found.same_token().unwrap().0.lo() - found.weights.log2_promise).exp2();
    let exact = 2.0 / (1.0 + (-2_f64).exp()) / 0.88;
    assert!((ratio - exact).abs() < 1e-3, "{ratio} {exact}");
}

/// Queries are exactly so many times keys as `u . u'` says, and that is not below (29).
#[test]
fn the_scale_is_exact() {
    for data in [toys::four(), toys::five(), toys::nine()] {
        let weights = certified(&data, Scale::Paper, Way::Identity).unwrap().weights;
        let s = weights.separation.constants;
        let (v, n) = (weights.separation.vocabulary as f64 + 1.0, weights.n as f64);
        let printed = v.powi(4) * std::f64::consts::PI * 2.0 * (2.0 * n.ln() + 3.0) / (8.0 * s.epsilon * s.r_min);
        assert!(weights.kappa > printed && weights.kappa < printed * (1.0 + 1.0 / 2048.0));
        let product = |x: &f64| Ball::new(*x, 200) * Ball::new(weights.kappa, 200);
        let pairs = weights.map.v.iter().zip(&weights.map.v_q);
        assert!(pairs.map(|(v, q)| (product(v), Ball::new(*q, 200))).all(|(a, b)| a.certainly_equal(&b)));
    }
}

#[test]
fn what_the_theorem_does_not_cover() {
    let says = |lines: &str, what: &str| {
        let data = Dataset::read("test", Format::JsonLines, lines.as_bytes()).unwrap();
        let error = certified(&data, Scale::Paper, Way::Auto).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    says("{\"tokens\": [[0], [1]]}", "asks for r_min > 0");
    says("{\"tokens\": [[1], [1]]}", "all tokens are equal");
    // One token: the formula says 0, the ids are epsilon / 2 apart.
    let data = Dataset::read("test", Format::JsonLines, &b"{\"tokens\": [[1]]}\n{\"tokens\": [[2]]}"[..]).unwrap();
    let found = certified(&data, Scale::Paper, Way::Auto).unwrap();
    assert_eq!(found.theorem.log2_delta, f64::NEG_INFINITY);
    assert!(found.log2_delta().unwrap() >= -1.0 - 1e-9 && found.exceeds_theorem());
}

/// Words at their places, and words alone: multisets of different lengths, some of them one and the same.
#[test]
#[ignore = "slow: tools/test --slow"]
fn conll() {
    let Ok(folder) = std::env::var("MONOLAYER_CONLL") else {
        eprintln!("SKIPPED: set MONOLAYER_CONLL to the directory of eng.train to run this test");
        return;
    };
    let data = Dataset::open(format!("{folder}/eng.train")).unwrap();
    let places = vectors(&data, "auto");
    let view = View::new(&data, &places, Mask::None);
    let found = certify(&view, &request(Scale::Paper, Way::Auto)).unwrap();
    assert!(found.holds() && found.exceeds_theorem() && found.direct.is_none());
    assert_eq!((found.weights.separation.vocabulary, found.weights.multisets), (75_971, false));
    assert_eq!(found.identity.as_ref().unwrap().pairs, 121_550);
    assert!(found.theorem.log2_delta < -6e22 && found.log2_delta().unwrap() > -6e22);

    let words = vectors(&data, "none");
    let view = View::new(&data, &words, Mask::None);
    for scale in [Scale::Paper, Scale::Certified] {
        let found = certify(&view, &request(scale, Way::Identity)).unwrap();
        assert!(found.holds() && found.exceeds_theorem() && found.weights.multisets);
        assert!(found.log2_delta().unwrap() >= found.weights.log2_promise);
    }
}
