//! Long work: on a thread of its own, while Python's main thread listens to Ctrl-C and draws a bar.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    _native,
    MonolayerError,
    PyValueError,
    "What monolayer could not do: what is wrong, where, and what would help."
);

/// How often Ctrl-C is looked for, and the bar is drawn.
const TICK: Duration = Duration::from_millis(50);

/// How far some work is, and whether it is still wanted.
#[derive(Default)]
pub struct Progress {
    done: AtomicUsize,
    total: AtomicUsize,
    unwanted: AtomicBool,
}

/// What unwinds a computation that is no longer wanted.
struct Unwanted;

impl Progress {
    /// So many more are done.
    pub fn add(&self, more: usize) {
        self.done.fetch_add(more, Ordering::Relaxed);
        self.listen();
    }

    /// So many of so many are done. Work that cannot be unwound, as that of the checker, goes on.
    pub fn at(&self, done: usize, total: usize) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Ends the computation where it is no longer wanted. No file is half written: this is called between steps of computing.
    pub fn listen(&self) {
        if self.unwanted.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Unwanted));
        }
    }
}

/// What happened to a job.
type Ended<T> = Result<monolayer::Result<T>, Box<dyn Any + Send>>;

/// Runs `work` without the interpreter's lock. `heard` is called with (done, total) now and then; `total` may be 0.
///
/// After Ctrl-C, or an exception of `heard`, the caller goes on at once. The work, which owns what it needs, ends where it next
/// tells how far it is.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    heard: Option<&Bound<'_, PyAny>>,
    total: usize,
    work: impl FnOnce(&Progress) -> monolayer::Result<T> + Send + 'static,
) -> PyResult<T> {
    let progress = Arc::new(Progress::default());
    progress.total.store(total, Ordering::Relaxed);
    let (sender, ended) = sync_channel::<Ended<T>>(1);
    let told = Arc::clone(&progress);
    std::thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&told)));
        // Nobody listens any more where it is not wanted.
        let _ = sender.send(result);
    });
    // One end in one hand: what the interpreter's lock is given up for must be shareable.
    let ended = Mutex::new(ended);
    loop {
        let next = py.detach(|| ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TICK));
        match next {
            Ok(Ok(result)) => return result.map_err(|error| MonolayerError::new_err(error.to_string())),
            Ok(Err(panic)) => return Err(panicked(panic.as_ref())),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the work ended without a result"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let (done, total) = (progress.done.load(Ordering::Relaxed), progress.total.load(Ordering::Relaxed));
        let drawn = heard.map_or(Ok(()), |heard| heard.call1((done, total)).map(|_| ()));
        if let Err(error) = py.check_signals().and(drawn) {
            progress.unwanted.store(true, Ordering::Relaxed);
            return Err(error);
        }
    }
}

/// Panics in a job, on another thread of it too, so that tests see what becomes of a fault: an exception.
#[pyfunction]
pub fn _fault(py: Python<'_>) -> PyResult<()> {
    run(py, None, 0, |_| {
        rayon::join(|| (), || panic!("on purpose"));
        Ok(())
    })
}

/// A panic as an exception: it is a fault of this program, and never ends the interpreter.
fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("an unknown fault");
    PyRuntimeError::new_err(format!("a fault of monolayer itself, please report it: {text}"))
}
