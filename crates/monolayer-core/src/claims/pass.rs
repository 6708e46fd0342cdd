//! The verdicts on all tokens in one arithmetic, taken token by token.

use std::collections::BTreeMap;

use super::all_of;
use crate::exact::real::Rational;
use crate::read::certificate::Arithmetic as Named;
use crate::rules::ball::Ball;
use crate::rules::judge::{Judged, Verdict, Wanted, Wishes};

/// At most so many tokens go on to more bits.
const ESCALATED: usize = 4096;

/// A judgement of all tokens in one arithmetic.
#[derive(Debug, Clone)]
pub struct Pass {
    /// The arithmetic.
    pub arithmetic: Named,
    pub(super) tolerance: Option<Rational>,
    /// The verdict on each token.
    pub verdicts: Vec<Verdict>,
    /// Which tokens no weights can get right.
    pub impossible: Vec<bool>,
    /// The margin ratios that are claimed, and how many tokens are right with such margins.
    pub(super) met: Vec<(Rational, usize)>,
}

impl Pass {
    fn count(&self, verdict: Verdict) -> usize {
        self.verdicts.iter().filter(|own| **own == verdict).count()
    }

    /// The verdict on all tokens that count: each of them by itself.
    pub(super) fn verdict(&self, strict: bool) -> Verdict {
        let counts = self.verdicts.iter().zip(&self.impossible).filter(|(_, impossible)| strict || !**impossible);
        all_of(counts.map(|(verdict, _)| *verdict))
    }

    /// Every possible token is within the tolerance.
    pub(super) fn outputs(&self) -> (Verdict, String) {
        let [right, wrong, unknown] = [Verdict::Right, Verdict::Wrong, Verdict::Unknown].map(|v| self.count(v));
        (self.verdict(false), format!("{right} tokens are verified, {wrong} refuted, {unknown} unknown"))
    }

    /// Every token has its label, impossible ones too, so that each of its orderings has.
    pub(super) fn orderings(&self, said: &str) -> (Verdict, String) {
        let right = self.count(Verdict::Right);
        (self.verdict(true), format!("{right} tokens are verified, and with them their places in {said}"))
    }

    /// So many tokens get their label, with margins of so many error bounds.
    pub(super) fn labels(&self, claimed: usize, ratio: Option<&Rational>) -> (Verdict, String) {
        let (right, unknown) = (self.count(Verdict::Right), self.count(Verdict::Unknown));
        let said = format!("claims {claimed} tokens, {right} are verified, {unknown} are unknown");
        let met = |ratio: &Rational| self.met.iter().find(|(known, _)| known.minus(ratio).is_zero());
        let enough = ratio.map_or(right, |ratio| met(ratio).map_or(0, |(_, met)| *met));
        if right + unknown < claimed {
            (Verdict::Wrong, said)
        } else if right < claimed || claimed == 0 {
            (Verdict::Unknown, said)
        } else if enough < claimed {
            (Verdict::Unknown, format!("{said}; {enough} with the claimed margin ratio"))
        } else {
            (Verdict::Right, said)
        }
    }
}

/// Told of a token.
pub(super) type Each<'a> = &'a dyn Fn(usize, &Judged, bool);

/// A pass that takes the tokens one by one.
pub(super) struct Sink<'a> {
    pub pass: Pass,
    pub ratios: Vec<Ball>,
    /// The first tokens that stay open, where more bits may decide them.
    pub open: BTreeMap<usize, Judged>,
    pub wanted: &'a Wishes<'a>,
    pub each: Each<'a>,
}

impl Sink<'_> {
    /// Takes a token as it was judged; in real arithmetic what is open may be decided later.
    pub fn take(&mut self, t: usize, mut judged: Judged, exact: bool) {
        match self.wanted.of(t) {
            Wanted::Free if exact => judged.verdict = Verdict::Free,
            Wanted::Label(None) if exact => judged.verdict = Verdict::Wrong,
            _ => (),
        }
        if !exact || judged.verdict != Verdict::Unknown {
            return self.settle(t, &judged);
        }
        self.open.insert(t, judged);
        if self.open.len() > ESCALATED
            && let Some((t, judged)) = self.open.pop_last()
        {
            self.settle(t, &judged);
        }
    }

    /// What was found of a token in the end.
    pub fn settle(&mut self, t: usize, judged: &Judged) {
        self.pass.verdicts[t] = judged.verdict;
        for (met, ratio) in self.pass.met.iter_mut().zip(&self.ratios) {
            met.1 += usize::from(judged.verdict == Verdict::Right && meets(judged, *ratio));
        }
        (self.each)(t, judged, self.pass.impossible[t]);
    }
}

/// Around a margin ratio; far too much where it is out of range.
pub(super) fn enclosed(ratio: &Rational) -> Ball {
    Ball::around(&ratio.enclosure(62)).unwrap_or(Ball::power(1 << 20))
}

/// Whether the margin of a token is that many error bounds.
fn meets(judged: &Judged, ratio: Ball) -> bool {
    judged.margin.is_none_or(|margin| {
        let over = || margin.middle().plus(margin.spread().size().times(ratio).minus());
        margin.is_positive() && over().is_not_negative()
    })
}
