//! `monolayer memorize`: a dataset into the weights of one rank-1 layer.

mod choice;
mod confirm;
mod orderings;
mod size;
mod text;
mod vectors;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::ValueEnum;
use monolayer::context_map::search::CANDIDATES;
use monolayer::data::Orderings;
use monolayer::data::positions::Positions;
use monolayer::memorize::alphabet::architecture::{Gates, Reads};
use monolayer::memorize::{Details, Effort, paper_parameters};
use monolayer::model::Storage;
use monolayer::model::certificate::Claim;
use monolayer::{AnyModel, Compiled, Dataset, Error, Memorizer, Method, Precision, Source};
use serde_json::{Value, json};

pub use self::confirm::margin;
use super::mask::{self, MaskArg};
use super::{DOES, DataArgs, Outcome, READS, Shared, WRITES, place_json, replacing};
use crate::output::{Progress, count, percent, table};

/// Compile a dataset into one rank-1 attention layer and one feed-forward block, without training
///
/// The model gives every token its label. The exceptions are tokens whose context also occurs with a more frequent label:
/// no weights can get those right. They are listed, and the more frequent label is memorized. The model directory contains a
/// certificate, which states what was proved; `monolayer verify` checks it independently.
///
/// With --text the labels are the next tokens of a text, under the causal mask and without positions: `monolayer generate`
/// recites it. The accuracy without attention is shown beside the model's.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer memorize train.conll --out model
         monolayer memorize train.conll --mask prefix:4 --out model
         monolayer memorize --text LICENSE --out model && monolayer generate model")]
pub struct Args {
    #[command(flatten)]
    data: DataArgs,
    /// How the feed-forward block turns context ids into labels (default: gated for words with class labels, else plateau)
    #[arg(long, value_enum, help_heading = DOES)]
    method: Option<MethodArg>,
    /// Word vectors: auto (one-hot for small alphabets, else sign:64; in stages far:64, or far:32 from 65,536 words on),
    /// one-hot, sign:D, far:D (any two are far apart; D is 32 or 64), random:D or a file of words and numbers, all chosen without looking at labels; or free: the compiler may encode labels in them
    #[arg(long, value_name = "CODES", default_value = "auto", help_heading = DOES)]
    embedding: String,
    /// Position vectors: auto (use them if labels conflict without), none, sign:D, far:D, random:D or a file
    #[arg(long, value_name = "CODES", default_value = "auto", conflicts_with = "text", help_heading = DOES)]
    positions: Positions,
    #[arg(long, value_name = "MASK", conflicts_with = "text", help = mask::HELP, help_heading = DOES)]
    mask: Option<MaskArg>,
    /// Put a start token before every sequence: seen by all tokens, never counted or labeled. Without positions, attention can
    /// then count. `--start no` is without; small alphabets: by default what needs fewer units
    #[arg(long, value_name = "yes|no", num_args = 0..=1, default_missing_value = "yes", value_parser = ["yes", "no"], help_heading = DOES)]
    start: Option<String>,
    /// Small alphabets: what attention reads of places: words (nothing), own-place (keys read words; the token's own place is
    /// visible), places (by default what needs the fewest units)
    #[arg(long, value_name = "WHAT", help_heading = DOES)]
    reads: Option<Reads>,
    /// Small alphabets: which tokens share their hidden units: shared (all), word, place, word-place (by default what needs the
    /// fewest units)
    #[arg(long, value_name = "WHICH", help_heading = DOES)]
    gates: Option<Gates>,
    /// What the order of the tokens is: given (the default), or all: every sequence stands for all its orderings, and the model has
    /// neither a mask nor positions. A task with order=sorted is of this kind
    #[arg(long, value_enum, conflicts_with = "text", help_heading = DOES)]
    orderings: Option<OrderingsArg>,
    /// Precision of the model; auto is f32 if every possible token is proved right in f32, else f64 if that proves more
    #[arg(long, value_enum, default_value = "auto", help_heading = DOES)]
    precision: PrecisionArg,
    /// Seed of the vectors and of the search; the same seed gives the same bytes
    #[arg(long, default_value_t = 0, help_heading = DOES)]
    seed: u64,
    /// Number of projections to try; more give a larger gap between context ids
    #[arg(long, value_name = "N", default_value_t = CANDIDATES, help_heading = DOES)]
    candidates: usize,
    /// Large vocabularies: how long to look for fewer hidden units. From a million tokens on, fast goes through the data in stages
    #[arg(long, value_enum, default_value = "default", help_heading = DOES)]
    effort: EffortArg,
    /// With --effort fast: go through the data in stages, whatever its size, with so many megabytes for what is known of single
    /// tokens (512 where nothing is said). Where they need more, the data is gone through more often; the model is the same
    #[arg(long, value_name = "MB", help_heading = DOES)]
    memory: Option<usize>,
    /// Add a row for unknown words; they get the most frequent label
    #[arg(long, help_heading = DOES)]
    unknown: bool,
    /// How numbers are written: dense; sparse (matrices by their nonzero entries where that is smaller); small (also in as few bytes
    /// each as hold them exactly); or auto: small where format monolayer/2 is needed anyway or halves a file of 1 MB or more, else
    /// dense. The numbers are the same
    #[arg(long, value_enum, default_value = "auto", help_heading = WRITES)]
    storage: StorageArg,
    /// Spare hidden units of zeros, which `monolayer edit` fills so that shapes stay (default: 64; 0 for tasks)
    #[arg(long, value_name = "N", help_heading = WRITES)]
    spare: Option<usize>,
    /// Take codes, projection, words, max_length, mask, precision and the order of labels over from a model
    #[arg(long, value_name = "DIR", conflicts_with_all = ["mask", "start", "reads", "gates", "unknown", "text", "candidates", "seed"], help_heading = READS)]
    like: Option<PathBuf>,
    /// Exit with code 1 if some tokens cannot be memorized
    #[arg(long, help_heading = DOES)]
    strict: bool,
    /// Skip the checker; the certificate then rests on the compiler's proof alone
    #[arg(long, help_heading = DOES)]
    unchecked: bool,
    /// The model directory to write
    #[arg(long, value_name = "DIR", help_heading = WRITES)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum MethodArg {
    /// Hidden units that are active for their own words only
    Gated,
    /// A step function of the context id; the skip connection is canceled
    Plateau,
    /// A piecewise-linear function of the context id, as in Corollary 1
    Interpolate,
    /// Many narrow layers and fewer parameters (Remark 2), in exact rational arithmetic
    Deep,
    /// Corollary 1 with the constants of its proof, for tiny datasets, in big floats; writes no model
    Paper,
}

impl From<MethodArg> for Method {
    fn from(method: MethodArg) -> Self {
        match method {
            MethodArg::Gated => Self::Gated,
            MethodArg::Plateau => Self::Plateau,
            MethodArg::Interpolate => Self::Interpolate,
            MethodArg::Deep => Self::Deep,
            MethodArg::Paper => Self::Paper,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum OrderingsArg {
    Given,
    All,
}

#[derive(Clone, Copy, ValueEnum)]
enum PrecisionArg {
    Auto,
    F32,
    F64,
}

impl From<PrecisionArg> for Precision {
    fn from(precision: PrecisionArg) -> Self {
        match precision {
            PrecisionArg::Auto => Self::Auto,
            PrecisionArg::F32 => Self::F32,
            PrecisionArg::F64 => Self::F64,
        }
    }
}

/// How long to look for fewer hidden units.
#[derive(Clone, Copy, ValueEnum)]
pub enum EffortArg {
    Fast,
    Default,
    High,
}

impl From<EffortArg> for Effort {
    fn from(effort: EffortArg) -> Self {
        match effort {
            EffortArg::Fast => Self::Fast,
            EffortArg::Default => Self::Default,
            EffortArg::High => Self::High,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum StorageArg {
    Auto,
    Dense,
    Sparse,
    Small,
}

impl From<StorageArg> for Storage {
    fn from(storage: StorageArg) -> Self {
        match storage {
            StorageArg::Auto => Self::Auto,
            StorageArg::Dense => Self::Dense,
            StorageArg::Sparse => Self::Sparse,
            StorageArg::Small => Self::Small,
        }
    }
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let start = Instant::now();
    let mut data = args.data.open(shared)?;
    if matches!(args.orderings, Some(OrderingsArg::All)) {
        data.orderings = Orderings::All;
    }
    let method = args.method.map_or_else(|| Method::for_data(&data), Method::from);
    // The numbers of the paper's proof have more bits than any use of a file would need.
    let out = if method == Method::Paper { None } else { Some(args.out()?) };
    let progress = Progress::new(shared, "searching", args.candidates, "projections");
    let compiled = args.memorizer(method)?.on_progress(|tried, _gap| progress.add(tried)).compile(&data)?;
    drop(progress);
    if let Some(out) = out {
        replacing(out, shared);
        compiled.save(out)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let (mut json, mut text) = match compiled.details() {
        Details::Gated(_) => (report(&data, &compiled, seconds), text(&data, &compiled, seconds)),
        Details::Hinges(hinges) => vectors::hinges(args, &data, &compiled, hinges, seconds),
        Details::Deep(deep) => vectors::deep(&data, &compiled, deep, seconds),
        Details::Paper(proof) => vectors::paper(&data, &compiled, proof, seconds),
        Details::Exact => unreachable!("no such precision here"),
    };
    if let Some(out) = out {
        text += &size::add(out, &data, &mut json)?;
    }
    if args.data.text.is_some() {
        text += &text::add(&data, &compiled, &mut json);
    }
    if compiled.gated().is_some() {
        text += &args.next();
    }
    let outcome = Outcome::decided(json, text, args.holds(&compiled));
    match out {
        Some(out) => confirm::confirm(args, out, &data, shared, outcome),
        None => Ok(outcome),
    }
}

/// Tokens proved right in an arithmetic, and the smallest margin over its error.
fn certified(compiled: &Compiled, wanted: &str) -> Option<(usize, f64)> {
    let ratios = compiled.gated().map_or(&[][..], |details| &details.ratios);
    compiled.claims().iter().zip(ratios).find_map(|(claim, ratio)| match claim {
        Claim::Labels { arithmetic, right, .. } if arithmetic == wanted => Some((*right, *ratio)),
        _ => None,
    })
}

/// Hidden units for words, for positions and for contexts.
fn units(compiled: &Compiled) -> [usize; 3] {
    compiled.gated().map_or([0; 3], |details| details.units)
}

/// Tokens proved in single precision, where double precision was chosen.
fn in_single(compiled: &Compiled) -> Option<usize> {
    compiled.gated().and_then(|details| details.proved_in_single)
}

/// How many projections were tried.
fn candidates(compiled: &Compiled) -> Option<usize> {
    if let Source::Memorize { candidates, .. } = compiled.source() { Some(*candidates) } else { None }
}

/// The fields of `--json`.
pub fn report(data: &Dataset, compiled: &Compiled, seconds: f64) -> Value {
    let config = compiled.model().config();
    let proved = certified(compiled, &config.dtype);
    let [words, places, contexts] = units(compiled);
    with_counts(
        data,
        compiled,
        &json!({
            "hidden": config.layers[0].hidden - compiled.spare(),
            "spare": compiled.spare(),
            "units": { "words": words, "places": places, "contexts": contexts },
            "architecture": choice::architecture(compiled),
            "alternatives": choice::alternatives(compiled),
            "least_units": choice::least_units(compiled),
            "orderings": orderings::field(compiled),
            "d": config.d,
            "dtype": config.dtype,
            "max_length": config.max_length,
            "parameters": compiled.model().parameters(),
            "nonzero": compiled.model().nonzero_parameters(),
            "paper_parameters": paper_parameters(data, 1, config.d),
            "smallest_gap": compiled.gap(),
            "candidates": candidates(compiled),
            "certified": proved.map(|(right, _)| right),
            "unproved": compiled.unproved().map(|t| place_json(data, t)).collect::<Vec<_>>(),
            "certified_f32": certified(compiled, "f32").map(|(right, _)| right).or(in_single(compiled)),
            "certified_f64": certified(compiled, "f64").map(|(right, _)| right),
            "smallest_margin_ratio": proved.map(|(_, ratio)| ratio),
            "seconds": seconds,
        }),
    )
}

/// What is counted alike for every method, and then the fields of one.
fn with_counts(data: &Dataset, compiled: &Compiled, fields: &Value) -> Value {
    let mut all = json!({
        "tokens": data.tokens(),
        "sequences": data.sequences(),
        "memorized": compiled.right(),
        "possible": compiled.possible(),
        "free": compiled.free().len(),
        "sequences_right": compiled.sequences_right(),
        "conflicts": conflicts(data, compiled.impossible()),
        "method": compiled.method(),
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    all
}

/// How many tokens there are, of which kinds.
fn tokens_note(data: &Dataset, compiled: &Compiled) -> String {
    let free = match compiled.free().len() {
        0 => String::new(),
        n => format!(", {} free", count(n)),
    };
    format!("of {} tokens, {} of them possible{free}", count(data.tokens()), count(compiled.possible()))
}

/// How many hidden units there are, and how many of zeros behind them.
pub fn hidden_units(units: usize, spare: usize) -> String {
    if spare == 0 { count(units) } else { format!("{} and {} spare", count(units), count(spare)) }
}

/// What was compiled, as a table.
pub fn table_of(data: &Dataset, compiled: &Compiled, seconds: Option<f64>) -> String {
    let config = compiled.model().config();
    let possible = compiled.possible();
    let row = |name: &str, value: String, note: String| vec![name.to_owned(), value, note];
    let [words, places, contexts] = units(compiled);
    let units = format!("{} for words, {} for places, {} for contexts", count(words), count(places), count(contexts));
    let positions = if config.max_length.is_some() { "with positions" } else { "no positions" };
    let mut rows = vec![
        row("right", count(compiled.right()), tokens_note(data, compiled)),
        row("sequences right", count(compiled.sequences_right()), format!("of {}", count(data.sequences()))),
        row("hidden units", hidden_units(words + places + contexts, compiled.spare()), units),
        row("d", config.d.to_string(), format!("{}, {positions}", config.dtype)),
        row("smallest gap", format!("{:.1e}", compiled.gap()), "of the ids' standard deviation".to_owned()),
    ];
    let mut precisions = vec![config.dtype.as_str(), "f64"];
    precisions.dedup();
    for precision in precisions {
        if let Some((right, _)) = certified(compiled, precision) {
            let share = percent(right, possible);
            let note = format!("{share} of the possible, rounding included");
            rows.push(row(&format!("proved in {precision}"), count(right), note));
        }
    }
    if let Some(proved) = in_single(compiled) {
        let note = format!("{} of the possible; hence the model is in f64", percent(proved, possible));
        rows.push(row("proved in f32", count(proved), note));
    }
    rows.extend(orderings::row(compiled));
    rows.extend(choice::least_row(compiled));
    rows.extend(seconds.map(|seconds| row("seconds", format!("{seconds:.2}"), String::new())));
    table(&rows, &[2])
}

fn text(data: &Dataset, compiled: &Compiled, seconds: f64) -> String {
    let mut text = table_of(data, compiled, Some(seconds)) + &choice::text(compiled);
    for &t in compiled.impossible().iter().take(10) {
        text += &format!(
            "  {}: {:?} cannot be right: its context has another label more often\n",
            data.location(t),
            data.token_text(t)
        );
    }
    let open: Vec<usize> = compiled.unproved().collect();
    for &t in open.iter().take(10) {
        text += &format!("  {}: {:?} is not proved\n", data.location(t), data.token_text(t));
    }
    if open.len() > 10 {
        text += &format!("  and {} more are not proved\n", count(open.len() - 10));
    }
    text
}

impl Args {
    /// The directory to write to.
    fn out(&self) -> Result<&Path> {
        self.out.as_deref().ok_or_else(|| Error::setting("no directory to write to", "add --out DIR").into())
    }

    /// Whether the result is what was asked for.
    fn holds(&self, compiled: &Compiled) -> bool {
        compiled.is_proved() && (!self.strict || compiled.impossible().is_empty())
    }

    /// How to memorize.
    fn memorizer(&self, method: Method) -> Result<Memorizer<'_>> {
        let mut memorizer = Memorizer::new()
            .method(method)
            .positions(self.positions.clone())
            .seed(self.seed)
            .candidates(self.candidates)
            .effort(self.effort.into())
            .precision(self.precision.into())
            .unknown(self.unknown)
            .storage(self.storage.into());
        memorizer = match self.embedding.as_str() {
            "auto" => memorizer,
            "free" => memorizer.free(true),
            codes => memorizer.embedding(codes.parse()?),
        };
        if let Some(mask) = &self.mask {
            memorizer = memorizer.mask(mask.open()?);
        }
        if let Some(start) = &self.start {
            memorizer = memorizer.start(start == "yes");
        }
        if let Some(memory) = self.memory {
            memorizer = memorizer.memory(memory.saturating_mul(1 << 20));
        }
        if let Some(spare) = self.spare {
            memorizer = memorizer.spare(spare);
        }
        if let Some(reads) = self.reads {
            memorizer = memorizer.reads(reads);
        }
        if let Some(gates) = self.gates {
            memorizer = memorizer.gates(gates);
        }
        if let Some(like) = &self.like {
            return Ok(memorizer.like(&AnyModel::open(like)?)?);
        }
        Ok(if self.data.text.is_some() { memorizer.text(self.data.split()) } else { memorizer })
    }

    /// What to type next.
    fn next(&self) -> String {
        let out = self.out.as_deref().unwrap_or(Path::new("model")).display();
        if self.data.text.is_some() {
            return format!("next: monolayer generate {out}, monolayer verify {out} {}\n", self.data);
        }
        format!(
            "next: monolayer verify {out} {0}, monolayer predict {out} {0}; in PyTorch:\n  import monolayer\n  \
             model = monolayer.torch.load({1:?})\n  model.predict([...])\n",
            self.data,
            out.to_string(),
        )
    }
}

/// Tokens that contradict their context, for `--json`.
fn conflicts(data: &Dataset, impossible: &[usize]) -> Vec<Value> {
    impossible.iter().map(|&t| place_json(data, t)).collect()
}
