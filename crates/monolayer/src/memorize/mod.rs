//! Corollaries 1 and 2: any consistent dataset into one rank-1 attention layer and one feed-forward block, without training.

pub mod alphabet;
mod compiled;
pub mod deep;
pub mod gated;
pub(crate) mod id_rounding;
mod label_counts;
mod like;
pub mod proof_constants;
mod settings;
pub mod vectors;

pub use gated::stages::cluster;

pub use compiled::{Compiled, DeepDetails, Details, GatedDetails, HingeDetails};
pub use label_counts::{LabelCounts, least_parameters};
pub use settings::{Effort, MEMORY, Memorizer, Method, Precision, SPARE};

use std::borrow::Cow;

use alphabet::Choice;

use crate::data::context::{self, Contexts, check_mask};
use crate::data::free_label::FREE_NAME;
use crate::data::positions::Positions;
use crate::data::{CoveredSequences, Dataset, END_OF_TEXT, Orderings, Vocabulary};
use crate::error::{Error, Result};
use crate::model::{SequenceDomain, Source, TextSource};
use crate::paper::mask::Mask;

/// The name of a start token.
const START: &str = "<s>";

impl Memorizer<'_> {
    /// Compiles a dataset into a model, and proves what it does.
    pub fn compile(&self, data: &Dataset) -> Result<Compiled> {
        match data.orderings {
            Orderings::Given => self.compile_given(data),
            Orderings::All => self.blind_to_order()?.compile_given(data),
        }
    }

    fn compile_given(&self, data: &Dataset) -> Result<Compiled> {
        let method = self.method.unwrap_or_else(|| Method::for_data(data));
        self.check(method)?;
        check_mask(data, &self.mask)?;
        if let Some(like) = &self.like {
            if method != Method::Gated {
                return Err(Error::mismatch("`like` is for words with classes", "leave `method` out, or use gated"));
            }
            let data = like.data(data)?;
            return self.finish(&data, gated::memorize_words(&data, self, None)?);
        }
        let choice = (method == Method::Gated).then(|| Choice::new(data, self)).flatten();
        let forced = self.wanted.reads.is_some() || self.wanted.gates.is_some();
        if let Some(choice) = choice {
            let chosen = choice.settings(self);
            let small = gated::memorize_words(data, &chosen, Some(&choice)).and_then(|c| chosen.finish(data, c));
            if forced || small.as_ref().is_ok_and(Compiled::is_proved) {
                return small;
            }
            // What cannot be proved this way may be with longer codes.
            let large = gated::memorize_words(data, self, None).and_then(|c| self.finish(data, c));
            let proved = |c: &Result<Compiled>| c.as_ref().map_or(0, Compiled::certified);
            return if proved(&large) > proved(&small) || small.is_err() { large } else { small };
        }
        if forced {
            return Err(Error::mismatch(
                "`reads` and `gates` are for words of a small alphabet with class labels, and for codes of the compiler's choice",
                "leave them out, or leave out `embedding`, `positions`, `unknown` and `text`",
            ));
        }
        let compiled = match (method, self.precision) {
            (Method::Gated, _) if gated::stages::fit(self, data) => return gated::stages::memorize(data, self),
            (Method::Gated, _) => gated::memorize_words(data, self, None),
            (Method::Plateau, Precision::Exact) => vectors::memorize_exactly(data, self),
            (Method::Plateau | Method::Interpolate, _) => vectors::memorize_vectors(data, self, method),
            (Method::Deep, _) => deep::memorize_deep(data, self),
            (Method::Paper, _) => proof_constants::memorize_paper(data, self),
        }?;
        self.finish(data, compiled)
    }

    /// What a compiled model's source says of the data, and how its numbers are to be stored.
    fn finish(&self, data: &Dataset, compiled: Compiled) -> Result<Compiled> {
        self.finish_with(data, compiled, || Ok(CoveredSequences::of(data)))
    }

    /// The same where it is known otherwise what sequences the data covers: `data` may be without its tokens.
    fn finish_with(
        &self,
        data: &Dataset,
        mut compiled: Compiled,
        covered: impl FnOnce() -> Result<CoveredSequences>,
    ) -> Result<Compiled> {
        compiled.storage = self.storage;
        let positions = compiled.model.config().max_length.is_some();
        // Counting all contexts would take more memory than stages do.
        let counts = if gated::stages::fit(self, data) {
            None
        } else {
            LabelCounts::with_start(self.start.then_some(context::START), data, &self.mask, positions)?
        };
        if let Source::Memorize { labels, domain, .. } = compiled.model.source_mut() {
            *labels = counts;
            *domain = Some(SequenceDomain::of(data, &self.mask, positions));
        }
        compiled.claim_orderings(self.mask == Mask::None && !positions, covered)?;
        Ok(compiled)
    }

    /// Positions are used by default where contexts contradict each other without them.
    fn positions_for(&self, data: &Dataset, labels: &[Option<u32>]) -> Positions {
        if self.positions != Positions::Auto {
            return self.positions.clone();
        }
        let (ids, start) = (data.token_ids(), self.start.then_some(context::START));
        let contexts = |positions| Contexts::with_start(start, &ids, &data.offsets, &self.mask, positions);
        let conflicts = |positions| contexts(positions).agree(labels).impossible.len();
        if conflicts(false) > conflicts(true) { Positions::Auto } else { Positions::None }
    }

    /// The name of the start token, where there is to be one: none of the words, so that it is nothing else.
    fn start_for(&self, words: &Vocabulary) -> Option<String> {
        let mut names = std::iter::once(START.to_owned()).chain((2..).map(|i| format!("<s{i}>")));
        self.start.then(|| names.find(|name| words.get(name).is_none()).expect("a name that is free"))
    }

    /// How a model was made; all candidates were tried.
    fn source(&self, data: &Dataset, data_hash: &str, method: Method) -> Source {
        let text = |split| {
            let first = data.token_text(0);
            TextSource { split, first, end: END_OF_TEXT.to_owned() }
        };
        Source::Memorize {
            method,
            seed: self.seed,
            candidates: self.candidates.max(1),
            effort: (self.effort != Effort::Default).then_some(self.effort),
            data_hash: data_hash.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: None,
            text: self.text.map(text),
            domain: None,
        }
    }
}

/// The labels of a model for data with these: one that stands for any where all labels are free.
fn model_labels(names: &Vocabulary) -> Cow<'_, Vocabulary> {
    if !names.is_empty() {
        return Cow::Borrowed(names);
    }
    let mut any = Vocabulary::default();
    any.add(FREE_NAME);
    Cow::Owned(any)
}

/// The paper's count of parameters for a dataset, `4 (s + d) + d (2 n N + d)` for heads of size s.
pub fn paper_parameters(data: &Dataset, s: usize, d: usize) -> usize {
    4 * (s + d) + d * (2 * data.longest() * data.sequences() + d)
}
