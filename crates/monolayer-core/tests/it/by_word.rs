//! Tokens that are judged together, word by word and in runs, get what each sequence gets by itself.

use std::collections::BTreeMap;

use monolayer_core::claims::context::{Context, contexts, disagree};
use monolayer_core::claims::inputs::wanted;
use monolayer_core::model::{Attention, Dtype, FeedForward, Head, Layer, Mask, Model, Numbers, Tensor};
use monolayer_core::read::Limits;
use monolayer_core::read::data::{Data, Kind, Reader, parse};
use monolayer_core::rules::judge::{Inputs, Judge, Judged, Verdict};
use monolayer_core::rules::network::Network;
use monolayer_core::rules::sum::Arithmetic;
use monolayer_core::{Format, Stored};

use crate::common::Random;

const UNITS: usize = 70;
const WORDS: usize = 6;
const PLACES: usize = 5;

fn numbers(format: Format, shape: &[usize], entries: &[f64]) -> Numbers {
    let (stored, bytes) = match format {
        Format::F32 => (Stored::F32, entries.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect()),
        Format::F64 => (Stored::F64, entries.iter().flat_map(|x| x.to_le_bytes()).collect()),
    };
    Numbers::Floats(Tensor::dense(shape.to_vec(), stored, bytes))
}

/// A model with gated units: each reads a word's code, some a place's, and what attention has read, of any scale. Coordinates are those of
/// words, of places, of what is read, and of three labels.
fn model(random: &mut Random, format: Format, positions: bool) -> Model {
    let (d, code) = (12, |random: &mut Random| if random.below(2) == 0 { 1.0 } else { -1.0 });
    let scale = 2_f64.powi([-100, -20, 0, 0, 3, 100][random.below(6)]);
    let row = |random: &mut Random, from: usize, to: usize| -> Vec<f64> {
        (0..d).map(|c| if (from..to).contains(&c) { code(random) } else { 0.0 }).collect()
    };
    let words: Vec<f64> = (0..WORDS).flat_map(|_| row(random, 0, 5)).collect();
    let places: Vec<f64> = (0..PLACES).flat_map(|_| row(random, 5, 8)).collect();
    let (mut w1, mut b1, mut w2) = (vec![], vec![], vec![0.0; d * UNITS]);
    for j in 0..UNITS {
        // Some units read nothing, some share the word's weights with the one before.
        let mut own: Vec<f64> = (0..8).map(|_| scale * (random.below(9) as f64 - 4.0)).collect();
        if j % 3 == 1 {
            own[..5].copy_from_slice(&w1[(j - 1) * d..(j - 1) * d + 5]);
        }
        let id = if j % 2 == 0 { 0.0 } else { scale * (random.below(64) as f64 / 7.0 - 4.0) };
        let dead = j % 10 == 9;
        w1.extend(own.iter().chain([&id, &0.0, &0.0, &0.0]).map(|w| if dead { 0.0 } else { *w }));
        b1.push(if dead { 0.0 } else { -scale * random.below(16) as f64 });
        w2[(9 + random.below(3)) * UNITS + j] = (random.below(16) as f64 - 7.0) / scale;
    }
    let one = |at: usize| (0..d).map(|c| if c == at { 1.0 } else { 0.0 }).collect::<Vec<f64>>();
    let draw = |random: &mut Random| {
        (0..d).map(|c| if c < 8 { random.below(99) as f64 / 64.0 - 0.7 } else { 0.0 }).collect::<Vec<f64>>()
    };
    let (w_q, w_v) = (draw(random), draw(random));
    let attention = Attention {
        hard: false,
        heads: 1,
        size: 1,
        mask: [Mask::None, Mask::Causal, Mask::Band(1, 1)][random.below(3)].clone(),
        w_q: numbers(format, &[1, 1, d], &w_q),
        w_k: numbers(format, &[1, 1, d], &w_v),
        w_v: numbers(format, &[1, 1, d], &w_v),
        w_o: numbers(format, &[1, d, 1], &one(8)),
    };
    let part = FeedForward {
        hidden: UNITS,
        w1: numbers(format, &[UNITS, d], &w1),
        b1: numbers(format, &[UNITS], &b1),
        w2: numbers(format, &[d, UNITS], &w2),
        b2: numbers(format, &[d], &vec![0.0; d]),
    };
    Model {
        d,
        dtype: Dtype::Float(format),
        max_length: positions.then_some(PLACES),
        vocabulary: Some((0..WORDS).map(|word| (format!("w{word}"), word)).collect()),
        start: None,
        embedding: Some(numbers(format, &[WORDS, d], &words)),
        positions: positions.then(|| numbers(format, &[PLACES, d], &places)),
        pre_feed_forward: None,
        layers: vec![Layer { attention: Some(attention), feed_forward: Some(part) }],
        head: Some(Head {
            labels: Some(["X", "Y", "Z"].map(String::from).to_vec()),
            weight: numbers(format, &[3, d], &[one(9), one(10), one(11)].concat()),
            bias: numbers(format, &[3], &[0.5, 0.0, 0.0]),
        }),
    }
}

fn lines(random: &mut Random, sequences: usize, longest: usize) -> Vec<String> {
    let one = |_| {
        let n = 1 + random.below(longest);
        // A few words are frequent.
        let tokens: Vec<String> =
            (0..n).map(|_| format!("\"w{}\"", random.below(WORDS).min(random.below(WORDS)))).collect();
        let labels: Vec<&str> = (0..n).map(|_| ["\"X\"", "\"Y\"", "\"Z\"", "null"][random.below(4)]).collect();
        format!("{{\"tokens\":[{}],\"labels\":[{}]}}\n", tokens.join(","), labels.join(","))
    };
    (0..sequences).map(one).collect()
}

fn judged(model: &Model, text: &str, arithmetic: Arithmetic, threads: usize) -> Vec<Judged> {
    let data = parse(text.as_bytes(), Kind::JsonLines, &Limits::default()).unwrap();
    let inputs = Inputs::new(model, &data).unwrap();
    let network = Network::new(model, arithmetic).unwrap();
    let wanted = wanted(model, &data, None).unwrap();
    let mut all = vec![None; data.tokens.len()];
    let mut found = |t: usize, judged: Judged| assert!(all[t].replace(judged).is_none(), "told twice");
    Judge { network: &network, inputs: &inputs }.judge(&wanted, threads, &|_| (), &mut found);
    all.into_iter().map(|judged| judged.expect("every token is told of")).collect()
}

#[test]
fn together_and_alone() {
    let mut random = Random(31);
    let (mut right, mut wrong, mut unknown) = (0, 0, 0);
    for round in 0..60 {
        let format = if round % 2 == 0 { Format::F32 } else { Format::F64 };
        let arithmetic = if round % 7 == 6 { Arithmetic::Real } else { Arithmetic::Float { format, exp_ulp: 4 } };
        let positions = round % 3 != 0;
        let model = model(&mut random, format, positions);
        // More tokens of a word at a place than a run has; without positions also one long sequence.
        let mut lines = lines(&mut random, if round == 1 { 9000 } else { 40 }, PLACES);
        if !positions {
            lines.extend(self::lines(&mut random, 2, 700));
        }
        let together = judged(&model, &lines.concat(), arithmetic, 1 + round % 3);
        let some = if round == 1 { 300 } else { lines.len() };
        let alone: Vec<Judged> = lines[..some].iter().flat_map(|line| judged(&model, line, arithmetic, 1)).collect();
        assert_eq!(together[..alone.len()], alone, "round {round}");
        let count = |verdict: Verdict| together.iter().filter(|judged| judged.verdict == verdict).count();
        (right, wrong) = (right + count(Verdict::Right), wrong + count(Verdict::Wrong));
        unknown += count(Verdict::Unknown);
    }
    assert!(right > 1000 && wrong > 1000, "{right} right, {wrong} wrong, {unknown} unknown");
}

/// What [`disagree`] tells, by counting.
fn counted(contexts: &[Context], labels: &[Option<u32>]) -> Vec<(usize, u32, u32)> {
    let mut counts: BTreeMap<Context, BTreeMap<u32, (usize, usize)>> = BTreeMap::new();
    for (t, (context, label)) in contexts.iter().zip(labels).enumerate() {
        if let Some(label) = label {
            counts.entry(*context).or_default().entry(*label).or_insert((0, t)).0 += 1;
        }
    }
    let mut all = vec![];
    for (t, (context, label)) in contexts.iter().zip(labels).enumerate() {
        let Some(label) = label else { continue };
        let most = counts[context].iter().max_by_key(|(_, (count, first))| (*count, usize::MAX - first));
        let favored = *most.unwrap().0;
        all.extend((favored != *label).then_some((t, *label, favored)));
    }
    all
}

#[test]
fn contexts_that_differ_late_or_early() {
    let mut random = Random(3);
    // The last case has so many tokens that contexts are sorted in parts; some agree in all but their first or last byte.
    for (round, n) in [0, 1, 2, 3, 5, 50, 50, 300, 300, 2000, (1 << 21) + 100_000].into_iter().enumerate() {
        let few = 1 + n / [1, 3, 40][round % 3];
        let context = |random: &mut Random| {
            let (mut context, which) = ([7; 16], random.below(few));
            let at = [0, 12][which % 2];
            context[at..at + 4].copy_from_slice(&(which as u32 / 2).to_le_bytes());
            context
        };
        let all: Vec<Context> = (0..n).map(|_| context(&mut random)).collect();
        let labels: Vec<Option<u32>> = (0..n).map(|_| Some(random.below(4) as u32).filter(|l| *l < 3)).collect();
        let mut found = vec![];
        disagree(&all, &labels, |t, own, favored| found.push((t, own, favored)));
        found.sort_unstable();
        assert!(found == counted(&all, &labels), "{n} tokens");
    }
}

/// The same sequences far from each other, and in other batches: their contexts are the same, on any number of threads.
#[test]
fn contexts_of_batches() {
    let mut random = Random(4);
    let lines = lines(&mut random, 5000, 4);
    let text: String = lines.iter().chain(&lines).map(String::as_str).collect();
    let data: Data = parse(text.as_bytes(), Kind::JsonLines, &Limits::default()).unwrap();
    let names: Vec<u64> = (0..data.different() as u64).collect();
    let one = contexts(&data, &names, true, &[&Mask::None], 1);
    let half = one.len() / 2;
    assert_eq!(one[..half], one[half..]);
    assert_eq!(one, contexts(&data, &names, true, &[&Mask::None], 3));
}

#[test]
fn a_line_that_does_not_end_is_refused_before_all_is_read() {
    let limits = Limits::default();
    let mut reader = Reader::new(Kind::Conll, &limits);
    let piece = vec![b'a'; 1 << 20];
    let fed = (0..64).take_while(|_| reader.feed(&piece).is_ok()).count();
    assert_eq!(fed, 16);
    // Tokens have numbers of 32 bits, and fewer where that is asked.
    let few = Limits { tokens: 2, ..limits };
    assert_eq!(parse(b"a X\nb X\n\nc X\n", Kind::Conll, &few).unwrap_err().limit, Some("tokens"));
    assert!(parse(b"a X\n\nc X\n", Kind::Conll, &few).is_ok());
}
