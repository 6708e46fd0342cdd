//! Entities and their F1, as the evaluation of the CoNLL shared tasks (its program `conlleval`) defines them.
//!
//! A label is `O`, or a prefix, a dash and a type: `B-PER`, `I-PER`. An entity is a longest run of tokens in which
//!
//! - the first has a `B-`, or follows an `O`, a token of another type or the start of the sequence, and
//! - no later one has a `B-` or another type.
//!
//! That reads IOB1 (`B-` only between neighbors of one type), IOB2 (`B-` at every start) and any mixture that a model may
//! produce. An entity is right when the prediction has one with the same first and last token and the same type.

use std::collections::{BTreeMap, HashSet};

/// What a label says of its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag<'a> {
    /// `O`: in no entity.
    Outside,
    /// `B-TYPE`: the first token of an entity.
    Begin(&'a str),
    /// `I-TYPE`: inside an entity, or at its start where the token before is none of it.
    Inside(&'a str),
}

impl<'a> Tag<'a> {
    /// The tag that a label names; `None` for a label that is neither `O` nor `B-TYPE` nor `I-TYPE`.
    pub fn parse(label: &'a str) -> Option<Self> {
        match label.split_once('-') {
            None if label == "O" => Some(Self::Outside),
            Some(("B", kind)) => Some(Self::Begin(kind)),
            Some(("I", kind)) => Some(Self::Inside(kind)),
            _ => None,
        }
    }

    /// The type of the entity it is in.
    pub fn kind(self) -> Option<&'a str> {
        match self {
            Self::Outside => None,
            Self::Begin(kind) | Self::Inside(kind) => Some(kind),
        }
    }

    /// Whether an entity starts at this token, given the one before it (`Outside` at the start of a sequence).
    pub fn starts_after(self, before: Self) -> bool {
        match self {
            Self::Outside => false,
            Self::Begin(_) => true,
            Self::Inside(kind) => before.kind() != Some(kind),
        }
    }
}

/// An entity: tokens `start..end` of a sequence, and its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entity<'a> {
    /// The first token.
    pub start: usize,
    /// One past the last token.
    pub end: usize,
    /// Its type.
    pub kind: &'a str,
}

/// The entities of one sequence, in order.
pub fn entities<'a>(tags: impl IntoIterator<Item = Tag<'a>>) -> Vec<Entity<'a>> {
    let mut list: Vec<Entity> = Vec::new();
    let mut before = Tag::Outside;
    for (t, tag) in tags.into_iter().enumerate() {
        if let Some(kind) = tag.kind() {
            match list.last_mut() {
                Some(open) if !tag.starts_after(before) => open.end = t + 1,
                _ => list.push(Entity { start: t, end: t + 1, kind }),
            }
        }
        before = tag;
    }
    list
}

/// How many entities there are, were predicted, and both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entities of the data.
    pub true_entities: usize,
    /// Entities of the prediction.
    pub predicted: usize,
    /// Entities of both.
    pub right: usize,
}

impl Counts {
    /// The share of predicted entities that are right; 0 where none was predicted.
    pub fn precision(&self) -> f64 {
        self.right as f64 / self.predicted.max(1) as f64
    }

    /// The share of the data's entities that were found; 0 where there are none.
    pub fn recall(&self) -> f64 {
        self.right as f64 / self.true_entities.max(1) as f64
    }

    /// The harmonic mean of precision and recall: `2 right / (predicted + true)`; 0 where there are no entities at all.
    pub fn f1(&self) -> f64 {
        2.0 * self.right as f64 / (self.predicted + self.true_entities).max(1) as f64
    }
}

/// The counts of all entities, and of those of each type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntityScores {
    /// Whatever their type.
    pub all: Counts,
    /// By type.
    pub by_type: BTreeMap<String, Counts>,
}

impl EntityScores {
    /// Counts the entities of one sequence: what the data says and what was predicted.
    pub fn add<'a>(&mut self, truth: impl IntoIterator<Item = Tag<'a>>, predicted: impl IntoIterator<Item = Tag<'a>>) {
        let (truth, predicted) = (entities(truth), entities(predicted));
        let known: HashSet<Entity> = truth.iter().copied().collect();
        truth.iter().for_each(|entity| self.count(entity.kind, |c| c.true_entities += 1));
        for entity in &predicted {
            self.count(entity.kind, |c| c.predicted += 1);
            if known.contains(entity) {
                self.count(entity.kind, |c| c.right += 1);
            }
        }
    }

    fn count(&mut self, kind: &str, change: impl Fn(&mut Counts)) {
        change(&mut self.all);
        if !self.by_type.contains_key(kind) {
            self.by_type.insert(kind.to_owned(), Counts::default());
        }
        change(self.by_type.get_mut(kind).expect("it was put there"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tags<'a>(labels: &[&'a str]) -> Vec<Tag<'a>> {
        labels.iter().map(|label| Tag::parse(label).unwrap()).collect()
    }

    fn spans<'a>(labels: &[&'a str]) -> Vec<(usize, usize, &'a str)> {
        entities(tags(labels)).iter().map(|e| (e.start, e.end, e.kind)).collect()
    }

    fn scores(truth: &[&[&str]], predicted: &[&[&str]]) -> EntityScores {
        let mut scores = EntityScores::default();
        truth.iter().zip(predicted).for_each(|(t, p)| scores.add(tags(t), tags(p)));
        scores
    }

    #[test]
    fn labels_that_are_no_tags() {
        assert_eq!(Tag::parse("B-PER"), Some(Tag::Begin("PER")));
        // The type is all that follows the first dash.
        assert_eq!(Tag::parse("I-a-b"), Some(Tag::Inside("a-b")));
        assert_eq!([Tag::parse("X"), Tag::parse("E-PER"), Tag::parse("O-PER"), Tag::parse("")], [None; 4]);
    }

    #[test]
    fn iob1_iob2_and_mixtures() {
        // One run of one type is one entity, whatever its first prefix.
        assert_eq!(spans(&["I-PER", "I-PER", "O"]), [(0, 2, "PER")]);
        assert_eq!(spans(&["B-PER", "I-PER", "O"]), [(0, 2, "PER")]);
        // A B- always starts one.
        assert_eq!(spans(&["I-PER", "B-PER", "I-PER"]), [(0, 1, "PER"), (1, 3, "PER")]);
        assert_eq!(spans(&["B-PER", "B-PER"]), [(0, 1, "PER"), (1, 2, "PER")]);
        // So does another type, with or without a B-.
        assert_eq!(spans(&["B-PER", "I-LOC", "I-LOC"]), [(0, 1, "PER"), (1, 3, "LOC")]);
        assert_eq!(spans(&["O", "I-LOC", "O", "I-LOC"]), [(1, 2, "LOC"), (3, 4, "LOC")]);
        assert_eq!(spans(&[]), []);
    }

    /// The example of the documentation of seqeval, a reimplementation of conlleval: F1 0.50, MISC 0.00, PER 1.00.
    #[test]
    fn a_published_example() {
        let scores = scores(
            &[&["O", "O", "O", "B-MISC", "I-MISC", "I-MISC", "O"], &["B-PER", "I-PER", "O"]],
            &[&["O", "O", "B-MISC", "I-MISC", "I-MISC", "I-MISC", "O"], &["B-PER", "I-PER", "O"]],
        );
        assert_eq!(scores.all, Counts { true_entities: 2, predicted: 2, right: 1 });
        assert_eq!(scores.all.f1(), 0.5);
        assert_eq!((scores.by_type["MISC"].f1(), scores.by_type["PER"].f1()), (0.0, 1.0));
    }

    /// The example of the shared task of 2000 on the evaluation's own page: 459 phrases, 539 found, 371 of them right, printed
    /// as precision 68.83 %, recall 80.83 %, FB1 74.35.
    #[test]
    fn the_evaluations_own_arithmetic() {
        let counts = Counts { true_entities: 459, predicted: 539, right: 371 };
        let printed = |x: f64| format!("{:.2}", 100.0 * x);
        assert_eq!([counts.precision(), counts.recall(), counts.f1()].map(printed), ["68.83", "80.83", "74.35"]);
        assert_eq!(Counts::default().f1(), 0.0);
    }

    /// Worked by hand: a wrong border, a wrong type, one missed, one invented, one right.
    #[test]
    fn kinds_of_mistakes() {
        let scores = scores(
            &[&["I-PER", "I-PER", "O", "I-LOC", "O", "I-ORG", "O", "I-LOC", "O"]],
            &[&["I-PER", "O", "O", "I-ORG", "O", "O", "I-ORG", "I-LOC", "O"]],
        );
        assert_eq!(scores.all, Counts { true_entities: 4, predicted: 4, right: 1 });
        assert_eq!(scores.by_type["LOC"], Counts { true_entities: 2, predicted: 1, right: 1 });
        assert_eq!(scores.by_type["ORG"], Counts { true_entities: 1, predicted: 2, right: 0 });
        assert_eq!((scores.by_type["LOC"].precision(), scores.by_type["LOC"].recall()), (1.0, 0.5));
    }

    /// The evaluation as conlleval runs it: one pass over the tokens, with what it knows of the token before.
    fn conlleval(sequences: &[Vec<(&str, &str)>]) -> Counts {
        let parts = |label: &'static str| label.split_once('-').unwrap_or((label, ""));
        let start = |(p, pt): (&str, &str), (t, tt): (&str, &str)| {
            matches!((p, t), ("B" | "I" | "O", "B") | ("O", "I")) || (t != "O" && pt != tt)
        };
        let end = |(p, pt): (&str, &str), (t, tt): (&str, &str)| {
            matches!((p, t), ("B" | "I", "B" | "O")) || (p != "O" && pt != tt)
        };
        let (mut counts, mut in_right) = (Counts::default(), false);
        let (mut last_truth, mut last_guess) = (("O", ""), ("O", ""));
        // A blank line stands after every sequence and counts as a token outside of everything.
        for &(truth, guess) in sequences.iter().flat_map(|s| s.iter().chain(&[("O", "O")])) {
            let interned = |label: &str| LABELS.into_iter().find(|&l| l == label).unwrap();
            let (truth, guess) = (parts(interned(truth)), parts(interned(guess)));
            let (truth_ends, guess_ends) = (end(last_truth, truth), end(last_guess, guess));
            if in_right {
                if truth_ends && guess_ends && last_truth.1 == last_guess.1 {
                    in_right = false;
                    counts.right += 1;
                } else if truth_ends != guess_ends || truth.1 != guess.1 {
                    in_right = false;
                }
            }
            let (truth_starts, guess_starts) = (start(last_truth, truth), start(last_guess, guess));
            in_right |= truth_starts && guess_starts && truth.1 == guess.1;
            counts.true_entities += usize::from(truth_starts);
            counts.predicted += usize::from(guess_starts);
            (last_truth, last_guess) = (truth, guess);
        }
        counts
    }

    const LABELS: [&str; 5] = ["O", "B-X", "I-X", "B-Y", "I-Y"];

    proptest! {
        #[test]
        fn entities_as_runs_agree_with_conllevals_counters(
            sequences in prop::collection::vec(
                prop::collection::vec((prop::sample::select(&LABELS), prop::sample::select(&LABELS)), 1..12),
                1..5,
            ),
        ) {
            let mut scores = EntityScores::default();
            for s in &sequences {
                let half = |pick: fn(&(&'static str, &'static str)) -> &'static str| {
                    s.iter().map(move |pair| Tag::parse(pick(pair)).unwrap())
                };
                scores.add(half(|p| p.0), half(|p| p.1));
            }
            prop_assert_eq!(scores.all, conlleval(&sequences));
        }
    }
}
