//! Vectors for words, fixed before any label is looked at: they depend on the seed and the word list alone.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::arithmetic::matrix::Matrix;
use crate::data::Vocabulary;
use crate::data::far_codes;
use crate::error::{Error, Location, Result};

/// Where the vectors of words come from.
///
/// ```
/// use monolayer::{Embedding, Vocabulary};
///
/// let mut words = Vocabulary::default();
/// words.add("May");
/// let codes = "sign:8".parse::<Embedding>()?.codes(&words, 0)?;
/// assert!(codes.row(0).iter().all(|x| x.abs() == 1.0));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Embedding {
    /// A coordinate of its own for each word.
    OneHot,
    /// Entries +1 and -1.
    Sign(usize),
    /// Entries +1 and -1, 32 or 64 of them, any two vectors far apart ([`far_codes`]).
    Far(usize),
    /// Standard normal entries, rounded to single precision so that every model holds them exactly.
    Random(usize),
    /// A text file: a word and its numbers per line, separated by spaces.
    File(PathBuf),
}

impl FromStr for Embedding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let dimension = |d: &str| {
            d.parse().ok().filter(|&d| d > 0).ok_or_else(|| {
                Error::setting(format!("{d:?} is not a dimension"), "write a whole number above 0, as in sign:64")
            })
        };
        match text.split_once(':') {
            None if text == "one-hot" => Ok(Self::OneHot),
            Some(("sign", d)) => dimension(d).map(Self::Sign),
            Some(("far", d)) => dimension(d).map(Self::Far),
            Some(("random", d)) => dimension(d).map(Self::Random),
            _ => Ok(Self::File(text.into())),
        }
    }
}

impl Embedding {
    /// One vector per word, all different.
    pub fn codes(&self, words: &Vocabulary, seed: u64) -> Result<Matrix<f64>> {
        match self {
            Self::OneHot => Ok(Matrix::from_fn(words.len(), words.len(), |word, i| if word == i { 1.0 } else { 0.0 })),
            Self::Sign(d) => distinct(words, *d, |word, attempt| signs(*d, seed, word, attempt)),
            Self::Far(d) => far_codes::codes(*d, words.len(), seed),
            Self::Random(d) => distinct(words, *d, |word, attempt| normals(*d, seed, word, attempt)),
            Self::File(path) => read(path, words),
        }
    }
}

/// One vector per word; a word whose vector is taken draws again.
fn distinct(words: &Vocabulary, d: usize, draw: impl Fn(&str, u32) -> Vec<f64>) -> Result<Matrix<f64>> {
    /// So many draws fail only where there are hardly more codes than words.
    const ATTEMPTS: u32 = 1000;
    let mut taken = HashSet::new();
    let mut data = Vec::with_capacity(words.len() * d);
    for word in words.names() {
        let free = |code: &Vec<f64>| taken.insert(code.iter().map(|x| x.to_bits()).collect::<Vec<u64>>());
        let code = (0..ATTEMPTS).map(|attempt| draw(word, attempt)).find(free).ok_or_else(|| {
            Error::too_large(
                format!("{} words are too many for different codes of dimension {d}", words.len()),
                "use a larger dimension",
            )
        })?;
        data.extend(code);
    }
    Ok(Matrix::new(words.len(), d, data))
}

/// The hash that a word's code is drawn from.
fn hasher(kind: &str, seed: u64, word: &str, attempt: u32) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new_derive_key(kind);
    hasher.update(&seed.to_le_bytes()).update(&attempt.to_le_bytes()).update(word.as_bytes());
    hasher
}

fn signs(d: usize, seed: u64, word: &str, attempt: u32) -> Vec<f64> {
    let mut bytes = vec![0; d.div_ceil(8)];
    hasher("monolayer sign codes", seed, word, attempt).finalize_xof().fill(&mut bytes);
    (0..d).map(|i| if bytes[i / 8] >> (i % 8) & 1 == 1 { 1.0 } else { -1.0 }).collect()
}

fn normals(d: usize, seed: u64, word: &str, attempt: u32) -> Vec<f64> {
    let seed = hasher("monolayer normal codes", seed, word, attempt).finalize();
    let mut rng = ChaCha8Rng::from_seed(*seed.as_bytes());
    (0..d).map(|_| Distribution::<f64>::sample(&StandardNormal, &mut rng)).map(|x| f64::from(x as f32)).collect()
}

/// The vectors of the words in a file of words and numbers; a first line of two whole numbers, as word2vec writes it, is
/// skipped. Every word of the list must be there.
fn read(path: &Path, words: &Vocabulary) -> Result<Matrix<f64>> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let name = path.display().to_string();
    let mut rows: HashMap<u32, Vec<f64>> = HashMap::new();
    let mut d = None;
    for (i, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|e| Error::io(path, e))?;
        let mut fields = line.split_ascii_whitespace();
        let Some(word) = fields.next() else { continue };
        let fields: Vec<&str> = fields.collect();
        if i == 0 && fields.len() == 1 && word.parse::<u64>().is_ok() {
            continue;
        }
        let bad = |what: String| {
            let location = Location { file: name.clone(), line: Some(i + 1), ..Location::default() };
            Error::data(location, what, "an embedding has a word and its numbers per line, as many on each")
        };
        if *d.get_or_insert(fields.len()) != fields.len() || fields.is_empty() {
            return Err(bad(format!("{} numbers where there should be {}", fields.len(), d.unwrap_or(1).max(1))));
        }
        let Some(id) = words.get(word) else { continue };
        let number = |text: &str| {
            let x = text.parse::<f64>().ok().filter(|x| x.is_finite());
            x.ok_or_else(|| bad(format!("{text:?} is not a finite number")))
        };
        rows.insert(id, fields.into_iter().map(number).collect::<Result<_>>()?);
    }
    let d = d.unwrap_or(0);
    let mut data = Vec::with_capacity(words.len() * d);
    for (id, word) in words.names().iter().enumerate() {
        let row = rows.get(&(id as u32)).ok_or_else(|| {
            let location = Location { file: name.clone(), ..Location::default() };
            Error::data(location, format!("no vector for the word {word:?}"), "add one, or use sign:D or random:D")
        })?;
        data.extend(row);
    }
    Ok(Matrix::new(words.len(), d, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn words(list: &[&str]) -> Vocabulary {
        let mut words = Vocabulary::default();
        list.iter().for_each(|word| {
            words.add(word);
        });
        words
    }

    #[test]
    fn codes_depend_on_the_word_and_the_seed() {
        for embedding in [Embedding::Sign(64), Embedding::Random(8)] {
            let a = embedding.codes(&words(&["x", "y"]), 1).unwrap();
            let b = embedding.codes(&words(&["y", "z"]), 1).unwrap();
            let c = embedding.codes(&words(&["y"]), 2).unwrap();
            assert_eq!(a.row(1), b.row(0));
            assert_ne!(a.row(1), c.row(0));
        }
    }

    #[test]
    fn codes_differ_even_where_there_are_just_enough() {
        let codes = Embedding::Sign(2).codes(&words(&["a", "b", "c", "d"]), 0).unwrap();
        assert_eq!(crate::data::context::distinct_rows(2, &codes.data).1.len(), 4);
        let error = Embedding::Sign(1).codes(&words(&["a", "b", "c"]), 0).unwrap_err().to_string();
        assert!(error.contains("3 words are too many"), "{error}");
    }

    #[test]
    fn files() {
        let read = |text: &str, list: &[&str]| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            Embedding::File(file.path().into()).codes(&words(list), 0).map_err(|e| e.to_string())
        };
        assert_eq!(read("a 1 2\nb 3 4\nc 5 6\n", &["b", "a"]).unwrap().data, [3.0, 4.0, 1.0, 2.0]);
        assert_eq!(read("2 1\na 7\n", &["a"]).unwrap().data, [7.0]);
        assert!(read("a 1 2\n", &["b"]).unwrap_err().contains("no vector for the word \"b\""));
        assert!(read("a 1 2\nb 3\n", &["a"]).unwrap_err().contains(":2: 1 numbers where there should be 2"));
        assert!(read("a 1 inf\n", &["a"]).unwrap_err().contains(":1: \"inf\" is not a finite number"));
    }

    #[test]
    fn specifications() {
        assert_eq!("sign:64".parse::<Embedding>().unwrap(), Embedding::Sign(64));
        assert_eq!("glove.txt".parse::<Embedding>().unwrap(), Embedding::File("glove.txt".into()));
        assert!("sign:0".parse::<Embedding>().unwrap_err().to_string().contains("not a dimension"));
    }
}
