//! What is trained on: a dataset, or samples of a function, packed for the engine.

use monolayer::arithmetic::kernels::Real;
use monolayer::data::{Dataset, Labels, Tokens as DataTokens, Vocabulary};
use monolayer::model::UNKNOWN;
use monolayer::{Error, Result};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use crate::engine::{Batch, Targets, Tokens};

/// What is trained on.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A dataset, every epoch the same.
    Data(&'a Dataset),
    /// A function, every epoch on new points.
    Function(&'a Function<'a>),
}

/// A function of sequences of `length` vectors of [0, 1]^dim, sampled uniformly.
pub struct Function<'a> {
    /// Its text.
    pub text: String,
    /// The dimension of tokens and outputs.
    pub dim: usize,
    /// The length of sequences.
    pub length: usize,
    /// Sequences of an epoch.
    pub samples: usize,
    /// Its value at a sequence, both row-major `[length, dim]`.
    pub apply: &'a (dyn Fn(&[f64], &mut [f64]) + Sync),
}

impl Source<'_> {
    /// Sequences of an epoch.
    pub fn sequences(&self) -> usize {
        match self {
            Self::Data(data) => data.sequences(),
            Self::Function(function) => function.samples,
        }
    }

    /// Tokens of an epoch.
    pub fn tokens(&self) -> usize {
        match self {
            Self::Data(data) => data.tokens(),
            Self::Function(function) => function.samples * function.length,
        }
    }
}

/// A random generator that an epoch (from 1) has for itself, so that a run can go on from any epoch.
fn epoch_rng(seed: u64, epoch: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(epoch as u64);
    rng
}

/// The sequences of an epoch (from 1) in random order.
pub(crate) fn order(seed: u64, epoch: usize, sequences: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..sequences as u32).collect();
    order.shuffle(&mut epoch_rng(seed, epoch));
    order
}

/// Sequences one after another, as the engine takes them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Packed<R> {
    pub offsets: Vec<usize>,
    /// Word ids, or else vectors.
    pub words: Vec<u32>,
    pub vectors: Vec<R>,
    /// Label ids, none where any label will do, or else wanted outputs.
    pub labels: Vec<Option<u32>>,
    pub outputs: Vec<R>,
}

impl<R: Real> Packed<R> {
    pub fn sequences(&self) -> usize {
        self.offsets.len() - 1
    }

    pub fn tokens(&self) -> usize {
        self.offsets[self.sequences()]
    }

    /// Tokens that are not free.
    pub fn labeled(&self) -> usize {
        self.batch().labeled()
    }

    /// Sequences all of whose labeled tokens have the label that was found.
    pub fn sequences_right(&self, found: &[u32]) -> usize {
        let right = |t: usize| self.labels[t].is_none_or(|label| label == found[t]);
        self.offsets.windows(2).filter(|w| (w[0]..w[1]).all(right)).count()
    }

    pub fn longest(&self) -> usize {
        self.offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0)
    }

    pub fn batch(&self) -> Batch<'_, R> {
        Batch {
            offsets: &self.offsets,
            tokens: if self.vectors.is_empty() { Tokens::Words(&self.words) } else { Tokens::Vectors(&self.vectors) },
            targets: if self.outputs.is_empty() {
                Targets::Labels(&self.labels)
            } else {
                Targets::Vectors(&self.outputs)
            },
        }
    }

    /// Orders the sequences of a batch so that both halves of it have as many tokens, or almost: the longest first, each to the half
    /// with fewer tokens so far. A batch is a sum over its sequences, in whatever order.
    pub fn balance(&self, sequences: &mut [u32]) {
        let length = |i: u32| self.offsets[i as usize + 1] - self.offsets[i as usize];
        sequences.sort_unstable_by_key(|&i| (std::cmp::Reverse(length(i)), i));
        let (mut halves, mut tokens) = ([Vec::new(), Vec::new()], [0, 0]);
        for &i in &*sequences {
            let half = usize::from(tokens[1] < tokens[0]);
            halves[half].push(i);
            tokens[half] += length(i);
        }
        sequences.copy_from_slice(&halves.concat());
    }

    /// Puts some of the sequences into `batch`, in the given order.
    pub fn gather(&self, sequences: &[u32], d: usize, batch: &mut Self) {
        fn add<T: Copy>(from: &[T], width: usize, range: &std::ops::Range<usize>, to: &mut Vec<T>) {
            if !from.is_empty() {
                to.extend_from_slice(&from[range.start * width..range.end * width]);
            }
        }
        batch.offsets.clear();
        batch.offsets.push(0);
        batch.words.clear();
        batch.vectors.clear();
        batch.labels.clear();
        batch.outputs.clear();
        for &i in sequences {
            let range = self.offsets[i as usize]..self.offsets[i as usize + 1];
            batch.offsets.push(batch.offsets[batch.offsets.len() - 1] + range.len());
            add(&self.words, 1, &range, &mut batch.words);
            add(&self.vectors, d, &range, &mut batch.vectors);
            add(&self.labels, 1, &range, &mut batch.labels);
            add(&self.outputs, d, &range, &mut batch.outputs);
        }
    }
}

/// Names of words and labels, and what becomes of words that the data has only once.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Names {
    /// The words of the data, then `<unk>`.
    pub words: Option<Vocabulary>,
    pub labels: Option<Vocabulary>,
    /// The words that the data has once.
    pub once: Vec<bool>,
    /// Whether `<unk>` is a word of the data like any other.
    pub unknown_in_data: bool,
}

/// Packs the data to train on.
pub(crate) fn pack<R: Real>(source: Source, seed: u64) -> Result<(Packed<R>, Names)> {
    let data = match source {
        Source::Data(data) => data,
        // Stream 0 is no epoch's: the points that are evaluated are never trained on.
        Source::Function(function) => {
            let packed: Packed<R> = function.sample(seed, 0);
            if let Some(i) = packed.outputs.iter().position(|x| !x.finite()) {
                let width = function.length * function.dim;
                let point = &packed.vectors[i / width * width..][..width];
                let what = format!("{}: no finite value at {point:?}", function.text);
                return Err(Error::undefined(what, "train on a function that is finite on the unit cube"));
            }
            return Ok((packed, Names::default()));
        }
    };
    let mut names = Names::default();
    let mut packed = Packed { offsets: data.offsets.clone(), ..Packed::default() };
    match &data.tokens {
        DataTokens::Words { word_ids: ids, vocabulary } => {
            let mut words = vocabulary.clone();
            names.unknown_in_data = words.get(UNKNOWN).is_some();
            words.add(UNKNOWN);
            let mut counts = vec![0_u32; words.len()];
            ids.iter().for_each(|&id| counts[id as usize] += 1);
            names.once = counts.iter().map(|&count| count == 1).collect();
            names.words = Some(words);
            packed.words.clone_from(ids);
        }
        DataTokens::Vectors { data: vectors, .. } => packed.vectors = numbers(vectors),
    }
    match &data.labels {
        Labels::None => {
            return Err(Error::data(data.location(0), "no labels", "training needs a label for every token"));
        }
        Labels::Classes { label_ids: ids, names: labels } => {
            if ids.iter().all(Option::is_none) {
                let help = "give some tokens a label";
                return Err(Error::data(data.location(0), "any label will do for every token", help));
            }
            names.labels = Some(labels.clone());
            packed.labels.clone_from(ids);
        }
        Labels::Vectors { d: k, .. } if matches!(&data.tokens, DataTokens::Vectors { d, .. } if d != k) => {
            let what =
                format!("labels of dimension {k} for tokens of another: trained outputs have that of the tokens");
            return Err(Error::data(data.location(0), what, "append zeros to the shorter ones, or use memorize"));
        }
        Labels::Vectors { data: outputs, .. } => packed.outputs = numbers(outputs),
    }
    Ok((packed, names))
}

fn numbers<R: Real>(list: &[f64]) -> Vec<R> {
    list.iter().map(|&x| R::from_f64(x)).collect()
}

/// The dimension of the source's vectors, if tokens or labels are vectors.
pub(crate) fn dimension(source: Source) -> Option<usize> {
    match source {
        Source::Function(function) => Some(function.dim),
        Source::Data(data) => match (&data.tokens, &data.labels) {
            (DataTokens::Vectors { d, .. }, _) | (_, Labels::Vectors { d, .. }) => Some(*d),
            _ => None,
        },
    }
}

impl Names {
    /// A dataset in the ids of these names: unknown words are `<unk>`, unknown labels are the first. Says how many tokens
    /// have unknown words and labels.
    pub fn translate<R: Real>(&self, data: &Dataset, d: usize) -> Result<(Packed<R>, [usize; 2])> {
        let mut packed = Packed { offsets: data.offsets.clone(), ..Packed::default() };
        let mut unknown = [0; 2];
        let other = |what: &str| {
            let help = "the dev set must be of the kind of the training set";
            Err(Error::data(data.location(0), format!("{what}, unlike the data that is trained on"), help))
        };
        let known = |own: &Vocabulary, known: &Vocabulary| -> Vec<Option<u32>> {
            own.names().iter().map(|name| known.get(name)).collect()
        };
        match (&data.tokens, &self.words) {
            (DataTokens::Words { word_ids: ids, vocabulary }, Some(words)) => {
                let (of, otherwise) = (known(vocabulary, words), words.get(UNKNOWN).expect("it was added"));
                unknown[0] = ids.iter().filter(|&&id| of[id as usize].is_none()).count();
                packed.words = ids.iter().map(|&id| of[id as usize].unwrap_or(otherwise)).collect();
            }
            (DataTokens::Vectors { d: own, data: vectors }, None) if *own == d => packed.vectors = numbers(vectors),
            (DataTokens::Vectors { d, .. }, _) => return other(&format!("vectors of dimension {d} as tokens")),
            (DataTokens::Words { .. }, None) => return other("words as tokens"),
        }
        match (&data.labels, &self.labels) {
            (Labels::Classes { label_ids, names }, Some(labels)) => {
                let of = known(names, labels);
                unknown[1] = label_ids.iter().flatten().filter(|&&id| of[id as usize].is_none()).count();
                packed.labels = label_ids.iter().map(|id| id.map(|id| of[id as usize].unwrap_or(0))).collect();
            }
            (Labels::Vectors { d: own, data: outputs }, None) if *own == d => packed.outputs = numbers(outputs),
            (Labels::Classes { .. }, None) => return other("classes as labels"),
            (Labels::Vectors { .. }, _) => return other("vectors as labels"),
            (Labels::None, _) => return other("no labels"),
        }
        Ok((packed, unknown))
    }

    /// The data of an epoch, where words that the data has once become `<unk>` with some probability.
    pub fn drop_words<R: Real>(&self, packed: &Packed<R>, probability: f64, seed: u64, epoch: usize) -> Packed<R> {
        let unknown = self.words.as_ref().and_then(|words| words.get(UNKNOWN)).unwrap_or(0);
        let mut rng = epoch_rng(seed ^ u64::from_le_bytes(*b"dropwrds"), epoch);
        let word = |&id: &u32| {
            let drop = self.once[id as usize] && rng.random_bool(probability);
            if drop { unknown } else { id }
        };
        Packed { words: packed.words.iter().map(word).collect(), ..packed.clone() }
    }

    /// The row for unknown words where no training saw it: the mean of the rows of words that the data has once, or of all.
    pub fn set_unknown_row<R: Real>(&self, embedding: &mut [R], d: usize) {
        let Some(words) = &self.words else { return };
        let unknown = words.get(UNKNOWN).expect("it was added") as usize;
        let any = self.once.iter().any(|&once| once);
        let rows: Vec<usize> = (0..words.len()).filter(|&i| i != unknown && (!any || self.once[i])).collect();
        for j in 0..d {
            let sum: f64 = rows.iter().map(|&i| embedding[i * d + j].to_f64()).sum();
            embedding[unknown * d + j] = R::from_f64(sum / rows.len().max(1) as f64);
        }
    }
}

impl Function<'_> {
    /// The points of an epoch.
    pub(crate) fn sample<R: Real>(&self, seed: u64, epoch: usize) -> Packed<R> {
        let mut rng = epoch_rng(seed ^ u64::from_le_bytes(*b"function"), epoch);
        let width = self.length * self.dim;
        let (mut point, mut value) = (vec![0.0; width], vec![0.0; width]);
        let mut packed = Packed { offsets: (0..=self.samples).map(|i| i * self.length).collect(), ..Packed::default() };
        for _ in 0..self.samples {
            point.fill_with(|| rng.random());
            (self.apply)(&point, &mut value);
            packed.vectors.extend(point.iter().map(|&x| R::from_f64(x)));
            packed.outputs.extend(value.iter().map(|&x| R::from_f64(x)));
        }
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use monolayer::data::Format;

    fn read(text: &str) -> Dataset {
        Dataset::read("test", Format::Conll, text.as_bytes()).unwrap()
    }

    #[test]
    fn an_epochs_order_needs_no_other_epoch() {
        let list = order(7, 3, 50);
        assert_eq!(list, order(7, 3, 50));
        assert_ne!(list, order(7, 4, 50));
        assert_ne!(list, order(8, 3, 50));
        let mut sorted = list;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<u32>>());
    }

    #[test]
    fn gathered_sequences_keep_their_order() {
        let data = read("a X\nb Y\n\nc X\n\nd Y\ne X\n");
        let (packed, _) = pack::<f32>(Source::Data(&data), 0).unwrap();
        let mut batch = Packed::default();
        packed.gather(&[2, 0], 1, &mut batch);
        assert_eq!(
            (batch.offsets, batch.words, batch.labels),
            (vec![0, 2, 4], vec![3, 4, 0, 1], [1, 0, 0, 1].map(Some).to_vec())
        );
    }

    #[test]
    fn a_batch_has_two_halves() {
        let lengths = [7, 1, 30, 4, 4, 12, 1, 9];
        let offsets = std::iter::once(0)
            .chain(lengths.iter().scan(0, |end, n| {
                *end += n;
                Some(*end)
            }))
            .collect();
        let packed = Packed::<f32> { offsets, ..Packed::default() };
        let mut sequences: Vec<u32> = (0..8).collect();
        packed.balance(&mut sequences);
        assert_eq!(sequences, [2, 4, 5, 7, 0, 3, 1, 6]);
        sequences.sort_unstable();
        assert_eq!(sequences, (0..8).collect::<Vec<u32>>());
    }

    #[test]
    fn unknown_words_and_labels_are_counted() {
        let (_, names) = pack::<f32>(Source::Data(&read("a X\nb Y\n")), 0).unwrap();
        let (packed, unknown) = names.translate::<f32>(&read("b Y\nnew X\na Z\nnew Y\na _\n"), 4).unwrap();
        assert_eq!(unknown, [2, 1]);
        assert_eq!((packed.labeled(), packed.sequences_right(&[1, 0, 0, 1, 0])), (4, 1));
        let labels = vec![Some(1), Some(0), Some(0), Some(1), None];
        assert_eq!((packed.words, packed.labels), (vec![1, 2, 0, 2, 0], labels));
        let error = pack::<f32>(Source::Data(&read("a _\n")), 0).unwrap_err().to_string();
        assert!(error.contains("any label will do for every token"), "{error}");
    }

    #[test]
    fn the_unknown_row_is_the_mean_of_words_seen_once() {
        let (packed, names) = pack::<f64>(Source::Data(&read("a X\na X\nb Y\nc Y\n")), 0).unwrap();
        let mut rows = vec![9.0, 9.0, 1.0, 2.0, 3.0, 6.0, 0.0, 0.0];
        names.set_unknown_row(&mut rows, 2);
        assert_eq!(rows[6..], [2.0, 4.0]);
        // Only words seen once are ever dropped.
        let dropped = names.drop_words(&packed, 0.99, 1, 1);
        assert_eq!(dropped.words[..2], [0, 0]);
        assert!(dropped.words[2..].contains(&3));
    }

    #[test]
    fn functions_are_sampled_anew_each_epoch() {
        let twice = |x: &[f64], y: &mut [f64]| y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
        let function = Function { text: "2 x1".into(), dim: 1, length: 3, samples: 2, apply: &twice };
        let (first, second) = (function.sample::<f64>(0, 1), function.sample::<f64>(0, 2));
        assert_ne!(first, second);
        assert_eq!((first.sequences(), first.tokens(), first.longest()), (2, 6, 3));
        assert!(first.vectors.iter().zip(&first.outputs).all(|(x, y)| *y == 2.0 * x && (0.0..1.0).contains(x)));
        let undefined = Function { apply: &|_, y| y.fill(f64::NAN), ..function };
        assert!(pack::<f64>(Source::Function(&undefined), 0).unwrap_err().to_string().contains("no finite value"));
    }
}
