//! JSON files that two readers cannot read two ways: what docs/format.md refuses in any JSON file is refused here.

use serde_json::{Map, Number, Value};

/// More brackets than these are never open at once.
const DEEPEST: usize = 64;

/// What a JSON text says, or what is wrong with it and at which byte (from 1).
///
/// A number beyond the floats, which only a field that nobody reads may have, is kept as its text.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, String> {
    parse_with(bytes, false)
}

/// What a JSON text of data says. Integers beyond 64 bits and numbers beyond the floats are refused: as floats or as texts they would be
/// something else.
pub(crate) fn parse_exact(bytes: &[u8]) -> Result<Value, String> {
    parse_with(bytes, true)
}

fn parse_with(bytes: &[u8], exact: bool) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| at(e.valid_up_to(), "bytes that are not UTF-8"))?;
    if text.starts_with('\u{feff}') {
        return Err(at(0, "a byte order mark"));
    }
    let mut parser = JsonParser { text, next: 0, depth: 0, exact };
    let value = parser.value()?;
    parser.blanks();
    if parser.next < text.len() { Err(parser.fault("something after the end of the value")) } else { Ok(value) }
}

fn at(byte: usize, what: &str) -> String {
    format!("{what}, at byte {}", byte + 1)
}

struct JsonParser<'a> {
    text: &'a str,
    /// The byte to read next.
    next: usize,
    /// How many brackets are open.
    depth: usize,
    /// Whether every integer has 64 bits, and every number is a float.
    exact: bool,
}

impl JsonParser<'_> {
    fn fault(&self, what: &str) -> String {
        at(self.next, what)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.next).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.next += 1;
        }
    }

    /// Goes on if the next byte that is not blank is this one.
    fn take(&mut self, byte: u8) -> bool {
        self.blanks();
        let found = self.peek() == Some(byte);
        self.next += usize::from(found);
        found
    }

    fn value(&mut self) -> Result<Value, String> {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::list),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => {
                let words = [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))];
                let found = words.into_iter().find(|(word, _)| self.text[self.next..].starts_with(word));
                let (word, value) = found.ok_or_else(|| self.fault("no value of JSON"))?;
                self.next += word.len();
                Ok(value)
            }
            None => Err(self.fault("the end of the file where a value should be")),
        }
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Result<Value, String>) -> Result<Value, String> {
        if self.depth == DEEPEST {
            return Err(self.fault(&format!("more than {DEEPEST} brackets open")));
        }
        self.depth += 1;
        self.next += 1;
        let value = inner(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, String> {
        let mut fields = Map::new();
        if self.take(b'}') {
            return Ok(fields.into());
        }
        loop {
            self.blanks();
            let start = self.next;
            if self.peek() != Some(b'"') {
                return Err(self.fault("no name of a field"));
            }
            let name = self.string()?;
            if !self.take(b':') {
                return Err(self.fault("no colon after the name of a field"));
            }
            let value = self.value()?;
            if fields.contains_key(&name) {
                return Err(at(start, &format!("the field {name:?} a second time")));
            }
            fields.insert(name, value);
            if self.take(b'}') {
                return Ok(fields.into());
            }
            if !self.take(b',') {
                return Err(self.fault("neither a comma nor the end of an object"));
            }
        }
    }

    fn list(&mut self) -> Result<Value, String> {
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(items.into());
        }
        loop {
            items.push(self.value()?);
            if self.take(b']') {
                return Ok(items.into());
            }
            if !self.take(b',') {
                return Err(self.fault("neither a comma nor the end of a list"));
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.next += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.next..];
            let plain = rest.find(|c| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.next += plain;
            match self.peek() {
                Some(b'"') => {
                    self.next += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return Err(self.fault("a control character in a string")),
                None => return Err(self.fault("a string without an end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let escaped = self.text.as_bytes().get(self.next + 1).copied();
        let c = match escaped {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.code_point(),
            _ => return Err(self.fault("an escape that JSON does not have")),
        };
        self.next += 2;
        Ok(c)
    }

    /// A character as `\uXXXX`, or as a pair of them.
    fn code_point(&mut self) -> Result<char, String> {
        let first = self.unit(self.next)?;
        if let Some(c) = char::from_u32(first) {
            self.next += 6;
            return Ok(c);
        }
        let second = if first < 0xDC00 { self.unit(self.next + 6).unwrap_or(0) } else { 0 };
        if !(0xDC00..0xE000).contains(&second) {
            return Err(self.fault("half of a surrogate pair"));
        }
        self.next += 12;
        let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        char::from_u32(code).ok_or_else(|| self.fault("no character"))
    }

    /// The number of the `\uXXXX` at a byte.
    fn unit(&self, from: usize) -> Result<u32, String> {
        let digits = self.text.as_bytes().get(from..from + 6).and_then(|unit| unit.strip_prefix(b"\\u"));
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        number.ok_or_else(|| self.fault("an escape that is not \\u and four hexadecimal digits"))
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.next;
        self.next += usize::from(self.peek() == Some(b'-'));
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        let mut sound = whole == 1 || (whole > 1 && !leading_zero);
        let mut integer = true;
        if self.peek() == Some(b'.') {
            self.next += 1;
            sound &= self.digits() > 0;
            integer = false;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.next += 1;
            self.next += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            sound &= self.digits() > 0;
            integer = false;
        }
        let text = &self.text[start..self.next];
        if !sound {
            return Err(at(start, &format!("{text:?} is no number of JSON")));
        }
        if let Ok(x) = text.parse::<u64>() {
            return Ok(x.into());
        }
        // -0 is a float: as an integer it would lose its sign.
        if let Some(x) = text.parse::<i64>().ok().filter(|&x| integer && x != 0) {
            return Ok(x.into());
        }
        let float = text.parse().ok().and_then(Number::from_f64);
        if self.exact && integer && text != "-0" {
            return Err(at(start, "an integer beyond 64 bits: write it as a string"));
        }
        if self.exact && float.is_none() {
            return Err(at(start, "a number beyond the floats, which end near 1.8e308"));
        }
        Ok(float.map_or_else(|| Value::String(text.to_owned()), Value::Number))
    }

    fn digits(&mut self) -> usize {
        let start = self.next;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.next += 1;
        }
        self.next - start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn values() {
        let text = r#" {"a": [1, -2, 0.5, -0, 1e3, 18446744073709551615], "b" : {}, "": [ ],
            "c": "\"\\\/\b\f\n\r\t\u0061\u00e9\ud83d\ude00é", "d": [null,true,false]} "#;
        let expected = json!({
            "a": [1, -2, 0.5, -0.0, 1e3, u64::MAX],
            "b": {},
            "": [],
            "c": "\"\\/\u{8}\u{c}\n\r\taé😀é",
            "d": [null, true, false],
        });
        assert_eq!(parse(text.as_bytes()).unwrap(), expected);
        assert_eq!(parse(b"[1e999, 99999999999999999999]").unwrap(), json!(["1e999", 1e20]));
        assert_eq!(parse_exact(b"[1e300, -0, -9223372036854775808]").unwrap(), json!([1e300, -0.0, i64::MIN]));
        for text in ["[99999999999999999999]", "[-9223372036854775809]", "{\"id\": 18446744073709551616}"] {
            let error = parse_exact(text.as_bytes()).unwrap_err();
            assert!(error.starts_with("an integer beyond 64 bits: write it as a string, at byte "), "{error}");
        }
        assert!(parse_exact(b"[1e999]").unwrap_err().starts_with("a number beyond the floats"));
        assert!(parse(format!("{}{}", "[".repeat(64), "]".repeat(64)).as_bytes()).is_ok());
    }

    #[test]
    fn what_is_refused() {
        let cases: [(&[u8], &str); 32] = [
            (b"", "the end of the file where a value should be, at byte 1"),
            (b"\xEF\xBB\xBF{}", "a byte order mark, at byte 1"),
            (b"\"\xE9\"", "bytes that are not UTF-8, at byte 2"),
            (b"{\"a\": 1, \"\\u0061\": 2}", "the field \"a\" a second time, at byte 10"),
            (b"{\"x\": {\"a\": 1, \"a\": 1}}", "the field \"a\" a second time"),
            (b"\"\\ud800\"", "half of a surrogate pair, at byte 2"),
            (b"\"\\udc00\"", "half of a surrogate pair"),
            (b"\"\\ud800\\u0061\"", "half of a surrogate pair"),
            (b"\"\\ud800\\ud800\"", "half of a surrogate pair"),
            (b"\"a\nb\"", "a control character in a string, at byte 3"),
            (b"\"\\x\"", "an escape that JSON does not have"),
            (b"\"\\u12g4\"", "an escape that is not \\u and four hexadecimal digits"),
            (b"\"\\u+123\"", "an escape that is not \\u and four"),
            (b"\"\\u12", "an escape that is not \\u and four"),
            (b"\"abc", "a string without an end"),
            (b"01", "\"01\" is no number of JSON"),
            (b"-", "\"-\" is no number of JSON"),
            (b"1.", "\"1.\" is no number of JSON"),
            (b"1e", "\"1e\" is no number of JSON"),
            (b".5", "no value of JSON"),
            (b"+1", "no value of JSON"),
            (b"NaN", "no value of JSON"),
            (b"0x10", "something after the end of the value, at byte 2"),
            (b"{} {}", "something after the end of the value, at byte 4"),
            (b"nul", "no value of JSON"),
            (b"[1,]", "no value of JSON"),
            (b"[1 2]", "neither a comma nor the end of a list"),
            (b"{\"a\" 1}", "no colon after the name of a field"),
            (b"{\"a\": 1,}", "no name of a field"),
            (b"{\"a\": 1 \"b\": 2}", "neither a comma nor the end of an object"),
            (b"{a: 1}", "no name of a field"),
            (b"[1] // two", "something after the end of the value"),
        ];
        for (text, expected) in cases {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(parse(deep.as_bytes()).unwrap_err(), "more than 64 brackets open, at byte 65");
    }

    proptest! {
        #[test]
        fn nothing_panics_and_serde_agrees(text in "[\\[\\]{}:,\"\\\\ua0-9eE.+ \\-ntrfulse\u{e9}]{0,24}") {
            if let Ok(value) = parse(text.as_bytes()) {
                // A number beyond the floats is text here and an error there.
                if let Ok(other) = serde_json::from_str::<Value>(&text) {
                    prop_assert_eq!(value, other);
                }
            }
        }
    }
}
