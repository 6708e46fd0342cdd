//! What is said of a text beside what is said of any dataset: whether it can be recited, and what attention is worth for it.

use monolayer::data::word_majority;
use monolayer::{Compiled, Dataset};
use serde_json::Value;

use crate::output::{count, percent};

/// Adds the fields `word_majority` and `recites`, and gives the text for people.
pub fn add(data: &Dataset, compiled: &Compiled, json: &mut Value) -> String {
    let tokens = data.tokens();
    let majority = word_majority(data, data).unwrap_or(0.0);
    let without = (majority * tokens as f64).round() as usize;
    let first = compiled.impossible().first();
    // What follows the first impossible token comes out wrong; the token itself still comes out right.
    let recites = first.map_or(tokens, |&t| t + 1);
    json["word_majority"] = majority.into();
    json["recites"] = recites.into();
    let mut text = format!(
        "without attention, each token followed by what follows it most often: {} of {} right ({})\n",
        count(without),
        count(tokens),
        percent(without, tokens)
    );
    if let Some(&t) = first {
        text += &format!(
            "reciting goes wrong after token {} of {}, {:?} at {}: what stands before it is what stood before the same \
             token earlier, the same tokens in the same proportions, and something else followed there. Attention without \
             positions sees proportions only. A start token before the text would change them; this version has none\n",
            count(recites),
            count(tokens),
            data.token_text(t),
            data.location(t),
        );
    }
    if let Some(given) = compiled.impossible().last().map(|&t| t + 2).filter(|&given| given <= tokens) {
        text += &format!("monolayer generate goes on to the end if it is given the first {} tokens\n", count(given));
    }
    text
}
