//! Values as bytes, little endian, so that one process can hand them to another of the same version.

use std::borrow::Cow;

use crate::paper::mask::{Mask, MaskMatrix};

/// What can be written as bytes and read back.
pub trait Wire: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes a value off the front; nothing where the bytes are no such value.
    fn get(from: &mut &[u8]) -> Option<Self>;

    /// The bytes of the value alone.
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn get(from: &mut &[u8]) -> Option<Self> {
                let (first, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_le_bytes(*first))
            }
        }
    )*};
}

numbers!(u8, u32, i32, u64, u128, f64);

impl Wire for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        u64::get(from)?.try_into().ok()
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        u8::get(from).map(|byte| byte != 0)
    }
}

/// A number of a word or label, or none: numbers are below the largest.
impl Wire for Option<u32> {
    fn put(&self, out: &mut Vec<u8>) {
        self.unwrap_or(u32::MAX).put(out);
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        u32::get(from).map(|number| (number != u32::MAX).then_some(number))
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        let length = usize::get(from)?;
        let (text, rest) = from.split_at_checked(length)?;
        *from = rest;
        Self::from_utf8(text.to_vec()).ok()
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.reserve(size_of_val(&self[..]));
        self.iter().for_each(|item| item.put(out));
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        let count = usize::get(from)?;
        // A false count must not ask for memory that the bytes do not fill.
        let mut all = Self::with_capacity(count.min(from.len()));
        for _ in 0..count {
            all.push(T::get(from)?);
        }
        Some(all)
    }
}

impl<T: Wire + Copy + Default, const N: usize> Wire for [T; N] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|item| item.put(out));
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        let mut all = [T::default(); N];
        for item in &mut all {
            *item = T::get(from)?;
        }
        Some(all)
    }
}

impl<T: Wire + Clone> Wire for Cow<'_, T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        T::get(from).map(Cow::Owned)
    }
}

macro_rules! tuples {
    ($(($($name:ident $at:tt),*)),*) => {$(
        impl<$($name: Wire),*> Wire for ($($name,)*) {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$at.put(out);)*
            }

            fn get(from: &mut &[u8]) -> Option<Self> {
                Some(($($name::get(from)?,)*))
            }
        }
    )*};
}

tuples!((A 0, B 1), (A 0, B 1, C 2), (A 0, B 1, C 2, D 3));

/// The fields of a struct, one after the other.
macro_rules! fields {
    ($name:ident { $($field:ident),* }) => {
        impl $crate::memorize::gated::stages::wire::Wire for $name {
            $crate::memorize::gated::stages::wire::fields!(methods $($field),*);
        }
    };
    (borrowing $name:ident { $($field:ident),* }) => {
        impl $crate::memorize::gated::stages::wire::Wire for $name<'_> {
            $crate::memorize::gated::stages::wire::fields!(methods $($field),*);
        }
    };
    (methods $($field:ident),*) => {
        fn put(&self, out: &mut Vec<u8>) {
            let _ = &out;
            $($crate::memorize::gated::stages::wire::Wire::put(&self.$field, out);)*
        }

        fn get(from: &mut &[u8]) -> Option<Self> {
            let _ = &from;
            Some(Self { $($field: $crate::memorize::gated::stages::wire::Wire::get(from)?),* })
        }
    };
}
pub(crate) use fields;

impl Wire for Mask {
    fn put(&self, out: &mut Vec<u8>) {
        let (kind, a, b) = match self {
            Self::None => (0_u8, 0, 0),
            Self::Causal => (1, 0, 0),
            Self::Prefix(first) => (2, *first, 0),
            Self::Band(before, after) => (3, *before, *after),
            Self::Matrix(matrix) => (4, matrix.size(), 0),
        };
        (kind, a, b).put(out);
        if let Self::Matrix(matrix) = self {
            out.extend_from_slice(matrix.entries());
        }
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        Some(match <(u8, usize, usize)>::get(from)? {
            (0, ..) => Self::None,
            (1, ..) => Self::Causal,
            (2, first, _) => Self::Prefix(first),
            (3, before, after) => Self::Band(before, after),
            (4, size, _) => {
                let (entries, rest) = from.split_at_checked(size.checked_mul(size)?)?;
                *from = rest;
                Self::Matrix(MaskMatrix::new(size, entries.to_vec()).ok()?.into())
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        let mask = Mask::matrix(2, vec![1, 0, 1, 1]).unwrap();
        let value = (vec![(7_u32, 3_u64)], vec![None, Some(5_u32)], ["May".to_owned(), String::new()].to_vec());
        let all = (value, (mask, [1.5, f64::INFINITY]), (true, usize::MAX), Mask::Band(2, 0));
        let bytes = all.bytes();
        let mut rest = &bytes[..];
        assert_eq!(Wire::get(&mut rest), Some(all));
        assert!(rest.is_empty());
        // No part of the bytes is a value, and a false count asks for nothing.
        assert!((0..bytes.len()).all(|end| {
            <((Vec<(u32, u64)>, Vec<Option<u32>>, Vec<String>), (Mask, [f64; 2]), (bool, usize), Mask)>::get(
                &mut &bytes[..end],
            )
            .is_none()
        }));
        assert_eq!(Vec::<u32>::get(&mut &u64::MAX.to_le_bytes()[..]), None);
    }
}
