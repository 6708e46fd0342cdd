//! Sequences that take the way in linear time: their loss, their gradient and a step.

use monolayer::model::forward;
use monolayer_train::engine::Parameters;
use monolayer_train::{Architecture, Batch, Engine, Optimizer, Targets, Tokens, export};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

const TOKENS: usize = 4200;

fn architecture(causal: bool) -> Architecture {
    Architecture {
        words: Some(40),
        dim: 6,
        layers: 2,
        hidden: 8,
        heads: 2,
        head_size: 1,
        tied: false,
        causal,
        positions: None,
        layer_norm: false,
        labels: Some(3),
    }
}

/// A long sequence and a short one.
struct LongData {
    offsets: Vec<usize>,
    words: Vec<u32>,
    labels: Vec<Option<u32>>,
}

impl LongData {
    fn new(tokens: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let words = (0..tokens + 10).map(|_| rng.random_range(0..40)).collect();
        let labels = (0..tokens + 10).map(|_| Some(rng.random_range(0..3))).collect();
        Self { offsets: vec![0, tokens, tokens + 10], words, labels }
    }

    fn batch<R>(&self) -> Batch<'_, R> {
        Batch { offsets: &self.offsets, tokens: Tokens::Words(&self.words), targets: Targets::Labels(&self.labels) }
    }

    /// The loss by the model's plain sums.
    fn plain_loss(&self, architecture: &Architecture, parameters: &Parameters<f64>) -> f64 {
        let d = architecture.dim;
        let row = |&word: &u32| &parameters.embedding[word as usize * d..(word as usize + 1) * d];
        let mut h: Vec<f64> = self.words.iter().flat_map(row).copied().collect();
        forward::transform(&export::transformer(architecture, parameters), &self.offsets, &mut h);
        let (weight, bias) = export::head(architecture, parameters).unwrap();
        let loss = |(h, label): (&[f64], &Option<u32>)| {
            let score = |(row, b): (&[f64], &f64)| row.iter().zip(h).map(|(w, x)| w * x).sum::<f64>() + b;
            let scores: Vec<f64> = weight.iter_rows().zip(&bias).map(score).collect();
            scores.iter().map(|s| s.exp()).sum::<f64>().ln() - scores[label.unwrap() as usize]
        };
        h.chunks_exact(d).zip(&self.labels).map(loss).sum::<f64>() / self.words.len() as f64
    }
}

#[test]
fn loss_and_gradient_are_those_of_plain_sums() {
    for causal in [false, true] {
        let (architecture, data) = (architecture(causal), LongData::new(TOKENS));
        let start = Engine::<f64>::new(architecture.clone(), Optimizer::default(), None, 5);
        let parameters = start.parameters().clone();
        let plain = data.plain_loss(&architecture, &parameters);
        let loss = start.evaluate(&data.batch()).loss;
        assert!((loss - plain).abs() <= 1e-12 * plain, "{causal}: {loss} {plain}");
        // A step of rate 1 takes the gradient off the parameters.
        let sgd = Optimizer::Sgd { momentum: 0.0 };
        let mut engine = Engine::from_parameters(architecture.clone(), sgd, None, parameters.clone());
        engine.step(&data.batch(), 1.0).unwrap();
        let moved = engine.parameters();
        // Along random directions, as steep as the loss of plain sums.
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        for _ in 0..2 {
            let mut direction = |list: &[f64]| list.iter().map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f64>>();
            let (dense, embedding) = (direction(&parameters.dense), direction(&parameters.embedding));
            let dot = |a: &[f64], b: &[f64], along: &[f64]| -> f64 {
                a.iter().zip(b).zip(along).map(|((a, b), along)| (a - b) * along).sum()
            };
            let slope =
                dot(&parameters.dense, &moved.dense, &dense) + dot(&parameters.embedding, &moved.embedding, &embedding);
            let at = |step: f64| {
                let add = |list: &[f64], along: &[f64]| list.iter().zip(along).map(|(x, d)| x + step * d).collect();
                let (dense, embedding) = (add(&parameters.dense, &dense), add(&parameters.embedding, &embedding));
                data.plain_loss(&architecture, &Parameters { dense, embedding })
            };
            // So short that no hidden unit of any token starts or stops to fire.
            let step = 1e-7;
            let difference = (at(step) - at(-step)) / (2.0 * step);
            assert!((difference - slope).abs() <= 1e-7, "{causal}: {slope} {difference}");
        }
    }
}

#[test]
fn a_long_sequence_is_learned_from() {
    for causal in [false, true] {
        let mut engine = Engine::<f32>::new(architecture(causal), Optimizer::default(), None, 1);
        let data = LongData::new(30_000);
        let losses: Vec<f64> = (0..8).map(|_| engine.step(&data.batch(), 1e-2).unwrap().loss).collect();
        assert!(losses.iter().all(|loss| loss.is_finite()) && losses[7] < losses[0], "{losses:?}");
    }
}
