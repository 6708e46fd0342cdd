//! `monolayer edit --forget`: the model that there would be had it never seen some sequences.

use std::time::Instant;

use anyhow::Result;
use monolayer::edit::Forget;
use monolayer::{AnyModel, Dataset};
use serde_json::json;

use super::super::Outcome;
use super::Args;
use crate::commands::memorize::hidden_units;
use crate::output::count;

pub fn run(args: &Args, model: &AnyModel, data: &Dataset, sequences: &Dataset, start: Instant) -> Result<Outcome> {
    let mut forget = Forget::new(data, sequences);
    if let Some(seed) = args.fresh {
        forget = forget.fresh(seed);
    }
    let forgotten = forget.from(model)?;
    let compiled = &forgotten.compiled;
    compiled.save(&args.out)?;
    let spare = compiled.spare();
    let hidden = compiled.model().config().layers[0].hidden - spare;
    let json = json!({
        "edits": 0,
        "refused": [],
        "units_added": 0,
        "changes": null,
        "sequences_forgotten": forgotten.sequences,
        "tokens_forgotten": forgotten.tokens,
        "tokens": forgotten.rest.tokens(),
        "certified": compiled.certified(),
        "possible": compiled.possible(),
        "hidden": hidden,
        "spare": spare,
        "fresh": args.fresh.is_some(),
        "out": args.out,
        "seconds": start.elapsed().as_secs_f64(),
    });
    let kept = match args.fresh {
        Some(_) => "codes, projection and words are new: nothing of the old model is kept but its settings".to_owned(),
        None => "kept from the old model: its words, their codes, the number of places, the projection, the labels and their order; they \
                 may show that a word occurred, or that a sequence was so long; --fresh SEED draws new ones"
            .to_owned(),
    };
    let text = format!(
        "{} sequences of {} tokens forgotten; compiled from the other {} tokens, {} of {} possible ones proved\n\
         the same tensors, byte for byte, as of a model that never saw them\n{kept}\n{} hidden units\n",
        count(forgotten.sequences),
        count(forgotten.tokens),
        count(forgotten.rest.tokens()),
        count(compiled.certified()),
        count(compiled.possible()),
        hidden_units(hidden, spare),
    );
    Ok(Outcome::decided(json, text, compiled.is_proved()))
}
