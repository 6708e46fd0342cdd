//! What people see: tables, numbers, progress.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::CommandFactory as _;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use monolayer::data::thousands_apart;

use crate::commands::{Cli, Shared};

/// The library names its settings between backticks, `max_bits`; here they are flags, --max-bits.
pub fn with_flags(message: &str) -> String {
    let command = Cli::command();
    let arguments = command.get_subcommands().flat_map(clap::Command::get_arguments);
    arguments.filter_map(clap::Arg::get_long).fold(message.to_owned(), |message, flag| {
        message.replace(&format!("`{}`", flag.replace('-', "_")), &format!("--{flag}"))
    })
}

/// A number with its thousands apart: 203,621.
pub fn count(n: usize) -> String {
    thousands_apart(&n.to_string())
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

/// The bars on a terminal, one below the other.
static SCREEN: LazyLock<MultiProgress> = LazyLock::new(|| {
    let terminal = console_is_terminal();
    MultiProgress::with_draw_target(if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() })
});

/// How many of them there are: where there is no terminal, the last one speaks.
static DEPTH: AtomicUsize = AtomicUsize::new(0);

/// A line for people on stderr, not when quiet.
pub fn say(shared: &Shared, text: &str) {
    if !shared.quiet {
        SCREEN.suspend(|| eprintln!("{text}"));
    }
}

/// Progress of a command: a bar on a terminal; elsewhere a line within two seconds, and then every few seconds; nothing when
/// quiet. A thread of its own sees to it, so that there are signs of life whatever the command does.
pub struct Progress {
    bar: ProgressBar,
    state: Arc<State>,
    /// Dropped to end the thread.
    alive: Option<Sender<()>>,
    lines: Option<JoinHandle<()>>,
}

/// How far a command is.
struct State {
    /// What is counted.
    unit: &'static str,
    stage: Mutex<Stage>,
    /// When something was said last.
    said: Mutex<Instant>,
    /// How many bars are above.
    depth: usize,
}

/// What is going on.
struct Stage {
    what: String,
    start: Instant,
    done: usize,
    /// 0 where it is not known.
    total: usize,
    /// When the first of them was done, and how many were then: reading files tells nothing about the time left.
    first: Option<(Instant, usize)>,
}

impl Stage {
    fn new(what: String, total: usize) -> Self {
        Self { what, start: Instant::now(), done: 0, total, first: None }
    }

    fn set(&mut self, done: usize) {
        self.done = done;
        self.first.get_or_insert((Instant::now(), done));
    }

    /// Seconds left, if the rest goes as fast as what is done.
    fn left(&self) -> Option<f64> {
        let (since, before) = self.first?;
        let (done, rest) = (self.done.checked_sub(before)?, self.total.checked_sub(self.done)?);
        (done > 0).then(|| since.elapsed().as_secs_f64() * rest as f64 / done as f64)
    }

    fn line(&self, unit: &str) -> String {
        let (what, seconds) = (&self.what, self.start.elapsed().as_secs_f64());
        match (self.done, self.total) {
            (0, _) => format!("{what}: {seconds:.0} s"),
            (done, 0) => format!("{what}: {} {unit} in {seconds:.0} s", count(done)),
            (done, total) => {
                let left = self.left().map_or(String::new(), |left| format!(", about {left:.0} s left"));
                format!("{what}: {} of {} {unit} in {seconds:.0} s{left}", count(done), count(total))
            }
        }
    }
}

/// What a thread that panicked left behind is still a number of tokens.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Progress {
    /// Progress through so many units, 0 if that is not known yet.
    pub fn new(shared: &Shared, what: &str, total: usize, unit: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target((total > 0).then_some(total as u64), ProgressDrawTarget::hidden());
        let bar = if shared.quiet { bar } else { SCREEN.add(bar) };
        bar.set_style(style(total, unit));
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        let depth = DEPTH.fetch_add(1, Ordering::Relaxed);
        let stage = Mutex::new(Stage::new(what.to_owned(), total));
        let state = Arc::new(State { unit, stage, said: Mutex::new(Instant::now()), depth });
        let (alive, ended) = mpsc::channel();
        let lines = (!shared.quiet && !console_is_terminal()).then(|| {
            let state = Arc::clone(&state);
            std::thread::spawn(move || state.lines(&ended))
        });
        Self { bar, state, alive: Some(alive), lines }
    }

    /// Another stage begins, of so many units, 0 if that is not known.
    pub fn stage(&self, what: impl Into<String>, total: usize) {
        let what = what.into();
        self.bar.reset();
        self.bar.set_length(total as u64);
        self.bar.set_style(style(total, self.state.unit));
        self.bar.set_message(what.clone());
        *locked(&self.state.stage) = Stage::new(what, total);
    }

    /// So many more are done.
    pub fn add(&self, steps: usize) {
        self.bar.inc(steps as u64);
        let mut stage = locked(&self.state.stage);
        let done = stage.done + steps;
        stage.set(done);
    }

    /// So many of so many are done. Where it starts again, another stage begins.
    pub fn at(&self, done: usize, total: usize) {
        let (before, known, what) = {
            let stage = locked(&self.state.stage);
            (stage.done, stage.total, stage.what.clone())
        };
        if done < before || known != total {
            self.stage(if done < before { format!("{what} again") } else { what }, total);
        }
        self.bar.set_position(done as u64);
        locked(&self.state.stage).set(done);
    }

    /// So many more of so many are done. Where the whole is another one, or is gone through again, another stage begins.
    pub fn more(&self, what: &str, steps: usize, total: usize) {
        let (done, known) = {
            let stage = locked(&self.state.stage);
            (stage.done, stage.total)
        };
        if known != total || done + steps > total {
            self.stage(what, total);
        }
        self.add(steps);
    }

    /// What is going on now, with its figures.
    pub fn say(&self, message: String) {
        self.bar.set_message(message.clone());
        locked(&self.state.stage).what = message;
    }

    /// A line that stays: above the bar, or by itself where there is none.
    pub fn line(&self, text: &str) {
        if self.lines.is_some() {
            eprintln!("{text}");
            *locked(&self.state.said) = Instant::now();
        } else {
            self.bar.println(text);
        }
    }
}

/// A bar, or where its length is not known a sign of life.
fn style(total: usize, unit: &str) -> ProgressStyle {
    let template = if total > 0 {
        format!("{{msg}} {{wide_bar}} {{human_pos}}/{{human_len}} {unit}, {{eta}} left")
    } else {
        "{spinner} {msg} {elapsed}".to_owned()
    };
    ProgressStyle::with_template(&template).expect("a fixed template")
}

impl State {
    /// Writes lines until the other end is dropped.
    fn lines(&self, ended: &Receiver<()>) {
        /// The first line comes after so long a silence, the others after longer ones.
        const FIRST: Duration = Duration::from_millis(1500);
        const EVERY: Duration = Duration::from_secs(5);
        let mut every = FIRST;
        while ended.recv_timeout(Duration::from_millis(250)) == Err(RecvTimeoutError::Timeout) {
            let mut said = locked(&self.said);
            if DEPTH.load(Ordering::Relaxed) > self.depth + 1 {
                // Another one speaks.
                *said = Instant::now();
            } else if said.elapsed() >= every {
                eprintln!("{}", locked(&self.stage).line(self.unit));
                (*said, every) = (Instant::now(), EVERY);
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        DEPTH.fetch_sub(1, Ordering::Relaxed);
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
