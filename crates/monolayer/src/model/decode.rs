//! One token after another through a causal model, and the text that comes of feeding it its own labels.
//!
//! A step costs a score, an exponential and two sums over the keys seen so far, O(n), and the feed-forward blocks once; keys and
//! values are kept. Certificates speak of programs of a certain kind (TRUST.md): keys, queries and values projected, their
//! products as scores, the largest score subtracted, exponentials, sums in any order, everything in the model's precision. A
//! step is such a program: nothing is carried from one query's softmax to the next, whose weights are others.

use std::time::{Duration, Instant};

use crate::arithmetic::arg_max;
use crate::arithmetic::kernels::{self, Real};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::data::Vocabulary;
use crate::error::{Error, Result};
use crate::model::mask_file::MaskConfig;
use crate::model::sparse::Sparse;
use crate::model::{AnyModel, Model, UNKNOWN, Words};
use crate::paper::attention::{Attention, AttentionHead, AttentionKind};
use crate::paper::feed_forward::FeedForward;

/// With so many hidden units, only those are evaluated that can fire for a word.
const MANY_UNITS: usize = 1024;
/// So many words are looked at together for the units that can fire for them.
const NEXT_WORDS: usize = 64;

/// Matrices with so many entries are worth several threads.
const LARGE: usize = 1 << 17;

/// A sequence that a model is being fed.
///
/// ```
/// use monolayer::data::Split;
/// use monolayer::{AnyModel, Dataset, Memorizer};
/// use monolayer::model::TokenFeed;
///
/// let data = Dataset::from_text("to be or not to be", Split::Word)?;
/// let compiled = Memorizer::new().text(Split::Word).compile(&data)?;
/// let mut feed = TokenFeed::new(compiled.model())?;
/// let labels: Vec<&str> = ["to", "be", "or"].map(|word| feed.step(word)).into_iter().collect::<Result<_, _>>()?;
/// assert_eq!(labels, ["be", "or", "not"]);
/// # Ok::<(), monolayer::Error>(())
/// ```
pub struct TokenFeed<'a> {
    vocabulary: &'a Vocabulary,
    labels: &'a [String],
    places: Option<usize>,
    fed: usize,
    step: Step<'a>,
    attention: Duration,
}

/// From the place and the row of a word to its label, if its scores are finite, and the time that attention took.
type Step<'a> = Box<dyn FnMut(usize, u32) -> Option<(u32, Duration)> + 'a>;

impl<'a> TokenFeed<'a> {
    /// Before the first token. The model must read words, give labels, and see nothing of what comes later.
    pub fn new(model: &'a AnyModel) -> Result<Self> {
        let (Some(vocabulary), Some(labels)) = (model.vocabulary(), model.label_names()) else {
            return Err(Error::mismatch("the model does not turn words into labels", "a text needs one that does"));
        };
        if let AnyModel::Exact(_) = model {
            let what = "texts are written by models of floats, and this one is exact";
            return Err(Error::mismatch(what, "take one in f32 or f64"));
        }
        let config = model.config();
        if config.layers.iter().flat_map(|layer| &layer.attention).any(|attention| attention.mask != MaskConfig::Causal)
        {
            let what = "the model's tokens see those that come later, which are not known yet";
            return Err(Error::mismatch(what, "make it with `mask` causal, or with `text`"));
        }
        let step: Step<'a> = match model {
            AnyModel::F32(model) => stepper(model),
            AnyModel::F64(model) => stepper(model),
            AnyModel::Exact(_) => unreachable!("refused above"),
        };
        // The start token takes a place.
        let places = config.max_length.map(|places| places - usize::from(config.start.is_some()));
        Ok(Self { vocabulary, labels, places, fed: 0, step, attention: Duration::ZERO })
    }

    /// Feeds the model a word, and gives the label of that word. After an error nothing more should be fed.
    pub fn step(&mut self, word: &str) -> Result<&'a str> {
        let Some(row) = self.vocabulary.get(word).or_else(|| self.vocabulary.get(UNKNOWN)) else {
            let what = format!("the model does not know the word {word:?}");
            return Err(Error::mismatch(what, "use words of the text that it was made from"));
        };
        if self.places.is_some_and(|places| self.fed >= places) {
            let what = format!("the model has {} positions, and the text is longer", self.fed);
            return Err(Error::mismatch(what, "stop there, or use a model with a larger max_length"));
        }
        let (label, attention) = (self.step)(self.fed, row).ok_or_else(|| {
            let what = format!("the model's output for token {} is not a finite number", self.fed + 1);
            Error::mismatch(what, "its weights overflow on this text; check the model, or use one in f64")
        })?;
        self.fed += 1;
        self.attention += attention;
        Ok(&self.labels[label as usize])
    }

    /// Whether the model knows a word by itself, without a row for unknown words.
    pub fn knows(&self, word: &str) -> bool {
        self.vocabulary.get(word).is_some()
    }

    /// The time that attention took so far.
    pub fn attention_time(&self) -> Duration {
        self.attention
    }

    /// How many more words it can be fed, where that is limited.
    pub fn left(&self) -> Option<usize> {
        self.places.map(|places| places - self.fed)
    }
}

/// What the model does with one word after another.
fn stepper<'a, R: Real>(model: &'a Model<R>) -> Step<'a> {
    let heads = |attention: &'a Option<Attention<R>>| {
        attention.iter().flat_map(|a| a.heads.iter().map(|head| KeysAndValues::new(a.kind, head))).collect()
    };
    let seen = model.transformer.layers.iter().map(|layer| heads(&layer.attention)).collect();
    let many =
        model.transformer.layers.iter().flat_map(|layer| &layer.feed_forward).any(|part| part.b1.len() >= MANY_UNITS);
    let sparse = if many { Sparse::new(model) } else { None };
    let mut running = TokenRun { model, seen, sparse, attention: Duration::ZERO };
    let columns = model.head.as_ref().map(|head| used_columns(&head.weight)).unwrap_or_default();
    let rows = model.head.iter().flat_map(|head| head.weight.iter_rows());
    let weights = Matrix::new(
        model.head.as_ref().map_or(0, |head| head.weight.rows),
        columns.len(),
        rows.flat_map(|row| columns.iter().map(|c| row[*c])).collect(),
    );
    Box::new(move |fed, word| {
        let (Some(Words { start, .. }), Some(head)) = (&model.words, &model.head) else { return None };
        if let (0, Some(start)) = (fed, start) {
            running.step(*start, 0);
        }
        let place = fed + usize::from(start.is_some());
        let before = running.attention;
        let h = running.step(word, place);
        if !h.iter().all(|x| x.finite()) {
            return None;
        }
        let mut scores = products(&weights, &columns.iter().map(|c| h[*c]).collect::<Vec<_>>());
        add(&mut scores, &head.bias);
        scores.iter().all(|x| x.finite()).then(|| (arg_max(&scores) as u32, running.attention.saturating_sub(before)))
    })
}

/// The columns of a matrix that have entries.
fn used_columns<R: Real>(matrix: &Matrix<R>) -> Vec<usize> {
    (0..matrix.cols).filter(|c| matrix.iter_rows().any(|row| row[*c] != R::ZERO)).collect()
}

/// A model in the middle of a sequence.
struct TokenRun<'a, R> {
    model: &'a Model<R>,
    seen: Vec<Vec<KeysAndValues<'a, R>>>,
    /// The units that can fire for words, where there are many units.
    sparse: Option<Sparse<R>>,
    attention: Duration,
}

impl<R: Real> TokenRun<'_, R> {
    /// The output for a word at a place, behind those that the heads have seen.
    fn step(&mut self, word: u32, place: usize) -> Vec<R> {
        let model = self.model;
        let Some(Words { embedding, .. }) = &model.words else { return vec![] };
        let mut h = embedding.row(word as usize).to_vec();
        if let Some(positions) = &model.positions {
            add(&mut h, positions.row(place));
        }
        if let Some(block) = &model.transformer.pre_feed_forward {
            feed_forward(block, &mut h);
        }
        for (layer, seen) in model.transformer.layers.iter().zip(&mut self.seen) {
            let (before, clock) = (h.clone(), Instant::now());
            seen.iter_mut().for_each(|head| head.attend(&before, &mut h));
            self.attention += clock.elapsed();
            let Some(block) = &layer.feed_forward else { continue };
            match self.sparse.as_mut().filter(|_| place < Sparse::<R>::most_tokens()) {
                Some(sparse) => {
                    if !sparse.knows(word) {
                        // Words of a text are numbered in the order in which they come: the next ones will be asked for soon.
                        let first = word as usize / NEXT_WORDS * NEXT_WORDS;
                        let last = (first + NEXT_WORDS).min(embedding.rows);
                        sparse.look_at(model, &(first..last).collect::<Vec<_>>());
                    }
                    sparse.feed_forward(block, &[word], &mut h);
                }
                None => feed_forward(block, &mut h),
            }
        }
        h
    }
}

/// The keys and values of a head so far.
struct KeysAndValues<'a, R> {
    kind: AttentionKind,
    head: &'a AttentionHead<R>,
    /// One list for each component.
    keys: Vec<Vec<R>>,
    values: Vec<Vec<R>>,
    scores: Vec<R>,
}

impl<'a, R: Real> KeysAndValues<'a, R> {
    fn new(kind: AttentionKind, head: &'a AttentionHead<R>) -> Self {
        let none = || vec![Vec::new(); head.w_k.rows];
        Self { kind, head, keys: none(), values: none(), scores: Vec::new() }
    }

    /// Takes a token in, and adds to `h` what it reads of all tokens so far.
    fn attend(&mut self, token: &[R], h: &mut [R]) {
        let query = products(&self.head.w_q, token);
        self.keys.iter_mut().zip(products(&self.head.w_k, token)).for_each(|(list, key)| list.push(key));
        self.values.iter_mut().zip(products(&self.head.w_v, token)).for_each(|(list, value)| list.push(value));
        let (scores, keys, values, kind) = (&mut self.scores, &self.keys, &self.values, self.kind);
        scores.clear();
        scores.resize(keys[0].len(), R::ZERO);
        let mixed: Vec<R> = kernels::vectorized(
            #[inline(always)]
            || {
                for (keys, &q) in keys.iter().zip(&query) {
                    for (score, &k) in scores.iter_mut().zip(keys) {
                        *score += q * k;
                    }
                }
                let total = match kind {
                    AttentionKind::Softmax => kernels::soften(scores),
                    AttentionKind::Hardmax => kernels::harden(scores),
                };
                values.iter().map(|values| kernels::dot(scores, values) / total).collect()
            },
        );
        add(h, &products(&self.head.w_o, &mixed));
    }
}

/// Eq. 3 on one token, in place.
fn feed_forward<R: Real>(block: &FeedForward<R>, h: &mut [R]) {
    let mut hidden = products(&block.w1, h);
    add(&mut hidden, &block.b1);
    hidden.iter_mut().for_each(|x| *x = x.larger(R::ZERO));
    add(h, &block.b2);
    add(h, &products(&block.w2, &hidden));
}

/// The products of the rows of a matrix with a vector; those of a large matrix on several threads.
fn products<R: Real>(rows: &Matrix<R>, x: &[R]) -> Vec<R> {
    let mut out = vec![R::ZERO; rows.rows];
    let some = |first: usize, out: &mut [R]| {
        kernels::vectorized(
            #[inline(always)]
            || out.iter_mut().enumerate().for_each(|(i, out)| *out = kernels::dot(rows.row(first + i), x)),
        );
    };
    if rows.rows * rows.cols < LARGE {
        some(0, &mut out);
    } else {
        let each = rows.rows.div_ceil(rayon::current_num_threads());
        parallel::for_each_chunk(&mut out, each, &|i, out| some(i * each, out));
    }
    out
}

fn add<R: Real>(to: &mut [R], x: &[R]) {
    to.iter_mut().zip(x).for_each(|(to, &x)| *to += x);
}

/// A text that a model writes: it is fed its own labels until one of them is no word.
///
/// ```
/// use monolayer::data::Split;
/// use monolayer::model::Generator;
/// use monolayer::{Dataset, Memorizer};
///
/// let text = "to be or not to be that is the question";
/// let compiled = Memorizer::new().text(Split::Word).compile(&Dataset::from_text(text, Split::Word)?)?;
/// let mut generator = Generator::new(compiled.model())?;
/// generator.prompt("to")?;
/// while generator.step()?.is_some() {}
/// assert_eq!(generator.tokens().join(" "), text);
/// assert!(generator.ended());
/// # Ok::<(), monolayer::Error>(())
/// ```
pub struct Generator<'a> {
    feed: TokenFeed<'a>,
    end: Option<&'a str>,
    tokens: Vec<String>,
    /// The label of each token.
    labels: Vec<&'a str>,
}

impl<'a> Generator<'a> {
    /// A text without tokens, which needs a prompt.
    pub fn new(model: &'a AnyModel) -> Result<Self> {
        let end = model.source().text().map(|text| text.end.as_str());
        Ok(Self { feed: TokenFeed::new(model)?, end, tokens: Vec::new(), labels: Vec::new() })
    }

    /// Adds a token that is given.
    pub fn prompt(&mut self, token: &str) -> Result<()> {
        self.labels.push(self.feed.step(token)?);
        self.tokens.push(token.to_owned());
        Ok(())
    }

    /// Adds the token that the model says comes next, and gives it; nothing where the text has ended.
    pub fn step(&mut self) -> Result<Option<&'a str>> {
        let Some(&next) = self.labels.last().filter(|_| !self.ended() && self.feed.left() != Some(0)) else {
            return Ok(None);
        };
        self.prompt(next)?;
        Ok(Some(next))
    }

    /// Whether the model says that the text ends here: its label is that of the end, or no word.
    pub fn ended(&self) -> bool {
        self.labels.last().is_some_and(|label| self.end == Some(label) || !self.feed.knows(label))
    }

    /// The time that attention took so far.
    pub fn attention_time(&self) -> Duration {
        self.feed.attention_time()
    }

    /// The text so far.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// What the model said follows each token.
    pub fn labels(&self) -> &[&'a str] {
        &self.labels
    }
}
