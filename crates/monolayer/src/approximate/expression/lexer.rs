//! Text into words: numbers, names and signs, each with its place.

use std::ops::Range;

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use crate::arithmetic::Interval;
use crate::error::{Error, Result};

/// The longest text that is read.
const LONGEST: usize = 1 << 16;

/// Characters shown on either side of a mistake.
const SHOWN: usize = 50;

/// A number: the nearest float, and an enclosure of what was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Constant {
    /// The float nearest to it.
    pub nearest: f64,
    /// Contains it.
    pub exact: Interval,
}

impl Constant {
    /// A float, exactly.
    pub fn float(x: f64) -> Self {
        Self { nearest: x, exact: Interval::point(x) }
    }
}

/// A word of the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// A number.
    Number(Constant),
    /// A name.
    Name(String),
    /// One of `+ - * / ^ ( ) , ;`.
    Sign(char),
    /// The end of the text.
    End,
}

/// A word and the bytes it stands on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placed {
    /// The word.
    pub word: Word,
    /// Its bytes.
    pub span: Range<usize>,
}

/// All words of `text`, the last one [`Word::End`].
pub(super) fn words(text: &str) -> Result<Vec<Placed>> {
    if text.len() > LONGEST {
        let what = format!("the function is {} bytes of text", text.len());
        return Err(Error::too_large(what, format!("at most {LONGEST} are read; write a closure in Rust instead")));
    }
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let length = match first {
            _ if first.is_whitespace() => {
                at += first.len_utf8();
                continue;
            }
            '0'..='9' | '.' => number_length(&text[at..]),
            _ if first.is_alphabetic() || first == '_' => name_length(&text[at..]),
            '+' | '-' | '*' | '/' | '^' | '(' | ')' | ',' | ';' => 1,
            _ => return Err(strange(text, at, first)),
        };
        let span = at..at + length;
        let word = match first {
            '0'..='9' | '.' => Word::Number(number(text, &span)?),
            _ if first.is_alphabetic() || first == '_' => Word::Name(text[span.clone()].to_owned()),
            '*' if text[span.end..].starts_with('*') => return Err(strange(text, at, first)),
            _ => Word::Sign(first),
        };
        words.push(Placed { word, span });
        at += length;
    }
    words.push(Placed { word: Word::End, span: text.len()..text.len() });
    Ok(words)
}

/// A mistake at byte `at` of `text`.
pub(super) fn mistake(text: &str, at: usize, what: impl Into<String>, help: impl Into<String>) -> Error {
    let character = text[..at].chars().count();
    let first = character.saturating_sub(SHOWN);
    let shown: String =
        text.chars().skip(first).take(2 * SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let excerpt = format!("  {}\n  {}^", shown, " ".repeat(character - first));
    Error::Expression { character: character + 1, what: what.into(), help: help.into(), excerpt }
}

/// A character that means nothing here.
fn strange(text: &str, at: usize, found: char) -> Error {
    let help = match found {
        '*' | '²' | '³' => "powers are written x1^2",
        '×' | '·' | '⋅' => "products are written x1*x2",
        '−' | '–' => "write the minus sign of the keyboard, -",
        '÷' => "quotients are written x1/x2",
        'π' => "write pi",
        '[' | ']' | '{' | '}' => "only round parentheses are used; coordinates are written x1, not x[1]",
        '=' | '<' | '>' => "there are no comparisons; step(a - b) is 1 where a >= b and 0 elsewhere",
        '|' => "write abs(x1)",
        _ => "what may be written: numbers, names, + - * / ^ ( ) , ;",
    };
    let shown = if found == '*' { "**".to_owned() } else { found.to_string() };
    mistake(text, at, format!("{shown:?} means nothing here"), help)
}

fn name_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len())
}

/// The bytes of digits, a point, digits, and an exponent where one follows.
fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(0);
    if text[end..].starts_with('.') {
        end += 1 + digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

fn number(text: &str, span: &Range<usize>) -> Result<Constant> {
    let written = &text[span.clone()];
    let nearest: f64 = written
        .parse()
        .map_err(|_| mistake(text, span.start, format!("{written:?} is not a number"), "write digits, as in 0.5"))?;
    if nearest.is_infinite() {
        let what = format!("the number {} is not finite", shortened(written));
        return Err(mistake(text, span.start, what, format!("the largest float is {:e}", f64::MAX)));
    }
    let exact = if is_exact(written, nearest) {
        Interval::point(nearest)
    } else {
        Interval::new(nearest.next_down().max(0.0), nearest.next_up())
    };
    Ok(Constant { nearest, exact })
}

fn shortened(written: &str) -> &str {
    if written.len() > 20 { "written here" } else { written }
}

/// Whether the decimal number `written` is the float `nearest`, which is nearest to it.
fn is_exact(written: &str, nearest: f64) -> bool {
    let (mantissa, exponent) = written.split_once(['e', 'E']).unwrap_or((written, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() || nearest == 0.0 {
        return digits.is_empty();
    }
    // The number is about as large as a finite float that is not 0, so the power of ten is bounded by the text.
    let Ok(exponent) = exponent.parse::<i64>() else { return false };
    let (Ok(digits), Ok(float)) = (digits.parse::<IBig>(), RBig::try_from(nearest)) else { return false };
    let shift = exponent - part.len() as i64;
    let power = UBig::from(10_u8).pow(shift.unsigned_abs() as usize);
    let exact = if shift >= 0 { RBig::from(digits * IBig::from(power)) } else { RBig::from_parts(digits, power) };
    exact == float
}
