//! The program as its user meets it: commands, output, exit codes, files. One program, so that everything is linked once.

mod approximate;
mod bad_input;
mod claims;
mod commands;
mod common;
mod context;
mod experiment;
mod hardmax;
mod memorize;
mod memorize_edges;
mod train;
mod unquantized;
mod verify;
