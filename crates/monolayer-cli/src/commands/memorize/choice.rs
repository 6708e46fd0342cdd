//! What is said of the choice of an architecture.

use monolayer::memorize::alphabet::Choice;
use monolayer::memorize::alphabet::architecture::{Alternative, Architecture};
use monolayer::{Compiled, Mask};
use serde_json::{Value, json};

use crate::output::count;

/// How many alternatives are named in the text.
const SHOWN: usize = 5;

/// What was chosen, where the compiler had the choice.
fn chosen(compiled: &Compiled) -> Option<&Choice> {
    compiled.gated().and_then(|details| details.choice.as_ref())
}

fn fields(architecture: &Architecture) -> Value {
    let mask = match architecture.mask {
        Mask::None => "none",
        Mask::Causal => "causal",
        _ => "given",
    };
    json!({
        "mask": mask,
        "start": architecture.start,
        "reads": architecture.reads.name(),
        "gates": architecture.gates.name(),
    })
}

/// The field `architecture` of `--json`.
pub fn architecture(compiled: &Compiled) -> Value {
    if let Some(choice) = chosen(compiled) {
        return fields(&choice.architecture);
    }
    let config = compiled.model().config();
    let mask = config.layers[0].attention.as_ref().map(|attention| json!(attention.mask));
    let (reads, gates) = if config.max_length.is_some() { ("places", "word-place") } else { ("words", "word") };
    json!({ "mask": mask, "start": config.start.is_some(), "reads": reads, "gates": gates })
}

/// The field `alternatives` of `--json`.
pub fn alternatives(compiled: &Compiled) -> Value {
    let list = chosen(compiled).map_or(&[][..], |choice| &choice.alternatives);
    let entry = |a: &Alternative| {
        let mut entry = fields(&a.architecture);
        entry["units"] = json!(a.units);
        entry["impossible"] = json!(a.impossible);
        entry
    };
    list.iter().map(entry).collect()
}

/// The class of models that the lower bound speaks of.
const CLASS: &str = "this mask, start token and sharing of units, and any keys, queries and hinges";

/// The field `least_units` of `--json`.
pub fn least_units(compiled: &Compiled) -> Value {
    let field = |choice: &Choice| {
        let by =
            "the knots that labels need along lines and in planes of counts, in every order that keys and queries give";
        json!({ "units": choice.least_units, "class": CLASS, "by": by })
    };
    chosen(compiled).map_or(Value::Null, field)
}

/// The row of the table about the lower bound.
pub fn least_row(compiled: &Compiled) -> Option<Vec<String>> {
    let choice = chosen(compiled)?;
    Some(vec!["at least".to_owned(), count(choice.least_units), format!("units with {CLASS}")])
}

/// What was chosen, and what the others would have cost.
pub fn text(compiled: &Compiled) -> String {
    let Some(choice) = chosen(compiled) else { return String::new() };
    let mut text = format!("chosen, as it needs the fewest units: {}\n", choice.architecture);
    let others = &choice.alternatives[1..];
    for (a, units) in others.iter().filter_map(|a| Some((a, a.units?))).take(SHOWN) {
        text += &format!("  {} units: {}\n", count(units), a.architecture);
    }
    let worse = others.iter().filter(|a| a.impossible > choice.alternatives[0].impossible).count();
    if worse > 0 {
        text += &format!("  {worse} more would leave tokens impossible that this one gets right\n");
    }
    text
}
