//! What kind of file this is, by its content. The ending of its name is a hint where the content leaves a choice, and where
//! no hint is left either, the file is refused: nothing is guessed.

mod column_doubts;
mod column_names;
mod first_bytes;
mod line_shape;

use std::io::Read;

pub(super) use self::column_doubts::ColumnDoubts;
pub(super) use self::column_names::{LABEL_NAMES, NameKind, name_kind, tag_like};
pub(super) use self::first_bytes::{FirstBytes, first_bytes};
pub(super) use self::line_shape::{ColumnStyle, LineShape, delimiters, is_header, likely_delimiters};
use super::{DataOptions, Format};
use crate::error::{Error, Location, Result};

/// So many bytes are looked at.
pub(super) const START_BYTES: usize = 1 << 16;

/// No line of text is longer than a quarter of this.
const LONGEST_START: usize = 1 << 26;

/// The beginning of a file.
pub(super) struct FileStart {
    pub(super) bytes: Vec<u8>,
    /// Whether this is all of it.
    pub(super) whole: bool,
}

impl FileStart {
    /// Reads the beginning of a file. How many bytes the system gives at once makes no difference.
    pub(super) fn read(name: &str, reader: &mut impl Read) -> Result<Self> {
        let mut bytes = Vec::new();
        let mut whole = more(name, reader, START_BYTES, &mut bytes)?;
        // The first line of JSON is looked at as a whole: so it is known whether another one follows.
        let object = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes).trim_ascii_start().starts_with(b"{");
        while !whole && object && bytes.len() < LONGEST_START && !bytes.trim_ascii_start().contains(&b'\n') {
            let count = bytes.len();
            whole = more(name, reader, count, &mut bytes)?;
        }
        Ok(Self { bytes, whole })
    }

    /// The text without a byte order mark.
    pub(super) fn text(&self) -> &[u8] {
        self.bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.bytes)
    }

    /// Its lines without their ends. The last one counts only if it is all there.
    pub(super) fn lines(&self) -> Vec<&[u8]> {
        let mut lines: Vec<&[u8]> = self.text().split(|&byte| byte == b'\n').collect();
        let last = lines.pop().unwrap_or_default();
        // A line longer than this is looked at as far as it goes.
        if !last.is_empty() && (self.whole || lines.is_empty()) {
            lines.push(last);
        }
        lines.into_iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
    }
}

/// Reads so many bytes more, and says whether the file ended before.
fn more(name: &str, reader: &mut impl Read, count: usize, bytes: &mut Vec<u8>) -> Result<bool> {
    let read = reader.take(count as u64).read_to_end(bytes).map_err(|e| Error::io(name, e))?;
    Ok(read < count)
}

/// What the ending of a name suggests, inside of `.gz` and the like.
pub(super) fn hint(name: &str) -> Option<Format> {
    let name = name.to_ascii_lowercase();
    let mut name = name.as_str();
    while let Some(inner) = [".gz", ".gzip", ".zst", ".zstd"].iter().find_map(|packed| name.strip_suffix(packed)) {
        name = inner;
    }
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending {
        "jsonl" | "ndjson" => Format::JsonLines,
        "json" => Format::Json,
        "csv" => Format::Csv,
        "tsv" | "tab" => Format::Tsv,
        "npy" => Format::Npy,
        "npz" => Format::Npz,
        "safetensors" => Format::Arrays,
        "iob" | "iob2" | "bio" | "bioes" => Format::Conll,
        _ if ending.starts_with("conll") => Format::Conll,
        _ => return None,
    })
}

/// Which format a file has. What the person says comes first, then the content, then the ending.
pub(super) fn format(name: &str, file_start: &FileStart, options: &DataOptions) -> Result<Format> {
    let said = options.format;
    let refuse = |what: String, help: String| Error::data(Location::file(name), what, help);
    let hint = hint(name);
    match first_bytes(name, &file_start.bytes) {
        FirstBytes::Known(found) => {
            return match said {
                Some(said) if said != found => {
                    let what = format!("{} where `format` says {said}", found.title());
                    Err(refuse(what, "leave `format` out".to_owned()))
                }
                _ => Ok(found),
            };
        }
        FirstBytes::Refused(what, help) => return Err(refuse(format!("{what}, which is not read"), help)),
        FirstBytes::Nothing => (),
    }
    if let Some(said) = said {
        return Ok(said);
    }
    let text = file_start.text();
    if text.trim_ascii().is_empty() {
        return match (hint, file_start.whole) {
            (_, false) => Err(refuse("nothing but blanks at its beginning".into(), "give `format`".into())),
            (Some(Format::Npy | Format::Npz), _) => Err(refuse("an empty file".into(), "copy it again".into())),
            (hint, true) => Ok(hint.unwrap_or(Format::Conll)),
        };
    }
    if file_start.bytes.contains(&0) && !matches!(hint, Some(Format::Conll | Format::JsonLines)) {
        let help = "data is CoNLL columns, CSV, TSV, JSON, NumPy arrays or safetensors, as docs/format.md says";
        return Err(refuse("a binary file of an unknown kind".into(), help.into()));
    }
    if is_markup(text, file_start.whole) {
        let help = "write its tokens as columns or JSON lines; if these are tokens, give `format` conll";
        return Err(refuse("XML or HTML, which is not read".into(), help.into()));
    }
    if let Some(found) = json(text, file_start.whole) {
        // One line is either; columns of fields are in no JSON lines.
        let alone = hint == Some(Format::Json) && file_start.whole && !text.trim_ascii().contains(&b'\n');
        return Ok(if alone { Format::Json } else { found });
    }
    if let Some(named @ (Format::JsonLines | Format::Json | Format::Npy | Format::Npz | Format::Arrays)) = hint {
        let what = format!("not {}, as its name says", named.title());
        return Err(refuse(what, "copy it again, or give `format` if it is something else".into()));
    }
    line_shape::format(name, file_start, hint, options)
}

/// Whether a text starts with a tag and ends with the end of it.
fn is_markup(text: &[u8], whole: bool) -> bool {
    let text = text.trim_ascii();
    let name = text.strip_prefix(b"<").and_then(|rest| rest.split(|byte| b" >\t\r\n/".contains(byte)).next());
    name.is_some_and(|name| whole && !name.is_empty() && text.ends_with(&[b"</", name, b">"].concat()))
}

/// Whether a text is JSON, and of which kind. `{` and `[` may be tokens of columns, too.
fn json(text: &[u8], whole: bool) -> Option<Format> {
    let text = text.trim_ascii_start();
    let solid: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(3).collect();
    if solid == b"{}" || solid == b"[]" {
        return Some(Format::Json);
    }
    let after = |byte: u8| text.strip_prefix(&[byte]).map(<[u8]>::trim_ascii_start);
    if let Some(inner) = after(b'{') {
        if !inner.starts_with(b"\"") {
            return None;
        }
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        // An object that goes on after its first line is a file of its own; so is what a server answers with.
        let end = serde_json::from_slice::<serde::de::IgnoredAny>(line).map_err(|e| e.is_eof());
        let long = !whole && line.len() == text.len();
        let served = [&b"\"rows\""[..], b"\"features\""].iter().any(|field| inner.starts_with(field));
        return Some(if long || served || end.err() == Some(true) { Format::Json } else { Format::JsonLines });
    }
    let inner = after(b'[')?;
    let object = inner.strip_prefix(b"{").is_some_and(|inner| inner.trim_ascii_start().starts_with(b"\""));
    let plausible = matches!(inner.first(), Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9'));
    let consistent = || match serde_json::from_slice::<serde::de::IgnoredAny>(text) {
        Ok(_) => true,
        Err(error) => error.is_eof() && !whole,
    };
    if object || (plausible && consistent()) {
        return Some(Format::Json);
    }
    // Lists one below the other: the reader of lines says that objects are wanted.
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let list = plausible && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    (list && !line.starts_with(b"[ ")).then_some(Format::JsonLines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_from_brackets() {
        for (text, expected) in [
            ("{\"tokens\": [\"a\"]}\n{\"tokens\": [\"b\"]}\n", Some(Format::JsonLines)),
            ("{\"tokens\": [\"a\"]} x\n", Some(Format::JsonLines)),
            (" { \"a\": 1\n}", Some(Format::Json)),
            ("{\"features\":[],\"rows\":[]}", Some(Format::Json)),
            ("[{\"tokens\": [\"a\"]},\n]", Some(Format::Json)),
            ("[\n  {\n \"tokens\": NaN", Some(Format::Json)),
            ("[[\"a\"],[\"b\"]]", Some(Format::Json)),
            ("{ O\n} O\n", None),
            ("[ O\n] O\n", None),
            ("[ ]\n", Some(Format::Json)),
            ("[ ]\na b\n", None),
            ("[ 1 ]\na b c\n", None),
            ("[1 O\n", None),
            ("[[ O\n", None),
            ("[CLS] O\n", None),
            ("[\"a\",\"b\"]\n[\"c\"]\n", Some(Format::JsonLines)),
        ] {
            assert_eq!(json(text.as_bytes(), true), expected, "{text}");
        }
    }

    #[test]
    fn markup_is_told_from_tokens() {
        assert!(is_markup(b"<a><b/></a>\n", true) && is_markup(b" <a x='1'>\n</a>", true));
        assert!(!is_markup(b"<s> O\n</s> O\n", true) && !is_markup(b"<\n>\n", true) && !is_markup(b"<a", true));
    }

    #[test]
    fn endings_are_hints() {
        assert_eq!(hint("a/b.CSV.gz"), Some(Format::Csv));
        assert_eq!(hint("b.conllu.zst"), Some(Format::Conll));
        assert_eq!(hint("eng.train"), None);
        assert_eq!(hint("<stdin>"), None);
    }
}
