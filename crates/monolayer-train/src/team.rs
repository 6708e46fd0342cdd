//! Work that is shared among threads every few microseconds.
//!
//! A thread of the pool with nothing to do goes to sleep, and takes longer to wake up (20 to 100 microseconds) than most parts of a
//! training step take. So during an epoch the other threads of the pool look for work all the time ([`with_helpers`]), and the one
//! that takes the steps waits for them the same way ([`run`]). All threads are the pool's, and so are the tasks.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A helper that has looked for work so often in vain goes: some milliseconds.
const PATIENCE: usize = 20_000;
/// The first looks follow each other without a pause.
const EAGER: usize = 200;

/// A thread that lets others run is back sooner, unless it shares its processor.
const CROWDED: Duration = Duration::from_micros(200);

thread_local! {
    /// Whether this thread is within an epoch, a task or a helper. Then it must not become a helper: what it is within would wait.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` with this thread marked as busy.
fn busy<T>(f: impl FnOnce() -> T) -> T {
    let before = BUSY.replace(true);
    let result = f();
    BUSY.set(before);
    result
}

/// Between two looks: lets others run, if it has been in vain for long.
fn pause(rounds: usize) {
    if rounds < EAGER {
        std::hint::spin_loop();
        return;
    }
    let start = Instant::now();
    std::thread::yield_now();
    // Another thread works on this processor, maybe the one that is waited for, and a thread that is always ready to run is seldom moved
    // to another. One that wakes up is: it starts where nobody is.
    if start.elapsed() > CROWDED {
        std::thread::sleep(Duration::from_micros(1));
    }
}

/// Runs `f` on a thread of the pool, while the others stay awake.
pub fn with_helpers<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    let done = AtomicBool::new(false);
    rayon::scope(|scope| {
        for _ in 1..rayon::current_num_threads() {
            scope.spawn(|_| help(&done));
        }
        let result = busy(f);
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn help(done: &AtomicBool) {
    if BUSY.get() {
        return;
    }
    busy(|| {
        let mut vain = 0;
        while !done.load(Ordering::Relaxed) && vain < PATIENCE {
            if rayon::yield_now() == Some(rayon::Yield::Executed) {
                vain = 0;
            } else {
                vain += 1;
                pause(vain);
            }
        }
    });
}

/// A piece of work.
pub type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs all tasks, on as many threads as there are. This thread begins with the first, the others with the last: so in one step
/// after another most tasks are done by the thread that did them before, whose caches hold their numbers.
pub fn run(tasks: Vec<Task>) {
    let left = AtomicUsize::new(tasks.len());
    let tasks: Vec<Mutex<Option<Task>>> = tasks.into_iter().map(|task| Mutex::new(Some(task))).collect();
    let work = |task: &Mutex<Option<Task>>| {
        let task = task.lock().expect("tasks are only taken").take();
        if let Some(task) = task {
            busy(task);
            left.fetch_sub(1, Ordering::Release);
        }
    };
    rayon::scope(|scope| {
        for _ in 1..rayon::current_num_threads().min(tasks.len()) {
            scope.spawn(|_| tasks.iter().rev().for_each(work));
        }
        tasks.iter().for_each(work);
        let mut rounds = 0;
        while left.load(Ordering::Acquire) > 0 {
            rounds += 1;
            pause(rounds);
        }
    });
}

/// The parts of a list at ascending ranges; what is behind its end is left out of them.
pub fn pieces<'a, T>(mut list: &'a mut [T], ranges: &[Range<usize>]) -> Vec<&'a mut [T]> {
    let mut at = 0;
    let mut next = |len: usize| {
        let whole = std::mem::take(&mut list);
        let (own, rest) = whole.split_at_mut(len.min(whole.len()));
        list = rest;
        own
    };
    let piece = |range: &Range<usize>| {
        next(range.start - at);
        at = range.end;
        next(range.len())
    };
    ranges.iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_ranges() {
        let mut list: Vec<usize> = (0..20).collect();
        assert_eq!(pieces(&mut list, &[2..4, 4..5, 18..25]), [&[2, 3][..], &[4], &[18, 19]]);
        assert_eq!(pieces::<usize>(&mut [], &[2..4, 7..9]), [[0; 0]; 2]);
    }

    /// Tasks within tasks, on any number of threads, with helpers and without: all are run, once.
    #[test]
    fn every_task_is_run_once() {
        for threads in [1, 2, 3, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for helped in [false, true] {
                let counts: Vec<AtomicUsize> = (0..40).map(|_| AtomicUsize::new(0)).collect();
                let outer = || {
                    for _ in 0..50 {
                        let inner = |i: usize| {
                            let count = |j: usize| {
                                counts[i * 4 + j].fetch_add(1, Ordering::Relaxed);
                            };
                            let three = || run((0..3).map(|j| Box::new(move || count(j)) as Task).collect());
                            rayon::join(three, || count(3));
                        };
                        run((0..10).map(|i| Box::new(move || inner(i)) as Task).collect());
                    }
                };
                if helped {
                    pool.install(|| with_helpers(outer));
                } else {
                    pool.install(outer);
                }
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 50), "{threads} {helped}");
            }
        }
    }
}
