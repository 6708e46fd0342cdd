//! A number of a vector in canonical form: as Python's `repr` writes it.

/// Adds a finite number to a text: the shortest digits that read back as the same binary64, of several the nearest, of two
/// equally near the even one. Zero has no sign.
pub fn write(x: f64, out: &mut String) {
    let x = x + 0.0;
    let shortest = format!("{x:e}");
    let places = shortest.split('e').next().map_or(0, |m| m.bytes().filter(u8::is_ascii_digit).count()).max(1) - 1;
    // Formatting to so many places takes the even digit at a tie, where the shortest form takes the upper one. Next to a
    // power of two it may be the nearest decimal and yet read back as the number's neighbor.
    let even = format!("{x:.places$e}");
    let text = if even.parse() == Ok(x) { even } else { shortest };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    out.push_str(sign);
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        out.push_str(&format!("{mantissa}e{sign}{:02}", exponent.abs()));
        return;
    }
    let digits: Vec<char> = mantissa.chars().filter(|&c| c != '.').collect();
    // Digit i stands at the power exponent - i of ten; at least one on each side of the point.
    let last = (digits.len() as i32 - 1).max(exponent + 1);
    for i in exponent.min(0)..=last {
        out.push(usize::try_from(i).ok().and_then(|i| digits.get(i)).copied().unwrap_or('0'));
        if i == exponent {
            out.push('.');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_python() {
        for (x, text) in [
            (0.0, "0.0"),
            (-0.0, "0.0"),
            (1.0, "1.0"),
            (-10.0, "-10.0"),
            (-12.5, "-12.5"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (-1.25e-4, "-0.000125"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (123_456.789, "123456.789"),
            (1e15, "1000000000000000.0"),
            (9_007_199_254_740_992.0, "9007199254740992.0"),
            (1e16, "1e+16"),
            (2.5e300, "2.5e+300"),
            (f64::from_bits(1), "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            // Ties between two decimals of 17 digits.
            (2_f64.powi(-25), "2.9802322387695312e-08"),
            (2_f64.powi(50) + 0.25, "1125899906842624.2"),
            (2_f64.powi(50) + 0.75, "1125899906842624.8"),
        ] {
            let mut out = String::new();
            write(x, &mut out);
            assert_eq!(out, text);
            assert_eq!(out.parse::<f64>(), Ok(x));
        }
    }
}
