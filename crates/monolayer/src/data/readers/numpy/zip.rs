//! The arrays of an .npz file: a zip archive whose entries are stored or deflated. Sizes and checksums must be right.

use std::collections::HashSet;
use std::io::Read as _;

use flate2::Crc;
use flate2::read::DeflateDecoder;

use crate::data::readers::decompress::UnpackedLimit;

/// The names and bytes of all entries, of which there are no more than `most` in all; or what is wrong.
pub(crate) fn entries(archive: &[u8], most: Option<u64>) -> Result<Vec<(String, Vec<u8>)>, String> {
    let (mut next, count) = directory(archive).ok_or("it has no directory at its end: is it complete?")?;
    let (mut listed, mut names) = (Vec::new(), HashSet::new());
    for _ in 0..count {
        let (entry, after) = Entry::read(archive, next).ok_or("a damaged directory")?;
        next = after;
        if !names.insert(entry.name.clone()) {
            return Err(format!("two entries {:?}", entry.name));
        }
        listed.push(entry);
    }
    let mut parts: Vec<(u64, u64)> = listed.iter().map(|entry: &Entry| (entry.start, entry.packed)).collect();
    parts.sort_unstable();
    // Each has a header of 30 bytes or more before it.
    if parts.windows(2).any(|pair| pair[0].0.saturating_add(pair[0].1).saturating_add(30) > pair[1].0) {
        return Err("entries that overlap".to_owned());
    }
    let size = listed.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
    if let Some(what) = UnpackedLimit::new(most).fault(archive.len() as u64, size) {
        return Err(what);
    }
    listed.into_iter().map(|entry| entry.unpack(archive).map(|bytes| (entry.name, bytes))).collect()
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    let end = at.checked_add(2)?;
    bytes.get(at..end).map(|b| usize::from(u16::from_le_bytes([b[0], b[1]])))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let end = at.checked_add(4)?;
    bytes.get(at..end).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]).into())
}

fn longer(bytes: &[u8], at: usize) -> Option<u64> {
    Some(long(bytes, at)? | long(bytes, at.checked_add(4)?)? << 32)
}

/// Where the directory starts, and how many entries it has.
fn directory(archive: &[u8]) -> Option<(usize, usize)> {
    // The record stands at the end, before a comment of at most 65,535 bytes.
    let earliest = archive.len().saturating_sub(22 + 65_535);
    let end = (earliest..=archive.len().checked_sub(22)?).rev().find(|&at| {
        archive[at..].starts_with(b"PK\x05\x06") && short(archive, at + 20) == Some(archive.len() - at - 22)
    })?;
    let (count, start) = (short(archive, end + 10)?, long(archive, end + 16)?);
    Some((usize::try_from(start).ok()?, count))
}

/// An entry of the directory.
struct Entry {
    name: String,
    method: usize,
    checksum: u64,
    packed: u64,
    size: u64,
    start: u64,
}

impl Entry {
    fn read(archive: &[u8], at: usize) -> Option<(Self, usize)> {
        let head = archive.get(at..)?.get(..46)?;
        if !head.starts_with(b"PK\x01\x02") {
            return None;
        }
        let [name, extra, comment] = [28, 30, 32].map(|field| short(head, field));
        let (name_end, extra, comment) = (at + 46 + name?, extra?, comment?);
        let name = std::str::from_utf8(archive.get(at + 46..name_end)?).ok()?.to_owned();
        let mut entry = Self {
            name,
            method: short(head, 10)?,
            checksum: long(head, 16)?,
            packed: long(head, 20)?,
            size: long(head, 24)?,
            start: long(head, 42)?,
        };
        entry.widen(archive.get(name_end..name_end + extra)?)?;
        // A password would be needed.
        (short(head, 8)? & 1 == 0).then_some((entry, name_end + extra + comment))
    }

    /// Sizes that do not fit 32 bits stand in an extra field, in this order.
    fn widen(&mut self, mut extra: &[u8]) -> Option<()> {
        while extra.len() >= 4 {
            let (kind, length) = (short(extra, 0)?, short(extra, 2)?);
            let field = extra.get(4..4 + length)?;
            if kind == 1 {
                let mut at = 0;
                for size in [&mut self.size, &mut self.packed, &mut self.start] {
                    if *size == u64::from(u32::MAX) {
                        *size = longer(field, at)?;
                        at += 8;
                    }
                }
            }
            extra = &extra[4 + length..];
        }
        Some(())
    }

    fn unpack(&self, archive: &[u8]) -> Result<Vec<u8>, String> {
        let wrong = |what: &str| format!("the entry {:?} {what}", self.name);
        let packed = self.slice(archive).ok_or_else(|| wrong("goes beyond the end, or has another name there"))?;
        let mut bytes = Vec::new();
        match self.method {
            0 => bytes.extend_from_slice(packed),
            // One byte more than there should be shows that there are more.
            8 => {
                let mut decoder = DeflateDecoder::new(packed).take(self.size.saturating_add(1));
                decoder.read_to_end(&mut bytes).map_err(|e| wrong(&format!("is damaged: {e}")))?;
            }
            _ => return Err(wrong("is packed in a way that NumPy does not use")),
        }
        let mut checksum = Crc::new();
        checksum.update(&bytes);
        if bytes.len() as u64 != self.size || u64::from(checksum.sum()) != self.checksum {
            return Err(wrong("has another size or checksum than the archive says"));
        }
        Ok(bytes)
    }

    /// The packed bytes, after the entry's own header.
    fn slice<'a>(&self, archive: &'a [u8]) -> Option<&'a [u8]> {
        let entry = archive.get(usize::try_from(self.start).ok()?..)?;
        let name_end = 30 + short(entry, 26)?;
        // No checksum covers the name, but it stands here and in the directory.
        if entry.get(30..name_end)? != self.name.as_bytes() {
            return None;
        }
        let start = name_end + short(entry, 28)?;
        let packed = usize::try_from(self.packed).ok()?;
        entry.starts_with(b"PK\x03\x04").then(|| entry.get(start..start.checked_add(packed)?)).flatten()
    }
}
