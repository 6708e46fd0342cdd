//! Ctrl-C, for commands that can go on later.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// From now on the first Ctrl-C asks to stop where nothing is lost, and the second stops the program at once.
pub fn catch() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
}

/// Whether Ctrl-C was pressed.
pub fn pressed() -> bool {
    STOP.load(Ordering::Relaxed)
}
