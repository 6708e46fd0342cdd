//! Synthetic tasks, `task:NAME:alphabet=K,length=L` or `length=A..B`: all sequences over K letters, shorter ones first, then in
//! the order of a dictionary.

use super::{Alphabet, Dataset, Labels, Names};
use crate::error::{Error, Result};
use crate::read::bytes;

/// No task has more tokens.
const MOST_TOKENS: u64 = 50_000_000;

pub(super) fn open(text: &str) -> Result<Dataset> {
    let help =
        "write task:NAME:alphabet=K,length=L or length=A..B with a task that exists, of at most 50 million tokens";
    let task = parse(text).ok_or_else(|| Error::new(text, "this is not a synthetic task", help))?;
    Ok(task.dataset())
}

struct Task<'a> {
    name: &'a str,
    letters: u64,
    shortest: u32,
    longest: u32,
}

fn parse(text: &str) -> Option<Task<'_>> {
    let (name, options) = text.strip_prefix("task:")?.split_once(':')?;
    let known = ["copy", "reverse", "shift", "sort", "histogram", "majority", "parity", "pattern", "dyck"];
    let (mut letters, mut lengths) = (None, None);
    for option in options.split(',') {
        let (key, value) = option.split_once('=')?;
        let before = match key {
            "alphabet" => letters.replace(value),
            "length" => lengths.replace(value),
            _ => return None,
        };
        if before.is_some() {
            return None;
        }
    }
    let letters: u64 = letters?.parse::<u32>().ok()?.into();
    let (shortest, longest) = lengths?.split_once("..").unwrap_or((lengths?, lengths?));
    let (shortest, longest) = (shortest.parse().ok()?, longest.parse().ok()?);
    let sound = known.contains(&name) && letters > 0 && 0 < shortest && shortest <= longest;
    if !sound || (name == "dyck" && letters % 2 == 1) {
        return None;
    }
    let mut tokens = 0_u64;
    for length in shortest..=longest {
        tokens = tokens.checked_add(letters.checked_pow(length)?.checked_mul(length.into())?)?;
        if tokens > MOST_TOKENS {
            return None;
        }
    }
    Some(Task { name, letters, shortest, longest })
}

impl Task<'_> {
    fn dataset(&self) -> Dataset {
        let length = if self.shortest == self.longest { String::new() } else { format!("..{}", self.longest) };
        let name = format!("task:{}:alphabet={},length={}{length}", self.name, self.letters, self.shortest);
        let mut dataset = Dataset::empty(&name, Alphabet::Words(vec![]), Labels::None);
        dataset.hash = bytes::hash(name.as_bytes());
        let (mut words, mut labels, mut classes) = (Names::default(), Names::default(), Vec::new());
        for length in self.shortest..=self.longest {
            for number in 0..self.letters.pow(length) {
                // The digits of the number, most significant first, are the letters.
                let letters: Vec<u64> =
                    (0..length).rev().map(|k| number / self.letters.pow(k) % self.letters).collect();
                dataset.ids.extend(letters.iter().map(|&letter| words.id(&self.letter(letter))));
                classes.extend((0..letters.len()).map(|at| labels.id(&self.label(&letters, at))));
                dataset.offsets.push(dataset.ids.len());
            }
        }
        dataset.alphabet = Alphabet::Words(words.names);
        dataset.labels = Labels::Classes(classes, labels.names);
        dataset
    }

    fn letter(&self, x: u64) -> String {
        if self.name == "dyck" {
            let pair = ["()", "[]", "{}", "<>"].get(x as usize / 2);
            let bracket = |pair: &str| pair.chars().nth(x as usize % 2).map(String::from).unwrap_or_default();
            return pair.map_or_else(|| format!("{}{}", bracket("()"), x / 2 + 1), |pair| bracket(pair));
        }
        if x < 26 { char::from(b'a' + x as u8).to_string() } else { format!("t{x}") }
    }

    /// The label of one token of a sequence.
    fn label(&self, letters: &[u64], at: usize) -> String {
        let own = letters[at];
        let count = |letter: u64| letters.iter().filter(|&&x| x == letter).count();
        match self.name {
            "copy" => self.letter(own),
            "reverse" => self.letter(letters[letters.len() - 1 - at]),
            "shift" => at.checked_sub(1).map_or_else(|| "^".into(), |before| self.letter(letters[before])),
            "sort" => {
                let mut sorted = letters.to_vec();
                sorted.sort_unstable();
                self.letter(sorted[at])
            }
            "histogram" => count(own).to_string(),
            "majority" => {
                let most = letters.iter().map(|&x| count(x)).max();
                let winner = letters.iter().copied().filter(|&x| Some(count(x)) == most).min();
                self.letter(winner.unwrap_or(0))
            }
            "parity" => if count(1) % 2 == 0 { "even" } else { "odd" }.into(),
            "pattern" => {
                let pair = |first: usize| letters.get(first..first + 2) == Some(&[0, 1]);
                let part = pair(at) || at > 0 && pair(at - 1);
                if part { "yes" } else { "no" }.into()
            }
            _ => brackets(&letters[..=at]).into(),
        }
    }
}

/// What a prefix of brackets is: even letters open, the odd one after each closes it.
fn brackets(prefix: &[u64]) -> &'static str {
    let mut open = Vec::new();
    for &x in prefix {
        if x % 2 == 0 {
            open.push(x + 1);
        } else if open.pop() != Some(x) {
            return "broken";
        }
    }
    if open.is_empty() { "valid" } else { "open" }
}
