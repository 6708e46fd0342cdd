//! How a label that may be anything is written: `null` in JSON, and these.

/// In columns and tables, and for people.
pub(crate) const FREE_NAME: &str = "_";

/// Among integers.
pub(crate) const FREE_INTEGER: i64 = -100;

/// The same in the cells of a table.
pub(crate) const FREE_DIGITS: &str = "-100";
