//! How wide a text is, near enough to set it: a drawing must not depend on the fonts of a machine.

/// The advance widths of the printable ASCII characters in DejaVu Sans, in thousandths of the size of the font.
#[rustfmt::skip]
const WIDTHS: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

/// About as wide as a capital letter: Greek letters and signs of mathematics.
const OTHER: u16 = 700;

/// The width of a text.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| (c as usize).checked_sub(32).and_then(|i| WIDTHS.get(i)).unwrap_or(&OTHER);
    text.chars().map(|c| f64::from(*width(c))).sum::<f64>() * size / 1000.0
}

#[cfg(test)]
mod tests {
    use super::text_width;

    #[test]
    fn widths_are_those_of_the_letters() {
        assert_eq!(text_width("", 10.0), 0.0);
        assert!(text_width("iii", 10.0) < text_width("mmm", 10.0) / 3.0);
        assert_eq!(text_width("κ~", 10.0), 7.0 + 8.38);
    }
}
