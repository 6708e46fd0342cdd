//! The verdict, with counterexamples that anyone can rerun.

use std::fmt::Write as _;

use serde_json::{Value, json};

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
    /// What is wrong or open, with the scores.
    pub what: String,
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
            verdict: Verdict::Verified,
            precision: String::new(),
            tokens: 0,
            sequences: 0,
            verified: 0,
            refuted: 0,
            unknown: 0,
            impossible: 0,
            unchecked: 0,
            smallest_margin_ratio: None,
            counterexamples: vec![],
            open: vec![],
            impossible_tokens: vec![],
            claims: vec![],
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
                    json!({"token": f.token, "sequence": sequence, "position": position, "place": f.place, "text": f.text, "what": f.what})
                })
                .collect()
        };
        let claim = |c: &Claim| {
            let mut out = json!({"kind": c.kind, "verdict": c.verdict.name(), "why": c.why});
            if let Some(bound) = c.bound {
                out["bound"] = bound.into();
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
            "unchecked": self.unchecked,
            "smallest_margin_ratio": self.smallest_margin_ratio,
            "counterexamples": findings(&self.counterexamples),
            "open": findings(&self.open),
            "impossible_tokens": findings(&self.impossible_tokens),
            "claims": claims,
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
        let _ = writeln!(
            out,
            "{}{}",
            self.verdict.name(),
            if self.precision.is_empty() { String::new() } else { format!(" in {} arithmetic", self.precision) }
        );
        if self.tokens > 0 {
            let _ = writeln!(
                out,
                "  {} tokens in {} sequences: {} verified, {} refuted, {} unknown, {} impossible{}",
                self.tokens,
                self.sequences,
                self.verified,
                self.refuted,
                self.unknown,
                self.impossible,
                if self.unchecked > 0 { format!(", {} not looked at", self.unchecked) } else { String::new() }
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
        for warning in &self.warnings {
            let _ = writeln!(out, "  warning: {warning}");
        }
        let _ = writeln!(out, "  {:.2} seconds", self.seconds);
        out
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}
