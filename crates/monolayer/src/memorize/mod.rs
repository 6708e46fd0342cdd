//! Corollaries 1 and 2: any consistent dataset into one rank-1 attention layer and one feed-forward block, without training.

pub mod context_id;
pub mod deep;
pub mod gated;
pub mod paper;
pub mod vectors;

use std::path::Path;

use serde_json::json;

use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::context_map::search::{self, Found, Search};
use crate::context_map::{Groups, View, standard_deviation};
use crate::data::context::{Agreement, Contexts};
use crate::data::embedding::Embedding;
use crate::data::positions::Positions;
use crate::data::token_vectors::TokenVectors;
use crate::data::{Dataset, Labels, Tokens, Vocabulary};
use crate::error::{Error, Result};
use crate::model;
use crate::model::certificate::{self, Claim};
use crate::model::with_model;
use crate::model::{AnyModel, Head, Model, UNKNOWN, Words};
use crate::paper::attention::{Attention, Mask};
use crate::paper::feed_forward::FeedForward;
use crate::paper::transformer::{Layer, Transformer};
use gated::proof::{self, Proof};
use gated::{Covered, Gated, Plan};

/// How a dataset is memorized.
#[derive(Debug, Clone)]
pub struct Memorizer {
    /// Vectors for words.
    pub embedding: Embedding,
    /// Whether the embedding may carry labels: it is then chosen by the compiler, not fixed in advance.
    pub free: bool,
    /// Vectors for places.
    pub positions: Positions,
    /// Which tokens a query sees.
    pub mask: Mask,
    /// The seed of codes and search.
    pub seed: u64,
    /// How many projections to try.
    pub candidates: usize,
    /// The precision of the model.
    pub precision: Precision,
    /// Whether to add a row for unknown words, which get the commonest label.
    pub unknown: bool,
}

impl Default for Memorizer {
    fn default() -> Self {
        Self {
            embedding: Embedding::Sign(64),
            free: false,
            positions: Positions::Auto,
            mask: Mask::None,
            seed: 0,
            candidates: 256,
            precision: Precision::Auto,
            unknown: false,
        }
    }
}

/// The precision of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Single where every possible token is proved in it, else double if that proves more.
    Auto,
    /// Single.
    F32,
    /// Double.
    F64,
}

/// A compiled model and what is known of it.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The model.
    pub model: AnyModel,
    /// How many hidden units give words their label, give places another, and tell contexts apart.
    pub units: [usize; 3],
    /// Tokens that contradict their context: no weights get them right.
    pub impossible: Vec<usize>,
    /// Whether each token is proved right in the model's precision, in any order of summation.
    pub proved: Vec<bool>,
    /// Tokens that come out right: proved so, or computed so here, which says nothing of other orders of summation.
    pub right: usize,
    /// Where double precision was chosen because more tokens are proved in it: how many are in single precision.
    pub proved_in_single: Option<usize>,
    /// What was proved in the model's precision, and in double precision.
    pub claims: Vec<Claim>,
    /// The smallest margin over its error bound, in the model's precision, and in double precision if that is another.
    pub ratios: Vec<f64>,
    /// How many projections were tried.
    pub candidates: usize,
    /// The smallest gap between differently labeled contexts of one token, over the standard deviation of the ids.
    pub gap: f64,
}

impl Compiled {
    /// How many tokens are proved right in the model's precision.
    pub fn certified(&self) -> usize {
        self.proved.iter().filter(|&&proved| proved).count()
    }

    /// Whether every possible token is proved right in the model's precision.
    pub fn is_proved(&self) -> bool {
        self.certified() + self.impossible.len() == self.proved.len()
    }

    /// Writes the model with its certificate, whole or not at all.
    pub fn save(&self, dir: impl AsRef<Path>, data: &Dataset) -> Result<()> {
        let certify = |dir: &Path| certificate::write(dir, data, self.impossible.len(), &self.claims);
        with_model!(&self.model, model => model::file::write(model, dir.as_ref(), certify))
    }
}

/// A grid on which projections of sign codes are exact in double precision, in any order of summation.
const FINE_GRID: f64 = 1.0 / (1_u64 << 44) as f64;

/// Everything that is known before the units are built.
struct Stage<'a> {
    memorizer: &'a Memorizer,
    vocabulary: &'a Vocabulary,
    names: &'a Vocabulary,
    label_codes: Matrix<f64>,
    view: View<'a>,
    agreement: Agreement,
    found: Found,
    ids: Vec<f64>,
    default: u32,
    hash: String,
}

impl Memorizer {
    /// Compiles a dataset of words with classes: the proof of Corollary 2, in order. `tell` hears of candidates tried and of
    /// the best gap so far.
    pub fn compile(&self, data: &Dataset, tell: &dyn Fn(usize, f64)) -> Result<Compiled> {
        let (Tokens::Words { vocabulary, .. }, Labels::Classes { ids: labels, names }) = (&data.tokens, &data.labels)
        else {
            return Err(Error::request("gated units need words with classes", "use `method` plateau or interpolate"));
        };
        let label_codes = label_codes(names, self.seed)?;
        let positions = self.positions(data, labels);
        // One more coordinate for the id, then those of the labels.
        let vectors = TokenVectors::new(data, &self.embedding, &positions, 1 + label_codes.cols, self.seed)?;
        // Definition 2: what attention can see of each token, and which labels that allows.
        let view = View::new(data, &vectors, self.mask);
        let agreement = view.contexts.agree(labels);
        // Lemmas 2 and 3: a projection that keeps differently labeled contexts apart.
        let groups = Groups::by_label(&view, &agreement.label);
        let mut precision = self.precision;
        let mut found = search::search(&view, &groups, self.seed, self.candidates, tell);
        if found.progress.last().is_some_and(|&(_, gap)| gap <= 0.0) && precision != Precision::F32 {
            // So many contexts of one token that projections collide on the grid of single precision.
            let search = Search { kappa: None, grid: FINE_GRID, seed: self.seed, candidates: self.candidates };
            found = search.run(&view, &groups, tell);
            precision = Precision::F64;
        }
        // Theorem 2: the ids.
        let ids = found.projection.ids(&view);
        let gap = groups.smallest_gap(|t| ids[t]).gap / standard_deviation(&ids);
        // Corollary 1: hidden units that turn ids into labels, and the proof that they do.
        let default = commonest(labels, names.len());
        let hash = data.hash();
        let stage =
            Stage { memorizer: self, vocabulary, names, label_codes, view, agreement, found, ids, default, hash };
        let plan = stage.plan();
        let covered = plan.cover()?;
        match precision {
            Precision::F32 => stage.build::<f32>(data, &plan, &covered, gap),
            Precision::F64 => stage.build::<f64>(data, &plan, &covered, gap),
            Precision::Auto => {
                let single = stage.build::<f32>(data, &plan, &covered, gap);
                if single.as_ref().is_ok_and(Compiled::is_proved) {
                    return single;
                }
                let double = stage.build::<f64>(data, &plan, &covered, gap)?;
                let proved = single.as_ref().map_or(0, Compiled::certified);
                let single = single.ok().filter(|_| proved >= double.certified());
                Ok(single.unwrap_or(Compiled { proved_in_single: Some(proved), ..double }))
            }
        }
    }

    /// Positions are used by default where contexts contradict each other without them.
    fn positions(&self, data: &Dataset, labels: &[u32]) -> Positions {
        if self.positions != Positions::Auto {
            return self.positions.clone();
        }
        let ids = data.token_ids();
        let conflicts =
            |positions| Contexts::new(&ids, &data.offsets, self.mask, positions).agree(labels).impossible.len();
        if conflicts(false) > conflicts(true) { Positions::Auto } else { Positions::None }
    }
}

impl Stage<'_> {
    fn plan(&self) -> Plan<'_> {
        Plan {
            view: &self.view,
            ids: &self.ids,
            label: &self.agreement.label,
            default: self.default,
            label_codes: &self.label_codes,
            free: self.memorizer.free,
        }
    }

    /// The units in the precision of `R`, the model, and what can be proved of it.
    fn build<R: Real>(&self, data: &Dataset, plan: &Plan, covered: &Covered, gap: f64) -> Result<Compiled>
    where
        AnyModel: From<Model<R>>,
    {
        let gated = plan.units(covered, |x| R::from_f64(x).to_f64())?;
        let model = self.assemble::<R>(&gated);
        let claim = proof::Claim::new(&self.view, &self.agreement, &model);
        let proof = claim.prove::<R>();
        let mut proved = vec![true; data.tokens()];
        let open = self.unproved(&proof);
        open.iter().chain(&self.agreement.impossible).for_each(|&t| proved[t] = false);
        let mut claims = vec![self.labels(data, R::NAME, &proof)];
        let mut ratios = vec![proof.smallest_ratio()];
        if R::NAME != f64::NAME {
            let proof = claim.prove::<f64>();
            claims.push(self.labels(data, f64::NAME, &proof));
            ratios.push(proof.smallest_ratio());
        }
        for name in ["w_q", "w_k", "w_v", "w_o"] {
            claims.push(Claim::Rank { tensor: format!("layers.0.attention.{name}"), rank: 1 });
        }
        let possible = data.tokens() - self.agreement.impossible.len();
        Ok(Compiled {
            right: possible - open.len() + right(&model, data, &open)?,
            model: model.into(),
            units: gated.counts,
            impossible: self.agreement.impossible.clone(),
            proved,
            proved_in_single: None,
            claims,
            ratios,
            candidates: self.found.candidates,
            gap,
        })
    }

    /// The possible tokens that a proof leaves open.
    fn unproved(&self, proof: &Proof) -> Vec<usize> {
        let contexts = &self.view.contexts.of_token;
        let mut impossible = vec![false; contexts.len()];
        self.agreement.impossible.iter().for_each(|&t| impossible[t] = true);
        (0..contexts.len()).filter(|&t| !impossible[t] && !proof.certain(contexts[t])).collect()
    }

    fn labels(&self, data: &Dataset, arithmetic: &str, proof: &Proof) -> Claim {
        let open = self.unproved(proof);
        let place = |&t: &usize| {
            let place = data.place(t);
            (place.sequence.unwrap_or(0), place.token.unwrap_or(0))
        };
        Claim::Labels {
            arithmetic: arithmetic.to_owned(),
            right: data.tokens() - self.agreement.impossible.len() - open.len(),
            undecided: open.iter().map(place).collect(),
            // How far above 1 a ratio lies depends on whose error bound it is; that no bound matters below 1 does not.
            smallest_margin_ratio: proof.smallest_ratio().min(1.0),
        }
    }

    /// Codes, attention, hidden units and head as one model.
    fn assemble<R: Real>(&self, gated: &Gated) -> Model<R> {
        let (vectors, label_codes) = (self.view.vectors, &self.label_codes);
        let projection = &self.found.projection;
        let d = vectors.d();
        let (id, first_label) = (vectors.used, vectors.used + 1);
        let real = |x: f64| R::from_f64(x);
        let mut words = self.vocabulary.clone();
        let mut embedding = vectors.words.clone();
        if self.memorizer.free {
            for (w, &label) in gated.base.iter().enumerate().filter(|&(_, &label)| label != self.default) {
                embedding.row_mut(w)[first_label..].copy_from_slice(label_codes.row(label as usize));
            }
        }
        if self.memorizer.unknown && words.get(UNKNOWN).is_none() {
            // No unit fires for the code 0.
            words.add(UNKNOWN);
            embedding.data.resize(embedding.data.len() + d, 0.0);
            embedding.rows += 1;
        }
        let v: Vec<R> = projection.v.iter().map(|&x| real(x)).collect();
        let queries: Vec<R> = projection.v.iter().map(|&x| real(projection.kappa * x)).collect();
        let w_o: Vec<R> = (0..d).map(|i| if i == id { R::ONE } else { R::ZERO }).collect();
        let q = gated.units.len();
        let mut block = FeedForward {
            w1: Matrix::new(q, d, vec![R::ZERO; q * d]),
            b1: gated.units.iter().map(|unit| real(unit.bias)).collect(),
            w2: Matrix::new(d, q, vec![R::ZERO; q * d]),
            b2: vec![R::ZERO; d],
        };
        for (j, unit) in gated.units.iter().enumerate() {
            let row = block.w1.row_mut(j);
            row.iter_mut().zip(&unit.code).for_each(|(w, &x)| *w = real(x));
            row[id] = real(unit.id);
            for (c, &x) in unit.output.iter().enumerate() {
                block.w2.row_mut(first_label + c)[j] = real(x);
            }
        }
        let feed_forward = (q > 0).then_some(block);
        // The default label wins where nothing else is said.
        let bias = label_codes.iter_rows().map(|code| real(code.iter().zip(&gated.default).map(|(c, x)| c * x).sum()));
        let weight = Matrix::from_fn(self.names.len(), d, |l, i| {
            real(if i < first_label { 0.0 } else { label_codes.row(l)[i - first_label] })
        });
        Model {
            words: Some(Words { vocabulary: words, embedding: embedding.map(|&x| real(x)) }),
            positions: vectors.positions.as_ref().map(|p| p.map(|&x| real(x))),
            transformer: Transformer {
                d,
                pre_feed_forward: None,
                layers: vec![Layer {
                    attention: Some(Attention::rank_one(self.view.mask, &v, &queries, &w_o)),
                    feed_forward,
                }],
            },
            head: Some(Head { labels: self.names.names().to_vec(), bias: bias.collect(), weight }),
            source: json!({
                "command": "memorize",
                "method": "gated",
                "seed": self.memorizer.seed,
                "candidates": self.found.candidates,
                "dataset": self.hash,
                "version": env!("CARGO_PKG_VERSION"),
            }),
        }
    }
}

/// Up to so many labels get a coordinate each.
const ONE_HOT: usize = 16;
/// The dimension of sign codes for more labels.
const LABEL_DIMENSION: usize = 32;

/// A vector per label: a coordinate of its own, or a sign code where there are many.
fn label_codes(names: &Vocabulary, seed: u64) -> Result<Matrix<f64>> {
    if names.len() <= ONE_HOT {
        return Ok(Matrix::from_fn(names.len(), names.len(), |i, j| if i == j { 1.0 } else { 0.0 }));
    }
    Embedding::Sign(LABEL_DIMENSION).codes(names, seed)
}

/// How many of some tokens, in order, come out right as this library computes.
fn right<R: Real>(model: &Model<R>, data: &Dataset, tokens: &[usize]) -> Result<usize> {
    let (Tokens::Words { ids, vocabulary }, Labels::Classes { ids: labels, names }) = (&data.tokens, &data.labels)
    else {
        return Ok(0);
    };
    let wanted = |range: &std::ops::Range<usize>| {
        tokens.partition_point(|&t| t < range.start) < tokens.partition_point(|&t| t < range.end)
    };
    let ranges: Vec<_> = data.ranges().filter(wanted).collect();
    if ranges.is_empty() {
        return Ok(0);
    }
    let pick = |all: &[u32]| ranges.iter().flat_map(|range| &all[range.clone()]).copied().collect();
    let mut offsets = vec![0];
    offsets.extend(ranges.iter().scan(0, |end, range| {
        *end += range.len();
        Some(*end)
    }));
    let part = Dataset {
        name: data.name.clone(),
        tokens: Tokens::Words { ids: pick(ids), vocabulary: vocabulary.clone() },
        labels: Labels::Classes { ids: pick(labels), names: names.clone() },
        offsets,
        lines: Vec::new(),
        warnings: Vec::new(),
        written: data.written,
    };
    let kept: Vec<usize> = ranges.into_iter().flatten().collect();
    let is_right = |t: usize, scores: &[R]| {
        let own = scores[labels[kept[t]] as usize];
        let first = scores.iter().position(|&x| x >= own);
        tokens.binary_search(&kept[t]).is_ok()
            && scores.iter().all(|x| x.finite() && *x <= own)
            && first == Some(labels[kept[t]] as usize)
    };
    Ok(model.run(&model.inputs(&part)?, &|_| {}, is_right).into_iter().filter(|&right| right).count())
}

/// The commonest of `count` labels; the first among equals.
fn commonest(labels: &[u32], count: usize) -> u32 {
    let mut counts = vec![0; count];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    (0..count as u32).max_by_key(|&l| (counts[l as usize], std::cmp::Reverse(l))).unwrap_or(0)
}

/// The paper's count of parameters for a dataset, `4 (s + d) + d (2 n N + d)` for heads of size s.
pub fn paper_parameters(data: &Dataset, s: usize, d: usize) -> usize {
    4 * (s + d) + d * (2 * data.longest() * data.sequences() + d)
}
