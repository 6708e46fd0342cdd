//! Readers of the files.
