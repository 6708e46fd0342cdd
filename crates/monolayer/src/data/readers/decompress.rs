//! Files that are compressed: gzip and Zstandard, unpacked on the way.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The ways of packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstandard,
}

impl Compression {
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstandard),
            _ => None,
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstandard => "Zstandard",
        }
    }

    pub(super) fn unpack<'a>(self, reader: Box<dyn Read + 'a>, limit: &UnpackedLimit) -> Box<dyn Read + 'a> {
        let reader = BufReader::with_capacity(1 << 16, reader);
        let (title, limit) = (self.title(), limit.clone());
        match self {
            Self::Gzip => Box::new(NamedCompression { title, limit, unpacked: 0, inner: MultiGzDecoder::new(reader) }),
            Self::Zstandard => {
                let frames = Frames { source: reader, decoder: FrameDecoder::new(), open: false };
                Box::new(NamedCompression { title, limit, unpacked: 0, inner: frames })
            }
        }
    }
}

/// So many bytes may always come out of a packed file.
const ALWAYS: u64 = 1 << 24;

/// So many times its size may come out of it beyond that. Text packs to a tenth, a long run of one byte to a thousandth.
const TIMES: u64 = 200;

/// How much may come out of a packed file.
#[derive(Debug, Clone)]
pub(super) struct UnpackedLimit {
    /// How many packed bytes were read so far.
    packed: Rc<Cell<u64>>,
    always: u64,
    /// No more than these in any case.
    most: Option<u64>,
}

impl UnpackedLimit {
    pub(super) fn new(most: Option<u64>) -> Self {
        Self { packed: Rc::default(), always: ALWAYS, most }
    }

    /// Counts what is read of the packed file.
    pub(super) fn count<'a>(&self, reader: Box<dyn Read + 'a>) -> Box<dyn Read + 'a> {
        Box::new(PackedReader { packed: Rc::clone(&self.packed), inner: reader })
    }

    /// What is wrong with so many bytes out of `packed`.
    pub(super) fn fault(&self, packed: u64, unpacked: u64) -> Option<String> {
        let bound = packed.saturating_mul(TIMES).saturating_add(self.always).min(self.most.unwrap_or(u64::MAX));
        (unpacked > bound).then(|| format!("more than {bound} bytes once it is unpacked, out of {packed}"))
    }
}

/// A packed file whose bytes are counted.
struct PackedReader<'a> {
    packed: Rc<Cell<u64>>,
    inner: Box<dyn Read + 'a>,
}

impl Read for PackedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.packed.set(self.packed.get() + count as u64);
        Ok(count)
    }
}

/// Says what was being unpacked when something went wrong, and stops where too much comes out.
struct NamedCompression<R> {
    title: &'static str,
    limit: UnpackedLimit,
    unpacked: u64,
    inner: R,
}

impl<R: Read> Read for NamedCompression<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let named =
            |e: io::Error| io::Error::new(e.kind(), format!("damaged {} data: {e}; copy the file again", self.title));
        let count = self.inner.read(buffer).map_err(named)?;
        self.unpacked += count as u64;
        match self.limit.fault(self.limit.packed.get(), self.unpacked) {
            Some(what) => {
                Err(io::Error::other(format!("{what}; if that is right, unpack it and give the file that is inside")))
            }
            None => Ok(count),
        }
    }
}

/// The frames of a Zstandard file, one after another.
struct Frames<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    /// Whether a frame is being read.
    open: bool,
}

impl<R: Read> Frames<R> {
    /// Starts the next frame with content, if there is one.
    fn advance(&mut self) -> io::Result<bool> {
        use std::io::BufRead as _;
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => {
                    self.open = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let skipped = io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(e) => return Err(io::Error::other(e.to_string())),
            }
        }
        Ok(false)
    }

    /// Ends a frame whose content was taken. Its checksum, if it has one, must be right.
    fn close(&mut self) -> io::Result<()> {
        self.open = false;
        let (written, found) = (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
        match written {
            Some(_) if written != found => Err(io::Error::other("its checksum is wrong")),
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            if !self.open && !self.advance()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let some = BlockDecodingStrategy::UptoBytes(buffer.len());
                self.decoder.decode_blocks(&mut self.source, some).map_err(|e| io::Error::other(e.to_string()))?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            self.close()?;
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// "a X\n" fifty times, by `zstd`, with a checksum.
    const PACKED: [u8; 24] = [
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x5d, 0x00, 0x00, 0x20, 0x61, 0x20, 0x58, 0x0a, 0x01, 0x00, 0xc1, 0x29,
        0x47, 0x04, 0xdb, 0x83, 0x1c, 0x43,
    ];

    fn unpack(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        let limit = UnpackedLimit::new(None);
        let reader = limit.count(Box::new(bytes));
        Compression::of(bytes).unwrap().unpack(reader, &limit).read_to_string(&mut text).map(|_| text)
    }

    fn gzip(text: &str) -> Vec<u8> {
        gzip_bytes(text.as_bytes())
    }

    fn gzip_bytes(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn members_of_gzip_follow_each_other_and_are_checked() {
        let both = [gzip("a X\n"), gzip("b Y\n")].concat();
        assert_eq!(unpack(&both).unwrap(), "a X\nb Y\n");
        for end in 1..both.len() {
            assert!(unpack(&both[..end.max(3)]).is_err() || end == gzip("a X\n").len(), "{end}");
        }
        let mut wrong = gzip("a X\n");
        let at = wrong.len() - 8;
        wrong[at] ^= 1;
        let error = unpack(&wrong).unwrap_err().to_string();
        assert!(error.starts_with("damaged gzip data: "), "{error}");
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused_on_the_way() {
        let small = || UnpackedLimit { always: 1000, ..UnpackedLimit::new(None) };
        let bomb = gzip(&"a".repeat(1_000_000));
        assert!(bomb.len() < 2000);
        // In a packed file inside of another one, the bytes of the file itself count.
        let twice = gzip_bytes(&bomb);
        for packed in [&bomb, &twice] {
            let limit = small();
            let mut reader = Compression::Gzip.unpack(limit.count(Box::new(packed.as_slice())), &limit);
            if packed == &twice {
                reader = Compression::Gzip.unpack(reader, &limit);
            }
            let error = reader.read_to_end(&mut Vec::new()).unwrap_err().to_string();
            assert!(error.contains("more than ") && error.contains(" bytes once it is unpacked, out of "), "{error}");
        }
        let limit = UnpackedLimit::new(Some(3));
        let text = gzip("a X\n");
        let mut reader = Compression::Gzip.unpack(limit.count(Box::new(text.as_slice())), &limit);
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.starts_with("more than 3 bytes once it is unpacked"), "{error}");
    }

    #[test]
    fn a_frame_of_zstandard_is_checked() {
        assert_eq!(unpack(&PACKED).unwrap(), "a X\n".repeat(50));
        assert!((5..PACKED.len()).all(|end| unpack(&PACKED[..end]).is_err()));
        let mut wrong = PACKED;
        wrong[23] ^= 1;
        let error = unpack(&wrong).unwrap_err().to_string();
        assert!(error.starts_with("damaged Zstandard data: its checksum is wrong"), "{error}");
    }

    #[test]
    fn stored_frames_of_zstandard_follow_each_other_and_others_are_skipped() {
        // A frame with one stored block, as the format's description has it: magic, descriptor, size, block header, bytes.
        let frame = |text: &str| {
            let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, text.len() as u8];
            bytes.extend(((text.len() as u32) << 3 | 1).to_le_bytes()[..3].iter());
            bytes.extend(text.bytes());
            bytes
        };
        let skipped = [0x51, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 7, 7];
        let all = [skipped.to_vec(), frame("a X\n"), skipped.to_vec(), frame("b Y\n")].concat();
        assert_eq!(unpack(&all).unwrap(), "a X\nb Y\n");
        assert!(unpack(&all[..all.len() - 1]).is_err());
        assert!(unpack(&all[..skipped.len() - 1]).is_err());
    }
}
