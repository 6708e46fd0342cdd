//! The part of the report about tokens: counterexamples, open and impossible tokens, in words.

use monolayer_core::model::Model;
use monolayer_core::rules::judge::{Judged, Verdict as Judgement};

use crate::open_data::Source;
use crate::options::{Options, Precision};
use crate::report::{Finding, Report};
use crate::token_verdict::{label_name, middle, radius, ratio};

/// A report that is being filled.
pub(crate) struct TokenReport<'a> {
    pub options: &'a Options<'a>,
    pub model: &'a Model,
    pub source: &'a Source,
    /// The arithmetic of the tokens.
    pub precision: Precision,
    pub report: Report,
}

impl TokenReport<'_> {
    /// Counts a token, and writes it out unless it holds.
    pub fn token(&mut self, t: usize, judged: &Judged, impossible: bool) {
        let counts = self.options.strict || !impossible;
        let report = &mut self.report;
        let list = match judged.verdict {
            Judgement::Free => return,
            _ if !counts => &mut report.impossible_tokens,
            Judgement::Right => {
                report.verified += 1;
                if let Some(ratio) =
                    ratio(judged).filter(|ratio| report.smallest_margin_ratio.is_none_or(|s| *ratio < s))
                {
                    report.smallest_margin_ratio = Some(ratio);
                }
                return;
            }
            Judgement::Wrong => {
                report.refuted += 1;
                &mut report.counterexamples
            }
            Judgement::Unknown => {
                report.unknown += 1;
                &mut report.open
            }
        };
        if list.len() < self.options.findings {
            let given = judged.given.and_then(|label| label_name(self.model, label)).map(str::to_owned);
            let (position, place, text) = (self.source.locate(t), self.source.place(t), self.source.shown(t));
            let what = what(self.model, self.source, t, judged);
            let open = judged.verdict == Judgement::Unknown && counts;
            let what = if open { format!("{what}; {}", advice(self.precision, self.options, judged)) } else { what };
            list.push(Finding { token: t, position, place, text, what, given });
        }
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
