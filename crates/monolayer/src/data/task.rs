//! Synthetic tasks, enumerated in full: `task:NAME:alphabet=K,length=L`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{Dataset, Labels, Tokens, Vocabulary, Written};
use crate::error::{Error, Result};

/// No task may have more tokens than this: they take 8 bytes each.
const MOST_TOKENS: u128 = 50_000_000;

/// What a task asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskKind {
    Copy,
    Reverse,
    Shift,
    Sort,
    Histogram,
    Majority,
    Parity,
    Pattern,
    Dyck,
}

const KINDS: [(&str, TaskKind); 9] = [
    ("copy", TaskKind::Copy),
    ("reverse", TaskKind::Reverse),
    ("shift", TaskKind::Shift),
    ("sort", TaskKind::Sort),
    ("histogram", TaskKind::Histogram),
    ("majority", TaskKind::Majority),
    ("parity", TaskKind::Parity),
    ("pattern", TaskKind::Pattern),
    ("dyck", TaskKind::Dyck),
];

/// A synthetic task, `task:NAME:alphabet=K,length=L`: all sequences of some lengths over an alphabet, labeled by a rule.
///
/// `alphabet=K` is the number of letters; `length=L` takes all sequences of length exactly L, `length=A..B` all of
/// length A to B, both included. Shorter sequences come first, those of one length in the order of a dictionary.
/// Letters are `a`, `b`, ..., `z`, then `t26`, `t27`, and so on.
///
/// | task | label of a token |
/// |---|---|
/// | copy | its own letter |
/// | reverse | the letter at the mirrored place: the last for the first |
/// | shift | the letter before it; `^` for the first |
/// | sort | the k-th smallest letter of the sequence, at place k |
/// | histogram | how often its own letter occurs in the sequence |
/// | majority | the most frequent letter of the sequence; of several, the first in the alphabet |
/// | parity | `even` or `odd`: how many letters of the sequence are `b` |
/// | pattern | `yes` where the token is part of an `ab` (an `a` just before a `b`, or a `b` just after an `a`), else `no` |
/// | dyck | what the brackets up to and including the token are: `valid` (all closed), `open` (can be closed), or `broken` |
///
/// The letters of dyck are brackets, so K is even: `(`, `)`, `[`, `]`, `{`, `}`, `<`, `>`, then `(5`, `)5`, and so on.
///
/// ```
/// use monolayer::data::Task;
///
/// let task: Task = "task:sort:alphabet=4,length=1..6".parse()?;
/// assert_eq!(task.dataset()?.sequences(), 5460);
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    kind: TaskKind,
    alphabet: u32,
    lengths: RangeInclusive<u32>,
}

impl FromStr for Task {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let fail = |what: String, help: String| Err(Error::setting(format!("{text}: {what}"), help));
        let shape = || "write task:NAME:alphabet=K,length=L or length=A..B".to_owned();
        let Some((name, options)) = text.strip_prefix("task:").and_then(|rest| rest.split_once(':')) else {
            return fail("not a task".into(), shape());
        };
        let Some(&(_, kind)) = KINDS.iter().find(|(known, _)| *known == name) else {
            return fail(
                format!("no task is named {name:?}"),
                format!("the tasks are {}", KINDS.map(|k| k.0).join(", ")),
            );
        };
        let (mut alphabet, mut lengths) = (None, None);
        for option in options.split(',') {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let known = match key {
                "alphabet" => alphabet.replace(value).is_none(),
                "length" => lengths.replace(value).is_none(),
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
        Ok(Self { kind, alphabet, lengths })
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        write!(f, "task:{name}:alphabet={},length={}", self.alphabet, self.lengths.start())?;
        if self.lengths.start() < self.lengths.end() { write!(f, "..{}", self.lengths.end()) } else { Ok(()) }
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
        let (mut word_ids, mut label_ids) = (Renumbered::default(), Renumbered::default());
        let mut labels = Vec::new();
        for length in self.lengths.clone() {
            let mut sequence = vec![0; length as usize];
            loop {
                self.label(&sequence, &mut labels);
                words.extend(sequence.iter().map(|&x| word_ids.id(x, || vocabulary.add(&self.letter(x)))));
                classes.extend(labels.iter().map(|&y| Some(label_ids.id(y, || names.add(&self.label_name(y))))));
                offsets.push(words.len());
                if !next(&mut sequence, self.alphabet) {
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
        })
    }

    fn refuse_too_many(&self) -> Result<()> {
        let mut tokens: u128 = 0;
        for length in self.lengths.clone() {
            let sequences = u128::from(self.alphabet).saturating_pow(length);
            tokens = tokens.saturating_add(sequences.saturating_mul(length.into()));
            if tokens > MOST_TOKENS {
                let exact = length == *self.lengths.end() && tokens < u128::MAX;
                let least = if exact { "" } else { "at least " };
                let what = format!("{self} would have {least}{tokens} tokens, more than {MOST_TOKENS}");
                return Err(Error::too_large(what, "take a smaller alphabet or shorter sequences"));
            }
        }
        Ok(())
    }

    /// The word of letter `x`.
    fn letter(&self, x: u32) -> String {
        if self.kind == TaskKind::Dyck {
            let closing = x % 2 == 1;
            return match "()[]{}<>".chars().nth(x as usize) {
                Some(bracket) => bracket.to_string(),
                None => format!("{}{}", if closing { ')' } else { '(' }, x / 2 + 1),
            };
        }
        match u8::try_from(x) {
            Ok(x @ 0..26) => char::from(b'a' + x).to_string(),
            _ => format!("t{x}"),
        }
    }

    /// The name of label `y`, as [`Task::label`] numbers them.
    fn label_name(&self, y: u32) -> String {
        match self.kind {
            TaskKind::Shift if y == self.alphabet => "^".to_owned(),
            TaskKind::Copy | TaskKind::Reverse | TaskKind::Shift | TaskKind::Sort | TaskKind::Majority => {
                self.letter(y)
            }
            TaskKind::Histogram => y.to_string(),
            TaskKind::Parity => ["even", "odd"][y as usize].to_owned(),
            TaskKind::Pattern => ["no", "yes"][y as usize].to_owned(),
            TaskKind::Dyck => ["valid", "open", "broken"][y as usize].to_owned(),
        }
    }

    /// The labels of a sequence of letters.
    fn label(&self, x: &[u32], labels: &mut Vec<u32>) {
        const A: u32 = 0;
        const B: u32 = 1;
        let count = |letter: u32| x.iter().filter(|&&other| other == letter).count() as u32;
        labels.clear();
        match self.kind {
            TaskKind::Copy => labels.extend(x),
            TaskKind::Reverse => labels.extend(x.iter().rev()),
            TaskKind::Shift => {
                labels.push(self.alphabet);
                labels.extend(&x[..x.len() - 1]);
            }
            TaskKind::Sort => {
                labels.extend(x);
                labels.sort_unstable();
            }
            TaskKind::Histogram => labels.extend(x.iter().map(|&letter| count(letter))),
            TaskKind::Majority => {
                // The first of equals in the alphabet: the least letter of those with the largest count.
                let winner = x.iter().copied().min_by_key(|&letter| (std::cmp::Reverse(count(letter)), letter));
                labels.extend(x.iter().map(|_| winner.expect("a sequence has a token")));
            }
            TaskKind::Parity => labels.resize(x.len(), count(B) % 2),
            TaskKind::Pattern => labels.extend((0..x.len()).map(|k| {
                let starts = x[k] == A && x.get(k + 1) == Some(&B);
                let ends = x[k] == B && k > 0 && x[k - 1] == A;
                u32::from(starts || ends)
            })),
            TaskKind::Dyck => dyck(x, labels),
        }
    }
}

/// Whether each prefix is a Dyck word (0), the start of one (1), or neither (2). Bracket `2k` opens, `2k + 1` closes.
fn dyck(x: &[u32], labels: &mut Vec<u32>) {
    let mut open = Vec::new();
    let mut broken = false;
    for &bracket in x {
        if bracket % 2 == 0 {
            open.push(bracket);
        } else {
            broken |= open.pop() != Some(bracket - 1);
        }
        labels.push(match (broken, open.is_empty()) {
            (true, _) => 2,
            (false, false) => 1,
            (false, true) => 0,
        });
    }
}

/// Moves on to the next sequence in the order of a dictionary; false after the last.
fn next(sequence: &mut [u32], alphabet: u32) -> bool {
    for letter in sequence.iter_mut().rev() {
        *letter += 1;
        if *letter < alphabet {
            return true;
        }
        *letter = 0;
    }
    false
}

/// Ids by number, so that a name is made and looked up once.
#[derive(Default)]
struct Renumbered(Vec<Option<u32>>);

impl Renumbered {
    fn id(&mut self, number: u32, add: impl FnOnce() -> u32) -> u32 {
        let number = number as usize;
        if self.0.len() <= number {
            self.0.resize(number + 1, None);
        }
        *self.0[number].get_or_insert_with(add)
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
        for (name, _) in KINDS {
            let one = needs_no_positions(&format!("task:{name}:alphabet=4,length=4"));
            let many = needs_no_positions(&format!("task:{name}:alphabet=4,length=1..4"));
            let expected = match name {
                "copy" | "majority" => (true, true),
                "histogram" | "parity" => (true, false),
                _ => (false, false),
            };
            assert_eq!((one, many), expected, "{name}");
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
    }

    #[test]
    fn errors_say_what_is_wrong_and_what_would_help() {
        let shape = "write task:NAME:alphabet=K,length=L or length=A..B";
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
        ];
        for (text, expected) in cases {
            let error = text.parse::<Task>().unwrap().dataset().unwrap_err().to_string();
            assert!(error.starts_with(text) && error.contains(expected), "{error}");
        }
    }
}
