//! Every statement of the paper as a run.
//!
//! A claim names the number of its statement in the paper and shows its mathematics as printed, hypotheses included. Its verdict
//! is computed from what its run finds: does the statement hold as printed, and if not, does its repair? What the paper does not
//! say, but a reader may think, is marked so. docs/paper.md lists the verdict of each; a run that disagrees with it is a discovery
//! or a bug. Every claim also has a mutation, a small wrong change that must turn its verdict into another one: a run that cannot
//! fail shows nothing.

// All runs have one type, whether or not theirs can fail.
#![allow(clippy::unnecessary_wraps)]

mod appendix;
mod approximation;
mod attention;
mod boltzmann;
mod corollaries;
mod corpus;
mod definitions;
mod first_block;
mod lemma_one;
mod lemma_seven;
mod perturbation;
mod positions;
mod projection;
mod second_block;
mod support;
mod theorem_one;
mod theorem_scale;
mod theorem_two;
mod two_constants;
mod unquantized;

use std::time::Instant;

use monolayer::{Dataset, Result};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::example;

/// The verdicts that each run must arrive at: the table of docs/paper.md, which a test compares with this copy.
const VERDICTS: &str = include_str!("claims/verdicts.md");

/// What became of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds as printed, on everything that was run.
    Holds,
    /// It does not hold as printed, but after a repair.
    HoldsAfterRepair,
    /// It does not hold as printed, and no repair keeps its meaning.
    FalseAsPrinted,
    /// The paper does not say it: a result of monolayer, or what a reader may read into the paper. It holds where it was run.
    NotInThePaper,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Holds, Self::HoldsAfterRepair, Self::FalseAsPrinted, Self::NotInThePaper];

    /// The verdict in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::HoldsAfterRepair => "holds after repair",
            Self::FalseAsPrinted => "false as printed",
            Self::NotInThePaper => "not in the paper",
        }
    }
}

/// What a run of a claim found.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Whether the statement held as printed, wherever it was tried.
    pub printed: bool,
    /// Whether its repair did, where there is one.
    pub repaired: Option<bool>,
    /// Whether the statement is not the paper's.
    pub ours: bool,
    /// The numbers, each with what it is.
    pub numbers: Vec<(&'static str, f64)>,
    /// Where the printed statement fails.
    pub counterexample: Option<String>,
}

impl Finding {
    /// A statement without a repair.
    fn printed(holds: bool) -> Self {
        Self { printed: holds, repaired: None, ours: false, numbers: Vec::new(), counterexample: None }
    }

    /// A statement and its repair.
    fn repaired(printed: bool, repaired: bool) -> Self {
        Self { repaired: Some(repaired), ..Self::printed(printed) }
    }

    /// A statement that the paper does not make.
    fn ours(holds: bool) -> Self {
        Self { ours: true, ..Self::printed(holds) }
    }

    fn number(mut self, what: &'static str, value: f64) -> Self {
        self.numbers.push((what, value));
        self
    }

    fn count(self, what: &'static str, value: usize) -> Self {
        self.number(what, value as f64)
    }

    fn counterexample(mut self, text: impl Into<String>) -> Self {
        self.counterexample = Some(text.into());
        self
    }

    /// What follows from it. None for a statement that is not the paper's and does not hold: that accuses nobody but us.
    pub fn verdict(&self) -> Option<Verdict> {
        match (self.printed, self.repaired) {
            (holds, _) if self.ours => holds.then_some(Verdict::NotInThePaper),
            (true, _) => Some(Verdict::Holds),
            (false, Some(true)) => Some(Verdict::HoldsAfterRepair),
            (false, _) => Some(Verdict::FalseAsPrinted),
        }
    }

    /// The numbers in a line.
    pub fn evidence(&self) -> String {
        self.numbers.iter().map(|(what, x)| format!("{what}: {}", shown(*x))).collect::<Vec<_>>().join("; ")
    }
}

/// A number for people.
fn shown(x: f64) -> String {
    match x.abs() {
        _ if x.fract() == 0.0 && x.abs() < 1e9 => format!("{x}"),
        size if (1e-3..1e5).contains(&size) => format!("{x:.4}"),
        _ => format!("{x:.3e}"),
    }
}

/// What runs need to know.
pub struct Context {
    /// The corpus for claims about corpora.
    pub data: Dataset,
    /// Whether heavy runs are asked for.
    pub full: bool,
    /// Whether the mutation is applied.
    pub mutated: bool,
}

impl Context {
    /// A context with a corpus of the user's, or the embedded one.
    pub fn new(data: Option<Dataset>, full: bool) -> Result<Self> {
        Ok(Self { data: data.map_or_else(example::dataset, Ok)?, full, mutated: false })
    }

    /// The right thing, or the wrong one under the mutation.
    fn mutate<T>(&self, right: T, wrong: T) -> T {
        if self.mutated { wrong } else { right }
    }

    /// How much to run: more where a full run is asked for.
    fn effort(&self, usual: usize, full: usize) -> usize {
        if self.full { full } else { usual }
    }
}

/// A statement, how it is run, and how its run can be broken.
pub struct Claim {
    /// Its name here.
    pub id: &'static str,
    /// Its number in the paper, such as "Lemma 6, (102), (103)", or where it belongs.
    pub number: &'static str,
    /// The statement in a line.
    pub statement: &'static str,
    /// Its mathematics as printed, hypotheses included, in plain ASCII TeX such as `b_n` and without the paper's typefaces; the words
    /// around it are ours. Empty for what is not in the paper.
    pub printed: &'static str,
    /// What else to know; empty where there is nothing. A slip that the text at hand may have and the paper not is marked "may be
    /// the transcription's".
    pub note: &'static str,
    /// What is run.
    pub run: &'static str,
    /// The code behind it: a file and an item in it.
    pub code: (&'static str, &'static str),
    /// The mutation that must change the verdict.
    pub mutation: &'static str,
    /// The run itself.
    find: fn(&Context) -> Result<Finding>,
}

/// All claims, in the order of the paper's statements, each followed by its proof.
pub fn all() -> impl Iterator<Item = &'static Claim> {
    [
        definitions::CLAIMS,
        theorem_one::CLAIMS,
        theorem_scale::CLAIMS,
        attention::CLAIMS,
        projection::CLAIMS,
        theorem_two::CLAIMS,
        two_constants::CLAIMS,
        lemma_one::CLAIMS,
        boltzmann::CLAIMS,
        lemma_seven::CLAIMS,
        corollaries::CLAIMS,
        positions::CLAIMS,
        approximation::CLAIMS,
        first_block::CLAIMS,
        perturbation::CLAIMS,
        second_block::CLAIMS,
        corpus::CLAIMS,
        unquantized::CLAIMS,
        appendix::CLAIMS,
    ]
    .into_iter()
    .flatten()
}

/// Runs claims side by side; what they find does not depend on the number of threads. `done` is called after each.
pub fn run(claims: &[&'static Claim], context: &Context, done: impl Fn() + Sync) -> Vec<Outcome> {
    let one = |claim: &&'static Claim| {
        let outcome = claim.outcome(context);
        done();
        outcome
    };
    // One at a time per thread: some take a thousand times as long as others.
    claims.par_iter().with_max_len(1).map(one).collect()
}

impl Claim {
    /// Runs the claim.
    pub fn find(&self, context: &Context) -> Result<Finding> {
        (self.find)(context)
    }

    /// Runs the claim and sets what it found beside what the documentation says.
    pub fn outcome(&'static self, context: &Context) -> Outcome {
        let start = Instant::now();
        let finding = self.find(context);
        Outcome { claim: self, finding, documented: self.documented(), seconds: start.elapsed().as_secs_f64() }
    }

    /// The verdict that docs/paper.md lists: a row that begins with the id and ends with the verdict.
    pub fn documented(&self) -> Option<Verdict> {
        let start = format!("| `{}` |", self.id);
        let row = VERDICTS.lines().find(|line| line.starts_with(&start))?;
        let last = row.trim_end_matches(['|', ' ']).rsplit(" | ").next()?;
        Verdict::ALL.into_iter().find(|verdict| verdict.name() == last)
    }
}

/// What was found about a claim.
pub struct Outcome {
    /// The claim.
    pub claim: &'static Claim,
    /// What its run found, or why it could not run.
    pub finding: Result<Finding>,
    /// What the documentation says.
    pub documented: Option<Verdict>,
    /// How long the run took.
    pub seconds: f64,
}

impl Outcome {
    /// The verdict, unless the run failed or a statement of our own does not hold.
    pub fn verdict(&self) -> Option<Verdict> {
        self.finding.as_ref().ok().and_then(Finding::verdict)
    }

    /// Whether the computed verdict is the documented one.
    pub fn agrees(&self) -> bool {
        self.verdict().is_some() && self.verdict() == self.documented
    }

    /// The outcome for machines.
    pub fn json(&self) -> Value {
        let claim = self.claim;
        let mut json = json!({
            "id": claim.id,
            "number": claim.number,
            "statement": claim.statement,
            "printed": claim.printed,
            "note": claim.note,
            "verdict": self.verdict().map(Verdict::name),
            "documented": self.documented.map(Verdict::name),
            "run": claim.run,
            "code": { "file": claim.code.0, "item": claim.code.1 },
            "mutation": claim.mutation,
            "seconds": self.seconds,
        });
        match &self.finding {
            Ok(finding) => {
                json["evidence"] = finding.evidence().into();
                json["numbers"] = finding.numbers.iter().map(|&(what, x)| (what.to_owned(), json!(x))).collect();
                json["counterexample"] = finding.counterexample.clone().into();
            }
            Err(error) => json["error"] = error.to_string().into(),
        }
        json
    }
}
