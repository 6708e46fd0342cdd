//! The comparison: whatever the checker says of a case, against what programs do and what exact arithmetic says.

use std::path::Path;

use super::adapter::{self, Enclosure, Found, Judgment, Verdict};
use super::case::{Arithmetic, Case, Claim, Wanted};
use super::cases::matrices;
use super::climb::{self, Target};
use super::float::Float;
use super::graph::{Graph, Stage};
use super::random::Random;
use super::tally::Tally;
use super::{exact, functions, program, truth};

/// What was found wrong with the checker's answer about one case.
#[derive(Default)]
pub struct Outcome {
    pub tally: Tally,
    /// What kind of fault, and the details; the first few of each kind.
    pub faults: Vec<(&'static str, String)>,
    /// What the checker wrote.
    pub report: String,
}

impl Outcome {
    fn wrong(&mut self, kind: &'static str, what: String) {
        self.tally.wrong += 1;
        self.fault(kind, what);
    }

    fn fault(&mut self, kind: &'static str, what: String) {
        if self.faults.iter().filter(|(k, _)| *k == kind).count() < 2 {
            self.faults.push((kind, what));
        }
    }
}

/// Runs one case; about so many evaluations are spent on programs.
pub fn compare(case: &Case, evaluations: usize, random: &mut Random, dir: &Path) -> Outcome {
    let graphs: Vec<Graph> = case.data.sequences.iter().map(|s| Graph::new(&case.model, s)).collect();
    let found = adapter::judge(case, &graphs, dir);
    let outcome = against(case, &graphs, &found, evaluations, random);
    Outcome { report: found.text, ..outcome }
}

/// The same for an answer that is given.
pub fn against(case: &Case, graphs: &[Graph], found: &Found, evaluations: usize, random: &mut Random) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.tally.models = 1;
    match found.verdict {
        Verdict::Error => {
            outcome.tally.errors += 1;
            return outcome;
        }
        Verdict::Verified => outcome.tally.claims_verified += 1,
        Verdict::Refuted => outcome.tally.claims_refuted += 1,
        Verdict::Unknown => outcome.tally.claims_unknown += 1,
    }
    outcome.tally.count(&found.tokens);
    let open = found.tokens.iter().any(|j| matches!(j, Judgment::Wrong | Judgment::Unknown));
    if found.verdict == Verdict::Verified && open {
        outcome.wrong("overall", "verified, although not every token is".into());
    }
    match &case.claim {
        Claim::Labels | Claim::Outputs(_) => {
            let may = truth::may_be_impossible(&case.model, &case.data);
            for (t, (judgment, may)) in found.tokens.iter().zip(may).enumerate() {
                if *judgment == Judgment::Impossible && !may {
                    outcome.wrong("impossible", format!("token {t} is called impossible and is not"));
                }
            }
            match case.arithmetic {
                Arithmetic::Single => floats::<f32>(case, graphs, found, evaluations, random, &mut outcome),
                Arithmetic::Double => floats::<f64>(case, graphs, found, evaluations, random, &mut outcome),
                Arithmetic::Real => real(case, graphs, found, &mut outcome),
            }
        }
        &Claim::Mapping(layer, r, delta) => {
            if let Some((most, least)) = truth::mapping(&case.model, &case.data, layer) {
                let truth = if most < r && least > delta { Verdict::Verified } else { Verdict::Refuted };
                one(found, truth, &mut outcome, &format!("largest norm 2^{most}, smallest gap 2^{least}"));
            }
        }
        Claim::Rank(tensor, rank) => {
            let all = matrices(&case.model, tensor);
            let holds = all.iter().all(|(rows, columns, data)| truth::rank(data, *rows, *columns) == *rank);
            let truth = if holds { Verdict::Verified } else { Verdict::Refuted };
            one(found, truth, &mut outcome, "the rank is another");
        }
        &Claim::Distance(_, bound, function, length) => {
            let (measured, error) = functions::distance(&case.model, function, length);
            if (measured - bound).abs() > error {
                let truth = if measured < bound { Verdict::Verified } else { Verdict::Refuted };
                one(found, truth, &mut outcome, &format!("the distance is {measured} +- {error}"));
            }
        }
    }
    outcome
}

/// A claim whose truth is known.
fn one(found: &Found, truth: Verdict, outcome: &mut Outcome, why: &str) {
    let said = found.claim.unwrap_or(found.verdict);
    outcome.tally.evaluations += 1;
    let decided = matches!(said, Verdict::Verified | Verdict::Refuted);
    if decided && said != truth || found.verdict == Verdict::Verified && truth == Verdict::Refuted {
        let kind = if truth == Verdict::Refuted { "claim verified" } else { "claim refuted" };
        outcome.wrong(kind, format!("said {said:?}, it is {truth:?}: {why}"));
    }
}

/// What a token's program makes of what was wanted: right, wrong, or nothing that counts.
fn right<F: Float>(case: &Case, graph: &Graph, place: usize, wanted: &Wanted, values: &[F]) -> bool {
    let nodes = if graph.scores.is_empty() { &graph.outputs[place] } else { &graph.scores[place] };
    match wanted {
        Wanted::Label(l) => program::label(nodes.iter().map(|&n| values[n].wide())) == Some(*l),
        Wanted::Output(y) => {
            let Claim::Outputs(tolerance) = case.claim else { return false };
            nodes.iter().zip(y).all(|(&n, &y)| truth::within(values[n].wide(), y, tolerance))
        }
    }
}

/// Programs in binary32 or binary64.
fn floats<F: Float>(
    case: &Case,
    graphs: &[Graph],
    found: &Found,
    evaluations: usize,
    random: &mut Random,
    outcome: &mut Outcome,
) {
    let mut first = 0;
    let each = (evaluations / graphs.len().max(1)).max(8);
    for (s, graph) in graphs.iter().enumerate() {
        let wanted = &case.data.wanted[s];
        let judged = found.tokens.get(first..first + wanted.len()).unwrap_or(&[]);
        let bounds = found.enclosures.get(s).map_or(&[][..], |all| all);
        let bounds = bounds.iter().map(|enclosure| enclosure.map(Enclosure::doubles)).collect();
        let right = vec![0; wanted.len()];
        let mut watch = Watch { case, graph, wanted, judged, bounds, sequence: s, outcome, right, runs: 0 };
        let mut values: Vec<F> = Vec::new();
        program::run(graph, &program::plain(graph), &mut values);
        watch.see(&values);
        let plain: Vec<f64> = values.iter().map(|x| x.wide()).collect();
        let mut left = each - 1;
        while left > 0 {
            let target = target(case, graph, wanted, judged, &plain, random);
            let spend = left.min(5 + random.below(12)).max(2);
            climb::climb::<F>(graph, &target, spend, random, |values| watch.see(values));
            left = left.saturating_sub(spend);
        }
        watch.clear(&plain);
        first += wanted.len();
    }
}

/// Something worth pushing: a margin, a score against another in hardmax, or any quantity.
fn target(
    case: &Case,
    graph: &Graph,
    wanted: &[Wanted],
    judged: &[Judgment],
    plain: &[f64],
    random: &mut Random,
) -> Target {
    let place = random.below(wanted.len());
    let sign = if random.once_in(2) { 1.0 } else { -1.0 };
    match random.below(6) {
        0..=2 => match &wanted[place] {
            Wanted::Label(l) if !graph.scores.is_empty() => {
                let scores = &graph.scores[place];
                let own = (*l).min(scores.len() - 1);
                let others = (0..scores.len()).filter(|&o| o != own);
                let best = others.max_by(|&a, &b| plain[scores[a]].total_cmp(&plain[scores[b]])).unwrap_or(own);
                let other = if random.once_in(3) { random.below(scores.len()) } else { best };
                // Away from what the checker says.
                let sign = match judged.get(place) {
                    Some(Judgment::Right) => 1.0,
                    Some(Judgment::Wrong) => -1.0,
                    _ => sign,
                };
                vec![(scores[other], sign), (scores[own], -sign)]
            }
            _ => {
                let nodes = if graph.scores.is_empty() { &graph.outputs[place] } else { &graph.scores[place] };
                vec![(nodes[random.below(nodes.len())], sign)]
            }
        },
        3 if case.model.layers.iter().any(|l| l.attention.as_ref().is_some_and(|a| a.hard)) => {
            let is_score = |i: &usize| graph.nodes[*i].name.stage == Stage::Score;
            let scores: Vec<usize> = (0..graph.nodes.len()).filter(is_score).collect();
            let a = scores[random.below(scores.len())];
            let name = graph.nodes[a].name;
            let same = |i: &&usize| {
                let other = graph.nodes[**i].name;
                (other.layer, other.token, other.head) == (name.layer, name.token, name.head)
            };
            let peers: Vec<usize> = scores.iter().filter(same).copied().collect();
            vec![(a, sign), (peers[random.below(peers.len())], -sign)]
        }
        _ => vec![(random.below(graph.nodes.len()), sign)],
    }
}

/// One sequence and all its runs.
struct Watch<'a> {
    case: &'a Case,
    graph: &'a Graph,
    wanted: &'a [Wanted],
    judged: &'a [Judgment],
    /// The ends of what is enclosed.
    bounds: Vec<Option<(f64, f64)>>,
    sequence: usize,
    outcome: &'a mut Outcome,
    right: Vec<usize>,
    runs: usize,
}

impl Watch<'_> {
    fn see<F: Float>(&mut self, values: &[F]) {
        self.runs += 1;
        self.outcome.tally.evaluations += 1;
        for ((value, bounds), node) in values.iter().zip(&self.bounds).zip(&self.graph.nodes) {
            let Some((low, high)) = *bounds else { continue };
            let x = value.wide();
            if !(low <= x && x <= high) {
                self.outcome.tally.outside += 1;
                let what = format!("sequence {}: {:?} is {x:e}, not in [{low:e}, {high:e}]", self.sequence, node.name);
                self.outcome.fault("outside", what);
            }
        }
        for place in 0..self.wanted.len() {
            let right = right(self.case, self.graph, place, &self.wanted[place], values);
            self.right[place] += usize::from(right);
            let contradicted = match self.judged.get(place) {
                Some(Judgment::Right) => !right,
                Some(Judgment::Wrong) => right,
                _ => false,
            };
            if contradicted {
                let said = self.judged[place];
                let scores = self.graph.scores.get(place).unwrap_or(&self.graph.outputs[place]);
                let shown: Vec<f64> = scores.iter().map(|&n| values[n].wide()).collect();
                let wanted = &self.wanted[place];
                let kind = match said {
                    _ if shown.iter().any(|x| x.is_nan()) => "verified, not a number",
                    Judgment::Right if shown.iter().any(|x| x.is_infinite()) => "verified, infinite",
                    Judgment::Right => "verified, wrong",
                    _ => "refuted, right",
                };
                let what = format!("place {place}: said {said:?}, wanted {wanted:?}, a program has {shown:?}");
                self.outcome.wrong(kind, format!("sequence {} {what}", self.sequence));
            }
        }
    }

    /// Counts tokens that no rounding can turn, and those of them that stayed open.
    fn clear(&mut self, plain: &[f64]) {
        let single = self.case.arithmetic == Arithmetic::Single;
        for (place, nodes) in self.graph.scores.iter().enumerate() {
            let Wanted::Label(own) = self.wanted[place] else { continue };
            let judgment = self.judged.get(place);
            if own >= nodes.len()
                || ![0, self.runs].contains(&self.right[place])
                || judgment == Some(&Judgment::Impossible)
            {
                continue;
            }
            let far = |other: usize| {
                let target = vec![(nodes[own], 1.0), (nodes[other], -1.0)];
                let margin = climb::height(&target, plain);
                climb::textbook(self.graph, plain, &target, single).is_some_and(|bound| margin.abs() > 8.0 * bound)
            };
            if (0..nodes.len()).filter(|&o| o != own).all(far) {
                self.outcome.tally.clear += 1;
                self.outcome.tally.clear_unknown += usize::from(judgment == Some(&Judgment::Unknown));
            }
        }
    }
}

/// Real arithmetic, to as many bits as it takes.
fn real(case: &Case, graphs: &[Graph], found: &Found, outcome: &mut Outcome) {
    let mut t = 0;
    for (s, (graph, wanted)) in graphs.iter().zip(&case.data.wanted).enumerate() {
        let values = exact::run(graph);
        outcome.tally.evaluations += 1;
        let enclosed = found.enclosures.get(s).into_iter().flatten().zip(values.iter().flatten()).zip(&graph.nodes);
        for ((enclosure, value), node) in enclosed {
            if enclosure.is_some_and(|e| exact::apart(value, [e.low, e.high], e.e)) {
                outcome.tally.outside += 1;
                let what = format!("sequence {s}: {:?} is {:?}, not in {enclosure:?}", node.name, value.mid);
                outcome.fault("outside", what);
            }
        }
        for (place, wanted) in wanted.iter().enumerate() {
            let truth = values.as_ref().and_then(|values| match wanted {
                Wanted::Label(l) => {
                    let scores: Vec<_> = graph.scores[place].iter().map(|&n| &values[n]).collect();
                    exact::label(&scores).map(|label| label == *l)
                }
                Wanted::Output(y) => {
                    let Claim::Outputs(tolerance) = case.claim else { return None };
                    let nodes = if graph.scores.is_empty() { &graph.outputs[place] } else { &graph.scores[place] };
                    let near = nodes.iter().zip(y).map(|(&n, &y)| exact::near(&values[n], y, tolerance));
                    near.collect::<Option<Vec<bool>>>().map(|all| all.into_iter().all(|x| x))
                }
            });
            let contradicted = matches!(
                (found.tokens.get(t), truth),
                (Some(Judgment::Right), Some(false)) | (Some(Judgment::Wrong), Some(true))
            );
            if contradicted {
                let kind = if truth == Some(true) { "refuted, right" } else { "verified, wrong" };
                outcome
                    .wrong(kind, format!("token {t}: said {:?} in real arithmetic, it is otherwise", found.tokens[t]));
            }
            t += 1;
        }
    }
}
