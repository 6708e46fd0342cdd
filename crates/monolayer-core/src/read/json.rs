//! JSON without surprises: what two readers could read in two ways is refused.
//!
//! Refused are bytes that are not UTF-8, a byte order mark, a field named twice (after unescaping), lone surrogates, control
//! characters in strings, numbers that are not JSON's, anything after the value, and nesting deeper than [`DEEPEST`].
//! Numbers stay text: nothing is rounded here.

use std::borrow::Cow;

use super::{Error, Result};

/// How many lists and objects may be open at once.
pub const DEEPEST: usize = 64;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json<'a> {
    /// null
    Null,
    /// true or false
    Bool(bool),
    /// A number, as written.
    Number(&'a str),
    /// A string, unescaped.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Json<'a>>),
    /// An object, its fields in the order of the file, no two with one name.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// Reads one JSON value; what follows it must be white space.
pub fn parse(bytes: &[u8]) -> Result<Json<'_>> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("byte {}: not UTF-8", e.valid_up_to() + 1))?;
    let mut parser = Parser { text, at: 0, open: 0 };
    let value = parser.value().and_then(|value| match text.len() - parser.at {
        0 => Ok(value),
        more => Err(format!("expected nothing after the value, but {more} bytes follow")),
    });
    value.map_err(|what| {
        let line = bytes[..parser.at].split(|&b| b == b'\n').count();
        Error::from(format!("line {line}, byte {}: {what}", parser.at + 1))
    })
}

impl<'a> Json<'a> {
    /// A field of an object; null where it is absent or this is no object.
    pub fn get(&self, name: &str) -> &Json<'a> {
        self.field(name).unwrap_or(&Json::Null)
    }

    /// A field of an object, if it is there.
    pub fn field(&self, name: &str) -> Option<&Json<'a>> {
        self.object()?.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    /// A number as written.
    pub fn number(&self) -> Option<&'a str> {
        if let Json::Number(text) = self { Some(text) } else { None }
    }

    /// A size: an integer below 2^63, written with digits alone.
    pub fn size(&self) -> Option<usize> {
        let digits = self.number().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
        usize::try_from(digits.parse::<i64>().ok()?).ok()
    }

    /// The items of an array.
    pub fn list(&self) -> Option<&[Json<'a>]> {
        if let Json::List(items) = self { Some(items) } else { None }
    }

    /// The items of an array of sizes.
    pub fn sizes(&self) -> Option<Vec<usize>> {
        self.list()?.iter().map(Json::size).collect()
    }

    /// The fields of an object.
    pub fn object(&self) -> Option<&[(Cow<'a, str>, Json<'a>)]> {
        if let Json::Object(fields) = self { Some(fields) } else { None }
    }

    /// Whether this is null (or absent).
    pub fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }

    /// Whether this is an object of exactly these fields.
    pub fn has_only(&self, names: &[&str]) -> bool {
        let known = |fields: &[(Cow<str>, Json)]| fields.iter().all(|(key, _)| names.contains(&&**key));
        self.object().is_some_and(|fields| fields.len() == names.len() && known(fields))
    }
}

/// Writes a string as canonical JSON has it: only what must be escaped is.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
}

type Parsed<T> = std::result::Result<T, String>;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    open: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(wanted.as_bytes());
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let start = self.at;
        self.at += self.text.as_bytes()[start..].iter().take_while(|&&b| wanted(b)).count();
        self.at - start
    }

    fn space(&mut self) {
        self.skip(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'));
    }

    fn expected<T>(&self, what: &str) -> Parsed<T> {
        let found = if self.at == self.text.len() { ", not the end of the text (EOF)" } else { "" };
        Err(format!("expected {what}{found}"))
    }

    /// A value and the white space around it.
    fn value(&mut self) -> Parsed<Json<'a>> {
        self.space();
        let value = match self.peek() {
            Some(b'{') => self
                .nested('}', |parser, fields| {
                    parser.space();
                    let key = parser.string()?;
                    parser.space();
                    if !parser.eat(":") {
                        return parser.expected("a colon");
                    }
                    fields.push((key, parser.value()?));
                    Ok(())
                })
                .and_then(distinct),
            Some(b'[') => self
                .nested(']', |parser, items| {
                    items.push(parser.value()?);
                    Ok(())
                })
                .map(Json::List),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.eat("null") => Ok(Json::Null),
            _ if self.eat("true") => Ok(Json::Bool(true)),
            _ if self.eat("false") => Ok(Json::Bool(false)),
            _ => self.expected("a value"),
        }?;
        self.space();
        Ok(value)
    }

    /// What stands between brackets, with commas between the items.
    fn nested<T>(&mut self, end: char, item: impl Fn(&mut Self, &mut Vec<T>) -> Parsed<()>) -> Parsed<Vec<T>> {
        self.open += 1;
        if self.open > DEEPEST {
            return Err(format!("recursion: more than {DEEPEST} lists and objects inside each other"));
        }
        self.at += 1;
        self.space();
        let (mut items, end) = (Vec::new(), end.to_string());
        if !self.eat(&end) {
            loop {
                item(self, &mut items)?;
                if self.eat(&end) {
                    break;
                }
                if !self.eat(",") {
                    return self.expected(&format!("a comma or {end}"));
                }
            }
        }
        self.open -= 1;
        Ok(items)
    }

    fn number(&mut self) -> Parsed<Json<'a>> {
        let start = self.at;
        self.eat("-");
        // What follows a leading zero is no digit of this number, and nothing else may begin with a digit.
        let mut whole = self.eat("0") || self.skip(|b| b.is_ascii_digit()) > 0;
        if self.eat(".") {
            whole &= self.skip(|b| b.is_ascii_digit()) > 0;
        }
        if self.eat("e") || self.eat("E") {
            let _ = self.eat("+") || self.eat("-");
            whole &= self.skip(|b| b.is_ascii_digit()) > 0;
        }
        if whole { Ok(Json::Number(&self.text[start..self.at])) } else { self.expected("a number with digits") }
    }

    fn string(&mut self) -> Parsed<Cow<'a, str>> {
        if !self.eat("\"") {
            return self.expected("a string");
        }
        let mut text = Cow::Borrowed("");
        loop {
            let start = self.at;
            self.skip(|b| b != b'"' && b != b'\\' && b >= 0x20);
            // Adding to an empty borrowed text borrows again.
            text += &self.text[start..self.at];
            if self.eat("\"") {
                return Ok(text);
            }
            if !self.eat("\\") {
                return self.expected("no control character in a string");
            }
            text.to_mut().push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Parsed<char> {
        let plain = [("\"", '"'), ("\\", '\\'), ("/", '/'), ("b", '\u{8}'), ("f", '\u{c}'), ("n", '\n'), ("r", '\r')];
        if let Some((_, c)) = plain.iter().chain(&[("t", '\t')]).find(|(name, _)| self.eat(name)) {
            return Ok(*c);
        }
        if !self.eat("u") {
            return self.expected("a known escape");
        }
        let first = self.hex()?;
        let pair = (0xD800..0xE000).contains(&first) && self.eat("\\u");
        let units = [first, if pair { self.hex()? } else { 0 }];
        // One unit, or a pair of surrogates; a surrogate by itself is no character.
        let found = char::decode_utf16(units).next().and_then(std::result::Result::ok);
        found.ok_or_else(|| "a surrogate by itself".to_owned())
    }

    fn hex(&mut self) -> Parsed<u16> {
        let digits = self.text.get(self.at..self.at + 4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|text| u16::from_str_radix(text, 16).ok()) {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => self.expected("four hexadecimal digits"),
        }
    }
}

/// An object, if no field has the name of another.
fn distinct<'a>(fields: Vec<(Cow<'a, str>, Json<'a>)>) -> Parsed<Json<'a>> {
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("the field {:?} appears twice", pair[0])),
        None => Ok(Json::Object(fields)),
    }
}
