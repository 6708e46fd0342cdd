//! An explanation in words.

use monolayer::model::explain::Explanation;
use monolayer::model::explain::along_id::{IdBound, LabelRange};
use monolayer::model::explain::contributions::{Contribution, Part};
use monolayer::{AnyModel, Dataset, ModelNames};

use super::{Context, Near, best, lead};
use crate::commands::unit_words::{digits, id_digits, significant, tokens, word};
use crate::output::count;

/// Units that are spoken of.
const UNITS: usize = 8;
/// Labels that a line names.
const LABELS: usize = 6;
/// Words around a token that a line shows.
const AROUND: usize = 8;

/// What it takes to speak of the tokens of a sequence.
pub struct Words<'a> {
    sentence: &'a Dataset,
    labels: Vec<String>,
    has_labels: bool,
    names: Option<&'a ModelNames>,
    /// The row of the first token's place.
    first: usize,
    exact: usize,
}

impl<'a> Words<'a> {
    pub fn new(model: &AnyModel, sentence: &'a Dataset, names: Option<&'a ModelNames>) -> Self {
        let config = model.config();
        let outputs = config.outputs.unwrap_or(config.d);
        let coordinates = || (1..=outputs).map(|k| format!("output {k}")).collect();
        Self {
            sentence,
            labels: model.label_names().map_or_else(coordinates, |labels| labels.iter().map(|l| word(l)).collect()),
            has_labels: model.label_names().is_some(),
            names,
            first: usize::from(config.start.is_some()),
            exact: id_digits(&config.dtype),
        }
    }

    /// All about token `t`.
    pub fn token(&self, t: usize, explanation: &Explanation, near: &Near) -> String {
        let mut lines = vec![self.headline(t, explanation)];
        let (shown, rest) = self.chosen(explanation);
        lines.extend(shown.into_iter().filter_map(|part| self.part(t, explanation, part)));
        if !rest.is_empty() {
            let sum = |l: usize| rest.iter().map(|part| part.adds[l]).sum::<f64>();
            let sums = Contribution { part: Part::Bias, adds: (0..self.labels.len()).map(sum).collect() };
            let adds = self.adds(explanation, &sums).unwrap_or_else(|| "nothing".to_owned());
            let units = if rest.len() == 1 { "unit fires; it adds" } else { "units fire; together they add" };
            lines.push(format!("{} more {units} {adds}", count(rest.len())));
        }
        lines.push(self.sums(explanation));
        lines.extend(explanation.trace.id.zip(explanation.range.as_ref()).map(|(id, range)| self.ends(id, range)));
        let context = |what: &str, c: &Context| {
            let label = c.label.as_deref().map_or(String::new(), |label| format!(" ({})", word(label)));
            format!("{what} in the data, {} away by id: {}{label}", signed(c.distance), around(&c.sentence))
        };
        match (&near.other_label, &near.any) {
            (Some(other), _) => lines.push(context("nearest context with another label", other)),
            (None, Some(any)) => lines.push(context("nearest other context", any)),
            (None, None) => {}
        }
        lines.join("\n    ") + "\n"
    }

    fn headline(&self, t: usize, explanation: &Explanation) -> String {
        let token = word(&self.sentence.token_text(t));
        let id = explanation.trace.id.map_or(String::new(), |id| format!("; context id {}", significant(id, 7)));
        if !self.has_labels {
            let outputs: Vec<String> =
                explanation.trace.scores.iter().take(LABELS).map(|x| significant(*x, 7)).collect();
            return format!("{token}: output {}{id}", outputs.join(", "));
        }
        let label = &self.labels[best(explanation)];
        let lead = lead(explanation)
            .map_or(String::new(), |(lead, second)| format!(", by {} over {}", digits(lead), self.labels[second]));
        format!("{token}: {label}{lead}{id}")
    }

    /// The parts that are spoken of one by one, and the units that are not: those that matter least between the two labels
    /// with the highest scores.
    fn chosen<'e>(&self, explanation: &'e Explanation) -> (Vec<&'e Contribution>, Vec<&'e Contribution>) {
        let (best, second) = (best(explanation), lead(explanation).map(|(_, second)| second));
        let weight = |part: &Contribution| match second {
            Some(second) if self.has_labels => (part.adds[best] - part.adds[second]).abs(),
            _ => part.adds.iter().fold(0.0, |most: f64, x| most.max(x.abs())),
        };
        let is_unit = |part: &&Contribution| matches!(part.part, Part::Unit(_));
        let (mut units, others): (Vec<_>, Vec<_>) = explanation.contributions.iter().partition(is_unit);
        units.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        let rest = units.split_off(units.len().min(UNITS));
        (units.into_iter().chain(others).collect(), rest)
    }

    /// What a part adds; nothing where it adds nothing, unless it is a unit.
    fn part(&self, t: usize, explanation: &Explanation, part: &Contribution) -> Option<String> {
        let adds = self.adds(explanation, part);
        let who = match part.part {
            Part::Unit(j) => {
                let adds = adds.unwrap_or_else(|| "nothing".to_owned());
                return Some(format!("{}; it adds {adds}", self.unit(t, explanation, j)));
            }
            Part::Token if self.sentence.word(t).is_some() => "the word itself",
            Part::Token => "the token itself",
            Part::Place => "its place",
            Part::Quantizer => "the block before attention",
            Part::Attention => "attention",
            Part::Bias => "the bias of the hidden layer",
            Part::Head => "the bias of the labels",
        };
        adds.map(|adds| format!("{who} adds {adds}"))
    }

    /// Where a unit fires: as names.json has it, or as the weights have it for this token.
    fn unit(&self, t: usize, explanation: &Explanation, j: usize) -> String {
        let (token, place) = (self.sentence.word(t), self.first + t);
        let k = explanation.trace.firing.iter().position(|&(unit, _)| unit == j).unwrap_or(0);
        let named = self.names.and_then(|names| names.units.get(j));
        let holds = explanation.trace.id.zip(token).and_then(|(id, token)| {
            named.and_then(|named| named.fires.iter().find(|firing| firing.holds(token, place, id)))
        });
        if let Some(firing) = holds {
            // Places are counted from 1 for people, and the start token has none.
            return format!("unit {j} fires for {}", tokens(firing, 1 - self.first, self.exact));
        }
        let who = word(&self.sentence.token_text(t));
        match explanation.bounds.get(k) {
            Some(IdBound::Above(x)) => {
                format!("unit {j} fires for {who} here where the context id is above {}", significant(*x, self.exact))
            }
            Some(IdBound::Below(x)) => {
                format!("unit {j} fires for {who} here where the context id is below {}", significant(*x, self.exact))
            }
            Some(IdBound::Any) => format!("unit {j} fires for {who} here whatever the context"),
            None => format!("unit {j} fires for {who} in this context"),
        }
    }

    /// What is added to labels: to those that get most, the highest scores first where there are many.
    fn adds(&self, explanation: &Explanation, part: &Contribution) -> Option<String> {
        let scores = &explanation.trace.scores;
        let mut order: Vec<usize> = (0..part.adds.len()).filter(|&l| part.adds[l] != 0.0).collect();
        let all = order.len();
        if all > LABELS {
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            order.truncate(LABELS);
        }
        order.sort_by(|&a, &b| part.adds[b].abs().total_cmp(&part.adds[a].abs()));
        let text = |&l: &usize| format!("{} to {}", digits(part.adds[l]), self.labels[l]);
        let more = if all > order.len() {
            format!(" (and to {} other labels)", count(all - order.len()))
        } else {
            String::new()
        };
        (!order.is_empty()).then(|| order.iter().map(text).collect::<Vec<_>>().join(", ") + &more)
    }

    /// The scores, the highest first.
    fn sums(&self, explanation: &Explanation) -> String {
        let scores = &explanation.trace.scores;
        let mut order: Vec<usize> = (0..scores.len()).collect();
        if self.has_labels {
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        }
        let rounding = explanation.rounding.iter().fold(0.0, |most: f64, x| most.max(*x));
        let text = |&l: &usize| format!("{} {}", self.labels[l], digits(scores[l]));
        let shown: Vec<String> = order.iter().take(LABELS).map(text).collect();
        let more = if scores.len() > LABELS { ", ..." } else { "" };
        format!("sum: {}{more} (rounding at most {rounding:.0e})", shown.join(", "))
    }

    /// What would change the label.
    fn ends(&self, id: f64, range: &LabelRange) -> String {
        let end = |side: &str, end: Option<(f64, usize)>| {
            end.map(|(at, l)| format!("{} {side} {} ({} away)", self.labels[l], significant(at, 7), signed(at - id)))
        };
        match (end("for ids below", range.below), end("for ids above", range.above)) {
            (None, None) => "it gets this label in every context".to_owned(),
            (Some(one), None) | (None, Some(one)) => format!("it would be {one}"),
            (Some(one), Some(other)) => format!("it would be {one}, {other}"),
        }
    }
}

fn signed(x: f64) -> String {
    let text = digits(x);
    if x < 0.0 { text } else { format!("+{text}") }
}

/// A long sentence around its marked word.
fn around(sentence: &str) -> String {
    let words: Vec<&str> = sentence.split(' ').collect();
    let at = words.iter().position(|word| word.starts_with('[') && word.ends_with(']')).unwrap_or(0);
    let (from, to) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(words.len()));
    let [before, after] = [from > 0, to < words.len()].map(|cut| if cut { "..." } else { "" });
    format!("{before}{}{after}", words[from..to].join(" "))
}
