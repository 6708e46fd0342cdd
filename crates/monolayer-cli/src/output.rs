//! What people see: tables, numbers, progress.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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

fn console_is_terminal() -> bool {
    use std::io::IsTerminal as _;
    std::io::stderr().is_terminal()
}
