//! JSON lines whose vectors are spelled in another way than the canonical one: their numbers are rewritten, line by line.

use std::borrow::Cow;

use monolayer_core::read::json::{self, Json};

use super::number;

/// The core refuses longer numbers; they stay as they are.
const LONGEST: usize = 1200;

/// The same lines, with the numbers of vectors in canonical spelling. What cannot be read is left for the core to refuse.
pub fn canonical(content: &[u8]) -> Cow<'_, [u8]> {
    // Vectors are lists in lists: a line in which no bracket follows another one has none.
    let plain = |line: &[u8]| {
        let mut solid = line.iter().filter(|b| !b" \t\r".contains(b));
        let mut last = b'{';
        !solid.any(|&b| std::mem::replace(&mut last, b) == b'[' && b == b'[')
    };
    if content.split(|&b| b == b'\n').all(plain) {
        return Cow::Borrowed(content);
    }
    let mut out = Vec::with_capacity(content.len());
    for (i, line) in content.split(|&b| b == b'\n').enumerate() {
        if i > 0 {
            out.push(b'\n');
        }
        let bare = line.strip_prefix(b"\xEF\xBB\xBF").filter(|_| i == 0).unwrap_or(line);
        match rewritten(bare).filter(|_| !plain(line)) {
            Some(text) => out.extend(text.bytes()),
            None => out.extend(line),
        }
    }
    Cow::Owned(out)
}

fn rewritten(line: &[u8]) -> Option<String> {
    let json = json::parse(line).ok()?;
    let mut out = String::with_capacity(line.len());
    write(&json, 0, &mut out);
    Some(out)
}

/// Writes a value inside so many lists.
fn write(value: &Json, lists: usize, out: &mut String) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Number(text) => {
            let parsed = text.parse().ok().filter(|x: &f64| x.is_finite() && text.len() <= LONGEST);
            match parsed.filter(|_| lists == 2) {
                Some(x) => number::write(x, out),
                None => out.push_str(text),
            }
        }
        Json::Text(text) => json::quote(text, out),
        Json::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { "," });
                write(item, lists + 1, out);
            }
            out.push(']');
        }
        Json::Object(fields) => {
            out.push('{');
            for (i, (name, value)) in fields.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { "," });
                json::quote(name, out);
                out.push(':');
                write(value, lists, out);
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_of_vectors_change() {
        let text =
            "\u{feff}{\"tokens\": [[1, 0.10], [-0.0, 1E-7]], \"labels\": [7, -3]}\r\n\n{\"tokens\": [\"[[1]]\"]}\n";
        let expected = "{\"tokens\":[[1.0,0.1],[0.0,1e-07]],\"labels\":[7,-3]}\n\n{\"tokens\":[\"[[1]]\"]}\n";
        assert_eq!(String::from_utf8_lossy(&canonical(text.as_bytes())), expected);
        assert_eq!(canonical(b"{\"tokens\":[ [4]]}"), &b"{\"tokens\":[[4.0]]}"[..]);
        assert_eq!(canonical(b"{\"tokens\": [1], \"labels\": [2]}"), &b"{\"tokens\": [1], \"labels\": [2]}"[..]);
    }

    #[test]
    fn what_cannot_be_read_stays() {
        for text in ["{\"tokens\": [[1, 01]]}", "{\"tokens\": [[1e999]]}", "[[[[", "\u{feff}[[["] {
            let found = canonical(text.as_bytes());
            assert_eq!(found.iter().filter(|b| !b" ".contains(b)).count(), text.replace(' ', "").len(), "{text}");
        }
    }
}
