//! A compiled model with one weight changed: where a label changes, it is refuted; where none does, it is never refuted.

#[path = "../examples/soundness/floats.rs"]
mod floats;
#[path = "../examples/soundness/random.rs"]
mod random;

use floats::Program;
use monolayer::memorize::{Memorizer, Precision as Stored};
use monolayer_check::dataset::{self, Dataset, Labels};
use monolayer_check::decide::Decision;
use monolayer_check::labels::Pass;
use monolayer_check::model::{self, Model};
use monolayer_check::{Precision, context};
use random::Random;

/// The tokens that count and whose label the model gets wrong, in a program that sums in a random order.
fn wrong(model: &Model, dataset: &Dataset, skip: &[bool], random: &mut Random) -> usize {
    let Labels::Classes(classes, names) = &dataset.labels else { unreachable!() };
    let head = model.head.as_ref().unwrap();
    let vocabulary = &model.embedding.as_ref().unwrap().vocabulary;
    let mut count = 0;
    for i in 0..dataset.sequences() {
        let range = dataset.range(i);
        let ids: Vec<u32> = range.clone().map(|t| vocabulary[&dataset.shown(t)]).collect();
        let labels = Program { random, zero: 0.0_f64 }.labels(model, &ids);
        let right = |t: usize, label: usize| head.labels[label] == names[classes[t] as usize];
        count += range.zip(labels).filter(|&(t, label)| !skip[t] && !right(t, label)).count();
    }
    count
}

/// Changes one weight, by a little or by much.
fn change(model: &mut Model, random: &mut Random) {
    let layer = &mut model.layers[0];
    let (a, f) = (layer.attention.as_mut().unwrap(), layer.feed_forward.as_mut().unwrap());
    let head = model.head.as_mut().unwrap();
    let embedding = &mut model.embedding.as_mut().unwrap().weight;
    let tensors = [
        &mut a.w_q,
        &mut a.w_k,
        &mut a.w_v,
        &mut a.w_o,
        &mut f.w1,
        &mut f.b1,
        &mut f.w2,
        &mut f.b2,
        &mut head.weight,
        &mut head.bias,
        embedding,
    ];
    let which = random.below(tensors.len());
    let at = random.below(tensors[which].len());
    let x = &mut tensors[which][at];
    *x = match random.below(4) {
        0 => -*x,
        1 => *x + 1.0,
        2 => x.next_up(),
        _ => *x * (1.0 + random.signed()) - 0.25,
    };
}

#[test]
fn one_weight_changed() {
    let dir = tempfile::tempdir().unwrap();
    let text = "task:reverse:alphabet=3,length=1..3";
    let data = monolayer::Dataset::open(text).unwrap();
    let memorizer = Memorizer { candidates: 8, precision: Stored::F64, ..Memorizer::default() };
    memorizer.compile(&data, &|_, _| ()).unwrap().save(dir.path().join("model"), &data).unwrap();
    let (honest, _) = model::open(&dir.path().join("model")).unwrap();
    let dataset = dataset::open(text, None).unwrap();
    let contexts = context::contexts(&dataset, honest.positions.is_some(), honest.causal());
    let skip = context::impossible(&contexts, &dataset.labels);
    let mut random = Random(17);
    assert_eq!(wrong(&honest, &dataset, &skip, &mut random), 0);
    let (mut changed, mut tried) = (0, 0);
    while changed < 100 && tried < 5000 {
        tried += 1;
        let mut model = honest.clone();
        change(&mut model, &mut random);
        let broken = wrong(&model, &dataset, &skip, &mut random) > 0;
        changed += usize::from(broken);
        let (precision, first) = (Precision::F64, broken);
        let pass = Pass {
            model: &model,
            dataset: &dataset,
            precision,
            exp_ulp: 4.0,
            tolerance: None,
            skip: &skip,
            first,
            bits: 2048,
            comfortable: 2.0,
        };
        let decisions = pass.run().unwrap().decisions;
        let refuted = decisions.iter().zip(&skip).any(|(d, skip)| !skip && matches!(d, Some(Decision::Wrong(_))));
        assert_eq!(refuted, broken, "change {tried}");
    }
    assert_eq!(changed, 100, "of {tried}");
}
