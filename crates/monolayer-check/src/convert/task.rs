//! Synthetic tasks, `task:NAME:alphabet=K,length=L` or `length=A..B`: all sequences over K letters, shorter ones first, then in
//! the order of a dictionary; with `order=sorted`, those of them that are sorted.

use monolayer_core::read::{Limits, Result, json};

use super::{Text, within};

/// The name of a task in its shortest form, and the canonical form of its data.
pub fn canonical(text: &str, limits: &Limits) -> Result<(String, String)> {
    let help = "this is not a synthetic task: write task:NAME:alphabet=K,length=L or length=A..B with a task that exists, and \
                order=sorted only where labels do not depend on the order";
    let task = parse(text).ok_or(help)?;
    within(task.longest.into(), "tokens in a sequence", "length", limits.length)?;
    within(task.tokens(), "tokens", "tokens", limits.tokens)?;
    Ok((task.shown(), task.text(limits)?))
}

struct Task<'a> {
    name: &'a str,
    letters: u64,
    shortest: u32,
    longest: u32,
    sorted: bool,
}

const TASKS: [&str; 15] = [
    "copy",
    "reverse",
    "shift",
    "shift-2",
    "sort",
    "histogram",
    "majority",
    "parity",
    "count",
    "length",
    "first-occurrence",
    "frac-prevs",
    "pattern",
    "pattern-3",
    "dyck",
];

/// The tasks whose labels do not depend on the order of the letters.
const SYMMETRIC: [&str; 6] = ["copy", "histogram", "majority", "parity", "count", "length"];

fn parse(text: &str) -> Option<Task<'_>> {
    let (name, options) = text.strip_prefix("task:")?.split_once(':')?;
    let (mut letters, mut lengths, mut order) = (None, None, None);
    for option in options.split(',') {
        let (key, value) = option.split_once('=')?;
        let before = match key {
            "alphabet" => letters.replace(value),
            "length" => lengths.replace(value),
            "order" => order.replace(value),
            _ => return None,
        };
        if before.is_some() {
            return None;
        }
    }
    let letters: u64 = letters?.parse::<u32>().ok()?.into();
    let (shortest, longest) = lengths?.split_once("..").unwrap_or((lengths?, lengths?));
    let (shortest, longest) = (shortest.parse().ok()?, longest.parse().ok()?);
    let sorted = order.is_some();
    if sorted && (order != Some("sorted") || !SYMMETRIC.contains(&name)) {
        return None;
    }
    let sound = TASKS.contains(&name) && letters > 0 && 0 < shortest && shortest <= longest;
    if !sound || (name == "dyck" && letters % 2 == 1) {
        return None;
    }
    Some(Task { name, letters, shortest, longest, sorted })
}

impl Task<'_> {
    fn shown(&self) -> String {
        let length = if self.shortest == self.longest { String::new() } else { format!("..{}", self.longest) };
        let order = if self.sorted { ",order=sorted" } else { "" };
        format!("task:{}:alphabet={},length={}{length}{order}", self.name, self.letters, self.shortest)
    }

    /// How many tokens there are in all sequences; as good as infinite where that overflows.
    fn tokens(&self) -> u128 {
        let mut tokens = 0_u128;
        for length in self.shortest..=self.longest {
            let sequences = if self.sorted { self.multisets(length) } else { self.letters_pow(length) };
            let own = sequences.and_then(|n| n.checked_mul(length.into()));
            tokens = tokens.saturating_add(own.unwrap_or(u128::MAX));
            if tokens == u128::MAX {
                break;
            }
        }
        tokens
    }

    fn letters_pow(&self, length: u32) -> Option<u128> {
        u128::from(self.letters).checked_pow(length)
    }

    /// Multisets of so many letters: of `letters` + `length` - 1 places, those where one letter ends and the next begins.
    fn multisets(&self, length: u32) -> Option<u128> {
        let places = u128::from(self.letters) + u128::from(length) - 1;
        let chosen = u128::from(length).min(u128::from(self.letters) - 1);
        // Every quotient is whole: the first i factors over the first i numbers are a number of choices.
        (1..=chosen).try_fold(1_u128, |count, i| Some(count.checked_mul(places + 1 - i)? / i))
    }

    fn text(&self, limits: &Limits) -> Result<String> {
        let mut text = Text::new(limits);
        for length in self.shortest..=self.longest {
            let mut letters = vec![0; length as usize];
            loop {
                text.text.push_str("{\"tokens\":");
                text.list(letters.len(), |i, out| json::quote(&self.letter(letters[i]), out));
                text.text.push_str(",\"labels\":");
                text.list(letters.len(), |i, out| json::quote(&self.label(&letters, i), out));
                text.end()?;
                if !self.advance(&mut letters) {
                    break;
                }
            }
        }
        Ok(text.text)
    }

    /// The next sequence: the last letter that can go up does, and all behind it are as low as they may be.
    fn advance(&self, letters: &mut [u64]) -> bool {
        let Some(at) = letters.iter().rposition(|x| x + 1 < self.letters) else { return false };
        let raised = letters[at] + 1;
        letters[at] = raised;
        letters[at + 1..].fill(if self.sorted { raised } else { 0 });
        true
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
            "shift" | "shift-2" => {
                let by = if self.name == "shift" { 1 } else { 2 };
                at.checked_sub(by).map_or_else(|| "^".into(), |before| self.letter(letters[before]))
            }
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
            "count" => count(0).to_string(),
            "length" => letters.len().to_string(),
            "first-occurrence" => if letters.iter().position(|x| *x == own) == Some(at) { "yes" } else { "no" }.into(),
            "frac-prevs" => share(letters[..=at].iter().filter(|x| **x == 0).count(), at + 1),
            "pattern-3" => if at >= 2 && letters[at - 2..=at] == [0, 1, 2] { "yes" } else { "no" }.into(),
            "pattern" => {
                let pair = |first: usize| letters.get(first..first + 2) == Some(&[0, 1]);
                let part = pair(at) || at > 0 && pair(at - 1);
                if part { "yes" } else { "no" }.into()
            }
            _ => brackets(&letters[..=at]).into(),
        }
    }
}

/// A fraction in lowest terms; a whole number without its denominator.
fn share(part: usize, all: usize) -> String {
    let common = (1..=all).rev().find(|k| part.is_multiple_of(*k) && all.is_multiple_of(*k)).unwrap_or(1);
    let (part, all) = (part / common, all / common);
    if all == 1 { part.to_string() } else { format!("{part}/{all}") }
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
