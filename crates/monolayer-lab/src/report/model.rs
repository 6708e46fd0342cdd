//! What the page says of a model directory.

use std::path::Path;

use maud::{Markup, html};
use monolayer::arithmetic::kernels::Real;
use monolayer::memorize::paper_parameters;
use monolayer::model;
use monolayer::{AnyModel, Dataset, Error, Model, Result};
use serde_json::Value;

use super::{Data, Section, card, data_block, sample, tour};
use crate::example;
use crate::plot::scale::number;

/// The section of a model. Without data a model of the embedded example is shown with that.
pub fn section(directory: &Path, data: Option<&Data>) -> Result<Section> {
    let model = AnyModel::open(directory)?;
    let example = example::dataset()?;
    let hash = model.source().data_hash().map(str::to_owned);
    let mut file = tempfile::NamedTempFile::new().map_err(|e| Error::io("a temporary file", e))?;
    std::io::Write::write_all(&mut file, example::TEXT.as_bytes()).map_err(|e| Error::io(file.path(), e))?;
    let source = file.path().to_string_lossy().into_owned();
    let embedded = Data { dataset: &example, source: &source };
    let data = data.or((hash == Some(example.hash())).then_some(&embedded));
    let body = html! {
        (headline(directory, &model, data)?)
        (match &model {
            AnyModel::F32(model) => visit(directory, model, data.map(|data| data.dataset))?,
            AnyModel::F64(model) => visit(directory, model, data.map(|data| data.dataset))?,
            AnyModel::Exact(_) => {
                let what = "the page runs models in floats, and this one is exact";
                return Err(Error::mismatch(format!("{}: {what}", directory.display()), "give one in f32 or f64"));
            }
        })
    };
    let name =
        directory.file_name().map_or_else(|| directory.display().to_string(), |n| n.to_string_lossy().into_owned());
    Ok(Section { title: format!("The model {name}"), body })
}

/// The headline numbers.
fn headline(directory: &Path, model: &AnyModel, data: Option<&Data>) -> Result<Markup> {
    let config = model.config();
    let parameters = model.parameters();
    let hidden: usize = config.layers.iter().map(|layer| layer.hidden).sum();
    let heads = config.layers.iter().filter_map(|l| l.attention.as_ref());
    let shape = heads.map(|a| format!("{} head of size {}", a.heads, a.head_size)).collect::<Vec<_>>().join("; ");
    let mut cards = Vec::new();
    if let Some(data) = data {
        cards = results(directory, model, data, &config)?;
    } else if let Some(claim) = claimed(directory) {
        cards.push(claim);
    }
    let paper = data.map_or(String::new(), |data| {
        format!(
            "stored; the paper's count for this data: {}",
            number(paper_parameters(data.dataset, 1, config.d) as f64)
        )
    });
    cards.push(card("layers of attention", &config.layers.len().to_string(), &shape));
    cards.push(card("hidden units", &number(hidden as f64), &format!("d = {}, {}", config.d, config.dtype)));
    cards.push(card("parameters", &number(parameters as f64), &paper));
    Ok(html! { dl.cards { @for card in &cards { (card) } } })
}

/// What comes out on a dataset, with and without attention, and what the checker says.
fn results(directory: &Path, model: &AnyModel, data: &Data, config: &model::file::Config) -> Result<Vec<Markup>> {
    let right = |model: &AnyModel| -> Result<Option<usize>> {
        Ok(model.predict(data.dataset)?.right(data.dataset, config.labels.as_deref()))
    };
    let mut cards = Vec::new();
    if let (Some(with), Some(without)) = (right(model)?, right(&model.without_attention())?) {
        let tokens = number(data.dataset.tokens() as f64);
        cards.push(card("tokens right", &number(with as f64), &format!("of {tokens}")));
        cards.push(card(
            "without attention",
            &number(without as f64),
            &format!("of {tokens}, the same model with W_O = 0"),
        ));
        let report = monolayer_check::verify(directory, Some(data.source), &monolayer_check::Options::default());
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
        cards.push(card("independent checker", report.verdict.name(), &note));
    }
    Ok(cards)
}

/// What the certificate claims, where there is no data to check it with.
fn claimed(directory: &Path) -> Option<Markup> {
    let certificate: Value = serde_json::from_slice(&std::fs::read(directory.join("certificate.json")).ok()?).ok()?;
    let claims = certificate["claims"].as_array()?;
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
            h2 { "A tour" }
            p {
                "Attention with rank-1 weights turns everything around a token into one number, its context id. "
                "Point at a word, or tap it, or move with the arrow keys, to see where its id comes from and what becomes of it."
            }
            noscript { p.remark { "The tour needs JavaScript." } }
            div.controls hidden {
                label { "A sentence of the data" select.pick {} }
                label { "or your own" input.own type="text" autocomplete="off" spellcheck="false"; }
            }
            p.scope hidden {
                @match scope {
                    tour::Scope::Whole => "The whole model is in this page: any sentence of words that it knows can be typed.",
                    tour::Scope::Words => "The model is too large for this page: it holds all hidden units, and the words of the sentences shown; others cannot be typed.",
                }
            }
            p.message role="alert" hidden {}
            div.sentence role="listbox" aria-label="Words of the sentence" {}
            div.stage {}
            (data_block("tour-data", &value))
        }
    })
}
