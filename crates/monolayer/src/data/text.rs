//! Running text as a dataset: one sequence, in which the label of each token is the token that follows it.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Dataset, Labels, Orderings, Tokens, Vocabulary, Written};
use crate::error::{Error, Location, Result};

/// The label of the last token of a text. It has white space in it and more than one character, so that no word and no
/// character of any text is the same.
pub const END_OF_TEXT: &str = "<end of text>";

/// What the tokens of a text are.
///
/// ```
/// use monolayer::data::Split;
///
/// assert_eq!(Split::Word.tokens(" to be\r\nor "), ["to", "be", "or"]);
/// assert_eq!(Split::Char.tokens("é a"), ["é", " ", "a"]);
/// assert_eq!(Split::Word.joined(&["to", "be"]), "to be");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// What stands between white space, as Unicode defines it. White space itself is not kept.
    #[default]
    Word,
    /// Every character, white space too.
    Char,
}

impl Split {
    /// The tokens of a text.
    pub fn tokens(self, text: &str) -> Vec<&str> {
        match self {
            Self::Word => text.split_whitespace().collect(),
            Self::Char => text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect(),
        }
    }

    /// What stands between tokens that are written one after another.
    pub fn between(self) -> &'static str {
        match self {
            Self::Word => " ",
            Self::Char => "",
        }
    }

    /// Tokens as a text.
    pub fn joined<T: AsRef<str>>(self, tokens: &[T]) -> String {
        tokens.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(self.between())
    }
}

impl FromStr for Split {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "word" => Ok(Self::Word),
            "char" => Ok(Self::Char),
            _ => Err(Error::setting(format!("{name:?} does not say what tokens are"), "it is word or char")),
        }
    }
}

impl Dataset {
    /// A text of which every token is to be followed by the next, and the last one by [`END_OF_TEXT`].
    ///
    /// ```
    /// use monolayer::Dataset;
    /// use monolayer::data::Split;
    ///
    /// let data = Dataset::from_text("to be or not to be", Split::Word)?;
    /// assert_eq!((data.sequences(), data.tokens()), (1, 6));
    /// assert_eq!((data.label(0), data.label(5)), (Some("be"), Some("<end of text>")));
    /// # Ok::<(), monolayer::Error>(())
    /// ```
    pub fn from_text(text: &str, split: Split) -> Result<Self> {
        named("<memory>", text, split)
    }

    /// The text of a file, or of standard input for `-`; see [`Self::from_text`]. It must be UTF-8. Between words a byte
    /// order mark counts as white space; among characters it is one.
    pub fn open_text(source: impl AsRef<Path>, split: Split) -> Result<Self> {
        let path = source.as_ref();
        if path.as_os_str() == "-" {
            return Self::read_text("<stdin>", std::io::stdin().lock(), split);
        }
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        Self::read_text(&path.to_string_lossy(), file, split)
    }

    /// A text from anything that can be read; `name` is what errors call it.
    pub fn read_text(name: &str, mut reader: impl Read, split: Split) -> Result<Self> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|e| Error::io(name, e))?;
        let text = utf8(name, &bytes)?;
        named(name, text, split)
    }

    /// Sentences to run a model on, without labels: the lines of a text that have words.
    ///
    /// ```
    /// let data = monolayer::Dataset::from_lines("May sails\n\nin May\n")?;
    /// assert_eq!((data.sequences(), data.tokens(), data.word(3)), (2, 4, Some("May")));
    /// # Ok::<(), monolayer::Error>(())
    /// ```
    pub fn from_lines(text: &str) -> Result<Self> {
        let mut words = TextTokens::default();
        let mut offsets = vec![0];
        for (number, line) in (1..).zip(without_mark(text).lines()) {
            line.split_whitespace().for_each(|word| words.add(word, number));
            if words.ids.len() > offsets[offsets.len() - 1] {
                offsets.push(words.ids.len());
            }
        }
        words.dataset("<text>", Labels::None, offsets)
    }
}

/// Bytes as text.
fn utf8<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].split(|&b| b == b'\n').count();
        let what = format!("byte {} is not UTF-8", e.valid_up_to() + 1);
        let help = "save the text as UTF-8, as with: iconv -f latin1 -t utf-8";
        Error::data(Location { line: Some(line), ..Location::file(name) }, what, help)
    })
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn named(name: &str, text: &str, split: Split) -> Result<Dataset> {
    let text = if split == Split::Word { without_mark(text) } else { text };
    let mut words = TextTokens::default();
    let (mut line, mut at) = (1, 0);
    for token in split.tokens(text) {
        // Tokens are parts of the text, in order.
        let start = token.as_ptr() as usize - text.as_ptr() as usize;
        line += text[at..start].matches('\n').count();
        at = start;
        words.add(token, u32::try_from(line).unwrap_or(u32::MAX));
    }
    let mut names = Vocabulary::default();
    let following = words.ids.iter().skip(1).map(|&id| words.vocabulary.name(id)).chain([END_OF_TEXT]);
    let label_ids = following.map(|label| Some(names.add(label))).collect();
    let offsets = vec![0, words.ids.len()];
    words.dataset(name, Labels::Classes { label_ids, names }, offsets)
}

/// Words as they come, with their lines.
#[derive(Default)]
struct TextTokens {
    ids: Vec<u32>,
    lines: Vec<u32>,
    vocabulary: Vocabulary,
}

impl TextTokens {
    fn add(&mut self, word: &str, line: u32) {
        self.ids.push(self.vocabulary.add(word));
        self.lines.push(line);
    }

    fn dataset(self, name: &str, labels: Labels, offsets: Vec<usize>) -> Result<Dataset> {
        if self.ids.is_empty() {
            return Err(Error::data(Location::file(name), "the text has no words", "give a text with some"));
        }
        Ok(Dataset {
            name: name.to_owned(),
            tokens: Tokens::Words { word_ids: self.ids, vocabulary: self.vocabulary },
            labels,
            offsets,
            lines: self.lines,
            warnings: Vec::new(),
            written: Written::default(),
            orderings: Orderings::Given,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(data: &Dataset) -> Vec<&str> {
        (0..data.tokens()).filter_map(|t| data.word(t)).collect()
    }

    #[test]
    fn any_white_space_parts_words() {
        let plain = Dataset::from_text("to be or", Split::Word).unwrap();
        for text in ["to be or\n", "\u{feff}to\r\nbe\t\tor", "  to\u{a0}be\u{2003}or\r\n\r\n"] {
            let data = Dataset::read_text("f", text.as_bytes(), Split::Word).unwrap();
            assert_eq!((words(&data), data.hash()), (vec!["to", "be", "or"], plain.hash()), "{text:?}");
        }
        let data = Dataset::from_text("a b\n\nc\r\nd", Split::Word).unwrap();
        assert_eq!(data.lines, [1, 1, 3, 4]);
    }

    #[test]
    fn characters_give_every_byte_back() {
        for text in ["\u{feff}e\u{301}é\r\n\t ", "👩‍🚀\0<end of text>", " "] {
            let data = Dataset::read_text("f", text.as_bytes(), Split::Char).unwrap();
            assert_eq!(Split::Char.joined(&words(&data)), text);
            assert_eq!(data.label(data.tokens() - 1), Some(END_OF_TEXT));
        }
        assert_eq!(Dataset::from_text("a\nb\n", Split::Char).unwrap().lines, [1, 1, 2, 2]);
    }

    #[test]
    fn no_word_is_the_end_of_the_text() {
        let data = Dataset::from_text("a <end of text> <end>", Split::Word).unwrap();
        let ends = (0..data.tokens()).filter(|&t| data.label(t) == Some(END_OF_TEXT)).count();
        assert_eq!((words(&data), ends), (vec!["a", "<end", "of", "text>", "<end>"], 1));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for (bytes, what) in
            [(&b""[..], "no words"), (b" \r\n", "no words"), (b"a\nb \xE9", "f:2: byte 5 is not UTF-8")]
        {
            let error = Dataset::read_text("f", bytes, Split::Word).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        assert!(Dataset::from_text("", Split::Char).is_err() && Dataset::from_lines(" \n").is_err());
    }
}
