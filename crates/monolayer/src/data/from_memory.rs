//! Datasets from what a program has in memory.

use super::{ClassName, Dataset, Labels, Orderings, Tokens, Vocabulary, Written};
use crate::error::{Error, Location, Result};

/// What errors call such a dataset.
const NAME: &str = "<memory>";

impl Dataset {
    /// Sequences of words, with a class for each word, or none where any label will do.
    ///
    /// ```
    /// use monolayer::Dataset;
    ///
    /// let data = Dataset::from_sequences(&[["May", "sails"], ["in", "May"]], &[["PER", "O"], ["O", "DATE"]])?;
    /// assert_eq!((data.sequences(), data.tokens()), (2, 4));
    /// assert_eq!((data.word(3), data.label(3)), (Some("May"), Some("DATE")));
    /// # Ok::<(), monolayer::Error>(())
    /// ```
    pub fn from_sequences<T, W, L, C>(tokens: &[T], labels: &[L]) -> Result<Self>
    where
        T: AsRef<[W]>,
        W: AsRef<str>,
        L: AsRef<[C]>,
        C: ClassName,
    {
        let offsets = offsets(tokens)?;
        check_lengths(&offsets, labels)?;
        let (ids, vocabulary) = numbered(tokens);
        let (label_ids, names) = classes(labels);
        let labels = Labels::Classes { label_ids, names };
        Ok(in_memory(Tokens::Words { word_ids: ids, vocabulary }, labels, offsets))
    }

    /// Sequences of vectors, with an output vector for each, of the same dimension or of another.
    ///
    /// ```
    /// use monolayer::Dataset;
    ///
    /// let tokens = vec![vec![vec![1.0, 0.0], vec![0.0, 1.0]], vec![vec![1.0, 1.0]]];
    /// let data = Dataset::from_vectors(&tokens, &tokens)?;
    /// assert_eq!((data.sequences(), data.tokens()), (2, 3));
    /// # Ok::<(), monolayer::Error>(())
    /// ```
    pub fn from_vectors<T, V, L, Y>(tokens: &[T], labels: &[L]) -> Result<Self>
    where
        T: AsRef<[V]>,
        V: AsRef<[f64]>,
        L: AsRef<[Y]>,
        Y: AsRef<[f64]>,
    {
        let offsets = offsets(tokens)?;
        check_lengths(&offsets, labels)?;
        let (d, data) = packed(tokens, &offsets)?;
        let (k, outputs) = packed(labels, &offsets)?;
        Ok(in_memory(Tokens::Vectors { d, data }, Labels::Vectors { d: k, data: outputs }, offsets))
    }

    /// Sequences of vectors, with a class for each, or none where any label will do.
    ///
    /// ```
    /// use monolayer::Dataset;
    ///
    /// let data = Dataset::from_vectors_with_classes(&[[[0.5], [2.0]]], &[["small", "large"]])?;
    /// assert_eq!(data.label(1), Some("large"));
    /// # Ok::<(), monolayer::Error>(())
    /// ```
    pub fn from_vectors_with_classes<T, V, L, C>(tokens: &[T], labels: &[L]) -> Result<Self>
    where
        T: AsRef<[V]>,
        V: AsRef<[f64]>,
        L: AsRef<[C]>,
        C: ClassName,
    {
        let offsets = offsets(tokens)?;
        check_lengths(&offsets, labels)?;
        let (d, data) = packed(tokens, &offsets)?;
        let (label_ids, names) = classes(labels);
        Ok(in_memory(Tokens::Vectors { d, data }, Labels::Classes { label_ids, names }, offsets))
    }
}

fn in_memory(tokens: Tokens, labels: Labels, offsets: Vec<usize>) -> Dataset {
    Dataset {
        name: NAME.to_owned(),
        tokens,
        labels,
        offsets,
        lines: Vec::new(),
        warnings: Vec::new(),
        written: Written::default(),
        orderings: Orderings::Given,
    }
}

/// The error for a sequence, from 0.
fn bad_sequence(i: usize, what: impl Into<String>, help: &str) -> Error {
    Error::data(Location { sequence: Some(i + 1), ..Location::file(NAME) }, what, help)
}

/// Where sequences start. There must be some, and none may be empty.
fn offsets<T: AsRef<[W]>, W>(tokens: &[T]) -> Result<Vec<usize>> {
    if tokens.is_empty() {
        return Err(Error::data(Location::file(NAME), "no sequences", "give at least one"));
    }
    let mut offsets = vec![0];
    for (i, sequence) in tokens.iter().enumerate() {
        let length = sequence.as_ref().len();
        if length == 0 {
            return Err(bad_sequence(i, "a sequence without tokens", "leave it out"));
        }
        offsets.push(offsets[i] + length);
    }
    Ok(offsets)
}

/// There must be a label for every token.
fn check_lengths<L: AsRef<[C]>, C>(offsets: &[usize], labels: &[L]) -> Result<()> {
    let help = "give a label for every token";
    if labels.len() + 1 != offsets.len() {
        let what = format!("{} sequences with labels of {}", offsets.len() - 1, labels.len());
        return Err(Error::data(Location::file(NAME), what, help));
    }
    for (i, (window, labels)) in offsets.windows(2).zip(labels).enumerate() {
        let (tokens, labels) = (window[1] - window[0], labels.as_ref().len());
        if tokens != labels {
            return Err(bad_sequence(i, format!("{tokens} tokens with {labels} labels"), help));
        }
    }
    Ok(())
}

/// The names of all sequences, numbered.
fn numbered<S: AsRef<[W]>, W: AsRef<str>>(sequences: &[S]) -> (Vec<u32>, Vocabulary) {
    let mut names = Vocabulary::default();
    let all = sequences.iter().flat_map(AsRef::as_ref);
    let ids = all.map(|name| names.add(name.as_ref())).collect();
    (ids, names)
}

/// The classes of all sequences, numbered.
fn classes<S: AsRef<[C]>, C: ClassName>(sequences: &[S]) -> (Vec<Option<u32>>, Vocabulary) {
    let mut names = Vocabulary::default();
    let all = sequences.iter().flat_map(AsRef::as_ref);
    let ids = all.map(|class| class.class_name().map(|name| names.add(name))).collect();
    (ids, names)
}

/// The vectors of all sequences, row-major, and their dimension.
fn packed<S: AsRef<[V]>, V: AsRef<[f64]>>(sequences: &[S], offsets: &[usize]) -> Result<(usize, Vec<f64>)> {
    let d = sequences[0].as_ref()[0].as_ref().len();
    let mut data = Vec::with_capacity(d * offsets[offsets.len() - 1]);
    for (i, sequence) in sequences.iter().enumerate() {
        for (place, vector) in sequence.as_ref().iter().enumerate() {
            let vector = vector.as_ref();
            let location = || Location { sequence: Some(i + 1), token: Some(place + 1), ..Location::file(NAME) };
            if vector.len() != d || d == 0 {
                let what = format!("a vector of dimension {}", vector.len());
                return Err(Error::data(location(), what, format!("give vectors of dimension {}", d.max(1))));
            }
            if let Some(x) = vector.iter().find(|x| !x.is_finite()) {
                return Err(Error::data(location(), format!("the number {x}"), "give finite numbers"));
            }
            // Negative zero becomes zero, as in files.
            data.extend(vector.iter().map(|x| x + 0.0));
        }
    }
    Ok((d, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Format;

    #[test]
    fn the_same_as_from_a_file() {
        let words = Dataset::from_sequences(&[["a", "b"]], &[["X", "Y"]]).unwrap();
        let line = br#"{"tokens": ["a", "b"], "labels": ["X", "Y"]}"#;
        let file = Dataset::read("f", Format::JsonLines, &line[..]).unwrap();
        assert_eq!((words.hash(), &words.tokens), (file.hash(), &file.tokens));
        let free = Dataset::from_sequences(&[["a", "b"]], &[[None, Some("Y")]]).unwrap();
        let line = br#"{"tokens": ["a", "b"], "labels": [null, "Y"]}"#;
        let file = Dataset::read("f", Format::JsonLines, &line[..]).unwrap();
        assert_eq!((free.hash(), &free.labels), (file.hash(), &file.labels));
        let vectors = Dataset::from_vectors(&[[[1.0, -0.0]]], &[[[0.5, 2.0]]]).unwrap();
        let line = br#"{"tokens": [[1, 0]], "labels": [[0.5, 2]]}"#;
        let file = Dataset::read("f", Format::JsonLines, &line[..]).unwrap();
        assert_eq!((vectors.hash(), &vectors.tokens, &vectors.labels), (file.hash(), &file.tokens, &file.labels));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let none: [[&str; 1]; 0] = [];
        let says = |result: Result<Dataset>, what: &str| {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        says(Dataset::from_sequences(&none, &none), "no sequences");
        says(Dataset::from_sequences(&[vec!["a"], vec![]], &[vec!["X"], vec![]]), "(sequence 2): a sequence without");
        says(Dataset::from_sequences(&[["a", "b"]], &[["X"]]), "(sequence 1): 2 tokens with 1 labels");
        says(Dataset::from_sequences(&[["a"]], &none), "1 sequences with labels of 0");
        says(Dataset::from_vectors(&[[vec![1.0], vec![]]], &[[vec![1.0], vec![1.0]]]), "(sequence 1, token 2)");
        says(Dataset::from_vectors(&[[[1.0], [2.0]]], &[[vec![1.0, 2.0], vec![1.0]]]), "dimension 1");
        assert!(Dataset::from_vectors(&[[[1.0]]], &[[[1.0, 2.0]]]).is_ok());
        says(Dataset::from_vectors_with_classes(&[[[f64::NAN]]], &[["X"]]), "NaN");
    }
}
