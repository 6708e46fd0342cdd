//! Datasets and what is made of them before any weight is chosen: readers, vectors for words and positions, the contexts
//! of Definition 2 and the separatedness of Definition 1.

mod ambiguous;
mod canonical;
mod class_name;
pub mod context;
mod covered_sequences;
mod dataset;
pub mod embedding;
pub mod entities;
pub mod far_codes;
pub(crate) mod free_label;
mod from_memory;
mod label_bytes;
mod label_scheme;
pub(crate) mod numbering;
pub mod positions;
mod readers;
pub mod separation;
mod sequence_labels;
mod task;
mod text;
pub mod token_vectors;
mod word_majority;
mod zipf;

pub use ambiguous::ambiguous_corpus;
pub(crate) use canonical::CanonicalNames;
pub use class_name::ClassName;
pub use covered_sequences::CoveredSequences;
pub(crate) use covered_sequences::Multisets;
pub use dataset::{Dataset, Labels, Names, Orderings, Tokens, Vocabulary, Written};
pub use label_scheme::LabelScheme;
pub use readers::{Column, DataOptions, Format, Reading, thousands_apart};
pub use sequence_labels::LabelAt;
pub use task::Task;
pub use text::{END_OF_TEXT, Split};
pub use word_majority::word_majority;
pub use zipf::zipf_corpus;
