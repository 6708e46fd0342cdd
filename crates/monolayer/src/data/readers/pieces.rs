//! Large text files in pieces, cut between sequences, so that each can be read by another process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;

use super::decompress::Compression;
use super::reading::RecognizedFile;
use super::recognize::{self, FileStart};
use super::{DataOptions, Dataset, Format};
use crate::error::{Error, Result};

/// A file that may be read in pieces.
struct PlainFile<'a> {
    file: File,
    recognized: RecognizedFile<'a>,
}

impl<'a> PlainFile<'a> {
    /// Nothing for files that are read as a whole: packed ones, tables, arrays, and where something is said about columns.
    fn open(path: &Path, name: &'a str, options: &'a DataOptions) -> Result<Option<Self>> {
        let mut file = File::open(path).map_err(|e| Error::io(name, e))?;
        let file_start = FileStart::read(name, &mut file)?;
        if Compression::of(&file_start.bytes).is_some() || options.any() {
            return Ok(None);
        }
        let format = recognize::format(name, &file_start, options)?;
        let recognized = RecognizedFile { name, format, file_start, options };
        let plain = match format {
            Format::Conll => true,
            Format::JsonLines => recognized.has_plain_fields(),
            _ => false,
        };
        Ok(plain.then_some(Self { file, recognized }))
    }

    /// The first place from `at` on at which a sequence starts.
    fn cut(&mut self, at: u64) -> std::io::Result<u64> {
        // A cut is behind the end of a line: from one byte before, a line that ends there is seen.
        let mut place = at.saturating_sub(1);
        self.file.seek(SeekFrom::Start(place))?;
        let mut reader = BufReader::new(&mut self.file);
        let mut line = Vec::new();
        // What is left of the line at which reading starts.
        place += reader.read_until(b'\n', &mut line)? as u64;
        // A line of JSON is a sequence; columns go on to the next blank line.
        let mut inside = self.recognized.format == Format::Conll;
        while inside {
            line.clear();
            let count = reader.read_until(b'\n', &mut line)? as u64;
            place += count;
            inside = count > 0 && !matches!(&line[..], b"\n" | b"\r\n");
        }
        Ok(place)
    }
}

impl Dataset {
    /// Ranges of bytes of about `size` each that hold whole sequences, all of a file together; one of everything where it must be
    /// read as a whole.
    pub fn pieces(path: &Path, size: u64, options: &DataOptions) -> Result<Vec<Range<u64>>> {
        let name = &*path.to_string_lossy();
        let io = |e| Error::io(name, e);
        let Some(mut plain) = PlainFile::open(path, name, options)? else {
            let whole = 0..std::fs::metadata(path).map_err(io)?.len();
            return Ok(std::iter::once(whole).collect());
        };
        let end = plain.file.metadata().map_err(io)?.len();
        let (mut pieces, mut start) = (Vec::new(), 0);
        while start < end {
            let cut = if end - start <= size { end } else { plain.cut(start + size).map_err(io)? };
            pieces.push(start..cut);
            start = cut;
        }
        Ok(pieces)
    }

    /// A piece of a file. Nothing where the file must be read as a whole after all: it has comments, its columns are not as many
    /// everywhere, or it cannot be read.
    pub fn read_piece(path: &Path, range: Range<u64>, options: &DataOptions) -> Result<Option<Self>> {
        let name = &*path.to_string_lossy();
        let io = |e| Error::io(name, e);
        let Some(mut plain) = PlainFile::open(path, name, options)? else { return Ok(None) };
        let mut bytes = Vec::new();
        plain.file.seek(SeekFrom::Start(range.start)).map_err(io)?;
        plain.file.take(range.end - range.start).read_to_end(&mut bytes).map_err(io)?;
        let recognized = plain.recognized;
        let read = if recognized.format == Format::Conll {
            if width(&bytes) != width(&recognized.file_start.bytes) {
                return Ok(None);
            }
            recognized.columns(&bytes)
        } else {
            recognized.plain(&bytes[..])
        };
        Ok(read.ok().filter(|reading| reading.plain).map(|reading| reading.data))
    }
}

/// The columns of the first line with a token.
fn width(text: &[u8]) -> Option<usize> {
    let columns = |line: &[u8]| {
        line.split(u8::is_ascii_whitespace).filter(|column| !column.is_empty() && *column != b"\xEF\xBB\xBF").count()
    };
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"-DOCSTART-"));
    lines.map(columns).find(|&columns| columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let sentence = |i: usize| format!("w{} O\r\nx{} B{}\n{}", i % 17, i, i % 3, ["\n", "\r\n", " \n\n"][i % 3]);
        let conll = (0..200).map(sentence).collect::<Vec<String>>().concat();
        let line = |i: usize| format!("{{\"tokens\":[\"a{i}\"],\"labels\":[\"X\"]}}\n");
        let json = (0..200).map(line).collect::<Vec<String>>().concat();
        for (name, text) in [("f.conll", conll), ("f.jsonl", json)] {
            let (path, options) = (dir.path().join(name), DataOptions::default());
            std::fs::write(&path, &text).unwrap();
            let whole = Dataset::open(&path).unwrap();
            for size in [1, 50, 1000, 1 << 20] {
                let pieces = Dataset::pieces(&path, size, &options).unwrap();
                assert_eq!((pieces[0].start, pieces[pieces.len() - 1].end), (0, text.len() as u64));
                assert!(pieces.windows(2).all(|pair| pair[0].end == pair[1].start));
                let mut words = Vec::new();
                let mut lengths = Vec::new();
                for piece in pieces {
                    let data = Dataset::read_piece(&path, piece, &options).unwrap().expect("a plain file");
                    words.extend((0..data.tokens()).map(|t| data.word(t).unwrap().to_owned()));
                    lengths.extend(data.ranges().map(|range| range.len()));
                }
                assert!((0..whole.tokens()).map(|t| whole.word(t).unwrap()).eq(words.iter().map(String::as_str)));
                assert!(whole.ranges().map(|range| range.len()).eq(lengths));
            }
        }
    }

    #[test]
    fn odd_files_are_read_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.conll");
        std::fs::write(&path, "a X\n\nb X Y\n\n").unwrap();
        let pieces = Dataset::pieces(&path, 1, &DataOptions::default()).unwrap();
        assert_eq!(pieces, [0..5, 5..12]);
        let read = |i: usize| Dataset::read_piece(&path, pieces[i].clone(), &DataOptions::default()).unwrap();
        assert!(read(0).is_some() && read(1).is_none());
    }
}
