//! Trains the paper's Transformers (section 5): eqs. 20 and 3, forward and backward by hand, on a CPU.
//!
//! Tokens are rows, packed one sequence after another with no padding. A batch is cut into chunks of sequences that depend
//! on the data alone; each chunk goes forward and backward on one thread, and the chunks' gradients are added in order, so
//! the result is the same, bit for bit, for any number of threads.

pub mod architecture;
mod attention;
mod batch;
pub mod ceilings;
pub mod checkpoint;
pub mod engine;
pub mod export;
mod feed_forward;
mod lazy_adam;
mod loss;
pub mod metrics;
mod norm;
pub mod optimizer;
pub mod options;
mod pass;
mod product;
pub mod products_alone;
mod rows;
pub mod run;
pub mod schedule;
mod team;
mod times;
pub mod training_data;
mod update;

pub use architecture::Architecture;
pub use engine::{Batch, Diverged, Engine, Evaluation, Step, Targets, Tokens};
pub use optimizer::Optimizer;
pub use options::Options;
