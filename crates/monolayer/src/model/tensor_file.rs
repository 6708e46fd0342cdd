//! The tensors of a model: safetensors files, read strictly, and matrices that are stored by their nonzero entries.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors};
use serde_json::Value;

use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::error::{Error, Result};
use crate::model::directory::AttentionConfig;
use crate::model::{narrow, strict_json};
use crate::paper::attention::{Attention, AttentionHead, Mask};
use crate::paper::feed_forward::FeedForward;

/// Matrices stored sparsely may become this many bytes together.
const MOST_DENSE_BYTES: usize = 2 << 30;

/// The tensors of a file, which must keep every rule of docs/format.md and not only those of the safetensors format.
pub(crate) fn parse(bytes: &[u8]) -> std::result::Result<SafeTensors<'_>, String> {
    check_header(bytes)?;
    SafeTensors::deserialize(bytes).map_err(|e| e.to_string())
}

/// What the safetensors library leaves open: fields named twice, other fields, sizes of 0, metadata of other kinds.
fn check_header(bytes: &[u8]) -> std::result::Result<(), String> {
    let (length, rest) = bytes.split_first_chunk().ok_or("fewer than 8 bytes")?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok();
    let header = length.and_then(|length| rest.get(..length)).ok_or("the header is longer than the file")?;
    if !header.starts_with(b"{") {
        return Err("the header does not start with {".to_owned());
    }
    let Value::Object(entries) = strict_json::parse(header)? else { return Err("the header is no object".to_owned()) };
    for (name, entry) in &entries {
        let Value::Object(fields) = entry else { return Err(format!("{name:?} in the header is no object")) };
        if name == "__metadata__" {
            if !fields.values().all(Value::is_string) {
                return Err("__metadata__ has something that is no string".to_owned());
            }
            continue;
        }
        if fields.len() != 3 || !["dtype", "shape", "data_offsets"].iter().all(|field| fields.contains_key(*field)) {
            return Err(format!("tensor {name} has other fields than dtype, shape and data_offsets"));
        }
        let sizes = fields["shape"].as_array().ok_or_else(|| format!("tensor {name} has a shape that is no list"))?;
        if sizes.iter().any(|size| size.as_u64() == Some(0)) {
            return Err(format!("tensor {name} has a size of 0"));
        }
    }
    Ok(())
}

/// The dense form, row-major, of a matrix stored by rows: those of row i are `values` and `columns` from `rows[i]` to
/// `rows[i + 1]`.
fn dense<T: Clone>(
    (height, width): (usize, usize),
    values: &[T],
    columns: &[i32],
    rows: &[i32],
    zero: T,
) -> std::result::Result<Vec<T>, String> {
    let starts: Option<Vec<usize>> = rows.iter().map(|&row| usize::try_from(row).ok()).collect();
    let starts = starts.filter(|starts| starts.first() == Some(&0) && starts.last() == Some(&values.len()));
    let starts = starts.filter(|starts| starts.is_sorted());
    let starts = starts.ok_or("its rows do not go from 0 to the number of its values")?;
    if columns.len() != values.len() || starts.len() != height + 1 {
        return Err("its parts are not of one matrix".to_owned());
    }
    let mut matrix = vec![zero; height * width];
    for (row, range) in starts.windows(2).map(|pair| pair[0]..pair[1]).enumerate() {
        if !columns[range.clone()].is_sorted_by(|a, b| a < b) {
            return Err(format!("the columns of its row {row} do not increase"));
        }
        for i in range {
            let column = usize::try_from(columns[i]).ok().filter(|&column| column < width);
            let column = column.ok_or_else(|| format!("it has column {} of {width}", columns[i]))?;
            matrix[row * width + column] = values[i].clone();
        }
    }
    Ok(matrix)
}

/// The tensors of a file that have not been taken yet.
pub(crate) struct Tensors<'a, T> {
    path: &'a Path,
    /// Shape and numbers by name.
    numbers: HashMap<String, (Vec<usize>, Vec<T>)>,
    /// Columns and rows of matrices that are stored sparsely.
    indices: HashMap<String, Vec<i32>>,
    /// The zero that such matrices are filled with, for numbers that may be stored so.
    zero: Option<T>,
    /// How many numbers such matrices may still become.
    dense: usize,
}

/// What is wrong if config.json and the file of tensors contradict each other.
fn not_of_one_model(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("config.json and {name} are not of one model")
}

impl<'a, R: Real> Tensors<'a, R> {
    pub fn parse(path: &'a Path, bytes: &[u8], version_2: bool) -> Result<Self> {
        let file = parse(bytes).map_err(|e| {
            Error::model(path, format!("not a safetensors file ({e})"), "it may be truncated; write or copy it again")
        })?;
        let mut read = Self::new(path, HashMap::new());
        read.zero = version_2.then_some(R::ZERO);
        for (name, view) in file.tensors() {
            let index = name.rsplit_once('.').is_some_and(|(_, part)| part == "columns" || part == "rows");
            if version_2 && index && view.dtype() == Dtype::I32 && view.shape().len() == 1 {
                let number = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("four bytes"));
                read.indices.insert(name, view.data().chunks_exact(4).map(number).collect());
                continue;
            }
            let wide = if R::NAME == f32::NAME { Dtype::F32 } else { Dtype::F64 };
            let numbers = match view.dtype() {
                dtype if dtype == wide => R::from_bytes(view.data()),
                // Every number of a narrower dtype is one of the wider.
                dtype if version_2 && narrow::may_hold(dtype, wide) => {
                    narrow::decoded(dtype, view.data()).map(R::from_f64).collect()
                }
                dtype => {
                    let dtype = format!("{dtype:?}").to_lowercase();
                    let what = format!("tensor {name} is {dtype} where config.json says {}", R::NAME);
                    return Err(Error::model(path, what, not_of_one_model(path)));
                }
            };
            if let Some(i) = numbers.iter().position(|x| !x.finite()) {
                let what = format!("tensor {name} has {:?} at entry {i}", numbers[i]);
                return Err(Error::model(path, what, "weights must be finite; make the model again"));
            }
            read.numbers.insert(name, (view.shape().to_vec(), numbers));
        }
        Ok(read)
    }
}

impl<'a, T: Clone> Tensors<'a, T> {
    /// Tensors by name, from the file at `path`, as many numbers each as the shape says.
    pub fn new(path: &'a Path, tensors: HashMap<String, (Vec<usize>, Vec<T>)>) -> Self {
        Self { path, numbers: tensors, indices: HashMap::new(), zero: None, dense: MOST_DENSE_BYTES / size_of::<T>() }
    }

    pub fn has(&self, name: &str) -> bool {
        self.numbers.contains_key(name)
    }

    pub fn rows(&self, name: &str) -> Result<usize> {
        match self.numbers[name].0[..] {
            [rows, _] if rows > 0 => Ok(rows),
            ref shape => Err(self.wrong_shape(name, shape, "[words, d]")),
        }
    }

    fn wrong_shape(&self, name: &str, shape: &[usize], expected: &str) -> Error {
        let what = format!("tensor {name} has shape {shape:?} where config.json asks for {expected}");
        Error::model(self.path, what, not_of_one_model(self.path))
    }

    /// Takes a tensor out, as numbers, its shape checked.
    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<T>> {
        let Some((found, numbers)) = self.numbers.remove(name) else {
            return Err(Error::model(self.path, format!("tensor {name} is missing"), not_of_one_model(self.path)));
        };
        if found != shape {
            return Err(self.wrong_shape(name, &found, &format!("{shape:?}")));
        }
        Ok(numbers)
    }

    pub fn vector(&mut self, name: &str, len: usize) -> Result<Vec<T>> {
        self.take(name, &[len])
    }

    pub fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<Matrix<T>> {
        Ok(Matrix::new(rows, cols, self.take(name, &[rows, cols])?))
    }

    /// A matrix that may be stored sparsely.
    fn stored(&mut self, name: &str, rows: usize, cols: usize) -> Result<Matrix<T>> {
        let values = format!("{name}.values");
        let (false, true, Some(zero)) = (self.has(name), self.has(&values), self.zero.clone()) else {
            return self.matrix(name, rows, cols);
        };
        let fail = |what: String| Error::model(self.path, what, not_of_one_model(self.path));
        let (shape, values) = self.numbers.remove(&values).expect("it is there");
        let [columns, starts] = ["columns", "rows"].map(|part| self.indices.remove(&format!("{name}.{part}")));
        let (Some(columns), Some(starts), [_]) = (columns, starts, &shape[..]) else {
            return Err(fail(format!("matrix {name} is stored sparsely without .columns, .rows or a list of .values")));
        };
        let left = rows.checked_mul(cols).and_then(|numbers| self.dense.checked_sub(numbers));
        self.dense = left.ok_or_else(|| fail(format!("matrix {name} and others become more than 2 GiB")))?;
        let numbers = dense((rows, cols), &values, &columns, &starts, zero);
        Ok(Matrix::new(rows, cols, numbers.map_err(|what| fail(format!("matrix {name}: {what}")))?))
    }

    pub fn feed_forward(&mut self, prefix: &str, hidden: usize, d: usize) -> Result<FeedForward<T>> {
        Ok(FeedForward {
            w1: self.stored(&format!("{prefix}.w1"), hidden, d)?,
            b1: self.vector(&format!("{prefix}.b1"), hidden)?,
            w2: self.stored(&format!("{prefix}.w2"), d, hidden)?,
            b2: self.vector(&format!("{prefix}.b2"), d)?,
        })
    }

    pub fn attention(&mut self, layer: usize, config: &AttentionConfig, mask: Mask, d: usize) -> Result<Attention<T>> {
        let &AttentionConfig { kind, heads, head_size, .. } = config;
        let mut stack = |name: &str, rows: usize, cols: usize| -> Result<Vec<Matrix<T>>> {
            let numbers = self.take(&format!("layers.{layer}.attention.{name}"), &[heads, rows, cols])?;
            Ok(numbers.chunks_exact(rows * cols).map(|head| Matrix::new(rows, cols, head.to_vec())).collect())
        };
        let (q, k) = (stack("w_q", head_size, d)?, stack("w_k", head_size, d)?);
        let (v, o) = (stack("w_v", head_size, d)?, stack("w_o", d, head_size)?);
        let heads = q.into_iter().zip(k).zip(v).zip(o);
        let heads = heads.map(|(((w_q, w_k), w_v), w_o)| AttentionHead { w_q, w_k, w_v, w_o }).collect();
        Ok(Attention { kind, mask, heads })
    }

    /// Every tensor must have been taken: one that config.json does not know is a mistake somewhere.
    pub fn finish(self) -> Result<()> {
        match self.numbers.keys().chain(self.indices.keys()).min() {
            None => Ok(()),
            Some(name) => Err(Error::model(
                self.path,
                format!("tensor {name} has no place in the model"),
                not_of_one_model(self.path),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    }

    #[test]
    fn headers() {
        let tensor = r#""a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
        for good in [format!("{{{tensor}}}  "), format!("{{\"__metadata__\":{{\"a\":\"b\"}},{tensor}}}")] {
            assert!(parse(&file(&good, 4)).is_ok(), "{good}");
        }
        for (bad, expected) in [
            (format!(" {{{tensor}}}"), "does not start with {"),
            (format!("{{{tensor},{tensor}}}"), "a second time"),
            (format!("{{\"__metadata__\":{{\"a\":1}},{tensor}}}"), "no string"),
            (format!("{{\"__metadata__\":null,{tensor}}}"), "no object"),
            (r#"{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#.to_owned(), "a size of 0"),
            (r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}"#.to_owned(), "other fields"),
            (r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4.0]}}"#.to_owned(), ""),
        ] {
            let error = parse(&file(&bad, 4)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(parse(b"short").is_err() && parse(&u64::MAX.to_le_bytes()).is_err());
    }

    #[test]
    fn sparse_matrices() {
        let dense = |values: &[f64], columns: &[i32], rows: &[i32]| dense((2, 3), values, columns, rows, 0.0);
        assert_eq!(dense(&[1.0, 2.0, 3.0], &[0, 2, 1], &[0, 2, 3]).unwrap(), [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]);
        assert_eq!(dense(&[1.0], &[2], &[0, 0, 1]).unwrap(), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        for (columns, rows) in [
            (&[0, 2, 1][..], &[0, 2, 2][..]),
            (&[0, 2, 1], &[1, 2, 3]),
            (&[0, 2, 1], &[0, 4, 3]),
            (&[0, 2, 1], &[0, -1, 3]),
            (&[0, 2, 1], &[0, 3]),
            (&[0, 2], &[0, 2, 3]),
            (&[2, 0, 1], &[0, 2, 3]),
            (&[0, 0, 1], &[0, 2, 3]),
            (&[0, 3, 1], &[0, 2, 3]),
            (&[-1, 2, 1], &[0, 2, 3]),
        ] {
            assert!(dense(&[1.0, 2.0, 3.0], columns, rows).is_err(), "{columns:?} {rows:?}");
        }
    }
}
