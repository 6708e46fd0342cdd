//! The program as its user meets it: commands, output, exit codes, files. One program, so that everything is linked once.

mod approximate;
mod bad_input;
mod claims;
mod commands;
mod common;
mod context;
mod edit;
mod experiment;
mod explain;
mod free_labels;
mod hardmax;
mod label_bits;
mod masks;
mod memorize;
mod memorize_edges;
mod outputs;
mod predict;
mod start;
mod text;
mod train;
mod unquantized;
mod user_files;
mod verify;
