//! Checking by the kind of a model's numbers: floats go through enclosures first, exact rationals straight to big floats.

use rayon::prelude::*;

use crate::big::Escalation;
use crate::big::weight::{Rational, Weight};
use crate::decide::Decision;
use crate::error::{Error, Result};
use crate::forward::{Query, Rows};
use crate::labels::{ESCALATIONS, Outcome, Pass, Targets};
use crate::model::{Dtype, Model};
use crate::plan::{self, Asked};
use crate::rounding::Precision;

/// What checking takes of the numbers of a model.
pub(crate) trait Numbers: Weight {
    /// The arithmetic of the model itself.
    fn own(model: &Model<Self>) -> Precision;
    /// Decides every token.
    fn pass(pass: &Pass<Self>) -> Result<Outcome>;
    /// The model for claims that are checked of floats only.
    fn floats(model: &Model<Self>) -> Option<&Model>;
}

impl Numbers for f64 {
    fn own(model: &Model) -> Precision {
        if model.dtype == Dtype::F32 { Precision::F32 } else { Precision::F64 }
    }

    fn pass(pass: &Pass) -> Result<Outcome> {
        pass.run()
    }

    fn floats(model: &Model) -> Option<&Model> {
        Some(model)
    }
}

impl Numbers for Rational {
    fn own(_: &Model<Self>) -> Precision {
        Precision::Real
    }

    fn pass(pass: &Pass<Self>) -> Result<Outcome> {
        pass.run()
    }

    fn floats(_: &Model<Self>) -> Option<&Model> {
        None
    }
}

/// Evaluations between two looks at whether to stop.
const WAVE: usize = 64;

impl Pass<'_, Rational> {
    /// Decides every token, as far as the budget of evaluations goes.
    pub fn run(&self) -> Result<Outcome> {
        if self.precision != Precision::Real {
            let what = format!("exact numbers are not run in {}", self.precision.name());
            return Err(Error::new("weights.json", what, "verify in real arithmetic"));
        }
        let rows = Rows::new(self.model, self.dataset, self.precision)?;
        let targets = Targets::new(self.model, self.dataset, self.tolerance)?;
        let blocks = plan::blocks(self.model, self.dataset, |t| targets.id(t))?;
        let escalation = Escalation::new(self.model, self.bits);
        let places = |query: &Query| query.positions.iter().map(|&p| (query.sequence, p)).collect::<Vec<_>>();
        let jobs: Vec<((usize, usize), &Asked)> =
            blocks.iter().flat_map(|b| b.queries.iter().flat_map(places).zip(&b.asked)).collect();
        let settle = |&(place, asked): &((usize, usize), &Asked)| {
            let decide = |(id, tokens): &(u32, Vec<usize>)| {
                let found = escalation.decide(self.dataset, &rows, place, None, &targets.wanted(*id));
                let decision = found.unwrap_or(Decision::Open(f64::NAN, f64::INFINITY));
                tokens.iter().map(|&t| (t, decision.clone())).collect::<Vec<_>>()
            };
            asked.wanted.iter().flat_map(decide).collect::<Vec<_>>()
        };
        let mut decisions = vec![None; self.dataset.tokens()];
        for wave in jobs[..jobs.len().min(ESCALATIONS)].chunks(WAVE) {
            for (t, decision) in wave.par_iter().flat_map_iter(settle).collect::<Vec<_>>() {
                decisions[t] = Some(decision);
            }
            let wrong = |(t, d): (usize, &Option<Decision>)| matches!(d, Some(Decision::Wrong(_))) && !self.skip[t];
            if self.first && decisions.iter().enumerate().any(wrong) {
                break;
            }
        }
        Ok(Outcome::new(decisions, self.skip))
    }
}
