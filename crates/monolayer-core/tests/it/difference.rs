//! What is said of two models that differ in hidden units: programs with sums in any order must never show that it is false.

mod ties;
mod toy;

use std::sync::Arc;

use monolayer_core::Stored;
use monolayer_core::claims::difference::{Compared, Comparison};
use monolayer_core::model::{Mask, Model, Numbers, Tensor};
use monolayer_core::read::difference::{Change, Difference};
use monolayer_core::rules::judge::Verdict;
use monolayer_core::rules::network::Network;
use monolayer_core::rules::sum::Arithmetic;
use monolayer_core::rules::two_models::TwoModels;
use toy::{Program, Random, Toy, dyadic, float, label, name, round};

/// A number near 2^scale.
fn scaled(random: &mut Random, single: bool, scale: i32) -> f64 {
    let half = scale / 2;
    round(random.number(single) * 2_f64.powi(half) * 2_f64.powi(scale - half), single)
}

/// A model with codes of words and places, some units, and some units of zeros.
fn draw(random: &mut Random, scale: i32) -> Toy {
    let single = random.below(3) > 0;
    // Sometimes there are many labels, many units, or many coordinates that attention writes to: other rules bound these.
    let [many_labels, many_units, many_coordinates] = [40, 12, 12].map(|one_in| random.below(one_in) == 0);
    let labels = if many_labels { 66 } else { 2 + random.below(2) };
    let (words, spare) = (2 + random.below(3), random.below(3));
    let places = (random.below(2) == 0).then(|| 2 + random.below(2));
    let codes = words + places.unwrap_or(0);
    let hidden = if many_units { 24 } else { random.below(4) + 1 };
    let d = codes + 1 + labels + if many_coordinates { 20 } else { 0 };
    let code = |at: usize, size: f64| (0..d).map(|c| if c == at { size } else { 0.0 }).collect::<Vec<f64>>();
    let size = 2_f64.powi(scale / 2) * 2_f64.powi(scale - scale / 2);
    // Halves alone: scores are often equal.
    let halves = random.below(5) == 0;
    let mut row = |n: usize, few: usize| -> Vec<f64> {
        let mut one = || if random.below(4) < few { 0.0 } else { scaled(random, single, 0) };
        (0..n).map(|_| if halves { (one() * 2.0).round() / 2.0 } else { one() }).collect()
    };
    let mut attention = [row(d, 1), row(d, 1), row(d, 0), code(codes, 1.0)];
    // What attention writes, it does not read.
    attention[..3].iter_mut().for_each(|part| part[codes] = 0.0);
    let written = row(d, 1);
    attention[3][codes + 1 + labels..].copy_from_slice(&written[codes + 1 + labels..]);
    let mut w1: Vec<Vec<f64>> = (0..hidden).map(|_| row(d, 1)).collect();
    let mut w2: Vec<Vec<f64>> = (0..hidden).map(|_| row(d, 2)).collect();
    let mut b1: Vec<f64> = row(hidden, 1).iter().map(|b| b * size).collect();
    let bias: Vec<f64> = row(labels, 1).iter().map(|b| b * size).collect();
    let mixed = random.below(3) == 0;
    let mut head: Vec<Vec<f64>> = (0..labels).map(|l| code(codes + 1 + l, 1.0)).collect();
    head.iter_mut().flatten().filter(|_| mixed).for_each(|w| *w = round(*w + 0.25 * random.number(single), single));
    (0..spare).for_each(|_| {
        w1.push(vec![0.0; d]);
        w2.push(vec![0.0; d]);
        b1.push(0.0);
    });
    let mask = match random.below(4) {
        0 => Mask::None,
        1 => Mask::Prefix(1 + random.below(2)),
        2 => Mask::Band(random.below(2), random.below(2)),
        _ => Mask::Causal,
    };
    Toy {
        single,
        d,
        labels,
        hidden: hidden + spare,
        words: (0..words).map(|w| code(w, size)).collect(),
        places: places.map(|n| (0..n).map(|k| code(words + k, size)).collect()),
        start: (random.below(3) == 0).then(|| random.below(words)),
        mask,
        attention,
        w1,
        b1,
        w2,
        b2: vec![0.0; d],
        head,
        bias,
    }
}

/// The second model: units that fire for one word (at one place), along what the head reads.
fn edit(random: &mut Random, old: &Toy, scale: i32, range: (f64, f64)) -> (Toy, usize, Option<usize>) {
    let (mut new, words) = (old.clone(), old.words.len());
    let start = usize::from(old.start.is_some());
    let place = old.places.as_ref().filter(|_| random.below(4) > 0).map(|p| start + random.below(p.len() - start));
    let word = random.below(words);
    let codes = words + old.places.as_ref().map_or(0, Vec::len);
    let size = 2_f64.powi(scale / 2) * 2_f64.powi(scale - scale / 2);
    let reach = range.0.abs().max(range.1.abs());
    let middle = range.0 + (range.1 - range.0) * random.unit();
    // A bump: up, down, and level again; sometimes only a part of it.
    let width = (range.1 - range.0) * 2_f64.powi(-(random.below(6) as i32));
    let slope = 2_f64.powi(random.below(6) as i32 - 2);
    let to = random.below(old.labels);
    let knots = [(middle - width, 1.0), (middle, -2.0), (middle + width, 1.0)];
    for (knot, height) in knots.into_iter().take(1 + random.below(3)) {
        let mut w1 = vec![0.0; old.d];
        // How much the gate must hold shut, exactly or a little more or less.
        let most = slope * (reach - knot.min(reach)).max(reach + knot.abs());
        let gate = match random.below(4) {
            0 => most / size,
            1 => most / size * (1.0 + 2_f64.powi(-(random.below(30) as i32))),
            2 => most / size * (1.0 - 2_f64.powi(-(random.below(30) as i32))),
            _ => 2.0 * most / size,
        };
        w1[word] = round(gate, old.single);
        let mut bias = -gate * size - slope * knot;
        if let Some(k) = place {
            w1[words + k] = round(gate, old.single);
            bias -= gate * size;
        }
        w1[codes] = round(slope, old.single);
        let mut w2 = vec![0.0; old.d];
        w2[codes + 1 + to] = round(height * 2_f64.powi(random.below(4) as i32 - 1), old.single);
        new.add(w1, round(bias, old.single), w2);
    }
    if random.below(12) == 0 {
        // The last bit of an old unit.
        let j = random.below(old.hidden);
        let b = new.b1[j];
        new.b1[j] = if old.single {
            f64::from(f32::from_bits((b as f32).to_bits() ^ 1))
        } else {
            f64::from_bits(b.to_bits() ^ 1)
        };
    }
    (new, word, place)
}

fn check(old: &Toy, new: &Toy, changes: &[Change], length: Option<usize>) -> Compared {
    let (from, to) = (old.model(), new.model());
    let none = [None, None, None, None];
    let difference = Difference {
        from: none.clone(),
        to: none.clone(),
        format: old.format(),
        appended: true,
        longest: length,
        changes: changes.to_vec(),
    };
    let (from, to) = ((&from, &none), (&to, &none));
    Comparison { from, to, difference: &difference, threads: 1, tick: &|_, _| () }.check().unwrap()
}

/// Whether what two programs give a token is as the changes say.
fn holds(word: usize, place: usize, z: f64, scores: [&[f64]; 2], changes: &[Change], positions: bool) -> bool {
    let named = |c: &&Change| c.word == name(word) && c.place.is_none_or(|own| !positions || own == place);
    let named: Vec<&Change> = changes.iter().filter(named).collect();
    if named.is_empty() {
        return scores[0] == scores[1] || scores[0].iter().any(|s| s.is_nan());
    }
    let [a, b] = scores.map(label);
    let allowed = |c: &&Change| {
        float(c.id.0) <= z
            && z <= float(c.id.1)
            && c.labels.as_ref().is_none_or(|pair| *pair == (format!("L{a}"), format!("L{b}")))
    };
    a == b || named.iter().any(allowed)
}

/// The next number of the format.
fn next(x: f64, single: bool, up: bool) -> f64 {
    match (single, up) {
        (true, true) => f64::from((x as f32).next_up()),
        (true, false) => f64::from((x as f32).next_down()),
        (false, true) => x.next_up(),
        (false, false) => x.next_down(),
    }
}

/// Numbers at which something may turn: the ends of the range and of intervals, where a program changes a label, their neighbors, and some
/// between.
fn ids(random: &mut Random, models: [&Toy; 2], x: &[f64], range: (f64, f64), changes: &[Change]) -> Vec<f64> {
    let (single, units) = (models[0].single, models[0].hidden.max(models[1].hidden));
    let between = |u: f64| round(range.0 + (range.1 - range.0) * u, single);
    let mut all: Vec<f64> = changes.iter().flat_map(|c| [float(c.id.0), float(c.id.1)]).collect();
    let program = Program { seed: random.below(1 << 40) as u64, single };
    let labels = |z: f64| models.map(|toy| label(&program.scores(toy, x, z, units)));
    for i in 0..10 {
        let (mut low, mut high) = (between(f64::from(i) / 10.0), between(f64::from(i + 1) / 10.0));
        if labels(low) != labels(high) {
            for _ in 0..60 {
                let middle = round(low + (high - low) / 2.0, single);
                *(if labels(middle) == labels(low) { &mut low } else { &mut high }) = middle;
            }
            all.extend([low, high]);
        }
    }
    let near = |x: f64| {
        let x = round(x, single);
        let (up, down) = (next(x, single, true), next(x, single, false));
        [x, up, down, next(up, single, true), next(down, single, false)]
    };
    let mut all: Vec<f64> = all.into_iter().flat_map(near).chain([range.0, range.1, 0.0]).collect();
    all.extend((0..8).map(|_| between(random.unit())));
    all.into_iter().filter(|z| range.0 <= *z && *z <= range.1).collect()
}

/// The least and the greatest number that the head can read, as the rule has it.
fn range(old: &Toy, length: usize) -> Option<(f64, f64)> {
    let model = old.model();
    let network = Network::new(&model, Arithmetic::Float { format: old.format(), exp_ulp: 4 })?;
    let words = old.words.iter().map(|word| word.iter().map(|x| dyadic(*x)).collect()).collect();
    let places = old.places.as_ref().map_or(1, Vec::len);
    let seen = length + usize::from(old.start.is_some());
    let models = TwoModels::new([&network, &network], words, places, seen)?;
    let (low, high) = models.numbers();
    Some((float(old.format().number(low)), float(old.format().number(high))))
}

/// Changes that are nearly true: where programs were seen to change labels, with ends that are moved, or one left out.
fn claimed(random: &mut Random, old: &Toy, new: &Toy, pair: (usize, Option<usize>), range: (f64, f64)) -> Vec<Change> {
    let (word, place) = pair;
    let (mut seen, units) = (vec![], old.hidden.max(new.hidden));
    let program = Program { seed: random.0, single: old.single };
    let x = old.input(word, place.unwrap_or(usize::from(old.start.is_some() && old.places.is_some())));
    for i in 0..=64 {
        let z = round(range.0 + (range.1 - range.0) * f64::from(i) / 64.0, old.single);
        let [a, b] = [old, new].map(|toy| label(&program.scores(toy, &x, z, units)));
        seen.push((z, a, b));
    }
    let width = (range.1 - range.0) / 64.0;
    let mut changes: Vec<Change> = vec![];
    // Where this program changes its labels, to the last number, and a few numbers on.
    let edge = |inside: f64, outside: f64, more: usize| {
        let labels = |z: f64| [old, new].map(|toy| label(&program.scores(toy, &x, z, units)));
        let (mut inside, mut outside, own) = (inside, outside, labels(inside));
        for _ in 0..60 {
            let middle = round(inside + (outside - inside) / 2.0, old.single);
            *(if labels(middle) == own { &mut inside } else { &mut outside }) = middle;
        }
        (0..more).fold(inside, |z, _| next(z, old.single, outside > inside))
    };
    for run in seen.chunk_by(|p, q| (p.1, p.2) == (q.1, q.2)).filter(|run| run[0].1 != run[0].2) {
        let more = [width, width, 0.25 * width, 0.0][random.below(4)];
        let (mut low, mut high) = (run[0].0 - more, run[run.len() - 1].0 + more);
        if random.below(3) == 0 {
            low = edge(run[0].0, run[0].0 - width, random.below(5));
            high = edge(run[run.len() - 1].0, run[run.len() - 1].0 + width, random.below(5));
        }
        let labels = (random.below(8) > 0).then(|| (format!("L{}", run[0].1), format!("L{}", run[0].2)));
        changes.push(Change { word: name(word), place, id: (dyadic(low), dyadic(high)), labels });
    }
    match random.below(8) {
        0 => drop(changes.pop()),
        1 | 2 => {
            // Anything may change, somewhere.
            let low = range.0 + (range.1 - range.0) * random.unit();
            let id = (dyadic(low), dyadic(low + 8.0 * width));
            changes.push(Change { word: name(word), place, id, labels: None });
        }
        3 => changes.push(Change {
            word: name(word),
            place,
            id: (dyadic(range.0), dyadic(range.1)),
            labels: Some(("L0".into(), "L1".into())),
        }),
        _ => (),
    }
    if changes.is_empty() && random.below(4) > 0 {
        // The pair is named, and nothing is allowed.
        let labels = Some(("L0".into(), "L0".into()));
        changes.push(Change { word: name(word), place, id: (dyadic(0.0), dyadic(0.0)), labels });
    }
    changes
}

/// Looks for a program and a token that contradict the changes.
fn contradiction(random: &mut Random, old: &Toy, new: &Toy, changes: &[Change], range: (f64, f64)) -> Option<String> {
    let (start, units) = (usize::from(old.start.is_some()), old.hidden.max(new.hidden));
    let places = old.places.as_ref().map_or(0..1, |p| start..p.len());
    for (word, place) in (0..old.words.len()).flat_map(|w| places.clone().map(move |k| (w, k))) {
        let x = old.input(word, place);
        for z in ids(random, [old, new], &x, range, changes) {
            for _ in 0..4 {
                let program = Program { seed: random.below(1 << 40) as u64, single: old.single };
                let [a, b] = [old, new].map(|toy| program.scores(toy, &x, z, units));
                if !holds(word, place, z, [&a, &b], changes, old.places.is_some()) {
                    return Some(format!("{} at {place}, id {z:e}: {a:?} {b:?}", name(word)));
                }
            }
        }
    }
    let longest = old.places.as_ref().map_or(4, |p| p.len() - start);
    for _ in 0..24 {
        let sequence: Vec<usize> = (0..=random.below(longest)).map(|_| random.below(old.words.len())).collect();
        let program = Program { seed: random.below(1 << 40) as u64, single: old.single };
        for (i, z) in program.reads(old, &sequence).into_iter().enumerate() {
            let place = i + start;
            let x = old.input(sequence[i], place);
            let [a, b] = [old, new].map(|toy| program.scores(toy, &x, z, units));
            let within = range.0 <= z && z <= range.1;
            if !within || !holds(sequence[i], place, z, [&a, &b], changes, old.places.is_some()) {
                return Some(format!("{sequence:?}, token {i}, id {z:e} within {range:?}: {a:?} {b:?}"));
            }
        }
    }
    None
}

/// Whether a sequence that refutes the changes does so, in every program that is tried.
fn refutes(random: &mut Random, old: &Toy, new: &Toy, changes: &[Change], why: &str) -> bool {
    let words = why.split('"').nth(1).unwrap();
    let sequence: Vec<usize> = words.split(' ').map(|word| usize::from(word.as_bytes()[0] - b'a')).collect();
    let (start, units, i) = (usize::from(old.start.is_some()), old.hidden.max(new.hidden), sequence.len() - 1);
    (0..8).all(|_| {
        let program = Program { seed: random.below(1 << 40) as u64, single: old.single };
        let z = program.reads(old, &sequence)[i];
        let x = old.input(sequence[i], i + start);
        let [a, b] = [old, new].map(|toy| program.scores(toy, &x, z, units));
        !holds(sequence[i], i + start, z, [&a, &b], changes, old.places.is_some())
    })
}

/// Draws so many pairs of models: how many claims are verified, refuted, unknown; of the verified, how many with changes.
fn run(seed: u64, models: usize) -> [usize; 4] {
    let mut counts = [0; 4];
    for i in 0..models {
        let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(i as u64 * 7919));
        let scale = [0, 0, 0, 0, -20, -70, -120, -140, 30, 60, 100, 125][random.below(12)];
        let old = draw(&mut random, scale);
        let start = usize::from(old.start.is_some());
        let length = old.places.is_none().then(|| 4 + random.below(60));
        let longest = old.places.as_ref().map_or_else(|| length.unwrap(), |p| p.len() - start);
        let Some(range) = range(&old, longest) else { continue };
        let (new, word, place) = edit(&mut random, &old, scale, range);
        if new.b1.iter().chain(new.w1.iter().flatten()).any(|x| !x.is_finite()) {
            continue;
        }
        // Sometimes the units are taken away.
        let (old, new) = if random.below(4) == 0 { (new, old) } else { (old, new) };
        let changes = claimed(&mut random, &old, &new, (word, place), range);
        if changes.iter().any(|c| c.id.0.m == 0 && c.id.1.m == 0 && c.labels.is_none()) {
            continue;
        }
        let found = check(&old, &new, &changes, length);
        match found.verdict {
            Verdict::Right => {
                let fault = contradiction(&mut random, &old, &new, &changes, range);
                assert!(fault.is_none(), "seed {seed}, model {i}, scale {scale}: {} {changes:?}", fault.unwrap());
                counts[0] += 1;
                counts[3] += usize::from(changes.iter().any(|c| c.labels.as_ref().is_some_and(|(a, b)| a != b)));
            }
            Verdict::Wrong => {
                assert!(
                    refutes(&mut random, &old, &new, &changes, &found.why),
                    "seed {seed}, model {i}: {}",
                    found.why
                );
                counts[1] += 1;
            }
            _ => counts[2] += 1,
        }
    }
    counts
}

/// A model at an ordinary scale, with numbers that few bytes hold.
fn plain() -> Toy {
    (0..1000).map(|seed| draw(&mut Random(seed), 0)).find(|toy| toy.single && toy.start.is_none()).unwrap()
}

#[test]
fn numbers_are_compared_and_not_bytes() {
    let toy = plain();
    let (from, none) = (toy.model(), [None, None, None, None]);
    let difference = Difference {
        from: none.clone(),
        to: none.clone(),
        format: toy.format(),
        appended: false,
        longest: None,
        changes: vec![],
    };
    let verdict = |to: &Model| {
        let (from, to) = ((&from, &none), (to, &none));
        Comparison { from, to, difference: &difference, threads: 1, tick: &|_, _| () }.check().unwrap()
    };
    let mut other = from.clone();
    let codes: Vec<u8> = toy.words.concat().iter().map(|x| *x as i8 as u8).collect();
    let shape = vec![toy.words.len(), toy.d];
    other.embedding = Some(Numbers::Floats(Tensor::dense(shape.clone(), Stored::I8, codes.clone())));
    assert_eq!(verdict(&other).verdict, Verdict::Right);
    assert!(verdict(&other).why.contains("no number"));
    // A zero with a sign is a zero.
    let Some(Numbers::Floats(embedding)) = &mut other.embedding else { panic!() };
    embedding.stored = Stored::F32;
    let single = |x: &f64| (if *x == 0.0 { -0.0 } else { *x as f32 }).to_le_bytes();
    embedding.bytes = Arc::new(toy.words.concat().iter().flat_map(single).collect());
    assert_eq!(verdict(&other).verdict, Verdict::Right);
    let mut changed = codes;
    changed[toy.d - 1] = 1;
    other.embedding = Some(Numbers::Floats(Tensor::dense(shape, Stored::I8, changed)));
    assert_ne!(verdict(&other).verdict, Verdict::Right);
}

#[test]
fn without_positions_the_length_is_limited() {
    let toy = (0..1000).map(|seed| draw(&mut Random(seed), 0)).find(|toy| toy.single && toy.places.is_none()).unwrap();
    let mut new = toy.clone();
    let mut w1 = vec![0.0; toy.d];
    w1[0] = 64.0;
    new.add(w1, -32.0, vec![0.0; toy.d]);
    let any = Change { word: name(0), place: None, id: (dyadic(-1e30), dyadic(1e30)), labels: None };
    let found = |length: Option<usize>| check(&toy, &new, std::slice::from_ref(&any), length);
    assert_eq!((found(None).verdict, found(None).length), (Verdict::Right, 1 << 20));
    assert_eq!((found(Some(10)).verdict, found(Some(10)).length), (Verdict::Right, 10));
    // Beyond 2^23 tokens no average of floats of 24 bits is bounded.
    assert_eq!(found(Some(1 << 24)).verdict, Verdict::Unknown);
    assert!(found(Some(1 << 24)).why.contains("was not bounded"));
}

#[test]
fn no_program_contradicts_a_verdict() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let models = number("MONOLAYER_DIFFERENCES").unwrap_or(1000) as usize;
    let [verified, refuted, unknown, changed] = run(number("MONOLAYER_SEED").unwrap_or(12), models);
    println!("{verified} verified ({changed} with changes), {refuted} refuted, {unknown} unknown");
    assert!(
        verified > models / 10 && changed > models / 40 && refuted > models / 40,
        "{verified} {changed} {refuted} {unknown}"
    );
}
