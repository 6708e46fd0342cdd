//! `monolayer context`: the contextual map of a dataset.

mod figure;
mod report;
mod theorem;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::ValueEnum;
use monolayer::context_map::float_weights::FloatWeights;
use monolayer::context_map::theorem_weights::weights;
use monolayer::context_map::{ContextMap, View};
use monolayer::data::Tokens;
use monolayer::data::context::{Agreement, Contexts, check_mask};
use monolayer::data::embedding::Embedding;
use monolayer::data::positions::{Positions, far_steps};
use monolayer::data::token_vectors::TokenVectors;
use monolayer::model;
use monolayer::model::Words;
use monolayer::model::certificate::{self, CertifiedData, Claim};
use monolayer::model::rank::rank;
use monolayer::paper::attention::Mask;
use monolayer::paper::transformer::{Layer, Transformer};
use monolayer::{Dataset, Error, Model, Source};
use serde_json::json;

use self::report::Report;
use super::mask::{self, MaskArg};
use super::{DOES, DataArgs, Outcome, Shared, WRITES, replacing};
use crate::output::Progress;

/// Compute the contextual mapping of Theorem 2: one rank-1 attention layer with a different id for every context
///
/// A context id is the number that the layer adds to a token, along one direction. Two contexts of a token can be told apart
/// if their ids differ. The smallest distance between ids is proved, in real arithmetic (Definition 2). With --scale tight
/// the weights are found by search and fit into floats; with --scale paper they are the theorem's own. Exit code 1 if two
/// contexts have, or may have, the same id.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer context train.conll --by-label --out map
Example: monolayer context train.conll --mask band:2,2
Example: monolayer context train.conll --scale paper --figure bits.svg
Example: monolayer context toy.jsonl --scale certified --way direct --max-bits 100000")]
pub struct Args {
    #[command(flatten)]
    pub map: MapArgs,
    /// Where the weights come from
    #[arg(long, value_enum, default_value = "tight", help_heading = DOES)]
    scale: Scale,
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = DOES)]
    #[arg(help = "Head size s: W_K, W_Q and W_V are s x d matrices of rank 1")]
    head_size: u32,
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = weight, help_heading = DOES)]
    #[arg(help = "Use this kappa in W_Q = kappa v^T instead of searching for one")]
    kappa: Option<f64>,
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = weight, help_heading = DOES)]
    #[arg(help = "Use this length of W_O instead of eq. 32")]
    w_o: Option<f64>,
    /// Write the layer to this model directory, with a certificate
    #[arg(long, value_name = "DIR", help_heading = WRITES)]
    out: Option<PathBuf>,
    #[command(flatten)]
    theorem: theorem::TheoremArgs,
}

/// What data a contextual map is for, and how to look for it.
#[derive(clap::Args)]
pub struct MapArgs {
    #[command(flatten)]
    data: DataArgs,
    #[arg(long, value_name = "MASK", default_value = "none", help = mask::HELP, help_heading = DOES)]
    mask: MaskArg,
    /// Word vectors: sign:D, random:D or a file of words and numbers
    #[arg(long, value_name = "CODES", default_value = "sign:64", help_heading = DOES)]
    embedding: Embedding,
    /// Position vectors: auto (use them if labels conflict without), none, sign:D, random:D or a file
    #[arg(long, value_name = "CODES", default_value = "auto", help_heading = DOES)]
    positions: Positions,
    /// Search only for a gap between contexts with different labels
    #[arg(long, help_heading = DOES)]
    pub by_label: bool,
    /// Seed of the vectors and of the search
    #[arg(long, default_value_t = 0, help_heading = DOES)]
    pub seed: u64,
    /// Number of projections to try; more give a larger gap
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..), help_heading = DOES)]
    pub candidates: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum Scale {
    /// Found by search, small enough that floats can represent the ids
    Tight,
    /// As in the proof of Theorem 2, but no larger than the sharper Lemmas S and M need (docs/errata.md)
    Certified,
    /// Theorem 2 as printed, with the product of (29) rounded up to 13 bits
    Paper,
}

/// A weight: 0, or of a size that leaves room for products.
fn weight(text: &str) -> Result<f64, String> {
    let x: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if x == 0.0 || (1e-200..=1e200).contains(&x.abs()) {
        Ok(x)
    } else {
        Err("write 0 or a number between 1e-200 and 1e200 in size".to_owned())
    }
}

/// A dataset with the vectors of its tokens.
pub struct Prepared {
    pub data: Dataset,
    pub vectors: TokenVectors,
    pub mask: Mask,
}

impl MapArgs {
    /// Reads the dataset and gives its tokens vectors.
    pub fn prepare(&self, shared: &Shared) -> Result<Prepared> {
        let data = self.data.open(shared)?;
        let mask = self.data.mask(&self.mask)?;
        check_mask(&data, &mask)?;
        if data.tokens() == 0 {
            return Err(Error::data(data.location(0), "no tokens", "a contextual map needs at least one").into());
        }
        if self.by_label && data.label_ids().is_none() {
            let help = "leave --by-label out: the gap is then that of any two contexts";
            return Err(Error::data(monolayer::Location::file(&data.name), "no labels", help).into());
        }
        let positions = if self.positions == Positions::Auto && !needs_positions(&data, &mask) {
            Positions::None
        } else {
            self.positions.clone()
        };
        let vectors = TokenVectors::new(&data, &self.embedding, &positions, 0, self.seed)?;
        Ok(Prepared { data, vectors, mask })
    }
}

impl Prepared {
    /// Places that move given vectors, as a proof of Corollary 2 needs them, in place of small steps.
    fn far_steps(&mut self) {
        if let (Tokens::Vectors { .. }, Some(places)) = (&self.data.tokens, &mut self.vectors.positions) {
            *places = far_steps(&self.vectors.words, places.rows);
        }
    }

    /// The sequences as attention sees them.
    pub fn view(&self) -> View<'_> {
        View::new(&self.data, &self.vectors, self.mask.clone())
    }

    /// The labels that the contexts of a view allow, for data with labels.
    pub fn agreement(&self, view: &View) -> Option<Agreement> {
        self.data.label_ids().map(|labels| view.contexts.agree(&labels))
    }
}

/// Whether labels contradict each other unless places count.
fn needs_positions(data: &Dataset, mask: &Mask) -> bool {
    let contradicted = |positions| {
        let contexts = Contexts::new(&data.token_ids(), &data.offsets, mask, positions);
        data.label_ids().map_or(0, |labels| contexts.agree(&labels).impossible.len())
    };
    let without = contradicted(false);
    without > 0 && contradicted(true) < without
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let start = Instant::now();
    args.check()?;
    let mut prepared = args.map.prepare(shared)?;
    if !matches!(args.scale, Scale::Tight) && args.map.positions == Positions::Auto {
        prepared.far_steps();
    }
    let view = prepared.view();
    let agreement = prepared.agreement(&view);
    let mut outcome = match args.scale {
        Scale::Tight => run_tight(args, shared, &prepared, &view, agreement.as_ref())?,
        Scale::Certified => {
            theorem::run(args, shared, &prepared, &view, agreement.as_ref(), weights::Scale::Certified)?
        }
        Scale::Paper => theorem::run(args, shared, &prepared, &view, agreement.as_ref(), weights::Scale::Paper)?,
    };
    outcome.json["head_size"] = args.head_size.into();
    outcome.json["seed"] = args.map.seed.into();
    outcome.json["out"] = json!(args.out);
    outcome.json["seconds"] = start.elapsed().as_secs_f64().into();
    if let Some(dir) = &args.out {
        let _ = writeln!(outcome.text, "written to {}\nnext: monolayer inspect {0}", dir.display());
    }
    Ok(outcome)
}

impl Args {
    /// Refuses options that mean nothing at the scale asked for.
    fn check(&self) -> Result<()> {
        let tight = matches!(self.scale, Scale::Tight);
        let tight_only =
            [("--kappa", self.kappa.is_some()), ("--w-o", self.w_o.is_some()), ("--by-label", self.map.by_label)];
        let (wrong, scale) = if tight {
            (self.theorem.given(), "certified or paper")
        } else {
            (tight_only.into_iter().find(|option| option.1).map(|option| option.0), "tight")
        };
        match wrong {
            Some(option) => Err(Error::setting(
                format!("{option} means nothing at this scale"),
                format!("leave it out, or use --scale {scale}"),
            )
            .into()),
            None => Ok(()),
        }
    }
}

fn run_tight(
    args: &Args,
    shared: &Shared,
    prepared: &Prepared,
    view: &View,
    agreement: Option<&Agreement>,
) -> Result<Outcome> {
    let scale = FloatWeights {
        labels_only: args.map.by_label,
        kappa: args.kappa,
        w_o: args.w_o,
        seed: args.map.seed,
        candidates: args.map.candidates as usize,
    };
    let progress = Progress::new(shared, "searching", scale.candidates, "projections");
    let label = agreement.map(|a| a.label.as_slice());
    let tight = scale.build_with(view, label, &|candidates, _| progress.add(candidates))?;
    drop(progress);

    let model = model(prepared, &tight.map, args, "tight", tight.found.candidates, tight.found.projection.kappa);
    let ranks = ranks(&model);
    let proved = tight.certificate.log2_delta().map(|log2| Claim::contextual_mapping(tight.certificate.r, log2));
    write(args, shared, prepared, agreement, &model, proved)?;
    let report = Report { data: &prepared.data, view, tight: &tight, agreement, ranks };
    Ok(Outcome::decided(report.json(), report.text(), tight.certificate.holds()))
}

/// The layer as a model that gives ids: no hidden units, no head.
fn model(prepared: &Prepared, map: &ContextMap, args: &Args, scale: &str, candidates: usize, kappa: f64) -> Model<f64> {
    let words = match &prepared.data.tokens {
        Tokens::Words { vocabulary, .. } => {
            Some(Words { vocabulary: vocabulary.clone(), embedding: prepared.vectors.words.clone(), start: None })
        }
        Tokens::Vectors { .. } => None,
    };
    let attention = map.attention(prepared.mask.clone(), args.head_size as usize);
    let layer = Layer { attention: Some(attention), feed_forward: None };
    Model {
        words,
        positions: prepared.vectors.positions.clone(),
        transformer: Transformer { d: prepared.vectors.d(), pre_feed_forward: None, layers: vec![layer] },
        head: None,
        outputs: None,
        source: Source::Context {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scale: scale.to_owned(),
            data: file_name(&prepared.data.name),
            data_hash: prepared.data.hash(),
            seed: args.map.seed,
            candidates,
            labels_only: args.map.by_label,
            kappa,
        },
    }
}

/// Writes the layer, if asked to, with a certificate of what was proved of it.
fn write(
    args: &Args,
    shared: &Shared,
    prepared: &Prepared,
    agreement: Option<&Agreement>,
    model: &Model<f64>,
    proved: Option<Claim>,
) -> Result<()> {
    let Some(dir) = &args.out else { return Ok(()) };
    replacing(dir, shared);
    let claims: Vec<Claim> = proved.into_iter().chain(Claim::ranks(model)).collect();
    let impossible = agreement.map_or(0, |agreement| agreement.impossible.len());
    let data = CertifiedData::new(&prepared.data, impossible);
    model::directory::write(model, dir, |dir| certificate::write(dir, &data, &claims))?;
    Ok(())
}

/// The name of a file without its folder.
fn file_name(name: &str) -> String {
    Path::new(name).file_name().map_or_else(|| name.to_owned(), |file| file.to_string_lossy().into_owned())
}

/// The exact ranks of `W_Q`, `W_K`, `W_V` and `W_O`.
fn ranks(model: &Model<f64>) -> [usize; 4] {
    let attention = model.transformer.layers[0].attention.as_ref().expect("an attention layer");
    let head = &attention.heads[0];
    [&head.w_q, &head.w_k, &head.w_v, &head.w_o].map(|w| rank(w.cols, &w.data))
}
