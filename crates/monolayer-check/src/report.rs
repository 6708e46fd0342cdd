//! The verdict, with counterexamples that anyone can rerun.

use std::fmt::Write as _;

use monolayer_core::claims::Checked;
use serde_json::{Value, json};

use crate::open_data::scaled;
use crate::verify::verdict;

/// What the checker found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that was asked certainly holds.
    Verified,
    /// Something certainly fails.
    Refuted,
    /// Nothing certainly fails, but not everything is certain.
    Unknown,
    /// The files could not be read.
    Error,
}

impl Verdict {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Refuted => "refuted",
            Self::Unknown => "unknown",
            Self::Error => "error",
        }
    }

    /// The exit code of a command that ends with it.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Verified => 0,
            Self::Refuted | Self::Unknown => 1,
            Self::Error => 2,
        }
    }

    /// Both: a refutation outweighs doubt, and doubt outweighs a proof.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let rank = |v: Self| match v {
            Self::Verified => 0,
            Self::Unknown => 1,
            Self::Refuted => 2,
            Self::Error => 3,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

/// A token that is refuted or open.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The token's number in the dataset, from 0.
    pub token: usize,
    /// Its sequence and place there, from 0.
    pub position: (usize, usize),
    /// File, line, sequence and token, for people.
    pub place: String,
    /// The token itself.
    pub text: String,
    /// What is wrong or open.
    pub what: String,
    /// The label that the model gives, as far as it is known.
    pub given: Option<String>,
}

/// A claim of the certificate, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Its kind.
    pub kind: String,
    /// What was found.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
    /// For a distance, the bound that was found.
    pub bound: Option<f64>,
    /// For a difference between two models, what was looked at.
    pub looked: Option<Looked>,
}

/// What was looked at to compare two models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looked {
    /// The changes that are claimed.
    pub changes: usize,
    /// Hidden units that differ.
    pub units: usize,
    /// Words at places.
    pub pairs: usize,
    /// The most tokens of the sequences that are meant.
    pub length: usize,
}

impl Claim {
    /// What the core found, with a distance in decimals.
    pub(crate) fn new(checked: &Checked) -> Self {
        let mut claim = Self {
            kind: checked.kind.clone(),
            verdict: verdict(checked.verdict),
            why: checked.why.clone(),
            bound: None,
            looked: None,
        };
        if let Some((low, high)) = within(&checked.why) {
            claim.why = format!("d_p is at least {low:.6e} and at most {high:.6e}");
            claim.bound = Some(high);
        }
        claim
    }
}

/// Both ends of what the core writes as `d_p is within [low, high] 2^e`.
fn within(why: &str) -> Option<(f64, f64)> {
    let (ends, e) = why.strip_prefix("d_p is within [")?.split_once("] 2^")?;
    let (low, high) = ends.split_once(", ")?;
    let (low, high, e): (f64, f64, i32) = (low.parse().ok()?, high.parse().ok()?, e.parse().ok()?);
    // Rounding goes outward.
    Some((scaled(low, e).next_down(), scaled(high, e).next_up()))
}

/// What `verify` found.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The verdict.
    pub verdict: Verdict,
    /// The arithmetic it is about.
    pub precision: String,
    /// Tokens and sequences of the dataset.
    pub tokens: usize,
    /// Sequences of the dataset.
    pub sequences: usize,
    /// Tokens that certainly hold.
    pub verified: usize,
    /// Tokens that certainly fail.
    pub refuted: usize,
    /// Tokens that stay open.
    pub unknown: usize,
    /// Tokens that no weights can get right; they count only with `strict`.
    pub impossible: usize,
    /// Tokens whose label is free: nothing was asked of them.
    pub free: usize,
    /// Tokens not looked at, because `first` stopped at a refutation.
    pub unchecked: usize,
    /// The smallest margin over its error bound, among verified tokens.
    pub smallest_margin_ratio: Option<f64>,
    /// Refuted tokens, the first few.
    pub counterexamples: Vec<Finding>,
    /// Open tokens, the first few.
    pub open: Vec<Finding>,
    /// Impossible tokens, the first few.
    pub impossible_tokens: Vec<Finding>,
    /// The claims of the certificate.
    pub claims: Vec<Claim>,
    /// What was asked and not checked, and why.
    pub not_checked: Vec<String>,
    /// Whether the data is not the certificate's: then its tokens were judged by themselves.
    pub other_data: bool,
    /// What a person should know about how the files were read.
    pub warnings: Vec<String>,
    /// Why the files could not be read, and where.
    pub error: Option<(String, String)>,
    /// Wall-clock time.
    pub seconds: f64,
}

impl Report {
    /// A report that says nothing yet.
    pub fn new() -> Self {
        Self {
            verdict: Verdict::Unknown,
            precision: String::new(),
            tokens: 0,
            sequences: 0,
            verified: 0,
            refuted: 0,
            unknown: 0,
            impossible: 0,
            free: 0,
            unchecked: 0,
            smallest_margin_ratio: None,
            counterexamples: vec![],
            open: vec![],
            impossible_tokens: vec![],
            claims: vec![],
            not_checked: vec![],
            other_data: false,
            warnings: vec![],
            error: None,
            seconds: 0.0,
        }
    }

    /// The fields that scripts rely on, and more.
    pub fn json(&self) -> Value {
        let findings = |list: &[Finding]| -> Vec<Value> {
            list.iter()
                .map(|f| {
                    let (sequence, position) = f.position;
                    json!({"token": f.token, "sequence": sequence, "position": position, "place": f.place, "text": f.text, "what": f.what, "given": f.given})
                })
                .collect()
        };
        let claim = |c: &Claim| {
            let mut out = json!({"kind": c.kind, "verdict": c.verdict.name(), "why": c.why});
            if let Some(bound) = c.bound {
                out["bound"] = bound.into();
            }
            if let Some(looked) = c.looked {
                let fields = [("changes", looked.changes), ("units", looked.units), ("pairs", looked.pairs)];
                fields.into_iter().chain([("length", looked.length)]).for_each(|(name, n)| out[name] = n.into());
            }
            out
        };
        let claims: Vec<Value> = self.claims.iter().map(claim).collect();
        let mut out = json!({
            "verdict": self.verdict.name(),
            "precision": self.precision,
            "tokens": self.tokens,
            "sequences": self.sequences,
            "verified": self.verified,
            "refuted": self.refuted,
            "unknown": self.unknown,
            "impossible": self.impossible,
            "free": self.free,
            "unchecked": self.unchecked,
            "smallest_margin_ratio": self.smallest_margin_ratio,
            "counterexamples": findings(&self.counterexamples),
            "open": findings(&self.open),
            "impossible_tokens": findings(&self.impossible_tokens),
            "claims": claims,
            "not_checked": self.not_checked,
            "other_data": self.other_data,
            "warnings": self.warnings,
            "seconds": self.seconds,
        });
        if let Some((what, place)) = &self.error {
            out["error"] = what.clone().into();
            out["where"] = place.clone().into();
        }
        out
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if let Some((what, place)) = &self.error {
            return format!("error: {place}: {what}\n");
        }
        let _ = writeln!(out, "{}", self.headline());
        if !self.precision.is_empty() {
            let more = |n: usize, what: &str| if n > 0 { format!(", {n} {what}") } else { String::new() };
            let _ = writeln!(
                out,
                "  {} tokens in {} sequences: {} verified, {} refuted, {} unknown, {} impossible{}{}",
                self.tokens,
                self.sequences,
                self.verified,
                self.refuted,
                self.unknown,
                self.impossible,
                more(self.free, "free"),
                more(self.unchecked, "not looked at")
            );
        }
        if self.other_data {
            let _ = writeln!(
                out,
                "  the data is not the certificate's (its hash differs): its tokens are judged by themselves"
            );
        }
        if let Some(ratio) = self.smallest_margin_ratio {
            let _ = writeln!(out, "  smallest margin: {ratio:.3} times its error bound");
        }
        for (title, list) in
            [("refuted", &self.counterexamples), ("unknown", &self.open), ("impossible", &self.impossible_tokens)]
        {
            for finding in list {
                let _ = writeln!(out, "  {title}: {} {:?}: {}", finding.place, finding.text, finding.what);
            }
        }
        for claim in &self.claims {
            let _ = writeln!(out, "  claim {}: {}: {}", claim.kind, claim.verdict.name(), claim.why);
        }
        for left_out in &self.not_checked {
            let _ = writeln!(out, "  not checked: {left_out}");
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "  warning: {warning}");
        }
        let _ = writeln!(out, "  {:.2} seconds", self.seconds);
        out
    }

    /// The verdict, and what it is about.
    fn headline(&self) -> String {
        let verdict = self.verdict.name();
        let place =
            if self.precision.is_empty() { String::new() } else { format!(" in {} arithmetic", self.precision) };
        let refuted = self.claims.iter().find(|claim| claim.verdict == Verdict::Refuted);
        let open = self.claims.iter().find(|claim| claim.verdict == Verdict::Unknown);
        match (self.verdict, refuted) {
            (Verdict::Refuted, _) if self.refuted > 0 => {
                let (all, right) = (self.refuted + self.verified + self.unknown, self.verified);
                format!("{verdict}{place}: {} of {all} tokens are wrong, {right} are right and proved", self.refuted)
            }
            (Verdict::Refuted, Some(claim)) => format!("{verdict}: claim {}: {}", claim.kind, claim.why),
            (Verdict::Verified, _) if self.other_data => {
                format!("{verdict}{place}: the tokens given, which are not the certificate's")
            }
            (Verdict::Unknown, _) if self.unknown == 0 => match (open, self.not_checked.first()) {
                (Some(claim), _) => format!("{verdict}: claim {}: {}", claim.kind, claim.why),
                (None, Some(left_out)) => format!("{verdict}: not checked: {left_out}"),
                (None, None) => format!("{verdict}: nothing that can be checked was asked"),
            },
            _ => format!("{verdict}{place}"),
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}
