//! Units and proofs for one projection, and the model they make.

use std::borrow::Cow;

use super::contexts::{ContextRule, GroupContext};
use super::hinge_groups::{GroupBuilder, GroupUnits};
use super::ids::{IdPass, Ids, RoundedId};
use super::passes::{ContextTokenPass, FreePass, Runner, SequencePass, WordTokenPass};
use super::word_blocks::{WordTargets, WordUnits};
use super::word_groups::WordLabels;
use super::{Grouped, LabelCodes, Names};
use crate::arithmetic::float_model::{DOUBLE, FloatFormat};
use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::context_map::ContextMap;
use crate::data::context::START;
use crate::data::far_codes;
use crate::data::token_vectors::TokenVectors;
use crate::data::{Dataset, Vocabulary};
use crate::error::Result;
use crate::memorize::compiled::{Compiled, Details, GatedDetails, Right};
use crate::memorize::gated::assembly::Assembly;
use crate::memorize::gated::compile::right_of;
use crate::memorize::gated::off_units::Token;
use crate::memorize::gated::stored::Stored;
use crate::memorize::gated::token_units::ScoreParts;
use crate::memorize::gated::unit_names::UnitNamer;
use crate::memorize::gated::{DEFAULT_STRENGTH, Gated, Unit, columns, label_output};
use crate::memorize::id_rounding::IdReader;
use crate::memorize::settings::{Memorizer, Method};
use crate::model::certificate::{CertifiedData, Claim};
use crate::model::{AnyModel, Model, ModelNames, Storage};

/// Everything that is known before a projection is.
pub struct Stages<'a, R> {
    /// The dataset, perhaps without its tokens: they are where passes run.
    pub data: &'a Dataset,
    pub memorizer: &'a Memorizer<'a>,
    pub runner: &'a R,
    pub labels: &'a WordLabels,
    pub groups: &'a Grouped,
    pub vectors: &'a TokenVectors,
    /// The name of the start token, where there is one.
    pub start: Option<&'a str>,
    pub vocabulary: &'a Vocabulary,
    pub names: Names<'a>,
    pub label_codes: LabelCodes<'a>,
    pub hash: String,
}

/// What was found for one projection.
struct Built {
    gated: Gated,
    word_units: WordUnits,
    /// For each group with contexts its number, and the range of its contexts.
    groups: Vec<(u32, std::ops::Range<usize>)>,
    /// How many units each of them has.
    counts: Vec<usize>,
    /// The margins over errors of contexts and of words, in the model's numbers and in double precision.
    contexts: Vec<[f64; 2]>,
    words: Vec<[f64; 2]>,
    gap: f64,
    range: (f64, f64),
}

impl<S: Runner> Stages<'_, S> {
    /// The model of a projection in the numbers of `R`, and what can be proved of it. Nothing where two ids are too close.
    pub fn build<R: Real>(&self, map: &ContextMap, candidates: usize) -> Result<Option<Compiled>>
    where
        AnyModel: From<Model<R>>,
    {
        let format = FloatFormat::of::<R>();
        let round: fn(f64) -> f64 = |x| R::from_f64(x).to_f64();
        let parts = ScoreParts::new(self.stored(map, round));
        let Some(built) = self.units(&parts, format, round)? else { return Ok(None) };
        let assembly = Assembly {
            vectors: self.vectors,
            map,
            mask: &self.memorizer.mask,
            vocabulary: self.vocabulary,
            start: self.start,
            names: self.names,
            label_codes: self.label_codes,
            default: self.labels.default,
            free: self.memorizer.free,
            unknown: self.memorizer.unknown,
            spare: self.memorizer.spare_for(self.data),
            source: self.memorizer.source(self.data, &self.hash, Method::Gated).with_candidates(candidates),
        };
        let names = self.unit_names(&parts, &built);
        let model = assembly.model::<R>(&built.gated);
        self.compiled(model, &built, names).map(Some)
    }

    /// The numbers of the model, but for its hidden units.
    fn stored(&self, map: &ContextMap, round: fn(f64) -> f64) -> Stored {
        let TokenVectors { words, positions, word_columns, used, start, .. } = self.vectors;
        let mut codes = columns(words, 0..*word_columns);
        codes.data.extend(start.iter().flat_map(|row| &row[..*word_columns]));
        codes.rows += usize::from(start.is_some());
        let mut carried = Matrix::new(codes.rows, self.label_codes.cols, vec![0.0; codes.rows * self.label_codes.cols]);
        if self.memorizer.free {
            for (w, &label) in self.groups.table.base.iter().enumerate().filter(|&(_, &l)| l != self.labels.default) {
                carried.row_mut(w).copy_from_slice(self.label_codes.row(label as usize));
            }
        }
        let default = label_output(self.label_codes, &[(self.labels.default, DEFAULT_STRENGTH)], |x| x);
        let of_label = |code: &[f64]| code.iter().zip(&default).map(|(c, x)| c * x).sum();
        Stored {
            start: start.as_ref().map(|_| words.rows as u32),
            words: codes,
            places: positions
                .as_ref()
                .map_or_else(|| Matrix::new(1, 0, Vec::new()), |rows| columns(rows, *word_columns..*used)),
            carried,
            key: map.v[..*used].iter().map(|&x| round(x)).collect(),
            query: map.v_q[..*used].iter().map(|&x| round(x)).collect(),
            units: Vec::new(),
            head: self.label_codes.clone(),
            bias: self.label_codes.iter_rows().map(of_label).collect(),
        }
    }

    /// Units for words, where the embedding does not carry their labels.
    fn word_units(&self, codes: &Matrix<f64>) -> Result<WordUnits> {
        let WordLabels { default, free, .. } = self.labels;
        let base = &self.groups.table.base[..];
        if self.memorizer.free {
            let strength = base.iter().map(|label| if label == default { 0.0 } else { 1.0 }).collect();
            return Ok(WordUnits { units: Vec::new(), of_word: vec![Vec::new(); base.len()], strength });
        }
        let words = columns(codes, 0..codes.cols);
        let words = Matrix::new(base.len(), words.cols, words.data[..base.len() * words.cols].to_vec());
        let targets = WordTargets { codes: &words, base, default: *default, free, label_codes: self.label_codes };
        targets.units(self.memorizer.effort.for_words())
    }

    fn units(&self, parts: &ScoreParts, format: FloatFormat, round: fn(f64) -> f64) -> Result<Option<Built>> {
        let contexts = &self.groups.found.contexts;
        let mask = Cow::Borrowed(&self.memorizer.mask);
        let ids = Ids::new(self.runner, contexts, &IdPass { reader: IdReader::new(&parts.stored), mask, format })?;
        let word_units = self.word_units(&parts.stored.words)?;
        let distance = |codes: &Matrix<f64>| far_codes::distance(codes.cols, codes.rows).unwrap_or(0);
        let builder = GroupBuilder {
            parts,
            words: &word_units,
            base: &self.groups.table.base,
            default: self.labels.default,
            label_codes: self.label_codes,
            distances: (distance(&parts.stored.words), distance(&parts.stored.places)),
            first_place: self.vectors.first_place(),
            range: ids.range,
            formats: [format, DOUBLE],
            round,
        };
        let mut groups = Vec::new();
        for group in contexts.chunk_by(|a, b| a.group == b.group) {
            let start = groups.last().map_or(0, |(_, range): &(u32, std::ops::Range<usize>)| range.end);
            groups.push((group[0].group, start..start + group.len()));
        }
        let of_group = |(group, range): &(u32, std::ops::Range<usize>)| {
            let token = self.groups.table.keys[*group as usize].0;
            let (contexts, ids): (&[GroupContext], &[RoundedId]) =
                (&contexts[range.clone()], &ids.of_contexts[range.clone()]);
            builder.group(token, contexts, ids)
        };
        let found: Option<Vec<GroupUnits>> = parallel::map_slice(&groups, of_group).into_iter().collect();
        let Some(found) = found else { return Ok(None) };
        // Where one unit might fire for others, or some number is none, nothing is proved of anyone: 0 times that is not 0.
        let known = ids.range.0.is_finite() && ids.range.1.is_finite();
        let hinges_shut = found.iter().all(|group| group.shut && group.units.iter().all(Unit::is_finite));
        let shut = known && hinges_shut && exact(&word_units, &format);
        let judged = |ratios: [f64; 2]| if shut { ratios } else { [0.0; 2] };
        let words = parallel::map(self.groups.table.base.len(), |w| judged(builder.word_ratios(w as u32)));
        let gap = found.iter().map(|group| group.gap).fold(f64::INFINITY, f64::min) / ids.deviation;
        let counts = found.iter().map(|group| group.units.len()).collect();
        let ratios = found.iter().flat_map(|group| group.ratios.iter().map(|&ratios| judged(ratios))).collect();
        let hinges = found.into_iter().flat_map(|group| group.units);
        let units: Vec<_> = word_units.units.iter().cloned().chain(hinges).collect();
        let gated = Gated {
            counts: [word_units.units.len(), 0, units.len() - word_units.units.len()],
            units,
            default: label_output(self.label_codes, &[(self.labels.default, DEFAULT_STRENGTH)], round),
            base: self.groups.table.base.clone(),
        };
        Ok(Some(Built { gated, word_units, groups, counts, contexts: ratios, words, gap, range: ids.range }))
    }

    /// What each unit is for.
    fn unit_names(&self, parts: &ScoreParts, built: &Built) -> ModelNames {
        let mut words = vec![Vec::new(); built.word_units.units.len()];
        for (w, units) in built.word_units.of_word.iter().enumerate() {
            units.iter().for_each(|&j| words[j as usize].push(Token { word: w as u32, place: 0, ids: (0.0, 0.0) }));
        }
        let of_group = |(&(group, _), &count): (&(u32, _), &usize)| {
            let (word, place) = self.groups.table.keys[group as usize].0;
            let row = if parts.stored.places.cols > 0 { self.vectors.first_place() + place as usize } else { 0 };
            std::iter::repeat_n(Token { word, place: row, ids: built.range }, count)
        };
        let hinges: Vec<Token> = built.groups.iter().zip(&built.counts).flat_map(of_group).collect();
        let namer = UnitNamer { stored: &parts.stored, words: self.vocabulary.names(), labels: self.names.names() };
        let units = parallel::map(built.gated.units.len(), |j| {
            let own = words.get(j).map_or_else(|| std::slice::from_ref(&hinges[j - words.len()]), |tokens| &tokens[..]);
            namer.unit(j, &built.gated.units[j], own)
        });
        ModelNames::new([built.range.0, built.range.1], namer.coordinates(), units)
    }

    fn compiled<R: Real>(&self, model: Model<R>, built: &Built, names: ModelNames) -> Result<Compiled>
    where
        AnyModel: From<Model<R>>,
    {
        let data = self.data;
        let impossible = &self.groups.found.impossible;
        let free = self.runner.pass(&FreePass {}, &[])?;
        let possible = data.tokens() - impossible.len() - free.len();
        let open = self.unproved(built, 0)?;
        let mut proved = vec![true; data.tokens()];
        open.iter().chain(impossible).chain(&free).for_each(|&t| proved[t] = false);
        let mut come_out = proved.clone();
        self.right(&model, &open)?.into_iter().for_each(|t| come_out[t] = true);
        let claim = |name: &str, open: &[usize], k: usize| {
            Claim::labels(name, data, possible - open.len(), open, built.smallest_ratio(k, &self.labels.free))
        };
        let mut claims = vec![claim(R::NAME, &open, 0)];
        let mut ratios = vec![built.smallest_ratio(0, &self.labels.free)];
        if R::NAME != f64::NAME {
            claims.push(claim(f64::NAME, &self.unproved(built, 1)?, 1));
            ratios.push(built.smallest_ratio(1, &self.labels.free));
        }
        if possible == 0 {
            claims.clear();
        }
        claims.extend(Claim::rank_one());
        Ok(Compiled {
            method: Method::Gated,
            right: Right::with_free(data, &come_out, |t| free.binary_search(&t).is_ok()),
            model: model.into(),
            claims,
            data: CertifiedData::hashed(data, self.hash.clone(), impossible.len(), free.len()),
            impossible: impossible.clone(),
            free,
            proved,
            gap: built.gap,
            context_ids: self.groups.found.contexts.len(),
            details: Details::Gated(GatedDetails {
                units: built.gated.counts,
                spare: self.memorizer.spare_for(data),
                ratios,
                proved_in_single: None,
                choice: None,
            }),
            storage: Storage::Auto,
            names: Some(names),
        })
    }

    /// Which of some tokens, in order, the model computes right.
    fn right<R: Real>(&self, model: &Model<R>, tokens: &[usize]) -> Result<Vec<usize>> {
        let offsets = &self.data.offsets;
        let mut sequences: Vec<usize> =
            tokens.iter().map(|&t| offsets.partition_point(|&start| start <= t) - 1).collect();
        sequences.dedup();
        if sequences.is_empty() {
            return Ok(Vec::new());
        }
        let starts: Vec<usize> = sequences.iter().map(|&i| offsets[i]).collect();
        let (word_ids, labels) = self.runner.pass(&SequencePass {}, &starts)?;
        right_of(
            model,
            self.vocabulary,
            (word_ids, &labels),
            &sequences.iter().map(|&i| self.data.range(i)).collect::<Vec<_>>(),
            tokens,
        )
    }

    /// The possible tokens whose labels are not proved, in the model's numbers or in double precision.
    fn unproved(&self, built: &Built, k: usize) -> Result<Vec<usize>> {
        let found = self.groups.found.contexts.iter().zip(&built.contexts);
        let bad = found.filter(|(_, ratios)| ratios[k] <= 1.0).map(|(context, _)| (context.group, context.key));
        let contexts: Vec<(u32, [u64; 2])> = bad.collect();
        let groups = || Cow::Borrowed(&self.groups.table);
        let positions = self.vectors.positions.is_some();
        let mut open = Vec::new();
        if !contexts.is_empty() {
            let (start, mask) = (self.start.map(|_| START), Cow::Borrowed(&self.memorizer.mask));
            let rule = ContextRule { start, mask, positions };
            open.extend(self.runner.pass(&ContextTokenPass { groups: groups(), rule, contexts }, &[])?);
        }
        if built.words.iter().zip(&self.labels.free).any(|(ratios, free)| ratios[k] <= 1.0 && !free) {
            let words = built.words.iter().map(|ratios| ratios[k] <= 1.0).collect();
            let live = built.groups.iter().map(|(group, _)| *group).collect();
            open.extend(self.runner.pass(&WordTokenPass { groups: groups(), live, words, positions }, &[])?);
        }
        open.retain(|t| self.groups.found.impossible.binary_search(t).is_err());
        open.sort_unstable();
        Ok(open)
    }
}

impl Built {
    /// The smallest margin of a label that is asked for over its error.
    fn smallest_ratio(&self, k: usize, free: &[bool]) -> f64 {
        let words = self.words.iter().zip(free).filter(|&(_, &free)| !free).map(|(ratios, _)| ratios[k]);
        self.contexts.iter().map(|ratios| ratios[k]).chain(words).fold(f64::INFINITY, f64::min)
    }
}

/// Whether what units for words compute is exact in any order: their numbers are multiples of a half.
fn exact(words: &WordUnits, format: &FloatFormat) -> bool {
    use crate::arithmetic::float_model::{Up, grid};
    words.units.iter().all(|unit| {
        let size = unit.code.iter().map(|&x| Up::size(x)).sum::<Up>() + Up::size(unit.bias);
        unit.is_finite() && format.is_exact(grid(&unit.code).min(grid(&[unit.bias])), size)
    })
}
