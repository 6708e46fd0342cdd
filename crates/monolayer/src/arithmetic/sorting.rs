//! Stable sorts for lists whose sorting takes little of the time. Comparisons are called through a pointer: so the code of a
//! sort, which is long, is compiled once, and not again for each use.

use std::cmp::Ordering;

/// The numbers below `count` in the order of a comparison; equal ones in increasing order.
pub fn order_by(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

/// The numbers below `count` in increasing order of what `key` gives them.
pub fn order_by_key(count: usize, key: impl Fn(usize) -> f64) -> Vec<usize> {
    let keys: Vec<f64> = (0..count).map(key).collect();
    order_by(count, &|a, b| keys[a].total_cmp(&keys[b]))
}

/// Sorts items by a comparison.
pub fn sort_by<T>(items: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) {
    let order = order_by(items.len(), &|a, b| compare(&items[a], &items[b]));
    let mut left: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(order.into_iter().filter_map(|i| left[i].take()));
}

/// Sorts items in increasing order of a key.
pub fn sort_by_key<T, K: Ord>(items: &mut Vec<T>, key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As the sorts of the standard library, the order of equal items included.
        #[test]
        fn sorts_are_stable(digits in prop::collection::vec(0_u8..20, 0..200)) {
            let mut expected: Vec<(u8, String)> = digits.iter().zip(0..).map(|(&x, i)| (x, i.to_string())).collect();
            let (mut by_key, mut by) = (expected.clone(), expected.clone());
            expected.sort_by_key(|x| x.0);
            sort_by_key(&mut by_key, |x| x.0);
            prop_assert_eq!(&by_key, &expected);
            expected.reverse();
            expected.sort_by_key(|x| std::cmp::Reverse(x.0));
            by.reverse();
            sort_by(&mut by, |a, b| b.0.cmp(&a.0));
            prop_assert_eq!(by, expected);
        }

        #[test]
        fn orders_are_of_all_floats(bits in prop::collection::vec(any::<u64>(), 0..50), equal in 0_usize..5) {
            let mut numbers: Vec<f64> = bits.into_iter().map(f64::from_bits).collect();
            numbers.extend([0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].repeat(equal));
            let order = order_by_key(numbers.len(), |i| numbers[i]);
            let mut expected: Vec<usize> = (0..numbers.len()).collect();
            expected.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
            prop_assert_eq!(order, expected);
        }
    }
}
