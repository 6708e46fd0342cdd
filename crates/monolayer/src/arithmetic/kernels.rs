//! The loops that take the time: matrix products, the exponential, softmax-weighted sums, in `f32` and `f64`.
//!
//! Each loop is plain code compiled several times, for the baseline and for wider vector units, and chosen when it runs
//! ([`pulp::Arch`]); the matrix products are the `gemm-f32` and `gemm-f64` crates', which do the same.

// Only what is inlined into [`vectorized`] is compiled for wider vector units.
#![allow(clippy::inline_always)]

use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// How a product is spread over threads.
pub use gemm_common::Parallelism;

/// A machine float, `f32` or `f64`.
pub trait Real:
    crate::attention::HeadNumber
    + Copy
    + Send
    + Sync
    + Default
    + PartialOrd
    + PartialEq
    + std::fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Half the distance from 1 to the next number.
    const UNIT_ROUNDOFF: Self;
    /// The smallest positive normal number.
    const SMALLEST: Self;
    /// The largest finite number.
    const LARGEST: Self;
    /// Minus infinity.
    const NEG_INFINITY: Self;
    /// `"f32"` or `"f64"`, as in a model's config.
    const NAME: &'static str;
    /// The nearest machine float.
    fn from_f64(x: f64) -> Self;
    /// The same number in double precision.
    fn to_f64(self) -> f64;
    /// The larger of two numbers.
    #[must_use]
    fn larger(self, other: Self) -> Self;
    /// Whether it is neither infinite nor NaN.
    fn finite(self) -> bool;
    /// The numbers in little-endian bytes.
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;
    /// Little-endian bytes of the numbers.
    fn to_bytes(numbers: &[Self]) -> Vec<u8>;
    /// e^x for x <= 0, within 2 ulp; results below the smallest normal number are 0.
    #[must_use]
    fn exp_nonpositive(self) -> Self;
    /// The square root.
    #[must_use]
    fn square_root(self) -> Self;
    /// The routine for matrix products, for this machine's widest vector unit.
    #[doc(hidden)]
    fn gemm() -> Gemm<Self>;
}

/// `dst = alpha dst + beta lhs rhs`: m, n and k; dst with column and row stride, and whether it is read; lhs and rhs likewise;
/// alpha and beta; three flags for complex numbers; threads.
#[doc(hidden)]
pub type Gemm<R> = unsafe fn(
    usize,
    usize,
    usize,
    *mut R,
    isize,
    isize,
    bool,
    *const R,
    isize,
    isize,
    *const R,
    isize,
    isize,
    R,
    R,
    bool,
    bool,
    bool,
    Parallelism,
);

/// 1 / j!.
const INVERSE_FACTORIALS: [f64; 14] = {
    let mut list = [1.0; 14];
    let mut j = 1;
    while j < 14 {
        list[j] = list[j - 1] / j as f64;
        j += 1;
    }
    list
};

/// `exp` by x = k ln 2 + r with |r| <= ln 2 / 2: a Taylor polynomial in r, then k added to the exponent. Adding the magic
/// number 1.5 * 2^(digits - 1) rounds to the nearest integer and leaves it in the low bits. ln 2 comes in two parts, the
/// first with so few bits that its product with k is exact.
macro_rules! real {
    ($float:ident, $bits:ident, $name:literal, $gemm:path, degree: $degree:literal, ln2: $high:literal + $low:literal) => {
        impl Real for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const UNIT_ROUNDOFF: Self = $float::EPSILON / 2.0;
            const SMALLEST: Self = $float::MIN_POSITIVE;
            const LARGEST: Self = $float::MAX;
            const NEG_INFINITY: Self = $float::NEG_INFINITY;
            const NAME: &'static str = $name;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $float
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                if other > self { other } else { self }
            }
            fn finite(self) -> bool {
                self.is_finite()
            }
            #[inline(always)]
            fn square_root(self) -> Self {
                self.sqrt()
            }
            fn gemm() -> Gemm<Self> {
                $gemm()
            }
            fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                let (numbers, _) = bytes.as_chunks();
                numbers.iter().map(|&bytes| $float::from_le_bytes(bytes)).collect()
            }
            fn to_bytes(numbers: &[Self]) -> Vec<u8> {
                numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
            }
            #[inline(always)]
            fn exp_nonpositive(self) -> Self {
                const DIGITS: u32 = $float::MANTISSA_DIGITS - 1;
                const MAGIC: $float = 1.5 * (1_u64 << DIGITS) as $float;
                const BIAS: $bits = $float::MAX_EXP as $bits - 1;
                const SMALLEST: $float = ($float::MIN_EXP - 1) as $float * std::$float::consts::LN_2;
                let shifted = self.larger(SMALLEST) * std::$float::consts::LOG2_E + MAGIC;
                let k = shifted - MAGIC;
                let r = (self - k * $high) - k * $low;
                let mut sum = 0.0;
                let mut j = 0;
                while j <= $degree {
                    sum = sum * r + INVERSE_FACTORIALS[$degree - j] as $float;
                    j += 1;
                }
                let power = $float::from_bits(shifted.to_bits().wrapping_add(BIAS) << DIGITS);
                if self < SMALLEST { 0.0 } else { sum * power }
            }
        }
    };
}

real!(f32, u32, "f32", gemm_f32::gemm::f32::get_gemm_fn, degree: 7, ln2: 0.693_359_4 + -2.121_944_4e-4);
real!(f64, u64, "f64", gemm_f64::gemm::f64::get_gemm_fn, degree: 13, ln2: 0.693_147_180_369_123_8 + 1.908_214_929_270_587_7e-10);

/// `out = a b^T`, or `out += a b^T` when `add`, for row-major `a [m, k]`, `b [n, k]`, `out [m, n]`.
pub fn product<R: Real>(a: &[R], b: &[R], k: usize, out: &mut [R], add: bool, parallelism: Parallelism) {
    let (m, n) = (a.len() / k, b.len() / k);
    product_strided(m, n, k, a, (k, 1), b, (1, k), out, add, parallelism);
}

/// `out = a b` or `out += a b`, `a` being `m x k` and `b` being `k x n`, both with (row, column) strides, `out` row-major.
#[allow(unsafe_code, clippy::too_many_arguments)]
pub fn product_strided<R: Real>(
    m: usize,
    n: usize,
    k: usize,
    a: &[R],
    (a_row, a_column): (usize, usize),
    b: &[R],
    (b_row, b_column): (usize, usize),
    out: &mut [R],
    add: bool,
    parallelism: Parallelism,
) {
    if m == 0 || n == 0 {
        return;
    }
    assert!(k > 0 && m.checked_mul(n).is_some_and(|entries| entries <= out.len()));
    let last = |(rows, row): (usize, usize), (columns, column): (usize, usize)| {
        (rows - 1).checked_mul(row)?.checked_add((columns - 1).checked_mul(column)?)
    };
    let within = |len: usize, last: Option<usize>| last.is_some_and(|last| last < len);
    assert!(within(a.len(), last((m, a_row), (k, a_column))) && within(b.len(), last((k, b_row), (n, b_column))));
    let stride = |s: usize| isize::try_from(s).expect("a stride within memory");
    // As (rows, pointer, column stride, row stride). The routine writes down columns: a result of several columns is
    // computed transposed, `b^T a^T`.
    let mut left = (m, a.as_ptr(), stride(a_column), stride(a_row));
    let mut right = (n, b.as_ptr(), stride(b_column), stride(b_row));
    let mut result = (1, stride(n));
    if n > 1 {
        let swapped = |(rows, start, column, row)| (rows, start, row, column);
        (left, right, result) = (swapped(right), swapped(left), (result.1, result.0));
    }
    // SAFETY: the assertions above keep every index that the strides reach within the slices.
    unsafe {
        R::gemm()(
            left.0,
            right.0,
            k,
            out.as_mut_ptr(),
            result.0,
            result.1,
            add,
            left.1,
            left.2,
            left.3,
            right.1,
            right.2,
            right.3,
            R::ONE,
            R::ONE,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// Lanes of the sums below: enough for the widest vector unit. The order of summation is the same on every machine.
const LANES: usize = 16;

/// Runs a loop with the widest vector unit of this machine. The closure, and what it calls, must be `#[inline(always)]`: only
/// code that ends up inside is compiled for that unit.
#[inline]
pub fn vectorized<T>(run: impl FnOnce() -> T) -> T {
    pulp::Arch::new().dispatch(run)
}

/// Asks for numbers that are read soon. Changes nothing but the time that the reading takes.
#[inline(always)]
#[allow(unsafe_code)]
pub fn prefetch<R: Real>(x: &[R]) {
    #[cfg(target_arch = "x86_64")]
    for line in x.chunks(64 / size_of::<R>()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint about an address within the slice; every processor of this architecture has the instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = x;
}

/// The largest entry.
#[inline(always)]
pub fn largest<R: Real>(x: &[R]) -> R {
    let mut lanes = [x[0]; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for l in 0..LANES {
            lanes[l] = lanes[l].larger(block[l]);
        }
    }
    for &x in rest {
        lanes[0] = lanes[0].larger(x);
    }
    let mut top = lanes[0];
    for &x in &lanes {
        top = top.larger(x);
    }
    top
}

/// The sum of the entries.
#[inline(always)]
pub fn sum<R: Real>(x: &[R]) -> R {
    let mut lanes = [R::ZERO; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for l in 0..LANES {
            lanes[l] += block[l];
        }
    }
    for (l, &x) in rest.iter().enumerate() {
        lanes[l] += x;
    }
    sum_of_lanes(lanes)
}

/// The sum of the products of the entries.
#[inline(always)]
pub fn dot<R: Real>(x: &[R], y: &[R]) -> R {
    let mut lanes = [R::ZERO; LANES];
    let ((x_blocks, x_rest), (y_blocks, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x_blocks.iter().zip(y_blocks) {
        for l in 0..LANES {
            lanes[l] += x[l] * y[l];
        }
    }
    for l in 0..x_rest.len() {
        lanes[l] += x_rest[l] * y_rest[l];
    }
    sum_of_lanes(lanes)
}

/// The sum of the lanes, whose number is a power of two, halves first.
#[inline(always)]
pub fn sum_of_lanes<R: Real, const N: usize>(mut lanes: [R; N]) -> R {
    let mut width = N / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Replaces scores by their softmax weights before normalization, `e^(score - largest)`, and returns their sum.
#[inline(always)]
pub fn soften<R: Real>(scores: &mut [R]) -> R {
    let shift = largest(scores);
    for s in scores.iter_mut() {
        *s = (*s - shift).exp_nonpositive();
    }
    sum(scores)
}

/// Replaces scores by their hardmax weights before normalization, 1 where the score is largest, and returns their sum.
#[inline(always)]
pub fn harden<R: Real>(scores: &mut [R]) -> R {
    let top = largest(scores);
    for s in scores.iter_mut() {
        *s = if *s == top { R::ONE } else { R::ZERO };
    }
    sum(scores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exp_within_two_ulp(x in -800.0_f64..=0.0) {
            let (true64, ours64) = (core_math::exp(x), x.exp_nonpositive());
            prop_assert!((ours64 - true64).abs() <= 2.0 * f64::EPSILON * true64 + f64::MIN_POSITIVE);
            let x = (x / 8.0) as f32;
            let (true32, ours32) = (core_math::exp(f64::from(x)), f64::from(x.exp_nonpositive()));
            prop_assert!((ours32 - true32).abs() <= 2.0 * f64::from(f32::EPSILON) * true32 + f64::from(f32::MIN_POSITIVE));
        }

        #[test]
        fn reductions_equal_plain_loops(x in prop::collection::vec(-9_i32..9, 1..200)) {
            // Small integers: every order of summation is exact.
            let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
            let plain = (x.iter().copied().fold(f32::MIN, f32::max), x.iter().sum::<f32>(), x.iter().map(|x| x * x).sum::<f32>());
            let portable = (largest(&x), sum(&x), dot(&x, &x));
            let wide = vectorized(#[inline(always)] || (largest(&x), sum(&x), dot(&x, &x)));
            prop_assert_eq!(portable, plain);
            prop_assert_eq!(wide, plain);
        }

        #[test]
        fn products_equal_plain_loops(m in 1_usize..20, n in 1_usize..20, k in 1_usize..20, add: bool) {
            let entry = |i: usize| ((i * 7919 + 13) % 17) as f64 - 8.0;
            let a: Vec<f64> = (0..m * k).map(entry).collect();
            let b: Vec<f64> = (0..n * k).map(|i| entry(i + 5)).collect();
            let mut out = vec![3.0; m * n];
            product(&a, &b, k, &mut out, add, Parallelism::None);
            for i in 0..m {
                for j in 0..n {
                    let plain: f64 = (0..k).map(|t| a[i * k + t] * b[j * k + t]).sum();
                    prop_assert_eq!(out[i * n + j], plain + if add { 3.0 } else { 0.0 });
                }
            }
        }
    }

    #[test]
    fn exp_at_the_edges() {
        assert_eq!(0.0_f64.exp_nonpositive(), 1.0);
        assert_eq!(f64::MIN.exp_nonpositive(), 0.0);
        assert_eq!(f32::MIN.exp_nonpositive(), 0.0);
        assert_eq!((-745.0_f64).exp_nonpositive(), 0.0);
    }
}
