//! The rules of synthetic tasks: what the letters are called, and which label each token has.

use crate::arithmetic::gcd;

/// What a task asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskKind {
    Copy,
    Reverse,
    /// The letter so many places before.
    Shift(usize),
    Sort,
    Histogram,
    Majority,
    Parity,
    Count,
    Length,
    FirstOccurrence,
    FracPrevs,
    Pattern,
    Pattern3,
    Dyck,
}

pub(super) const KINDS: [(&str, TaskKind); 15] = [
    ("copy", TaskKind::Copy),
    ("reverse", TaskKind::Reverse),
    ("shift", TaskKind::Shift(1)),
    ("shift-2", TaskKind::Shift(2)),
    ("sort", TaskKind::Sort),
    ("histogram", TaskKind::Histogram),
    ("majority", TaskKind::Majority),
    ("parity", TaskKind::Parity),
    ("count", TaskKind::Count),
    ("length", TaskKind::Length),
    ("first-occurrence", TaskKind::FirstOccurrence),
    ("frac-prevs", TaskKind::FracPrevs),
    ("pattern", TaskKind::Pattern),
    ("pattern-3", TaskKind::Pattern3),
    ("dyck", TaskKind::Dyck),
];

const A: u32 = 0;
const B: u32 = 1;
const C: u32 = 2;
/// The label of a token that has no letter to be labeled with.
const NONE: u64 = u64::MAX;

impl TaskKind {
    /// Whether a token's label depends on its letter and the multiset of letters alone, not on their order.
    pub fn ignores_order(self) -> bool {
        use TaskKind::{Copy, Count, Histogram, Length, Majority, Parity};
        matches!(self, Copy | Histogram | Majority | Parity | Count | Length)
    }

    /// The word of letter `x`.
    pub fn letter(self, x: u32) -> String {
        if self == Self::Dyck {
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

    /// The name of label `y`, as [`TaskKind::label`] numbers them.
    pub fn label_name(self, y: u64) -> String {
        match self {
            _ if y == NONE => "^".to_owned(),
            Self::Copy | Self::Reverse | Self::Shift(_) | Self::Sort | Self::Majority => self.letter(y as u32),
            Self::Histogram | Self::Count | Self::Length => y.to_string(),
            Self::FracPrevs => match (y >> 32, y & u64::from(u32::MAX)) {
                (p, 1) => p.to_string(),
                (p, q) => format!("{p}/{q}"),
            },
            Self::Parity => ["even", "odd"][y as usize].to_owned(),
            Self::FirstOccurrence | Self::Pattern | Self::Pattern3 => ["no", "yes"][y as usize].to_owned(),
            Self::Dyck => ["valid", "open", "broken"][y as usize].to_owned(),
        }
    }

    /// The labels of a sequence of letters, as numbers of the task's own.
    pub fn label(self, x: &[u32], labels: &mut Vec<u64>) {
        let count = |letter: u32| x.iter().filter(|&&other| other == letter).count() as u64;
        let places = 0..x.len();
        labels.clear();
        match self {
            Self::Copy => labels.extend(x.iter().map(|&x| u64::from(x))),
            Self::Reverse => labels.extend(x.iter().rev().map(|&x| u64::from(x))),
            Self::Shift(by) => {
                labels.extend(places.map(|k| k.checked_sub(by).map_or(NONE, |before| x[before].into())));
            }
            Self::Sort => {
                labels.extend(x.iter().map(|&x| u64::from(x)));
                labels.sort_unstable();
            }
            Self::Histogram => labels.extend(x.iter().map(|&letter| count(letter))),
            Self::Majority => {
                // The first of equals in the alphabet: the least letter of those with the largest count.
                let winner = x.iter().copied().min_by_key(|&letter| (std::cmp::Reverse(count(letter)), letter));
                labels.resize(x.len(), winner.expect("a sequence has a token").into());
            }
            Self::Parity => labels.resize(x.len(), count(B) % 2),
            Self::Count => labels.resize(x.len(), count(A)),
            Self::Length => labels.resize(x.len(), x.len() as u64),
            Self::FirstOccurrence => labels.extend(places.map(|k| u64::from(!x[..k].contains(&x[k])))),
            Self::FracPrevs => {
                let mut found = 0;
                labels.extend((1_u64..).zip(x).map(|(all, &letter)| {
                    found += u64::from(letter == A);
                    let common = gcd(found, all);
                    ((found / common) << 32) | (all / common)
                }));
            }
            Self::Pattern => labels.extend(places.map(|k| {
                let starts = x[k] == A && x.get(k + 1) == Some(&B);
                let ends = x[k] == B && k > 0 && x[k - 1] == A;
                u64::from(starts || ends)
            })),
            Self::Pattern3 => labels.extend(places.map(|k| u64::from(x[..=k].ends_with(&[A, B, C])))),
            Self::Dyck => dyck(x, labels),
        }
    }
}

/// Whether each prefix is a Dyck word (0), the start of one (1), or neither (2). Bracket `2k` opens, `2k + 1` closes.
fn dyck(x: &[u32], labels: &mut Vec<u64>) {
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
