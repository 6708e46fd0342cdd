//! What comes of memorizing, whatever the method: a model, what is claimed of it, and its directory.

use std::path::Path;

use super::alphabet::Choice;
use super::deep::Packing;
use super::proof_constants::PaperProof;
use super::settings::Method;
use super::vectors::proof::OutputProof;
use crate::data::{CoveredSequences, Dataset};
use crate::error::Result;
use crate::model::certificate::{self, CertifiedData, Claim};
use crate::model::{AnyModel, ModelNames, Source, Storage};

/// A compiled model and what is known of it.
///
/// ```
/// use monolayer::{AnyModel, Dataset, Memorizer};
///
/// let data = Dataset::open("task:sort:alphabet=2,length=3")?;
/// let compiled = Memorizer::new().compile(&data)?;
/// assert_eq!(compiled.certified(), data.tokens());
/// let dir = tempfile::tempdir().unwrap();
/// compiled.save(dir.path().join("model"))?;
/// assert_eq!(&AnyModel::open(dir.path().join("model"))?, compiled.model());
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Compiled {
    pub(super) method: Method,
    pub(super) model: AnyModel,
    pub(super) claims: Vec<Claim>,
    pub(super) data: CertifiedData,
    pub(super) impossible: Vec<usize>,
    pub(super) free: Vec<usize>,
    pub(super) proved: Vec<bool>,
    pub(super) right: Right,
    pub(super) gap: f64,
    pub(super) context_ids: usize,
    pub(super) details: Details,
    pub(super) storage: Storage,
    pub(super) names: Option<ModelNames>,
}

/// What comes out right, in numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Right {
    tokens: usize,
    sequences: usize,
}

impl Right {
    /// Counts the tokens that are right, and the sequences in which no labeled token is wrong.
    pub fn new(data: &Dataset, right: &[bool]) -> Self {
        Self::with_free(data, right, |t| data.is_free(t))
    }

    /// The same where it is known otherwise which tokens are free.
    pub fn with_free(data: &Dataset, right: &[bool], is_free: impl Fn(usize) -> bool) -> Self {
        let fine = |range: &std::ops::Range<usize>| range.clone().all(|t| right[t] || is_free(t));
        Self { tokens: right.iter().filter(|&&right| right).count(), sequences: data.ranges().filter(fine).count() }
    }
}

/// What is known of a model beyond that, by method.
#[derive(Debug, Clone)]
pub enum Details {
    /// Of gated units.
    Gated(GatedDetails),
    /// Of plateaus or a curve in floats.
    Hinges(HingeDetails),
    /// Of plateaus with rational weights: nothing more.
    Exact,
    /// Of many thin layers.
    Deep(DeepDetails),
    /// Of the constants of the paper's proof.
    Paper(PaperProof),
}

/// What is known of gated units.
#[derive(Debug, Clone, PartialEq)]
pub struct GatedDetails {
    /// How many hidden units give words their label, give positions another, and tell contexts apart.
    pub units: [usize; 3],
    /// How many spare units, of zeros, stand behind them.
    pub spare: usize,
    /// The smallest margin over its error bound, in the model's precision, and in double precision if that is another.
    pub ratios: Vec<f64>,
    /// Where double precision was chosen because more tokens are proved in it: how many are in single precision.
    pub proved_in_single: Option<usize>,
    /// What was chosen of what attention sees, where the compiler had the choice.
    pub choice: Option<Choice>,
}

/// What is known of hinges along one coordinate.
#[derive(Debug, Clone, PartialEq)]
pub struct HingeDetails {
    /// The context id of each token: a coordinate of it after attention.
    pub context_ids: Vec<f64>,
    /// Runs of equal labels along the context ids.
    pub runs: usize,
    /// What was proved.
    pub proof: OutputProof,
}

/// What is known of many thin layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeepDetails {
    /// How context ids are packed.
    pub packing: Packing,
    /// Numbers other than 0 in the feed-forward layers.
    pub nonzero: usize,
    /// The same for the smallest single hidden layer, a curve through all context ids: per id a hinge, and a bend of each
    /// output, of which a class needs one and a vector d.
    pub one_layer: usize,
}

impl Compiled {
    /// How labels are read off the context ids.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The model. That of [`Method::Paper`] has rational numbers, but its outputs are irrational: it can be looked at and
    /// saved, not run.
    pub fn model(&self) -> &AnyModel {
        &self.model
    }

    /// What is claimed of it: its certificate.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// How it was made.
    pub fn source(&self) -> &Source {
        self.model.source()
    }

    /// Tokens that contradict their context, in order: no weights get them right.
    pub fn impossible(&self) -> &[usize] {
        &self.impossible
    }

    /// Tokens for which any label will do, in order: they are neither right nor wrong.
    pub fn free(&self) -> &[usize] {
        &self.free
    }

    /// How many tokens can be right: all but the impossible and the free.
    pub fn possible(&self) -> usize {
        self.proved.len() - self.impossible.len() - self.free.len()
    }

    /// Whether each token is proved right in the model's arithmetic: in floats, in any order of summation.
    pub fn proved(&self) -> &[bool] {
        &self.proved
    }

    /// How many tokens are.
    pub fn certified(&self) -> usize {
        self.proved.iter().filter(|&&proved| proved).count()
    }

    /// Whether every possible token is.
    pub fn is_proved(&self) -> bool {
        self.certified() == self.possible()
    }

    /// Possible tokens that are not proved, in order.
    pub fn unproved(&self) -> impl Iterator<Item = usize> + '_ {
        let listed = |list: &[usize], t: usize| list.binary_search(&t).is_ok();
        (0..self.proved.len())
            .filter(move |&t| !self.proved[t] && !listed(&self.impossible, t) && !listed(&self.free, t))
    }

    /// Tokens that come out right: proved so or, for gated units, computed so here, which says nothing of other orders of
    /// summation.
    pub fn right(&self) -> usize {
        self.right.tokens
    }

    /// Sequences all of whose labeled tokens come out right.
    pub fn sequences_right(&self) -> usize {
        self.right.sequences
    }

    /// The smallest gap between context ids that must be told apart, over the standard deviation of all; infinite where
    /// nothing must be. That of [`Method::Paper`] may be smaller than any float: see [`PaperProof::log2_gap`].
    pub fn gap(&self) -> f64 {
        self.gap
    }

    /// How many different contexts there are, each with its id.
    pub fn context_ids(&self) -> usize {
        self.context_ids
    }

    /// What else is known, by method.
    pub fn details(&self) -> &Details {
        &self.details
    }

    /// The hidden units of gated models by what they are for; none for other methods.
    pub fn gated(&self) -> Option<&GatedDetails> {
        if let Details::Gated(details) = &self.details { Some(details) } else { None }
    }

    /// How many of the stored hidden units are spare: units of zeros, which edits fill.
    pub fn spare(&self) -> usize {
        self.gated().map_or(0, |details| details.spare)
    }

    /// What is known of hinges, for plateaus and curves in floats.
    pub fn hinges(&self) -> Option<&HingeDetails> {
        if let Details::Hinges(details) = &self.details { Some(details) } else { None }
    }

    /// What is known of many thin layers.
    pub fn deep(&self) -> Option<&DeepDetails> {
        if let Details::Deep(details) = &self.details { Some(details) } else { None }
    }

    /// What is known of the constants of the paper's proof.
    pub fn paper(&self) -> Option<&PaperProof> {
        if let Details::Paper(details) = &self.details { Some(details) } else { None }
    }

    /// What coordinates and hidden units are for, where they are gated.
    pub fn names(&self) -> Option<&ModelNames> {
        self.names.as_ref()
    }

    /// What is proved of all tokens holds for every order of a sequence where nothing tells places apart (`blind`): a program that
    /// runs on another order is one that runs on this order and adds up in another.
    pub(super) fn claim_orderings(
        &mut self,
        blind: bool,
        covered: impl FnOnce() -> Result<CoveredSequences>,
    ) -> Result<()> {
        let asked = self.proved.len() - self.free.len();
        let whole = |claim: &Claim| match claim {
            Claim::Labels { arithmetic, right, .. } if *right == asked && asked > 0 => Some(arithmetic.clone()),
            _ => None,
        };
        // One arithmetic is enough: the model's own comes first.
        if let Some(arithmetic) = self.claims.iter().find_map(whole).filter(|_| blind) {
            let labels = self.claims.iter().take_while(|claim| matches!(claim, Claim::Labels { .. })).count();
            self.claims.insert(labels, Claim::orderings(&arithmetic, covered()?));
        }
        Ok(())
    }

    /// Writes the model directory with its certificate and names, whole or not at all.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.model.save_as(self.storage, dir, |dir| {
            self.names.as_ref().map_or(Ok(()), |names| names.write(dir))?;
            certificate::write(dir, &self.data, &self.claims)
        })
    }
}
