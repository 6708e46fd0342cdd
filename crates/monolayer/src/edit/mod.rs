//! Exact edits of compiled models: a context gets another label, and nothing else changes but what is stated and proved.
//!
//! For a word at a place, attention adds one number to the token, the context id, so that all hidden units are hinges along
//! it. An edit adds a few units that fire for that word at that place alone (`gate`) and lift one label over a short
//! interval of ids (`bump`). What the labels can do along all ids is then bounded from the numbers of both models (`along`,
//! `transitions`), rounding in any order of summation included, and stated (`difference`).

mod add;
mod along;
mod bump;
mod context_of;
pub mod difference;
mod forget;
mod gate;
mod known;
mod lines;
mod pair;
mod session;
pub(crate) mod site;
mod transitions;
mod undo;
mod units;

pub use forget::{Forget, Forgotten};
pub use pair::Outcome;
pub use session::{Edit, Edited, Editor};
pub use undo::undo;
