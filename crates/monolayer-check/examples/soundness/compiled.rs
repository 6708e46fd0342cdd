//! Models that memorize their data, as compilers make them: ramps along one direction, gated hinges, and the library's own.

use std::collections::BTreeMap;

use monolayer::model::Storage;
use monolayer::{Memorizer, Precision};

use super::case::{Arithmetic, Attention, Block, Case, Claim, Data, Head, Layer, Mask, Model, Token, Wanted};
use super::files;
use super::graph::Graph;
use super::program;
use super::random::Random;
use super::read;

const PLACES: usize = 5;

fn narrow(x: f64, single: bool) -> f64 {
    if single { f64::from(x as f32) } else { x }
}

fn numbers(random: &mut Random, n: usize, scale: f64, single: bool) -> Vec<f64> {
    (0..n).map(|_| narrow(scale * random.signed(), single)).collect()
}

fn random_data(random: &mut Random, words: usize, labels: usize) -> Data {
    let mut data = Data::default();
    for _ in 0..=random.below(6) {
        let n = 1 + random.below(PLACES);
        data.sequences.push((0..n).map(|_| Token::Word(random.below(words))).collect());
        data.wanted.push((0..n).map(|_| Wanted::Label(random.below(labels))).collect());
    }
    data
}

pub fn case(random: &mut Random, kind: &str, single: bool, arithmetic: Arithmetic) -> Case {
    let (words, labels) = (2 + random.below(4), 2 + random.below(3));
    let data = random_data(random, words, labels);
    let (kind, mut model, data) = match kind {
        "gated" => ("gated", gated(random, &data, words, labels, single), data),
        "library" => match library(random, &data, single) {
            Some((model, data)) => ("library", model, data),
            None => ("compiled", compiled(random, &data, words, labels, single), data),
        },
        _ => ("compiled", compiled(random, &data, words, labels, single), data),
    };
    if random.once_in(3) {
        nudge(random, &mut model);
    }
    Case { kind, model, data, arithmetic, claim: Claim::Labels }
}

/// One number changed, by a last bit or by more.
fn nudge(random: &mut Random, model: &mut Model) {
    let single = model.single;
    let mut parts = model.numbers();
    parts.retain(|p| !p.is_empty());
    let which = random.below(parts.len());
    let at = random.below(parts[which].len());
    let x = &mut parts[which][at];
    let next = if single { f64::from((*x as f32).next_up()) } else { x.next_up() };
    *x = if random.once_in(2) { next } else { narrow(*x * (1.0 + 0.1 * random.signed()), single) };
}

/// A model of the library, from its files.
fn library(random: &mut Random, data: &Data, single: bool) -> Option<(Model, Data)> {
    let text = files::conll(data)?;
    let read = monolayer::Dataset::read("random", monolayer::data::Format::Conll, text.as_bytes()).ok()?;
    let precision = if single { Precision::F32 } else { Precision::F64 };
    let memorizer =
        Memorizer::new().candidates(4).seed(random.bits() % 1000).precision(precision).storage(Storage::Dense);
    let dir = tempfile::tempdir().ok()?;
    let path = dir.path().join("model");
    memorizer.compile(&read).ok()?.save(&path).ok()?;
    let named = read::model(&path)?;
    std::fs::write(dir.path().join("data.conll"), &text).ok()?;
    let data = read::data(&named, &dir.path().join("data.conll"))?;
    Some((named.model, data))
}

/// One coordinate, or all of a linear form, of every token's output in f64.
fn outputs(model: &Model, data: &Data, form: &[f64]) -> Vec<f64> {
    let mut out = Vec::new();
    let mut values: Vec<f64> = Vec::new();
    for sequence in &data.sequences {
        let graph = Graph::new(model, sequence);
        program::run(&graph, &program::plain(&graph), &mut values);
        out.extend(graph.outputs.iter().map(|t| t.iter().zip(form).map(|(&n, f)| values[n] * f).sum::<f64>()));
    }
    out
}

fn class(wanted: &Wanted) -> usize {
    if let Wanted::Label(l) = wanted { *l } else { 0 }
}

/// Units as rows of what they read and what they write.
struct Units {
    d: usize,
    read: Vec<(Vec<f64>, f64)>,
    write: Vec<Vec<f64>>,
}

impl Units {
    fn block(self, b2: Vec<f64>) -> Option<Block> {
        let hidden = self.read.len();
        let w2 = (0..self.d * hidden).map(|i| self.write[i % hidden][i / hidden]).collect();
        let b1 = self.read.iter().map(|r| r.1).collect();
        (hidden > 0).then(|| Block { hidden, w1: self.read.into_iter().flat_map(|r| r.0).collect(), b1, w2, b2 })
    }
}

fn reading_head(labels: usize, d: usize, first: usize) -> Head {
    let weight = (0..labels * d).map(|i| f64::from(u8::from(i % d == first + i / d))).collect();
    Head { labels: true, rows: labels, weight, bias: vec![0.0; labels] }
}

/// Rank-1 attention and one ramp per change of label along one direction.
fn compiled(random: &mut Random, data: &Data, words: usize, labels: usize, single: bool) -> Model {
    let base = 3;
    let d = base + labels;
    let only = |x: Vec<f64>| -> Vec<f64> {
        x.into_iter().enumerate().map(|(i, x)| if i % d < base { x } else { 0.0 }).collect()
    };
    let v = only(numbers(random, d, 1.0, single));
    let attention = Attention {
        hard: false,
        heads: 1,
        size: 1,
        mask: if random.once_in(3) { Mask::Causal } else { Mask::None },
        w_q: only(numbers(random, d, 1.0, single)),
        w_k: v.clone(),
        w_v: v,
        w_o: only(numbers(random, d, 0.5, single)),
    };
    let mut model = Model {
        single,
        d,
        embedding: Some(only(numbers(random, words * d, 1.0, single))),
        start: None,
        positions: Some(only(numbers(random, PLACES * d, 0.5, single))),
        pre: None,
        layers: vec![Layer { attention: Some(attention), block: None }],
        head: Some(reading_head(labels, d, base)),
    };
    let a = only(numbers(random, d, 1.0, single));
    let classes = data.wanted.iter().flatten().map(class);
    let mut ids: Vec<(f64, usize)> = outputs(&model, data, &a).into_iter().zip(classes).collect();
    ids.sort_by(|x, y| x.0.total_cmp(&y.0));
    let mut units = Units { d, read: vec![], write: vec![] };
    let mut b2 = vec![0.0; d];
    b2[base + ids[0].1] = 1.0;
    for pair in ids.windows(2).filter(|pair| pair[0].1 != pair[1].1 && pair[1].0 > pair[0].0) {
        for (edge, slope) in ramp(pair[0].0, pair[1].0) {
            let slope = narrow(slope, single);
            let mut row = vec![0.0; d];
            row[base + pair[1].1] = slope;
            row[base + pair[0].1] = -slope;
            units.read.push((a.clone(), narrow(-edge, single)));
            units.write.push(row);
        }
    }
    model.layers[0].block = units.block(b2);
    model
}

/// The two hinges of a ramp between two numbers: where, and how steep.
fn ramp(low: f64, high: f64) -> [(f64, f64); 2] {
    let gap = high - low;
    [(low + 0.3 * gap, 1.0 / (0.4 * gap)), (high - 0.3 * gap, -1.0 / (0.4 * gap))]
}

/// Token-gated hinges: words and places have codes of +1 and -1, and a unit fires for one (word, place) only.
fn gated(random: &mut Random, data: &Data, words: usize, labels: usize, single: bool) -> Model {
    let code = 5;
    let (reader, d) = (2 * code, 2 * code + 1 + labels);
    let codes = |random: &mut Random, n: usize, first: usize| -> Vec<f64> {
        let start = random.below(32);
        let bit = |i: usize, c: usize| if (((start + 7 * i) % 32) >> c) & 1 == 0 { -1.0 } else { 1.0 };
        let entry = |i: usize, c: usize| if (first..first + code).contains(&c) { bit(i, c - first) } else { 0.0 };
        (0..n * d).map(|i| entry(i / d, i % d)).collect()
    };
    let dyadic = |random: &mut Random| -> Vec<f64> {
        (0..d).map(|c| if c < reader { (random.signed() * 32.0).round() / 64.0 } else { 0.0 }).collect()
    };
    let v = dyadic(random);
    let only: Vec<f64> = (0..d).map(|c| f64::from(u8::from(c == reader))).collect();
    let (w_q, w_o) = (dyadic(random), only.clone());
    let attention = Attention { hard: false, heads: 1, size: 1, mask: Mask::None, w_q, w_k: v.clone(), w_v: v, w_o };
    let (word_codes, place_codes) = (codes(random, words, 0), codes(random, PLACES, code));
    let mut model = Model {
        single,
        d,
        embedding: Some(word_codes.clone()),
        start: None,
        positions: Some(place_codes.clone()),
        pre: None,
        layers: vec![Layer { attention: Some(attention), block: None }],
        head: Some(reading_head(labels, d, reader + 1)),
    };
    let mut groups: BTreeMap<(usize, usize), Vec<(f64, usize)>> = BTreeMap::new();
    let places = data.sequences.iter().flat_map(|s| s.iter().enumerate());
    let wanted = data.wanted.iter().flatten();
    for ((id, (place, token)), wanted) in outputs(&model, data, &only).into_iter().zip(places).zip(wanted) {
        if let Token::Word(word) = token {
            groups.entry((*word, place)).or_default().push((id, class(wanted)));
        }
    }
    let mut units = Units { d, read: vec![], write: vec![] };
    for ((word, place), mut contexts) in groups {
        contexts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let gate: Vec<f64> = (0..d).map(|c| word_codes[word * d + c] + place_codes[place * d + c]).collect();
        let mut add = |scale: f64, read: f64, bias: f64, change: &[(usize, f64)]| {
            let row = gate.iter().enumerate().map(|(c, g)| if c == reader { read } else { scale * g }).collect();
            units.read.push((row, narrow(bias, single)));
            let mut out = vec![0.0; d];
            change.iter().for_each(|(l, x)| out[reader + 1 + l] += narrow(*x, single));
            units.write.push(out);
        };
        let whole = (2 * code) as f64;
        add(1.0, 0.0, 1.0 - whole, &[(contexts[0].1, 1.0)]);
        for pair in contexts.windows(2).filter(|pair| pair[0].1 != pair[1].1 && pair[1].0 > pair[0].0) {
            for (edge, slope) in ramp(pair[0].0, pair[1].0) {
                add(4.0, 1.0, -4.0 * whole - edge, &[(pair[1].1, slope), (pair[0].1, -slope)]);
            }
        }
    }
    model.layers[0].block = units.block(vec![0.0; d]);
    model
}
