//! The pass over all tokens: coarse bounds first, careful ones where those leave a token open, big floats for real arithmetic.

use rayon::prelude::*;

use crate::big::Escalation;
use crate::dataset::{Dataset, Labels};
use crate::decide::{Decision, Failure, Wanted, decide};
use crate::dot::Care;
use crate::error::{Error, Result};
use crate::feed_forward::Output;
use crate::forward::{Network, Query, Rows};
use crate::model::{Dtype, Model};
use crate::plan::{self, Asked, Block};
use crate::rounding::{Precision, Rounding};

/// A margin of this many error bounds is not looked at more carefully, unless more is claimed.
pub const COMFORTABLE: f64 = 2.0;

/// At most this many evaluations go on to big floats.
const ESCALATIONS: usize = 4096;

/// How every token fared, in one arithmetic.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// By token; none where `first` stopped the pass before it.
    pub decisions: Vec<Option<Decision>>,
    /// The smallest margin over its error bound among the tokens that hold.
    pub smallest_ratio: f64,
}

/// What to check and how.
pub struct Pass<'a> {
    /// The model, its numbers as stored.
    pub model: &'a Model,
    /// The data.
    pub dataset: &'a Dataset,
    /// The arithmetic.
    pub precision: Precision,
    /// The error of the program's exp, in units in the last place.
    pub exp_ulp: f64,
    /// For vector outputs.
    pub tolerance: Option<f64>,
    /// Tokens that do not count.
    pub skip: &'a [bool],
    /// Stop after the first block with a refuted token that counts.
    pub first: bool,
    /// Bits up to which real arithmetic escalates.
    pub bits: usize,
    /// A token whose margin is this many coarse error bounds is not looked at more carefully.
    pub comfortable: f64,
}

impl Pass<'_> {
    /// Decides every token.
    pub fn run(&self) -> Result<Outcome> {
        let rounded;
        let model = if self.precision == Precision::F32 && self.model.dtype != Dtype::F32 {
            rounded = self.model.clone().rounded_to_f32()?;
            &rounded
        } else {
            self.model
        };
        let rounding = Rounding::new(self.precision, self.exp_ulp);
        let rows = Rows::new(model, self.dataset, self.precision)?;
        let network = Network::new(model, &rounding);
        let wanted = Targets::new(model, self.dataset, self.tolerance)?;
        let blocks = plan::blocks(model, self.dataset, |t| wanted.id(t))?;
        let escalation = Escalation::new(model, self.bits);
        let work =
            Work { pass: self, model, rows: &rows, network: &network, targets: &wanted, escalation: &escalation };
        let mut outcome = Outcome { decisions: vec![None; self.dataset.tokens()], smallest_ratio: f64::INFINITY };
        let wave = if self.first { 4 * rayon::current_num_threads() } else { blocks.len().max(1) };
        for wave in blocks.chunks(wave) {
            let found: Vec<(Vec<(usize, Decision)>, Block)> = wave.par_iter().map(|block| work.block(block)).collect();
            let mut stop = false;
            let open: Vec<Block> = found.iter().map(|(_, open)| open.clone()).collect();
            let settled = if self.precision == Precision::Real { work.escalate(&open) } else { vec![] };
            for (t, decision) in found.into_iter().flat_map(|(decisions, _)| decisions).chain(settled) {
                if let Decision::Right(ratio) = decision
                    && !self.skip[t]
                {
                    outcome.smallest_ratio = outcome.smallest_ratio.min(ratio);
                }
                stop |= self.first && !self.skip[t] && matches!(decision, Decision::Wrong(_));
                outcome.decisions[t] = Some(decision);
            }
            if stop {
                break;
            }
        }
        Ok(outcome)
    }
}

/// What the labels of a dataset ask of a model.
struct Targets<'a> {
    labels: &'a Labels,
    /// The model's index of each label name of the dataset.
    index: Vec<Option<usize>>,
    tolerance: f64,
}

impl<'a> Targets<'a> {
    fn new(model: &Model, dataset: &'a Dataset, tolerance: Option<f64>) -> Result<Self> {
        let fault = |what: &str, help: &str| Err(Error::new(dataset.name.clone(), what, help));
        let labels = &dataset.labels;
        match (labels, &model.head, tolerance) {
            (Labels::None, ..) => {
                fault("it has no labels, so there is nothing to verify", "give a dataset with labels")
            }
            (Labels::Classes(_, names), Some(head), _) => {
                let index = names.iter().map(|name| head.labels.iter().position(|label| label == name)).collect();
                Ok(Self { labels, index, tolerance: 0.0 })
            }
            (Labels::Classes(..), None, _) => {
                fault("its labels are classes, but the model's outputs are vectors", "use data with vector labels")
            }
            (Labels::Vectors(..), Some(_), _) => {
                fault("its labels are vectors, but the model's outputs are classes", "use data with classes")
            }
            (Labels::Vectors(_, d, _), None, _) if *d != model.d => {
                fault("its label vectors have another dimension than the model", "use data of the same dimension")
            }
            (Labels::Vectors(..), None, None) => {
                fault("outputs are vectors, and nobody said how near they must be", "give a tolerance")
            }
            (Labels::Vectors(..), None, Some(tolerance)) => Ok(Self { labels, index: vec![], tolerance }),
        }
    }

    fn id(&self, t: usize) -> u32 {
        match self.labels {
            Labels::None => 0,
            Labels::Classes(ids, _) | Labels::Vectors(ids, ..) => ids[t],
        }
    }

    fn wanted(&self, id: u32) -> Wanted<'a> {
        match self.labels {
            Labels::Vectors(_, d, data) => Wanted::Near(&data[id as usize * d..(id as usize + 1) * d], self.tolerance),
            _ => Wanted::Label(self.index.get(id as usize).copied().flatten()),
        }
    }
}

struct Work<'a> {
    pass: &'a Pass<'a>,
    model: &'a Model,
    rows: &'a Rows,
    network: &'a Network<'a>,
    targets: &'a Targets<'a>,
    escalation: &'a Escalation<'a>,
}

impl Work<'_> {
    /// Decides the tokens of a block in f64 enclosures; also returns what stays open.
    fn block(&self, block: &Block) -> (Vec<(usize, Decision)>, Block) {
        let mut decisions = Vec::new();
        let outputs = self.network.run(self.pass.dataset, self.rows, &block.queries, Care::Coarse);
        let again = self.settle(block, &outputs, Care::Coarse, &mut decisions);
        let outputs = self.network.run(self.pass.dataset, self.rows, &again.queries, Care::Fine);
        let open = self.settle(&again, &outputs, Care::Fine, &mut decisions);
        (decisions, open)
    }

    /// Decides the tokens of a block, and returns the block of those that need more care. (After the careful pass, open
    /// decisions are recorded too; escalation may overwrite them.)
    fn settle(&self, block: &Block, outputs: &[Output], care: Care, decisions: &mut Vec<(usize, Decision)>) -> Block {
        let mut left = Block::default();
        let mut at = 0;
        for query in &block.queries {
            let mut positions = Vec::new();
            for &position in &query.positions {
                let mut wanted = Vec::new();
                for (id, tokens) in &block.asked[at].wanted {
                    let decision = decide(
                        self.network,
                        self.model.head.as_ref(),
                        &outputs[at],
                        &self.targets.wanted(*id),
                        care,
                        self.pass.comfortable,
                    );
                    let close = match decision {
                        Decision::Right(ratio) => care == Care::Coarse && ratio < self.pass.comfortable,
                        Decision::Wrong(_) => false,
                        Decision::Open(..) => true,
                    };
                    if close {
                        wanted.push((*id, tokens.clone()));
                    }
                    if !close || care == Care::Fine {
                        decisions.extend(tokens.iter().map(|&t| (t, decision.clone())));
                    }
                }
                if !wanted.is_empty() {
                    positions.push(position);
                    left.asked.push(Asked { wanted });
                }
                at += 1;
            }
            if !positions.is_empty() {
                left.queries.push(Query { sequence: query.sequence, positions });
            }
        }
        left
    }

    /// Big floats for what f64 enclosures leave open, in the order of the file, as far as the budget goes.
    fn escalate(&self, open: &[Block]) -> Vec<(usize, Decision)> {
        let mut jobs = Vec::new();
        for block in open {
            let mut asked = block.asked.iter();
            for query in &block.queries {
                jobs.extend(query.positions.iter().zip(asked.by_ref()).map(|(&p, asked)| (query.sequence, p, asked)));
            }
        }
        jobs.truncate(ESCALATIONS);
        let settle = |&(sequence, position, asked): &(usize, usize, &Asked)| {
            let query = Query { sequence, positions: vec![position] };
            // Units that f64 enclosures show to be off are off in real arithmetic too.
            let output = self.network.run(self.pass.dataset, self.rows, &[query], Care::Fine).swap_remove(0);
            let units = output.is_finite().then(|| output.units.iter().map(|unit| unit.index).collect());
            let decision = |id: u32| {
                let wanted = self.targets.wanted(id);
                self.escalation.decide(self.pass.dataset, self.rows, (sequence, position), units.clone(), &wanted)
            };
            let mut settled = Vec::new();
            for (id, tokens) in &asked.wanted {
                if let Some(decision) = decision(*id) {
                    settled.extend(tokens.iter().map(|&t| (t, decision.clone())));
                }
            }
            settled
        };
        jobs.par_iter().map(settle).collect::<Vec<_>>().into_iter().flatten().collect()
    }
}

impl Failure {
    /// The failure in words.
    pub fn shown(&self, labels: Option<&[String]>, wanted: &str) -> String {
        match self {
            Self::Label { winner, score, wanted: own, error } => {
                let name = labels.map_or("", |l| l[*winner].as_str());
                let score = number(*score);
                let Some(own) = own else {
                    return format!("wanted {wanted:?} is no label of the model; {name:?} scores {score}");
                };
                let own = number(*own);
                format!(
                    "wanted {wanted:?} scores {own}, but {name:?} scores {score} (difference certain to {error:.3e})"
                )
            }
            Self::Far { coordinate, output, wanted, error } => {
                let (output, wanted) = (number(*output), number(*wanted));
                format!("coordinate {coordinate} is {output} (certain to {error:.3e}), wanted {wanted}")
            }
        }
    }
}

/// A number with all its digits, in few characters.
fn number(x: f64) -> String {
    if x == 0.0 || (1e-4..1e9).contains(&x.abs()) { format!("{x}") } else { format!("{x:e}") }
}
