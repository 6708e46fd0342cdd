//! The lines of a text file as a stream.

use std::io::{BufRead, BufReader, Read};

use crate::error::{Error, Location, Result};

/// No line of a text dataset is longer than this many bytes.
const LONGEST_LINE: u64 = 16 << 20;

/// The lines of a text file, numbered from 1, without their LF or CRLF and without a byte order mark.
pub(super) struct Lines<'a, R> {
    name: &'a str,
    reader: BufReader<R>,
    buffer: Vec<u8>,
    number: u32,
}

impl<'a, R: Read> Lines<'a, R> {
    pub(super) fn new(name: &'a str, reader: R) -> Self {
        Self { name, reader: BufReader::with_capacity(1 << 16, reader), buffer: Vec::new(), number: 0 }
    }

    /// The next line and its number.
    pub(super) fn advance(&mut self) -> Result<Option<(u32, &[u8])>> {
        self.buffer.clear();
        let limited = (&mut self.reader).take(LONGEST_LINE + 2).read_until(b'\n', &mut self.buffer);
        if limited.map_err(|e| Error::io(self.name, e))? == 0 {
            return Ok(None);
        }
        self.number = self.number.checked_add(1).ok_or_else(|| {
            Error::data(Location::file(self.name), "more than 4,294,967,295 lines", "split the file into smaller ones")
        })?;
        let mut line = self.buffer.as_slice();
        line = line.strip_suffix(b"\n").unwrap_or(line);
        line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.number == 1 {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        let location = |column| Location { line: Some(self.number as usize), column, ..Location::file(self.name) };
        if line.len() as u64 > LONGEST_LINE {
            let help = "is this a text file? Large arrays are better kept as safetensors";
            return Err(Error::data(location(None), "a line longer than 16 MiB", help));
        }
        if let Some(at) = line.iter().position(|&byte| byte == 0) {
            let help = "this is not UTF-8 text: save it as UTF-8, or give the format of a binary file";
            return Err(Error::data(location(Some(at + 1)), "a NUL byte", help));
        }
        Ok(Some((self.number, line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn all(bytes: &[u8]) -> Result<Vec<(u32, Vec<u8>)>> {
        let mut lines = Lines::new("f", bytes);
        let mut read = Vec::new();
        while let Some((number, line)) = lines.advance()? {
            read.push((number, line.to_vec()));
        }
        Ok(read)
    }

    #[test]
    fn endings_and_byte_order_mark_are_dropped() {
        let read = all(b"\xEF\xBB\xBFa\r\n\r\n\xEF\xBB\xBFb\nc\r").unwrap();
        let expected: [(u32, &[u8]); 4] = [(1, b"a"), (2, b""), (3, b"\xEF\xBB\xBFb"), (4, b"c")];
        assert!(read.iter().map(|(n, l)| (*n, l.as_slice())).eq(expected), "{read:?}");
        assert!(all(b"").unwrap().is_empty());
    }

    #[test]
    fn nul_bytes_and_absurd_lines_are_errors() {
        let error = all(b"a\nb\0c\n").unwrap_err().to_string();
        assert!(error.starts_with("f:2:2: a NUL byte; "), "{error}");
        let mut long = vec![b'x'; 16 << 20];
        long.extend_from_slice(b"\r\n");
        assert_eq!(all(&long).unwrap().len(), 1);
        long.insert(0, b'x');
        let error = all(&long).unwrap_err().to_string();
        assert!(error.starts_with("f:1: a line longer than 16 MiB; "), "{error}");
    }

    #[test]
    fn line_numbers_do_not_wrap() {
        let mut lines = Lines::new("f", b"a\nb\n".as_slice());
        lines.number = u32::MAX - 1;
        assert_eq!(lines.advance().unwrap().unwrap().0, u32::MAX);
        let error = lines.advance().unwrap_err().to_string();
        assert!(error.starts_with("f: more than 4,294,967,295 lines; "), "{error}");
    }

    #[test]
    fn what_the_system_says_is_passed_on() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is on fire"))
            }
        }
        let error = Lines::new("f", Broken).advance().unwrap_err().to_string();
        assert_eq!(error, "f: the disk is on fire");
    }
}
