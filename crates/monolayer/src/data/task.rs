//! Synthetic tasks, enumerated in full: `task:NAME:alphabet=K,length=L`.

mod rule;

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{Dataset, Labels, Orderings, Tokens, Vocabulary, Written};
use crate::error::{Error, Result};
use rule::{KINDS, TaskKind};

/// No task may have more tokens than this: they take 8 bytes each.
const MOST_TOKENS: u128 = 50_000_000;

/// A synthetic task, `task:NAME:alphabet=K,length=L`: all sequences of some lengths over an alphabet, labeled by a rule.
///
/// `alphabet=K` is the number of letters; `length=L` takes all sequences of length exactly L, `length=A..B` all of
/// length A to B, both included. Shorter sequences come first, those of one length in the order of a dictionary.
/// Letters are `a`, `b`, ..., `z`, then `t26`, `t27`, and so on. `order=sorted` takes sorted sequences only, one for each multiset
/// of letters: they stand for all their orderings ([`Orderings::All`]). It is for tasks whose labels do not depend on the order.
///
/// | task | label of a token |
/// |---|---|
/// | copy | its own letter |
/// | reverse | the letter at the mirrored place: the last for the first |
/// | shift | the letter before it; `^` for the first |
/// | shift-2 | the letter two places before it; `^` for the first two |
/// | sort | the k-th smallest letter of the sequence, at place k |
/// | histogram | how often its own letter occurs in the sequence |
/// | majority | the most frequent letter of the sequence; of several, the first in the alphabet |
/// | parity | `even` or `odd`: how many letters of the sequence are `b` |
/// | count | how many letters of the sequence are `a` |
/// | length | how many letters the sequence has |
/// | first-occurrence | `yes` where no token before it has the same letter, else `no` |
/// | frac-prevs | the share of `a` among the tokens up to and including it, as a reduced fraction: `0`, `1/2`, `1` |
/// | pattern | `yes` where the token is part of an `ab` (an `a` just before a `b`, or a `b` just after an `a`), else `no` |
/// | pattern-3 | `yes` where an `abc` ends: at a `c` just after an `ab`, else `no` |
/// | dyck | what the brackets up to and including the token are: `valid` (all closed), `open` (can be closed), or `broken` |
///
/// The letters of dyck are brackets, so K is even: `(`, `)`, `[`, `]`, `{`, `}`, `<`, `>`, then `(5`, `)5`, and so on.
///
/// ```
/// use monolayer::data::Task;
///
/// let task: Task = "task:sort:alphabet=4,length=1..6".parse()?;
/// assert_eq!(task.dataset()?.sequences(), 5460);
/// let task: Task = "task:histogram:alphabet=4,length=12,order=sorted".parse()?;
/// assert_eq!(task.dataset()?.sequences(), 455);
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    kind: TaskKind,
    alphabet: u32,
    lengths: RangeInclusive<u32>,
    orderings: Orderings,
}

const SHAPE: &str =
    "write task:NAME:alphabet=K,length=L or length=A..B, then ,order=sorted if only sorted sequences are wanted";

impl FromStr for Task {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let fail = |what: String, help: String| Err(Error::setting(format!("{text}: {what}"), help));
        let shape = || SHAPE.to_owned();
        let Some((name, options)) = text.strip_prefix("task:").and_then(|rest| rest.split_once(':')) else {
            return fail("not a task".into(), shape());
        };
        let Some(&(_, kind)) = KINDS.iter().find(|(known, _)| *known == name) else {
            return fail(
                format!("no task is named {name:?}"),
                format!("the tasks are {}", KINDS.map(|k| k.0).join(", ")),
            );
        };
        let (mut alphabet, mut lengths, mut order) = (None, None, None);
        for option in options.split(',') {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let known = match key {
                "alphabet" => alphabet.replace(value).is_none(),
                "length" => lengths.replace(value).is_none(),
                "order" => order.replace(value).is_none(),
                _ => return fail(format!("unknown option {key:?}"), shape()),
            };
            if !known {
                return fail(format!("the option {key:?} twice"), "give it once".into());
            }
        }
        let (Some(alphabet), Some(lengths)) = (alphabet, lengths) else {
            let missing = if alphabet.is_none() { "alphabet" } else { "length" };
            return fail(format!("no option {missing:?}"), shape());
        };
        let Ok(alphabet @ 1..) = alphabet.parse() else {
            return fail(format!("alphabet={alphabet} is not a whole number from 1"), shape());
        };
        let (first, last) = lengths.split_once("..").unwrap_or((lengths, lengths));
        let lengths = match (first.parse(), last.parse()) {
            (Ok(first @ 1..), Ok(last)) if first <= last => first..=last,
            _ => return fail(format!("length={lengths} is neither a whole number from 1 nor A..B"), shape()),
        };
        if kind == TaskKind::Dyck && alphabet % 2 != 0 {
            let help = "every bracket has a partner: give an even alphabet";
            return fail(format!("{alphabet} letters are no pairs of brackets"), help.into());
        }
        let orderings = match order {
            None => Orderings::Given,
            Some("sorted") if kind.ignores_order() => Orderings::All,
            Some("sorted") => return fail(format!("the labels of {name} depend on the order"), without_order()),
            Some(other) => return fail(format!("order={other} is not order=sorted"), shape()),
        };
        Ok(Self { kind, alphabet, lengths, orderings })
    }
}

/// What helps where sorted sequences do not stand for all.
fn without_order() -> String {
    let free = KINDS.iter().filter(|(_, kind)| kind.ignores_order()).map(|(name, _)| *name);
    format!("leave order=sorted out; it is for {}", free.collect::<Vec<_>>().join(", "))
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        write!(f, "task:{name}:alphabet={},length={}", self.alphabet, self.lengths.start())?;
        if self.lengths.start() < self.lengths.end() {
            write!(f, "..{}", self.lengths.end())?;
        }
        f.write_str(if self.orderings == Orderings::All { ",order=sorted" } else { "" })
    }
}

impl Task {
    /// All its sequences with their labels.
    pub fn dataset(&self) -> Result<Dataset> {
        self.refuse_too_many()?;
        let (mut words, mut vocabulary) = (Vec::new(), Vocabulary::default());
        let (mut classes, mut names) = (Vec::new(), Vocabulary::default());
        let mut offsets = vec![0];
        // The dataset numbers words and labels by first appearance; letters are numbered by the alphabet.
        let (mut word_ids, mut label_ids) = (Renumbered(HashMap::new()), Renumbered(HashMap::new()));
        let mut labels = Vec::new();
        for length in self.lengths.clone() {
            let mut sequence = vec![0; length as usize];
            loop {
                self.kind.label(&sequence, &mut labels);
                words.extend(sequence.iter().map(|&x| word_ids.id(x, || vocabulary.add(&self.kind.letter(x)))));
                classes.extend(labels.iter().map(|&y| Some(label_ids.id(y, || names.add(&self.kind.label_name(y))))));
                offsets.push(words.len());
                if !next(&mut sequence, self.alphabet, self.orderings) {
                    break;
                }
            }
        }
        Ok(Dataset {
            name: self.to_string(),
            tokens: Tokens::Words { word_ids: words, vocabulary },
            labels: Labels::Classes { label_ids: classes, names },
            offsets,
            lines: Vec::new(),
            warnings: Vec::new(),
            written: Written::default(),
            orderings: self.orderings,
        })
    }

    fn refuse_too_many(&self) -> Result<()> {
        let mut tokens: u128 = 0;
        for length in self.lengths.clone() {
            let sequences = match self.orderings {
                Orderings::Given => u128::from(self.alphabet).saturating_pow(length),
                Orderings::All => multisets(self.alphabet, length),
            };
            // Multisets are not counted to the end where there are too many.
            let cut = self.orderings == Orderings::All && sequences > MOST_TOKENS;
            tokens = tokens.saturating_add(sequences.saturating_mul(length.into()));
            if tokens > MOST_TOKENS {
                let exact = length == *self.lengths.end() && tokens < u128::MAX && !cut;
                let least = if exact { "" } else { "at least " };
                let what = format!("{self} would have {least}{tokens} tokens, more than {MOST_TOKENS}");
                return Err(Error::too_large(what, "take a smaller alphabet or shorter sequences"));
            }
        }
        Ok(())
    }
}

/// How many multisets of so many letters there are, or more than the most tokens where there are more.
fn multisets(alphabet: u32, length: u32) -> u128 {
    let all = u128::from(alphabet) + u128::from(length) - 1;
    let mut count = 1;
    // The binomial coefficient of `all` over this many; on the way to it the coefficients rise.
    for i in 1..=u128::from(length.min(alphabet - 1)) {
        count = count * (all - i + 1) / i;
        if count > MOST_TOKENS {
            break;
        }
    }
    count
}

/// Moves on to the next sequence in the order of a dictionary, to the next sorted one where it stands for all orderings; false
/// after the last.
fn next(sequence: &mut [u32], alphabet: u32, orderings: Orderings) -> bool {
    let Some(last) = sequence.iter().rposition(|&letter| letter + 1 < alphabet) else { return false };
    let letter = sequence[last] + 1;
    sequence[last..].fill(if orderings == Orderings::All { letter } else { 0 });
    sequence[last] = letter;
    true
}

/// Ids by number, so that a name is made and looked up once.
struct Renumbered<T>(HashMap<T, u32>);

impl<T: Eq + Hash> Renumbered<T> {
    fn id(&mut self, number: T, add: impl FnOnce() -> u32) -> u32 {
        *self.0.entry(number).or_insert_with(add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequences of a task with their labels, as "abc -> xyz" with letters and labels joined by blanks.
    fn lines(text: &str) -> Vec<String> {
        let data = text.parse::<Task>().unwrap().dataset().unwrap();
        let words = |range: std::ops::Range<usize>| range.map(|t| data.word(t).unwrap()).collect::<Vec<_>>().join(" ");
        let labels =
            |range: std::ops::Range<usize>| range.map(|t| data.label(t).unwrap()).collect::<Vec<_>>().join(" ");
        data.ranges().map(|range| format!("{} -> {}", words(range.clone()), labels(range))).collect()
    }

    #[test]
    fn every_task_labels_by_its_rule() {
        let cases = [
            ("copy", "b a c", "b a c"),
            ("reverse", "b a c", "c a b"),
            ("shift", "b a c", "^ b a"),
            ("sort", "c a a b", "a a b c"),
            ("histogram", "c a c b", "2 1 2 1"),
            ("majority", "a b b", "b b b"),
            ("majority", "c b b c", "b b b b"),
            ("majority", "b c a", "a a a"),
            ("parity", "a c a", "even even even"),
            ("parity", "b c a", "odd odd odd"),
            ("parity", "b a b b", "odd odd odd odd"),
            ("pattern", "b a b a", "no yes yes no"),
            ("pattern", "a a b b", "no yes yes no"),
            ("pattern", "a c b", "no no no"),
            ("shift-2", "b a c", "^ ^ b"),
            ("shift-2", "b", "^"),
            ("count", "a c a", "2 2 2"),
            ("count", "b c", "0 0"),
            ("length", "b c", "2 2"),
            ("first-occurrence", "a b a c b", "yes yes no yes no"),
            ("frac-prevs", "b a c a a c", "0 1/2 1/3 1/2 3/5 1/2"),
            ("frac-prevs", "a a", "1 1"),
            ("pattern-3", "a b c a c b", "no no yes no no no"),
        ];
        for (task, words, labels) in cases {
            let length = words.split(' ').count();
            let line = format!("{words} -> {labels}");
            assert!(lines(&format!("task:{task}:alphabet=3,length={length}")).contains(&line), "{task}: {line}");
        }
        let brackets = lines("task:dyck:alphabet=4,length=4");
        for line in [
            "( [ ] ) -> open open open valid",
            "( ) [ ( -> open valid open open",
            "( ] ( ) -> open broken broken broken",
            "( [ ) ] -> open open broken broken",
            ") ( ) ( -> broken broken broken broken",
        ] {
            assert!(brackets.contains(&line.to_owned()), "{line}");
        }
    }

    #[test]
    fn all_sequences_come_in_order() {
        let sorted = ["a -> 1", "b -> 1", "a a -> 2 2", "a b -> 1 1", "b b -> 2 2"];
        assert_eq!(lines("task:histogram:alphabet=2,length=1..2,order=sorted"), sorted);
        assert_eq!(
            lines("task:copy:alphabet=2,length=1..2"),
            ["a -> a", "b -> b", "a a -> a a", "a b -> a b", "b a -> b a", "b b -> b b"]
        );
        let data = "task:sort:alphabet=4,length=1..6".parse::<Task>().unwrap().dataset().unwrap();
        assert_eq!((data.sequences(), data.longest()), (5460, 6));
        let data = "task:sort:alphabet=4,length=6".parse::<Task>().unwrap().dataset().unwrap();
        assert_eq!((data.sequences(), data.tokens()), (4096, 6 * 4096));
    }

    /// Whether labels are a function of the word and the normalized multiset of the sequence.
    fn needs_no_positions(text: &str) -> bool {
        let data = text.parse::<Task>().unwrap().dataset().unwrap();
        let mut seen = std::collections::HashMap::new();
        data.ranges().all(|range| {
            let mut shares = std::collections::BTreeMap::new();
            for t in range.clone() {
                // Lengths up to 4 divide 12.
                *shares.entry(data.word(t)).or_insert(0) += 12 / range.len();
            }
            range.into_iter().all(|t| {
                let label = data.label(t);
                *seen.entry((data.word(t), shares.clone())).or_insert(label) == label
            })
        })
    }

    #[test]
    fn some_tasks_need_no_positions() {
        for (name, kind) in KINDS {
            let one = needs_no_positions(&format!("task:{name}:alphabet=4,length=4"));
            let many = needs_no_positions(&format!("task:{name}:alphabet=4,length=1..4"));
            let expected = match name {
                "copy" | "majority" => (true, true),
                "histogram" | "parity" | "count" | "length" => (true, false),
                _ => (false, false),
            };
            assert_eq!((one, many), expected, "{name}");
            assert_eq!(kind.ignores_order(), one, "{name}");
        }
    }

    #[test]
    fn sorted_sequences_are_those_among_all_that_are_sorted() {
        for (name, _) in KINDS.iter().filter(|(_, kind)| kind.ignores_order()) {
            for options in ["alphabet=3,length=1..4", "alphabet=1,length=2", "alphabet=4,length=3"] {
                let all = lines(&format!("task:{name}:{options}"));
                let sorted = all.into_iter().filter(|line| {
                    let (words, _) = line.split_once(" -> ").unwrap();
                    words.split(' ').is_sorted()
                });
                assert_eq!(lines(&format!("task:{name}:{options},order=sorted")), sorted.collect::<Vec<_>>(), "{name}");
            }
        }
        let data = "task:histogram:alphabet=4,length=12,order=sorted".parse::<Task>().unwrap().dataset().unwrap();
        assert_eq!((data.sequences(), data.orderings), (455, Orderings::All));
        for (alphabet, length) in [(1, 1), (1, 7), (5, 1), (4, 6), (6, 4), (2, 9)] {
            let task = format!("task:copy:alphabet={alphabet},length={length},order=sorted");
            let data = task.parse::<Task>().unwrap().dataset().unwrap();
            assert_eq!(data.sequences() as u128, multisets(alphabet, length), "{task}");
        }
    }

    #[test]
    fn letters_beyond_the_alphabet_have_names() {
        let words = lines("task:copy:alphabet=28,length=1");
        assert_eq!(words[25..], ["z -> z", "t26 -> t26", "t27 -> t27"]);
        let brackets = lines("task:dyck:alphabet=10,length=1");
        assert_eq!(brackets[6..], ["< -> open", "> -> broken", "(5 -> open", ")5 -> broken"]);
    }

    #[test]
    fn the_name_is_canonical() {
        for text in ["task:copy:alphabet=2,length=3", "task:copy:length=03..3,alphabet=2"] {
            let data = text.parse::<Task>().unwrap().dataset().unwrap();
            assert_eq!(data.name, "task:copy:alphabet=2,length=3");
            assert_eq!(data.location(4).to_string(), "task:copy:alphabet=2,length=3 (sequence 2, token 2)");
        }
    }

    #[test]
    fn every_name_is_parsed_and_written() {
        for (name, _) in KINDS {
            let text = format!("task:{name}:alphabet=2,length=1..3");
            assert_eq!(text.parse::<Task>().unwrap().to_string(), text);
        }
        for (name, _) in KINDS.iter().filter(|(_, kind)| kind.ignores_order()) {
            let text = format!("task:{name}:alphabet=2,length=1..3,order=sorted");
            assert_eq!(text.parse::<Task>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_say_what_is_wrong_and_what_would_help() {
        let shape = SHAPE;
        let cases = [
            ("task:sort", format!("task:sort: not a task; {shape}")),
            ("task:sorted:alphabet=2,length=2", "no task is named \"sorted\"; the tasks are copy, reverse,".into()),
            ("task:sort:alphabet=2", format!("no option \"length\"; {shape}")),
            ("task:sort:length=2", format!("no option \"alphabet\"; {shape}")),
            ("task:sort:alphabet=2,length=2,seed=1", format!("unknown option \"seed\"; {shape}")),
            ("task:sort:", format!("unknown option \"\"; {shape}")),
            ("task:sort:alphabet=2,alphabet=3,length=2", "the option \"alphabet\" twice; give it once".into()),
            ("task:sort:alphabet=0,length=2", "alphabet=0 is not a whole number from 1; ".into()),
            ("task:sort:alphabet=two,length=2", "alphabet=two is not a whole number from 1; ".into()),
            ("task:sort:alphabet=2,length=0", "length=0 is neither a whole number from 1 nor A..B; ".into()),
            ("task:sort:alphabet=2,length=3..2", "length=3..2 is neither".into()),
            ("task:sort:alphabet=2,length=1..", "length=1.. is neither".into()),
            ("task:sort:alphabet=2,length=99999999999", "length=99999999999 is neither".into()),
            (
                "task:sort:alphabet=2,length=2,order=sorted",
                "the labels of sort depend on the order; leave order=sorted ".into(),
            ),
            ("task:copy:alphabet=2,length=2,order=any", format!("order=any is not order=sorted; {shape}")),
            ("task:copy:alphabet=2,length=2,order=sorted,order=sorted", "the option \"order\" twice; give it ".into()),
            ("task:dyck:alphabet=3,length=2", "3 letters are no pairs of brackets; every bracket has a partner".into()),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Task>().unwrap_err().to_string();
            assert!(error.starts_with(text) && error.contains(&expected), "{error}");
        }
    }

    #[test]
    fn tasks_that_are_too_large_say_how_large() {
        let cases = [
            (
                "task:sort:alphabet=10,length=8",
                "would have 800000000 tokens, more than 50000000; take a smaller alphabet",
            ),
            ("task:sort:alphabet=10,length=1..9", "would have at least 76543210 tokens, more than 50000000; "),
            ("task:sort:alphabet=2,length=4000000000", "would have at least 340282366920938463463374607431768211455 "),
            ("task:sort:alphabet=1,length=1..4000000000", "would have at least 50005000 tokens, "),
            (
                "task:copy:alphabet=2,length=4000000000,order=sorted",
                "would have at least 16000000004000000000 tokens, ",
            ),
            ("task:copy:alphabet=9,length=40,order=sorted", "would have at least "),
            ("task:copy:alphabet=3,length=1000,order=sorted", "would have 501501000 tokens, "),
            ("task:copy:alphabet=4000000000,length=4000000000,order=sorted", "would have at least "),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Task>().unwrap().dataset().unwrap_err().to_string();
            assert!(error.starts_with(text) && error.contains(expected), "{error}");
        }
    }
}
