//! Words with classes into gated units: the proof of Corollary 2, in order.

use super::proof::{LabelProof, LabelProver};
use super::{Covered, GatePlan, Gated};
use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::context_map::search::{Search, SearchResult};
use crate::context_map::{Groups, View, standard_deviation};
use crate::data::context::Agreement;
use crate::data::embedding::Embedding;
use crate::data::token_vectors::TokenVectors;
use crate::data::{Dataset, Labels, Tokens, Vocabulary};
use crate::error::{Error, Result};
use crate::memorize::compiled::{Compiled, Details, GatedDetails};
use crate::memorize::settings::{Memorizer, Method, Precision};
use crate::model::certificate::{CertifiedData, Claim};
use crate::model::{AnyModel, LabelHead, Model, Source, UNKNOWN, Words};
use crate::paper::attention::Attention;
use crate::paper::feed_forward::FeedForward;
use crate::paper::transformer::{Layer, Transformer};

/// A grid on which projections of sign codes are exact in double precision, in any order of summation.
const FINE_GRID: f64 = 1.0 / (1_u64 << 44) as f64;

/// Everything that is known before the units are built.
struct Compilation<'a> {
    memorizer: &'a Memorizer<'a>,
    data: &'a Dataset,
    vocabulary: &'a Vocabulary,
    names: &'a Vocabulary,
    label_codes: Matrix<f64>,
    view: View<'a>,
    agreement: Agreement,
    found: SearchResult,
    /// The context id of each token.
    context_ids: Vec<f64>,
    gap: f64,
    /// The commonest label.
    default: u32,
    hash: String,
}

/// Memorizes a dataset of words with classes.
pub fn memorize_words(data: &Dataset, memorizer: &Memorizer) -> Result<Compiled> {
    let (Tokens::Words { vocabulary, .. }, Labels::Classes { label_ids: labels, names }) = (&data.tokens, &data.labels)
    else {
        return Err(Error::mismatch("gated units need words with classes", "use `method` plateau or interpolate"));
    };
    let label_codes = label_codes(names, memorizer.seed)?;
    let positions = memorizer.positions_for(data, labels);
    // One more coordinate for the context id, then those of the labels.
    let vectors = TokenVectors::new(data, &memorizer.embedding, &positions, 1 + label_codes.cols, memorizer.seed)?;
    // Definition 2: what attention can see of each token, and which labels that allows.
    let view = View::new(data, &vectors, memorizer.mask);
    let agreement = view.contexts.agree(labels);
    // Lemmas 2 and 3: a projection that keeps differently labeled contexts apart.
    let groups = Groups::by_label(&view, &agreement.label);
    let (found, precision) = project(memorizer, &view, &groups);
    // Theorem 2: the context ids.
    let context_ids = found.projection.context_ids(&view);
    let gap = groups.smallest_gap(|t| context_ids[t]).gap / standard_deviation(&context_ids);
    // Corollary 1: hidden units that turn context ids into labels, and the proof that they do.
    let default = commonest(labels, names.len());
    let hash = data.hash();
    let compilation = Compilation {
        memorizer,
        data,
        vocabulary,
        names,
        label_codes,
        view,
        agreement,
        found,
        context_ids,
        gap,
        default,
        hash,
    };
    compilation.compile(precision)
}

/// A projection for the precision asked for; for double precision where single does not do.
fn project(memorizer: &Memorizer, view: &View, groups: &Groups) -> (SearchResult, Precision) {
    let report = |tried: usize, gap: f64| memorizer.report(tried, gap);
    let search = Search::new().seed(memorizer.seed).candidates(memorizer.candidates);
    let found = search.run_with(view, groups, &report);
    let collide = found.progress.last().is_some_and(|&(_, gap)| gap <= 0.0);
    if collide && memorizer.precision != Precision::F32 {
        // So many contexts of one token that projections collide on the grid of single precision.
        return (search.grid(FINE_GRID).run_with(view, groups, &report), Precision::F64);
    }
    (found, memorizer.precision)
}

impl Compilation<'_> {
    /// The units in the precision asked for, or in the one that proves more.
    fn compile(&self, precision: Precision) -> Result<Compiled> {
        let plan = self.plan();
        let covered = plan.cover()?;
        match precision {
            Precision::F32 => self.build::<f32>(&plan, &covered),
            Precision::F64 => self.build::<f64>(&plan, &covered),
            Precision::Auto | Precision::Exact => {
                let single = self.build::<f32>(&plan, &covered);
                if single.as_ref().is_ok_and(Compiled::is_proved) {
                    return single;
                }
                let mut double = self.build::<f64>(&plan, &covered)?;
                let proved = single.as_ref().map_or(0, Compiled::certified);
                if let Details::Gated(details) = &mut double.details {
                    details.proved_in_single = Some(proved);
                }
                Ok(single.ok().filter(|_| proved >= double.certified()).unwrap_or(double))
            }
        }
    }

    fn plan(&self) -> GatePlan<'_> {
        GatePlan {
            view: &self.view,
            context_ids: &self.context_ids,
            label: &self.agreement.label,
            default: self.default,
            label_codes: &self.label_codes,
            free: self.memorizer.free,
        }
    }

    /// The units in the precision of `R`, the model, and what can be proved of it.
    fn build<R: Real>(&self, plan: &GatePlan, covered: &Covered) -> Result<Compiled>
    where
        AnyModel: From<Model<R>>,
    {
        let data = self.data;
        let gated = plan.units(covered, |x| R::from_f64(x).to_f64())?;
        let model = self.assemble::<R>(&gated);
        let prover = LabelProver::new(&self.view, &self.agreement, &model);
        let proof = prover.prove::<R>();
        let mut proved = vec![true; data.tokens()];
        let open = self.unproved(&proof);
        open.iter().chain(&self.agreement.impossible).for_each(|&t| proved[t] = false);
        let mut claims = vec![self.labels(R::NAME, &proof)];
        let mut ratios = vec![proof.smallest_ratio()];
        if R::NAME != f64::NAME {
            let proof = prover.prove::<f64>();
            claims.push(self.labels(f64::NAME, &proof));
            ratios.push(proof.smallest_ratio());
        }
        claims.extend(Claim::rank_one());
        let possible = data.tokens() - self.agreement.impossible.len();
        Ok(Compiled {
            method: Method::Gated,
            right: possible - open.len() + right(&model, data, &open)?,
            model: model.into(),
            claims,
            data: CertifiedData::hashed(data, self.hash.clone(), self.agreement.impossible.len()),
            impossible: self.agreement.impossible.clone(),
            proved,
            gap: self.gap,
            context_ids: self.view.contexts.count,
            details: Details::Gated(GatedDetails { units: gated.counts, ratios, proved_in_single: None }),
        })
    }

    /// The possible tokens that a proof leaves open.
    fn unproved(&self, proof: &LabelProof) -> Vec<usize> {
        let contexts = &self.view.contexts.of_token;
        let mut impossible = vec![false; contexts.len()];
        self.agreement.impossible.iter().for_each(|&t| impossible[t] = true);
        (0..contexts.len()).filter(|&t| !impossible[t] && !proof.certain(contexts[t])).collect()
    }

    fn labels(&self, arithmetic: &str, proof: &LabelProof) -> Claim {
        let open = self.unproved(proof);
        let right = self.data.tokens() - self.agreement.impossible.len() - open.len();
        Claim::labels(arithmetic, self.data, right, &open, proof.smallest_ratio())
    }

    /// Codes, attention, hidden units and head as one model.
    fn assemble<R: Real>(&self, gated: &Gated) -> Model<R> {
        let (vectors, projection) = (self.view.vectors, &self.found.projection);
        let (d, id) = (vectors.d(), vectors.used);
        let real = |x: f64| R::from_f64(x);
        let v: Vec<R> = projection.v.iter().map(|&x| real(x)).collect();
        let queries: Vec<R> = projection.v.iter().map(|&x| real(projection.kappa * x)).collect();
        let w_o: Vec<R> = (0..d).map(|i| if i == id { R::ONE } else { R::ZERO }).collect();
        Model {
            words: Some(self.words(gated)),
            positions: vectors.positions.as_ref().map(|p| p.map(|&x| real(x))),
            transformer: Transformer {
                d,
                pre_feed_forward: None,
                layers: vec![Layer {
                    attention: Some(Attention::rank_one(self.view.mask, &v, &queries, &w_o)),
                    feed_forward: (!gated.units.is_empty()).then(|| self.block(gated)),
                }],
            },
            head: Some(self.head(gated)),
            source: Source::Memorize {
                method: Method::Gated,
                seed: self.memorizer.seed,
                candidates: self.found.candidates,
                data_hash: self.hash.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
        }
    }

    /// The words with their codes, and labels in them where the embedding is free.
    fn words<R: Real>(&self, gated: &Gated) -> Words<R> {
        let vectors = self.view.vectors;
        let (d, first_label) = (vectors.d(), vectors.used + 1);
        let mut vocabulary = self.vocabulary.clone();
        let mut embedding = vectors.words.clone();
        if self.memorizer.free {
            for (w, &label) in gated.base.iter().enumerate().filter(|&(_, &label)| label != self.default) {
                embedding.row_mut(w)[first_label..].copy_from_slice(self.label_codes.row(label as usize));
            }
        }
        if self.memorizer.unknown && vocabulary.get(UNKNOWN).is_none() {
            // No unit fires for the code 0.
            vocabulary.add(UNKNOWN);
            embedding.data.resize(embedding.data.len() + d, 0.0);
            embedding.rows += 1;
        }
        Words { vocabulary, embedding: embedding.map(|&x| R::from_f64(x)) }
    }

    /// The hidden units: each reads codes and the context id, and writes to the coordinates of labels.
    fn block<R: Real>(&self, gated: &Gated) -> FeedForward<R> {
        let (d, q) = (self.view.vectors.d(), gated.units.len());
        let (id, first_label) = (self.view.vectors.used, self.view.vectors.used + 1);
        let real = |x: f64| R::from_f64(x);
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
        block
    }

    /// A score per label: how much of its code there is. The default label wins where nothing else is said.
    fn head<R: Real>(&self, gated: &Gated) -> LabelHead<R> {
        let (label_codes, first_label) = (&self.label_codes, self.view.vectors.used + 1);
        let real = |x: f64| R::from_f64(x);
        let bias = label_codes.iter_rows().map(|code| real(code.iter().zip(&gated.default).map(|(c, x)| c * x).sum()));
        let weight = Matrix::from_fn(self.names.len(), self.view.vectors.d(), |l, i| {
            real(if i < first_label { 0.0 } else { label_codes.row(l)[i - first_label] })
        });
        LabelHead { labels: self.names.names().to_vec(), bias: bias.collect(), weight }
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
    let (Tokens::Words { word_ids: ids, vocabulary }, Labels::Classes { label_ids: labels, names }) =
        (&data.tokens, &data.labels)
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
        tokens: Tokens::Words { word_ids: pick(ids), vocabulary: vocabulary.clone() },
        labels: Labels::Classes { label_ids: pick(labels), names: names.clone() },
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
    Ok(model.run(&model.inputs(&part)?, is_right).into_iter().filter(|&right| right).count())
}

/// The commonest of `count` labels; the first among equals.
fn commonest(labels: &[u32], count: usize) -> u32 {
    let mut counts = vec![0; count];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    (0..count as u32).max_by_key(|&l| (counts[l as usize], std::cmp::Reverse(l))).unwrap_or(0)
}
