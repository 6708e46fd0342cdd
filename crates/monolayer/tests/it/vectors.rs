//! Corollary 1 for given vectors: plateaus and curves, in real arithmetic, in floats, and at the edges.

use monolayer::data::Format;
use monolayer::data::positions::Positions;
use monolayer::memorize::vectors::proof::OutputProof;
use monolayer::model::Predictions;
use monolayer::paper::attention::Mask;
use monolayer::{Compiled, Dataset, Memorizer, Method};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde_json::{Value, json};

type Sequence = (Vec<Vec<f64>>, Vec<Value>);

fn dataset(sequences: &[Sequence]) -> Dataset {
    let lines: Vec<String> =
        sequences.iter().map(|(tokens, labels)| json!({"tokens": tokens, "labels": labels}).to_string()).collect();
    Dataset::read("test", Format::JsonLines, lines.join("\n").as_bytes()).unwrap()
}

fn memorizer(method: Method) -> Memorizer<'static> {
    Memorizer::new().method(method).candidates(24)
}

/// Tokens that come out right in floating point, outputs within 1e-6.
fn right(data: &Dataset, compiled: &Compiled) -> usize {
    compiled.model().right(data).unwrap().unwrap()
}

fn proof(compiled: &Compiled) -> &OutputProof {
    &compiled.hinges().unwrap().proof
}

/// Memorizes with both methods; all tokens but the impossible ones are right, and proved so.
fn check(data: &Dataset, impossible: &[usize]) {
    for method in [Method::Plateau, Method::Interpolate] {
        let compiled = memorizer(method).compile(data).unwrap();
        assert_eq!(compiled.impossible(), impossible);
        assert_eq!(right(data, &compiled), data.tokens() - impossible.len(), "{method:?}");
        assert!(compiled.is_proved());
        let proof = proof(&compiled);
        assert!(proof.real_error <= 1e-6, "{method:?} {}", proof.real_error);
        assert!(proof.smallest_ratio() > 1.0, "{method:?} {}", proof.smallest_ratio());
    }
}

#[test]
fn one_sequence_of_one_token() {
    check(&dataset(&[(vec![vec![2.5]], vec![json!("a")])]), &[]);
    check(&dataset(&[(vec![vec![2.5, -1.0]], vec![json!([7.0, 0.125])])]), &[]);
}

#[test]
fn duplicates_within_a_sequence() {
    let x = |t: f64| vec![t, 1.0 - t];
    check(
        &dataset(&[
            (vec![x(1.0), x(1.0), x(2.0)], vec![json!(0), json!(0), json!(1)]),
            (vec![x(1.0), x(2.0), x(2.0)], vec![json!(2), json!(3), json!(3)]),
        ]),
        &[],
    );
}

#[test]
fn identical_sequences_with_different_labels_get_the_majority() {
    let sequence = |label: i32| (vec![vec![1.0], vec![2.0]], vec![json!(label), json!(5)]);
    check(&dataset(&[sequence(1), sequence(2), sequence(2)]), &[0]);
}

#[test]
fn all_tokens_equal_and_constant_labels() {
    check(
        &dataset(&[(vec![vec![1.0, 1.0]; 3], vec![json!("x"); 3]), (vec![vec![1.0, 1.0]; 2], vec![json!("x"); 2])]),
        &[],
    );
    let tokens = (0..9).map(|i| vec![f64::from(i)]).collect();
    check(&dataset(&[(tokens, vec![json!([3.0]); 9])]), &[]);
}

#[test]
fn equal_tokens_with_different_labels_need_positions() {
    let data = dataset(&[(vec![vec![1.0]; 3], vec![json!(0), json!(1), json!(0)])]);
    check(&data, &[]);
    let compiled = memorizer(Method::Plateau).positions(Positions::None).compile(&data).unwrap();
    assert_eq!(compiled.model().config().max_length, None);
    assert_eq!(compiled.impossible(), [1]);
}

#[test]
fn a_zero_token_sees_the_mean_only() {
    // {0, 1, 4} and {0, 2, 3} have one mean: no weights tell the zero tokens apart without positions.
    let sequence = |a: f64, b: f64, label: i32| (vec![vec![0.0], vec![a], vec![b]], vec![json!(label); 3]);
    let data = dataset(&[sequence(1.0, 4.0, 0), sequence(2.0, 3.0, 1)]);
    let none = memorizer(Method::Plateau).positions(Positions::None);
    let error = none.compile(&data).unwrap_err().to_string();
    assert!(error.contains("sequence 1, token 1") && error.contains("sequence 2, token 1"), "{error}");
    check(&data, &[]);
    // With the same label, or another mean, nothing needs to be told apart, or something does it.
    check(&dataset(&[sequence(1.0, 4.0, 0), sequence(2.0, 3.5, 1)]), &[]);
}

#[test]
fn many_labels_in_one_dimension() {
    let tokens: Vec<Vec<f64>> = (0..300).map(|i| vec![f64::from(i * 7919 % 1009) / 100.0]).collect();
    let labels = (0..300).map(|i| json!(format!("label {i}"))).collect();
    check(&dataset(&[(tokens, labels)]), &[]);
}

#[test]
fn sequences_of_different_lengths_share_a_context() {
    let twice = vec![vec![1.0, 0.5], vec![2.0, 0.25], vec![1.0, 0.5], vec![2.0, 0.25]];
    let labels = vec![json!(0), json!(1), json!(0), json!(1)];
    let data = dataset(&[(twice[..2].to_vec(), labels[..2].to_vec()), (twice, labels)]);
    check(&data, &[]);
    assert_eq!(memorizer(Method::Plateau).compile(&data).unwrap().context_ids(), 2);
}

#[test]
fn numbers_that_overflow_are_an_error() {
    let huge = vec![vec![1e300], vec![1.7e308], vec![-1.7e308]];
    let data = dataset(&[(huge, vec![json!(0), json!(1), json!(0)])]);
    let error = memorizer(Method::Plateau).compile(&data).unwrap_err().to_string();
    assert!(error.contains("overflow"), "{error}");
    let tiny = vec![vec![1e-150], vec![2e-150], vec![-1e-150]];
    check(&dataset(&[(tiny, vec![json!(0), json!(1), json!(0)])]), &[]);
}

/// Corollary 1 at N = 1,000, n = 16, d = 8 with ten outputs.
#[test]
fn sixteen_thousand_ids() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut vector = || (0..8).map(|_| StandardNormal.sample(&mut rng)).collect::<Vec<f64>>();
    let outputs: Vec<Vec<f64>> = (0..10).map(|_| vector()).collect();
    let tokens: Vec<Vec<Vec<f64>>> = (0..1000).map(|_| (0..16).map(|_| vector()).collect()).collect();
    let label = |i: usize| json!(outputs[i * 7919 % 1013 % 10]);
    let labels = |i: usize| (0..16).map(|place| label(16 * i + place)).collect();
    let data = dataset(&tokens.into_iter().enumerate().map(|(i, tokens)| (tokens, labels(i))).collect::<Vec<_>>());
    for method in [Method::Plateau, Method::Interpolate] {
        let compiled = memorizer(method).compile(&data).unwrap();
        assert_eq!((compiled.context_ids(), right(&data, &compiled)), (16_000, 16_000));
        let error = proof(&compiled).real_error;
        assert!(error <= 1e-6 && compiled.is_proved(), "{method:?} {error}");
    }
}

#[test]
fn labels_are_needed() {
    let data = Dataset::read("test", Format::JsonLines, r#"{"tokens": [[1.0]]}"#.as_bytes()).unwrap();
    assert!(memorizer(Method::Plateau).compile(&data).unwrap_err().to_string().contains("no labels"));
}

#[test]
fn words_are_memorized_through_their_codes() {
    let data = Dataset::open("task:reverse:alphabet=3,length=3").unwrap();
    check(&data, &[]);
}

#[test]
fn the_same_seed_gives_the_same_model() {
    let data = dataset(&[(vec![vec![1.0, 2.0], vec![0.5, 1.0]], vec![json!(0), json!(1)])]);
    let model = |seed| memorizer(Method::Plateau).seed(seed).compile(&data).unwrap().model().clone();
    assert_eq!(model(3), model(3));
    assert_ne!(model(3), model(4));
}

/// Tokens from a small grid, so that duplicates, equal sets and zeros are common.
fn random_data() -> impl Strategy<Value = Dataset> {
    let shape = (1..4_usize, prop::collection::vec(1..6_usize, 1..8), any::<bool>(), any::<bool>());
    shape.prop_flat_map(|(d, lengths, fine, classes)| {
        let coordinate = if fine { (-1.0..1.0).boxed() } else { (1..5_i32).prop_map(f64::from).boxed() };
        let token = prop::collection::vec(coordinate, d);
        let label = if classes {
            (0..6_i32).prop_map(|l| json!(l)).boxed()
        } else {
            (0..6_i32).prop_map(move |l| json!(vec![f64::from(l) / 3.0 - 0.7; d])).boxed()
        };
        let sequences: Vec<_> = lengths
            .iter()
            .map(|&n| (prop::collection::vec(token.clone(), n), prop::collection::vec(label.clone(), n)))
            .collect();
        sequences.prop_map(|sequences| dataset(&sequences))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_possible_token_comes_out_right(data in random_data(), causal: bool, curve: bool) {
        let method = if curve { Method::Interpolate } else { Method::Plateau };
        let mask = if causal { Mask::Causal } else { Mask::None };
        let compiled = memorizer(method).mask(mask).compile(&data).unwrap();
        let (proof, impossible) = (proof(&compiled), compiled.impossible());
        prop_assert_eq!(right(&data, &compiled), data.tokens() - impossible.len());
        prop_assert!(proof.real_error <= 1e-6);
        prop_assert!(proof.smallest_ratio() > 1.0);
        // The float bound holds of the fast forward pass, which sums in an order of its own.
        if let Predictions::Outputs(outputs) = compiled.model().predict(&data).unwrap() {
            let monolayer::data::Labels::Vectors { data: labels, .. } = &data.labels else { unreachable!() };
            for (t, row) in outputs.iter_rows().enumerate().filter(|(t, _)| !impossible.contains(t)) {
                let wanted = &labels[t * row.len()..(t + 1) * row.len()];
                let error = row.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                prop_assert!(error <= proof.float_error);
            }
        }
    }
}
