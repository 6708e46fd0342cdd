//! The canonical form of a dataset: one line of JSON per sequence, the same bytes for the same data from any container.
//! Its hash is the hash of the dataset. The rules are those of docs/format.md; Python's `json.dumps` keeps them too.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{Dataset, Labels, Names, Tokens, Vocabulary, Written};

impl Dataset {
    /// Writes the canonical form.
    ///
    /// ```
    /// use monolayer::data::{Dataset, Format};
    /// let data = Dataset::read("f", Format::Conll, "a X\r\n\"  Y\r\n".as_bytes())?;
    /// let mut bytes = Vec::new();
    /// data.write_canonical(&mut bytes).unwrap();
    /// assert_eq!(bytes, b"{\"tokens\":[\"a\",\"\\\"\"],\"labels\":[\"X\",\"Y\"]}\n");
    /// # Ok::<(), monolayer::Error>(())
    /// ```
    pub fn write_canonical(&self, out: &mut impl Write) -> io::Result<()> {
        let (tokens, labels) = (self.token_texts(), self.label_texts());
        let mut line = String::new();
        for range in self.ranges() {
            line.clear();
            sequence(range, &tokens, labels.as_ref(), &mut line);
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    /// The BLAKE3 hash, in hexadecimal, of the canonical form.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        self.write_canonical(&mut hasher).expect("a hasher takes all bytes");
        hasher.finalize().to_hex().to_string()
    }

    fn token_texts(&self) -> Texts<'_> {
        match &self.tokens {
            Tokens::Words { word_ids, vocabulary } => {
                Texts::Words(word_ids, texts(vocabulary, self.written.tokens).into())
            }
            Tokens::Vectors { d, data } => Texts::Vectors(*d, data),
        }
    }

    fn label_texts(&self) -> Option<Texts<'_>> {
        match &self.labels {
            Labels::None => None,
            Labels::Classes { label_ids, names } => {
                Some(Texts::Classes(label_ids, texts(names, self.written.labels).into()))
            }
            Labels::Vectors { d, data } => Some(Texts::Vectors(*d, data)),
        }
    }
}

/// Appends the line of a sequence.
fn sequence(range: std::ops::Range<usize>, tokens: &Texts, labels: Option<&Texts>, line: &mut String) {
    line.push_str("{\"tokens\":");
    tokens.list(range.clone(), line);
    if let Some(labels) = labels {
        line.push_str(",\"labels\":");
        labels.list(range, line);
    }
    line.push_str("}\n");
}

/// The words and classes of a dataset as its canonical form has them.
pub struct CanonicalNames {
    /// The text of each word.
    pub words: Vec<String>,
    /// The text of each label.
    pub labels: Vec<String>,
}

impl CanonicalNames {
    /// The words and labels, as they were written.
    pub fn new(words: &Vocabulary, labels: &Vocabulary, written: Written) -> Self {
        Self { words: texts(words, written.tokens), labels: texts(labels, written.labels) }
    }

    /// The canonical form of sequences, each by its range of words and labels.
    pub fn text(
        &self,
        words: &[u32],
        labels: &[Option<u32>],
        ranges: impl Iterator<Item = std::ops::Range<usize>>,
    ) -> String {
        let words = Texts::Words(words, Cow::Borrowed(&self.words));
        let labels = Texts::Classes(labels, Cow::Borrowed(&self.labels));
        let mut text = String::new();
        ranges.for_each(|range| sequence(range, &words, Some(&labels), &mut text));
        text
    }
}

/// Tokens or labels, ready to be written.
enum Texts<'a> {
    /// An id each, and the text of each id.
    Words(&'a [u32], Cow<'a, [String]>),
    /// The same for labels, where some may be free.
    Classes(&'a [Option<u32>], Cow<'a, [String]>),
    /// Their dimension and entries.
    Vectors(usize, &'a [f64]),
}

impl Texts<'_> {
    fn list(&self, range: std::ops::Range<usize>, line: &mut String) {
        line.push('[');
        for (i, t) in range.enumerate() {
            line.push_str(if i == 0 { "" } else { "," });
            match self {
                Self::Words(ids, texts) => line.push_str(&texts[ids[t] as usize]),
                Self::Classes(ids, texts) => line.push_str(ids[t].map_or("null", |id| &texts[id as usize])),
                Self::Vectors(d, data) => {
                    let numbers: Vec<String> = data[t * d..(t + 1) * d].iter().map(|&x| number(x)).collect();
                    line.push_str(&format!("[{}]", numbers.join(",")));
                }
            }
        }
        line.push(']');
    }
}

/// Names as JSON.
fn texts(names: &Vocabulary, written: Names) -> Vec<String> {
    let text = |name: &String| match written {
        Names::Integers => name.clone(),
        Names::Strings => quoted(name),
    };
    names.names().iter().map(text).collect()
}

/// A JSON string with no more escapes than JSON asks for.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A finite number as Python's `repr` writes it: the shortest digits that read back as the same number.
fn number(x: f64) -> String {
    // Negative zero becomes zero.
    let x = x + 0.0;
    let shortest = format!("{x:e}");
    let places = shortest.bytes().take_while(|&b| b != b'e').filter(u8::is_ascii_digit).count() - 1;
    // Where two decimals of this length are equally near, the library's shortest form takes the upper one. Rounding to so
    // many places takes the even one, and is the nearest in all other cases; just above a power of two, where numbers lie
    // denser below, it may belong to another number.
    let rounded = format!("{x:.places$e}");
    let text = if rounded.parse() == Ok(x) { rounded } else { shortest };
    let (mantissa, exponent) = text.split_once('e').expect("this format has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is an integer");
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |mantissa| ("-", mantissa));
    let digits = mantissa.replace('.', "");
    match exponent {
        -4..=-1 => format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1)),
        0..=15 => {
            let whole = exponent.unsigned_abs() as usize + 1;
            let digits = format!("{digits:0<whole$}");
            let (whole, fraction) = digits.split_at(whole);
            format!("{sign}{whole}.{}", if fraction.is_empty() { "0" } else { fraction })
        }
        _ => format!("{sign}{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Format;
    use proptest::prelude::*;

    fn canonical(format: Format, bytes: &[u8]) -> String {
        let data = Dataset::read("f", format, bytes).unwrap();
        let mut out = Vec::new();
        data.write_canonical(&mut out).unwrap();
        assert_eq!(data.hash(), blake3::hash(&out).to_hex().as_str());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_container_changes_nothing() {
        let expected = "{\"tokens\":[\"a\",\"b\"],\"labels\":[\"X\",\"Y\"]}\n{\"tokens\":[\"a\"],\"labels\":[\"Y\"]}\n";
        for text in [
            "a X\nb Y\n\na Y\n",
            "\u{feff}-DOCSTART- O\r\n\r\n\r\na NN X\r\nb\tVB  Y\r\n\r\n \r\na NN Y",
            "\na X\nb Y\n-DOCSTART-\na Y\n\n\n",
        ] {
            assert_eq!(canonical(Format::Conll, text.as_bytes()), expected, "{text:?}");
        }
        for text in [
            expected,
            "\u{feff}\r\n{\"labels\": [\"X\", \"\\u0059\"], \"tokens\": [\"\\u0061\", \"b\"]}\r\n\n{\"tokens\":[\"a\"],\"labels\":[\"Y\"]}",
        ] {
            assert_eq!(canonical(Format::JsonLines, text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn vectors_and_integers() {
        let text = "{\"tokens\": [[1, 0.10], [-0.0, 1E-7]], \"labels\": [7, -3]}";
        let expected = "{\"tokens\":[[1.0,0.1],[0.0,1e-07]],\"labels\":[7,-3]}\n";
        assert_eq!(canonical(Format::JsonLines, text.as_bytes()), expected);
        assert_eq!(canonical(Format::JsonLines, expected.as_bytes()), expected);
        let (tokens, labels) = ([1.0, 0.1, 0.0, 1e-7_f64], [7_i64, -3]);
        let header = br#"{"tokens":{"dtype":"F64","shape":[1,2,2],"data_offsets":[0,32]},"labels":{"dtype":"I64","shape":[1,2],"data_offsets":[32,48]}}"#;
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header);
        file.extend(tokens.iter().flat_map(|x| x.to_le_bytes()));
        file.extend(labels.iter().flat_map(|x| x.to_le_bytes()));
        assert_eq!(canonical(Format::Arrays, &file), expected);
    }

    #[test]
    fn integers_and_strings_stay_what_they_are() {
        let integers = "{\"tokens\":[-100,7],\"labels\":[\"7\",\"X\"]}\n";
        assert_eq!(canonical(Format::JsonLines, integers.as_bytes()), integers);
        assert_eq!(canonical(Format::Conll, b"a 7\n"), "{\"tokens\":[\"a\"],\"labels\":[\"7\"]}\n");
        let line = "{\"tokens\":[\"a\"],\"labels\":[7]}\n";
        assert_eq!(canonical(Format::JsonLines, line.as_bytes()), line);
        assert_eq!(canonical(Format::Conll, b"a\n"), "{\"tokens\":[\"a\"]}\n");
    }

    #[test]
    fn labels_that_may_be_anything_are_null() {
        assert_eq!(canonical(Format::Conll, b"a _\n_ X\n"), "{\"tokens\":[\"a\",\"_\"],\"labels\":[null,\"X\"]}\n");
        let integers = b"{\"tokens\":[\"a\",\"b\"],\"labels\":[-100,1]}";
        assert_eq!(canonical(Format::JsonLines, integers), "{\"tokens\":[\"a\",\"b\"],\"labels\":[null,1]}\n");
        let nulls = "{\"tokens\":[\"a\",\"b\"],\"labels\":[null,\"X\"]}\n{\"tokens\":[\"a\"],\"labels\":[null]}\n";
        assert_eq!(canonical(Format::JsonLines, nulls.as_bytes()), nulls);
        let strings = "{\"tokens\":[\"a\",\"b\"],\"labels\":[\"-100\",\"_\"]}\n";
        assert_eq!(canonical(Format::JsonLines, strings.as_bytes()), strings);
    }

    #[test]
    fn a_task_is_its_sequences() {
        let data = Dataset::open("task:shift:alphabet=1,length=1..2").unwrap();
        let lines = "{\"tokens\":[\"a\"],\"labels\":[\"^\"]}\n{\"tokens\":[\"a\",\"a\"],\"labels\":[\"^\",\"a\"]}\n";
        assert_eq!(data.hash(), blake3::hash(lines.as_bytes()).to_hex().as_str());
    }

    #[test]
    fn strings_have_the_fewest_escapes() {
        let text = "\"\\/\n\r\t\u{8}\u{c}\0\u{1f}\u{7f}é\u{2028}😀";
        assert_eq!(quoted(text), "\"\\\"\\\\/\\n\\r\\t\\b\\f\\u0000\\u001f\u{7f}é\u{2028}😀\"");
    }

    #[test]
    fn numbers_are_those_of_python() {
        for (x, text) in [
            (0.0, "0.0"),
            (-0.0, "0.0"),
            (1.0, "1.0"),
            (-12.5, "-12.5"),
            (0.1, "0.1"),
            (1e-4, "0.0001"),
            (-1.25e-4, "-0.000125"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (1e16, "1e+16"),
            (2.5e300, "2.5e+300"),
            (f64::from_bits(1), "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            // Two decimals of 17 digits are equally near to 2^-25 and 2^50 + 1/4.
            (2_f64.powi(-25), "2.9802322387695312e-08"),
            (2_f64.powi(50) + 0.25, "1125899906842624.2"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (f64::from(0.1_f32), "0.10000000149011612"),
        ] {
            assert_eq!(number(x), text);
        }
    }

    proptest! {
        #[test]
        fn numbers_read_back(x in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
            let text = number(x);
            prop_assert_eq!(text.parse::<f64>().unwrap(), x);
            // Python's form and the library's have as many digits.
            let digits = |text: &str| {
                let mantissa = text.split(['e', 'E']).next().unwrap_or("").replace(['.', '-'], "");
                mantissa.trim_start_matches('0').trim_end_matches('0').len()
            };
            prop_assert_eq!(digits(&text), digits(&format!("{x:e}")));
        }
    }
}
