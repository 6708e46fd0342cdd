//! Certificates of contextual maps against brute force: all pairs, in balls of many bits.

use monolayer::arithmetic::{Ball, Number};
use monolayer::context_map::coincidence::Reason;
use monolayer::context_map::float_weights::FloatWeights;
use monolayer::context_map::order::IdOrder;
use monolayer::context_map::proved_gaps::{ProvedGaps, output_length};
use monolayer::context_map::token_separation::token_separation;
use monolayer::context_map::{ContextMap, Groups, Projection, View};
use monolayer::data::Format;
use monolayer::data::embedding::Embedding;
use monolayer::data::token_vectors::TokenVectors;
use monolayer::paper::attention::{Attention, Mask};
use monolayer::{Dataset, Matrix};
use proptest::prelude::*;

const BITS: usize = 320;

fn ball(x: f64) -> Ball {
    Ball::new(x, BITS)
}

/// A dataset of vectors, as JSON lines.
fn vectors(sequences: &[Vec<Vec<f64>>]) -> Dataset {
    let lines: Vec<String> = sequences.iter().map(|s| serde_json::json!({ "tokens": s }).to_string()).collect();
    Dataset::read("test", Format::JsonLines, lines.join("\n").as_bytes()).unwrap()
}

/// The same map evaluated with the plain attention of eq. 2, in balls: the id of every token.
fn ids_in_balls(view: &View, map: &ContextMap, head_size: usize) -> Vec<Vec<Ball>> {
    let attention = map.attention(view.mask.clone(), head_size);
    let lift = |m: &Matrix<f64>| m.map(|&x| ball(x));
    let heads = attention.heads.iter().map(|h| monolayer::paper::attention::AttentionHead {
        w_q: lift(&h.w_q),
        w_k: lift(&h.w_k),
        w_v: lift(&h.w_v),
        w_o: lift(&h.w_o),
    });
    let attention = Attention { kind: attention.kind, mask: attention.mask.clone(), heads: heads.collect() };
    let mut ids = Vec::new();
    for window in view.offsets.windows(2) {
        let row = |t: usize| {
            let place = t - window[0];
            let word = view.vectors.words.row(view.token_ids[t] as usize);
            let place = view.vectors.positions.as_ref().map(|p| p.row(place).to_vec());
            let place = place.unwrap_or_else(|| vec![0.0; word.len()]);
            word.iter().zip(place).map(|(&x, p)| ball(x) + ball(p)).collect::<Vec<_>>()
        };
        let z = Matrix::new(window[1] - window[0], view.vectors.d(), (window[0]..window[1]).flat_map(row).collect());
        ids.extend(attention.apply(&z).unwrap().iter_rows().map(<[Ball]>::to_vec));
    }
    ids
}

/// The square of the distance of two ids.
fn square_distance(a: &[Ball], b: &[Ball]) -> Ball {
    a.iter().zip(b).map(|(a, b)| a.clone() - b).fold(ball(0.0), |sum, x| sum + x.clone() * x)
}

/// Checks a certificate against all pairs of tokens.
fn check(view: &View, map: &ContextMap, head_size: usize) {
    let separation = token_separation(view).unwrap();
    let certificate = ProvedGaps::new(view, map, &separation, None, 4096);
    assert!(certificate.undecided.is_empty(), "exactly equal or apart: always decided");
    let ids = ids_in_balls(view, map, head_size);
    let n = view.token_ids.len();
    let token = |t: usize| (view.token_ids[t], view.vectors.positions.as_ref().map(|_| view.place(t).1));
    let tiny = ball(2_f64.powi(-400));
    let (mut closest, mut all_apart) = (f64::INFINITY, true);
    for a in 0..n {
        let norm = ids[a].iter().fold(ball(0.0), |sum, x| sum + x.clone() * x);
        assert!(norm.certainly_less(&(ball(certificate.r) * ball(certificate.r))), "an id of length r");
        for b in 0..a {
            let square = square_distance(&ids[a], &ids[b]);
            let same_context = view.contexts.of_token[a] == view.contexts.of_token[b];
            // Ids that differ at all differ by far more here.
            let equal = !tiny.certainly_less(&square);
            assert!(!same_context || equal, "one context, two ids");
            if same_context {
                continue;
            }
            all_apart &= !equal;
            if equal {
                assert!(!certificate.holds(), "certified, but tokens {a} and {b} share an id");
            } else if token(a) == token(b) {
                closest = closest.min(square.log2_abs().center() / 2.0);
            }
            if let Some(log2) = certificate.log2_delta() {
                let log2_distance = square.log2_abs().hi() / 2.0;
                assert!(
                    log2 <= log2_distance + 1e-9,
                    "certified 2^{log2}, but {a} and {b} are 2^{log2_distance} apart"
                );
            }
        }
    }
    if certificate.other_token > 0.0 {
        assert_eq!(certificate.holds(), all_apart);
    }
    if certificate.coinciding.is_empty() && closest.is_finite() {
        // Not only a bound: a tight one.
        assert!((certificate.same_token.log2 - closest).abs() < 0.01, "{} {closest}", certificate.same_token.log2);
    }
}

fn map_of(view: &View, v: Vec<f64>, kappa: f64) -> ContextMap {
    let length = output_length(view, &v, &token_separation(view).unwrap());
    let mut w = vec![0.0; v.len()];
    w[v.len() - 1] = length;
    ContextMap::new(&Projection { v, kappa }, w)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Few different tokens, so that projections, means and whole multisets coincide often.
    #[test]
    fn vectors_against_all_pairs(
        sequences in prop::collection::vec(prop::collection::vec((-2_i8..3, -2_i8..3), 1..6), 1..6),
        v in prop::array::uniform2(-4_i8..5),
        kappa in prop::sample::select(vec![0.0, 0.25, -0.5, 0.3, 8.0]),
        causal: bool,
        places: bool,
        head_size in 1_usize..4,
    ) {
        let rows = |s: &Vec<(i8, i8)>| s.iter().map(|&(a, b)| vec![f64::from(a), f64::from(b) / 3.0]).collect();
        let data = vectors(&sequences.iter().map(rows).collect::<Vec<_>>());
        let positions = if places { "auto" } else { "none" }.parse().unwrap();
        let token_vectors = TokenVectors::new(&data, &Embedding::Sign(1), &positions, 0, 0).unwrap();
        let view = View::new(&data, &token_vectors, if causal { Mask::Causal } else { Mask::None });
        let map = map_of(&view, v.iter().map(|&x| f64::from(x) / 4.0).collect(), kappa);
        check(&view, &map, head_size);
    }

    #[test]
    fn words_with_places_against_all_pairs(
        sequences in prop::collection::vec(prop::collection::vec(0_u8..4, 1..6), 1..6),
        v in prop::array::uniform7(-8_i8..9),
        kappa in prop::sample::select(vec![0.0, 0.125, 0.7, -3.0]),
        causal: bool,
    ) {
        let lines = |s: &Vec<u8>| s.iter().map(|w| format!("w{w}")).collect::<Vec<_>>().join("\n");
        let text = sequences.iter().map(lines).collect::<Vec<_>>().join("\n\n");
        let data = Dataset::read("test", Format::Conll, text.as_bytes()).unwrap();
        let token_vectors = TokenVectors::new(&data, &Embedding::Sign(3), &"sign:4".parse().unwrap(), 0, 1).unwrap();
        let view = View::new(&data, &token_vectors, if causal { Mask::Causal } else { Mask::None });
        let map = map_of(&view, v.iter().map(|&x| f64::from(x) / 8.0).collect(), kappa);
        check(&view, &map, 1);
    }
}

/// Contexts whose ids differ by far less than a float's last digit are ordered by balls.
#[test]
fn gaps_that_no_float_holds() {
    let sequence = |last: f64| vec![vec![1.0], vec![0.5], vec![last]];
    let data = vectors(&[sequence(0.25), sequence(0.125), sequence(0.0625)]);
    let token_vectors = TokenVectors::new(&data, &Embedding::Sign(1), &"none".parse().unwrap(), 0, 0).unwrap();
    let view = View::new(&data, &token_vectors, Mask::None);
    // e^(-800 * 0.75): about 2^-866 apart, and 2^-1010 between the other two.
    let map = map_of(&view, vec![1.0], 800.0);
    let order = IdOrder::new(&view, &map, &Groups::by_context(&view), 1 << 14);
    assert!(order.bits >= 1024, "{} bits", order.bits);
    let gaps = order.gaps(|t| Some(view.contexts.of_token[t]));
    assert!(gaps.coinciding.is_empty() && gaps.undecided.is_empty());
    let (smallest, tokens) = gaps.smallest.unwrap();
    // Token 1 sees (1, 0.5, 0.125) or (1, 0.5, 0.0625): the terms (1 - x) e^(-800 (1 - x)) differ by the larger one.
    let expected = (0.875_f64 * (-700.0 / std::f64::consts::LN_2).exp2()).log2();
    assert!((smallest.log2().center() - expected).abs() < 0.1, "{smallest:?} {expected}");
    assert_eq!(tokens, (3, 6));
    // Too few bits: undecided, never certified.
    let short = IdOrder::new(&view, &map, &Groups::by_context(&view), 256).gaps(|t| Some(view.contexts.of_token[t]));
    assert!(!short.undecided.is_empty());
    let separation = token_separation(&view).unwrap();
    assert!(!ProvedGaps::new(&view, &map, &separation, None, 256).holds());
}

/// The same numbers in another order round differently, in floats and in balls. Neither is a gap.
#[test]
fn rounding_is_no_gap() {
    let none = "none".parse().unwrap();
    for i in 0..100 {
        let (a, b, c) = (1.0 - 0.001 * f64::from(i), 0.7 + 0.003 * f64::from(i), 1.0 / f64::from(i + 3));
        // v sees the first coordinate only.
        let data = vectors(&[
            vec![vec![1.0, 0.0], vec![a, 0.0], vec![b, 0.0], vec![c, 0.0]],
            vec![vec![1.0, 0.0], vec![c, 1.0], vec![a, 1.0], vec![b, 1.0]],
        ]);
        let token_vectors = TokenVectors::new(&data, &Embedding::Sign(1), &none, 0, 0).unwrap();
        let view = View::new(&data, &token_vectors, Mask::None);
        let map = ContextMap { v: vec![0.3, 0.0], v_q: vec![0.7, 0.0], w: vec![0.0, 0.1] };
        let order = IdOrder::new(&view, &map, &Groups::by_context(&view), 4096);
        assert_eq!(order.gaps(|t| Some(view.contexts.of_token[t])).coinciding, [(0, 4)]);

        // What differs weighs about e^-180.
        let (a, b) = (-0.001 * f64::from(i + 1), 0.0003 * f64::from(i) - 0.05);
        let data = vectors(&[
            vec![vec![0.001], vec![a], vec![b], vec![-0.03], vec![-0.9]],
            vec![vec![0.001], vec![b], vec![-0.03], vec![a], vec![-0.95]],
        ]);
        let token_vectors = TokenVectors::new(&data, &Embedding::Sign(1), &none, 0, 0).unwrap();
        let view = View::new(&data, &token_vectors, Mask::None);
        let map = ContextMap { v: vec![1.0], v_q: vec![200_000.0], w: vec![0.001] };
        let order = IdOrder::new(&view, &map, &Groups::by_context(&view), 4096);
        let (smallest, _) = order.gaps(|t| Some(view.contexts.of_token[t])).smallest.unwrap();
        assert!(smallest.log2().hi() < -200.0, "{a} {b}: {smallest:?}");
    }
}

fn scale(candidates: usize) -> FloatWeights {
    FloatWeights { labels_only: false, kappa: None, w_o: None, seed: 3, candidates }
}

fn built(data: &Dataset, positions: &str, scale: &FloatWeights) -> monolayer::context_map::float_weights::CertifiedMap {
    let vectors = TokenVectors::new(data, &Embedding::Sign(16), &positions.parse().unwrap(), 0, 0).unwrap();
    let view = View::new(data, &vectors, Mask::None);
    scale.build(&view, None).unwrap()
}

#[test]
fn a_zero_token_sees_the_mean_only() {
    let (zero, x) = (vec![0.0], |x: f64| vec![x]);
    // {0, 1, 4} and {0, 2, 3}: the same mean, so the zero token's ids agree whatever the weights.
    let data = vectors(&[vec![zero.clone(), x(1.0), x(4.0)], vec![zero.clone(), x(2.0), x(3.0)]]);
    let tight = built(&data, "none", &scale(20));
    assert_eq!(tight.separation.constants.r_min, 0.0);
    let reasons: Vec<Reason> = tight.certificate.coinciding.iter().map(|c| c.2).collect();
    assert_eq!(reasons, [Reason::ZeroToken]);
    // Different means: a zero token does no harm.
    let data = vectors(&[vec![zero.clone(), x(1.0), x(4.0)], vec![zero, x(2.0), x(4.0)]]);
    assert!(built(&data, "none", &scale(20)).certificate.holds());
}

#[test]
fn small_cases() {
    let x = |x: f64| vec![x, 1.0];
    // All tokens equal: one context, one id.
    let same = built(&vectors(&[vec![x(1.0), x(1.0)], vec![x(1.0)]]), "none", &scale(4)).certificate;
    assert_eq!(same.log2_delta(), Some(f64::INFINITY));
    // n = 1: every context is its token's only one.
    let single = built(&vectors(&[vec![x(1.0)], vec![x(2.0)]]), "none", &scale(4));
    let epsilon = single.separation.constants.epsilon;
    assert!(single.certificate.log2_delta().unwrap() >= (epsilon / 2.0).log2() - 1e-9);
    // One sequence.
    assert!(built(&vectors(&[vec![x(1.0), x(2.0), x(3.0)]]), "none", &scale(4)).certificate.holds());
    // Only the zero vector.
    assert!(built(&vectors(&[vec![vec![0.0]]]), "none", &scale(4)).certificate.holds());
}

#[test]
fn without_kappa_or_output_it_is_no_contextual_map() {
    // With places: the same words in another order have the same mean, and one word in two contexts needs W_O.
    let data = Dataset::read("test", Format::Conll, "a\nb\nc\n\na\nc\nb\n".as_bytes()).unwrap();
    assert!(built(&data, "sign:8", &scale(20)).certificate.holds());
    let no_kappa = built(&data, "sign:8", &FloatWeights { kappa: Some(0.0), ..scale(20) }).certificate;
    assert!(!no_kappa.holds());
    assert_eq!(no_kappa.coinciding.iter().map(|c| c.2).collect::<Vec<_>>(), [Reason::EqualMeans]);
    let no_output = built(&data, "sign:8", &FloatWeights { w_o: Some(0.0), ..scale(20) }).certificate;
    assert_eq!(no_output.coinciding.iter().map(|c| c.2).collect::<Vec<_>>(), [Reason::NoOutput]);
}

#[test]
fn the_size_of_the_output_weight() {
    // W_O far too large for eq. 32: other tokens are told apart by the coordinates that it leaves alone.
    let data = Dataset::read("test", Format::Conll, "a\nb\n\na\nc\n\nb\nc\n".as_bytes()).unwrap();
    let large = built(&data, "none", &FloatWeights { w_o: Some(1e6), ..scale(20) }).certificate;
    assert!(large.holds() && large.other_token >= 2.0);
    // In one dimension there is nothing else: not proved.
    let data = vectors(&[vec![vec![1.0], vec![2.0]], vec![vec![1.0], vec![3.0]]]);
    assert!(!built(&data, "none", &FloatWeights { w_o: Some(1e6), ..scale(20) }).certificate.holds());
}

#[test]
fn the_same_seed_gives_the_same_weights() {
    let data = Dataset::read("test", Format::Conll, "a\nb\nc\n\na\nc\nb\n\nb\na\n".as_bytes()).unwrap();
    let weights = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| built(&data, "sign:8", &scale(50)).map)
    };
    assert_eq!(weights(1), weights(3));
}

/// The corpus, where it is at hand.
#[test]
#[ignore = "slow: tools/test --slow"]
fn conll() {
    let Some(dir) = std::env::var_os("MONOLAYER_CONLL") else {
        eprintln!("SKIPPED: set MONOLAYER_CONLL to the directory of the CoNLL-2003 corpus");
        return;
    };
    let path = std::path::Path::new(&dir).join("eng.train");
    let data = Dataset::open_as(path.to_str().unwrap(), None).unwrap();
    let vectors = TokenVectors::new(&data, &Embedding::Sign(64), &"sign:32".parse().unwrap(), 0, 0).unwrap();
    let view = View::new(&data, &vectors, Mask::None);
    let label = view.contexts.agree(&data.label_ids().unwrap()).label;
    let scale = FloatWeights { labels_only: true, ..scale(400) };
    let tight = scale.build(&view, Some(&label)).unwrap();
    let certificate = &tight.certificate;
    assert!(certificate.holds(), "Definition 2 in full");
    let labelled = certificate.labelled.unwrap().g / tight.deviation;
    assert!(labelled >= 5e-5, "{labelled}");
    assert_eq!(tight.separation.vocabulary, 75_971);
    for (kappa, w_o) in [(Some(0.0), None), (None, Some(0.0))] {
        let broken = FloatWeights { kappa, w_o, ..scale.clone() };
        let broken = FloatWeights { candidates: 1, ..broken }.build(&view, Some(&label)).unwrap();
        assert!(!broken.certificate.holds());
    }
}
