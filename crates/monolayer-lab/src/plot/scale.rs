//! Axes: scales, ticks, and numbers for people.

use monolayer::data::thousands_apart;
use serde::{Deserialize, Serialize};

/// An axis: what is measured, in what unit, on which scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What is measured.
    pub label: String,
    /// In what: a unit, or what is counted.
    pub unit: String,
    /// Whether equal ratios are equally long.
    pub log: bool,
    /// From where to where; all that is drawn where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str, unit: &str) -> Self {
        Self { label: label.to_owned(), unit: unit.to_owned(), log: false, range: None }
    }

    /// A logarithmic axis.
    pub fn log(label: &str, unit: &str) -> Self {
        Self { log: true, ..Self::linear(label, unit) }
    }

    /// From where to where.
    #[must_use]
    pub fn between(mut self, low: f64, high: f64) -> Self {
        self.range = Some([low, high]);
        self
    }

    /// The label with its unit.
    pub fn text(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

/// Where values of an axis lie between 0 and 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    log: bool,
    low: f64,
    high: f64,
}

impl Scale {
    /// The scale of an axis on which some values are drawn.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.filter(|&v| v.is_finite() && !(axis.log && v <= 0.0)).collect();
        values.extend(axis.range.iter().flatten());
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = axis.range.map_or((low, high), |[low, high]| (low, high));
        let mut scale = match (low.is_finite(), axis.log) {
            (false, false) => Self { log: false, low: 0.0, high: 1.0 },
            (false, true) => Self { log: true, low: 0.0, high: 1.0 },
            (true, true) => Self { log: true, low: low.log10(), high: high.log10() },
            (true, false) => Self { log: false, low, high },
        };
        if scale.low >= scale.high {
            let half = if axis.log { 0.5 } else { scale.low.abs().max(1.0) / 2.0 };
            (scale.low, scale.high) = (scale.low - half, scale.high + half);
        }
        if axis.range.is_none() {
            let room = (scale.high - scale.low) * 0.04;
            (scale.low, scale.high) = (scale.low - room, scale.high + room);
        }
        scale
    }

    /// Where a value lies, from 0 to 1 within the range. What a logarithmic axis cannot show lies at its foot.
    pub(super) fn at(&self, value: f64) -> f64 {
        if self.log && value <= 0.0 {
            return 0.0;
        }
        ((if self.log { value.log10() } else { value }) - self.low) / (self.high - self.low)
    }

    /// Whether a value has a place on the scale, and not only at its foot.
    pub(super) fn shows(&self, value: f64) -> bool {
        !self.log || value > 0.0
    }

    /// The ends of the scale, in values or, on a logarithmic one, in their decimal logarithms.
    pub(super) fn ends(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// About `count` round values.
    pub(super) fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        if !self.log {
            return round_values(self.low, self.high, count).into_iter().map(|v| (v, number(v))).collect();
        }
        if self.high - self.low < 1.0 {
            // Less than a decade: values, not powers.
            let (low, high) = (10_f64.powf(self.low), 10_f64.powf(self.high));
            return round_values(low, high, count).into_iter().filter(|&v| v > 0.0).map(|v| (v, number(v))).collect();
        }
        if self.high - self.low < 3.0 {
            // A few decades: halves between the powers.
            let decades = self.low.floor() as i32..=self.high.floor() as i32;
            let values = decades.flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * 10_f64.powi(e)));
            let inside = |v: &f64| (self.low..=self.high).contains(&v.log10());
            let all: Vec<f64> = values.filter(inside).collect();
            let few = all.iter().copied().filter(|v| v.log10().fract() == 0.0).collect();
            let chosen: Vec<f64> = if all.len() <= count + 2 { all } else { few };
            return chosen.into_iter().map(|v| (v, number(v))).collect();
        }
        let step = ((self.high - self.low) / count as f64).ceil().max(1.0);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|i| i as f64 * step).map(|e| (10_f64.powf(e), power(e as i32))).collect()
    }
}

/// About `count` multiples of 1, 2 or 5 times a power of ten.
pub(crate) fn round_values(low: f64, high: f64, count: usize) -> Vec<f64> {
    let rough = (high - low) / count as f64;
    let decade = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|&s| s >= rough * 0.999).unwrap_or(decade);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    // Through a decimal text, so that 3 steps of 0.1 are 0.3.
    (first..=last).map(|i| format!("{:.12e}", i as f64 * step).parse().unwrap_or(0.0)).collect()
}

/// A power of ten; 0.001 to 1000 as they are.
fn power(exponent: i32) -> String {
    match exponent {
        0..=3 => 10_i32.pow(exponent as u32).to_string(),
        -3..0 => format!("{:.*}", -exponent as usize, 10_f64.powi(exponent)),
        _ => format!("10{}", superscript(exponent)),
    }
}

fn superscript(n: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => char::from_u32('⁰' as u32 + c as u32 - '0' as u32).unwrap_or(c),
    };
    n.to_string().chars().map(digit).collect()
}

/// A number for people: four digits, thousands apart, powers of ten where it is very large or small.
pub fn number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || !x.is_finite() {
        return if x == 0.0 { "0".to_owned() } else { format!("{x}") };
    }
    if !(1e-3..1e7).contains(&size) {
        let text = format!("{x:.3e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = shorten(mantissa).replace('-', "−");
        let exponent = superscript(exponent.parse().unwrap_or(0));
        return match mantissa.as_str() {
            "1" => format!("10{exponent}"),
            "−1" => format!("−10{exponent}"),
            _ => format!("{mantissa}×10{exponent}"),
        };
    }
    let digits = (3 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{size:.digits$}");
    let text = shorten(&text);
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
    let sign = if x < 0.0 { "−" } else { "" };
    let fraction = fraction.map_or(String::new(), |f| format!(".{f}"));
    format!("{sign}{}{fraction}", thousands_apart(whole))
}

/// Without zeros at the end of a fraction.
fn shorten(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        let shown = [0.0, 1.0, 203_621.0, 0.98721, -2.5, 1e-7, 1.6e23, -4.25e-5, 0.3, 1234.6].map(number);
        let wanted = ["0", "1", "203,621", "0.9872", "−2.5", "10⁻⁷", "1.6×10²³", "−4.25×10⁻⁵", "0.3", "1,235"];
        assert_eq!(shown, wanted.map(str::to_owned));
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::linear("share", "tokens").between(0.0, 1.0);
        let texts: Vec<String> = Scale::new(&axis, std::iter::empty()).ticks(5).into_iter().map(|t| t.1).collect();
        assert_eq!(texts, ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        let axis = Axis::log("bits", "bits").between(1.0, 1e23);
        let texts: Vec<String> = Scale::new(&axis, std::iter::empty()).ticks(6).into_iter().map(|t| t.1).collect();
        assert_eq!(texts, ["1", "10⁴", "10⁸", "10¹²", "10¹⁶", "10²⁰"]);
    }

    #[test]
    fn what_a_logarithm_cannot_show_lies_at_the_foot() {
        let scale = Scale::new(&Axis::log("gap", "1"), [1e-3, 1.0].into_iter());
        assert_eq!((scale.at(0.0), scale.shows(0.0), scale.shows(1e-3)), (0.0, false, true));
        assert!(scale.at(1e-3) > 0.0 && scale.at(1.0) < 1.0);
    }

    #[test]
    fn a_single_value_has_room_around_it() {
        for axis in [Axis::log("x", "1"), Axis::linear("x", "1")] {
            let at = Scale::new(&axis, [5.0].into_iter()).at(5.0);
            assert!((at - 0.5).abs() < 1e-9, "{at}");
        }
    }
}
