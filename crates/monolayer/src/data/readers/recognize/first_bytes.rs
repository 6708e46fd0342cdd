//! Files that are no text: what their first bytes say.

use super::super::Format;

/// What the first bytes of a file say for certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FirstBytes {
    /// A format that is read.
    Known(Format),
    /// What is known and not read: its name, and what would help.
    Refused(&'static str, String),
    /// Nothing: this may be text.
    Nothing,
}

/// What would help with a table that pandas reads.
fn by_pandas(reader: &str, name: &str) -> String {
    let call = format!("pandas.{reader}({name:?}).to_json(\"data.jsonl\", orient=\"records\", lines=True)");
    format!("convert it with Python: import pandas; {call}")
}

const BY_NUMPY: &str = "save the arrays with numpy.savez(\"data.npz\", tokens=..., labels=...), or write JSON lines, one object per sequence";
const UNPACK: &str = "unpack it and give the file that is inside";

/// Looks at the first bytes of a file that is not compressed.
pub(crate) fn first_bytes(name: &str, bytes: &[u8]) -> FirstBytes {
    let starts = |start: &[u8]| bytes.starts_with(start);
    let refused = |what, help: &str| FirstBytes::Refused(what, help.to_owned());
    if starts(b"\x93NUMPY") {
        return FirstBytes::Known(Format::Npy);
    }
    if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") {
        return archive(name, bytes);
    }
    if is_safetensors(bytes) {
        return FirstBytes::Known(Format::Arrays);
    }
    match bytes {
        _ if starts(b"PAR1") && is_binary(bytes) => {
            FirstBytes::Refused("a Parquet file", by_pandas("read_parquet", name))
        }
        _ if starts(b"ARROW1") && is_binary(bytes) => {
            FirstBytes::Refused("an Arrow (Feather) file", by_pandas("read_feather", name))
        }
        _ if starts(b"\x89HDF\r\n") => refused("an HDF5 file", BY_NUMPY),
        _ if starts(b"\xD0\xCF\x11\xE0") => refused("an old Office file (.xls, .doc)", "save it as CSV in UTF-8"),
        _ if starts(b"%PDF") => refused("a PDF", "copy its text to a file, and use `text` for running text"),
        _ if starts(b"SQLite format 3\0") => refused("an SQLite database", "export the table as CSV with a header"),
        _ if starts(b"BZh") && bytes.get(4..10) == Some(b"1AY&SY") => refused("a bzip2 file", UNPACK),
        _ if starts(b"\xFD7zXZ\0") => refused("an xz file", UNPACK),
        _ if starts(b"7z\xBC\xAF\x27\x1C") || starts(b"Rar!\x1A\x07") => refused("an archive", UNPACK),
        _ if bytes.get(257..262) == Some(b"ustar") => refused("a tar archive", UNPACK),
        [0x80, 2..=5, ..] => refused("a pickle, which can run any program when it is read", BY_NUMPY),
        _ if starts(b"\xFF\xFE") || starts(b"\xFE\xFF") || starts(b"\0\0\xFE\xFF") || is_wide(bytes) => {
            refused("UTF-16 or UTF-32 text", "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE > data.txt")
        }
        _ => markup(bytes),
    }
}

/// The length of a header, little-endian, and the header: text has no zero bytes there.
fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((size, header)) = bytes.split_first_chunk::<8>() else { return false };
    let size = u64::from_le_bytes(*size);
    (2..=100_000_000).contains(&size) && header.first() == Some(&b'{')
}

/// Whether there are bytes that no text has: PAR1 may be a word.
fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| byte.is_ascii_control() && !b"\t\n\r\x0B\x0C".contains(byte))
}

/// Whether every second byte of the beginning is zero, or three of four are.
fn is_wide(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(256) / 4 * 4];
    let zeros = |residue: usize| start.iter().skip(residue).step_by(2).filter(|byte| **byte == 0).count();
    start.len() >= 8 && (0..2).any(|residue| zeros(residue) * 10 >= start.len() / 2 * 9 && zeros(1 - residue) == 0)
}

fn markup(bytes: &[u8]) -> FirstBytes {
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii_start();
    let start = String::from_utf8_lossy(&text[..text.len().min(14)]).to_ascii_lowercase();
    let page = ["<!doctype html", "<html>\n", "<html>\r", "<html><", "<html lang="];
    match () {
        () if page.iter().any(|page| start.starts_with(page)) => FirstBytes::Refused(
            "an HTML page",
            "is it the page that leads to the file? Download the file itself".to_owned(),
        ),
        () if start.starts_with("<?xml") => {
            FirstBytes::Refused("an XML file", "write its tokens as CoNLL columns or JSON lines".to_owned())
        }
        () => FirstBytes::Nothing,
    }
}

/// A zip archive: of NumPy arrays, of PyTorch, of an office program, or of anything.
fn archive(name: &str, bytes: &[u8]) -> FirstBytes {
    let length = |at| bytes.get(at..at + 2).map_or(0, |b| usize::from(u16::from_le_bytes([b[0], b[1]])));
    let entry = bytes.get(30..30 + length(26)).unwrap_or_default();
    let holds = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    if entry.ends_with(b".npy") {
        FirstBytes::Known(Format::Npz)
    } else if entry.ends_with(b"data.pkl") || entry.ends_with(b".pkl") {
        FirstBytes::Refused("a file of torch.save, which is a pickle", BY_NUMPY.to_owned())
    } else if holds(b"xl/") || (entry == b"[Content_Types].xml" && name.to_ascii_lowercase().ends_with(".xlsx")) {
        FirstBytes::Refused("an Excel file", by_pandas("read_excel", name))
    } else if entry == b"[Content_Types].xml" || entry == b"mimetype" {
        FirstBytes::Refused("an Office file", "save it as CSV or as text in UTF-8".to_owned())
    } else {
        FirstBytes::Refused("a zip archive", UNPACK.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> &'static str {
        match first_bytes("f", bytes) {
            FirstBytes::Refused(what, help) if !help.is_empty() => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_known() {
        assert_eq!(first_bytes("f", b"\x93NUMPY\x01\x00"), FirstBytes::Known(Format::Npy));
        assert_eq!(first_bytes("f", b"\x02\0\0\0\0\0\0\0{}"), FirstBytes::Known(Format::Arrays));
        let entry = |name: &str| {
            let mut bytes = b"PK\x03\x04".to_vec();
            bytes.resize(26, 0);
            bytes.extend((name.len() as u16).to_le_bytes());
            bytes.extend([0, 0]);
            bytes.extend(name.bytes());
            bytes
        };
        assert_eq!(first_bytes("f", &entry("tokens.npy")), FirstBytes::Known(Format::Npz));
        assert_eq!(refusal(&entry("archive/data.pkl")), "a file of torch.save, which is a pickle");
        assert_eq!(refusal(&entry("xl/workbook.xml")), "an Excel file");
        assert_eq!(refusal(&entry("[Content_Types].xml")), "an Office file");
        assert_eq!(refusal(&entry("train.conll")), "a zip archive");
        assert_eq!(refusal(b"PK\x05\x06"), "a zip archive");
    }

    #[test]
    fn what_is_refused() {
        assert_eq!(refusal(b"PAR1\x15\x04"), "a Parquet file");
        assert_eq!(refusal(b"\x80\x04\x95"), "a pickle, which can run any program when it is read");
        assert_eq!(refusal(b"%PDF-1.7\n"), "a PDF");
        assert_eq!(refusal(b"<!DOCTYPE html>\n<html>"), "an HTML page");
        assert_eq!(refusal(b"\xEF\xBB\xBF <?xml version"), "an XML file");
        assert_eq!(refusal(b"\xFF\xFEa\0"), "UTF-16 or UTF-32 text");
        assert_eq!(refusal(b"a\0 \0X\0\n\0b\0"), "UTF-16 or UTF-32 text");
        assert_eq!(refusal(b"\0a\0 \0X\0\n\0b"), "UTF-16 or UTF-32 text");
    }

    #[test]
    fn text_is_nothing_else() {
        for text in [
            &b""[..],
            b"a X\n",
            b"<html O\n",
            b"PAR O\n",
            b"PAR1 O\nPAR1",
            b"ARROW1\tX\r\n",
            b"{\"tokens\"",
            b"BZh O\n",
            b"a\0b",
            b"<\n",
        ] {
            assert_eq!(first_bytes("f", text), FirstBytes::Nothing, "{text:?}");
        }
    }
}
