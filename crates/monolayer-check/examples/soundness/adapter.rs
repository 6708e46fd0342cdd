//! The one place that knows the checker: what it says of a case.

use std::path::Path;

use monolayer_check::{Options, Precision, verify};

use super::case::{Arithmetic, Case, Claim};
use super::files;
use super::graph::Graph;

/// Of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgment {
    Right,
    Wrong,
    Unknown,
    Impossible,
}

/// Of a claim, or of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Verified,
    Refuted,
    Unknown,
    Error,
}

/// What the checker says.
pub struct Found {
    pub verdict: Verdict,
    /// Of the case's own claim, where it is one of a certificate.
    pub claim: Option<Verdict>,
    /// Token by token; empty where tokens were not judged.
    pub tokens: Vec<Judgment>,
    /// By sequence and node of its graph, the interval that holds the quantity in every covered program; none where the
    /// checker says nothing. Empty where it gives no enclosures at all.
    pub enclosures: Vec<Vec<Option<(f64, f64)>>>,
    /// The report, for people.
    pub text: String,
}

/// Whether the checker reads the second format.
pub const SECOND_FORMAT: bool = false;

fn verdict(v: monolayer_check::Verdict) -> Verdict {
    match v {
        monolayer_check::Verdict::Verified => Verdict::Verified,
        monolayer_check::Verdict::Refuted => Verdict::Refuted,
        monolayer_check::Verdict::Unknown => Verdict::Unknown,
        monolayer_check::Verdict::Error => Verdict::Error,
    }
}

/// Writes the case into a directory and asks.
pub fn judge(case: &Case, _graphs: &[Graph], dir: &Path) -> Found {
    files::write(case, dir).expect("a directory to write to");
    let precision = match case.arithmetic {
        Arithmetic::Single => Precision::F32,
        Arithmetic::Double => Precision::F64,
        Arithmetic::Real => Precision::Real,
    };
    let options = Options { precision: Some(precision), findings: usize::MAX, bits: 4096, ..Options::default() };
    let data = dir.join("data.jsonl");
    let report = verify(dir, data.exists().then(|| data.to_str().expect("a plain path")), &options);
    let judged = report.error.is_none() && matches!(case.claim, Claim::Labels | Claim::Outputs(_));
    let mut tokens = vec![Judgment::Right; if judged { report.tokens } else { 0 }];
    if judged {
        let lists = [
            (&report.counterexamples, Judgment::Wrong),
            (&report.open, Judgment::Unknown),
            (&report.impossible_tokens, Judgment::Impossible),
        ];
        for (list, judgment) in lists {
            list.iter().for_each(|finding| tokens[finding.token] = judgment);
        }
    }
    let kind = match case.claim {
        Claim::Labels => "labels",
        Claim::Outputs(_) => "outputs",
        Claim::Mapping(..) => "contextual-mapping",
        Claim::Rank(..) => "rank",
        Claim::Distance(..) => "distance",
    };
    let claim = report.claims.iter().find(|c| c.kind == kind).map(|c| verdict(c.verdict));
    Found { verdict: verdict(report.verdict), claim, tokens, enclosures: vec![], text: report.text() }
}
