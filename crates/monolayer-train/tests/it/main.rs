//! Gradients against finite differences and PyTorch, engines against each other, whole runs. One program, so that everything is linked once.

mod configs;
mod engine;
mod gradients;
mod long;
mod parity;
mod run;
