//! Sequences of words into one rank-1 attention layer, proved: cargo run --release -p monolayer --example memorize

use monolayer::{AnyModel, Dataset, Memorizer, Result};

pub(crate) fn main() -> Result<()> {
    // "May" is a person in one sentence and a month in another: only its context tells.
    let tokens = [vec!["May", "sails", "home"], vec!["she", "sails", "in", "May"]];
    let labels = [vec!["PERSON", "O", "O"], vec!["O", "O", "O", "MONTH"]];
    let data = Dataset::from_sequences(&tokens, &labels)?;
    let compiled = Memorizer::new().seed(7).compile(&data)?;
    println!("{} of {} tokens proved right in floating point", compiled.certified(), data.tokens());
    assert!(compiled.is_proved());

    let dir = std::env::temp_dir().join(format!("monolayer-memorize-{}", std::process::id()));
    compiled.save(&dir)?;
    let model = AnyModel::open(&dir)?;
    println!("from {}: {:?} right", dir.display(), model.right(&data)?);
    println!("without attention: {:?} right", model.without_attention().right(&data)?);
    std::fs::remove_dir_all(&dir).expect("it was just written");
    Ok(())
}
