//! `monolayer edit`: another label for some contexts, and nothing else changed but what is stated and proved.

mod forget;
mod read_edits;
pub mod report;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use monolayer::edit::{self, Edit, Editor};
use monolayer::{AnyModel, Error};
use serde_json::json;

use super::generate::split;
use super::{DOES, Outcome, READS, Shared, WRITES};
use crate::commands::data_args::ReadArgs;

/// Change the labels of some contexts of a compiled model, exactly, with a certificate of the difference
///
/// A context is a word with all that it sees, at a place where the model has positions. Each edit adds a few hidden units that fire
/// for that word at that place alone. difference.json states where labels can change, for every sequence over the vocabulary and
/// every order of summation; `monolayer verify DIR2 --against DIR` checks it independently.
#[derive(clap::Args)]
#[command(
    after_help = "Example: monolayer edit model --set \"May sails in May .:1=DATE\" --data train.conll --out edited
         monolayer edit model --edits edits.jsonl --out edited
         monolayer edit model --forget secret.conll --data train.conll --out without
         monolayer edit edited --undo --out model2"
)]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// A sentence, the number of a token in it, from 1, and the label that it is to get; may be repeated
    #[arg(long, value_name = "SENTENCE:K=LABEL", help_heading = READS)]
    set: Vec<String>,
    /// Edits as JSON lines: `{"tokens": ["May", "sails"], "place": 0, "label": "DATE"}`, places from 0, or `{"set": "May sails:1=DATE"}`
    #[arg(long, value_name = "FILE", help_heading = READS)]
    edits: Option<PathBuf>,
    /// New sequences with labels; words that the model does not know get codes
    #[arg(long, value_name = "DATA", help_heading = READS)]
    add: Option<String>,
    /// Sequences to forget, all copies of each: the model that there would be had it never seen them. Needs --data, all that it was
    /// made from
    #[arg(long, value_name = "DATA", requires = "data", conflicts_with_all = ["set", "edits", "add", "undo"], help_heading = READS)]
    forget: Option<String>,
    /// What the model was made from, or other data: every token of another context keeps its label, or the edit is refused
    #[arg(long, value_name = "DATA", help_heading = READS)]
    data: Option<String>,
    #[command(flatten)]
    read: ReadArgs,
    /// With --forget: draw new codes and a new projection with this seed, and keep none of the old words
    #[arg(long, value_name = "SEED", requires = "forget", help_heading = DOES)]
    fresh: Option<u64>,
    /// Take the last edits back: the tensors of the model before, byte for byte
    #[arg(long, conflicts_with_all = ["set", "edits", "add", "data"], help_heading = DOES)]
    undo: bool,
    /// The model directory to write
    #[arg(long, value_name = "DIR", help_heading = WRITES)]
    out: PathBuf,
    /// Replace a model that is there
    #[arg(long, help_heading = WRITES)]
    force: bool,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let start = Instant::now();
    args.check_out()?;
    if args.undo {
        edit::undo(&args.model, &args.out)?;
        let json = json!({ "undone": true, "out": args.out, "seconds": start.elapsed().as_secs_f64() });
        return Ok(Outcome::done(json, format!("the model before its last edits: {}\n", args.out.display())));
    }
    let model = AnyModel::open(&args.model)?;
    let data = args.read.open_some(args.data.as_deref(), shared)?;
    if let (Some(sequences), Some(data)) = (&args.forget, &data) {
        return forget::run(args, &model, data, &args.read.open(sequences, shared)?, start);
    }
    let mut edits = args.edits(&model)?;
    let editor = match &args.add {
        Some(sequences) => {
            let (editor, more) = Editor::adding(model, data.as_ref(), &args.read.open(sequences, shared)?)?;
            edits.extend(more);
            editor
        }
        None => Editor::new(model, data.as_ref())?,
    };
    let edited = editor.edit(&edits)?;
    let made = edited.units_added() > 0 || editor.words_added() > 0;
    if made {
        edited.save(&args.model, &args.out)?;
    }
    let out = made.then_some(args.out.as_path());
    let json = report::json(&edits, &edited, &editor, out, start.elapsed().as_secs_f64());
    let text = report::text(&edits, &edited, &editor, &args.model, out);
    Ok(Outcome::decided(json, text, edited.refused().next().is_none()))
}

impl Args {
    /// An error where the directory to write to is there.
    fn check_out(&self) -> Result<()> {
        let there =
            |dir: &Path| std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) || dir.is_file();
        if there(&self.out) && !self.force {
            let what = format!("{} is there already", self.out.display());
            return Err(Error::setting(what, "choose another directory, or add --force").into());
        }
        Ok(())
    }

    fn edits(&self, model: &AnyModel) -> Result<Vec<Edit>> {
        let split = split(model);
        let mut edits = self.set.iter().map(|text| read_edits::parse(text, split)).collect::<Result<Vec<_>, _>>()?;
        if let Some(path) = &self.edits {
            edits.extend(read_edits::open(path, split)?);
        }
        if edits.is_empty() && self.add.is_none() {
            let help = "add --set \"SENTENCE:K=LABEL\", --edits FILE, --add FILE, --forget FILE or --undo";
            return Err(Error::setting("no edits", help).into());
        }
        Ok(edits)
    }
}
