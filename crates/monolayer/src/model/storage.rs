//! How the numbers of a model are stored: in full, by their nonzero entries, in fewer bytes each.

use safetensors::tensor::{Dtype, TensorView};

use std::borrow::Cow;
use std::path::Path;

use super::directory::FORMAT_2;
use super::{AnyModel, Model, directory, narrow};
use crate::arithmetic::kernels::Real;
use crate::error::Result;

/// How tensors are written. They are read as the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// As `Small` for models that are of format `monolayer/2` anyway, and for those that are large and get smaller by half;
    /// else in full, so that programs that know `monolayer/1` alone read the model.
    #[default]
    Auto,
    /// In full.
    Dense,
    /// `w1` and `w2` by their nonzero entries where that is smaller.
    Sparse,
    /// Every tensor in the narrowest dtype that has all of its numbers exactly; `w1` and `w2` by their nonzero entries where that is
    /// smaller still.
    Small,
}

/// A tensor as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTensor {
    /// Its name.
    pub name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl StoredTensor {
    pub(crate) fn view(&self) -> TensorView<'_> {
        TensorView::new(self.dtype, self.shape.clone(), &self.bytes).expect("as many bytes as the shape says")
    }
}

/// What an entry of the header takes, about: three tensors in the place of one take more of it.
const HEADER: usize = 100;

/// Bytes from which a model is worth another format.
const LARGE: usize = 1_000_000;

impl Storage {
    /// How the numbers of a model directory are stored; `Auto` where in no way that this program would.
    pub(crate) fn of(model: &AnyModel, dir: &Path) -> Result<Self> {
        let path = dir.join("model.safetensors");
        let bytes = directory::read_file(&path)?;
        for storage in [Self::Auto, Self::Dense, Self::Small, Self::Sparse] {
            let stored = match model {
                AnyModel::F32(model) => storage.stored(model, directory::config(model).format == FORMAT_2).0,
                AnyModel::F64(model) => storage.stored(model, directory::config(model).format == FORMAT_2).0,
                AnyModel::Exact(_) => break,
            };
            if directory::tensor_bytes(&stored, &path)? == bytes {
                return Ok(storage);
            }
        }
        Ok(Self::Auto)
    }

    /// The tensors of a model as they are written, and whether that takes format `monolayer/2`; `newer` for a model that is of that
    /// format anyway.
    pub(crate) fn stored<R: Real>(self, model: &Model<R>, newer: bool) -> (Vec<StoredTensor>, bool) {
        let dtype = if R::NAME == f32::NAME { Dtype::F32 } else { Dtype::F64 };
        // One tensor after the other: large models fit into memory a few times at most.
        let full = |(name, shape, numbers): &(String, Vec<usize>, Cow<[R]>)| StoredTensor {
            name: name.clone(),
            dtype,
            shape: shape.clone(),
            bytes: R::to_bytes(numbers),
        };
        let tensors = directory::tensors(model);
        let dense = || tensors.iter().map(full).collect::<Vec<StoredTensor>>();
        let written: Vec<StoredTensor> = match self {
            Self::Dense => dense(),
            Self::Sparse => tensors.iter().flat_map(|tensor| sparsest(full(tensor))).collect(),
            Self::Auto | Self::Small => tensors.iter().flat_map(|tensor| full(tensor).smallest(&tensor.2)).collect(),
        };
        if self == Self::Auto && !newer {
            let size = |bytes: usize| bytes + HEADER;
            let in_full: usize = tensors.iter().map(|(_, _, numbers)| size(size_of_val(&**numbers))).sum();
            let in_parts: usize = written.iter().map(|tensor| size(tensor.bytes.len())).sum();
            if in_full < LARGE || 2 * in_parts > in_full {
                return (dense(), false);
            }
        }
        let other = |tensor: &StoredTensor| tensor.dtype != dtype;
        let other = written.iter().any(other);
        (written, other)
    }
}

impl StoredTensor {
    /// It or its parts, in the fewest bytes.
    fn smallest<R: Real>(self, numbers: &[R]) -> Vec<Self> {
        let narrow = narrow::narrowed(numbers, self.dtype);
        let (dtype, bytes) = narrow.unwrap_or((self.dtype, self.bytes));
        sparsest(Self { dtype, bytes, ..self })
    }
}

/// A tensor, or its parts if it is a matrix of a feed-forward block that gets smaller so.
fn sparsest(tensor: StoredTensor) -> Vec<StoredTensor> {
    let matrix = matches!(tensor.name.rsplit('.').next(), Some("w1" | "w2"));
    match Some(&tensor).filter(|_| matrix).and_then(by_nonzeros) {
        Some(parts) => parts.into(),
        None => vec![tensor],
    }
}

/// The entries of a matrix by rows, their columns, and where each row begins among them; nothing where that takes no less room.
/// A zero with a sign is an entry: the numbers stay what they are.
fn by_nonzeros(matrix: &StoredTensor) -> Option<[StoredTensor; 3]> {
    let [height, width] = matrix.shape[..] else { return None };
    let size = matrix.bytes.len() / (height * width);
    let (mut values, mut columns, mut rows) = (Vec::new(), Vec::new(), vec![0]);
    for row in matrix.bytes.chunks_exact(width * size) {
        for (column, number) in (0_i32..).zip(row.chunks_exact(size)) {
            if number.iter().any(|&byte| byte != 0) {
                values.extend(number);
                columns.push(column);
            }
        }
        rows.push(i32::try_from(columns.len()).ok()?);
    }
    // A tensor without numbers is no tensor of the format.
    if columns.is_empty() || values.len() + 4 * (columns.len() + rows.len()) + 2 * HEADER >= matrix.bytes.len() {
        return None;
    }
    let part = |part: &str, dtype, count, bytes| StoredTensor {
        name: format!("{}.{part}", matrix.name),
        dtype,
        shape: vec![count],
        bytes,
    };
    let indices = |list: &[i32]| list.iter().flat_map(|index| index.to_le_bytes()).collect();
    Some([
        part("values", matrix.dtype, columns.len(), values),
        part("columns", Dtype::I32, columns.len(), indices(&columns)),
        part("rows", Dtype::I32, rows.len(), indices(&rows)),
    ])
}
