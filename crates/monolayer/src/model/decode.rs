//! One token after another through a causal model, and the text that comes of feeding it its own labels.
//!
//! A step costs a score, an exponential and two sums over the keys seen so far, O(n), and the feed-forward blocks once; keys and
//! values are kept. Certificates speak of programs of a certain kind (TRUST.md): keys, queries and values projected, their
//! products as scores, the largest score subtracted, exponentials, sums in any order, everything in the model's precision. A
//! step is such a program: nothing is carried from one query's softmax to the next, whose weights are others.

use crate::arithmetic::arg_max;
use crate::arithmetic::kernels::{self, Real};
use crate::arithmetic::matrix::Matrix;
use crate::data::Vocabulary;
use crate::error::{Error, Result};
use crate::model::mask_file::MaskConfig;
use crate::model::{AnyModel, Model, UNKNOWN, Words};
use crate::paper::attention::{Attention, AttentionHead, AttentionKind};
use crate::paper::feed_forward::FeedForward;

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
    step: Box<dyn FnMut(usize, u32) -> Option<u32> + 'a>,
}

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
        let step: Box<dyn FnMut(usize, u32) -> Option<u32> + 'a> = match model {
            AnyModel::F32(model) => stepper(model),
            AnyModel::F64(model) => stepper(model),
            AnyModel::Exact(_) => unreachable!("refused above"),
        };
        // The start token takes a place.
        let places = config.max_length.map(|places| places - usize::from(config.start.is_some()));
        Ok(Self { vocabulary, labels, places, fed: 0, step })
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
        let label = (self.step)(self.fed, row).ok_or_else(|| {
            let what = format!("the model's output for token {} is not a finite number", self.fed + 1);
            Error::mismatch(what, "its weights overflow on this text; check the model, or use one in f64")
        })?;
        self.fed += 1;
        Ok(&self.labels[label as usize])
    }

    /// Whether the model knows a word by itself, without a row for unknown words.
    pub fn knows(&self, word: &str) -> bool {
        self.vocabulary.get(word).is_some()
    }

    /// How many more words it can be fed, where that is limited.
    pub fn left(&self) -> Option<usize> {
        self.places.map(|places| places - self.fed)
    }
}

/// What the model does with one word after another: from its place and its row to its label, if its scores are finite.
fn stepper<'a, R: Real>(model: &'a Model<R>) -> Box<dyn FnMut(usize, u32) -> Option<u32> + 'a> {
    let heads = |attention: &'a Option<Attention<R>>| {
        attention.iter().flat_map(|a| a.heads.iter().map(|head| KeysAndValues::new(a.kind, head))).collect()
    };
    let mut seen: Vec<Vec<KeysAndValues<'a, R>>> =
        model.transformer.layers.iter().map(|layer| heads(&layer.attention)).collect();
    Box::new(move |fed, word| {
        let (Some(Words { embedding, start, .. }), Some(head)) = (&model.words, &model.head) else { return None };
        if let (0, Some(start)) = (fed, start) {
            through(model, &mut seen, embedding.row(*start as usize), 0);
        }
        let place = fed + usize::from(start.is_some());
        let h = through(model, &mut seen, embedding.row(word as usize), place);
        let mut scores = products(&head.weight, &h);
        add(&mut scores, &head.bias);
        scores.iter().all(|x| x.finite()).then(|| arg_max(&scores) as u32)
    })
}

/// The output for a token at a place, behind those that the heads have seen.
fn through<R: Real>(model: &Model<R>, seen: &mut [Vec<KeysAndValues<R>>], token: &[R], place: usize) -> Vec<R> {
    let mut h = token.to_vec();
    if let Some(positions) = &model.positions {
        add(&mut h, positions.row(place));
    }
    if let Some(block) = &model.transformer.pre_feed_forward {
        feed_forward(block, &mut h);
    }
    for (layer, seen) in model.transformer.layers.iter().zip(seen) {
        let before = h.clone();
        seen.iter_mut().for_each(|head| head.attend(&before, &mut h));
        if let Some(block) = &layer.feed_forward {
            feed_forward(block, &mut h);
        }
    }
    h
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

/// The products of the rows of a matrix with a vector.
fn products<R: Real>(rows: &Matrix<R>, x: &[R]) -> Vec<R> {
    kernels::vectorized(
        #[inline(always)]
        || rows.data.chunks_exact(rows.cols).map(|row| kernels::dot(row, x)).collect(),
    )
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

    /// The text so far.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// What the model said follows each token.
    pub fn labels(&self) -> &[&'a str] {
        &self.labels
    }
}
