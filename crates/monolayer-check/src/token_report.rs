//! The part of the report about tokens: counterexamples, open and impossible tokens, in words.

use std::collections::BTreeMap;

use monolayer_core::model::Model;
use monolayer_core::rules::judge::{Judged, Verdict as Judgement};

use crate::open_data::Source;
use crate::options::{Options, Precision};
use crate::report::{Finding, Report};
use crate::token_verdict::{label_name, middle, radius, ratio};

/// Tokens to be written out, by their numbers.
type Listed = BTreeMap<usize, Judged>;

/// What was found of the tokens, as it comes in.
pub(crate) struct TokenReport<'a> {
    options: &'a Options<'a>,
    verified: usize,
    refuted: usize,
    unknown: usize,
    smallest_margin_ratio: Option<f64>,
    /// The first tokens of each kind.
    counterexamples: Listed,
    open: Listed,
    impossible_tokens: Listed,
}

impl<'a> TokenReport<'a> {
    pub fn new(options: &'a Options<'a>) -> Self {
        let [counterexamples, open, impossible_tokens] = [const { Listed::new() }; 3];
        let (verified, refuted, unknown) = (0, 0, 0);
        let smallest_margin_ratio = None;
        Self { options, verified, refuted, unknown, smallest_margin_ratio, counterexamples, open, impossible_tokens }
    }

    /// Counts a token, and keeps it unless it holds. Tokens may come in any order.
    pub fn token(&mut self, t: usize, judged: &Judged, impossible: bool) {
        let list = match judged.verdict {
            Judgement::Free => return,
            _ if impossible && !self.options.strict => &mut self.impossible_tokens,
            Judgement::Right => {
                self.verified += 1;
                let smallest = self.smallest_margin_ratio;
                let smaller = ratio(judged).filter(|ratio| smallest.is_none_or(|smallest| *ratio < smallest));
                self.smallest_margin_ratio = smaller.or(smallest);
                return;
            }
            Judgement::Wrong => {
                self.refuted += 1;
                &mut self.counterexamples
            }
            Judgement::Unknown => {
                self.unknown += 1;
                &mut self.open
            }
        };
        if list.len() < self.options.findings || list.last_key_value().is_some_and(|(last, _)| t < *last) {
            list.insert(t, *judged);
            if list.len() > self.options.findings {
                list.pop_last();
            }
        }
    }

    /// Writes out what is kept; `precision` is the arithmetic of the tokens.
    pub fn fill(&self, model: &Model, source: &Source, precision: Precision, report: &mut Report) {
        let finding = |(&t, judged): (&usize, &Judged), counts: bool| {
            let given = judged.given.and_then(|label| label_name(model, label)).map(str::to_owned);
            let what = what(model, source, t, judged);
            let open = judged.verdict == Judgement::Unknown && counts;
            let what = if open { format!("{what}; {}", advice(precision, self.options, judged)) } else { what };
            Finding { token: t, position: source.locate(t), place: source.place(t), text: source.shown(t), what, given }
        };
        let findings = |list: &Listed, counts: bool| list.iter().map(|token| finding(token, counts)).collect();
        (report.verified, report.refuted, report.unknown) = (self.verified, self.refuted, self.unknown);
        report.smallest_margin_ratio = self.smallest_margin_ratio;
        report.counterexamples = findings(&self.counterexamples, true);
        report.open = findings(&self.open, true);
        report.impossible_tokens = findings(&self.impossible_tokens, false);
    }
}

/// What is to be said of a token.
fn what(model: &Model, source: &Source, t: usize, judged: &Judged) -> String {
    let wanted = source.label(t).unwrap_or_default();
    let margin = judged.margin.map_or(String::new(), |margin| {
        format!(" (margin {:.6e}, error bound {:.6e})", middle(margin), radius(margin))
    });
    if source.data.label_values.d > 0 {
        let at = judged.rival + 1;
        return match judged.verdict {
            Judgement::Wrong => format!("coordinate {at} is not within the tolerance of its target{margin}"),
            Judgement::Right => "every coordinate is within the tolerance of its target".into(),
            _ => format!("coordinate {at} may be further from its target than the tolerance{margin}"),
        };
    }
    let names = model.head.as_ref().and_then(|head| head.labels.as_ref());
    let given = judged.given.and_then(|label| label_name(model, label));
    if names.is_some_and(|names| !names.contains(&wanted)) {
        let gives = given.map_or(String::new(), |given| format!("; it gives {given:?}"));
        return format!("wanted {wanted:?}, which is no label of the model{gives}");
    }
    match (judged.verdict, given, label_name(model, judged.rival)) {
        (Judgement::Right, ..) => format!("the model gives {wanted:?}, as the data asks here"),
        (Judgement::Wrong, Some(given), _) => format!("wanted {wanted:?}, the model gives {given:?}{margin}"),
        (Judgement::Wrong, None, Some(rival)) => format!("wanted {wanted:?}, but {rival:?} wins over it"),
        (_, Some(given), _) if given != wanted => {
            format!("wanted {wanted:?}, the model seems to give {given:?}{margin}")
        }
        _ => format!("wanted {wanted:?}{margin}"),
    }
}

/// What may decide an open token.
fn advice(precision: Precision, options: &Options, judged: &Judged) -> String {
    let wider = match precision {
        Precision::F32 => "f64 or real arithmetic",
        Precision::F64 => "real arithmetic",
        Precision::Real => return format!("not decided with {} bits, more may decide it", options.bits),
    };
    let overflow = if judged.margin.is_none() { "a sum may overflow in some program, " } else { "" };
    format!("{overflow}{wider} may decide it")
}
