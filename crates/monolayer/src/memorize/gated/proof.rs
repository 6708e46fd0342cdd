//! The proof that a gated model gets a token right in floating point, in any order of summation, at a cost that grows with
//! the data: for each word and place, the units that are not proved shut (`off_units`) are looked at, and no others.
//!
//! The proof speaks of the stored numbers (`stored`), whatever the sizes of the codes: of machine numbers of a
//! `FloatFormat`, with subnormal numbers and without overflow, and an exponential within
//! `EXP_ULP` units in the last place. With sign codes and a projection on a dyadic grid, projections
//! and gates are exact; what rounds is the softmax, the hinges, and the sum over open units. Its own floats are rounded
//! outward, and a bound that is not a finite number proves nothing.

use rayon::prelude::*;

use super::off_units::{Token, open_units};
use super::stored::Stored;
use super::token_units::{ScoreParts, TokenUnits};
use crate::arithmetic::float_model::{FloatFormat, Up, sum_above, sum_below};
use crate::arithmetic::kernels::Real;
use crate::arithmetic::parallel;
use crate::context_map::View;
use crate::data::context::Agreement;
use crate::memorize::id_rounding::{ContextId, context_ids};
use crate::model::Model;

/// What is to be proved of a gated model: the label of every context.
pub struct LabelProver<'a> {
    view: &'a View<'a>,
    agreement: &'a Agreement,
    /// `None` where the model is not of the form that is proved here.
    parts: Option<ModelParts>,
}

/// The model, and what is known of its tokens before labels are looked at.
struct ModelParts {
    scores: ScoreParts,
    /// One token of each context, those of one (word, place) together, and their ids.
    tokens: Vec<usize>,
    ids: Vec<ContextId>,
    groups: Vec<ProofGroup>,
}

/// The contexts of one word at one place.
struct ProofGroup {
    members: std::ops::Range<usize>,
    /// The word, the place, and the ids that a program can compute for them.
    token: Token,
    /// The units that are not proved shut.
    open: Vec<u32>,
}

/// What was proved of each context.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelProof {
    /// The score margin of each context's label over its error bound; above 1 exactly where the label is proved.
    pub ratio: Vec<f64>,
}

impl LabelProof {
    /// Whether the label of a context is proved.
    pub fn certain(&self, context: u32) -> bool {
        self.ratio[context as usize] > 1.0
    }

    /// The smallest ratio.
    pub fn smallest_ratio(&self) -> f64 {
        self.ratio.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

impl<'a> LabelProver<'a> {
    /// The claim that `model` gives every context its label.
    pub fn new<R: Real>(view: &'a View<'a>, agreement: &'a Agreement, model: &Model<R>) -> Self {
        let stored = Stored::new(model, view.vectors.word_columns, view.vectors.used);
        Self { view, agreement, parts: stored.map(|stored| ModelParts::new(view, stored, &FloatFormat::of::<R>())) }
    }

    /// The numbers of the model, and the units that are not proved shut for each word at each place. `None` where the model is
    /// not of the form that is proved here.
    pub fn open_units(&self) -> Option<(&Stored, impl Iterator<Item = (Token, &[u32])>)> {
        let parts = self.parts.as_ref()?;
        Some((&parts.scores.stored, parts.groups.iter().map(|group| (group.token, &group.open[..]))))
    }

    /// Proves what can be proved in machine numbers like `R`, which are those of the model or finer.
    pub fn prove<R: Real>(&self) -> LabelProof {
        let mut ratio = vec![0.0; self.view.contexts.count];
        let Some(parts) = &self.parts else { return LabelProof { ratio } };
        let format = FloatFormat::of::<R>();
        let of_group = |group: &ProofGroup| self.ratios(parts, group, &format);
        let found: Vec<Vec<f64>> = parallel::map_slice(&parts.groups, of_group);
        for (&token, value) in parts.tokens.iter().zip(found.into_iter().flatten()) {
            ratio[self.view.contexts.of_token[token] as usize] = value;
        }
        LabelProof { ratio }
    }

    /// The ratios of the contexts of a group.
    fn ratios(&self, parts: &ModelParts, group: &ProofGroup, format: &FloatFormat) -> Vec<f64> {
        let token_units = TokenUnits::new(&parts.scores, (group.token.word, group.token.place), &group.open);
        let label = |m: usize| self.agreement.label[self.view.contexts.of_token[parts.tokens[m]] as usize];
        // Where no open unit reads the id, all contexts with one label are alike.
        let mut known: Vec<(usize, f64)> = Vec::new();
        let ratio = |m: usize| {
            // Where any label will do, any margin does.
            let Some(label) = label(m).map(|label| label as usize) else { return f64::INFINITY };
            let id = &parts.ids[m];
            let error = id.error(format);
            if !error.is_known() {
                return 0.0;
            }
            if token_units.reads_id {
                let range = (sum_below(id.center, -error.get()), sum_above(id.center, error.get()));
                return token_units.ratio(label, range, format);
            }
            if let Some(&(_, ratio)) = known.iter().find(|&&(l, _)| l == label) {
                return ratio;
            }
            let ratio = token_units.ratio(label, (0.0, 0.0), format);
            known.push((label, ratio));
            ratio
        };
        group.members.clone().map(ratio).collect()
    }
}

impl ModelParts {
    fn new(view: &View, stored: Stored, format: &FloatFormat) -> Self {
        let tokens = representatives(view);
        let ids = context_ids(view, &stored, &tokens);
        let mut groups: Vec<ProofGroup> = Vec::new();
        for (m, &t) in tokens.iter().enumerate() {
            let (word, place) = key(view, t);
            match groups.last_mut() {
                Some(group) if (group.token.word, group.token.place) == (word, place) => group.members.end = m + 1,
                _ => {
                    let token = Token { word, place, ids: (0.0, 0.0) };
                    groups.push(ProofGroup { members: m..m + 1, token, open: Vec::new() });
                }
            }
        }
        let errors: Vec<Up> = parallel::map_slice(&ids, |id| id.error(format));
        for group in &mut groups {
            // Nothing is claimed of a token whose id is not known.
            let known = group.members.clone().filter(|&m| errors[m].is_known());
            let ends =
                known.map(|m| (sum_below(ids[m].center, -errors[m].get()), sum_above(ids[m].center, errors[m].get())));
            group.token.ids = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0.0, 0.0));
        }
        let ranges: Vec<Token> = groups.iter().map(|group| group.token).collect();
        let open = open_units(&stored, &ranges, format);
        groups.iter_mut().zip(open).for_each(|(group, open)| group.open = open);
        Self { scores: ScoreParts::new(stored), tokens, ids, groups }
    }
}

/// One token of each context, those of one (word, place) together. A context may occur in sequences of several lengths;
/// the longest rounds most.
fn representatives(view: &View) -> Vec<usize> {
    let mut first = vec![usize::MAX; view.contexts.count];
    for (t, &context) in view.contexts.of_token.iter().enumerate() {
        let slot = &mut first[context as usize];
        if *slot == usize::MAX || view.seen(t).0.count() > view.seen(*slot).0.count() {
            *slot = t;
        }
    }
    first.par_sort_by_cached_key(|&t| (key(view, t), t));
    first
}

/// The word of a token and the number of its position, which is 0 where positions are not used.
pub(super) fn key(view: &View, token: usize) -> (u32, usize) {
    let vectors = view.vectors;
    let place = if vectors.positions.is_some() { vectors.first_place() + view.place(token).1 } else { 0 };
    (view.token_ids[token], place)
}
