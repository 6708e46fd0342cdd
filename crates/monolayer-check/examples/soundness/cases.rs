//! Cases: a random model, its data, and something claimed about it, often nearly true or nearly false.

use super::case::{Arithmetic, Case, Claim, Head, Model, Wanted};
use super::climb;
use super::draw::{Draw, SCALES, Scale};
use super::exact;
use super::float::Float;
use super::graph::{Graph, Stage};
use super::program;
use super::random::Random;
use super::truth;
use super::{compiled, functions};

/// The kinds of claims, for the command line.
pub const KINDS: [&str; 8] = ["labels", "outputs", "mapping", "rank", "distance", "compiled", "gated", "library"];

/// What may be drawn.
#[derive(Debug, Clone)]
pub struct Menu {
    pub kinds: Vec<&'static str>,
    pub scales: Vec<(Scale, &'static str)>,
    /// Whether the checker knows the second format.
    pub second: bool,
    /// Whether models may have many coordinates.
    pub wide: bool,
}

impl Default for Menu {
    fn default() -> Self {
        Self { kinds: KINDS.to_vec(), scales: SCALES.to_vec(), second: false, wide: true }
    }
}

fn arithmetic(random: &mut Random, single: bool) -> Arithmetic {
    match random.below(7) {
        0 => Arithmetic::Real,
        1 => Arithmetic::Double,
        _ if single => Arithmetic::Single,
        _ => Arithmetic::Double,
    }
}

/// Half of all cases are about labels, whatever else is on the menu.
pub fn case(random: &mut Random, menu: &Menu) -> Case {
    let single = random.below(3) > 0;
    let (scale, name) = menu.scales[random.below(menu.scales.len())];
    let mut kind = menu.kinds[random.below(menu.kinds.len())];
    if menu.kinds.contains(&"labels") && random.once_in(2) {
        kind = "labels";
    }
    let arithmetic = arithmetic(random, single);
    match kind {
        "compiled" | "gated" | "library" => compiled::case(random, kind, single, arithmetic),
        "distance" => functions::case(random, single),
        "labels" => {
            let labels = 2 + random.below(3);
            let mut draw = Draw::new(random, single, scale).wide(menu.wide);
            let model = draw.model(Some(labels), menu.second);
            let data = draw.sequences(&model);
            let mut case = Case { kind: name, model, data, arithmetic, claim: Claim::Labels };
            if random.once_in(3) {
                hinge(&mut case, random);
            }
            label(&mut case, random, 8);
            if random.once_in(3) {
                tune(&mut case, random);
            }
            case
        }
        "outputs" => outputs(Draw::new(random, single, scale).wide(menu.wide), name, arithmetic, menu.second),
        "mapping" => mapping(Draw::new(random, single, scale), name),
        _ => rank(Draw::new(random, single, scale), name),
    }
}

/// The outputs (scores where there is a head) of one program, by sequence and token.
fn one_program(case: &Case, random: &mut Random) -> Vec<Vec<Vec<f64>>> {
    fn of<F: Float>(case: &Case, random: &mut Random) -> Vec<Vec<Vec<f64>>> {
        let mut values: Vec<F> = Vec::new();
        let mut out = Vec::new();
        for sequence in &case.data.sequences {
            let graph = Graph::new(&case.model, sequence);
            let genes = program::random(&graph, random);
            program::run(&graph, &genes, &mut values);
            let nodes = if graph.scores.is_empty() { &graph.outputs } else { &graph.scores };
            out.push(nodes.iter().map(|t| t.iter().map(|&n| values[n].wide()).collect()).collect());
        }
        out
    }
    match case.arithmetic {
        Arithmetic::Single => of::<f32>(case, random),
        Arithmetic::Double | Arithmetic::Real => of::<f64>(case, random),
    }
}

/// Labels that a program gives, but for one in so many.
pub fn label(case: &mut Case, random: &mut Random, flip: usize) {
    let rows = case.model.head.as_ref().map_or(1, |h| h.rows);
    let mut wanted = Vec::new();
    let scores = one_program(case, random);
    for (sequence, scores) in case.data.sequences.iter().zip(scores) {
        let own = |scores: &[f64]| program::label(scores.iter().copied()).unwrap_or(0);
        let mut labels: Vec<usize> = scores.iter().map(|s| own(s)).collect();
        if case.arithmetic == Arithmetic::Real {
            let graph = Graph::new(&case.model, sequence);
            if let Some(values) = exact::run(&graph) {
                for (label, nodes) in labels.iter_mut().zip(&graph.scores) {
                    let scores: Vec<_> = nodes.iter().map(|&n| &values[n]).collect();
                    *label = exact::label(&scores).unwrap_or(*label);
                }
            }
        }
        let flipped = |l: usize, random: &mut Random| if random.once_in(flip) { random.below(rows + 1) } else { l };
        wanted.push(labels.into_iter().map(|l| Wanted::Label(flipped(l, random))).collect());
    }
    case.data.wanted = wanted;
}

/// Moves biases of the last hidden units so that many of them are about to turn on or off at some token.
fn hinge(case: &mut Case, random: &mut Random) {
    let sequence = &case.data.sequences[random.below(case.data.sequences.len())];
    let graph = Graph::new(&case.model, sequence);
    let mut values: Vec<f64> = Vec::new();
    program::run(&graph, &program::plain(&graph), &mut values);
    let (token, single) = (random.below(sequence.len()), case.model.single);
    let layer = case.model.layers.len() - 1;
    let Some(block) = &mut case.model.layers[layer].block else { return };
    for (node, value) in graph.nodes.iter().zip(&values) {
        let name = node.name;
        let own = name.stage == Stage::Unit && name.layer == layer && name.token == token;
        if own && value.is_finite() && random.once_in(2) {
            let bias = block.b1[name.index] - value * [1.0, 1.0 - 1e-7, 1.0 + 1e-7, 0.999][random.below(4)];
            let bias = if single { f64::from(bias as f32) } else { bias };
            block.b1[name.index] = if bias.is_finite() { bias } else { block.b1[name.index] };
        }
    }
}

/// Moves a bias so that one token is right in most programs and wrong in those that climb: a bound that is a little too small
/// then verifies what is wrong.
fn tune(case: &mut Case, random: &mut Random) {
    fn farthest<F: Float>(case: &Case, at: (usize, usize), random: &mut Random) -> Option<(usize, usize, f64)> {
        let graph = Graph::new(&case.model, &case.data.sequences[at.0]);
        let mut values: Vec<F> = Vec::new();
        program::run(&graph, &program::plain(&graph), &mut values);
        let scores = &graph.scores[at.1];
        let own = program::label(scores.iter().map(|&n| values[n].wide()))?;
        let other = (own + 1 + random.below(scores.len() - 1)) % scores.len();
        let target = vec![(scores[other], 1.0), (scores[own], -1.0)];
        let mut most = f64::NEG_INFINITY;
        climb::climb::<F>(&graph, &target, 40, random, |values| most = most.max(climb::height(&target, values)));
        Some((own, other, most))
    }
    let sequence = random.below(case.data.sequences.len());
    let at = (sequence, random.below(case.data.sequences[sequence].len()));
    // A second round takes the rounding of the new bias into account.
    for _ in 0..2 {
        let found = match case.arithmetic {
            Arithmetic::Single => farthest::<f32>(case, at, random),
            Arithmetic::Double => farthest::<f64>(case, at, random),
            Arithmetic::Real => None,
        };
        let (Some((own, other, most)), Some(head)) = (found, case.model.head.as_mut()) else { return };
        let moved =
            if case.model.single { f64::from((head.bias[other] - most) as f32) } else { head.bias[other] - most };
        if !moved.is_finite() {
            return;
        }
        head.bias[other] = moved;
        case.data.wanted[at.0][at.1] = Wanted::Label(own);
    }
}

fn outputs(mut draw: Draw, kind: &'static str, arithmetic: Arithmetic, second: bool) -> Case {
    let mut model = draw.model(None, second);
    if second && draw.random.once_in(2) {
        let rows = 1 + draw.random.below(4);
        let (weight, bias) = (draw.numbers(rows * model.d, 0, model.d), draw.numbers(rows, 0, 1));
        model.head = Some(Head { labels: false, rows, weight, bias });
    }
    let data = draw.sequences(&model);
    let mut case = Case { kind, model, data, arithmetic, claim: Claim::Outputs(0.0) };
    let finite = |x: f64| if x.is_finite() { x } else { 0.0 };
    let first = one_program(&case, draw.random);
    let single = arithmetic == Arithmetic::Single;
    let size = first.iter().flatten().flatten().fold(0.0, |a: f64, x| a.max(finite(*x).abs()));
    // Targets off by nothing, by a rounding, or by more.
    let off = size * [0.0, 1e-16, 1e-7, 1e-3, 1.0][draw.random.below(5)];
    let target = |x: f64, random: &mut Random| {
        let y = finite(finite(x) + off * random.signed());
        if single { f64::from(y as f32) } else { y }
    };
    case.data.wanted = first
        .iter()
        .map(|s| {
            s.iter().map(|t| Wanted::Output(t.iter().map(|&x| finite(target(x, draw.random))).collect())).collect()
        })
        .collect();
    let mut reached: f64 = 0.0;
    for _ in 0..4 {
        let outputs = one_program(&case, draw.random);
        for (x, wanted) in outputs.iter().flatten().zip(case.data.wanted.iter().flatten()) {
            let Wanted::Output(y) = wanted else { continue };
            reached = x.iter().zip(y).fold(reached, |most, (x, y)| most.max((x - y).abs()));
        }
    }
    let factor = [0.5, 1.0 - 1e-3, 1.0, 1.0 + 1e-3, 1.25, 4.0, 1e3][draw.random.below(7)];
    let tolerance = finite(reached * factor).max(if draw.random.once_in(2) { 0.0 } else { f64::from_bits(1) });
    case.claim = Claim::Outputs(tolerance);
    case
}

fn mapping(mut draw: Draw, kind: &'static str) -> Case {
    let mut model: Model;
    loop {
        model = draw.model(None, false);
        if model.layers[0].attention.is_some() {
            break;
        }
    }
    let data = draw.sequences(&model);
    let (r, delta) = truth::mapping(&model, &data, 0).unwrap_or((0.0, -10.0));
    let offset = |random: &mut Random| {
        let sign = if random.once_in(3) { -1.0 } else { 1.0 };
        sign * [1e-6, 1e-3, 0.1, 1.0, 40.0][random.below(5)]
    };
    let finite = |x: f64, other: f64| if x.is_finite() { x } else { other };
    let log2_r = finite(r, -2000.0) + offset(draw.random);
    let log2_delta = finite(delta, -3000.0) - offset(draw.random);
    Case { kind, model, data, arithmetic: Arithmetic::Real, claim: Claim::Mapping(0, log2_r, log2_delta) }
}

/// The matrices of a tensor: one per head in attention.
pub fn matrices(model: &Model, tensor: &str) -> Vec<(usize, usize, Vec<f64>)> {
    let found = model.tensors().into_iter().find(|(name, ..)| name == tensor);
    let Some((_, shape, data)) = found else { return vec![] };
    match shape[..] {
        [rows, columns] => vec![(rows, columns, data.clone())],
        [_, rows, columns] => data.chunks_exact(rows * columns).map(|m| (rows, columns, m.to_vec())).collect(),
        _ => vec![],
    }
}

fn rank(mut draw: Draw, kind: &'static str) -> Case {
    let mut model = draw.model(Some(2), false);
    // Rows that are multiples of others, or nearly.
    let near = draw.random.once_in(2);
    for a in model.layers.iter_mut().filter_map(|l| l.attention.as_mut()) {
        let d = model.d;
        for r in 1..a.heads * a.size {
            for c in 0..d {
                a.w_k[r * d + c] = draw.fit(a.w_k[c] * 2_f64.powi(r as i32 - 2));
            }
        }
        if near {
            let at = draw.random.below(a.w_k.len());
            a.w_k[at] =
                draw.fit(if draw.single { f64::from((a.w_k[at] as f32).next_up()) } else { a.w_k[at].next_up() });
        }
    }
    let names: Vec<String> =
        model.tensors().iter().filter(|(_, shape, _)| shape.len() > 1).map(|(name, ..)| name.clone()).collect();
    let preferred: Vec<String> = names.iter().filter(|n| n.ends_with("w_k")).cloned().collect();
    let from = if preferred.is_empty() || draw.random.once_in(3) { &names } else { &preferred };
    let tensor = from[draw.random.below(from.len())].clone();
    let (rows, columns, data) = matrices(&model, &tensor).swap_remove(0);
    let found = truth::rank(&data, rows, columns);
    let claimed = if draw.random.once_in(2) { found } else { found.saturating_sub(1) + draw.random.below(3) };
    let data = draw.sequences(&model);
    let mut case = Case { kind, model, data, arithmetic: Arithmetic::Real, claim: Claim::Labels };
    label(&mut case, draw.random, 1 << 40);
    case.claim = Claim::Rank(tensor, claimed);
    case
}
