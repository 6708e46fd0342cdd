//! A model compiled by the library, checked by a program that shares no code with it:
//! cargo run --release -p monolayer-check --example verify

use monolayer::{Dataset, Memorizer, Result};
use monolayer_check::{Options, Verdict, verify};

pub(crate) fn main() -> Result<()> {
    let task = "task:sort:alphabet=3,length=4";
    let dir = std::env::temp_dir().join(format!("monolayer-verify-{}", std::process::id()));
    Memorizer::new().compile(&Dataset::open(task)?)?.save(&dir)?;

    let report = verify(&dir, Some(task), &Options::default());
    println!("{}: {} of {} tokens", report.verdict.name(), report.verified, report.tokens);
    for claim in &report.claims {
        println!("  {}: {}", claim.kind, claim.verdict.name());
    }
    std::fs::remove_dir_all(&dir).expect("it was just written");
    assert_eq!(report.verdict, Verdict::Verified);
    Ok(())
}
