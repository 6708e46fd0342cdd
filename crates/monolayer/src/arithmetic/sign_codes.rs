//! Codes with entries +1 and -1, packed into bits: inner products of one vector with all of them, by tables of what a few signs
//! at a time add up to.

// Only what is inlined into the closure is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use super::matrix::Matrix;

/// Codes side by side in the loop over short numbers.
const LANES: usize = 32;

/// Codes of +1 and -1. A bit is set for +1.
#[derive(Debug, Clone, PartialEq)]
pub struct SignCodes {
    rows: usize,
    /// The bits of all codes, 64 to a word: one list per 64 columns.
    words: Vec<Vec<u64>>,
    /// The same, 8 to a byte: one list per 8 columns, of [`LANES`] codes at a time.
    bytes: Vec<Vec<[u8; LANES]>>,
}

impl SignCodes {
    /// Some columns of the rows of a matrix; nothing where an entry is neither +1 nor -1.
    pub fn new(rows: &Matrix<f64>, columns: std::ops::Range<usize>) -> Option<Self> {
        if !rows.iter_rows().all(|row| row[columns.clone()].iter().all(|x| x.abs() == 1.0)) {
            return None;
        }
        let bits = |chunk: &[f64]| chunk.iter().enumerate().fold(0_u64, |b, (i, &x)| b | (u64::from(x > 0.0) << i));
        let list = |width: usize, start: usize| {
            let end = columns.end.min(start + width);
            rows.iter_rows().map(move |row| bits(&row[start..end]))
        };
        let byte_list = |start: usize| {
            let mut blocks = vec![[0; LANES]; rows.rows.div_ceil(LANES)];
            list(8, start).enumerate().for_each(|(i, bits)| blocks[i / LANES][i % LANES] = bits as u8);
            blocks
        };
        Some(Self {
            rows: rows.rows,
            words: columns.clone().step_by(64).map(|start| list(64, start).collect()).collect(),
            bytes: columns.clone().step_by(8).map(byte_list).collect(),
        })
    }

    /// How many codes there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bits of all codes, 64 columns at a time, the first column in the lowest bit.
    pub fn words(&self) -> &[Vec<u64>] {
        &self.words
    }

    /// The inner products of all codes with a vector. They are exact where all sums of its entries are.
    pub fn products(&self, vector: &[f64], out: &mut [f64]) {
        if self.whole_products(vector, out) {
            return;
        }
        out[..self.rows].fill(0.0);
        for (list, vector) in self.words.iter().zip(vector.chunks(64)) {
            let tables = byte_tables(vector);
            for (sum, &bits) in out.iter_mut().zip(list) {
                let bytes = bits.to_le_bytes();
                *sum += tables.iter().zip(bytes).map(|(table, byte)| table[byte as usize]).sum::<f64>();
            }
        }
    }

    /// The same, if the vector has small whole numbers and the machine is fast at it: whether it is done, exactly.
    pub fn whole_products(&self, vector: &[f64], out: &mut [f64]) -> bool {
        let small = vector.iter().map(|x| x.abs()).sum::<f64>() <= f64::from(i16::MAX);
        if !small || vector.iter().any(|x| x.fract() != 0.0) {
            return false;
        }
        self.short_products(&vector.iter().map(|&x| x as i16).collect::<Vec<i16>>(), out)
    }

    /// The same for whole numbers whose sizes add up to a number of 16 bits, where the machine can look up 32 bytes at once.
    #[cfg(target_arch = "x86_64")]
    fn short_products(&self, vector: &[i16], out: &mut [f64]) -> bool {
        let Some(simd) = pulp::x86::V3::try_new() else { return false };
        let tables: Vec<[NibbleTable; 2]> = vector.chunks(8).map(nibble_tables).collect();
        simd.vectorize(
            #[inline(always)]
            || {
                let (blocks, rest) = out[..self.rows].as_chunks_mut::<LANES>();
                let sums = |block: usize| block_sums(simd, &tables, self.bytes.iter().map(|list| list[block]));
                for (block, out) in blocks.iter_mut().enumerate() {
                    *out = sums(block);
                }
                if !rest.is_empty() {
                    let sums = sums(blocks.len());
                    rest.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum);
                }
            },
        );
        true
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn short_products(&self, _: &[i16], _: &mut [f64]) -> bool {
        false
    }
}

/// For each byte of 64 signs, what the signs in it add to an inner product with a vector.
fn byte_tables(vector: &[f64]) -> [[f64; 256]; 8] {
    let mut tables = [[0.0; 256]; 8];
    for (table, part) in tables.iter_mut().zip(vector.chunks(8)) {
        table[0] = -part.iter().sum::<f64>();
        for byte in 1..256_usize {
            // The lowest sign of the byte is +, which adds twice its weight to what the byte without it has.
            let weight = part.get(byte.trailing_zeros() as usize).copied().unwrap_or(0.0);
            table[byte] = table[byte & (byte - 1)] + 2.0 * weight;
        }
    }
    tables
}

/// For each half of a byte of signs, what the signs in it add up to: the low bytes of 16 numbers, then their high bytes, each twice.
#[cfg(target_arch = "x86_64")]
type NibbleTable = [[u8; 32]; 2];

#[cfg(target_arch = "x86_64")]
fn nibble_tables(part: &[i16]) -> [NibbleTable; 2] {
    let weight = |i: usize| part.get(i).copied().unwrap_or(0);
    [0, 4].map(|first| {
        let sum = |signs: usize| -> i16 {
            (0..4).map(|i| if signs >> i & 1 == 1 { weight(first + i) } else { -weight(first + i) }).sum()
        };
        [0, 1].map(|byte| std::array::from_fn(|i| sum(i % 16).to_le_bytes()[byte]))
    })
}

/// The sums of 32 codes, from their bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn block_sums(
    simd: pulp::x86::V3,
    tables: &[[NibbleTable; 2]],
    bytes: impl Iterator<Item = [u8; LANES]>,
) -> [f64; LANES] {
    let (avx, avx2) = (simd.avx, simd.avx2);
    let half = avx._mm256_set1_epi8(15);
    let mut sums = [avx._mm256_setzero_si256(); 2];
    for (tables, bytes) in tables.iter().zip(bytes) {
        let bytes = pulp::cast(bytes);
        let halves = [bytes, avx2._mm256_srli_epi16::<4>(bytes)];
        for (table, signs) in tables.iter().zip(halves) {
            let signs = avx2._mm256_and_si256(signs, half);
            let low = avx2._mm256_shuffle_epi8(pulp::cast(table[0]), signs);
            let high = avx2._mm256_shuffle_epi8(pulp::cast(table[1]), signs);
            sums[0] = avx2._mm256_add_epi16(sums[0], avx2._mm256_unpacklo_epi8(low, high));
            sums[1] = avx2._mm256_add_epi16(sums[1], avx2._mm256_unpackhi_epi8(low, high));
        }
    }
    // Bytes are paired within each half of a vector.
    let (first, second): ([[i16; 8]; 2], [[i16; 8]; 2]) = (pulp::cast(sums[0]), pulp::cast(sums[1]));
    let mut out = [0.0; LANES];
    for (out, sums) in out.as_chunks_mut::<8>().0.iter_mut().zip([first[0], second[0], first[1], second[1]]) {
        for i in 0..8 {
            out[i] = f64::from(sums[i]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// All ways to the products agree with sums one by one: short numbers, numbers too long for that, and others.
        #[test]
        fn products_are_sums(
            (columns, data) in (1..140_usize).prop_flat_map(|columns| (Just(columns), prop::collection::vec(any::<bool>(), columns * 70))),
            whole in prop::collection::vec(-200..=200_i32, 140),
            rows in 0..70_usize,
        ) {
            let signs = Matrix::from_fn(rows, columns, |i, j| if data[i * columns + j] { 1.0 } else { -1.0 });
            let codes = SignCodes::new(&signs, 0..columns).unwrap();
            for scale in [1.0, 1000.0, 1.0 / 1024.0] {
                let vector: Vec<f64> = whole[..columns].iter().map(|&x| f64::from(x) * scale).collect();
                let mut out = vec![f64::NAN; rows];
                codes.products(&vector, &mut out);
                for (row, out) in signs.iter_rows().zip(out) {
                    prop_assert_eq!(row.iter().zip(&vector).map(|(a, b)| a * b).sum::<f64>(), out);
                }
            }
        }
    }

    #[test]
    fn the_largest_short_numbers_do_not_wrap() {
        let signs = Matrix::new(2, 2, vec![1.0, 1.0, -1.0, -1.0]);
        let mut out = [0.0; 2];
        SignCodes::new(&signs, 0..2).unwrap().products(&[32_000.0, 767.0], &mut out);
        assert_eq!(out, [32_767.0, -32_767.0]);
        assert_eq!(SignCodes::new(&Matrix::new(1, 2, vec![1.0, 0.5]), 0..2), None);
    }
}
