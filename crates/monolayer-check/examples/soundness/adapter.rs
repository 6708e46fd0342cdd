//! The one place that knows the checker: what it says of a case, and what its rules enclose.

use std::fs;
use std::path::Path;

use monolayer_core::Format;
use monolayer_core::claims::{Request, check};
use monolayer_core::exact::real::Rational;
use monolayer_core::model::Model;
use monolayer_core::read::data::{Data, Kind};
use monolayer_core::read::{Limits, certificate, data, directory};
use monolayer_core::rules::attention::{Projected, Seen, project};
use monolayer_core::rules::ball::Ball;
use monolayer_core::rules::judge::{Inputs, Judge, Verdict as Said};
use monolayer_core::rules::network::{Block, Network};
use monolayer_core::rules::sum::Arithmetic as Rules;

use super::case::{Arithmetic, Case, Claim};
use super::draw::scaled;
use super::files;
use super::graph::{Graph, Name, PRE, Stage};

/// Of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgment {
    Right,
    Wrong,
    Unknown,
    Impossible,
}

/// Of a claim, or of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Verified,
    Refuted,
    Unknown,
    Error,
}

/// All numbers from low 2^e to high 2^e.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enclosure {
    pub low: i128,
    pub high: i128,
    pub e: i32,
}

impl Enclosure {
    fn of(ball: Ball) -> Self {
        let (low, high, e) = ball.ends();
        Self { low, high, e }
    }

    /// The least and the greatest binary64 number in it: no number of the format lies between these and the ends, so that
    /// comparing with them is exact.
    pub fn doubles(self) -> (f64, f64) {
        let low = -floor(-self.low, self.e);
        (low.max(f64::MIN), floor(self.high, self.e).min(f64::MAX))
    }
}

/// The greatest binary64 number that is at most m 2^e.
fn floor(m: i128, e: i32) -> f64 {
    let size = 128 - m.unsigned_abs().leading_zeros() as i32;
    let place = (e + size - 53).max(-1074);
    let lost = place - e;
    let (m, e) = if m == 0 || lost <= 0 { (m, e) } else { (m >> lost.min(127), place) };
    // At most 53 bits are left: the products are exact, but for overflow.
    scaled(m as f64, if m == 0 { 0 } else { e.into() })
}

/// What the checker says.
pub struct Found {
    pub verdict: Verdict,
    /// Of the case's own claim, where it is one of a certificate.
    pub claim: Option<Verdict>,
    /// Token by token; empty where tokens were not judged.
    pub tokens: Vec<Judgment>,
    /// By sequence and node of its graph, what holds the quantity in every covered program; none where the checker says
    /// nothing.
    pub enclosures: Vec<Vec<Option<Enclosure>>>,
    /// The report, for people.
    pub text: String,
}

/// Whether the checker reads the second format.
pub const SECOND_FORMAT: bool = true;

/// Bits up to which real arithmetic goes.
const BITS: usize = 4096;

fn verdict(said: Said) -> Verdict {
    match said {
        Said::Right => Verdict::Verified,
        Said::Wrong => Verdict::Refuted,
        Said::Unknown | Said::Free => Verdict::Unknown,
    }
}

fn arithmetic(case: &Case) -> Rules {
    let float = |format| Rules::Float { format, exp_ulp: 4 };
    match case.arithmetic {
        Arithmetic::Single => float(Format::F32),
        Arithmetic::Double => float(Format::F64),
        Arithmetic::Real => Rules::Real,
    }
}

/// Writes the case into a directory and asks.
pub fn judge(case: &Case, graphs: &[Graph], dir: &Path) -> Found {
    files::write(case, dir).expect("a directory to write to");
    let refused = |text| Found { verdict: Verdict::Error, claim: None, tokens: vec![], enclosures: vec![], text };
    asked(case, graphs, dir).unwrap_or_else(refused)
}

/// What the core finds in the files of a case, or why it refuses them.
fn asked(case: &Case, graphs: &[Graph], dir: &Path) -> Result<Found, String> {
    let limits = Limits::default();
    let (model, hashes) = directory::open(dir, &limits).map_err(|why| why.to_string())?;
    let bytes = fs::read(dir.join("data.jsonl")).ok();
    let data = bytes.map(|bytes| data::parse(&bytes, Kind::JsonLines, &limits)).transpose();
    let data = data.map_err(|why| why.to_string())?;
    let bytes = fs::read(dir.join("certificate.json")).ok();
    let certificate = bytes.as_ref().map(|bytes| certificate::parse(bytes, &limits)).transpose();
    let certificate = certificate.map_err(|why| why.to_string())?;
    let named = match arithmetic(case) {
        Rules::Float { format, .. } => Some(format),
        Rules::Real => None,
    };
    let tolerance = match &case.claim {
        Claim::Outputs(tolerance) => Rational::parse(&files::decimal(*tolerance), &mut 1_000_000),
        _ => None,
    };
    let kinds = [kind(&case.claim).to_owned()];
    let judged = matches!(case.claim, Claim::Labels | Claim::Outputs(_));
    let found = check(&Request {
        model: &model,
        hashes: &hashes,
        certificate: certificate.as_ref(),
        data: data.as_ref(),
        arithmetic: Some(named),
        tolerance,
        strict: false,
        kinds: if judged { None } else { Some(&kinds) },
        bits: BITS,
        threads: 1,
        tick: &|_, _| (),
        each: &|_, _, _| (),
    })?;
    let tokens = found.pass.iter().flat_map(|pass| pass.verdicts.iter().zip(&pass.impossible));
    Ok(Found {
        verdict: verdict(found.verdict),
        claim: found.claims.iter().find(|c| c.kind == kinds[0]).map(|c| verdict(c.verdict)),
        tokens: tokens.map(|(verdict, impossible)| judgment(*verdict, *impossible)).collect(),
        enclosures: data.iter().filter(|_| judged).flat_map(|data| enclosures(case, &model, data, graphs)).collect(),
        text: format!("{:?}, {:?}, not checked: {:?}", found.verdict, found.claims, found.not_checked),
    })
}

fn judgment(said: Said, impossible: bool) -> Judgment {
    match said {
        _ if impossible => Judgment::Impossible,
        Said::Right => Judgment::Right,
        Said::Wrong => Judgment::Wrong,
        Said::Unknown | Said::Free => Judgment::Unknown,
    }
}

fn kind(claim: &Claim) -> &'static str {
    match claim {
        Claim::Labels => "labels",
        Claim::Outputs(_) => "outputs",
        Claim::Mapping(..) => "contextual-mapping",
        Claim::Rank(..) => "rank",
        Claim::Distance(..) => "distance",
    }
}

fn enclosures(case: &Case, model: &Model, data: &Data, graphs: &[Graph]) -> Vec<Vec<Option<Enclosure>>> {
    let rules = arithmetic(case);
    let (Ok(inputs), Some(network)) = (Inputs::new(model, data), Network::new(model, rules)) else { return vec![] };
    let judge = Judge { network: &network, inputs: &inputs };
    let one = |(s, graph): (usize, &Graph)| {
        let mut walk = Walk { rules, judge: &judge, model, graph, found: vec![None; graph.nodes.len()] };
        // A step that may overflow ends the walk.
        let _ = walk.sequence(s);
        walk.found
    };
    graphs.iter().enumerate().map(one).collect()
}

/// One sequence through the rules, as the judge goes through it.
struct Walk<'a> {
    rules: Rules,
    judge: &'a Judge<'a>,
    model: &'a Model,
    graph: &'a Graph,
    found: Vec<Option<Enclosure>>,
}

impl Walk<'_> {
    /// Notes the quantities of a stage.
    fn note(&mut self, layer: usize, ball: impl Fn(Name) -> Option<Ball>) {
        for (node, found) in self.graph.nodes.iter().zip(&mut self.found) {
            if node.name.layer == layer && found.is_none() {
                *found = ball(node.name).map(Enclosure::of);
            }
        }
    }

    fn sequence(&mut self, sequence: usize) -> Option<()> {
        let mut tokens = self.judge.tokens(sequence, 0)?;
        self.note(0, |name| (name.stage == Stage::Input).then(|| tokens[name.token][name.index]));
        let first = usize::from(self.model.pre_feed_forward.is_some());
        for (at, block) in self.judge.network.blocks.iter().enumerate() {
            let layer = if at < first { PRE } else { at - first };
            tokens = self.block(block, layer, &tokens)?;
        }
        if let Some((weight, _)) = &self.judge.network.head {
            for (t, y) in tokens.iter().enumerate() {
                for l in 0..weight.rows() {
                    let found = self.judge.network.score(l, y)?.computed();
                    let name = |name: Name| name.stage == Stage::Label && name.token == t && name.index == l;
                    self.note(self.model.layers.len(), |n| name(n).then_some(found));
                }
            }
        }
        Some(())
    }

    fn block(&mut self, block: &Block, layer: usize, tokens: &[Vec<Ball>]) -> Option<Vec<Vec<Ball>>> {
        let heads = self.attention(block, layer, tokens)?;
        let mut after = Vec::new();
        for (t, (x, z)) in tokens.iter().zip(&heads).enumerate() {
            let token = block.skip(self.rules, x, z)?;
            let units = (0..block.hidden()).map(|j| block.unit(self.rules, &token, j)).collect::<Option<Vec<_>>>()?;
            let balls: Vec<(Ball, Ball)> = units.iter().map(|unit| (unit.before, unit.after)).collect();
            let output = block.output(self.rules, &token, units)?;
            self.note(layer, |name| {
                let own = name.token == t;
                match name.stage {
                    Stage::Attended if own => Some(token.whole[name.index]),
                    Stage::Unit if own => Some(balls[name.index].0),
                    Stage::Live if own => Some(balls[name.index].1),
                    Stage::Fed if own => Some(output.whole[name.index]),
                    _ => None,
                }
            });
            after.push(output.whole);
        }
        Some(after)
    }

    /// What every token reads. Weights are known up to a common factor only: their means are compared, not they.
    fn attention(&mut self, block: &Block, layer: usize, tokens: &[Vec<Ball>]) -> Option<Vec<Vec<Ball>>> {
        let Some(attention) = &block.attention else { return Some(vec![vec![]; tokens.len()]) };
        let (n, size, width) = (tokens.len(), attention.size, attention.heads * attention.size);
        let projected: Projected = project(self.rules, attention, tokens)?;
        self.note(layer, |name| {
            let at = name.token * width + name.head * size + name.index;
            match name.stage {
                Stage::Key => Some(projected.keys[at]),
                Stage::Query => Some(projected.queries[at]),
                Stage::Value => Some(projected.values[at]),
                _ => None,
            }
        });
        let mut heads = Vec::new();
        for i in 0..n {
            let seen = Seen::new(&attention.mask, i, n, self.model.start.is_some());
            for head in 0..attention.heads {
                let scores = projected.scores(self.rules, i, &(head * size..(head + 1) * size), &seen)?;
                self.note(layer, |name| {
                    let own = name.stage == Stage::Score && name.token == i && name.head == head;
                    own.then(|| seen.iter().position(|j| j == name.other).map(|at| scores[at])).flatten()
                });
            }
            let z = projected.read(self.rules, attention, i, &seen)?;
            self.note(layer, |name| {
                let own = name.stage == Stage::Mean && name.token == i;
                own.then(|| z[name.head * size + name.index])
            });
            heads.push(z);
        }
        Some(heads)
    }
}
