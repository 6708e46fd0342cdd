//! Where the time of training steps goes.

use std::time::Instant;

/// Seconds by part, added up over threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Times {
    /// Matrix products of all blocks and of the head.
    #[serde(default)]
    pub products: f64,
    /// Softmax attention and its gradient, without the products with weights.
    pub attention: f64,
    /// Bias and ReLU of feed-forward blocks, forward and back; layer norm.
    pub feed_forward: f64,
    /// The loss and its gradient.
    pub head: f64,
    /// Embedding rows: finding them, what they missed, their gradients.
    pub embedding: f64,
    /// Adding gradients up, and the optimizer.
    pub optimizer: f64,
}

/// A part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Products,
    Attention,
    FeedForward,
    Head,
    Embedding,
    Optimizer,
}

impl Times {
    /// The parts with their names.
    pub fn parts(&self) -> [(&'static str, f64); 6] {
        [
            ("products", self.products),
            ("attention", self.attention),
            ("feed_forward", self.feed_forward),
            ("head", self.head),
            ("embedding", self.embedding),
            ("optimizer", self.optimizer),
        ]
    }

    /// Adds the times of some more work.
    pub(crate) fn add(&mut self, more: &Self) {
        self.products += more.products;
        self.attention += more.attention;
        self.feed_forward += more.feed_forward;
        self.head += more.head;
        self.embedding += more.embedding;
        self.optimizer += more.optimizer;
    }

    fn of(&mut self, part: Part) -> &mut f64 {
        match part {
            Part::Products => &mut self.products,
            Part::Attention => &mut self.attention,
            Part::FeedForward => &mut self.feed_forward,
            Part::Head => &mut self.head,
            Part::Embedding => &mut self.embedding,
            Part::Optimizer => &mut self.optimizer,
        }
    }
}

/// The clock of one thread's work.
#[derive(Debug)]
pub(crate) struct Watch {
    last: Instant,
    times: Times,
}

impl Default for Watch {
    fn default() -> Self {
        Self { last: Instant::now(), times: Times::default() }
    }
}

impl Watch {
    /// What follows is timed.
    pub fn start(&mut self) {
        self.last = Instant::now();
    }

    /// The time since the last call was that of a part.
    pub fn lap(&mut self, part: Part) {
        let now = Instant::now();
        *self.times.of(part) += (now - self.last).as_secs_f64();
        self.last = now;
    }

    /// The time since the last call was that of a part on all threads.
    pub fn lap_of_all(&mut self, part: Part) {
        let now = Instant::now();
        *self.times.of(part) += (now - self.last).as_secs_f64() * rayon::current_num_threads() as f64;
        self.last = now;
    }

    /// The times since the last call.
    pub fn take(&mut self) -> Times {
        std::mem::take(&mut self.times)
    }
}
