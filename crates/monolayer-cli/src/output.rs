//! What people see: tables, numbers, progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::Shared;

/// A number with its thousands apart: 203,621.
pub fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A share in percent: 99.867 %.
pub fn percent(part: usize, whole: usize) -> String {
    format!("{:.3} %", 100.0 * part as f64 / whole as f64)
}

/// Rows of cells in aligned columns, the first to the left and the others to the right unless `left` says so.
pub fn table(rows: &[Vec<String>], left: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |(c, cell): (usize, &String)| {
            let w = widths[c];
            if c == 0 || left.contains(&c) { format!("{cell:<w$}") } else { format!("{cell:>w$}") }
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        format!("  {}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Progress through a known number of steps: a bar on a terminal, now and then a line elsewhere, nothing when quiet.
pub struct Progress {
    bar: ProgressBar,
    what: &'static str,
    lines: bool,
    start: Instant,
    last_line: AtomicU64,
    done: AtomicUsize,
}

impl Progress {
    pub fn new(shared: &Shared, what: &'static str, steps: usize) -> Self {
        let terminal = console_is_terminal();
        let target =
            if shared.quiet || !terminal { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
        let style = ProgressStyle::with_template("{msg:12} {wide_bar} {human_pos}/{human_len} {eta} left");
        bar.set_style(style.expect("a fixed template"));
        bar.set_message(what);
        let lines = !shared.quiet && !terminal;
        Self { bar, what, lines, start: Instant::now(), last_line: AtomicU64::new(0), done: AtomicUsize::new(0) }
    }

    pub fn add(&self, steps: usize) {
        /// Seconds between two lines.
        const EVERY: u64 = 2;
        self.bar.inc(steps as u64);
        let done = self.done.fetch_add(steps, Ordering::Relaxed) + steps;
        let seconds = self.start.elapsed().as_secs();
        let last = self.last_line.load(Ordering::Relaxed);
        let exchange = |s| self.last_line.compare_exchange(last, s, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if self.lines && seconds >= last + EVERY && exchange(seconds) {
            let whole = self.bar.length().unwrap_or(0) as usize;
            eprintln!("{}: {} of {} in {:?}", self.what, count(done), count(whole), Duration::from_secs(seconds));
        }
    }
}

impl Progress {
    /// What is going on now, with its figures: shown with the bar.
    pub fn say(&self, message: String) {
        self.bar.set_message(message);
    }

    /// A line that stays: above the bar, or by itself where there is none.
    pub fn line(&self, text: &str) {
        if self.lines {
            eprintln!("{text}");
        } else {
            self.bar.println(text);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Progress through tokens whose number turns out later: a bar on a terminal, elsewhere a line after a second and then now and
/// then, nothing when quiet. It shows signs of life while files are read, too.
pub struct Tokens {
    bar: ProgressBar,
    state: Arc<State>,
    /// Dropped to end the thread.
    alive: Option<Sender<()>>,
    lines: Option<JoinHandle<()>>,
}

struct State {
    what: &'static str,
    start: Instant,
    /// Milliseconds until the first token was done.
    read: AtomicU64,
    done: AtomicUsize,
    total: AtomicUsize,
}

impl Tokens {
    pub fn new(shared: &Shared, what: &'static str) -> Self {
        let terminal = console_is_terminal();
        let target =
            if shared.quiet || !terminal { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{msg:12} {wide_bar} {human_pos}/{human_len} tokens, {eta} left");
        bar.set_style(style.expect("a fixed template"));
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(250));
        let start = Instant::now();
        let numbers = (AtomicU64::new(u64::MAX), AtomicUsize::new(0), AtomicUsize::new(0));
        let state = Arc::new(State { what, start, read: numbers.0, done: numbers.1, total: numbers.2 });
        let (alive, ended) = mpsc::channel();
        let lines = (!shared.quiet && !terminal).then(|| {
            let state = Arc::clone(&state);
            std::thread::spawn(move || state.lines(&ended))
        });
        Self { bar, state, alive: Some(alive), lines }
    }

    /// So many tokens of so many are done.
    pub fn at(&self, done: usize, total: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        let now = self.state.start.elapsed().as_millis() as u64;
        self.state.read.fetch_min(now, Ordering::Relaxed);
        self.state.done.store(done, Ordering::Relaxed);
        self.state.total.store(total, Ordering::Relaxed);
    }
}

impl State {
    /// Writes lines until the other end is dropped.
    fn lines(&self, ended: &Receiver<()>) {
        let mut wait = Duration::from_millis(1200);
        while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{}", self.line());
            wait = Duration::from_secs(5);
        }
    }

    fn line(&self) -> String {
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let seconds = self.start.elapsed().as_secs_f64();
        if done == 0 {
            return format!("{}: reading files, {seconds:.0} s", self.what);
        }
        let since = seconds - self.read.load(Ordering::Relaxed) as f64 / 1000.0;
        let left = since * total.saturating_sub(done) as f64 / done as f64;
        format!("{}: {} of {} tokens in {seconds:.0} s, {left:.0} s left", self.what, count(done), count(total))
    }
}

impl Drop for Tokens {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        self.alive = None;
        if let Some(lines) = self.lines.take() {
            // A thread that only writes lines has nothing to say here.
            let _ = lines.join();
        }
    }
}

fn console_is_terminal() -> bool {
    use std::io::IsTerminal as _;
    std::io::stderr().is_terminal()
}
