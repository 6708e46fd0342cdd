//! A short run of the soundness comparison, and its own teeth: `MONOLAYER_SOUNDNESS=10000` makes it long.

use crate::trees;

use crate::soundness::case::{Arithmetic, Claim};
use crate::soundness::cases::{self, Menu};
use crate::soundness::float::Float;
use crate::soundness::graph::Graph;
use crate::soundness::random::Random;
use crate::soundness::sum::{self, Item};
use crate::soundness::{adapter, climb, exact, program, run};

#[test]
fn whatever_is_said_is_so_and_clear_tokens_are_decided() {
    whatever_is_said_is_so(400);
}

#[test]
#[ignore = "slow: tools/test --slow"]
fn whatever_is_said_is_so_of_many_models() {
    whatever_is_said_is_so(std::env::var("MONOLAYER_SOUNDNESS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000));
}

fn whatever_is_said_is_so(models: u64) {
    let menu = Menu { second: adapter::SECOND_FORMAT, wide: false, ..Menu::default() };
    let out = tempfile::tempdir().unwrap();
    let wide = run::run(&Menu { wide: true, ..menu.clone() }, models / 2, 30 * models, 8, out.path()).all;
    assert!(wide.sound(), "{}", wide.text());
    let tally = run::run(&menu, models, 60 * models, 7, out.path()).all;
    assert!(tally.sound(), "{}", tally.text());
    assert!(tally.right > 0 && tally.refuted > 0 && tally.clear > 0, "{}", tally.text());
    assert!(tally.clear_unknown * 20 <= tally.clear, "{}", tally.text());
}

/// Terms of all kinds: small integers, cancellations, subnormal numbers, numbers near the end of the range.
fn terms(random: &mut Random, n: usize) -> Vec<(f32, f32)> {
    let kind = random.below(5);
    let mut one = |i: usize| {
        let x = random.signed() as f32;
        match kind {
            0 => ((random.below(7) as f32) - 3.0, (random.below(7) as f32) - 3.0),
            1 => (x, 2_f32.powi(random.below(40) as i32 - 20)),
            2 => (if i.is_multiple_of(2) { 1.5 } else { -1.5 }, 1.0 + (i / 2) as f32 + x * 1e-6),
            3 => (x * 2_f32.powi(-70), 2_f32.powi(-75 + random.below(6) as i32)),
            _ => (x * 2_f32.powi(60), 2_f32.powi(66 + random.below(2) as i32)),
        }
    };
    (0..n).map(&mut one).collect()
}

#[test]
fn programs_are_among_all_trees_and_climbing_reaches_their_ends() {
    let mut random = Random(3);
    let (mut ends, mut cases) = (0, 0);
    for case in 0..200 {
        let terms = terms(&mut random, 2 + case % 5);
        let bias = random.once_in(2).then(|| terms[0].0);
        let all = trees::reached(&terms, bias);
        let reached = trees::worst_deviation(&terms, bias);
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        for gene in 0..800 {
            let gene = if gene < 400 { random.bits() as u32 } else { (random.bits() as u32 & !15) | (12 + gene % 2) };
            let mut items: Vec<Item<f32>> = terms.iter().map(|&(w, x)| Item::Product(w, x)).collect();
            items.extend(bias.map(Item::Value));
            let sum = sum::add(&mut items, gene);
            assert!(all.contains(&sum.to_bits()), "{terms:?} {bias:?}: {sum} along {gene} is along no tree");
            (low, high) = (low.min(sum), high.max(sum));
        }
        cases += 1;
        ends += usize::from(low <= reached.low && high >= reached.high);
    }
    assert!(ends * 10 >= cases * 9, "greedy trees reach both ends of {ends} of {cases} sums");
}

#[test]
fn exponentials_move_by_their_ulps_and_no_more() {
    for x in [0.0_f32, -1e-8, -0.3, -1.0, -5.7, -87.0, -87.4, -95.0, -103.0, -104.5, -1e6] {
        let exact = core_math::exp(f64::from(x));
        let unit = if exact > 0.0 { 2_f64.powi(exact.log2().floor() as i32 - 23) } else { 0.0 }.max(2_f64.powi(-149));
        let moved: Vec<f32> = (-4..=4).map(|steps| x.exp_moved(steps)).collect();
        assert!(moved.iter().all(|&y| y >= 0.0 && (f64::from(y) - exact).abs() <= 4.0 * unit), "{x}: {moved:?}");
        assert!(moved[8] > moved[4], "{x}");
    }
    let x = -0.5_f64;
    assert!(x.exp_moved(3) > core_math::exp(x) && x.exp_moved(-3) < core_math::exp(x));
}

#[test]
fn programs_agree_with_exact_arithmetic_to_a_textbook_bound() {
    let menu =
        Menu { kinds: vec!["labels"], scales: vec![crate::soundness::draw::SCALES[0]], second: true, wide: false };
    let mut compared = 0;
    for seed in 0..120 {
        let mut random = Random(50 + seed);
        let case = cases::case(&mut random, &menu);
        for sequence in &case.data.sequences {
            let graph = Graph::new(&case.model, sequence);
            let mut values: Vec<f64> = Vec::new();
            program::run(&graph, &program::random(&graph, &mut random), &mut values);
            let Some(real) = exact::run(&graph) else { continue };
            for &node in graph.scores.iter().flatten() {
                let Some(bound) = climb::textbook(&graph, &values, &vec![(node, 1.0)], false) else { continue };
                let off = (real[node].mid.to_f64().value() - values[node]).abs();
                assert!(off <= 20.0 * bound, "seed {seed}: off by {off:e}, the bound is {bound:e}");
                compared += 1;
            }
        }
    }
    assert!(compared > 200);
}

#[test]
fn a_verdict_about_another_arithmetic_is_contradicted() {
    // What holds of binary64 is said of binary32: some program must show that it is not so.
    let menu = Menu { kinds: vec!["labels"], ..Menu::default() };
    let mut contradicted = 0;
    for seed in 0..300 {
        let mut random = Random(9000 + seed);
        let mut case = cases::case(&mut random, &menu);
        case.arithmetic = Arithmetic::Double;
        case.claim = Claim::Labels;
        let graphs: Vec<Graph> = case.data.sequences.iter().map(|s| Graph::new(&case.model, s)).collect();
        let dir = tempfile::tempdir().unwrap();
        let found = adapter::judge(&case, &graphs, dir.path());
        case.arithmetic = Arithmetic::Single;
        let outcome = crate::soundness::compare::against(&case, &graphs, &found, 60, &mut random);
        contradicted += usize::from(!outcome.tally.sound());
    }
    assert!(contradicted > 5, "only {contradicted} of 300 were contradicted");
}
