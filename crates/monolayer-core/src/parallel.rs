//! Independent jobs on several threads; results in order, whatever the number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs jobs 0 to `n` - 1.
pub fn parallel<T: Send>(threads: usize, n: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= n {
                return done;
            }
            done.push((at, job(at)));
        }
    };
    let mut all: Vec<(usize, T)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.clamp(1, n.max(1))).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a job does not panic")).collect()
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, done)| done).collect()
}

/// Runs jobs 0 to `n` - 1, at most `batch` of them before `done` takes their results, in order.
pub fn in_order<T: Send>(
    threads: usize,
    n: usize,
    batch: usize,
    job: impl Fn(usize) -> T + Sync,
    mut done: impl FnMut(T),
) {
    for first in (0..n).step_by(batch) {
        parallel(threads, batch.min(n - first), |at| job(first + at)).into_iter().for_each(&mut done);
    }
}
