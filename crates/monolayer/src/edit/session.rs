//! An editor: a model, and data to compare with; edits in, an edited model and what it differs in out.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::context_of::{SeenTokens, seen_tokens};
use super::difference::{Change, Difference, FORMAT, Undo, UnitsAdded};
use super::known::{KnownContext, KnownContexts, ids};
use super::pair::{EditedPair, Kept, Outcome, WantedLabel, WordPlace, edit_pair};
use super::site::Site;
use super::units::add_units;
use crate::context_map::View;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::memorize::gated::Unit;
use crate::memorize::gated::off_units::Token;
use crate::memorize::gated::unit_names::UnitNamer;
use crate::model::names::NamedUnit;
use crate::model::{AnyModel, ModelNames, Storage};

/// One token of a sequence, and the label that it is to get.
///
/// ```
/// use monolayer::edit::{Edit, Editor};
/// use monolayer::{Dataset, Memorizer};
///
/// let data = Dataset::from_sequences(&[["May", "sails"], ["in", "May"]], &[["PER", "O"], ["O", "DATE"]])?;
/// let model = Memorizer::new().compile(&data)?.model().clone();
/// let editor = Editor::new(model, Some(&data))?;
/// let edited = editor.edit(&[Edit::new(["May", "sails"], 0, "DATE")])?;
/// assert_eq!(edited.refused().count(), 0);
/// assert_eq!(edited.model().right(&data)?, Some(3));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The words of the sequence.
    pub tokens: Vec<String>,
    /// The place of the token in it, from 0.
    pub place: usize,
    /// The label.
    pub label: String,
}

impl Edit {
    /// The token at a place of a sequence, from 0, is to get a label.
    pub fn new<W: Into<String>>(tokens: impl IntoIterator<Item = W>, place: usize, label: impl Into<String>) -> Self {
        Self { tokens: tokens.into_iter().map(Into::into).collect(), place, label: label.into() }
    }
}

/// Edits a model; see [`Edit`].
pub struct Editor {
    model: Arc<AnyModel>,
    site: Site,
    known: Option<KnownContexts>,
    /// How many words the model had before any were added.
    pub(super) words_before: usize,
}

/// What came of edits.
#[derive(Debug, Clone)]
pub struct Edited {
    before: Arc<AnyModel>,
    /// Made when it is asked for.
    model: OnceLock<AnyModel>,
    /// The new units, and how many coordinates codes use.
    units: Vec<Unit>,
    used: usize,
    difference: Difference,
    /// What the new units do.
    names: Vec<NamedUnit>,
    outcomes: Vec<Outcome>,
}

/// An edit as the model sees it.
struct Resolved {
    pair: WordPlace,
    seen: SeenTokens,
    wanted: WantedLabel,
}

impl Editor {
    /// An editor of a model. Contexts of the data, if there is any, keep their labels, or an edit is refused.
    pub fn new(model: AnyModel, data: Option<&Dataset>) -> Result<Self> {
        let site = Site::new(&model)?;
        let known = data.map(|data| KnownContexts::new(&site, &model, data)).transpose()?;
        let words_before = site.vocabulary.len();
        Ok(Self { model: Arc::new(model), site, known, words_before })
    }

    /// The model as it is.
    pub fn model(&self) -> &AnyModel {
        &self.model
    }

    /// How many words were added.
    pub fn words_added(&self) -> usize {
        self.site.vocabulary.len() - self.words_before
    }

    /// How many tokens are compared with.
    pub fn compared(&self) -> usize {
        self.known.as_ref().map_or(0, |known| known.tokens)
    }

    /// Makes edits together. Each is made or refused; an error where they cannot be understood or contradict each other.
    pub fn edit(&self, edits: &[Edit]) -> Result<Edited> {
        let resolved = self.resolve(edits)?;
        // Edits of one context are one edit; those of one word at one place are made one after another.
        let mut of_context: HashMap<(WordPlace, &SeenTokens), usize> = HashMap::new();
        let mut same_as: Vec<usize> = Vec::with_capacity(edits.len());
        let mut pairs: Vec<(WordPlace, Vec<usize>)> = Vec::new();
        let mut of_pair: HashMap<WordPlace, usize> = HashMap::new();
        for (i, edit) in resolved.iter().enumerate() {
            let first = *of_context.entry((edit.pair, &edit.seen)).or_insert(i);
            if resolved[first].wanted.label != edit.wanted.label {
                return Err(contradiction(edits, first, i));
            }
            same_as.push(first);
            let pair = *of_pair.entry(edit.pair).or_insert_with(|| {
                pairs.push((edit.pair, Vec::new()));
                pairs.len() - 1
            });
            if first == i {
                pairs[pair].1.push(i);
            }
        }
        let done: Vec<Result<EditedPair>> =
            pairs.par_iter().map(|(pair, list)| self.edit_pair(*pair, list, edits, &resolved)).collect();
        let done = done.into_iter().collect::<Result<Vec<_>>>()?;
        let mut outcomes: Vec<Option<Outcome>> = vec![None; edits.len()];
        for ((_, list), edited) in pairs.iter().zip(&done) {
            list.iter().zip(&edited.outcomes).for_each(|(&i, outcome)| outcomes[i] = Some(outcome.clone()));
        }
        let outcome = |&first: &usize| outcomes[first].clone().expect("every context is looked at");
        let outcomes = same_as.iter().map(outcome).collect();
        Ok(self.edited(&done, outcomes))
    }

    fn resolve(&self, edits: &[Edit]) -> Result<Vec<Resolved>> {
        let mut sequences = Vec::with_capacity(edits.len());
        for edit in edits {
            sequences.push(self.rows(edit)?);
        }
        let data = Site::dataset("the edits", &sequences);
        let view = View::new(&data, &self.site.vectors, self.site.mask.clone());
        let tokens: Vec<usize> = edits.iter().enumerate().map(|(i, edit)| data.offsets[i] + edit.place).collect();
        let found = ids(&self.site, &view, &tokens);
        let resolve = |(i, edit): (usize, &Edit)| {
            let (center, ids) = found[i];
            let label =
                self.site.labels.iter().position(|name| *name == edit.label).ok_or_else(|| self.no_label(edit))?;
            Ok(Resolved {
                pair: (sequences[i][edit.place], self.site.row(edit.place)),
                seen: seen_tokens(&view, tokens[i]),
                wanted: WantedLabel { center, ids, label },
            })
        };
        edits.iter().enumerate().map(resolve).collect()
    }

    /// The rows of the words of an edit.
    fn rows(&self, edit: &Edit) -> Result<Vec<u32>> {
        let bad = |what: String, help: &str| Err(Error::setting(format!("{}: {what}", sentence(edit)), help));
        if edit.place >= edit.tokens.len() {
            let what = format!("token {} of {}", edit.place + 1, edit.tokens.len());
            return bad(what, "tokens are numbered from 1");
        }
        if edit.tokens.len() > self.site.longest() {
            let what = format!("{} tokens where the model has {} places", edit.tokens.len(), self.site.longest());
            return bad(what, "shorten it, or compile a model for longer sequences");
        }
        let data = Dataset::from_sequences(&[&edit.tokens], &[&edit.tokens])?;
        if self.site.vocabulary.get(&edit.tokens[edit.place]).is_none() {
            let what = format!("the model does not know the word {:?}", edit.tokens[edit.place]);
            return bad(what, "only words of its vocabulary can get a label; new words come with new sequences");
        }
        Ok(self.model.word_rows(&data)?.unwrap_or_default())
    }

    fn no_label(&self, edit: &Edit) -> Error {
        let what = format!("the model has no label {:?}", edit.label);
        let (shown, more) =
            (&self.site.labels[..self.site.labels.len().min(16)], self.site.labels.len().saturating_sub(16));
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        Error::setting(what, format!("its labels are {}{rest}", shown.join(", ")))
    }

    /// All edits of a word at a place, by their numbers.
    fn edit_pair(&self, pair: WordPlace, list: &[usize], edits: &[Edit], resolved: &[Resolved]) -> Result<EditedPair> {
        let known = self.known.as_ref().map_or(&[][..], |known| known.of(pair));
        let mut wanted: Vec<WantedLabel> = list.iter().map(|&i| resolved[i].wanted).collect();
        // Contexts with the same id, but for rounding, may be those that are edited.
        let near = |context: &&KnownContext| wanted.iter().any(|w| meet(w.ids, context.ids));
        let near: Vec<KnownContext> = known.iter().filter(near).copied().collect();
        let seen = self.known.as_ref().map_or_else(Vec::new, |known| known.seen(&self.site, &near));
        let mut edited: Vec<usize> = Vec::new();
        for (context, seen) in near.iter().zip(seen) {
            let Some(which) = list.iter().position(|&i| resolved[i].seen == seen) else { continue };
            if context.contradicts {
                return Err(impossible(&edits[list[which]]));
            }
            let own = &mut wanted[which].ids;
            *own = (own.0.min(context.ids.0), own.1.max(context.ids.1));
            edited.push(context.token);
        }
        let others = known.iter().filter(|context| !edited.contains(&context.token));
        let kept: Vec<Kept> = others.map(|c| Kept { center: c.center, ids: c.ids }).collect();
        Ok(edit_pair(&self.site, pair, &wanted, &kept))
    }

    /// The model with all new units, and what it differs in.
    fn edited(&self, pairs: &[EditedPair], outcomes: Vec<Outcome>) -> Edited {
        let units: Vec<Unit> = pairs.iter().flat_map(|pair| &pair.units).cloned().collect();
        let (hidden, first) = (self.site.hidden, self.site.stored.units.len());
        let filled = (first..hidden.min(first + units.len())).collect();
        let appended = (first + units.len()).saturating_sub(hidden);
        let positions = self.site.vectors.positions.is_some();
        let name = |label: usize| self.site.labels[label].clone();
        let mut changes = Vec::new();
        let known = |pair: &&EditedPair| (pair.pair.0 as usize) < self.words_before;
        for EditedPair { pair: (word, place), pieces, .. } in pairs.iter().filter(known) {
            changes.extend(pieces.iter().map(|piece| Change {
                word: self.site.vocabulary.name(*word).to_owned(),
                place: positions.then_some(*place),
                id: [piece.ids.0, piece.ids.1],
                from: piece.change.map(|(from, _)| name(from)),
                to: piece.change.map(|(_, to)| name(to)),
            }));
        }
        let difference = Difference {
            format: FORMAT.to_owned(),
            from: serde_json::Value::Null,
            to: serde_json::Value::Null,
            arithmetic: self.model.config().dtype,
            longest: (!positions).then_some(super::site::LONGEST),
            units: if appended == 0 { UnitsAdded::Filled } else { UnitsAdded::Appended },
            changes,
            undo: Some(Undo { hidden, filled, words: self.words_before }),
        };
        let (before, used) = (self.model.clone(), self.site.vectors.used);
        Edited { before, model: OnceLock::new(), units, used, difference, names: self.names(pairs), outcomes }
    }

    /// What the new units do, numbered behind those that there are.
    fn names(&self, pairs: &[EditedPair]) -> Vec<NamedUnit> {
        let Site { stored, vocabulary, labels, range, .. } = &self.site;
        let namer = UnitNamer { stored, words: vocabulary.names(), labels };
        let units = pairs.iter().flat_map(|edited| edited.units.iter().map(|unit| (edited.pair, unit)));
        let name = |(i, ((word, place), unit)): (usize, (WordPlace, &Unit))| {
            namer.unit(stored.units.len() + i, unit, &[Token { word, place, ids: *range }])
        };
        units.enumerate().map(name).collect()
    }
}

impl Edited {
    /// The model after the edits.
    pub fn model(&self) -> &AnyModel {
        self.model.get_or_init(|| {
            let mut model = (*self.before).clone();
            add_units(&mut model, &self.units, self.used);
            model
        })
    }

    /// What it differs in from the model before; without the hashes of their files.
    pub fn difference(&self) -> &Difference {
        &self.difference
    }

    /// What came of each edit, in order.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// The edits that were refused, by number.
    pub fn refused(&self) -> impl Iterator<Item = usize> + '_ {
        let refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused { .. });
        self.outcomes.iter().enumerate().filter(move |(_, outcome)| refused(outcome)).map(|(i, _)| i)
    }

    /// How many hidden units were added.
    pub fn units_added(&self) -> usize {
        self.units.len()
    }

    /// Writes the model directory with difference.json, and names.json where the model before has one, whole or not at all; `from` is
    /// the directory of the model before.
    pub fn save(&self, from: impl AsRef<Path>, dir: impl AsRef<Path>) -> Result<()> {
        let from = from.as_ref();
        let storage = Storage::of(&AnyModel::open(from)?, from)?;
        let names = ModelNames::open(from)?.map(|names| names.with(&self.names));
        self.model().save_as(storage, dir, |dir| {
            names.iter().try_for_each(|names| names.write(dir))?;
            self.difference.write(from, dir)
        })
    }
}

fn meet(a: (f64, f64), b: (f64, f64)) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

/// A sequence with the token in brackets.
fn sentence(edit: &Edit) -> String {
    let word = |(i, word): (usize, &String)| if i == edit.place { format!("[{word}]") } else { word.clone() };
    edit.tokens.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

fn contradiction(edits: &[Edit], a: usize, b: usize) -> Error {
    let what = format!(
        "two labels for one context: {:?} for {}, {:?} for {}",
        edits[a].label,
        sentence(&edits[a]),
        edits[b].label,
        sentence(&edits[b])
    );
    Error::setting(what, "attention cannot tell these tokens apart; ask for one label")
}

fn impossible(edit: &Edit) -> Error {
    let what = format!("{}: its context stands in the data with several labels", sentence(edit));
    Error::setting(what, "no model can tell such tokens apart; make their labels in the data agree")
}
