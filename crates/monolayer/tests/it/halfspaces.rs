//! Halfspaces hold what they were made for and nothing that is forbidden, and models built from them are proved.

use monolayer::memorize::Effort;
use monolayer::memorize::gated::code_points::{CodePoints, Codes, IdScale};
use monolayer::memorize::gated::halfspace_cover::{CoverEffort, Halfspace, Target, cover};
use monolayer::{AnyModel, Dataset, Embedding, Mask, Matrix, Memorizer, Method, Positions};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;

/// Codes of signs, or of other numbers of some size.
fn codes(rows: usize, cols: usize, size: Option<f64>, rng: &mut ChaCha8Rng) -> Matrix<f64> {
    Matrix::from_fn(rows, cols, |_, _| match size {
        None => f64::from(2 * rng.random_range(0..2) - 1),
        Some(size) => size * (2.0 * rng.random::<f64>() - 1.0),
    })
}

/// What a halfspace says of a point: positive inside.
fn side(halfspace: &Halfspace, code: &[f64], id: f64) -> f64 {
    halfspace.normal.iter().zip(code).map(|(n, x)| n * x).sum::<f64>() + halfspace.id * id - halfspace.threshold
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every target is held by the margin or listed as left out; nothing forbidden is held, on any scale of codes and ids.
    #[test]
    fn a_cover_holds_targets_and_nothing_forbidden(
        seed in any::<u64>(),
        exponents in prop::option::of((-30_i32..30, -30_i32..30)),
        id_exponent in -30_i32..30,
        refusals in 0_usize..6,
    ) {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let sizes = exponents.map(|(a, b)| (10_f64.powi(a), 10_f64.powi(b)));
        let words = Codes::new(codes(40, 24, sizes.map(|s| s.0), rng));
        let places = Codes::new(codes(6, 16, sizes.map(|s| s.1), rng));
        let mut list: Vec<(u32, u32)> = (0..150).map(|_| (rng.random_range(0..40), rng.random_range(0..6))).collect();
        list.sort_unstable();
        list.dedup();
        let deviation = 10_f64.powi(id_exponent);
        let ids = IdScale::new(3.0 * deviation, deviation);
        // Along the ids of a point, forbidden contexts come first.
        let cut = |rng: &mut ChaCha8Rng| 16.0 * (rng.random::<f64>() - 0.5);
        let cuts: Vec<f64> = list.iter().map(|_| cut(rng)).collect();
        let kind: Vec<u32> = list.iter().map(|_| rng.random_range(0..4)).collect();
        let forbidden: Vec<Option<(f64, f64)>> =
            cuts.iter().zip(&kind).map(|(&x, &kind)| (kind > 0).then_some((x - 1.0, x))).collect();
        let targets: Vec<Target> = (0..list.len())
            .filter(|&p| kind[p] < 2)
            .map(|point| Target { point, ids: (cuts[point] + 0.5, cuts[point] + 2.0) })
            .collect();
        let points = CodePoints::new(&words, Some(&places), &list).with_ids(ids, 16.0);
        let effort = CoverEffort { steps: 100, refusals, together: 1 + seed as usize % 4, batch: 64 };
        let (halfspaces, failed) = cover(&points, &targets, &forbidden, effort);
        let code = |point: usize| [words.row(list[point].0 as usize), places.row(list[point].1 as usize)].concat();
        let id = |x: f64| x / ids.scale + ids.center;
        let mut held: Vec<usize> = halfspaces.iter().flat_map(|h| h.members.clone()).chain(failed).collect();
        held.sort_unstable();
        prop_assert_eq!(held, (0..targets.len()).collect::<Vec<_>>());
        for halfspace in &halfspaces {
            for &member in &halfspace.members {
                let Target { point, ids: (low, high) } = targets[member];
                for x in [low, high] {
                    prop_assert!(side(halfspace, &code(point), id(x)) > 0.9 * halfspace.margin);
                }
            }
            for (point, span) in forbidden.iter().enumerate() {
                for x in span.iter().flat_map(|&(low, high)| [low, high]) {
                    prop_assert!(side(halfspace, &code(point), id(x)) < -0.9 * halfspace.margin);
                }
            }
        }
    }
}

/// Sentences over a few dozen words, some of whose labels depend on place and context, some of which are free.
fn corpus(seed: u64, sentences: usize) -> Dataset {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let (mut tokens, mut labels): (Vec<Vec<String>>, Vec<Vec<Option<String>>>) = Default::default();
    for _ in 0..sentences {
        let length = rng.random_range(1..9);
        let words: Vec<u32> = (0..length).map(|_| rng.random_range(0..60)).collect();
        let label = |&w: &u32| match rng.random_range(0..12) {
            0 => Some(format!("L{}", rng.random_range(0..5))),
            1 => None,
            _ => Some(format!("L{}", w % 3)),
        };
        labels.push(words.iter().map(label).collect());
        tokens.push(words.iter().map(|w| format!("w{w}")).collect());
    }
    Dataset::from_sequences(&tokens, &labels).expect("a dataset")
}

/// Every kind of model is compiled and proved, at every effort, and gets its possible tokens right.
#[test]
fn models_of_every_kind_are_proved() {
    let data = corpus(1, 120);
    let gated = || Memorizer::new().method(Method::Gated);
    let kinds = [
        gated().embedding(Embedding::Sign(64)),
        gated().embedding(Embedding::Sign(64)).effort(Effort::Fast),
        gated().embedding(Embedding::Sign(64)).effort(Effort::High),
        gated().embedding(Embedding::Sign(64)).free(true),
        gated().embedding(Embedding::Sign(64)).unknown(true),
        gated().embedding(Embedding::Sign(64)).mask(Mask::Causal),
        gated().embedding(Embedding::Sign(64)).start(true),
        gated().embedding(Embedding::Sign(64)).positions(Positions::None),
        gated().embedding(Embedding::Random(48)),
        gated().embedding(Embedding::OneHot),
    ];
    for (i, memorizer) in kinds.into_iter().enumerate() {
        let compiled = memorizer.compile(&data).unwrap_or_else(|e| panic!("kind {i}: {e}"));
        assert!(compiled.is_proved(), "kind {i}: {} of {} proved", compiled.certified(), compiled.possible());
        assert_eq!(compiled.model().right(&data).unwrap(), Some(compiled.right()), "kind {i}");
    }
}

/// More effort takes fewer units, and the same settings give the same model.
#[test]
fn effort_saves_units() {
    let data = corpus(2, 400);
    let units = |effort| {
        let memorizer = Memorizer::new().embedding(Embedding::Sign(64)).effort(effort);
        let compiled = memorizer.compile(&data).expect("compiled");
        assert!(compiled.is_proved());
        let again = memorizer.compile(&data).expect("compiled");
        assert_eq!(compiled.model().config(), again.model().config());
        assert_eq!(compiled.source(), again.source());
        compiled.model().config().layers[0].hidden - compiled.spare()
    };
    let [fast, high] = [Effort::Fast, Effort::High].map(units);
    assert!(high <= fast, "{high:?} and {fast:?}");
}

/// Unknown words, whose code is 0, get the commonest label wherever they stand.
#[test]
fn unknown_words_are_left_alone() {
    let data = corpus(3, 200);
    let compiled = Memorizer::new().embedding(Embedding::Sign(64)).unknown(true).compile(&data).expect("compiled");
    let AnyModel::F32(_) = compiled.model() else { panic!("single precision") };
    let unknown: Vec<Vec<String>> = (1..=8).map(|n| vec!["never seen".to_owned(); n]).collect();
    let labels: Vec<Vec<&str>> = unknown.iter().map(|s| vec!["L0"; s.len()]).collect();
    let unknown = Dataset::from_sequences(&unknown, &labels).expect("a dataset");
    let tokens = unknown.tokens();
    assert_eq!(compiled.model().right(&unknown).unwrap(), Some(tokens));
}
