//! What attention sees, and which tokens share their hidden units: the choices that a compiler has before it looks for weights.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::paper::mask::Mask;

/// What keys and gates read of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reads {
    /// Nothing: the model has no positions.
    Words,
    /// Keys read words; queries and gates read a token's own place, too.
    OwnPlace,
    /// Keys, queries and gates read words and places.
    Places,
}

impl Reads {
    /// All of them, the simplest first.
    pub const ALL: [Self; 3] = [Self::Words, Self::OwnPlace, Self::Places];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::OwnPlace => "own-place",
            Self::Places => "places",
        }
    }

    /// Whether the model needs positions.
    pub fn positions(self) -> bool {
        self != Self::Words
    }
}

impl FromStr for Reads {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        one_of(Self::ALL, Self::name, name, "reads")
    }
}

/// The choice of a name.
fn one_of<T: Copy, const N: usize>(
    all: [T; N],
    name_of: fn(T) -> &'static str,
    name: &str,
    setting: &str,
) -> Result<T> {
    all.into_iter().find(|&choice| name_of(choice) == name).ok_or_else(|| {
        let help = format!("write {}", all.map(name_of).join(", "));
        Error::setting(format!("{name:?} is nothing that `{setting}` can be"), help)
    })
}

/// Which tokens share their hidden units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gates {
    /// All of them: units read the context id alone.
    Shared,
    /// Tokens of one word.
    Word,
    /// Tokens at one place.
    Place,
    /// Tokens of one word at one place.
    WordPlace,
}

impl Gates {
    /// All of them, the simplest first.
    pub const ALL: [Self; 4] = [Self::Shared, Self::Word, Self::Place, Self::WordPlace];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Word => "word",
            Self::Place => "place",
            Self::WordPlace => "word-place",
        }
    }

    /// Whether they tell words apart, and places.
    pub fn reads(self) -> (bool, bool) {
        (matches!(self, Self::Word | Self::WordPlace), matches!(self, Self::Place | Self::WordPlace))
    }
}

impl FromStr for Gates {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        one_of(Self::ALL, Self::name, name, "gates")
    }
}

/// What attention sees, and which tokens share their units.
#[derive(Debug, Clone, PartialEq)]
pub struct Architecture {
    /// Which tokens a query sees.
    pub mask: Mask,
    /// Whether a start token stands before every sequence.
    pub start: bool,
    /// What keys and gates read of places.
    pub reads: Reads,
    /// Which tokens share their units.
    pub gates: Gates,
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = if self.start { "start token" } else { "no start token" };
        let reads = match self.reads {
            Reads::Words => "keys read words, no positions",
            Reads::OwnPlace => "keys read words, gates read the own place",
            Reads::Places => "keys read words and places",
        };
        let gates = match self.gates {
            Gates::Shared => "all tokens share their units",
            Gates::Word => "units per word",
            Gates::Place => "units per place",
            Gates::WordPlace => "units per word and place",
        };
        let mask = match self.mask {
            Mask::None => "no mask",
            Mask::Causal => "causal mask",
            _ => "the mask given",
        };
        write!(f, "{mask}, {start}, {reads}, {gates}")
    }
}

/// An architecture that was considered.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// What it is.
    pub architecture: Architecture,
    /// Tokens that no weights of it get right.
    pub impossible: usize,
    /// Hidden units that were found to be enough; none where it was dropped because it leaves more tokens impossible than others.
    pub units: Option<usize>,
}
