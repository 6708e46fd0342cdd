//! `monolayer demo`: the tour on the embedded example.

use anyhow::Result;
use monolayer::dataset::Format;
use monolayer::memorize::Memorizer;
use monolayer::{AnyModel, Dataset, with_model};
use serde_json::json;

use super::{Outcome, memorize};
use crate::output::count;

/// The tour on an embedded example: compile it, run it, check it, break it
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer demo")]
pub struct Args {}

/// A small corpus, written for this.
const EXAMPLE: &str = include_str!("../../../../examples/harbor.conll");

pub fn run(_args: &Args) -> Result<Outcome> {
    let room = tempfile::tempdir()?;
    let file = room.path().join("harbor.conll");
    std::fs::write(&file, EXAMPLE)?;
    let data = Dataset::read("harbor.conll", Format::Conll, EXAMPLE.as_bytes())?;
    let compiled = Memorizer::default().compile(&data, &|_, _| {})?;
    let dir = room.path().join("model");
    compiled.save(&dir, &data)?;

    let right = |model: &AnyModel| -> Result<usize> {
        let labels = with_model!(model, m => m.head.as_ref().map(|h| h.labels.clone()));
        Ok(model.predict(&data, &|_| {})?.right(&data, labels.as_deref()).unwrap_or(0))
    };
    let with_attention = right(&compiled.model)?;
    let without_attention = right(&compiled.model.without_attention())?;
    let report = monolayer_check::verify(&dir, file.to_str(), &monolayer_check::Options::default());

    // One output weight of one hidden unit changes its sign.
    let broken = room.path().join("broken");
    with_model!(&compiled.model, m => {
        let mut model = m.clone();
        let block = model.transformer.layers[0].feed_forward.as_mut().expect("a compiled model has hidden units");
        let weight = block.w2.data.iter_mut().find(|w| **w != 0.0).expect("a unit that does something");
        *weight = -*weight;
        model.save(&broken)?;
    });
    let refuted = monolayer_check::verify(&broken, file.to_str(), &monolayer_check::Options::default());

    let verified = report.verdict == monolayer_check::Verdict::Verified;
    let json = json!({
        "memorize": memorize::report(&data, &compiled, 0.0),
        "right": with_attention,
        "right_without_attention": without_attention,
        "verify": report.json(),
        "verify_broken": refuted.json(),
    });
    let counterexample = refuted.counterexamples.first();
    let text = format!(
        "A corpus of {} tokens ({} sentences, {} labels), compiled into one rank-1 attention layer, no training:\n{}\n\
         Run: {with_attention} tokens right; with its attention switched off, {without_attention}.\n\n\
         Check, by a program that shares no code with the compiler: {}; {} tokens verified in {}, rounding included; {} \
         contradict themselves.\n\n\
         Break it, the sign of one weight: {}.{}\n\n\
         next: monolayer memorize YOUR.conll --out model\n",
        count(data.tokens()),
        count(data.sequences()),
        data.label_ids().map_or(0, |ids| ids.iter().max().map_or(0, |&m| m + 1)),
        memorize::table_of(&data, &compiled, None),
        report.verdict.name(),
        count(report.verified),
        report.precision,
        report.impossible,
        refuted.verdict.name(),
        counterexample.map_or(String::new(), |c| format!(
            "\n  {} {:?}: {}",
            c.place.replace(room.path().to_str().unwrap_or(""), "").trim_start_matches('/'),
            c.text,
            c.what
        )),
    );
    Ok(Outcome::decided(json, text, verified && refuted.verdict == monolayer_check::Verdict::Refuted))
}
