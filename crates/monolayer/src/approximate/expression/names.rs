//! What names mean, and what a misspelled one may have meant.

use super::lexer::mistake;
use super::parse::{Aggregate, Unary};
use crate::error::Error;

/// What a name means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Name {
    Coordinate(usize),
    Own(usize),
    Itself,
    Place,
    OwnPlace,
    Pi,
    Unary(Unary),
    Aggregate(Aggregate),
}

const NAMES: [(&str, Name); 19] = [
    ("sum", Name::Aggregate(Aggregate::Sum)),
    ("mean", Name::Aggregate(Aggregate::Mean)),
    ("min", Name::Aggregate(Aggregate::Min)),
    ("max", Name::Aggregate(Aggregate::Max)),
    ("var", Name::Aggregate(Aggregate::Var)),
    ("sin", Name::Unary(Unary::Sin)),
    ("cos", Name::Unary(Unary::Cos)),
    ("tan", Name::Unary(Unary::Tan)),
    ("exp", Name::Unary(Unary::Exp)),
    ("log", Name::Unary(Unary::Log)),
    ("sqrt", Name::Unary(Unary::Sqrt)),
    ("abs", Name::Unary(Unary::Abs)),
    ("tanh", Name::Unary(Unary::Tanh)),
    ("sign", Name::Unary(Unary::Sign)),
    ("step", Name::Unary(Unary::Instruction)),
    ("pi", Name::Pi),
    ("self", Name::Itself),
    ("place", Name::Place),
    ("ownplace", Name::OwnPlace),
];

/// What `name` means for tokens of `dim` coordinates.
pub(super) fn meaning(name: &str, dim: usize) -> Option<Name> {
    let coordinate = |prefix: &str| numbered(name, prefix).filter(|k| (1..=dim).contains(k)).map(|k| k - 1);
    let listed = NAMES.iter().find(|(listed, _)| *listed == name).map(|(_, meaning)| *meaning);
    listed.or(coordinate("x").map(Name::Coordinate)).or(coordinate("own").map(Name::Own))
}

/// The number after `prefix`, without leading zeros.
fn numbered(name: &str, prefix: &str) -> Option<usize> {
    let digits = name.strip_prefix(prefix)?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if plain { digits.parse().ok() } else { None }
}

/// "x1" or "x1 to x4".
fn all_of(prefix: &str, dim: usize) -> String {
    if dim == 1 { format!("{prefix}1") } else { format!("{prefix}1 to {prefix}{dim}") }
}

/// Names of other languages, and how to say it here.
const ELSEWHERE: [(&str, &str); 19] = [
    ("ln", "the natural logarithm is log"),
    ("log2", "write log(x1)/log(2)"),
    ("log10", "write log(x1)/log(10)"),
    ("e", "write exp(1)"),
    ("pow", "powers are written x1^2"),
    ("avg", "write mean"),
    ("average", "write mean"),
    ("std", "write sqrt(var(x1))"),
    ("variance", "write var"),
    ("relu", "write max(x1, 0)"),
    ("sigmoid", "write 1/(1 + exp(-x1))"),
    ("softmax", "write exp(x1)/sum(exp(x1)), or softmax alone for the function of the zoo"),
    ("sgn", "write sign"),
    ("heaviside", "write step"),
    ("sinh", "write (exp(x1) - exp(-x1))/2"),
    ("cosh", "write (exp(x1) + exp(-x1))/2"),
    ("prod", "write exp(sum(log(x1))) where x1 > 0"),
    ("own", "the output token's coordinates are own1, own2 and so on"),
    ("n", "the number of tokens is sum(1)"),
];

/// The error for a name that means nothing.
pub(super) fn unknown(text: &str, at: usize, name: &str, dim: usize) -> Error {
    let out_of_range =
        ["x", "own"].into_iter().find(|&prefix| numbered(name, prefix).is_some() && name.len() > prefix.len());
    if let Some(prefix) = out_of_range {
        let what = format!("{name} with tokens of {dim} coordinate{}", if dim == 1 { "" } else { "s" });
        return mistake(text, at, what, format!("there is {}; set `dim` for more", all_of(prefix, dim)));
    }
    let lower = name.to_lowercase();
    let help = if let Some((_, help)) = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == lower) {
        (*help).to_owned()
    } else if let Some(close) = closest(&lower, dim) {
        format!("did you mean {close}?")
    } else {
        let functions: Vec<&str> = NAMES.iter().map(|(name, _)| *name).take(17).collect();
        format!("there is {}, {}, {}", all_of("x", dim), all_of("own", dim), functions.join(", "))
    };
    mistake(text, at, format!("unknown name {name:?}"), help)
}

/// The known name nearest to `name`.
fn closest(name: &str, dim: usize) -> Option<String> {
    let coordinates = (1..=dim.min(99)).flat_map(|k| [format!("x{k}"), format!("own{k}")]);
    closest_of(name, coordinates.chain(NAMES.iter().map(|(name, _)| (*name).to_owned())))
}

/// The one of `known` nearest to `name`, if it is at most two letters away and most letters agree.
pub(super) fn closest_of(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let letters = name.chars().count();
    let near = known.map(|known| (edits(name, &known), known)).min_by_key(|(edits, _)| *edits);
    near.filter(|(edits, _)| *edits <= 2 && 2 * edits <= letters.max(2)).map(|(_, known)| known)
}

/// Letters to insert, delete or replace to come from `a` to `b`.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
