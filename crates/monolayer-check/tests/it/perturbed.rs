//! A compiled model with one weight changed: where a label changes, it is refuted; where none does, it is never refuted.

use crate::soundness::adapter::{self, Judgment};
use crate::soundness::case::{Arithmetic, Case, Claim, Model, Token, Wanted};
use crate::soundness::graph::Graph;
use crate::soundness::random::Random;
use crate::soundness::{program, read, truth};
use monolayer::{Memorizer, Precision};

const TASK: &str = "task:reverse:alphabet=3,length=1..3";

/// The tokens that a program in a random order gets wrong.
fn wrong(case: &Case, graphs: &[Graph], random: &mut Random) -> Vec<bool> {
    let mut values: Vec<f64> = Vec::new();
    let mut out = Vec::new();
    for (graph, wanted) in graphs.iter().zip(&case.data.wanted) {
        program::run(graph, &program::random(graph, random), &mut values);
        for (scores, wanted) in graph.scores.iter().zip(wanted) {
            let label = program::label(scores.iter().map(|&n| values[n]));
            out.push(label.map(Wanted::Label).as_ref() != Some(wanted));
        }
    }
    out
}

/// Changes one weight, by a little or by much.
fn change(model: &mut Model, random: &mut Random) {
    let mut tensors = model.numbers();
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

fn honest() -> Case {
    let dir = tempfile::tempdir().unwrap();
    let data = monolayer::Dataset::open(TASK).unwrap();
    let memorizer = Memorizer::new().candidates(8).start(false).precision(Precision::F64);
    memorizer.compile(&data).unwrap().save(dir.path().join("model")).unwrap();
    let named = read::model(&dir.path().join("model")).unwrap();
    let (mut sequences, mut wanted) = (vec![], vec![]);
    for range in data.ranges() {
        sequences.push(range.clone().map(|t| Token::Word(named.words[&data.token_text(t)])).collect());
        let label = |t: usize| named.labels.iter().position(|l| *l == data.label_text(t)).unwrap();
        wanted.push(range.map(|t| Wanted::Label(label(t))).collect());
    }
    let data = crate::soundness::case::Data { sequences, wanted };
    Case { kind: "library", model: named.model, data, arithmetic: Arithmetic::Double, claim: Claim::Labels }
}

#[test]
fn one_weight_changed() {
    let honest = honest();
    let graphs = |case: &Case| case.data.sequences.iter().map(|s| Graph::new(&case.model, s)).collect::<Vec<_>>();
    let possible: Vec<bool> = truth::may_be_impossible(&honest.model, &honest.data).iter().map(|x| !x).collect();
    let mut random = Random(17);
    let broken = |case: &Case, graphs: &[Graph], random: &mut Random| {
        wrong(case, graphs, random).iter().zip(&possible).any(|(wrong, possible)| *wrong && *possible)
    };
    assert!(!broken(&honest, &graphs(&honest), &mut random));
    let dir = tempfile::tempdir().unwrap();
    let (mut changed, mut tried) = (0, 0);
    while changed < 100 && tried < 5000 {
        tried += 1;
        let mut case = honest.clone();
        change(&mut case.model, &mut random);
        let graphs = graphs(&case);
        let broken = broken(&case, &graphs, &mut random);
        changed += usize::from(broken);
        let refuted = adapter::judge(&case, &graphs, dir.path()).tokens.contains(&Judgment::Wrong);
        assert_eq!(refuted, broken, "change {tried}");
    }
    assert_eq!(changed, 100, "of {tried}");
}
