//! How the numbers of a model are stored: matrices in full, or by their nonzero entries.

use safetensors::tensor::{Dtype, TensorView};

use super::{Model, file};
use crate::arithmetic::kernels::Real;

/// How the matrices of feed-forward blocks are written. They are read as the same numbers, in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// By their nonzero entries where that is smaller and the model is of format `monolayer/2` anyway; else in full.
    #[default]
    Auto,
    /// In full.
    Dense,
    /// By their nonzero entries where that is smaller.
    Sparse,
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

impl Storage {
    /// The tensors of a model as they are written, and whether some of them are by nonzero entries; `newer` for a model that is of
    /// format `monolayer/2` anyway.
    pub(crate) fn stored<R: Real>(self, model: &Model<R>, newer: bool) -> (Vec<StoredTensor>, bool) {
        let dtype = if R::NAME == f32::NAME { Dtype::F32 } else { Dtype::F64 };
        let may = self == Self::Sparse || (self == Self::Auto && newer);
        let (mut tensors, mut sparse) = (Vec::new(), false);
        for (name, shape, numbers) in file::tensors(model) {
            let dense = StoredTensor { name, dtype, shape, bytes: R::to_bytes(&numbers) };
            let matrix = matches!(dense.name.rsplit('.').next(), Some("w1" | "w2"));
            match Some(()).filter(|()| may && matrix).and_then(|()| by_nonzeros(&dense)) {
                Some(parts) => {
                    sparse = true;
                    tensors.extend(parts);
                }
                None => tensors.push(dense),
            }
        }
        (tensors, sparse)
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
