//! What the core does not read, in the canonical form of a dataset: a line `{"tokens":[...],"labels":[...]}` per sequence.

pub mod arrays;
pub mod json_numbers;
pub mod number;
pub mod task;
pub mod tensors;
pub mod text;

use monolayer_core::read::{Error, Limits, Result};

/// A canonical text that stays within the limit of a file.
struct Text<'a> {
    text: String,
    limits: &'a Limits,
}

impl<'a> Text<'a> {
    fn new(limits: &'a Limits) -> Self {
        Self { text: String::new(), limits }
    }

    /// Adds a list of items; `item` writes one of them.
    fn list(&mut self, n: usize, item: impl Fn(usize, &mut String)) {
        self.text.push('[');
        for i in 0..n {
            self.text.push_str(if i == 0 { "" } else { "," });
            item(i, &mut self.text);
        }
        self.text.push(']');
    }

    /// Ends a line, if the text is not too long by now.
    fn end(&mut self) -> Result<()> {
        self.text.push_str("}\n");
        within(self.text.len() as u128, "bytes of canonical form", "bytes", self.limits.bytes)
    }
}

/// Refuses so many things beyond a limit.
pub(crate) fn within(found: u128, things: &str, name: &'static str, limit: usize) -> Result<()> {
    if found <= limit as u128 {
        return Ok(());
    }
    let what = format!("{found} {things}, more than the limit {name:?} of {limit}");
    Err(Error { limit: Some(name), ..Error::from(what) })
}
