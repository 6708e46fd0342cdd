//! What a user of the library would do, property tests of the lemmas, and fixtures that PyTorch wrote. One program, so that everything is linked once.

mod approximate;
mod balls;
mod boltzmann;
mod cells;
mod common;
mod context_map;
mod dataset;
mod docs;
mod errata;
mod exact;
mod examples;
mod expressions;
mod grammar;
mod hardmax;
mod hostile_models;
mod house;
mod intervals;
mod memorizer;
mod models;
mod objects;
mod paper;
mod predict;
mod proved_tokens;
mod random;
mod theorem_weights;
mod vectors;
