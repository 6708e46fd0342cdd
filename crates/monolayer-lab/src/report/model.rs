//! What the page says of a model directory.

use std::path::Path;

use maud::{Markup, html};
use monolayer::arithmetic::kernels::Real;
use monolayer::memorize::paper_parameters;
use monolayer::model::{Generator, Source};
use monolayer::{AnyModel, Dataset, Error, Model, Result};
use serde_json::Value;

use super::{Data, Section, approximation, card, data_block, sample, tour};
use crate::example;
use crate::plot::scale::number;

/// Of a text that a model recites, so many tokens are shown at most.
const RECITED: usize = 2000;

/// The section of a model. Without data a model of the embedded example is shown with that, and one that recites a text with what
/// it recites.
pub fn section(directory: &Path, data: Option<&Data>) -> Result<Section> {
    let model = AnyModel::open(directory)?;
    if let AnyModel::Exact(_) = model {
        let what = "the page runs models in floats, and this one is exact";
        return Err(Error::mismatch(format!("{}: {what}", directory.display()), "give one in f32 or f64"));
    }
    let own = if data.is_none() { own_data(&model)? } else { None };
    let file = own.as_ref().map(super::written).transpose()?;
    let source = file.as_ref().map(|file| file.path().to_string_lossy().into_owned());
    let own = own.as_ref().zip(source.as_deref()).map(|(dataset, source)| Data { dataset, source });
    let data = data.or(own.as_ref());
    let results = data.map(|data| Results::new(directory, &model, data)).transpose()?.flatten();
    let body = html! {
        p.lead { (lead(&model, data, results.as_ref())) }
        (match &model {
            AnyModel::F32(model) => visit(directory, model, data.map(|data| data.dataset))?,
            AnyModel::F64(model) => visit(directory, model, data.map(|data| data.dataset))?,
            AnyModel::Exact(_) => html! {},
        })
        h2 { "The model in numbers" }
        (headline(directory, &model, data, results.as_ref()))
    };
    let name =
        directory.file_name().map_or_else(|| directory.display().to_string(), |n| n.to_string_lossy().into_owned());
    Ok(Section { title: format!("The model {name}"), body })
}

/// The data that a model can be shown with though none was given.
fn own_data(model: &AnyModel) -> Result<Option<Dataset>> {
    if let Some(text) = model.source().text() {
        let mut generator = Generator::new(model)?;
        generator.prompt(&text.first)?;
        while generator.tokens().len() < RECITED && generator.step()?.is_some() {}
        let words = generator.tokens().to_vec();
        let end = if generator.ended() { Some(text.end.clone()) } else { None };
        let labels: Vec<Option<String>> = words[1..].iter().cloned().map(Some).chain([end]).collect();
        return Ok(Some(Dataset::from_sequences(&[words], &[labels])?));
    }
    let example = example::dataset()?;
    Ok((model.source().data_hash() == Some(&example.hash())).then_some(example))
}

/// What comes out on a dataset, with and without attention, and what the checker says.
struct Results {
    tokens: usize,
    right: usize,
    without_attention: usize,
    report: monolayer_check::Report,
}

impl Results {
    fn new(directory: &Path, model: &AnyModel, data: &Data) -> Result<Option<Self>> {
        let (Some(right), Some(without_attention)) =
            (model.right(data.dataset)?, model.without_attention().right(data.dataset)?)
        else {
            return Ok(None);
        };
        let report = monolayer_check::verify(directory, Some(data.source), &monolayer_check::Options::default());
        Ok(Some(Self { tokens: data.dataset.tokens(), right, without_attention, report }))
    }

    fn cards(&self) -> Vec<Markup> {
        let (tokens, report) = (number(self.tokens as f64), &self.report);
        let note = match (&report.error, report.smallest_margin_ratio) {
            (Some((what, _)), _) => what.clone(),
            (None, ratio) => format!(
                "{} tokens in {}, rounding included{}{}{}",
                number(report.verified as f64),
                report.precision,
                ratio.map_or(String::new(), |r| format!("; margins at least {} times their error bound", number(r))),
                if report.impossible > 0 {
                    format!("; {} contradict themselves", report.impossible)
                } else {
                    String::new()
                },
                if report.other_data { "; not the data that its certificate is about" } else { "" }
            ),
        };
        let without = number(self.without_attention as f64);
        vec![
            card("tokens right", &number(self.right as f64), &format!("of {tokens}")),
            card("without attention", &without, &format!("of {tokens}, the same model with W_O = 0")),
            card("independent checker", report.verdict.name(), &note),
        ]
    }
}

/// The model in a sentence.
fn lead(model: &AnyModel, data: Option<&Data>, results: Option<&Results>) -> String {
    let how = match model.source() {
        Source::Memorize { .. } => "computed, not trained",
        Source::Approximate { .. } => "computed from a function, not trained",
        Source::Train { .. } => "trained",
        Source::Context { .. } | Source::Other(_) => "given",
    };
    let layers = match model.config().layers.len() {
        1 => "one attention layer".to_owned(),
        n => format!("{n} layers"),
    };
    let what = if model.source().text().is_some() { "recites a text" } else { "labels words by their context" };
    let what = if model.vocabulary().is_some() && model.label_names().is_some() {
        what
    } else {
        "maps sequences to sequences"
    };
    let found = match (data, results) {
        (Some(_), Some(Results { tokens, right, without_attention, .. })) => format!(
            " It gets {} of {} tokens right, and {} with its attention switched off.",
            number(*right as f64),
            number(*tokens as f64),
            number(*without_attention as f64)
        ),
        _ => String::new(),
    };
    format!("A Transformer with {layers}, {how}, that {what}.{found}")
}

/// The headline numbers.
fn headline(directory: &Path, model: &AnyModel, data: Option<&Data>, results: Option<&Results>) -> Markup {
    let config = model.config();
    let hidden: usize = config.layers.iter().map(|layer| layer.hidden).sum::<usize>() - model.spare_units();
    let heads = config.layers.iter().filter_map(|l| l.attention.as_ref());
    let shape = heads.map(|a| format!("{} head of size {}", a.heads, a.head_size)).collect::<Vec<_>>().join("; ");
    let mut cards = match results {
        Some(results) => results.cards(),
        None => claimed(directory).into_iter().collect(),
    };
    let paper = data.map_or(String::new(), |data| {
        format!(
            "stored; the paper's count for this data: {}",
            number(paper_parameters(data.dataset, 1, config.d) as f64)
        )
    });
    cards.push(card("layers of attention", &config.layers.len().to_string(), &shape));
    cards.push(card("hidden units", &number(hidden as f64), &format!("d = {}, {}", config.d, config.dtype)));
    cards.push(card("parameters", &number(model.parameters() as f64), &paper));
    html! { dl.cards { @for card in &cards { (card) } } }
}

/// What the certificate claims, where there is no data to check it with.
fn claimed(directory: &Path) -> Option<Markup> {
    let certificate: Value = serde_json::from_slice(&std::fs::read(directory.join("certificate.json")).ok()?).ok()?;
    let claims = certificate["claims"].as_array()?;
    if let Some(claim) = claims.iter().find(|claim| claim["kind"] == "distance") {
        let p = number(claim["p"].as_f64()?);
        let note = format!("d_{p} from f, claimed by its certificate: monolayer verify checks it");
        return Some(card("distance, at most", &number(claim["bound"].as_f64()?), &note));
    }
    let labels = claims.iter().find(|claim| claim["kind"] == "labels")?;
    let note = format!(
        "of {} tokens, in {}; claimed, not checked here (no data was given)",
        number(certificate["data"]["tokens"].as_f64()?),
        labels["arithmetic"].as_str()?
    );
    Some(card("certificate", &number(labels["right"].as_f64()?), &note))
}

/// The tour, or why there is none.
fn visit<R: Real>(directory: &Path, model: &Model<R>, data: Option<&Dataset>) -> Result<Markup> {
    if let Some(shown) = approximation::body(directory, model)? {
        return Ok(shown);
    }
    if let Some(why) = sample::obstacle(model) {
        return Ok(html! { p.remark { "No tour of this model: " (why) "." } });
    }
    let Some(data) = data else {
        return Ok(html! { p.remark { "No tour without sentences: add --data FILE." } });
    };
    let Some((value, scope)) = tour::tour(directory, model, data)? else {
        return Ok(
            html! { p.remark { "No tour: the model does not know all words of the data, or has too few positions." } },
        );
    };
    Ok(html! {
        div.tour {
            p.story role="status" { "Attention of rank 1 turns everything around a word into one number, its context id; hidden units turn the number into a label." }
            noscript { p.remark { "The tour needs JavaScript." } }
            div.controls hidden {
                label { "A sentence of the data" select.pick {} }
                label { "or your own" input.own type="text" autocomplete="off" spellcheck="false"; }
            }
            p.message role="alert" hidden {}
            div.words { svg.arcs aria-hidden="true" {} div.sentence role="listbox" {} }
            div.recital hidden {}
            fieldset.switches hidden { legend { "Change the model" } }
            div.stage {}
            details.vocabulary hidden {}
            p.scope hidden {
                @match scope {
                    tour::Scope::Whole => "The whole model is in this page: any sentence of words that it knows can be typed. The address bar holds what is shown.",
                    tour::Scope::Words => "The model is too large for this page: it holds all hidden units, and the words of the sentences shown; others cannot be typed. The address bar holds what is shown.",
                }
            }
            (data_block("tour-data", &value))
        }
    })
}
