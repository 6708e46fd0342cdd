//! Maps on several threads. Results are in order and do not depend on the number of threads. The work is called through a
//! pointer, a portion at a time: so the code of the thread pool is compiled once, and not again for each use.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

/// Portions of a map, at most: many more than threads, so that none is idle for long where items take unequal times, and
/// few enough that items of some nanoseconds pay.
const PORTIONS: usize = 1024;

/// `f(0)`, `f(1)`, ... up to `count`.
pub fn map<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let results = PortionResults::new(count);
    for_each(results.portions.len(), &|i| results.set(i, results.range(i).map(&f).collect()));
    results.joined()
}

/// `f` of each item.
pub fn map_slice<'a, A: Sync, T: Send>(items: &'a [A], f: impl Fn(&'a A) -> T + Sync) -> Vec<T> {
    map(items.len(), |i| f(&items[i]))
}

/// `f` of each chunk of `size` items, with the number of the chunk; the last may be smaller.
pub fn map_chunks<'a, A: Sync, T: Send>(items: &'a [A], size: usize, f: impl Fn(usize, &'a [A]) -> T + Sync) -> Vec<T> {
    map(items.len().div_ceil(size), |i| f(i, &items[i * size..items.len().min((i + 1) * size)]))
}

/// `f(0)`, `f(1)`, ... up to `count`, or the first error in this order. What comes behind an error may not be computed.
pub fn try_map<T: Send, E: Send>(count: usize, f: impl Fn(usize) -> Result<T, E> + Sync) -> Result<Vec<T>, E> {
    let failed = AtomicUsize::new(usize::MAX);
    let results = map(count, |i| {
        if failed.load(Ordering::Relaxed) < i {
            return None;
        }
        let result = f(i);
        if result.is_err() {
            failed.fetch_min(i, Ordering::Relaxed);
        }
        Some(result)
    });
    // Only what stands behind an error was left out.
    results.into_iter().flatten().collect()
}

/// Calls `f(0)`, `f(1)`, ... up to `count`.
pub fn for_each(count: usize, f: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(f);
}

/// Calls `f` with each chunk of `size` items, and its number; the last may be smaller.
pub fn for_each_chunk<T: Send>(items: &mut [T], size: usize, f: &(dyn Fn(usize, &mut [T]) + Sync)) {
    items.par_chunks_mut(size).enumerate().for_each(|(i, chunk)| f(i, chunk));
}

/// The results of a map, a portion at a time.
struct PortionResults<T> {
    count: usize,
    size: usize,
    portions: Vec<Mutex<Vec<T>>>,
}

impl<T> PortionResults<T> {
    fn new(count: usize) -> Self {
        let size = count.div_ceil(PORTIONS).max(1);
        Self { count, size, portions: (0..count.div_ceil(size)).map(|_| Mutex::new(Vec::new())).collect() }
    }

    fn range(&self, portion: usize) -> Range<usize> {
        portion * self.size..self.count.min((portion + 1) * self.size)
    }

    fn set(&self, portion: usize, values: Vec<T>) {
        *self.portions[portion].lock().expect("nothing panics while it is locked") = values;
    }

    fn joined(self) -> Vec<T> {
        let mut all = Vec::with_capacity(self.count);
        for portion in self.portions {
            all.append(&mut portion.into_inner().expect("nothing panics while it is locked"));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes around the number of portions and its multiples.
    const COUNTS: [usize; 12] = [0, 1, 2, 7, 1023, 1024, 1025, 2047, 2048, 2049, 5000, 100_003];

    #[test]
    fn maps_are_in_order() {
        for count in COUNTS {
            let expected: Vec<usize> = (0..count).map(|i| i * i).collect();
            assert_eq!(map(count, |i| i * i), expected);
            let names: Vec<String> = expected.iter().map(usize::to_string).collect();
            assert_eq!(map_slice(&expected, usize::to_string), names);
            for size in [1, 3, 1024] {
                let chunks: Vec<(usize, Vec<usize>)> =
                    expected.chunks(size).map(<[usize]>::to_vec).enumerate().collect();
                assert_eq!(map_chunks(&expected, size, |i, chunk| (i, chunk.to_vec())), chunks);
            }
        }
    }

    #[test]
    fn every_chunk_is_visited_once() {
        for count in COUNTS {
            for size in [1, 7, 1024] {
                let mut items: Vec<usize> = vec![0; count];
                for_each_chunk(&mut items, size, &|i, chunk| {
                    chunk.iter_mut().enumerate().for_each(|(j, x)| *x += i * size + j + 1);
                });
                assert!(items.iter().enumerate().all(|(i, &x)| x == i + 1));
            }
        }
    }

    #[test]
    fn the_first_error_in_order_is_returned() {
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for count in COUNTS {
                let wrong = |i: usize| i % 1500 == 1499 || (count > 6 && i == 6) || i == 99_999;
                let run = || try_map(count, |i| if wrong(i) { Err(i) } else { Ok(2 * i) });
                let expected: Result<Vec<usize>, usize> =
                    (0..count).map(|i| if wrong(i) { Err(i) } else { Ok(2 * i) }).collect();
                assert_eq!(pool.install(run), expected);
            }
            let ok = pool.install(|| try_map::<_, ()>(5000, Ok)).unwrap();
            assert_eq!(ok, (0..5000).collect::<Vec<_>>());
            // The last may be wrong, too.
            assert_eq!(pool.install(|| try_map(5000, |i| if i == 4999 { Err(i) } else { Ok(i) })), Err(4999));
        }
    }

    #[test]
    fn maps_may_be_nested() {
        let inside = |i: usize| map(50, |j| i * j).into_iter().sum::<usize>();
        assert_eq!(map(60, inside), (0..60).map(|i| i * 49 * 25).collect::<Vec<_>>());
    }
}
