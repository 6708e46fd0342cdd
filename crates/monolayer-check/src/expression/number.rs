//! Decimal numbers: an interval around what was written, a point where that is a float.

use crate::interval::Interval;

/// The bytes of digits, a point, digits, and an exponent where one follows.
pub fn length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(0);
    if text[end..].starts_with('.') {
        end += 1 + digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    end
}

/// Reads a number.
pub fn read(text: &str) -> Result<Interval, String> {
    let shown: String = text.chars().take(40).collect();
    let nearest: f64 = text.parse().map_err(|_| format!("{shown:?} is not a number"))?;
    if !nearest.is_finite() {
        return Err(format!("the number {shown} is not finite"));
    }
    if decimal(text).is_some() && decimal(text) == decimal(&format!("{nearest:.1100e}")) {
        return Ok(Interval::point(nearest));
    }
    Ok(Interval::new(nearest.next_down().max(0.0), nearest.next_up()))
}

/// The significant digits of a decimal number and the exponent of the first: equal for equal numbers.
fn decimal(text: &str) -> Option<(String, i64)> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some((String::new(), 0));
    }
    let first = whole.len() as i64 - (digits.len() - significant.len()) as i64;
    let exponent = exponent.parse::<i64>().ok()?.checked_add(first)?;
    Some((significant.trim_end_matches('0').to_owned(), exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_points_and_others_are_enclosed() {
        for (text, exact) in [
            ("0.5", true),
            ("0.1", false),
            ("3", true),
            ("1e3", true),
            ("0.00", true),
            ("12.50e-1", true),
            ("9007199254740993", false),
            ("1e-400", false),
            ("0.1000000000000000055511151231257827021181583404541015625", true),
        ] {
            let read = read(text).unwrap();
            assert_eq!(read.lo == read.hi, exact, "{text}");
            assert!(read.contains(text.parse().unwrap()));
        }
        assert!(read("1e999").is_err() && read(".").is_err());
        assert!(read(&"9".repeat(60_000)).is_err());
        assert_eq!((length("2.5e-3x"), length("2e"), length("2e+x"), length(".5)")), (6, 1, 1, 2));
    }
}
