//! Random datasets, and writers of every format that share nothing with the readers.

use std::fmt::Write;

use monolayer::Dataset;
use monolayer::data::{Format, Labels, Names, Orderings, Tokens, Vocabulary, Written};
use proptest::prelude::*;
use safetensors::{Dtype, tensor::TensorView};
use serde_json::{Value, json};

/// The tokens, or the labels, of a dataset.
#[derive(Debug, Clone)]
pub enum Values {
    Names(Vec<String>),
    Integers(Vec<i64>),
    Vectors(usize, Vec<f64>),
}

/// A dataset before it is written.
#[derive(Debug, Clone)]
pub struct Rows {
    pub tokens: Values,
    pub labels: Option<Values>,
    /// Which classes may be anything.
    pub free: Vec<bool>,
    pub offsets: Vec<usize>,
}

/// Classes, numbered, some of them free.
fn classes(names: impl Iterator<Item = String>, free: &[bool]) -> Labels {
    let mut vocabulary = Vocabulary::default();
    let label_ids = names.zip(free).map(|(name, free)| (!free).then(|| vocabulary.add(&name))).collect();
    Labels::Classes { label_ids, names: vocabulary }
}

fn numbered(names: impl Iterator<Item = String>) -> (Vec<u32>, Vocabulary) {
    let mut vocabulary = Vocabulary::default();
    (names.map(|name| vocabulary.add(&name)).collect(), vocabulary)
}

impl Values {
    /// The value of token `t`.
    fn json(&self, t: usize) -> Value {
        match self {
            Self::Names(names) => json!(names[t]),
            Self::Integers(integers) => json!(integers[t]),
            Self::Vectors(d, data) => json!(data[t * d..(t + 1) * d]),
        }
    }

    fn bytes(&self) -> (Dtype, Vec<u8>) {
        match self {
            Self::Names(_) => panic!("arrays have no names"),
            Self::Integers(integers) => (Dtype::I64, integers.iter().flat_map(|k| k.to_le_bytes()).collect()),
            Self::Vectors(_, data) => (Dtype::F64, data.iter().flat_map(|x| x.to_le_bytes()).collect()),
        }
    }
}

impl Rows {
    /// How its labels stand in JSON.
    pub fn written(&self) -> Written {
        let integers = matches!(self.labels, Some(Values::Integers(_)));
        Written { labels: if integers { Names::Integers } else { Names::Strings }, ..Written::default() }
    }

    /// What a reader should make of it.
    pub fn dataset(&self, written: Written, lines: Vec<u32>) -> Dataset {
        let tokens = match &self.tokens {
            Values::Vectors(d, data) => Tokens::Vectors { d: *d, data: data.clone() },
            Values::Integers(_) => panic!("tokens are no integers"),
            Values::Names(names) => {
                let (ids, vocabulary) = numbered(names.iter().cloned());
                Tokens::Words { word_ids: ids, vocabulary }
            }
        };
        let labels = match &self.labels {
            None => Labels::None,
            Some(Values::Names(names)) => classes(names.iter().cloned(), &self.free),
            Some(Values::Integers(integers)) => classes(integers.iter().map(i64::to_string), &self.free),
            Some(Values::Vectors(d, data)) => Labels::Vectors { d: *d, data: data.clone() },
        };
        let (name, offsets) = ("f".into(), self.offsets.clone());
        Dataset { name, tokens, labels, offsets, lines, warnings: vec![], written, orderings: Orderings::Given }
    }

    fn sequences(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.offsets.windows(2).map(|w| w[0]..w[1])
    }

    /// The file as CoNLL columns, and the line of each token.
    pub fn conll(&self, crlf: bool, bom: bool) -> (Vec<u8>, Vec<u32>) {
        let Values::Names(words) = &self.tokens else { panic!("columns hold words") };
        let end = if crlf { "\r\n" } else { "\n" };
        let (mut text, mut lines) = (String::from(if bom { "\u{feff}" } else { "" }), Vec::new());
        let mut line = 1;
        for sequence in self.sequences() {
            for t in sequence {
                match &self.labels {
                    Some(Values::Names(labels)) => {
                        let label = if self.free[t] { "_" } else { &labels[t] };
                        write!(text, "{} x\t {label}{end}", words[t]).unwrap();
                    }
                    _ => write!(text, "{}{end}", words[t]).unwrap(),
                }
                lines.push(line);
                line += 1;
            }
            text += end;
            line += 1;
        }
        (text.into_bytes(), lines)
    }

    /// The file as JSON lines, and the line of each token.
    pub fn json_lines(&self) -> (Vec<u8>, Vec<u32>) {
        let (mut text, mut lines) = (String::new(), Vec::new());
        for (i, sequence) in self.sequences().enumerate() {
            let list = |values: &Values| sequence.clone().map(|t| values.json(t)).collect::<Vec<_>>();
            let class = |labels: &Values, t: usize| match labels {
                Values::Names(_) if self.free[t] => Value::Null,
                // Both ways of saying it.
                Values::Integers(_) if self.free[t] => [json!(-100), Value::Null][t % 2].clone(),
                labels => labels.json(t),
            };
            let row = match &self.labels {
                Some(labels) => {
                    let labels: Vec<Value> = sequence.clone().map(|t| class(labels, t)).collect();
                    json!({"tokens": list(&self.tokens), "labels": labels})
                }
                None => json!({"tokens": list(&self.tokens)}),
            };
            writeln!(text, "{row}").unwrap();
            lines.resize(sequence.end, i as u32 + 1);
        }
        (text.into_bytes(), lines)
    }

    /// The file as arrays: of rank 3 where all sequences have one length and `ragged` is not asked for.
    pub fn arrays(&self, ragged: bool) -> Vec<u8> {
        let Values::Vectors(d, _) = &self.tokens else { panic!("arrays hold vectors") };
        let lengths: Vec<usize> = self.sequences().map(|sequence| sequence.len()).collect();
        let dense = !ragged && lengths.iter().all(|n| *n == lengths[0]);
        let places = if dense { vec![lengths.len(), lengths[0]] } else { vec![lengths.iter().sum()] };
        let shape = |values: &Values| match values {
            Values::Vectors(..) => [places.clone(), vec![*d]].concat(),
            _ => places.clone(),
        };
        let mut tensors = vec![("tokens", shape(&self.tokens), self.tokens.bytes())];
        if !dense {
            let bytes = lengths.iter().flat_map(|n| (*n as u32).to_le_bytes()).collect();
            tensors.push(("lengths", vec![lengths.len()], (Dtype::U32, bytes)));
        }
        if let Some(labels) = &self.labels {
            let with_free = match labels {
                Values::Integers(integers) => {
                    let class = |(&k, &free): (&i64, &bool)| if free { -100 } else { k };
                    Values::Integers(integers.iter().zip(&self.free).map(class).collect())
                }
                labels => labels.clone(),
            };
            tensors.push(("labels", shape(labels), with_free.bytes()));
        }
        let views = tensors.iter().map(|(name, shape, (dtype, bytes))| {
            (*name, TensorView::new(*dtype, shape.clone(), bytes).expect("a tensor that fits its shape"))
        });
        safetensors::serialize(views, None).unwrap()
    }
}

/// What must hold for every dataset.
pub fn check(data: &Dataset) {
    let tokens = data.tokens();
    assert!(data.sequences() > 0 && data.ranges().all(|range| !range.is_empty()));
    let numbered = |ids: &[u32], names: &Vocabulary| {
        assert_eq!(ids.len(), tokens);
        assert!((0..names.len() as u32).all(|id| ids.contains(&id) && names.get(names.name(id)) == Some(id)));
        assert!(ids.iter().all(|&id| (id as usize) < names.len()));
    };
    let finite = |d: usize, data: &[f64]| {
        assert!(d > 0 && data.len() == d * tokens && data.iter().all(|x| x.is_finite()));
    };
    match &data.tokens {
        Tokens::Words { word_ids, vocabulary } => numbered(word_ids, vocabulary),
        Tokens::Vectors { d, data } => finite(*d, data),
    }
    match &data.labels {
        Labels::None => {}
        Labels::Classes { label_ids, names } => {
            assert_eq!(label_ids.len(), tokens);
            let given: Vec<u32> = label_ids.iter().flatten().copied().collect();
            assert!((0..names.len() as u32).all(|id| given.contains(&id) && names.get(names.name(id)) == Some(id)));
            assert!(given.iter().all(|&id| (id as usize) < names.len()));
        }
        Labels::Vectors { d, data } => finite(*d, data),
    }
    assert!(data.lines.is_empty() || data.lines.len() == tokens);
    assert_eq!(data.location(tokens - 1).sequence, Some(data.sequences()));
}

fn offsets() -> impl Strategy<Value = Vec<usize>> {
    let lengths = prop_oneof![
        prop::collection::vec(1..6_usize, 1..8),
        (1..5_usize, 1..6_usize).prop_map(|(sequences, n)| vec![n; sequences]),
    ];
    lengths.prop_map(|lengths| {
        let ends = lengths.iter().scan(0, |end, n| {
            *end += n;
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    })
}

/// As many values as there are tokens.
fn names(pattern: &'static str, tokens: usize) -> impl Strategy<Value = Values> {
    prop::collection::vec(prop_oneof!["[ab]", pattern], tokens).prop_map(Values::Names)
}

fn finite(d: usize, tokens: usize) -> impl Strategy<Value = Values> {
    let number = any::<f64>().prop_filter("finite", |x| x.is_finite());
    prop::collection::vec(number, d * tokens).prop_map(move |data| Values::Vectors(d, data))
}

fn integers(tokens: usize) -> impl Strategy<Value = Values> {
    let class = prop_oneof![-1..3_i64, any::<i64>()].prop_filter("-100 is free", |k| *k != -100);
    prop::collection::vec(class, tokens).prop_map(Values::Integers)
}

fn rows(
    offsets: Vec<usize>,
    tokens: impl Strategy<Value = Values>,
    labels: impl Strategy<Value = Values>,
) -> impl Strategy<Value = Rows> {
    // Not all are free: files of nulls alone do not say whether classes are strings or integers.
    let n = offsets[offsets.len() - 1];
    let free = (prop::collection::vec(prop::bool::weighted(0.2), n), 0..n).prop_map(|(mut free, given)| {
        free[given] = false;
        free
    });
    (tokens, prop::option::of(labels), free).prop_map(move |(tokens, labels, free)| Rows {
        tokens,
        labels,
        free,
        offsets: offsets.clone(),
    })
}

/// Words and classes without what separates columns, lines and documents.
pub fn columns() -> impl Strategy<Value = Rows> {
    const PRINTABLE: &str = "[^ \t\r\n\0\u{feff}{_-]{1,6}";
    offsets().prop_flat_map(|offsets| {
        let n = offsets[offsets.len() - 1];
        rows(offsets, names(PRINTABLE, n), names(PRINTABLE, n))
    })
}

/// Vectors with classes or outputs.
pub fn vectors() -> impl Strategy<Value = Rows> {
    (offsets(), 1..4_usize).prop_flat_map(|(offsets, d)| {
        let n = offsets[offsets.len() - 1];
        rows(offsets, finite(d, n), prop_oneof![integers(n), finite(d, n)])
    })
}

/// Words or vectors with labels of any kind.
pub fn anything() -> impl Strategy<Value = Rows> {
    (offsets(), 1..4_usize).prop_flat_map(|(offsets, d)| {
        let n = offsets[offsets.len() - 1];
        let tokens = prop_oneof![names("\\PC{0,6}|.*", n), finite(d, n)];
        rows(offsets, tokens, prop_oneof![names(".*", n), integers(n), finite(d, n)])
    })
}

/// Sound files of every format.
pub fn files() -> impl Strategy<Value = (Format, Vec<u8>)> {
    prop_oneof![
        (columns(), any::<bool>()).prop_map(|(rows, crlf)| (Format::Conll, rows.conll(crlf, crlf).0)),
        anything().prop_map(|rows| (Format::JsonLines, rows.json_lines().0)),
        (vectors(), any::<bool>()).prop_map(|(rows, ragged)| (Format::Arrays, rows.arrays(ragged))),
    ]
}
