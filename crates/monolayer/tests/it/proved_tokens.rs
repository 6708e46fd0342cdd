//! No token that the compiler calls proved comes out wrong, whatever the sizes of the codes: programs that add in random
//! orders, in the model's precision, are run on the stored numbers.

use monolayer::arithmetic::kernels::Real;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::data::positions::Positions;
use monolayer::data::{Dataset, Labels, Tokens};
use monolayer::model::{AnyModel, Model};
use monolayer::{Compiled, Memorizer, Precision, Source};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;

/// The sum in a random order: pairs at random, as any program might add.
fn sum<R: Real>(mut terms: Vec<R>, rng: &mut ChaCha8Rng) -> R {
    while terms.len() > 1 {
        let last = terms.swap_remove(rng.random_range(0..terms.len()));
        let other = rng.random_range(0..terms.len());
        terms[other] += last;
    }
    terms.first().copied().unwrap_or(R::ZERO)
}

fn dot<R: Real>(w: &[R], x: &[R], bias: R, rng: &mut ChaCha8Rng) -> R {
    let mut terms: Vec<R> = w.iter().zip(x).map(|(&w, &x)| w * x).collect();
    terms.push(bias);
    sum(terms, rng)
}

/// The label of the last of some visible tokens, as a program computes it that shares no code with the library's.
fn label<R: Real>(model: &Model<R>, visible: &[Vec<R>], own: &[R], rng: &mut ChaCha8Rng) -> usize {
    let layer = &model.transformer.layers[0];
    let head = &layer.attention.as_ref().expect("attention").heads[0];
    let query = dot(head.w_q.row(0), own, R::ZERO, rng);
    let scores: Vec<R> = visible.iter().map(|x| dot(head.w_k.row(0), x, R::ZERO, rng) * query).collect();
    let top = scores.iter().fold(R::NEG_INFINITY, |m, &s| m.larger(s));
    let weights: Vec<R> = scores.iter().map(|&s| R::from_f64((s - top).to_f64().exp())).collect();
    let total = sum(weights.clone(), rng);
    let parts = weights.iter().zip(visible).map(|(&w, x)| w / total * dot(head.w_v.row(0), x, R::ZERO, rng)).collect();
    let mean = sum(parts, rng);
    let h: Vec<R> = own.iter().zip(&head.w_o.data).map(|(&x, &w)| x + w * mean).collect();
    let mut out = h.clone();
    if let Some(block) = &layer.feed_forward {
        let before: Vec<R> = block.w1.iter_rows().zip(&block.b1).map(|(w, &b)| dot(w, &h, b, rng)).collect();
        let hidden: Vec<R> = before.iter().map(|&x| x.larger(R::ZERO)).collect();
        out = (0..h.len()).map(|i| h[i] + dot(block.w2.row(i), &hidden, block.b2[i], rng)).collect();
    }
    let head = model.head.as_ref().expect("a head");
    let scores: Vec<R> = head.weight.iter_rows().zip(&head.bias).map(|(w, &b)| dot(w, &out, b, rng)).collect();
    (1..scores.len()).fold(0, |best, l| if scores[l] > scores[best] { l } else { best })
}

/// Tokens called proved, and those of them that a program gets wrong.
fn refuted<R: Real>(model: &Model<R>, compiled: &Compiled, data: &Dataset) -> (usize, usize) {
    let (Tokens::Words { word_ids: ids, .. }, Labels::Classes { label_ids: labels, .. }) = (&data.tokens, &data.labels)
    else {
        panic!("words with classes");
    };
    let Source::Memorize { seed, .. } = compiled.source() else { panic!("memorized") };
    let embedding: &Matrix<R> = &model.words.as_ref().expect("words").embedding;
    let mut rng = ChaCha8Rng::seed_from_u64(*seed);
    let (mut proved, mut wrong) = (0, 0);
    for range in data.ranges() {
        let at = |t: usize| {
            let place = model.positions.as_ref().map(|p| p.row(t - range.start));
            let row = embedding.row(ids[t] as usize);
            (0..row.len()).map(|i| place.map_or(row[i], |p| row[i] + p[i])).collect::<Vec<R>>()
        };
        let tokens: Vec<Vec<R>> = range.clone().map(at).collect();
        for t in range.clone().filter(|&t| compiled.proved()[t]) {
            let place = t - range.start;
            let mask = &model.transformer.layers[0].attention.as_ref().expect("attention").mask;
            let visible = (0..tokens.len()).filter(|&key| mask.visible(place, key)).map(|key| tokens[key].clone());
            let visible: Vec<Vec<R>> = visible.collect();
            proved += 1;
            let wanted = labels[t].unwrap() as usize;
            let right = (0..3).all(|_| label(model, &visible, &tokens[place], &mut rng) == wanted);
            wrong += usize::from(!right);
        }
    }
    (proved, wrong)
}

fn refuted_in_its_precision(compiled: &Compiled, data: &Dataset) -> (usize, usize) {
    match compiled.model() {
        AnyModel::F32(model) => refuted(model, compiled, data),
        AnyModel::F64(model) => refuted(model, compiled, data),
        AnyModel::Exact(_) => unreachable!("gated units are floats"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_called_proved_is_right(number in 0..1_000_000_u64) {
        let dir = tempfile::tempdir().expect("a directory");
        let (data, memorizer) = crate::random::mixed_codes::draw(number, dir.path());
        // Codes may be too close to tell words apart: then nothing is claimed.
        if let Ok(compiled) = memorizer.compile(&data) {
            let (proved, wrong) = refuted_in_its_precision(&compiled, &data);
            prop_assert_eq!(wrong, 0, "of {} proved", proved);
            prop_assert_eq!(proved, compiled.certified());
        }
    }
}

/// Most of what is drawn above is compiled and proved: the test is not empty.
#[test]
fn codes_of_mixed_sizes_are_compiled_and_proved() {
    let (mut compiled, mut proved, mut tokens) = (0, 0, 0);
    for number in 0..40 {
        let dir = tempfile::tempdir().expect("a directory");
        let (data, memorizer) = crate::random::mixed_codes::draw(number, dir.path());
        let memorizer = memorizer.precision(Precision::Auto);
        if let Ok(model) = memorizer.compile(&data) {
            compiled += 1;
            proved += model.certified();
            tokens += data.tokens() - model.impossible().len();
        }
    }
    assert!(compiled >= 30, "{compiled} of 40 compiled");
    assert!(proved * 10 >= tokens * 9, "{proved} of {tokens} proved");
}

/// Codes of places from 2^-9 to 2^-12 beside words of size 1, with labels that depend on place and context: all of it is
/// proved, and right in any order.
#[test]
fn small_places_beside_words_of_size_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut codes = String::new();
    for place in 1..=6 {
        let row: Vec<String> = (0..16)
            .map(|_| if rng.random::<bool>() { 1.0 } else { -1.0 })
            .map(|x: f64| (x * 2_f64.powi(-9 - place % 4)).to_string())
            .collect();
        codes += &format!("{place} {}\n", row.join(" "));
    }
    let path = dir.path().join("places.txt");
    std::fs::write(&path, codes).expect("a writable directory");
    let data = Dataset::open("task:sort:alphabet=3,length=6").expect("a task");
    for precision in [Precision::Auto, Precision::F32, Precision::F64] {
        let memorizer = Memorizer::new().positions(Positions::File(path.clone())).precision(precision).candidates(32);
        let compiled = memorizer.compile(&data).expect("a model");
        let (_, wrong) = refuted_in_its_precision(&compiled, &data);
        assert_eq!(wrong, 0);
        assert!(precision == Precision::F32 || compiled.is_proved(), "{} of {}", compiled.certified(), data.tokens());
    }
}
