//! How a dataset is memorized: one set of defaults for all methods, and a builder.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::alphabet::architecture::{Gates, Reads};
use super::gated::halfspace_cover::CoverEffort;
use super::like::Like;
use crate::context_map::search;
use crate::data::embedding::Embedding;
use crate::data::positions::Positions;
use crate::data::{Dataset, Labels, Split, Tokens};
use crate::error::{Error, Result};
use crate::model::Storage;
use crate::paper::attention::Mask;

/// How labels are read off the context ids.
///
/// ```
/// use monolayer::{Dataset, Memorizer, Method};
///
/// let data = Dataset::open("task:parity:alphabet=2,length=3")?;
/// assert_eq!(Method::for_data(&data), Method::Gated);
/// let compiled = Memorizer::new().method(Method::Plateau).compile(&data)?;
/// assert!(compiled.is_proved());
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Hidden units that each fire for their own tokens only; for words with classes.
    Gated,
    /// A step along the context ids for each change of label; the skip connection is canceled.
    Plateau,
    /// A curve through all context ids, as in Corollary 1.
    Interpolate,
    /// Many thin layers that read the bits of packed numbers, in exact arithmetic (Remark 2).
    Deep,
    /// Corollary 1 with the constants of its proof, on toys, in big floats.
    Paper,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 5] = [Self::Gated, Self::Plateau, Self::Interpolate, Self::Deep, Self::Paper];

    /// The method for a dataset where none is asked for: gated units for words with classes, else plateaus.
    pub fn for_data(data: &Dataset) -> Self {
        match (&data.tokens, &data.labels) {
            (Tokens::Words { .. }, Labels::Classes { .. }) => Self::Gated,
            _ => Self::Plateau,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gated => "gated",
            Self::Plateau => "plateau",
            Self::Interpolate => "interpolate",
            Self::Deep => "deep",
            Self::Paper => "paper",
        }
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::setting(format!("{name:?} is not a method"), format!("the methods are {names}"))
        })
    }
}

/// How long the compiler looks for fewer hidden units, where gated units are for a large vocabulary.
///
/// ```
/// use monolayer::memorize::Effort;
/// use monolayer::{Dataset, Memorizer};
///
/// let data = Dataset::from_sequences(&[["May", "sails"], ["in", "May"]], &[["PER", "O"], ["O", "DATE"]])?;
/// let memorizer = Memorizer::new().method(monolayer::Method::Gated);
/// assert!(memorizer.effort(Effort::High).compile(&data)?.is_proved());
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Little time.
    Fast,
    /// About as long as the rest of the compilation takes.
    #[default]
    Default,
    /// As long as it gains units.
    High,
}

impl Effort {
    /// For halfspaces around words.
    pub(super) fn for_words(self) -> CoverEffort {
        match self {
            Self::Fast => CoverEffort { steps: 20, refusals: 1, together: 16, batch: 4096 },
            Self::Default => CoverEffort { steps: 100, refusals: 8, together: 4, batch: 4096 },
            Self::High => CoverEffort { steps: 1000, refusals: 24, together: 1, batch: 1 << 16 },
        }
    }

    /// For halfspaces around contexts.
    pub(super) fn for_exceptions(self) -> CoverEffort {
        match self {
            Self::Fast => CoverEffort { steps: 60, refusals: 2, together: 8, batch: 4096 },
            Self::Default => CoverEffort { steps: 400, refusals: 12, together: 4, batch: 4096 },
            Self::High => CoverEffort { steps: 3000, refusals: 24, together: 1, batch: 1 << 16 },
        }
    }
}

/// The numbers of a model.
///
/// ```
/// use monolayer::{AnyModel, Dataset, Memorizer, Method, Precision};
///
/// let data = Dataset::from_vectors(&[[[0.5], [2.0]]], &[[[1.0], [-1.0]]])?;
/// let compiled = Memorizer::new().method(Method::Plateau).precision(Precision::Exact).compile(&data)?;
/// assert!(matches!(compiled.model(), AnyModel::Exact(_)) && compiled.is_proved());
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// What suits the method: for gated units single precision where every possible token is proved in it, else double if
    /// that proves more; double for plateaus and curves; exact for the others.
    #[default]
    Auto,
    /// Single.
    F32,
    /// Double.
    F64,
    /// Rational numbers.
    Exact,
}

/// How many spare hidden units a model gets where nothing else is asked for.
pub const SPARE: usize = 64;

/// Bytes for what is known of single tokens, where nothing else is asked for.
pub const MEMORY: usize = 512 << 20;

/// What was asked for; the compiler chooses the rest.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Wanted {
    pub mask: Option<Mask>,
    pub start: Option<bool>,
    pub embedding: Option<Embedding>,
    pub reads: Option<Reads>,
    pub gates: Option<Gates>,
}

/// How a dataset is memorized: Corollaries 1 and 2.
///
/// ```
/// use monolayer::{Dataset, Memorizer};
///
/// let data = Dataset::from_sequences(&[["May", "sails"], ["in", "May"]], &[["PER", "O"], ["O", "DATE"]])?;
/// let compiled = Memorizer::new().seed(7).compile(&data)?;
/// assert!(compiled.is_proved());
/// assert_eq!(compiled.model().right(&data)?, Some(4));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Clone)]
pub struct Memorizer<'a> {
    pub(super) method: Option<Method>,
    pub(super) embedding: Embedding,
    pub(super) free: bool,
    pub(super) positions: Positions,
    pub(super) mask: Mask,
    pub(super) start: bool,
    pub(super) seed: u64,
    pub(super) candidates: usize,
    pub(super) effort: Effort,
    pub(super) precision: Precision,
    pub(super) unknown: bool,
    pub(super) max_bits: usize,
    pub(super) text: Option<Split>,
    pub(super) wanted: Wanted,
    pub(super) storage: Storage,
    pub(super) spare: Option<usize>,
    pub(super) memory: Option<usize>,
    pub(super) like: Option<Arc<Like>>,
    on_progress: Option<Arc<Listener<'a>>>,
}

type Listener<'a> = dyn Fn(usize, f64) + Send + Sync + 'a;

impl Default for Memorizer<'_> {
    fn default() -> Self {
        Self {
            method: None,
            embedding: Embedding::Sign(64),
            free: false,
            positions: Positions::Auto,
            mask: Mask::None,
            start: false,
            seed: 0,
            candidates: search::CANDIDATES,
            effort: Effort::Default,
            precision: Precision::Auto,
            unknown: false,
            max_bits: 1 << 16,
            text: None,
            wanted: Wanted::default(),
            storage: Storage::Auto,
            spare: None,
            memory: None,
            like: None,
            on_progress: None,
        }
    }
}

impl<'a> Memorizer<'a> {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How labels are read off the context ids; by default what suits the data.
    #[must_use]
    pub fn method(self, method: Method) -> Self {
        Self { method: Some(method), ..self }
    }

    /// Vectors for words, where tokens are words.
    #[must_use]
    pub fn embedding(self, embedding: Embedding) -> Self {
        let wanted = Wanted { embedding: Some(embedding.clone()), ..self.wanted };
        Self { embedding, wanted, ..self }
    }

    /// Whether the embedding may carry labels: it is then chosen by the compiler, not fixed in advance. For gated units.
    #[must_use]
    pub fn free(self, free: bool) -> Self {
        Self { free, ..self }
    }

    /// Vectors for positions.
    #[must_use]
    pub fn positions(self, positions: Positions) -> Self {
        Self { positions, ..self }
    }

    /// Which tokens a query sees: all, unless said otherwise; for small alphabets what needs the fewest units.
    #[must_use]
    pub fn mask(self, mask: Mask) -> Self {
        let wanted = Wanted { mask: Some(mask.clone()), ..self.wanted };
        Self { mask, wanted, ..self }
    }

    /// Whether every sequence stands behind a start token, which all its tokens see: without positions attention can then count.
    /// For gated units. By default small alphabets have one where that needs fewer units.
    ///
    /// ```
    /// use monolayer::data::positions::Positions;
    /// use monolayer::{Dataset, Memorizer};
    ///
    /// let data = Dataset::from_sequences(&[vec!["a"], vec!["a", "a"]], &[vec!["1"], vec!["2", "2"]])?;
    /// let memorizer = Memorizer::new().positions(Positions::None);
    /// assert_eq!(memorizer.clone().start(false).compile(&data)?.impossible(), [0]);
    /// assert_eq!(memorizer.start(true).compile(&data)?.certified(), 3);
    /// # Ok::<(), monolayer::Error>(())
    /// ```
    #[must_use]
    pub fn start(self, start: bool) -> Self {
        let wanted = Wanted { start: Some(start), ..self.wanted };
        Self { start, wanted, ..self }
    }

    /// What keys and gates read of places, where the alphabet is small; by default what needs the fewest units.
    #[must_use]
    pub fn reads(self, reads: Reads) -> Self {
        let wanted = Wanted { reads: Some(reads), ..self.wanted };
        Self { wanted, ..self }
    }

    /// Which tokens share their hidden units, where the alphabet is small; by default what needs the fewest units.
    #[must_use]
    pub fn gates(self, gates: Gates) -> Self {
        let wanted = Wanted { gates: Some(gates), ..self.wanted };
        Self { wanted, ..self }
    }

    /// The seed of codes and search: same seed, same model.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// How many projections to try: more widen the smallest gap.
    #[must_use]
    pub fn candidates(self, candidates: usize) -> Self {
        Self { candidates, ..self }
    }

    /// How long to look for fewer hidden units. For gated units; small alphabets are searched by `candidates` alone.
    #[must_use]
    pub fn effort(self, effort: Effort) -> Self {
        Self { effort, ..self }
    }

    /// The numbers of the model.
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// Whether to add a row for unknown words, which get the commonest label. For gated units.
    #[must_use]
    pub fn unknown(self, unknown: bool) -> Self {
        Self { unknown, ..self }
    }

    /// The most bits that the constants of the paper's proof may ask for.
    #[must_use]
    pub fn max_bits(self, max_bits: usize) -> Self {
        Self { max_bits, ..self }
    }

    /// The data is a text to recite, of such tokens: the mask is causal, there are no positions, and the model's source says
    /// where the text starts and ends.
    #[must_use]
    pub fn text(self, split: Split) -> Self {
        Self { text: Some(split), mask: Mask::Causal, positions: Positions::None, ..self }
    }

    /// How the matrices of the feed-forward block are written.
    #[must_use]
    pub fn storage(self, storage: Storage) -> Self {
        Self { storage, ..self }
    }

    /// How many spare hidden units, of zeros, gated models get, which edits fill; by default [`SPARE`], and none for tasks.
    #[must_use]
    pub fn spare(self, spare: usize) -> Self {
        Self { spare: Some(spare), ..self }
    }

    /// Goes through the data in stages at effort [`Effort::Fast`], whatever its size, with so many bytes for what is known of single
    /// tokens, such as [`MEMORY`]: where they need more, the data is gone through more often. The model is the same for any number.
    #[must_use]
    pub fn memory(self, memory: usize) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// The spare units for a dataset. A task is enumerated in full: there is nothing to edit in it.
    pub(super) fn spare_for(&self, data: &Dataset) -> usize {
        self.spare.unwrap_or(if data.name.starts_with("task:") { 0 } else { SPARE })
    }

    /// Hears, now and then, how many more projections were tried and the best gap so far, over the spread of the context ids.
    #[must_use]
    pub fn on_progress(self, on_progress: impl Fn(usize, f64) + Send + Sync + 'a) -> Self {
        Self { on_progress: Some(Arc::new(on_progress)), ..self }
    }

    pub(super) fn report(&self, tried: usize, gap: f64) {
        if let Some(on_progress) = &self.on_progress {
            on_progress(tried, gap);
        }
    }

    /// The same for data whose sequences stand for all their orderings: neither a mask nor positions, which an order would show in.
    pub(super) fn blind_to_order(&self) -> Result<Self> {
        let positions = matches!(self.positions, Positions::Auto | Positions::None)
            && self.wanted.reads.is_none_or(|reads| !reads.positions())
            && self.wanted.gates.is_none_or(|gates| !gates.reads().1);
        if self.mask != Mask::None || self.text.is_some() || !positions {
            return Err(Error::mismatch(
                "the sequences of the data stand for all their orderings, and a `mask` or `positions` would tell these apart",
                "leave out `mask`, `positions`, `reads` and `gates` of places, or give the data in all orders",
            ));
        }
        Ok(self.clone().mask(Mask::None).positions(Positions::None))
    }

    /// Refuses settings that mean nothing to a method.
    pub(super) fn check(&self, method: Method) -> Result<()> {
        let for_gated = self.unknown
            || self.free
            || self.start
            || self.spare.is_some_and(|spare| spare > 0)
            || self.precision == Precision::F32
            || self.effort != Effort::Default;
        if method != Method::Gated && for_gated {
            let name = method.name();
            return Err(Error::mismatch(
                format!(
                    "`unknown`, `start`, `spare`, `effort`, `embedding` free and `precision` f32 do not go with `method` {name}"
                ),
                "they are for `method` gated",
            ));
        }
        if self.precision == Precision::Exact && matches!(method, Method::Gated | Method::Interpolate) {
            let what = format!("`precision` exact does not go with `method` {}", method.name());
            return Err(Error::mismatch(what, "it is for `method` plateau, deep or paper"));
        }
        if method == Method::Paper && self.mask != Mask::None {
            return Err(Error::mismatch(
                "`mask` does not go with `method` paper",
                "its proof is about layers without one",
            ));
        }
        Ok(())
    }
}

impl fmt::Debug for Memorizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memorizer")
            .field("method", &self.method)
            .field("embedding", &self.embedding)
            .field("free", &self.free)
            .field("positions", &self.positions)
            .field("mask", &self.mask)
            .field("start", &self.start)
            .field("seed", &self.seed)
            .field("candidates", &self.candidates)
            .field("effort", &self.effort)
            .field("precision", &self.precision)
            .field("unknown", &self.unknown)
            .field("max_bits", &self.max_bits)
            .field("text", &self.text)
            .field("wanted", &self.wanted)
            .field("storage", &self.storage)
            .field("spare", &self.spare)
            .field("like", &self.like.is_some())
            .finish_non_exhaustive()
    }
}
