//! The pass over all tokens: coarse bounds first, careful ones where those leave a token open, big floats for real arithmetic.

use std::sync::OnceLock;

use rayon::prelude::*;

use crate::big::Escalation;
use crate::dataset::{Dataset, Labels};
use crate::decide::{Decision, Failure, Wanted, decide, decide_output};
use crate::dot::Care;
use crate::error::{Error, Result};
use crate::feed_forward::Output;
use crate::forward::{Network, Query, Rows};
use crate::model::{Dtype, Model};
use crate::plan::{self, Asked, Block};
use crate::readout::Readout;
use crate::rounding::{Precision, Rounding};

/// A margin of this many error bounds is not looked at more carefully, unless more is claimed.
pub const COMFORTABLE: f64 = 2.0;

/// At most this many evaluations go on to big floats.
pub(crate) const ESCALATIONS: usize = 4096;

/// Care goes on to the next so many sequences, unless it left nearly all tokens of the last so many open: it must decide one
/// token in `PAYS`.
const CAREFUL: usize = 64;
const PAYS: usize = 32;

/// How every token fared, in one arithmetic.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// By token; none where `first` stopped the pass before it.
    pub decisions: Vec<Option<Decision>>,
    /// The smallest margin over its error bound among the tokens that hold.
    pub smallest_ratio: f64,
}

/// What to check and how.
pub struct Pass<'a, T = f64> {
    /// The model, its numbers as stored.
    pub model: &'a Model<T>,
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
        let work = Work {
            pass: self,
            model,
            rows: &rows,
            network: &network,
            targets: &wanted,
            escalation: &escalation,
            readout: OnceLock::new(),
        };
        let mut decisions = vec![None; self.dataset.tokens()];
        let wave = if self.first { 4 * rayon::current_num_threads() } else { blocks.len().max(1) };
        for wave in blocks.chunks(wave) {
            let mut stop = false;
            let mut record = |found: Vec<(usize, Decision)>| {
                for (t, decision) in found {
                    stop |= self.first && !self.skip[t] && matches!(decision, Decision::Wrong(_));
                    decisions[t] = Some(decision);
                }
            };
            let (found, open): (Vec<_>, Vec<_>) = wave.par_iter().map(|block| work.quickly(block)).unzip();
            found.into_iter().for_each(&mut record);
            let left = work.carefully(open.into_iter().flatten().collect(), &mut record);
            if self.precision == Precision::Real {
                record(work.escalate(left));
            }
            if stop {
                break;
            }
        }
        Ok(Outcome::new(decisions, self.skip))
    }
}

impl Outcome {
    /// What was decided; tokens to skip do not count for the smallest ratio.
    pub(crate) fn new(decisions: Vec<Option<Decision>>, skip: &[bool]) -> Self {
        let ratios = decisions.iter().zip(skip).filter_map(|(decision, skip)| match decision {
            Some(Decision::Right(ratio)) if !skip => Some(*ratio),
            _ => None,
        });
        Self { smallest_ratio: ratios.fold(f64::INFINITY, f64::min), decisions }
    }
}

/// What the labels of a dataset ask of a model.
pub(crate) struct Targets<'a> {
    labels: &'a Labels,
    /// The model's index of each label name of the dataset.
    index: Vec<Option<usize>>,
    tolerance: f64,
}

impl<'a> Targets<'a> {
    pub(crate) fn new<T>(model: &Model<T>, dataset: &'a Dataset, tolerance: Option<f64>) -> Result<Self> {
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

    pub(crate) fn id(&self, t: usize) -> u32 {
        match self.labels {
            Labels::None => 0,
            Labels::Classes(ids, _) | Labels::Vectors(ids, ..) => ids[t],
        }
    }

    pub(crate) fn wanted(&self, id: u32) -> Wanted<'a> {
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
    /// The read-out, tabulated when it is first asked for.
    readout: OnceLock<Option<Readout<'a>>>,
}

/// Tokens of one sequence that are still open, or hardly decided.
struct Job {
    query: Query,
    asked: Vec<Asked>,
    /// The greatest margin over its error bound, in size, among those that are open.
    promise: f64,
}

impl Work<'_> {
    /// Decides the tokens of a block with coarse bounds; also returns those that care may decide or improve.
    fn quickly(&self, block: &Block) -> (Vec<(usize, Decision)>, Vec<Job>) {
        let outputs = self.network.run(self.pass.dataset, self.rows, &block.queries, Care::Coarse);
        let (mut decisions, mut open) = (Vec::new(), Vec::new());
        let mut at = 0;
        for query in &block.queries {
            let here = at..at + query.positions.len();
            at = here.end;
            let (asked, outputs) = (&block.asked[here.clone()], &outputs[here]);
            open.extend(self.settle(query, asked, outputs, Care::Coarse, &mut decisions));
        }
        (decisions, open)
    }

    /// Takes care of what is open, the most promising sequences first, for as long as that decides some; returns what is left.
    fn carefully(&self, mut open: Vec<Job>, record: &mut impl FnMut(Vec<(usize, Decision)>)) -> Vec<Job> {
        let mut left = Vec::new();
        open.sort_by(|a, b| b.promise.total_cmp(&a.promise));
        while !open.is_empty() {
            let later = open.split_off(open.len().min(CAREFUL));
            let tokens: usize = open.iter().map(Job::tokens).sum();
            let one = |job: &Job| {
                let mut decisions = Vec::new();
                let outputs =
                    self.network.run(self.pass.dataset, self.rows, std::slice::from_ref(&job.query), Care::Fine);
                let left = self.settle(&job.query, &job.asked, &outputs, Care::Fine, &mut decisions);
                (decisions, left)
            };
            let (found, still): (Vec<_>, Vec<_>) = open.par_iter().map(one).unzip();
            found.into_iter().for_each(&mut *record);
            let still: Vec<Job> = still.into_iter().flatten().collect();
            let pays = still.iter().map(Job::tokens).sum::<usize>() * PAYS <= tokens * (PAYS - 1);
            left.extend(still);
            open = later;
            if !pays {
                left.append(&mut open);
            }
        }
        left.sort_by_key(|job| job.query.sequence);
        left
    }

    /// Decides some tokens of a sequence, and returns those that need more care.
    fn settle(
        &self,
        query: &Query,
        asked: &[Asked],
        outputs: &[Output],
        care: Care,
        decisions: &mut Vec<(usize, Decision)>,
    ) -> Option<Job> {
        let query_left = Query { sequence: query.sequence, positions: vec![] };
        let mut left = Job { query: query_left, asked: vec![], promise: 0.0 };
        for ((&position, asked), output) in query.positions.iter().zip(asked).zip(outputs) {
            let mut wanted = Vec::new();
            for (id, tokens) in &asked.wanted {
                let target = self.targets.wanted(*id);
                let decision =
                    decide(self.network, self.model.head.as_ref(), output, &target, care, self.pass.comfortable);
                let decision = self.read_off(&decision, output, &target).unwrap_or(decision);
                let promise = match decision {
                    Decision::Right(ratio) if care == Care::Coarse && ratio < self.pass.comfortable => Some(ratio),
                    Decision::Open(margin, error) => Some((margin / error).abs()),
                    _ => None,
                };
                // Where units are too many to be listed, care would find the same bounds again.
                let hopeless = output.units.is_none() && self.pass.precision != Precision::Real;
                if let Some(promise) = promise.filter(|_| !hopeless) {
                    left.promise = left.promise.max(promise);
                    wanted.push((*id, tokens.clone()));
                }
                decisions.extend(tokens.iter().map(|&t| (t, decision.clone())));
            }
            if !wanted.is_empty() {
                left.query.positions.push(position);
                left.asked.push(Asked { wanted });
            }
        }
        Some(left).filter(|left| !left.asked.is_empty())
    }

    /// What a table of the read-out says of a token that is open in real arithmetic.
    fn read_off(&self, decision: &Decision, output: &Output, target: &Wanted) -> Option<Decision> {
        if self.pass.precision != Precision::Real || !matches!(decision, Decision::Open(..)) {
            return None;
        }
        let readout = self.readout.get_or_init(|| self.network.readout()).as_ref()?;
        decide_output(self.model.head.as_ref(), &readout.output(&self.network.before_readout(output))?, target)
    }

    /// Big floats for what f64 enclosures leave open, in the order of the file, as far as the budget goes.
    fn escalate(&self, open: Vec<Job>) -> Vec<(usize, Decision)> {
        let one = |job: Job| {
            let sequence = job.query.sequence;
            job.query.positions.into_iter().zip(job.asked).map(move |(position, asked)| (sequence, position, asked))
        };
        let mut jobs: Vec<(usize, usize, Asked)> = open.into_iter().flat_map(one).collect();
        jobs.truncate(ESCALATIONS);
        let settle = |&(sequence, position, ref asked): &(usize, usize, Asked)| {
            let query = Query { sequence, positions: vec![position] };
            // Units that f64 enclosures show to be off are off in real arithmetic too.
            let output = self.network.run(self.pass.dataset, self.rows, &[query], Care::Fine).swap_remove(0);
            let listed = output.units.as_ref().filter(|_| output.is_finite());
            let units: Option<Vec<usize>> = listed.map(|units| units.iter().map(|unit| unit.index).collect());
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

impl Job {
    fn tokens(&self) -> usize {
        self.asked.iter().flat_map(|asked| &asked.wanted).map(|(_, tokens)| tokens.len()).sum()
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
