//! The one fast kernel: a block of tokens times the first matrix of a feed-forward layer.

/// `out[t, j]` = `tokens[t]` . `rows[j]`, for row-major `tokens` `[T, d]` and `rows` `[q, d]`; summed in some order, fused or not.
pub fn products(tokens: &[f64], rows: &[f64], d: usize, out: &mut Vec<f64>) {
    let (t, q) = (tokens.len() / d, rows.len() / d);
    assert!(tokens.len() == t * d && rows.len() == q * d);
    out.clear();
    out.resize(t * q, 0.0);
    let (width, depth) = (q as isize, d as isize);
    // SAFETY: the strides stay inside the three slices, whose lengths were just checked, and `out` aliases neither input.
    #[allow(unsafe_code)]
    unsafe {
        gemm::gemm(
            t,
            q,
            d,
            out.as_mut_ptr(),
            1,
            width,
            false,
            tokens.as_ptr(),
            1,
            depth,
            rows.as_ptr(),
            depth,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_times_rows() {
        let mut out = Vec::new();
        super::products(&[1.0, 2.0, 3.0, 4.0], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 2, &mut out);
        assert_eq!(out, [1.0, 2.0, 3.0, 3.0, 4.0, 7.0]);
    }
}
