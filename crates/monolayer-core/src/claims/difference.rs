//! Two models and what is claimed of their difference: labels change at most where a change says so, and nothing else changes.

use std::collections::BTreeMap;

use super::witness::{Search, one_token};
use crate::model::{Attention, Dtype, FeedForward, Layer, Mask, Model, Numbers};
use crate::number::Dyadic;
use crate::parallel::parallel;
use crate::read::difference::Difference;
use crate::read::directory::Hashes;
use crate::rules::judge::Verdict;
use crate::rules::network::Network;
use crate::rules::sum::Arithmetic;
use crate::rules::two_models::TwoModels;

/// Without positions and without a length in the file, sequences of at most so many tokens are meant.
const LENGTH: usize = 1 << 20;
/// No bound holds for sums of more terms.
const LONGEST: usize = 1 << 40;
/// So many intervals are looked at, for all words at places together; for each of them at least, and at most.
const MOST_LOOKS: usize = 1 << 24;
const FEWEST_LOOKS: usize = 1 << 8;
const MOST_LOOKS_AT_ONE: usize = 1 << 15;
/// Sequences are looked for that show a fault, for so many pairs of a word and a place.
const SEARCHED: usize = 8;

/// What is compared.
pub struct Comparison<'a> {
    /// The first model, and the hashes of its files.
    pub from: (&'a Model, &'a Hashes),
    /// The second.
    pub to: (&'a Model, &'a Hashes),
    /// What is claimed.
    pub difference: &'a Difference,
    /// Threads.
    pub threads: usize,
    /// Told of every word and every pair that is looked at, with their number in all.
    pub tick: &'a (dyn Fn(usize, usize) + Sync),
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// Right where the claim holds, wrong where it is refuted.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
    /// What the head reads where nothing was shown.
    pub id: Option<Dyadic>,
    /// How many hidden units differ.
    pub units: usize,
    /// How many pairs of a word and a place were looked at.
    pub pairs: usize,
    /// The most tokens of the sequences that are meant.
    pub length: usize,
}

/// A change in numbers: its place, the first and the last number that the head reads, by their places in the format, and the labels.
pub(super) struct Named {
    pub place: Option<usize>,
    pub ends: (i64, i64),
    pub labels: Option<(usize, usize)>,
}

/// The changes of every word that has some, by its row.
pub(super) type Changes = BTreeMap<usize, Vec<Named>>;

/// The changes of a word at a place.
pub(super) fn named(changes: &Changes, word: usize, place: usize) -> impl Iterator<Item = &Named> {
    changes.get(&word).into_iter().flatten().filter(move |change| change.place.is_none_or(|own| own == place))
}

impl Compared {
    fn new(verdict: Verdict, why: impl Into<String>) -> Self {
        Self { verdict, why: why.into(), id: None, units: 0, pairs: 0, length: 0 }
    }
}

impl Comparison<'_> {
    /// Checks the claim. An error says what in the file does not fit the models.
    pub fn check(&self) -> Result<Compared, String> {
        let Difference { from, to, .. } = self.difference;
        for (claimed, own, which) in [(from, self.from.1, "first"), (to, self.to.1, "second")] {
            if claimed != own {
                let why = format!("difference.json is about other files: a hash of the {which} model is another");
                return Ok(Compared::new(Verdict::Wrong, why));
            }
        }
        let (old, new) = (self.from.0, self.to.0);
        let (length, places) = self.lengths()?;
        let changes = self.changes(places)?;
        let rest = rest(old, new);
        let mut found = match (&rest, units(old), units(new)) {
            (None, Some((a, _)), Some((b, _))) if a.hidden != b.hidden && !self.difference.appended => {
                let why = format!("{} hidden units became {}, and the file does not say so", a.hidden, b.hidden);
                Compared::new(Verdict::Wrong, why)
            }
            (None, Some((a, _)), Some((b, _))) if !same_units(a, b) => self.compare(&changes, length, places),
            (None, ..) => Compared::new(Verdict::Right, "no number of the two models differs"),
            (Some(what), ..) => self.elsewhere(&changes, &format!("{what} differs, not hidden units alone")),
        };
        found.length = length;
        Ok(found)
    }

    /// The most tokens of a sequence, and how many places there are to tell apart, that of the start token included.
    fn lengths(&self) -> Result<(usize, usize), String> {
        let (old, start) = (self.from.0, usize::from(self.from.0.start.is_some()));
        let mut most = old.max_length.map_or(LONGEST, |places| places - start);
        for layer in &old.layers {
            if let Some(Mask::Matrix(n, _)) = layer.attention.as_ref().map(|attention| &attention.mask) {
                most = most.min(*n);
            }
        }
        let length = self.difference.longest.unwrap_or(if most == LONGEST { LENGTH } else { most });
        if length > most {
            return Err(format!("\"longest\" is {length}, and the first model takes {most} tokens at most"));
        }
        Ok((length, if old.positions.is_some() { length + start } else { 1 }))
    }

    /// The changes in numbers.
    fn changes(&self, places: usize) -> Result<Changes, String> {
        let (old, format) = (self.from.0, self.difference.format);
        let words = old.vocabulary.as_deref().unwrap_or_default();
        let labels = old.head.as_ref().and_then(|head| head.labels.as_deref()).unwrap_or_default();
        let first = usize::from(old.start.is_some());
        let mut all = Changes::new();
        for (i, change) in self.difference.changes.iter().enumerate() {
            let fault = |what: String| format!("change {}: {what}", i + 1);
            let row = words.binary_search_by(|(word, _)| word.as_str().cmp(&change.word));
            let row = row.map_err(|_| fault(format!("the first model has no word {:?}", change.word)))?;
            let label = |name: &str| {
                let found = labels.iter().position(|label| label == name);
                found.ok_or_else(|| fault(format!("the first model has no label {name:?}")))
            };
            let names = change.labels.as_ref();
            let labels = names.map(|(from, to)| Ok::<_, String>((label(from)?, label(to)?))).transpose()?;
            match change.place {
                Some(place) if old.positions.is_none() => {
                    return Err(fault(format!("it has the place {place}, and the models have no positions")));
                }
                Some(place) if !(first..places).contains(&place) => {
                    return Err(fault(format!("no token has the place {place}: places are {first} to {}", places - 1)));
                }
                _ => (),
            }
            let (low, high) = change.id;
            let ends = (-format.below(-i128::from(low.m), low.e), format.below(high.m.into(), high.e));
            all.entry(words[row].1).or_default().push(Named { place: change.place, ends, labels });
        }
        Ok(all)
    }

    /// Something else than hidden units differs, or the models are of another kind: sequences of one token may show that the claim is false.
    fn elsewhere(&self, changes: &Changes, why: &str) -> Compared {
        let models = [self.from.0, self.to.0];
        match one_token(models, self.difference.format, changes) {
            Some(shown) => Compared::new(Verdict::Wrong, format!("{why}; {shown}")),
            None => Compared::new(Verdict::Unknown, why),
        }
    }

    /// The models differ in hidden units alone.
    fn compare(&self, changes: &Changes, length: usize, places: usize) -> Compared {
        let (old, new) = (self.from.0, self.to.0);
        if !is_covered(old) {
            return self.elsewhere(
                changes,
                "differences are decided for one layer of softmax with one head of size 1, words and labels",
            );
        }
        let arithmetic = Arithmetic::Float { format: self.difference.format, exp_ulp: 4 };
        let seen = length + usize::from(old.start.is_some());
        let (Some(a), Some(b)) = (Network::new(old, arithmetic), Network::new(new, arithmetic)) else {
            return Compared::new(Verdict::Unknown, "a number of a model overflows the arithmetic");
        };
        let words = vectors(old, arithmetic);
        let Some(models) = words.and_then(|words| TwoModels::new([&a, &b], words, places, seen)) else {
            return self.elsewhere(changes, "what the head reads was not bounded: a program may overflow");
        };
        let pairs = models.words.len() * models.places.len();
        Compared { units: models.differing(), pairs, ..self.decide(&models, changes, length) }
    }

    fn decide(&self, models: &TwoModels, changes: &Changes, length: usize) -> Compared {
        let targets = targets(models, changes);
        let total = models.words.len() + targets.len();
        let looks = (MOST_LOOKS / targets.len().max(1)).clamp(FEWEST_LOOKS, MOST_LOOKS_AT_ONE);
        let fires = |word: usize| {
            (self.tick)(1, total);
            models.fires(word, |place| named(changes, word, place).next().is_none())
        };
        let fires: Vec<(usize, usize)> = parallel(self.threads, models.words.len(), fires)
            .into_iter()
            .enumerate()
            .filter_map(|(w, k)| Some((w, k?)))
            .collect();
        let covers = |at: usize| {
            (self.tick)(1, total);
            let (word, place) = targets[at];
            cover(models, (word, place), &named(changes, word, place).collect::<Vec<_>>(), looks)
        };
        let covered = parallel(self.threads, targets.len(), covers);
        let open: Vec<((usize, usize), Option<Dyadic>)> =
            targets.into_iter().zip(covered).filter_map(|(pair, found)| Some((pair, found.err()?))).collect();
        let shown = |(word, place): (usize, usize)| self.shown(word, place);
        let search = Search { models, changes, model: self.from.0, length };
        let suspects = fires.iter().take(SEARCHED).copied().chain(open.iter().take(SEARCHED).map(|(pair, _)| *pair));
        if let Some(witness) = suspects.clone().find_map(|(word, place)| search.find(word, place)) {
            return Compared::new(Verdict::Wrong, witness);
        }
        if let Some(first) = fires.first() {
            let why = "a hidden unit that differs may fire for words at places that no change names";
            return Compared::new(
                Verdict::Unknown,
                format!("{why}: for {} words, the first {}", fires.len(), shown(*first)),
            );
        }
        if let Some((first, id)) = open.first() {
            let why = "it was not shown that labels change as the changes say";
            let why = format!("{why}: for {} words at places, the first {}", open.len(), shown(*first));
            return Compared { id: *id, ..Compared::new(Verdict::Unknown, why) };
        }
        Compared::new(Verdict::Right, "labels change at most as the changes say, and no score elsewhere")
    }

    /// A word at a place, for people.
    fn shown(&self, word: usize, place: usize) -> String {
        let start = usize::from(self.from.0.start.is_some());
        let name = name(self.from.0, word);
        if self.from.0.positions.is_some() {
            format!("{name:?} as token {}", place + 1 - start)
        } else {
            format!("{name:?}")
        }
    }
}

/// The word of a row.
pub(super) fn name(model: &Model, row: usize) -> &str {
    model.vocabulary.iter().flatten().find(|(_, own)| *own == row).map_or("", |(word, _)| word)
}

/// The pairs of a word and a place that some change names.
fn targets(models: &TwoModels, changes: &Changes) -> Vec<(usize, usize)> {
    let all = models.places.clone().collect::<Vec<usize>>();
    let mut targets = vec![];
    for (word, changes) in changes {
        let every = changes.iter().any(|change| change.place.is_none());
        let mut own: Vec<usize> =
            if every { all.clone() } else { changes.iter().filter_map(|change| change.place).collect() };
        own.sort_unstable();
        own.dedup();
        targets.extend(own.into_iter().map(|place| (*word, place)));
    }
    targets
}

/// Covers all that the head can read by intervals in which the same changes are allowed. An error has what it reads where that failed,
/// or nothing where a program may overflow.
fn cover(
    models: &TwoModels,
    (word, place): (usize, usize),
    changes: &[&Named],
    mut looks: usize,
) -> Result<(), Option<Dyadic>> {
    if models.fires(word, |own| own == place).is_none() {
        return Ok(());
    }
    let x = models.input(word, place).ok_or(None)?;
    let (open, (first, last)) = (models.open(word, place), models.numbers());
    // Where some interval begins, or has ended.
    let cuts = changes.iter().flat_map(|change| [change.ends.0, change.ends.1.saturating_add(1)]);
    let mut cuts: Vec<i64> = cuts.filter(|cut| first < *cut && *cut <= last).chain([first]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    for (i, &low) in cuts.iter().enumerate() {
        let high = cuts.get(i + 1).map_or(last, |next| next - 1);
        let here = changes.iter().filter(|change| change.ends.0 <= low && high <= change.ends.1);
        if let Some(allowed) = here.map(|change| change.labels).collect::<Option<Vec<_>>>() {
            models.covers(&x, &open, (low, high), &allowed, &mut looks).map_err(Some)?;
        }
    }
    Ok(())
}

/// The words' vectors in an arithmetic, row by row.
pub(super) fn vectors(model: &Model, arithmetic: Arithmetic) -> Option<Vec<Vec<Dyadic>>> {
    let Some(Numbers::Floats(all)) = &model.embedding else { return None };
    let row = |row: usize| (row * model.d..(row + 1) * model.d).map(|i| arithmetic.round(all.get(i))).collect();
    (0..all.len() / model.d).map(row).collect()
}

/// Whether a model is of the kind for which differences are decided.
fn is_covered(model: &Model) -> bool {
    let single = |a: &Attention| !a.hard && a.heads == 1 && a.size == 1;
    let labels = model.head.as_ref().is_some_and(|head| head.labels.is_some());
    let floats = matches!(model.dtype, Dtype::Float(_)) && model.embedding.is_some();
    let [layer] = &model.layers[..] else { return false };
    floats && labels && model.pre_feed_forward.is_none() && layer.attention.as_ref().is_some_and(single)
}

/// The hidden units of a model of one layer, without b2, and b2.
fn units(model: &Model) -> Option<(&FeedForward, &Numbers)> {
    let [layer] = &model.layers[..] else { return None };
    layer.feed_forward.as_ref().map(|part| (part, &part.b2))
}

fn same_units(a: &FeedForward, b: &FeedForward) -> bool {
    a.hidden == b.hidden && same(&a.w1, &b.w1) && same(&a.b1, &b.b1) && same(&a.w2, &b.w2)
}

/// Whether two tensors have the same numbers, however they are stored.
fn same(a: &Numbers, b: &Numbers) -> bool {
    match (a, b) {
        (Numbers::Floats(x), Numbers::Floats(y)) => {
            x == y || x.shape == y.shape && (0..x.len()).all(|i| x.get(i) == y.get(i))
        }
        _ => a == b,
    }
}

fn both<T>(a: Option<&T>, b: Option<&T>, same: impl Fn(&T, &T) -> bool) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn same_attention(a: &Attention, b: &Attention) -> bool {
    let numbers = [(&a.w_q, &b.w_q), (&a.w_k, &b.w_k), (&a.w_v, &b.w_v), (&a.w_o, &b.w_o)];
    let kind = |a: &Attention| (a.hard, a.heads, a.size);
    kind(a) == kind(b) && a.mask == b.mask && numbers.iter().all(|(a, b)| same(a, b))
}

/// What differs beside w1, b1 and w2 of the only layer, in all that sequences of the first model's words go through.
fn rest(old: &Model, new: &Model) -> Option<String> {
    let whole = |a: &FeedForward, b: &FeedForward| same_units(a, b) && same(&a.b2, &b.b2);
    let single = old.layers.len() == 1;
    let parts =
        |a: &Layer, b: &Layer| {
            both(a.feed_forward.as_ref(), b.feed_forward.as_ref(), |a, b| {
                if single { same(&a.b2, &b.b2) } else { whole(a, b) }
            })
        };
    let attention = |a: &Layer, b: &Layer| both(a.attention.as_ref(), b.attention.as_ref(), same_attention);
    let layers = |test: &dyn Fn(&Layer, &Layer) -> bool| {
        old.layers.len() == new.layers.len() && old.layers.iter().zip(&new.layers).all(|(a, b)| test(a, b))
    };
    let tests: [(&str, bool); 9] = [
        ("the kind of numbers", (old.d, old.dtype) == (new.d, new.dtype)),
        ("the vocabulary", same_words(old, new)),
        ("the start token", old.start == new.start),
        ("embedding.weight", same_rows(old, new)),
        ("positions.weight", both(old.positions.as_ref(), new.positions.as_ref(), same)),
        ("pre_feed_forward", both(old.pre_feed_forward.as_ref(), new.pre_feed_forward.as_ref(), whole)),
        ("the attention", layers(&attention)),
        ("b2, or a layer", layers(&parts)),
        (
            "the head",
            both(old.head.as_ref(), new.head.as_ref(), |a, b| {
                a.labels == b.labels && same(&a.weight, &b.weight) && same(&a.bias, &b.bias)
            }),
        ),
    ];
    let max_length = (old.max_length != new.max_length).then_some("max_length");
    max_length.or(tests.iter().find(|(_, same)| !same).map(|(what, _)| *what)).map(str::to_owned)
}

/// Whether the second model has every word of the first in the same row.
fn same_words(old: &Model, new: &Model) -> bool {
    both(old.vocabulary.as_ref(), new.vocabulary.as_ref(), |old, new| {
        let there = |(word, row): &(String, usize)| {
            new.binary_search_by(|(own, _)| own.cmp(word)).is_ok_and(|at| new[at].1 == *row)
        };
        old.iter().all(there)
    })
}

/// Whether the second model has every row of the first's embedding.
fn same_rows(old: &Model, new: &Model) -> bool {
    both(old.embedding.as_ref(), new.embedding.as_ref(), |old, new| match (old, new) {
        (Numbers::Floats(x), Numbers::Floats(y)) => {
            x.shape[1] == y.shape[1] && x.len() <= y.len() && (0..x.len()).all(|i| x.get(i) == y.get(i))
        }
        _ => old == new,
    })
}
