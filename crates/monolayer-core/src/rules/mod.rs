//! The rules that bound what a covered program computes, and the judge.
