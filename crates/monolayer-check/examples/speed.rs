//! How long the checker takes on a dense model, as training makes them, and a dataset of the size of CoNLL-2003.
//!
//! Weights are random, in single precision; so are sentences and labels. Nearly every token should be decided, right or wrong.
//! `cargo run --release -p monolayer-check --example speed -- --hidden 10000 --heads 8 --head-size 16 --layers 3`

#[allow(dead_code)]
#[path = "soundness/random.rs"]
mod random;

use std::time::Instant;

use monolayer_check::Precision;
use monolayer_check::dataset::{Alphabet, Dataset, Labels};
use monolayer_check::decide::Decision;
use monolayer_check::labels::Pass;
use monolayer_check::model::{Attention, Dtype, Embedding, FeedForward, Head, Layer, Model};
use random::Random;

const WORDS: usize = 23_623;
const LABELS: usize = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str, default: usize| {
        arguments.iter().position(|a| a == name).map_or(default, |i| arguments[i + 1].parse().expect("a number"))
    };
    let (tokens, d, hidden) = (value("--tokens", 203_621), value("--d", 64), value("--hidden", 10_000));
    let (heads, size, layers) = (value("--heads", 1), value("--head-size", 1), value("--layers", 1));
    let mut random = Random(1);
    let dataset = dataset(&mut random, tokens);
    let model = model(&mut random, [d, hidden, heads, size, layers]);
    let skip = vec![false; dataset.tokens()];
    let pass = Pass {
        model: &model,
        dataset: &dataset,
        precision: Precision::F32,
        exp_ulp: 4.0,
        tolerance: None,
        skip: &skip,
        first: false,
        bits: 1024,
        comfortable: 2.0,
    };
    let start = Instant::now();
    let outcome = pass.run().expect("a well-formed case");
    let seconds = start.elapsed().as_secs_f64();
    let count = |test: fn(&Decision) -> bool| outcome.decisions.iter().flatten().filter(|d| test(d)).count();
    println!(
        "{tokens} tokens, d = {d}, {hidden} hidden units, {heads} heads of size {size}, {layers} layers: {seconds:.1} s on {} \
         threads; {} right, {} wrong, {} open",
        rayon::current_num_threads(),
        count(|d| matches!(d, Decision::Right(_))),
        count(|d| matches!(d, Decision::Wrong(_))),
        count(|d| matches!(d, Decision::Open(..)))
    );
}

/// Sentences of up to 40 words, frequent words first.
fn dataset(random: &mut Random, tokens: usize) -> Dataset {
    let mut offsets = vec![0];
    while offsets[offsets.len() - 1] < tokens {
        offsets.push((offsets[offsets.len() - 1] + 1 + random.below(40)).min(tokens));
    }
    let word = |random: &mut Random| (WORDS as f64 * random.signed().powi(4)) as u32;
    let ids: Vec<u32> = (0..tokens).map(|_| word(random)).collect();
    let classes = (0..tokens).map(|_| random.below(LABELS) as u32).collect();
    let names = |prefix: &str, n: usize| (0..n).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    Dataset {
        name: "random".into(),
        hash: String::new(),
        ids,
        alphabet: Alphabet::Words(names("w", WORDS)),
        labels: Labels::Classes(classes, names("L", LABELS)),
        offsets,
        lines: vec![],
        warnings: vec![],
    }
}

fn model(random: &mut Random, [d, hidden, heads, size, layers]: [usize; 5]) -> Model {
    let mut numbers = |n: usize, inputs: usize| -> Vec<f64> {
        let scale = 1.0 / (inputs as f64).sqrt();
        (0..n).map(|_| f64::from((scale * random.signed()) as f32)).collect()
    };
    let wide = heads * size;
    let mut layer = || {
        let [w_q, w_k, w_v] = [(); 3].map(|()| numbers(wide * d, d));
        let w_o = numbers(wide * d, wide);
        let attention = Attention { hard: false, causal: false, heads, size, w_q, w_k, w_v, w_o };
        let (w1, b1) = (numbers(hidden * d, d), numbers(hidden, d));
        let (w2, b2) = (numbers(hidden * d, hidden), numbers(d, hidden));
        Layer { attention: Some(attention), feed_forward: Some(FeedForward { hidden, w1, b1, w2, b2 }) }
    };
    let layers = (0..layers).map(|_| layer()).collect();
    Model {
        d,
        dtype: Dtype::F32,
        max_length: None,
        embedding: Some(Embedding {
            vocabulary: (0..WORDS).map(|i| (format!("w{i}"), i as u32)).collect(),
            weight: numbers(WORDS * d, 1),
        }),
        positions: None,
        pre_feed_forward: None,
        layers,
        head: Some(Head {
            labels: (0..LABELS).map(|i| format!("L{i}")).collect(),
            weight: numbers(LABELS * d, d),
            bias: numbers(LABELS, d),
        }),
    }
}
