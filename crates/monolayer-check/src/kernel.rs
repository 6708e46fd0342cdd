//! The one fast kernel: blocks of tokens times matrices, in f64, summed in some order, fused or not.

/// `out[t, j]` = `tokens[t]` . `rows[j]`, for row-major `tokens` `[T, d]` and `rows` `[q, d]`.
pub fn products(tokens: &[f64], rows: &[f64], d: usize, out: &mut Vec<f64>) {
    let (t, q) = (tokens.len() / d, rows.len() / d);
    out.clear();
    out.resize(t * q, 0.0);
    multiply([t, q, d], tokens, rows, [1, d], out);
}

/// `out[t, c]` += sum over j of `units[t, j]` `rows[j, c]`, for row-major `units` `[T, q]`, `rows` `[q, d]` and `out` `[T, d]`.
pub fn add_products(units: &[f64], rows: &[f64], d: usize, out: &mut [f64]) {
    let q = rows.len() / d;
    multiply([out.len() / d, d, q], units, rows, [d, 1], out);
}

/// `out` `[m, n]` += `left` `[m, k]` times the `[k, n]` matrix whose entry (i, j) is at i `step[0]` + j `step[1]` of `right`.
fn multiply([m, n, k]: [usize; 3], left: &[f64], right: &[f64], step: [usize; 2], out: &mut [f64]) {
    assert!(left.len() == m * k && right.len() == k * n && out.len() == m * n);
    assert!(step == [n, 1] || step == [1, k]);
    let [down, across] = step.map(|step| step as isize);
    // SAFETY: the strides stay inside the three slices, whose lengths were just checked, and `out` aliases neither input.
    #[allow(unsafe_code)]
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            true,
            left.as_ptr(),
            1,
            k as isize,
            right.as_ptr(),
            across,
            down,
            1.0,
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
    fn rows_times_rows_and_columns() {
        let (left, right) = ([1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        let mut out = Vec::new();
        super::products(&left, &right, 2, &mut out);
        assert_eq!(out, [1.0, 2.0, 3.0, 3.0, 4.0, 7.0]);
        let mut sums = vec![10.0; 6];
        super::add_products(&left, &[1.0, 0.0, 2.0, 0.0, 1.0, 3.0], 3, &mut sums);
        assert_eq!(sums, [11.0, 12.0, 18.0, 13.0, 14.0, 28.0]);
    }
}
