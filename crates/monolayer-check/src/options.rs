//! The options of a check.

use std::path::PathBuf;

use monolayer_core::Format as Binary;
use monolayer_core::read::Limits;
use monolayer_core::read::certificate::Arithmetic;

/// The arithmetic that labels must hold in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Every covered program in binary32.
    F32,
    /// Every covered program in binary64.
    F64,
    /// Real numbers.
    Real,
}

impl Precision {
    /// Its name in files and options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Real => "real",
        }
    }

    /// The one of a name.
    pub fn of(name: &str) -> Option<Self> {
        [Self::F32, Self::F64, Self::Real].into_iter().find(|precision| precision.name() == name)
    }

    pub(crate) const fn arithmetic(self) -> Arithmetic {
        match self {
            Self::F32 => Some(Binary::F32),
            Self::F64 => Some(Binary::F64),
            Self::Real => None,
        }
    }

    pub(crate) const fn of_arithmetic(arithmetic: Arithmetic) -> Self {
        match arithmetic {
            Some(Binary::F32) => Self::F32,
            Some(Binary::F64) => Self::F64,
            None => Self::Real,
        }
    }
}

/// The kinds of dataset files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Columns, a token per line, a blank line between sequences.
    Conll,
    /// One JSON object per line.
    JsonLines,
    /// A safetensors file with "tokens" and "labels".
    Arrays,
    /// A text, each word labeled with the next.
    Words,
    /// A text, each character labeled with the next.
    Characters,
}

impl Format {
    /// The kind of a file by its ending.
    pub fn of(name: &str) -> Self {
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("jsonl") => Self::JsonLines,
            Some("safetensors") => Self::Arrays,
            _ => Self::Conll,
        }
    }
}

/// Told how many tokens are judged, and of how many.
pub type OnProgress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// How to check.
#[derive(Clone)]
pub struct Options<'a> {
    /// The arithmetic; by default the model's own.
    pub precision: Option<Precision>,
    /// Impossible tokens count like all others.
    pub strict: bool,
    /// Be content with the first refutation. All tokens are judged together, so that none is left out today.
    pub first: bool,
    /// The kind of the dataset file; by default by its ending.
    pub format: Option<Format>,
    /// How near vector outputs must be, in every coordinate; by default what the certificate claims.
    pub tolerance: Option<f64>,
    /// Leave the certificate aside and check the model alone.
    pub ignore_certificate: bool,
    /// The directory of another model: what difference.json says about both is checked.
    pub against: Option<PathBuf>,
    /// The kinds of the certificate's claims to check, and nothing else; by default all claims, and the tokens of the data.
    pub claims: Option<Vec<String>>,
    /// Bits up to which real arithmetic escalates.
    pub bits: usize,
    /// How many findings of each kind to write out.
    pub findings: usize,
    /// Threads; what is found does not depend on it.
    pub threads: usize,
    /// How much the readers take.
    pub limits: Limits,
    /// Where to write the enclosures of every token, for others to check.
    pub witness: Option<PathBuf>,
    /// Told of the progress, several times a second.
    pub on_progress: Option<OnProgress<'a>>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            precision: None,
            strict: false,
            first: false,
            format: None,
            tolerance: None,
            ignore_certificate: false,
            against: None,
            claims: None,
            bits: 8192,
            findings: 20,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            limits: Limits::default(),
            witness: None,
            on_progress: None,
        }
    }
}

/// Sets a limit as `--limit` has it: `NAME=N`, `NAME` a field of [`Limits`].
pub fn set_limit(limits: &mut Limits, text: &str) -> Result<(), String> {
    let known = "bytes, json, dense, labels, claims, changes, tokens, length, pairs";
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("{text:?} is not NAME=N; NAME is one of {known}"))?;
    let field = match name {
        "bytes" => &mut limits.bytes,
        "json" => &mut limits.json,
        "dense" => &mut limits.dense,
        "labels" => &mut limits.labels,
        "claims" => &mut limits.claims,
        "changes" => &mut limits.changes,
        "tokens" => &mut limits.tokens,
        "length" => &mut limits.length,
        "pairs" => &mut limits.pairs,
        _ => return Err(format!("there is no limit {name:?}: they are {known}")),
    };
    *field = value.parse().map_err(|_| format!("{value:?} is not a number of things"))?;
    Ok(())
}
