//! `--mask`: which tokens a token attends to.

use std::path::PathBuf;
use std::str::FromStr;

use monolayer::model::mask_file;
use monolayer::{Mask, Result};

/// The help of `--mask`.
pub const HELP: &str = "Which tokens a token attends to: none (all of its sequence), causal (itself and those before it), \
prefix:K (the first K, itself and those before it), band:B,A (B before it, A after it, and itself), or a file with a matrix \
of zeros and ones (.safetensors, .npy, or text with a row per line), 1 where the token of the row sees that of the column";

/// A mask as it stands on the command line.
#[derive(Debug, Clone, PartialEq)]
pub enum MaskArg {
    /// One that needs no file.
    Plain(Mask),
    /// A matrix in a file.
    File(PathBuf),
}

impl MaskArg {
    /// The mask; reads its file.
    pub fn open(&self) -> Result<Mask> {
        match self {
            Self::Plain(mask) => Ok(mask.clone()),
            Self::File(path) => mask_file::open(path),
        }
    }
}

impl FromStr for MaskArg {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let size = |text: &str| {
            let number = text.parse::<u32>().map_err(|_| format!("{text:?} is not a number of tokens"))?;
            Ok::<usize, String>(number as usize)
        };
        let mask = match (text, text.split_once(':')) {
            ("none", _) => Mask::None,
            ("causal", _) => Mask::Causal,
            (_, Some(("prefix", k))) => Mask::Prefix(size(k)?),
            (_, Some(("band", ends))) => {
                let (before, after) = ends.split_once(',').ok_or("write band:B,A, B tokens before and A after")?;
                Mask::Band(size(before)?, size(after)?)
            }
            // Every file has an ending; a word without one is a slip.
            _ if text.contains(['.', '/', '\\']) => return Ok(Self::File(text.into())),
            _ => return Err("write none, causal, prefix:K, band:B,A or the name of a file, with its ending".to_owned()),
        };
        Ok(Self::Plain(mask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read() {
        for (text, mask) in [
            ("none", Mask::None),
            ("causal", Mask::Causal),
            ("prefix:0", Mask::Prefix(0)),
            ("band:2,1", Mask::Band(2, 1)),
        ] {
            assert_eq!(text.parse(), Ok(MaskArg::Plain(mask)));
        }
        assert_eq!("a/prefix.txt".parse(), Ok(MaskArg::File("a/prefix.txt".into())));
        for text in
            ["", "all", "prefix", "prefix:", "prefix:-1", "prefix:1.5", "band:1", "band:1,x", "band:1,2,3", "Causal"]
        {
            assert!(text.parse::<MaskArg>().is_err(), "{text}");
        }
    }
}
