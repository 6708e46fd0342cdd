//! Functions with names: `zoo:NAME`, or the name alone, wherever an expression is expected.
//!
//! Each acts on every coordinate alike; in a formula `#` stands for the number of the coordinate.

use super::names;
use crate::error::{Error, Result};

/// A function with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// What it is, in words.
    pub what: &'static str,
    /// Its formula for coordinate `#`.
    pub formula: &'static str,
}

/// All of them.
pub const ZOO: [Named; 11] = [
    Named { name: "centering", what: "distance from the mean", formula: "x# - mean(x#)" },
    Named { name: "softmax", what: "softmax over the tokens", formula: "exp(x#)/sum(exp(x#))" },
    Named {
        name: "attention",
        what: "softmax attention, sharpened",
        formula: "sum(x#*exp(8*own#*x#))/sum(exp(8*own#*x#))",
    },
    Named { name: "rank", what: "rank in sorted order, over the length", formula: "mean(step(own# - x#))" },
    Named {
        name: "nearest",
        what: "distance to the nearest other token, at most 1",
        formula: "min(abs(x# - own#) + self)",
    },
    Named { name: "gated", what: "the token, gated by the variance", formula: "x#*tanh(20*var(x#))" },
    Named { name: "xor", what: "parity of the tokens above one half", formula: "(1 - cos(pi*sum(step(x# - 0.5))))/2" },
    Named { name: "bump", what: "a bump around the middle", formula: "exp(-10*((x# - 0.5)^2 + var(x#)))" },
    Named { name: "wave", what: "a sine with the mean as its phase", formula: "sin(2*pi*x# + pi*mean(x#))" },
    Named { name: "maximum", what: "the largest token", formula: "max(x#)" },
    Named { name: "identity", what: "the token itself", formula: "x#" },
];

impl Named {
    /// The expressions for tokens of `dim` coordinates.
    pub fn text(&self, dim: usize) -> String {
        (1..=dim).map(|k| self.formula.replace('#', &k.to_string())).collect::<Vec<_>>().join("; ")
    }
}

/// The expressions that `text` names, if it is a name of the zoo.
pub(super) fn find(text: &str, dim: usize) -> Result<Option<String>> {
    let name = text.trim();
    let (name, must_exist) = name.strip_prefix("zoo:").map_or((name, false), |name| (name.trim(), true));
    let found = ZOO.iter().find(|named| named.name == name).map(|named| named.text(dim));
    if must_exist && found.is_none() {
        let all: Vec<&str> = ZOO.iter().map(|named| named.name).collect();
        let help = names::closest_of(name, all.iter().map(|name| (*name).to_owned()))
            .map_or_else(|| format!("there is {}", all.join(", ")), |close| format!("did you mean zoo:{close}?"));
        return Err(Error::setting(format!("unknown function zoo:{name}"), help));
    }
    Ok(found)
}
