//! Arrays: a safetensors file with `tokens`, and with `labels` if there are any.
//!
//! | tensor | sequences of one length n | ragged sequences |
//! |---|---|---|
//! | tokens | `[N, n, d]` floats | `[T, d]` floats |
//! | lengths | absent | `[N]` integers that add up to T |
//! | labels: classes | `[N, n]` integers | `[T]` integers |
//! | labels: outputs | `[N, n, k]` floats | `[T, k]` floats |
//!
//! Floats are f16, bf16, f32 or f64; integers are of any width, signed or not. The class -100 may be anything.

use std::io::Read;

use safetensors::{Dtype, tensor::TensorView};

use super::{Dataset, Labels, Names, Orderings, Tokens, Vocabulary, Written};
use crate::arithmetic::binary16;
use crate::data::free_label::FREE_INTEGER;
use crate::error::{Error, Location, Result};
use crate::model::tensor_file;

const TENSORS: [&str; 3] = ["tokens", "lengths", "labels"];

/// Reads arrays; `name` is what errors call the file.
pub(super) fn read(name: &str, mut reader: impl Read) -> Result<Dataset> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|e| Error::io(name, e))?;
    let fail = |what: String, help: &str| Error::data(Location::file(name), what, help);
    let tensors = tensor_file::parse(&bytes)
        .map_err(|e| fail(format!("not a safetensors file: {e}"), "write it with safetensors' save_file"))?;

    let mut unknown: Vec<_> = tensors.names().into_iter().filter(|tensor| !TENSORS.contains(tensor)).collect();
    unknown.sort_unstable();
    if let Some(tensor) = unknown.first() {
        return Err(fail(format!("unknown tensor {tensor:?}"), "a dataset has \"tokens\", \"lengths\" and \"labels\""));
    }
    let [tokens, lengths, labels] = TENSORS.map(|tensor| tensors.tensor(tensor).ok());
    let tokens = tokens.ok_or_else(|| fail("no tensor \"tokens\"".into(), "give \"tokens\" [N, n, d] or [T, d]"))?;

    let (d, offsets) = shape(name, &tokens, lengths.as_ref())?;
    let data = vectors(name, "tokens", &tokens, d, &offsets)?;
    let labels = match labels {
        Some(labels) => read_labels(name, &labels, &tokens, &offsets)?,
        None => Labels::None,
    };
    Ok(Dataset {
        name: name.to_owned(),
        tokens: Tokens::Vectors { d, data },
        labels,
        offsets,
        lines: Vec::new(),
        warnings: Vec::new(),
        written: Written { labels: Names::Integers, ..Written::default() },
        orderings: Orderings::Given,
    })
}

/// The dimension of the tokens and where each sequence starts.
fn shape(name: &str, tokens: &TensorView, lengths: Option<&TensorView>) -> Result<(usize, Vec<usize>)> {
    let fail = |what: String, help: &str| Err(Error::data(Location::file(name), what, help));
    match (tokens.shape(), lengths) {
        (&[sequences, n, d], None) => Ok((d, (0..=sequences).map(|i| i * n).collect())),
        (&[total, d], Some(lengths)) => Ok((d, offsets(name, total, lengths)?)),
        (&[_, _, _], Some(_)) => {
            let what = "\"lengths\" beside \"tokens\" of rank 3".to_owned();
            fail(what, "leave \"lengths\" out, or give the tokens without padding as [T, d]")
        }
        (&[_, _], None) => fail("no tensor \"lengths\"".to_owned(), "ragged \"tokens\" [T, d] need \"lengths\" [N]"),
        (other, _) => fail(format!("\"tokens\" {other:?} of rank {}", other.len()), "give them as [N, n, d] or [T, d]"),
    }
}

/// Where each sequence starts, from their lengths.
fn offsets(name: &str, total: usize, lengths: &TensorView) -> Result<Vec<usize>> {
    let fail = |sequence, what: String, help: &str| {
        Err(Error::data(Location { sequence, ..Location::file(name) }, format!("\"lengths\" {what}"), help))
    };
    if lengths.shape().len() != 1 {
        return fail(None, format!("{:?} of rank {}", lengths.shape(), lengths.shape().len()), "give them as [N]");
    }
    let Some(integers) = integers(lengths) else {
        return fail(None, format!("of type {}", lengths.dtype()), "lengths are integers");
    };
    let mut offsets = vec![0];
    let mut end = 0;
    for (i, length) in integers.enumerate() {
        if length <= 0 {
            return fail(Some(i + 1), format!("has {length}"), "every sequence has at least one token");
        }
        end += length;
        if end > total as i128 {
            return fail(Some(i + 1), format!("exceed the {total} tokens"), "lengths add up to T of \"tokens\" [T, d]");
        }
        offsets.push(end as usize);
    }
    if end < total as i128 {
        return fail(None, format!("add up to {end} of {total} tokens"), "lengths add up to T of \"tokens\" [T, d]");
    }
    Ok(offsets)
}

fn read_labels(name: &str, labels: &TensorView, tokens: &TensorView, offsets: &[usize]) -> Result<Labels> {
    let each = &tokens.shape()[..tokens.shape().len() - 1];
    let classes = integers(labels);
    let outputs = labels.shape().split_last().filter(|(k, rows)| **k > 0 && *rows == each).map(|(&k, _)| k);
    if if classes.is_some() { labels.shape() != each } else { outputs.is_none() } {
        let what = format!("\"labels\" {:?} of type {}", labels.shape(), labels.dtype());
        let help = format!("classes are integers {each:?} here, and outputs floats {each:?} with a dimension more");
        return Err(Error::data(Location::file(name), what, help));
    }
    if let Some(classes) = classes {
        let mut names = Vocabulary::default();
        let ids = classes.map(|k| (k != i128::from(FREE_INTEGER)).then(|| names.add(&k.to_string()))).collect();
        return Ok(Labels::Classes { label_ids: ids, names });
    }
    let k = outputs.unwrap_or(1);
    Ok(Labels::Vectors { d: k, data: vectors(name, "labels", labels, k, offsets)? })
}

/// The entries of a tensor of floats, all finite.
fn vectors(name: &str, tensor: &str, view: &TensorView, d: usize, offsets: &[usize]) -> Result<Vec<f64>> {
    let Some(floats) = floats(view) else {
        let what = format!("{tensor:?} of type {}", view.dtype());
        return Err(Error::data(Location::file(name), what, "convert them to F32 or F64"));
    };
    let data: Vec<f64> = floats.collect();
    if let Some(i) = data.iter().position(|x| !x.is_finite()) {
        let sequence = offsets.partition_point(|&start| start <= i / d);
        let token = Some(i / d - offsets[sequence - 1] + 1);
        let what = format!("{tensor:?} has {} in coordinate {}", data[i], i % d + 1);
        let location = Location { sequence: Some(sequence), token, ..Location::file(name) };
        return Err(Error::data(location, what, "remove the sequence, or replace the number by a finite one"));
    }
    Ok(data)
}

/// The entries of a tensor of integers.
pub(super) fn integers<'a>(view: &'a TensorView) -> Option<impl Iterator<Item = i128> + 'a> {
    macro_rules! decoder {
        ($t:ty) => {
            (size_of::<$t>(), |b: &[u8]| <$t>::from_le_bytes(b.try_into().expect("a chunk")).into())
        };
    }
    let (size, decode): (usize, fn(&[u8]) -> i128) = match view.dtype() {
        Dtype::I8 => decoder!(i8),
        Dtype::I16 => decoder!(i16),
        Dtype::I32 => decoder!(i32),
        Dtype::I64 => decoder!(i64),
        Dtype::U8 => decoder!(u8),
        Dtype::U16 => decoder!(u16),
        Dtype::U32 => decoder!(u32),
        Dtype::U64 => decoder!(u64),
        _ => return None,
    };
    Some(view.data().chunks_exact(size).map(decode))
}

/// The entries of a tensor of floats; every one of them is an f64.
pub(super) fn floats<'a>(view: &'a TensorView) -> Option<impl Iterator<Item = f64> + 'a> {
    let (size, decode): (usize, fn(&[u8]) -> f64) = match view.dtype() {
        Dtype::F16 => (2, |b| binary16(u16::from_le_bytes([b[0], b[1]]))),
        // bf16 is the upper half of an f32.
        Dtype::BF16 => (2, |b| f32::from_le_bytes([0, 0, b[0], b[1]]).into()),
        Dtype::F32 => (4, |b| f32::from_le_bytes(b.try_into().expect("a chunk")).into()),
        Dtype::F64 => (8, |b| f64::from_le_bytes(b.try_into().expect("a chunk"))),
        _ => return None,
    };
    Some(view.data().chunks_exact(size).map(decode))
}

#[cfg(test)]
mod tests {
    use super::*;

    type ArrayTensor = (&'static str, Dtype, Vec<usize>, Vec<u8>);

    fn f32s(name: &'static str, shape: &[usize], data: &[f32]) -> ArrayTensor {
        (name, Dtype::F32, shape.to_vec(), data.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    fn i64s(name: &'static str, shape: &[usize], data: &[i64]) -> ArrayTensor {
        (name, Dtype::I64, shape.to_vec(), data.iter().flat_map(|x| x.to_le_bytes()).collect())
    }

    fn file(tensors: &[ArrayTensor]) -> Vec<u8> {
        let views = tensors.iter().map(|(name, dtype, shape, data)| {
            (*name, TensorView::new(*dtype, shape.clone(), data).expect("a tensor that fits its shape"))
        });
        safetensors::serialize(views, None).unwrap()
    }

    fn labels(data: &Dataset) -> Vec<&str> {
        (0..data.tokens()).map(|t| data.label(t).unwrap()).collect()
    }

    #[test]
    fn sequences_of_one_length() {
        let tokens = f32s("tokens", &[2, 2, 1], &[0.1, 2.0, 3.0, 4.0]);
        let bytes = file(&[tokens, i64s("labels", &[2, 2], &[7, -1, -1, 3])]);
        let data = read("f", bytes.as_slice()).unwrap();
        assert_eq!(data.tokens, Tokens::Vectors { d: 1, data: vec![f64::from(0.1_f32), 2.0, 3.0, 4.0] });
        assert_eq!(data.offsets, [0, 2, 4]);
        assert_eq!(labels(&data), ["7", "-1", "-1", "3"]);
        assert_eq!(data.location(3).to_string(), "f (sequence 2, token 2)");
    }

    #[test]
    fn ragged_sequences_with_outputs() {
        let tokens = f32s("tokens", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let outputs = f32s("labels", &[3, 2], &[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
        let lengths = ("lengths", Dtype::U8, vec![2], vec![1, 2]);
        let data = read("f", file(&[tokens, lengths, outputs]).as_slice()).unwrap();
        assert_eq!(data.offsets, [0, 1, 3]);
        assert_eq!(data.labels, Labels::Vectors { d: 2, data: vec![6.0, 5.0, 4.0, 3.0, 2.0, 1.0] });
    }

    #[test]
    fn every_type_of_number() {
        let tokens = |dtype, bytes: &[u8]| ("tokens", dtype, vec![2, 1, 1], bytes.to_vec());
        let double = |x: f64| x.to_le_bytes();
        let cases = [
            (tokens(Dtype::F16, &[0x00, 0x3E, 0x01, 0x80]), [1.5, -(-24_f64).exp2()]),
            (tokens(Dtype::F16, &[0xFF, 0x7B, 0x00, 0x04]), [65504.0, (-14_f64).exp2()]),
            (tokens(Dtype::BF16, &[0xC0, 0x3F, 0x49, 0xC0]), [1.5, -3.140_625]),
            (tokens(Dtype::F64, &[double(0.1), double(-2e-308)].concat()), [0.1, -2e-308]),
        ];
        for (tensor, expected) in cases {
            let data = read("f", file(&[tensor]).as_slice()).unwrap();
            assert_eq!(data.tokens, Tokens::Vectors { d: 1, data: expected.to_vec() });
        }
        let cases = [
            (Dtype::I8, (-1_i8).to_le_bytes().to_vec(), "-1"),
            (Dtype::U8, 255_u8.to_le_bytes().to_vec(), "255"),
            (Dtype::I16, (-300_i16).to_le_bytes().to_vec(), "-300"),
            (Dtype::U16, 65535_u16.to_le_bytes().to_vec(), "65535"),
            (Dtype::I32, i32::MIN.to_le_bytes().to_vec(), "-2147483648"),
            (Dtype::U32, u32::MAX.to_le_bytes().to_vec(), "4294967295"),
            (Dtype::I64, i64::MIN.to_le_bytes().to_vec(), "-9223372036854775808"),
            (Dtype::U64, u64::MAX.to_le_bytes().to_vec(), "18446744073709551615"),
        ];
        for (dtype, bytes, name) in cases {
            let bytes = file(&[f32s("tokens", &[1, 1, 1], &[1.0]), ("labels", dtype, vec![1, 1], bytes)]);
            assert_eq!(labels(&read("f", bytes.as_slice()).unwrap()), [name]);
        }
    }

    #[test]
    fn half_precision_is_infinite_or_nan_where_it_should_be() {
        assert_eq!(binary16(0x7C00), f64::INFINITY);
        assert_eq!(binary16(0xFC00), f64::NEG_INFINITY);
        assert!(binary16(0x7C01).is_nan());
    }

    #[test]
    fn errors_name_the_tensor_and_the_place() {
        let dense = || f32s("tokens", &[2, 2, 1], &[1.0, 2.0, 3.0, 4.0]);
        let ragged = || f32s("tokens", &[4, 1], &[1.0, 2.0, 3.0, 4.0]);
        let lengths = |data: &[i64]| i64s("lengths", &[data.len()], data);
        let bools = |name, shape: &[usize]| (name, Dtype::BOOL, shape.to_vec(), vec![1; shape.iter().product()]);
        let nan = f32s("tokens", &[5, 2], &[1., 2., 3., 4., 5., 6., 7., f32::NAN, 9., 10.]);
        let infinite = f32s("labels", &[2, 2, 1], &[1.0, f32::NEG_INFINITY, 1.0, 1.0]);
        let cases: Vec<(Vec<ArrayTensor>, &str)> = vec![
            (vec![], "f: no tensor \"tokens\"; give \"tokens\" [N, n, d] or [T, d]"),
            (vec![i64s("labels", &[1], &[1])], "f: no tensor \"tokens\"; "),
            (vec![dense(), i64s("tags", &[1], &[1])], "f: unknown tensor \"tags\"; a dataset has"),
            (vec![f32s("tokens", &[2], &[1.0, 2.0])], "f: \"tokens\" [2] of rank 1; give them as [N, n, d] or [T, d]"),
            (vec![f32s("tokens", &[1, 1, 1, 1], &[1.0])], "f: \"tokens\" [1, 1, 1, 1] of rank 4; "),
            (vec![f32s("tokens", &[0, 2, 1], &[])], "f: not a safetensors file: tensor tokens has a size of 0; "),
            (vec![f32s("tokens", &[2, 0, 1], &[])], "f: not a safetensors file: tensor tokens has a size of 0; "),
            (vec![f32s("tokens", &[2, 2, 0], &[])], "f: not a safetensors file: tensor tokens has a size of 0; "),
            (vec![i64s("tokens", &[1, 1, 1], &[1])], "f: \"tokens\" of type I64; convert them to F32 or F64"),
            (vec![ragged()], "f: no tensor \"lengths\"; ragged \"tokens\" [T, d] need \"lengths\" [N]"),
            (vec![dense(), lengths(&[2, 2])], "f: \"lengths\" beside \"tokens\" of rank 3; leave \"lengths\" out"),
            (vec![ragged(), i64s("lengths", &[1, 1], &[4])], "f: \"lengths\" [1, 1] of rank 2; give them as [N]"),
            (vec![ragged(), f32s("lengths", &[1], &[4.0])], "f: \"lengths\" of type F32; lengths are integers"),
            (vec![ragged(), lengths(&[2, 0, 2])], "f (sequence 2): \"lengths\" has 0; every sequence has at least"),
            (vec![ragged(), lengths(&[5, -1])], "f (sequence 1): \"lengths\" exceed the 4 tokens; lengths add up to T"),
            (vec![ragged(), lengths(&[1, -1])], "f (sequence 2): \"lengths\" has -1; "),
            (vec![ragged(), lengths(&[1, i64::MAX, 1])], "f (sequence 2): \"lengths\" exceed the 4 tokens; "),
            (vec![ragged(), lengths(&[1, 2])], "f: \"lengths\" add up to 3 of 4 tokens; lengths add up to T"),
            (vec![ragged(), lengths(&[])], "f: not a safetensors file: tensor lengths has a size of 0; "),
            (
                vec![dense(), i64s("labels", &[4], &[1, 2, 3, 4])],
                "f: \"labels\" [4] of type I64; classes are integers [2, 2] here, and outputs floats [2, 2] with a dimension more",
            ),
            (vec![ragged(), lengths(&[4]), i64s("labels", &[2, 2], &[1; 4])], "f: \"labels\" [2, 2] of type I64; "),
            (vec![dense(), i64s("labels", &[2, 2, 1], &[1; 4])], "f: \"labels\" [2, 2, 1] of type I64; "),
            (vec![dense(), f32s("labels", &[2, 2], &[1.0; 4])], "f: \"labels\" [2, 2] of type F32; "),
            (vec![dense(), f32s("labels", &[2, 1, 2], &[1.0; 4])], "f: \"labels\" [2, 1, 2] of type F32; "),
            (vec![dense(), bools("labels", &[2, 2])], "f: \"labels\" [2, 2] of type BOOL; "),
            (vec![dense(), bools("labels", &[2, 2, 1])], "f: \"labels\" of type BOOL; convert them to F32 or F64"),
            (
                vec![nan, lengths(&[2, 3])],
                "f (sequence 2, token 2): \"tokens\" has NaN in coordinate 2; remove the sequence",
            ),
            (vec![dense(), infinite], "f (sequence 1, token 2): \"labels\" has -inf in coordinate 1; "),
        ];
        for (tensors, expected) in cases {
            let error = read("f", file(&tensors).as_slice()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "expected {expected}\ngot {error}");
        }
    }

    #[test]
    fn outputs_have_a_dimension_of_their_own() {
        let tokens = f32s("tokens", &[2, 1, 1], &[1.0, 2.0]);
        let bytes = file(&[tokens, f32s("labels", &[2, 1, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]);
        let labels = Labels::Vectors { d: 3, data: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0] };
        assert_eq!(read("f", bytes.as_slice()).unwrap().labels, labels);
    }

    #[test]
    fn files_of_another_kind_are_errors() {
        for bytes in [b"".as_slice(), b"a X\nb Y\n", &[0; 8], &[255; 64]] {
            let error = read("f", bytes).unwrap_err().to_string();
            assert!(error.starts_with("f: not a safetensors file: "), "{error}");
        }
    }
}
