//! The learning rate: its warmup and its schedule.

use serde::{Deserialize, Serialize};

use crate::options::Options;

/// How the rate changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Not at all.
    Constant,
    /// Down to 0 along a line.
    Linear,
    /// Down to 0 along half a cosine.
    Cosine,
}

impl Options {
    /// The rate of a step, counted from 0, of `steps`: a line up to the full rate, then the schedule over the other steps.
    pub fn rate_at(&self, step: u64, steps: u64) -> f64 {
        if step < self.warmup {
            return self.rate * (step + 1) as f64 / self.warmup as f64;
        }
        let done = (step - self.warmup) as f64 / (steps.saturating_sub(self.warmup)).max(1) as f64;
        self.rate
            * match self.schedule {
                Schedule::Constant => 1.0,
                Schedule::Linear => 1.0 - done,
                Schedule::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * done).cos()),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_rise_and_fall() {
        let rates = |schedule| {
            let options = Options { rate: 1.0, warmup: 2, schedule, ..Options::default() };
            [0, 1, 2, 4].map(|step| options.rate_at(step, 6))
        };
        assert_eq!(rates(Schedule::Constant), [0.5, 1.0, 1.0, 1.0]);
        assert_eq!(rates(Schedule::Linear), [0.5, 1.0, 1.0, 0.5]);
        assert!((rates(Schedule::Cosine)[3] - 0.5).abs() < 1e-12);
    }
}
