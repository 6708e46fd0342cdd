//! Counts of a run.

use super::adapter::Judgment;

#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub models: usize,
    /// Cases that the checker refused to read.
    pub errors: usize,
    pub claims_verified: usize,
    pub claims_refuted: usize,
    pub claims_unknown: usize,
    pub right: usize,
    pub refuted: usize,
    pub unknown: usize,
    pub impossible: usize,
    pub evaluations: usize,
    /// Quantities of runs outside their enclosures.
    pub outside: usize,
    /// Runs or exact results that contradict what was said.
    pub wrong: usize,
    /// Cases with something outside or wrong.
    pub bad_models: usize,
    /// Tokens whose margin is over eight textbook bounds, and how many of them stayed open.
    pub clear: usize,
    pub clear_unknown: usize,
}

impl Tally {
    pub fn count(&mut self, tokens: &[Judgment]) {
        for judgment in tokens {
            *match judgment {
                Judgment::Right => &mut self.right,
                Judgment::Wrong => &mut self.refuted,
                Judgment::Unknown => &mut self.unknown,
                Judgment::Impossible => &mut self.impossible,
            } += 1;
        }
    }

    pub fn plus(self, o: Self) -> Self {
        Self {
            models: self.models + o.models,
            errors: self.errors + o.errors,
            claims_verified: self.claims_verified + o.claims_verified,
            claims_refuted: self.claims_refuted + o.claims_refuted,
            claims_unknown: self.claims_unknown + o.claims_unknown,
            right: self.right + o.right,
            refuted: self.refuted + o.refuted,
            unknown: self.unknown + o.unknown,
            impossible: self.impossible + o.impossible,
            evaluations: self.evaluations + o.evaluations,
            outside: self.outside + o.outside,
            wrong: self.wrong + o.wrong,
            bad_models: self.bad_models + o.bad_models,
            clear: self.clear + o.clear,
            clear_unknown: self.clear_unknown + o.clear_unknown,
        }
    }

    /// Nothing outside, nothing wrong.
    pub fn sound(&self) -> bool {
        self.outside == 0 && self.wrong == 0
    }

    pub fn text(&self) -> String {
        format!(
            "{} models ({} refused): {} verified, {} refuted, {} unknown\n\
             tokens: {} verified, {} refuted, {} unknown, {} impossible\n\
             {} evaluations: {} quantities outside enclosures, {} wrong verdicts, in {} models\n\
             {} of {} tokens with a margin over eight textbook bounds are unknown",
            self.models,
            self.errors,
            self.claims_verified,
            self.claims_refuted,
            self.claims_unknown,
            self.right,
            self.refuted,
            self.unknown,
            self.impossible,
            self.evaluations,
            self.outside,
            self.wrong,
            self.bad_models,
            self.clear_unknown,
            self.clear
        )
    }
}
