//! Model directories written by hand.

use monolayer_core::model::Model;
use monolayer_core::read::{Limits, Result, directory};

/// A tensor: name, dtype, shape, bytes.
pub type Entry = (String, String, Vec<usize>, Vec<u8>);

/// A model directory in memory; texts are changed by replacing parts of them.
#[derive(Clone)]
pub struct Files {
    pub config: String,
    pub tensors: Vec<Entry>,
    pub words: Option<String>,
    pub mask: Option<Vec<u8>>,
}

pub fn floats(name: &str, shape: &[usize], entries: &[f32]) -> Entry {
    (name.into(), "F32".into(), shape.to_vec(), entries.iter().flat_map(|x| x.to_le_bytes()).collect())
}

pub fn integers(name: &str, entries: &[i32]) -> Entry {
    (name.into(), "I32".into(), vec![entries.len()], entries.iter().flat_map(|x| x.to_le_bytes()).collect())
}

/// A safetensors file with a header and data.
pub fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// A safetensors file of these tensors.
pub fn pack(tensors: &[Entry]) -> Vec<u8> {
    let (mut fields, mut data) = (Vec::new(), Vec::new());
    for (name, dtype, shape, bytes) in tensors {
        let (begin, end) = (data.len(), data.len() + bytes.len());
        fields.push(format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{begin},{end}]}}"#));
        data.extend_from_slice(bytes);
    }
    file(&format!("{{{}}}", fields.join(",")), &data)
}

impl Files {
    /// Two words, two labels, three places, one layer of two units, a block of one unit before it.
    pub fn honest() -> Self {
        let layer = r#"{"attention":{"kind":"softmax","heads":1,"head_size":1,"mask":"none"},"hidden":2}"#;
        Self {
            config: format!(
                r#"{{"format":"monolayer/1","d":2,"dtype":"f32","max_length":3,"labels":["X","Y"],"layers":[{layer}],"pre_feed_forward":{{"hidden":1}},"source":{{"x":1e999}}}}"#
            ),
            tensors: vec![
                floats("embedding.weight", &[2, 2], &[1.0, 0.0, 0.0, 1.0]),
                floats("positions.weight", &[3, 2], &[0.5; 6]),
                floats("pre_feed_forward.w1", &[1, 2], &[1.0, -1.0]),
                floats("pre_feed_forward.b1", &[1], &[0.1]),
                floats("pre_feed_forward.w2", &[2, 1], &[0.5, 0.0]),
                floats("pre_feed_forward.b2", &[2], &[0.0, 0.1]),
                floats("layers.0.attention.w_q", &[1, 1, 2], &[0.5, 0.25]),
                floats("layers.0.attention.w_k", &[1, 1, 2], &[0.75, -0.5]),
                floats("layers.0.attention.w_v", &[1, 1, 2], &[0.75, -0.5]),
                floats("layers.0.attention.w_o", &[1, 2, 1], &[0.25, -0.25]),
                floats("layers.0.feed_forward.w1", &[2, 2], &[1.0, -1.0, 0.0, 3.0]),
                floats("layers.0.feed_forward.b1", &[2], &[0.1, 0.2]),
                floats("layers.0.feed_forward.w2", &[2, 2], &[0.5, 0.0, 0.25, 1.0]),
                floats("layers.0.feed_forward.b2", &[2], &[0.0, 0.1]),
                floats("head.weight", &[2, 2], &[1.0, 0.0, 0.0, 1.0]),
                floats("head.bias", &[2], &[0.0, 0.0]),
            ],
            words: Some(r#"{"b":1,"a":0}"#.into()),
            mask: None,
        }
    }

    /// The same in format /2.
    pub fn newer() -> Self {
        let mut files = Self::honest();
        files.config = files.config.replace("monolayer/1", "monolayer/2");
        files
    }

    pub fn with(mut self, from: &str, to: &str) -> Self {
        assert!(self.config.contains(from), "{from}");
        self.config = self.config.replace(from, to);
        self
    }

    pub fn tensor(&mut self, name: &str) -> &mut Entry {
        self.tensors.iter_mut().find(|tensor| tensor.0 == name).unwrap()
    }

    pub fn read(&self) -> Result<Model> {
        let (numbers, words) = (pack(&self.tensors), self.words.as_deref().map(str::as_bytes));
        directory::model([self.config.as_bytes(), &numbers], words, self.mask.as_deref(), &Limits::default())
    }

    pub fn refused(&self, says: &str) {
        let e = self.read().expect_err(says).to_string();
        assert!(e.contains(says), "{e:?} does not say {says:?}");
    }
}

/// Numbers that look random (splitmix64), the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ x >> 31) % n as u64) as usize
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Bytes with a few of them changed, taken out or put in, or cut short.
    pub fn spoil(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            match self.below(6) {
                _ if bytes.is_empty() => {}
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = b"\"\\{}[],:019-.eun \n\xFF\x00"[self.below(20)],
                2 => bytes.truncate(at),
                3 => drop(bytes.remove(at)),
                4 => bytes.insert(at, bytes[at]),
                _ => {
                    let end = (at + self.below(20)).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, copy);
                }
            }
        }
        bytes
    }
}
