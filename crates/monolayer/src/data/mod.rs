//! Datasets and what is made of them before any weight is chosen: readers, vectors for words and positions, the contexts
//! of Definition 2 and the separatedness of Definition 1.

mod canonical;
pub mod context;
mod dataset;
pub mod embedding;
pub mod entities;
mod from_memory;
mod label_scheme;
mod numbering;
pub mod positions;
mod readers;
pub mod separation;
mod task;
pub mod token_vectors;
mod word_majority;
mod zipf;

pub use dataset::{Dataset, Labels, Names, Tokens, Vocabulary, Written};
pub use label_scheme::LabelScheme;
pub use readers::Format;
pub use task::Task;
pub use word_majority::word_majority;
pub use zipf::zipf_corpus;
