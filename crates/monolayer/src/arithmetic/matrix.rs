//! Row-major matrices: just enough of them.

/// A row-major matrix.
///
/// ```
/// use monolayer::Matrix;
///
/// let m = Matrix::from_fn(2, 3, |i, j| 10 * i + j);
/// assert_eq!(m.row(1), [10, 11, 12]);
/// assert_eq!(m.map(|x| x % 2).data, [0, 1, 0, 0, 1, 0]);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix<T> {
    /// How many rows.
    pub rows: usize,
    /// How many columns.
    pub cols: usize,
    /// The entries, row after row.
    pub data: Vec<T>,
}

impl<T: Clone> Matrix<T> {
    /// A matrix from its entries, row after row.
    pub fn new(rows: usize, cols: usize, data: Vec<T>) -> Self {
        assert_eq!(data.len(), rows * cols, "a {rows} x {cols} matrix");
        Self { rows, cols, data }
    }

    /// A matrix from a formula for its entries.
    pub fn from_fn(rows: usize, cols: usize, mut entry: impl FnMut(usize, usize) -> T) -> Self {
        let data = (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect();
        Self { rows, cols, data }
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`, to change.
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// The rows, in order.
    pub fn iter_rows(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.rows).map(|i| self.row(i))
    }

    /// The matrix with each entry replaced.
    pub fn map<U>(&self, change: impl FnMut(&T) -> U) -> Matrix<U> {
        Matrix { rows: self.rows, cols: self.cols, data: self.data.iter().map(change).collect() }
    }
}
