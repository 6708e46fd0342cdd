//! Every statement of the paper as a run.
