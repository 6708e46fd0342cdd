//! Counts of keys: of parts of the data, added up to those of the whole. Sums of whole numbers do not depend on the parts.

use crate::arithmetic::parallel;

/// Keys, in order, and how often each occurs.
pub type Counts<K> = Vec<(K, u64)>;

/// How often each key occurs in a list.
pub fn counted<K: Ord + Copy>(mut keys: Vec<K>) -> Counts<K> {
    keys.sort_unstable();
    keys.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect()
}

/// Counts of two parts together.
fn added<K: Ord + Copy>(a: &[(K, u64)], b: &[(K, u64)]) -> Counts<K> {
    let mut all = Vec::with_capacity(a.len().max(b.len()));
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        all.push(match x.0.cmp(&y.0) {
            std::cmp::Ordering::Less => x,
            std::cmp::Ordering::Greater => y,
            std::cmp::Ordering::Equal => (x.0, x.1 + y.1),
        });
        i += usize::from(x.0 <= y.0);
        j += usize::from(y.0 <= x.0);
    }
    all.extend_from_slice(&a[i..]);
    all.extend_from_slice(&b[j..]);
    all
}

/// Counts of all parts together, two at a time.
pub fn summed<K: Ord + Copy + Send + Sync>(mut parts: Vec<Counts<K>>) -> Counts<K> {
    while parts.len() > 1 {
        parts = parallel::map_chunks(&parts, 2, |_, pair| match pair {
            [a, b] => added(a, b),
            rest => rest.concat(),
        });
    }
    parts.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        let keys: Vec<u32> = (0..1000_u32).map(|i| i.wrapping_mul(2_654_435_761) % 37).collect();
        for size in [1, 3, 10, 999, 1000] {
            let parts = keys.chunks(size).map(|part| counted(part.to_vec())).collect();
            assert_eq!(summed(parts), counted(keys.clone()));
        }
        assert_eq!(summed::<u32>(Vec::new()), []);
    }
}
