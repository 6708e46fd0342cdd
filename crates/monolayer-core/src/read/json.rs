//! JSON without surprises: what two readers could read in two ways is refused.
//!
//! Refused are bytes that are not UTF-8, a byte order mark, a field named twice (after unescaping), lone surrogates, control
//! characters in strings, numbers that are not JSON's, anything after the value, and nesting deeper than [`DEEPEST`].
//! Numbers stay text: nothing is rounded here.

use std::borrow::Cow;

use super::Result;

/// How many lists and objects may be open at once.
pub const DEEPEST: usize = 64;

/// What stands after a backslash, and what it means.
const ESCAPES: [(char, char); 8] =
    [('"', '"'), ('\\', '\\'), ('b', '\u{8}'), ('t', '\t'), ('n', '\n'), ('f', '\u{c}'), ('r', '\r'), ('/', '/')];

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
    let mut parser = Parser { text, at: 0, open: 0, items: Vec::new() };
    let value = parser.value().and_then(|value| parser.need(parser.at == text.len(), "nothing more").map(|()| value));
    Ok(value.map_err(|what| {
        let line = bytes[..parser.at].split(|&b| b == b'\n').count();
        format!("line {line}, byte {}: {what}", parser.at + 1)
    })?)
}

impl<'a> Json<'a> {
    /// A field of an object, if it is there.
    pub fn field(&self, name: &str) -> Option<&Json<'a>> {
        self.object()?.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// A field of an object; null where it is absent or this is no object.
    pub fn get(&self, name: &str) -> &Json<'a> {
        self.field(name).unwrap_or(&Json::Null)
    }

    /// A field that must be of some kind.
    pub fn need<'b, T>(&'b self, name: &str, kind: &str, read: impl Fn(&'b Json<'a>) -> Option<T>) -> Result<T> {
        read(self.get(name)).ok_or_else(|| format!("{name:?} is not {kind}").into())
    }

    /// A field that may also be null, or absent.
    pub fn optional<T>(&self, name: &str, kind: &str, read: impl Fn(&Json<'a>) -> Option<T>) -> Result<Option<T>> {
        if *self.get(name) == Json::Null { Ok(None) } else { self.need(name, kind, read).map(Some) }
    }

    /// What the text of a field means, of several that are known.
    pub fn choice<T: Copy>(&self, name: &str, known: &[(&str, T)]) -> Result<T> {
        let found = known.iter().find(|(text, _)| self.get(name).text() == Some(text));
        let unknown = || format!("{name:?} is none of {:?}", known.iter().map(|(text, _)| text).collect::<Vec<_>>());
        Ok(found.map(|(_, meaning)| *meaning).ok_or_else(unknown)?)
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    /// A size: an integer below 2^63, written with digits alone.
    pub fn size(&self) -> Option<usize> {
        let Json::Number(text) = self else { return None };
        text.parse::<i64>().ok().filter(|_| !text.starts_with('-')).and_then(|size| usize::try_from(size).ok())
    }

    /// A size of at least 1.
    pub fn positive(&self) -> Option<usize> {
        self.size().filter(|&size| size > 0)
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

    /// Refuses anything but an object of exactly these fields.
    pub fn only(&self, names: &[&str]) -> Result<()> {
        let fault = || format!("it is not an object of exactly {names:?}").into();
        let known = |f: &&[(Cow<str>, _)]| f.len() == names.len() && f.iter().all(|(key, _)| names.contains(&&**key));
        self.object().filter(known).map(|_| ()).ok_or_else(fault)
    }
}

/// Writes a string as canonical JSON has it: only what must be escaped is.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match ESCAPES[..7].iter().find(|(_, meant)| *meant == c) {
            Some((name, _)) => out.extend(['\\', *name]),
            None if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            None => out.push(c),
        }
    }
    out.push('"');
}

type Parsed<T> = std::result::Result<T, String>;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    open: usize,
    /// The items of the lists that are open.
    items: Vec<Json<'a>>,
}

impl<'a> Parser<'a> {
    fn need(&self, found: bool, what: &str) -> Parsed<()> {
        let end = if self.at == self.text.len() { ", not the end of the text (EOF)" } else { "" };
        if found { Ok(()) } else { Err(format!("expected {what}{end}")) }
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(wanted.as_bytes());
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    /// Skips bytes; whether there were any.
    fn skip(&mut self, wanted: impl Fn(&u8) -> bool) -> bool {
        let start = self.at;
        self.at += self.text.as_bytes()[start..].iter().take_while(|b| wanted(b)).count();
        self.at > start
    }

    fn space(&mut self) {
        self.skip(|b| b" \t\n\r".contains(b));
    }

    /// A value and the white space around it.
    fn value(&mut self) -> Parsed<Json<'a>> {
        self.space();
        let value = match self.text.as_bytes().get(self.at) {
            Some(b'{') => self.object()?,
            Some(b'[') => {
                self.at += 1;
                let start = self.items.len();
                while self.more("]", self.items.len() == start)? {
                    let item = self.value()?;
                    self.items.push(item);
                }
                // Many short lists take no more room than they need.
                Json::List(self.items.split_off(start))
            }
            Some(b'"') => Json::Text(self.string()?),
            _ if self.eat("null") => Json::Null,
            _ if self.eat("true") => Json::Bool(true),
            _ if self.eat("false") => Json::Bool(false),
            _ => self.number()?,
        };
        self.space();
        Ok(value)
    }

    /// An object, if no field has the name of another.
    fn object(&mut self) -> Parsed<Json<'a>> {
        self.at += 1;
        let mut fields = Vec::new();
        while self.more("}", fields.is_empty())? {
            self.space();
            let key = self.string()?;
            self.space();
            let colon = self.eat(":");
            self.need(colon, "a colon")?;
            fields.push((key, self.value()?));
        }
        fields.shrink_to_fit();
        let mut names: Vec<&str> = fields.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("the field {:?} appears twice", pair[0])),
            None => Ok(Json::Object(fields)),
        }
    }

    /// Whether another item follows, in a list or object that was just opened or after an item.
    fn more(&mut self, end: &str, first: bool) -> Parsed<bool> {
        self.open += usize::from(first);
        if self.open > DEEPEST {
            return Err(format!("recursion: more than {DEEPEST} lists and objects inside each other"));
        }
        self.space();
        let ends = self.eat(end);
        self.open -= usize::from(ends);
        let found = ends || first || self.eat(",");
        self.need(found, "a comma or the end of a list or object").map(|()| !ends)
    }

    fn number(&mut self) -> Parsed<Json<'a>> {
        let start = self.at;
        self.eat("-");
        // What follows a leading zero is no digit of this number, and nothing else may begin with a digit.
        let whole = self.eat("0") || self.skip(u8::is_ascii_digit);
        let part = !self.eat(".") || self.skip(u8::is_ascii_digit);
        let power = (self.eat("e") || self.eat("E")).then(|| self.eat("+") || self.eat("-"));
        let whole = whole && part && (power.is_none() || self.skip(u8::is_ascii_digit));
        self.need(whole, "a value").map(|()| Json::Number(&self.text[start..self.at]))
    }

    fn string(&mut self) -> Parsed<Cow<'a, str>> {
        let quoted = self.eat("\"");
        self.need(quoted, "a string")?;
        let mut text = Cow::Borrowed("");
        loop {
            let start = self.at;
            self.skip(|&b| b != b'"' && b != b'\\' && b >= b' ');
            // Adding to an empty borrowed text borrows again.
            text += &self.text[start..self.at];
            if self.eat("\"") {
                return Ok(text);
            }
            let escaped = self.eat("\\");
            self.need(escaped, "no control character in a string")?;
            text.to_mut().push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Parsed<char> {
        if let Some((_, meant)) = ESCAPES.iter().find(|(name, _)| self.eat(name.encode_utf8(&mut [0; 4]))) {
            return Ok(*meant);
        }
        let unit = self.eat("u");
        self.need(unit, "a known escape")?;
        let first = self.hex()?;
        let pair = (0xD800..0xE000).contains(&first) && self.eat("\\u");
        let units = [first, if pair { self.hex()? } else { 0 }];
        // One unit, or a pair of surrogates; a surrogate by itself is no character.
        char::decode_utf16(units).next().and_then(std::result::Result::ok).ok_or("a surrogate by itself".to_owned())
    }

    fn hex(&mut self) -> Parsed<u16> {
        let digits = self.text.get(self.at..self.at + 4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|text| u16::from_str_radix(text, 16).ok());
        self.at += if unit.is_some() { 4 } else { 0 };
        self.need(unit.is_some(), "four hexadecimal digits").map(|()| unit.unwrap_or(0))
    }
}
