//! Running text: one sequence, in which the label of each token is the next token, and that of the last one says so.

use monolayer_core::read::{Limits, Result, json};

use super::{Text, within};

/// The label of the last token.
const END: &str = "<end of text>";

/// The canonical form of a text of words or of characters.
pub fn canonical(content: &[u8], words: bool, limits: &Limits) -> Result<String> {
    let text = std::str::from_utf8(content).map_err(|_| "the text is not UTF-8")?;
    let tokens: Vec<&str> = if words {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        text.split(char::is_whitespace).filter(|word| !word.is_empty()).collect()
    } else {
        text.split("").filter(|c| !c.is_empty()).collect()
    };
    within(tokens.len() as u128, "tokens in a sequence", "length", limits.length)?;
    let n = tokens.len();
    if n == 0 {
        return Err("the text has no words".into());
    }
    let mut out = Text::new(limits);
    out.text.push_str("{\"tokens\":");
    out.list(n, |i, out| json::quote(tokens[i], out));
    out.text.push_str(",\"labels\":");
    out.list(n, |i, out| json::quote(tokens.get(i + 1).unwrap_or(&END), out));
    out.end()?;
    Ok(out.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, words: bool) -> String {
        canonical(text.as_bytes(), words, &Limits::default()).unwrap()
    }

    #[test]
    fn every_token_is_followed_by_the_next() {
        let expected = "{\"tokens\":[\"a\",\"b\"],\"labels\":[\"b\",\"<end of text>\"]}\n";
        assert_eq!(lines("\u{feff} a\r\n\u{a0}b ", true), expected);
        assert_eq!(lines("ab", false), expected);
        assert_eq!(lines("\n", false), "{\"tokens\":[\"\\n\"],\"labels\":[\"<end of text>\"]}\n");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for bytes in [&b""[..], b" \n", b"\xff"] {
            assert!(canonical(bytes, true, &Limits::default()).is_err());
        }
    }
}
