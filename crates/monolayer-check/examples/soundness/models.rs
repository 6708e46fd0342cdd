//! Random small datasets, and models of them: compiled (token by token, in plateaus), trained, random, nudged.

use std::collections::HashMap;

use monolayer_check::dataset::{Alphabet, Dataset, Labels};
use monolayer_check::model::{Attention, Dtype, Embedding, FeedForward, Head, Layer, Model};

use crate::random::Random;
use crate::trained::trained;

pub struct Case {
    pub kind: &'static str,
    pub model: Model,
    pub dataset: Dataset,
}

/// A random dataset of words.
fn dataset(random: &mut Random, words: usize, labels: usize) -> Dataset {
    let (mut ids, mut offsets) = (vec![], vec![0]);
    for _ in 0..=random.below(6) {
        for _ in 0..=random.below(5) {
            ids.push(random.below(words) as u32);
        }
        offsets.push(ids.len());
    }
    let classes = ids.iter().map(|_| random.below(labels) as u32).collect();
    let name = |prefix: &str, n: usize| (0..n).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    Dataset {
        name: "random".into(),
        hash: String::new(),
        ids,
        alphabet: Alphabet::Words(name("w", words)),
        labels: Labels::Classes(classes, name("L", labels)),
        offsets,
        lines: vec![],
        warnings: vec![],
    }
}

fn numbers(random: &mut Random, n: usize, scale: f64, dtype: Dtype) -> Vec<f64> {
    (0..n).map(|_| narrow(scale * random.signed(), dtype)).collect()
}

fn narrow(x: f64, dtype: Dtype) -> f64 {
    if dtype == Dtype::F32 { f64::from(x as f32) } else { x }
}

/// The next number of the dtype.
fn nudge(x: f64, dtype: Dtype) -> f64 {
    if dtype == Dtype::F32 { f64::from((x as f32).next_up()) } else { x.next_up() }
}

pub fn case(random: &mut Random) -> Case {
    let (words, labels) = (2 + random.below(4), 2 + random.below(3));
    let mut dataset = dataset(random, words, labels);
    let dtype = if random.once_in(2) { Dtype::F32 } else { Dtype::F64 };
    let (kind, mut model) = match random.below(5) {
        0 => ("random", random_model(random, words, labels, dtype, false)),
        1 => ("random deep", random_model(random, words, labels, dtype, true)),
        2 => ("compiled", compiled(random, &dataset, words, labels, dtype)),
        3 => ("trained", trained(random, &dataset, words, labels, dtype)),
        _ => ("gated", gated(random, &dataset, words, labels, dtype)),
    };
    if kind.starts_with("random") {
        // Labels that the model itself gives, up to a few: otherwise nearly everything is refuted.
        let own = crate::exact::labels(&model, &dataset);
        if let Labels::Classes(classes, _) = &mut dataset.labels {
            for (class, own) in classes.iter_mut().zip(own) {
                *class = if random.once_in(8) { random.below(labels) as u32 } else { own as u32 };
            }
        }
        if random.once_in(3) {
            tie(random, &mut model, labels);
        }
    }
    let mut kind = kind;
    if random.once_in(4) {
        kind = "nudged";
        nudge_one(random, &mut model);
    }
    Case { kind, model, dataset }
}

/// Makes two labels nearly equal: their head rows are the same, but for one last bit in half of the cases.
fn tie(random: &mut Random, model: &mut Model, labels: usize) {
    let (d, dtype) = (model.d, model.dtype);
    let Some(head) = &mut model.head else { return };
    let (a, b) = (random.below(labels), random.below(labels));
    let row = head.weight[a * d..(a + 1) * d].to_vec();
    head.weight[b * d..(b + 1) * d].copy_from_slice(&row);
    head.bias[b] = head.bias[a];
    if random.once_in(2) {
        let c = b * d + random.below(d);
        head.weight[c] = nudge(head.weight[c], dtype);
    }
}

/// The tensors of a model.
fn tensors(model: &mut Model) -> Vec<&mut Vec<f64>> {
    let mut parts: Vec<&mut Vec<f64>> = vec![];
    for layer in &mut model.layers {
        if let Some(a) = &mut layer.attention {
            parts.extend([&mut a.w_q, &mut a.w_k, &mut a.w_v, &mut a.w_o]);
        }
        if let Some(f) = &mut layer.feed_forward {
            parts.extend([&mut f.w1, &mut f.b1, &mut f.w2, &mut f.b2]);
        }
    }
    let head = model.head.as_mut().expect("labels");
    parts.extend([&mut head.weight, &mut head.bias, &mut model.embedding.as_mut().expect("words").weight]);
    parts
}

fn nudge_one(random: &mut Random, model: &mut Model) {
    let dtype = model.dtype;
    let mut parts = tensors(model);
    let which = random.below(parts.len());
    let at = random.below(parts[which].len());
    let x = &mut parts[which][at];
    *x = if random.once_in(2) { nudge(*x, dtype) } else { narrow(*x * (1.0 + 0.1 * random.signed()), dtype) };
}

fn embedding(words: usize, weight: Vec<f64>) -> Embedding {
    let vocabulary: HashMap<String, u32> = (0..words).map(|i| (format!("w{i}"), i as u32)).collect();
    Embedding { vocabulary, weight }
}

fn random_model(random: &mut Random, words: usize, labels: usize, dtype: Dtype, deep: bool) -> Model {
    let d = 2 + random.below(5);
    let scale = [0.3, 1.0, 4.0][random.below(3)];
    let feed_forward = |random: &mut Random| {
        // Some blocks have so many units that the checker takes them by matrix products.
        let q = if random.once_in(20) { 600 + random.below(300) } else { 1 + random.below(12) };
        FeedForward {
            hidden: q,
            w1: numbers(random, q * d, scale, dtype),
            b1: numbers(random, q, scale, dtype),
            w2: numbers(random, q * d, 1.0, dtype),
            b2: numbers(random, d, 1.0, dtype),
        }
    };
    let layers = 1 + if deep { 1 + random.below(2) } else { 0 };
    let layers = (0..layers)
        .map(|_| {
            let (heads, size) = if deep { (1 + random.below(2), 1 + random.below(3)) } else { (1, 1) };
            let n = heads * size * d;
            let attention = Attention {
                hard: deep && random.once_in(4),
                causal: random.once_in(3),
                heads,
                size,
                w_q: numbers(random, n, scale, dtype),
                w_k: numbers(random, n, scale, dtype),
                w_v: numbers(random, n, 1.0, dtype),
                w_o: numbers(random, n, 1.0, dtype),
            };
            let attention = if deep && random.once_in(6) { None } else { Some(attention) };
            let feed_forward = if attention.is_some() && random.once_in(6) { None } else { Some(feed_forward(random)) };
            Layer { attention, feed_forward }
        })
        .collect();
    let positions = if random.once_in(2) { Some(numbers(random, 5 * d, 1.0, dtype)) } else { None };
    Model {
        d,
        dtype,
        max_length: positions.as_ref().map(|_| 5),
        embedding: Some(embedding(words, numbers(random, words * d, 1.0, dtype))),
        positions,
        pre_feed_forward: if deep && random.once_in(3) { Some(feed_forward(random)) } else { None },
        layers,
        head: Some(Head {
            labels: (0..labels).map(|i| format!("L{i}")).collect(),
            weight: numbers(random, labels * d, 1.0, dtype),
            bias: numbers(random, labels, 1.0, dtype),
        }),
    }
}

/// Rank-1 attention and one ramp per change of label along s = a . H, as in section 4 of the construction: the last
/// coordinates carry the labels.
fn compiled(random: &mut Random, dataset: &Dataset, words: usize, labels: usize, dtype: Dtype) -> Model {
    let base = 3;
    let d = base + labels;
    let only_base = |x: Vec<f64>| -> Vec<f64> {
        x.into_iter().enumerate().map(|(i, x)| if i % d < base { x } else { 0.0 }).collect()
    };
    let v = only_base(numbers(random, d, 1.0, dtype));
    let attention = Attention {
        hard: false,
        causal: random.once_in(3),
        heads: 1,
        size: 1,
        w_q: only_base(numbers(random, d, 1.0, dtype)),
        w_k: v.clone(),
        w_v: v,
        w_o: only_base(numbers(random, d, 0.5, dtype)),
    };
    let mut model = Model {
        d,
        dtype,
        max_length: Some(5),
        embedding: Some(embedding(words, only_base(numbers(random, words * d, 1.0, dtype)))),
        positions: Some(only_base(numbers(random, 5 * d, 0.5, dtype))),
        pre_feed_forward: None,
        layers: vec![Layer { attention: Some(attention), feed_forward: None }],
        head: Some(Head {
            labels: (0..labels).map(|i| format!("L{i}")).collect(),
            weight: (0..labels * d).map(|i| f64::from(u8::from(i % d == base + i / d))).collect(),
            bias: vec![0.0; labels],
        }),
    };
    let a = only_base(numbers(random, d, 1.0, dtype));
    let Labels::Classes(classes, _) = &dataset.labels else { unreachable!() };
    let mut ids: Vec<(f64, usize)> = crate::exact::outputs(&model, dataset)
        .iter()
        .zip(classes)
        .map(|(h, &class)| (h.iter().zip(&a).map(|(h, a)| h * a).sum(), class as usize))
        .collect();
    ids.sort_by(|x, y| x.0.total_cmp(&y.0));
    let mut part = FeedForward { hidden: 0, w1: vec![], b1: vec![], w2: vec![], b2: vec![0.0; d] };
    part.b2[base + ids[0].1] = 1.0;
    for pair in ids.windows(2).filter(|pair| pair[0].1 != pair[1].1 && pair[1].0 > pair[0].0) {
        let gap = pair[1].0 - pair[0].0;
        for (edge, sign) in [(pair[0].0 + 0.3 * gap, 1.0), (pair[1].0 - 0.3 * gap, -1.0)] {
            let slope = narrow(sign / (0.4 * gap), dtype);
            let mut row = vec![0.0; d];
            row[base + pair[1].1] = slope;
            row[base + pair[0].1] = -slope;
            part.hidden += 1;
            part.w1.extend(&a);
            part.b1.push(narrow(-edge, dtype));
            part.w2.extend(row);
        }
    }
    model.layers[0].feed_forward = if part.hidden > 0 { Some(part) } else { None };
    model
}

/// Token-gated hinges: words and places have codes of +1 and -1, v lies on a dyadic grid, and every unit fires for one
/// (word, place) only, so that gates and projections are exact and only the softmax and the readout round.
fn gated(random: &mut Random, dataset: &Dataset, words: usize, labels: usize, dtype: Dtype) -> Model {
    let (code, places) = (5, 5);
    let (reader, d) = (2 * code, 2 * code + 1 + labels);
    let codes = |random: &mut Random, n: usize, first: usize| -> Vec<f64> {
        let start = random.below(32);
        let bit = |i: usize, c: usize| if (((start + 7 * i) % 32) >> c) & 1 == 0 { -1.0 } else { 1.0 };
        let entry = |i: usize, c: usize| if (first..first + code).contains(&c) { bit(i, c - first) } else { 0.0 };
        (0..n).flat_map(|i| (0..d).map(move |c| (i, c))).map(|(i, c)| entry(i, c)).collect()
    };
    let dyadic = |random: &mut Random| -> Vec<f64> {
        (0..d).map(|c| if c < reader { (random.signed() * 32.0).round() / 64.0 } else { 0.0 }).collect()
    };
    let v = dyadic(random);
    let w_o = (0..d).map(|c| f64::from(u8::from(c == reader))).collect();
    let attention =
        Attention { hard: false, causal: false, heads: 1, size: 1, w_q: dyadic(random), w_k: v.clone(), w_v: v, w_o };
    let (word_codes, place_codes) = (codes(random, words, 0), codes(random, places, code));
    let mut model = Model {
        d,
        dtype,
        max_length: Some(places),
        embedding: Some(embedding(words, word_codes.clone())),
        positions: Some(place_codes.clone()),
        pre_feed_forward: None,
        layers: vec![Layer { attention: Some(attention), feed_forward: None }],
        head: Some(Head {
            labels: (0..labels).map(|i| format!("L{i}")).collect(),
            weight: (0..labels * d).map(|i| f64::from(u8::from(i % d == reader + 1 + i / d))).collect(),
            bias: vec![0.0; labels],
        }),
    };
    let Labels::Classes(classes, _) = &dataset.labels else { unreachable!() };
    let ids = crate::exact::outputs(&model, dataset);
    let mut groups: std::collections::BTreeMap<(usize, usize), Vec<(f64, usize)>> = std::collections::BTreeMap::new();
    for (t, output) in ids.iter().enumerate() {
        let key = (dataset.ids[t] as usize, dataset.locate(t).1);
        groups.entry(key).or_default().push((output[reader], classes[t] as usize));
    }
    let mut part = FeedForward { hidden: 0, w1: vec![], b1: vec![], w2: vec![], b2: vec![0.0; d] };
    for ((word, place), mut contexts) in groups {
        contexts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let gate: Vec<f64> = (0..d).map(|c| word_codes[word * d + c] + place_codes[place * d + c]).collect();
        let mut add = |scale: f64, read: f64, bias: f64, change: &[(usize, f64)]| {
            part.hidden += 1;
            part.w1.extend(gate.iter().enumerate().map(|(c, g)| if c == reader { read } else { scale * g }));
            part.b1.push(narrow(bias, dtype));
            let row =
                |c: usize| change.iter().filter(|(l, _)| c == reader + 1 + l).map(|(_, x)| narrow(*x, dtype)).sum();
            part.w2.extend((0..d).map(row).collect::<Vec<f64>>());
        };
        let whole = (2 * code) as f64;
        add(1.0, 0.0, 1.0 - whole, &[(contexts[0].1, 1.0)]);
        for pair in contexts.windows(2).filter(|pair| pair[0].1 != pair[1].1 && pair[1].0 > pair[0].0) {
            let gap = pair[1].0 - pair[0].0;
            for (edge, sign) in [(pair[0].0 + 0.3 * gap, 1.0), (pair[1].0 - 0.3 * gap, -1.0)] {
                let slope = sign / (0.4 * gap);
                add(4.0, 1.0, -4.0 * whole - edge, &[(pair[1].1, slope), (pair[0].1, -slope)]);
            }
        }
    }
    model.layers[0].feed_forward = Some(part);
    model
}
