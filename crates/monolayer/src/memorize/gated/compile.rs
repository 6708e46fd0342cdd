//! Words with classes into gated units: the proof of Corollary 2, in order.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::assembly::{Assembly, label_codes};
use super::partition::ListLimits;
use super::proof::{LabelProof, LabelProver};
use super::{Covered, GatePlan, Gated, unit_names};
use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::context_map::search::{Search, SearchResult};
use crate::context_map::{ContextMap, Groups, View, standard_deviation};
use crate::data::context::Agreement;
use crate::data::token_vectors::TokenVectors;
use crate::data::{Dataset, Labels, Orderings, Tokens, Vocabulary, Written};
use crate::error::{Error, Result};
use crate::memorize::alphabet::Choice;
use crate::memorize::compiled::{Compiled, Details, GatedDetails, Right};
use crate::memorize::model_labels;
use crate::memorize::settings::{Memorizer, Method, Precision};
use crate::model::certificate::{CertifiedData, Claim};
use crate::model::{AnyModel, Model, Source, Storage};

/// A grid on which projections of sign codes are exact in double precision, in any order of summation.
pub(super) const FINE_GRID: f64 = 1.0 / (1_u64 << 44) as f64;

/// Everything that is known before the units are built.
struct Compilation<'a> {
    memorizer: &'a Memorizer<'a>,
    data: &'a Dataset,
    vocabulary: &'a Vocabulary,
    /// The name of the start token, where there is one.
    start: Option<String>,
    names: Cow<'a, Vocabulary>,
    label_codes: Matrix<f64>,
    view: View<'a>,
    agreement: Agreement,
    /// The layer, and how many projections were tried for it.
    map: ContextMap,
    candidates: usize,
    /// What was chosen of what attention sees, where there was a choice.
    choice: Option<&'a Choice>,
    /// The context id of each token.
    context_ids: Vec<f64>,
    gap: f64,
    /// The commonest label.
    default: u32,
    hash: String,
    /// How many spare units there are to be.
    spare: usize,
}

/// Memorizes a dataset of words with classes.
pub fn memorize_words<'a>(
    data: &'a Dataset,
    memorizer: &'a Memorizer<'a>,
    choice: Option<&'a Choice>,
) -> Result<Compiled> {
    let (Tokens::Words { vocabulary, .. }, Labels::Classes { label_ids: labels, names }) = (&data.tokens, &data.labels)
    else {
        return Err(Error::mismatch("gated units need words with classes", "use `method` plateau or interpolate"));
    };
    let names = model_labels(names);
    let like = memorizer.like.as_deref();
    let label_codes = like.map_or_else(|| label_codes(&names, memorizer.seed), |like| Ok(like.label_codes.clone()))?;
    let start = like.map_or_else(|| memorizer.start_for(vocabulary), |like| like.start.clone());
    let vectors = if let Some(like) = like {
        like.vectors.clone()
    } else {
        let positions = memorizer.positions_for(data, labels);
        // One more coordinate for the context id, then those of the labels.
        let extra = 1 + label_codes.cols;
        let codes = &memorizer.embedding;
        TokenVectors::with_start(start.as_deref(), data, codes, &positions, extra, memorizer.seed)?
    };
    // Definition 2: what attention can see of each token, and which labels that allows.
    let view = View::new(data, &vectors, memorizer.mask.clone());
    let agreement = view.contexts.agree(labels);
    // Lemmas 2 and 3: a projection that keeps differently labeled contexts apart.
    let groups = Groups::by_label(&view, &agreement.label);
    let (map, candidates, precision) = match (choice, like) {
        (_, Some(like)) => (like.map.clone(), memorizer.candidates, memorizer.precision),
        (Some(choice), _) => (choice.map(&vectors), choice.candidates, memorizer.precision),
        (None, None) => project(memorizer, &view, &groups),
    };
    // Theorem 2: the context ids.
    let context_ids = map.context_ids(&view);
    let gap = groups.smallest_gap(|t| context_ids[t]).gap / standard_deviation(&context_ids);
    // Corollary 1: hidden units that turn context ids into labels, and the proof that they do.
    let default = choice.map_or_else(|| commonest(labels, names.len()), |choice| choice.default);
    let hash = data.hash();
    let compilation = Compilation {
        memorizer,
        data,
        vocabulary,
        start,
        names,
        label_codes,
        view,
        agreement,
        map,
        candidates,
        choice,
        context_ids,
        gap,
        default,
        hash,
        spare: memorizer.spare_for(data),
    };
    compilation.compile(precision)
}

/// A projection for the precision asked for; for double precision where single does not do.
fn project(memorizer: &Memorizer, view: &View, groups: &Groups) -> (ContextMap, usize, Precision) {
    let report = |tried: usize, gap: f64| memorizer.report(tried, gap);
    let search = Search::new().seed(memorizer.seed).candidates(memorizer.candidates);
    let map = |found: &SearchResult| {
        let w = (0..view.vectors.d()).map(|i| if i == view.vectors.used { 1.0 } else { 0.0 }).collect();
        (ContextMap::new(&found.projection, w), found.candidates)
    };
    let found = search.run_with(view, groups, &report);
    let collide = found.progress.last().is_some_and(|&(_, gap)| gap <= 0.0);
    if collide && memorizer.precision != Precision::F32 {
        // So many contexts of one token that projections collide on the grid of single precision.
        let (map, candidates) = map(&search.grid(FINE_GRID).run_with(view, groups, &report));
        return (map, candidates, Precision::F64);
    }
    let (map, candidates) = map(&found);
    (map, candidates, memorizer.precision)
}

impl Compilation<'_> {
    /// The units in the precision asked for, or in the one that proves more.
    fn compile(&self, precision: Precision) -> Result<Compiled> {
        let plan = self.plan();
        let covered = if self.choice.is_none() { Some(plan.cover(false)?) } else { None };
        let covered = covered.as_ref();
        match precision {
            Precision::F32 if self.memorizer.like.is_some() => {
                let single = self.build::<f32>(&plan, covered, usize::MAX);
                if single.as_ref().is_ok_and(Compiled::is_proved) {
                    return single;
                }
                // Hinges alone have wider margins.
                let hinges = self.build::<f32>(&plan, Some(&plan.cover(true)?), usize::MAX);
                if hinges.as_ref().is_ok_and(Compiled::is_proved) { hinges } else { single }
            }
            Precision::F32 => self.build::<f32>(&plan, covered, usize::MAX),
            Precision::F64 => self.build::<f64>(&plan, covered, usize::MAX),
            Precision::Auto | Precision::Exact => {
                // Single precision is worth some units.
                let worth =
                    self.choice.and_then(|choice| choice.alternatives[0].units).map_or(usize::MAX, |u| u + u / 10);
                let single = self.build::<f32>(&plan, covered, worth);
                if single.as_ref().is_ok_and(Compiled::is_proved) {
                    return single;
                }
                // Hinges alone have wider margins.
                let hinges = if self.choice.is_none() { Some(plan.cover(true)?) } else { None };
                if let Some(hinges) = &hinges
                    && let Ok(single) = self.build::<f32>(&plan, Some(hinges), usize::MAX)
                    && single.is_proved()
                {
                    return Ok(single);
                }
                let mut double = self.build::<f64>(&plan, covered, usize::MAX)?;
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
            unknown: self.memorizer.unknown,
            effort: self.memorizer.effort,
        }
    }

    /// The units in the precision of `R`. Lists of tokens whose labels are not proved get more units, up to `most` in all.
    fn gated<R: Real>(&self, plan: &GatePlan, covered: Option<&Covered>, most: usize) -> Result<Gated> {
        let round = |x| R::from_f64(x).to_f64();
        let Some(choice) = self.choice else { return plan.units(covered.expect("a cover"), round) };
        let gates = choice.architecture.gates;
        let mut limits = ListLimits::default();
        let mut gated = plan.partition_units(gates, &mut limits, round)?;
        loop {
            let model = self.assembly().model::<R>(&gated);
            let proof = LabelProver::new(&self.view, &self.agreement, &model).prove::<R>();
            let (by_word, by_place) = gates.reads();
            let list = |&t: &usize| {
                let word = if by_word { self.view.token_ids[t] } else { 0 };
                (word, if by_place { self.view.place(t).1 } else { 0 })
            };
            let open: BTreeSet<(u32, usize)> = self.unproved(&proof).iter().map(list).collect();
            let lowered = open.into_iter().filter(|&list| limits.lower(list)).count();
            if lowered == 0 {
                return Ok(gated);
            }
            let next = plan.partition_units(gates, &mut limits, round)?;
            if next.units.len() > most {
                return Ok(gated);
            }
            gated = next;
        }
    }

    /// The units in the precision of `R`, the model, and what can be proved of it.
    fn build<R: Real>(&self, plan: &GatePlan, covered: Option<&Covered>, most: usize) -> Result<Compiled>
    where
        AnyModel: From<Model<R>>,
    {
        let data = self.data;
        let gated = self.gated::<R>(plan, covered, most)?;
        let model = self.assembly().model::<R>(&gated);
        let prover = LabelProver::new(&self.view, &self.agreement, &model);
        let proof = prover.prove::<R>();
        let Agreement { impossible, free, .. } = &self.agreement;
        let names = unit_names::names(&prover, &model, &self.context_ids);
        let mut proved = vec![true; data.tokens()];
        let open = self.unproved(&proof);
        open.iter().chain(impossible).chain(free).for_each(|&t| proved[t] = false);
        let mut come_out = proved.clone();
        right(&model, data, &open)?.into_iter().for_each(|t| come_out[t] = true);
        let mut claims = vec![self.labels(R::NAME, &proof)];
        let mut ratios = vec![proof.smallest_ratio()];
        if R::NAME != f64::NAME {
            let proof = prover.prove::<f64>();
            claims.push(self.labels(f64::NAME, &proof));
            ratios.push(proof.smallest_ratio());
        }
        if self.agreement.possible == 0 {
            // Where nothing is asked of labels, nothing is claimed of them.
            claims.clear();
        }
        claims.extend(Claim::rank_one().map(|claim| self.with_rank(claim)));
        Ok(Compiled {
            method: Method::Gated,
            right: Right::new(data, &come_out),
            model: model.into(),
            claims,
            data: CertifiedData::hashed(data, self.hash.clone(), impossible.len(), data.free()),
            impossible: impossible.clone(),
            free: free.clone(),
            proved,
            gap: self.gap,
            context_ids: self.view.contexts.count,
            details: Details::Gated(GatedDetails {
                units: gated.counts,
                spare: self.spare,
                ratios,
                proved_in_single: None,
                choice: self.choice.map(|choice| choice.with_units(gated.units.len())),
            }),
            storage: Storage::Auto,
            names,
        })
    }

    /// The claim of rank 1, or of rank 0 for a matrix of zeros: queries of 0 see the mean.
    fn with_rank(&self, claim: Claim) -> Claim {
        match claim {
            Claim::Rank { tensor, .. } if tensor.ends_with("w_q") && self.map.v_q.iter().all(|&x| x == 0.0) => {
                Claim::Rank { tensor, rank: 0 }
            }
            claim => claim,
        }
    }

    /// The possible tokens that a proof leaves open.
    fn unproved(&self, proof: &LabelProof) -> Vec<usize> {
        let contexts = &self.view.contexts.of_token;
        let mut asked = vec![true; contexts.len()];
        self.agreement.impossible.iter().chain(&self.agreement.free).for_each(|&t| asked[t] = false);
        (0..contexts.len()).filter(|&t| asked[t] && !proof.certain(contexts[t])).collect()
    }

    fn labels(&self, arithmetic: &str, proof: &LabelProof) -> Claim {
        let open = self.unproved(proof);
        let right = self.agreement.possible - open.len();
        Claim::labels(arithmetic, self.data, right, &open, proof.smallest_ratio())
    }

    /// What does not depend on the hidden units.
    fn assembly(&self) -> Assembly<'_> {
        Assembly {
            vectors: self.view.vectors,
            map: &self.map,
            mask: &self.view.mask,
            vocabulary: self.vocabulary,
            start: self.start.as_deref(),
            names: &self.names,
            label_codes: &self.label_codes,
            default: self.default,
            free: self.memorizer.free,
            unknown: self.memorizer.unknown,
            spare: self.spare,
            source: self.source(),
        }
    }

    /// How the model was made; where nothing must be told apart, with one candidate.
    fn source(&self) -> Source {
        self.memorizer.source(self.data, &self.hash, Method::Gated).with_candidates(self.candidates)
    }
}

/// Which of some labeled tokens, in order, come out right as this library computes.
pub(super) fn right<R: Real>(model: &Model<R>, data: &Dataset, tokens: &[usize]) -> Result<Vec<usize>> {
    let (Tokens::Words { word_ids: ids, vocabulary }, Labels::Classes { label_ids: labels, .. }) =
        (&data.tokens, &data.labels)
    else {
        return Ok(Vec::new());
    };
    let wanted = |range: &std::ops::Range<usize>| {
        tokens.partition_point(|&t| t < range.start) < tokens.partition_point(|&t| t < range.end)
    };
    let ranges: Vec<_> = data.ranges().filter(wanted).collect();
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    let word_ids = ranges.iter().flat_map(|range| &ids[range.clone()]).copied().collect();
    let labels: Vec<Option<u32>> = ranges.iter().flat_map(|range| &labels[range.clone()]).copied().collect();
    right_of(model, vocabulary, (word_ids, &labels), &ranges, tokens)
}

/// The same from the words and labels of the sequences that the tokens are in, and where these stand in the dataset.
pub(super) fn right_of<R: Real>(
    model: &Model<R>,
    vocabulary: &Vocabulary,
    (word_ids, labels): (Vec<u32>, &[Option<u32>]),
    ranges: &[std::ops::Range<usize>],
    tokens: &[usize],
) -> Result<Vec<usize>> {
    let mut offsets = vec![0];
    offsets.extend(ranges.iter().scan(0, |end, range| {
        *end += range.len();
        Some(*end)
    }));
    let part = Dataset {
        name: String::new(),
        tokens: Tokens::Words { word_ids, vocabulary: vocabulary.clone() },
        labels: Labels::None,
        offsets,
        lines: Vec::new(),
        warnings: Vec::new(),
        written: Written::default(),
        orderings: Orderings::Given,
    };
    let kept: Vec<usize> = ranges.iter().cloned().flatten().collect();
    let is_right = |t: usize, scores: &[R]| {
        let Some(label) = labels[t].map(|label| label as usize) else { return false };
        let own = scores[label];
        let first = scores.iter().position(|&x| x >= own);
        tokens.binary_search(&kept[t]).is_ok() && scores.iter().all(|x| x.finite() && *x <= own) && first == Some(label)
    };
    let found = model.run(&model.inputs(&part)?, is_right);
    Ok(kept.iter().zip(found).filter(|(_, right)| *right).map(|(&t, _)| t).collect())
}

/// The commonest of `count` labels; the first among equals.
fn commonest(labels: &[Option<u32>], count: usize) -> u32 {
    let mut counts = vec![0; count];
    labels.iter().flatten().for_each(|&label| counts[label as usize] += 1);
    (0..count as u32).max_by_key(|&l| (counts[l as usize], std::cmp::Reverse(l))).unwrap_or(0)
}
