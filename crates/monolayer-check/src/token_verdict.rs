//! The core's findings about single tokens, as floats, for people to read.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;

use monolayer_core::claims::{Found, Request, check};
use monolayer_core::model::Model;
use monolayer_core::read::{Limits, directory};
use monolayer_core::rules::ball::Ball;
use monolayer_core::rules::judge::{Judged, Verdict as Judgement};

use crate::error::{Error, Result};
use crate::open_data::{self, Source, scaled};
use crate::options::{Options, Precision};
use crate::report::Verdict;

/// What was found of a token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenVerdict {
    /// The verdict; nothing where any label will do.
    pub verdict: Option<Verdict>,
    /// The smallest margin of the label over another; nothing where a program may overflow, or there is no other label.
    pub margin: Option<f64>,
    /// How far a covered program may be from that margin.
    pub error: Option<f64>,
    /// The label that the model gives, as far as it is known.
    pub given: Option<String>,
}

/// Judges every token of a dataset by itself, the certificate aside. `data` is a file or a task, as `verify` takes it.
pub fn judge_tokens(dir: &Path, data: &str, precision: Precision) -> Result<Vec<TokenVerdict>> {
    let (limits, options) = (Limits::default(), Options::default());
    let (model, hashes) = directory::open(dir, &limits)?;
    let source = open_data::open(data, None, &limits)?;
    let tokens = RefCell::new(vec![Judged::UNKNOWN; source.tokens()]);
    let request = Request {
        model: &model,
        hashes: &hashes,
        certificate: None,
        data: Some(&source.data),
        arithmetic: Some(precision.arithmetic()),
        tolerance: None,
        strict: true,
        kinds: None,
        bits: options.bits,
        threads: options.threads,
        tick: &|_, _| (),
        each: &|t, judged, _| tokens.borrow_mut()[t] = *judged,
    };
    let Found { pass, .. } = check(&request).map_err(|what| unfit(&model, &source, what))?;
    let tokens = pass.map_or(vec![], |_| tokens.take());
    Ok(tokens.iter().map(|judged| TokenVerdict::new(judged, &model)).collect())
}

/// Data that a model cannot read or judge, with the first token at fault where that is a word.
pub(crate) fn unfit(model: &Model, source: &Source, what: String) -> Error {
    let words = model.vocabulary.iter().flatten().map(|(word, _)| word.as_str());
    let known: HashSet<&str> = words.collect();
    let values = &source.data.values;
    let strange = |id: &u32| values.d == 0 && !known.contains(values.names[*id as usize].as_str());
    let wordless = model.vocabulary.is_none() || known.contains("<unk>");
    match source.data.tokens.iter().position(strange).filter(|_| !wordless) {
        Some(t) => Error::new(source.place(t), what, "give words of vocabulary.json"),
        None => Error::new(&source.name, what, "give data of the model's kind"),
    }
}

impl TokenVerdict {
    fn new(judged: &Judged, model: &Model) -> Self {
        let verdict = match judged.verdict {
            Judgement::Right => Some(Verdict::Verified),
            Judgement::Wrong => Some(Verdict::Refuted),
            Judgement::Unknown => Some(Verdict::Unknown),
            Judgement::Free => None,
        };
        let (margin, error) = (judged.margin.map(middle), judged.margin.map(radius));
        let given = judged.given.and_then(|label| label_name(model, label)).map(str::to_owned);
        Self { verdict, margin, error, given }
    }

    /// The margin over its error; infinite where the margin is exact.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.margin? / self.error?).filter(|ratio| !ratio.is_nan())
    }
}

/// The name of a label of a model.
pub(crate) fn label_name(model: &Model, label: usize) -> Option<&str> {
    model.head.as_ref()?.labels.as_ref()?.get(label).map(String::as_str)
}

pub(crate) fn middle(ball: Ball) -> f64 {
    scaled(ball.m as f64, ball.e)
}

pub(crate) fn radius(ball: Ball) -> f64 {
    scaled(ball.r as f64, ball.e)
}

/// A margin over its radius, where it proves something by itself.
pub(crate) fn ratio(judged: &Judged) -> Option<f64> {
    let margin = judged.margin.filter(|margin| margin.r > 0)?;
    Some(margin.m as f64 / margin.r as f64).filter(|ratio| *ratio >= 1.0)
}
