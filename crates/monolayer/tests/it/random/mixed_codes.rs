//! Random datasets of words with classes, and files of codes whose sizes have nothing to do with each other.

use std::fmt::Write as _;
use std::path::Path;

use monolayer::data::embedding::Embedding;
use monolayer::data::positions::Positions;
use monolayer::paper::attention::Mask;
use monolayer::{Dataset, Memorizer, Method, Precision};
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;

/// Writes dataset number `number` and its codes into a directory, and says how to compile it.
pub fn draw(number: u64, dir: &Path) -> (Dataset, Memorizer<'static>) {
    let mut rng = ChaCha8Rng::seed_from_u64(number);
    let (words, longest) = (rng.random_range(2..7_usize), rng.random_range(1..8_usize));
    let data = dir.join("data.jsonl");
    std::fs::write(&data, sequences(words, longest, &mut rng)).expect("a writable directory");
    let names: Vec<String> = (0..words).map(|w| format!("w{w}")).collect();
    let places: Vec<String> = (1..=longest).map(|k| k.to_string()).collect();
    let file = |name: &str, rows: &[String], rng: &mut ChaCha8Rng| {
        let path = dir.join(name);
        std::fs::write(&path, codes(rows, rng)).expect("a writable directory");
        path
    };
    let embedding = match rng.random_range(0..4) {
        0 => Embedding::Sign(64),
        _ => Embedding::File(file("words.txt", &names, &mut rng)),
    };
    let positions = match rng.random_range(0..6) {
        0 => Positions::Auto,
        1 => Positions::None,
        _ => Positions::File(file("places.txt", &places, &mut rng)),
    };
    let mask = match rng.random_range(0..8) {
        0 | 1 => Mask::Causal,
        2 => Mask::Prefix(2),
        3 => Mask::Band(1, 2),
        4 => mask_matrix(longest, number),
        _ => Mask::None,
    };
    let (free, unknown) = (rng.random_range(0..4) == 0, rng.random_range(0..4) == 0);
    let precision = [Precision::Auto, Precision::Auto, Precision::F32, Precision::F64][rng.random_range(0..4)];
    let memorizer = Memorizer::new()
        .method(Method::Gated)
        .embedding(embedding)
        .positions(positions)
        .mask(mask)
        .free(free)
        .unknown(unknown)
        .precision(precision)
        .seed(number)
        .candidates(32);
    (Dataset::open(&data).expect("what was written"), memorizer)
}

/// A mask of a matrix for sequences of up to `longest` tokens: some hidden tokens, or nearly all.
pub fn mask_matrix(longest: usize, seed: u64) -> Mask {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let share = [0.05, 0.5, 0.95][seed as usize % 3];
    let entries = (0..longest * longest).map(|at| u8::from(at / longest == at % longest || rng.random_bool(share)));
    Mask::matrix(longest, entries.collect()).expect("ones on the diagonal")
}

/// Sequences with labels that depend on the word, on its place, on what else is there, or on chance.
fn sequences(words: usize, longest: usize, rng: &mut ChaCha8Rng) -> String {
    let kind = rng.random_range(0..4);
    let labels = if rng.random_range(0..8) == 0 { 20 } else { rng.random_range(2..6) };
    let mut text = String::new();
    for _ in 0..rng.random_range(5..80) {
        let sequence: Vec<usize> = (0..rng.random_range(1..=longest)).map(|_| rng.random_range(0..words)).collect();
        let mut sorted = sequence.clone();
        sorted.sort_unstable();
        let label = |k: usize, rng: &mut ChaCha8Rng| match kind {
            0 => sorted[k] % labels,
            1 => sequence.iter().filter(|&&w| w == sequence[k]).count() % labels,
            2 => (sequence[k] * 7 + k) % labels,
            _ => rng.random_range(0..labels),
        };
        let labels: Vec<String> = (0..sequence.len()).map(|k| format!("\"l{}\"", label(k, rng))).collect();
        let tokens: Vec<String> = sequence.iter().map(|w| format!("\"w{w}\"")).collect();
        writeln!(text, "{{\"tokens\": [{}], \"labels\": [{}]}}", tokens.join(", "), labels.join(", ")).expect("memory");
    }
    text
}

/// A file of codes: signs or normal numbers, times powers of two that are the same for all, for a row, or for nothing.
fn codes(rows: &[String], rng: &mut ChaCha8Rng) -> String {
    let d = [4, 8, 16, 32][rng.random_range(0..4)];
    let exponents = match rng.random_range(0..8) {
        0 => -140..-60,
        1 => 60..100,
        2 => -60..60,
        3 => 0..1,
        _ => -13..1,
    };
    let (signs, per) = (rng.random_range(0..3) > 0, rng.random_range(0..4));
    let common = rng.random_range(exponents.clone());
    let mut text = String::new();
    for row in rows {
        text += row;
        let of_row = if per == 1 { rng.random_range(exponents.clone()) } else { common };
        for _ in 0..d {
            let exponent = if per == 2 { rng.random_range(exponents.clone()) } else { of_row };
            let sign = if rng.random::<bool>() { 1.0 } else { -1.0 };
            let size = if signs { 1.0 } else { rng.random_range(0.01..1.0_f64) };
            write!(text, " {:e}", sign * size * 2_f64.powi(exponent)).expect("memory");
        }
        text.push('\n');
    }
    text
}
