//! Synthetic tasks, `task:NAME:alphabet=K,length=L` or `length=A..B`: all sequences over K letters, shorter ones first, then in
//! the order of a dictionary.

use monolayer_core::read::{Limits, Result, json};

use super::{Text, within};

/// The name of a task in its shortest form, and the canonical form of its data.
pub fn canonical(text: &str, limits: &Limits) -> Result<(String, String)> {
    let help =
        "this is not a synthetic task: write task:NAME:alphabet=K,length=L or length=A..B with a task that exists";
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
    Some(Task { name, letters, shortest, longest })
}

impl Task<'_> {
    fn shown(&self) -> String {
        let length = if self.shortest == self.longest { String::new() } else { format!("..{}", self.longest) };
        format!("task:{}:alphabet={},length={}{length}", self.name, self.letters, self.shortest)
    }

    /// How many tokens there are in all sequences; as good as infinite where that overflows.
    fn tokens(&self) -> u128 {
        let mut tokens = 0_u128;
        for length in self.shortest..=self.longest {
            let own = u128::from(self.letters).checked_pow(length).and_then(|n| n.checked_mul(length.into()));
            tokens = tokens.saturating_add(own.unwrap_or(u128::MAX));
        }
        tokens
    }

    fn text(&self, limits: &Limits) -> Result<String> {
        let mut text = Text::new(limits);
        for length in self.shortest..=self.longest {
            for number in 0..self.letters.pow(length) {
                // The digits of the number, most significant first, are the letters.
                let letters: Vec<u64> =
                    (0..length).rev().map(|k| number / self.letters.pow(k) % self.letters).collect();
                text.text.push_str("{\"tokens\":");
                text.list(letters.len(), |i, out| json::quote(&self.letter(letters[i]), out));
                text.text.push_str(",\"labels\":");
                text.list(letters.len(), |i, out| json::quote(&self.label(&letters, i), out));
                text.end()?;
            }
        }
        Ok(text.text)
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
