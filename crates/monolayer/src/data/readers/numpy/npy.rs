//! One NumPy array: a header that is a Python dictionary, then the numbers.

use serde_json::Value;

/// An array: its shape and its entries, row-major.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NumpyArray {
    pub(crate) shape: Vec<usize>,
    pub(crate) entries: Entries,
}

/// The entries of an array.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entries {
    Integers(Vec<i128>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

impl NumpyArray {
    /// Entry `i` as JSON has it. Integers beyond 64 bits do not occur.
    pub(crate) fn value(&self, i: usize) -> Value {
        match &self.entries {
            Entries::Integers(list) => {
                let k = list[i];
                i64::try_from(k).map_or_else(|_| Value::from(k as u64), Value::from)
            }
            // What is not finite has no JSON: it becomes null, which is refused as a number.
            Entries::Floats(list) => Value::from(list[i]),
            Entries::Texts(list) => Value::from(list[i].as_str()),
        }
    }

    /// What kind of entries these are, for people.
    pub(crate) fn kind(&self) -> &'static str {
        match self.entries {
            Entries::Integers(_) => "integers",
            Entries::Floats(_) => "floats",
            Entries::Texts(_) => "texts",
        }
    }
}

/// Reads an array, or says what is wrong and what would help.
pub(crate) fn parse(bytes: &[u8]) -> Result<NumpyArray, (String, &'static str)> {
    let damaged = |what: &str| (format!("not a NumPy array: {what}"), "write it with numpy.save or numpy.savez");
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or_else(|| damaged("it does not start as one"))?;
    let (length, rest) = match rest {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        _ => return Err(damaged("a version that is not known")),
    };
    let header = rest.get(..length).ok_or_else(|| damaged("it ends in its header"))?;
    let header = std::str::from_utf8(header).map_err(|_| damaged("a header that is not text"))?;
    let kind = text_of(header, "descr").ok_or_else(|| damaged("no type in its header"))?;
    if kind.contains('O') || kind.contains('(') {
        let help = "give all sequences one length with padding, and the option `padding`; or write JSON lines";
        return Err(("an array of Python objects, which are pickled".to_owned(), help));
    }
    let columns_first = after(header, "fortran_order").is_some_and(|rest| rest.starts_with("True"));
    let shape = shape_of(header).ok_or_else(|| damaged("no shape in its header"))?;
    let count = shape
        .iter()
        .try_fold(1_usize, |n, &size| n.checked_mul(size))
        .ok_or_else(|| damaged("a shape beyond all bounds"))?;
    if columns_first && shape.len() > 1 {
        let help = "save it with numpy.ascontiguousarray around it";
        return Err(("an array in Fortran order".to_owned(), help));
    }
    let entries = entries(kind, &rest[length..], count)
        .ok_or_else(|| damaged(&format!("its type {kind:?} is not read, or its size is not that of its shape")))?;
    Ok(NumpyArray { shape, entries })
}

/// What follows a key of the header.
fn after<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}'"))?;
    rest.trim_start().strip_prefix(':').map(str::trim_start)
}

fn text_of<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let rest = after(header, key)?;
    // A list stands for an array of records.
    let Some(rest) = rest.strip_prefix('\'') else { return Some("(records)") };
    rest.split_once('\'').map(|(text, _)| text)
}

fn shape_of(header: &str) -> Option<Vec<usize>> {
    let (inner, _) = after(header, "shape")?.strip_prefix('(')?.split_once(')')?;
    inner.split(',').map(str::trim).filter(|size| !size.is_empty()).map(|size| size.parse().ok()).collect()
}

/// The entries of a type. Their bytes must be as many as their number says.
fn entries(kind: &str, bytes: &[u8], count: usize) -> Option<Entries> {
    let big = kind.starts_with('>');
    let kind = kind.trim_start_matches(['<', '>', '|', '=']);
    let (letter, size) = kind.split_at_checked(1)?;
    let size: usize = size.parse().ok()?;
    let bytes_each = if letter == "U" { size.checked_mul(4)? } else { size };
    if bytes_each == 0 || bytes.len() != count.checked_mul(bytes_each)? {
        return None;
    }
    let ordered = |chunk: &[u8]| -> u64 {
        let mut word = [0; 8];
        let end = chunk.len();
        (0..end).for_each(|i| word[i] = chunk[if big { end - 1 - i } else { i }]);
        u64::from_le_bytes(word)
    };
    let chunks = bytes.chunks_exact(bytes_each);
    Some(match (letter, size) {
        ("b", 1) | ("u", 1 | 2 | 4 | 8) => Entries::Integers(chunks.map(|chunk| ordered(chunk).into()).collect()),
        ("i", 1 | 2 | 4 | 8) => {
            let unused = 64 - 8 * size as u32;
            Entries::Integers(chunks.map(|chunk| ((ordered(chunk) << unused) as i64 >> unused).into()).collect())
        }
        ("f", 2) => Entries::Floats(chunks.map(|chunk| crate::arithmetic::binary16(ordered(chunk) as u16)).collect()),
        ("f", 4) => Entries::Floats(chunks.map(|chunk| f32::from_bits(ordered(chunk) as u32).into()).collect()),
        ("f", 8) => Entries::Floats(chunks.map(|chunk| f64::from_bits(ordered(chunk))).collect()),
        ("U", _) => {
            let text = |chunk: &[u8]| -> Option<String> {
                let letters = chunk.chunks_exact(4).map(|letter| char::from_u32(ordered(letter) as u32));
                letters.collect::<Option<String>>().map(|text| text.trim_end_matches('\0').to_owned())
            };
            Entries::Texts(chunks.map(text).collect::<Option<_>>()?)
        }
        ("S", _) => {
            let text = |chunk: &[u8]| -> Option<String> {
                let text = std::str::from_utf8(chunk).ok()?;
                Some(text.trim_end_matches('\0').to_owned())
            };
            Entries::Texts(chunks.map(text).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(kind: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.bytes());
        file.extend(bytes);
        file
    }

    #[test]
    fn every_type_of_number() {
        let integers = |kind: &str, bytes: &[u8]| match parse(&file(kind, "(1,)", bytes)).unwrap().entries {
            Entries::Integers(list) => list[0],
            other => panic!("{other:?}"),
        };
        assert_eq!(integers("|i1", &[0xFF]), -1);
        assert_eq!(integers("|u1", &[0xFF]), 255);
        assert_eq!(integers("|b1", &[1]), 1);
        assert_eq!(integers("<i2", &[0, 0x80]), -32768);
        assert_eq!(integers(">i4", &[0xFF, 0xFF, 0xFF, 0x9C]), -100);
        assert_eq!(integers("<i8", &i64::MIN.to_le_bytes()), i64::MIN.into());
        assert_eq!(integers("<u8", &[0xFF; 8]), u64::MAX.into());
        let array = parse(&file(">f4", "(1, 2)", &[1.5_f32.to_be_bytes(), (-2.0_f32).to_be_bytes()].concat())).unwrap();
        assert_eq!(array, NumpyArray { shape: vec![1, 2], entries: Entries::Floats(vec![1.5, -2.0]) });
        assert_eq!(parse(&file("<f2", "(1,)", &[0, 0x3E])).unwrap().entries, Entries::Floats(vec![1.5]));
        let texts = Entries::Texts(vec!["é".into(), String::new()]);
        assert_eq!(parse(&file("<U1", "(2,)", &[0xE9, 0, 0, 0, 0, 0, 0, 0])).unwrap().entries, texts);
        assert_eq!(parse(&file("|S2", "(1,)", b"a\0")).unwrap().entries, Entries::Texts(vec!["a".into()]));
    }

    #[test]
    fn what_is_no_array_is_refused() {
        let says = |bytes: &[u8]| parse(bytes).unwrap_err().0;
        assert!(says(b"").contains("does not start"));
        assert!(says(b"\x93NUMPY\x09\x00").contains("version"));
        assert!(says(b"\x93NUMPY\x01\x00\xFF\xFF").contains("ends in its header"));
        assert!(says(&file("|O", "(1,)", b"\x80\x04")).contains("pickled"));
        assert!(says(&file("<i8", "(2,)", &[0; 8])).contains("its size"));
        assert!(says(&file("<i8", "(99999999999, 99999999999)", &[0; 8])).contains("bounds"));
        assert!(says(&file("<c8", "(1,)", &[0; 8])).contains("not read"));
        assert!(says(&file("<U1", "(1,)", &[0, 0xD8, 0, 0])).contains("not read"));
        let fortran = String::from_utf8_lossy(&file("|i1", "(1, 1)", &[0])[10..]).replace("False", "True");
        let mut bytes = file("|i1", "(1, 1)", &[0])[..10].to_vec();
        bytes[8] -= 1;
        bytes.extend(fortran.bytes());
        assert!(says(&bytes).contains("Fortran"));
    }
}
