//! Numbers in fewer bytes than the model computes with, where that loses nothing.

use crate::arithmetic::binary16;
use crate::arithmetic::kernels::Real;
use safetensors::tensor::Dtype;

/// The narrower dtypes, in the order in which they are tried: the first of those with the fewest bytes that hold every number.
const NARROW: [Dtype; 4] = [Dtype::I8, Dtype::F16, Dtype::BF16, Dtype::F32];

/// Bytes of a number, for the dtypes of weights.
pub(super) const fn width(dtype: Dtype) -> usize {
    match dtype {
        Dtype::I8 => 1,
        Dtype::F16 | Dtype::BF16 => 2,
        Dtype::F32 => 4,
        _ => 8,
    }
}

/// Whether the weights of a model that computes in `wide` may be stored in a dtype of fewer bytes.
pub(super) fn may_hold(dtype: Dtype, wide: Dtype) -> bool {
    NARROW.contains(&dtype) && width(dtype) < width(wide)
}

/// The narrowest dtype in which every number is exactly itself, the sign of a zero included, and the bytes in it; nothing where no
/// dtype has fewer bytes than `wide`.
pub(super) fn narrowed<R: Real>(numbers: &[R], wide: Dtype) -> Option<(Dtype, Vec<u8>)> {
    let exact = |dtype| {
        let mut all = Vec::new();
        for x in numbers {
            all.extend_from_slice(&encode(dtype, x.to_f64())?[..width(dtype)]);
        }
        Some((dtype, all))
    };
    NARROW.into_iter().filter(|&dtype| may_hold(dtype, wide)).find_map(exact)
}

/// The numbers in bytes of a narrow dtype.
pub(super) fn decoded(dtype: Dtype, bytes: &[u8]) -> impl Iterator<Item = f64> {
    bytes.chunks_exact(width(dtype)).map(move |number| {
        let mut bytes = [0; 4];
        bytes[..number.len()].copy_from_slice(number);
        decode(dtype, bytes)
    })
}

/// The number in the first bytes, little-endian.
fn decode(dtype: Dtype, bytes: [u8; 4]) -> f64 {
    let bits = u32::from_le_bytes(bytes);
    match dtype {
        Dtype::I8 => f64::from(i8::from_le_bytes([bytes[0]])),
        Dtype::BF16 => f64::from(f32::from_bits(bits << 16)),
        Dtype::F16 => binary16(bits as u16),
        _ => f64::from(f32::from_bits(bits)),
    }
}

/// The bytes of a number in a narrow dtype, if it is finite and exactly one of its numbers.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // What is cut off is found by reading the bytes again.
fn encode(dtype: Dtype, x: f64) -> Option<[u8; 4]> {
    let bits = match dtype {
        Dtype::I8 => u32::from((x as i8).cast_unsigned()),
        Dtype::BF16 => (x as f32).to_bits() >> 16,
        Dtype::F16 => {
            // The ten bits after the first one, and the exponent, from those of a double; below 2^-14 whole multiples of 2^-24.
            let (sign, high) = ((x.to_bits() >> 63) as u32, (x.abs().to_bits() >> 42) as u32);
            let small = x.abs() < (-14_f64).exp2();
            sign << 15
                | if small { (x.abs() * 24_f64.exp2()) as u32 } else { high.wrapping_sub((1023 - 15) << 10) & 0x7fff }
        }
        _ => (x as f32).to_bits(),
    };
    let bytes = bits.to_le_bytes();
    (x.is_finite() && decode(dtype, bytes).to_bits() == x.to_bits()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number of the dtypes of two bytes or less comes back bit for bit; what is not finite is never written.
    #[test]
    fn every_narrow_number() {
        for dtype in [Dtype::I8, Dtype::F16, Dtype::BF16] {
            let last = 1_u32 << (8 * width(dtype));
            let finite = (0..last).filter(|bits| {
                let bytes = bits.to_le_bytes();
                let x = decode(dtype, bytes);
                assert_eq!(encode(dtype, x), x.is_finite().then_some(bytes), "{dtype:?} {bits}");
                x.is_finite()
            });
            let wanted = match dtype {
                Dtype::I8 => 256,
                Dtype::F16 => 2 * 31 * 1024,
                _ => 2 * 255 * 128,
            };
            assert_eq!(finite.count(), wanted);
        }
    }

    #[test]
    fn known_numbers() {
        let half = |x: f64| encode(Dtype::F16, x).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        assert_eq!(half(1.0), Some(0x3c00));
        assert_eq!(half(-2.0), Some(0xc000));
        assert_eq!(half(65504.0), Some(0x7bff));
        assert_eq!((half(65536.0), half(65520.0), half(1.0 + 0.000_5)), (None, None, None));
        assert_eq!(half((-24_f64).exp2()), Some(1));
        assert_eq!((half((-25_f64).exp2()), half(1.5 * (-24_f64).exp2())), (None, None));
        assert_eq!(half(-0.0), Some(0x8000));
        assert_eq!((half(f64::NAN), half(f64::INFINITY), half(1e300), half(1e-300)), (None, None, None, None));
        let brain = |x: f64| encode(Dtype::BF16, x).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        assert_eq!((brain(1.0), brain(-0.0), brain(257.0)), (Some(0x3f80), Some(0x8000), None));
        assert_eq!((brain((-133_f64).exp2()), brain((-134_f64).exp2()), brain(1e300)), (Some(1), None, None));
        let byte = |x: f64| encode(Dtype::I8, x).map(|bytes| bytes[0]);
        assert_eq!((byte(-128.0), byte(127.0), byte(0.0)), (Some(128), Some(127), Some(0)));
        assert_eq!((byte(-0.0), byte(128.0), byte(0.5), byte(f64::NAN)), (None, None, None, None));
    }

    #[test]
    fn the_narrowest_that_holds_all() {
        let found = |numbers: &[f64], wide| narrowed(numbers, wide).map(|(dtype, bytes)| (dtype, bytes.len()));
        assert_eq!(found(&[1.0, -1.0], Dtype::F32), Some((Dtype::I8, 2)));
        assert_eq!(found(&[1.0, -0.0], Dtype::F32), Some((Dtype::F16, 4)));
        assert_eq!(found(&[1.0, 65536.0], Dtype::F32), Some((Dtype::BF16, 4)));
        assert_eq!(found(&[1.0, 65537.0], Dtype::F32), None);
        assert_eq!(found(&[1.0, 65537.0], Dtype::F64), Some((Dtype::F32, 8)));
        assert_eq!(found(&[0.1], Dtype::F64), None);
        assert_eq!(found(&[f64::NAN], Dtype::F64), None);
    }
}
