//! What difference.json claims about a model and another, checked by the core.

use std::path::Path;

use monolayer_core::Format;
use monolayer_core::claims::difference::{Compared, Comparison};
use monolayer_core::model::Model;
use monolayer_core::read::directory::{self, Hashes};
use monolayer_core::read::{self, at, difference};

use crate::error::{Error, Result};
use crate::options::Options;
use crate::report::{Claim, Looked};
use crate::token_verdict::middle;
use crate::verify::{Progress, verdict};
use monolayer_core::rules::ball::Ball;

const DIFFERENCE: &str = "difference.json";

/// Checks the difference.json of a directory, which is about this model and the one of another directory.
pub(crate) fn against(dir: &Path, model: (&Model, &Hashes), other: &Path, options: &Options) -> Result<Claim> {
    let file = dir.join(DIFFERENCE);
    if file.symlink_metadata().is_err() {
        let help = "it stands in the directory of the second model; monolayer edit writes it";
        return Err(Error::new(file.display().to_string(), "there is no such file", help));
    }
    let bytes = read::file(&file, "json", options.limits.json)?;
    let difference = at(file.display(), difference::parse(&bytes, &options.limits))?;
    let (from, hashes) = directory::open(other, &options.limits)?;
    let progress = Progress::new(options);
    let comparison = Comparison {
        from: (&from, &hashes),
        to: model,
        difference: &difference,
        threads: options.threads,
        tick: &|done, total| progress.add(done, total),
    };
    let help = "docs/format.md says what difference.json may have";
    let found = comparison.check().map_err(|what| Error::new(file.display().to_string(), what, help))?;
    Ok(claim(&found, difference.changes.len(), difference.format))
}

/// What was found, in words.
fn claim(found: &Compared, changes: usize, format: Format) -> Claim {
    let Compared { units, pairs, length, .. } = *found;
    let mut why = found.why.clone();
    if let Some(id) = found.id {
        why = format!("{why}, where the id is {:e}", middle(Ball::exact(id)));
    }
    if units > 0 {
        let arithmetic = if format == Format::F32 { "f32" } else { "f64" };
        why = format!(
            "{why} (changes: {changes}; hidden units that differ: {units}; words at places: {pairs}; sequences of up to {length} tokens, {arithmetic})"
        );
    }
    let looked = Looked { changes, units, pairs, length };
    Claim { kind: "difference".into(), verdict: verdict(found.verdict), why, bound: None, looked: Some(looked) }
}
