//! What `monolayer context` says.

use std::fmt::Write as _;

use monolayer::Dataset;
use monolayer::context_map::View;
use monolayer::context_map::coincidence::{Reason, is_zero};
use monolayer::context_map::float_weights::CertifiedMap;
use monolayer::context_map::proved_gaps::{Distance, ProvedGaps};
use monolayer::data::context::Agreement;
use monolayer::data::separation::Separation;
use monolayer::model::mask_file::MaskConfig;
use monolayer::paper::theorem_two::Guarantee;
use serde_json::{Value, json};

use crate::output::{count, table};

/// Pairs of contexts shown at most.
const SHOWN: usize = 3;

/// All there is to say about a contextual map.
pub struct Report<'a> {
    pub data: &'a Dataset,
    pub view: &'a View<'a>,
    pub tight: &'a CertifiedMap,
    pub agreement: Option<&'a Agreement>,
    /// Of `W_Q`, `W_K`, `W_V`, `W_O`.
    pub ranks: [usize; 4],
}

impl Report<'_> {
    fn certificate(&self) -> &ProvedGaps {
        &self.tight.certificate
    }

    /// What Theorem 2 says of the same tokens.
    fn guarantee(&self) -> Option<Guarantee> {
        let separation = &self.tight.separation;
        Guarantee::new(separation.vocabulary, self.data.longest(), self.view.vectors.d(), &separation.constants)
    }

    /// A gap of `g` against the standard deviation of `g` over all tokens.
    fn over_deviation(&self, distance: &Distance) -> f64 {
        if distance.g == 0.0 { 0.0 } else { distance.g / self.tight.deviation }
    }

    pub fn json(&self) -> Value {
        let (tight, certificate) = (self.tight, self.certificate());
        let Separation { r_min, r_max, epsilon } = tight.separation.constants;
        let guarantee = self.guarantee();
        let (merged, example) = self.merged();
        let labelled = certificate.labelled.as_ref();
        let coinciding = certificate.coinciding.iter().take(SHOWN);
        json!({
            "scale": "tight",
            "data": self.data.name,
            "sequences": self.data.sequences(),
            "tokens": self.data.tokens(),
            "longest": self.data.longest(),
            "d": self.view.vectors.d(),
            "vocabulary": tight.separation.vocabulary,
            "contexts": self.view.contexts.count,
            "positions": self.view.vectors.positions.is_some(),
            "mask": MaskConfig::new(&self.view.mask),
            "r_min": r_min,
            "r_max": r_max,
            "epsilon": epsilon,
            "log2_delta_theorem": guarantee.map(|g| g.log2_delta),
            "r_theorem": guarantee.map(|g| g.r),
            "bits_theorem": guarantee.and_then(|g| g.bits()),
            "contextual_map": certificate.holds(),
            "certified": certificate.undecided.is_empty() && certificate.other_token > 0.0,
            "log2_gap": certificate.log2_delta(),
            "r": certificate.r,
            "bits": certificate.bits,
            "gap_over_sd": self.over_deviation(&certificate.same_token),
            "labelled_gap_over_sd": labelled.map(|distance| self.over_deviation(distance)),
            "log2_labelled_gap": labelled.map(|distance| distance.log2),
            "other_token_gap": certificate.other_token,
            "standard_deviation": tight.deviation,
            "closest": self.pair(certificate.same_token.tokens),
            "labelled_closest": labelled.map(|distance| self.pair(distance.tokens)),
            "coinciding": certificate.coinciding.len(),
            "coinciding_pairs": coinciding
                .map(|&(a, b, reason)| json!({ "reason": reason, "pair": self.pair(Some((a, b))) }))
                .collect::<Vec<_>>(),
            "undecided": certificate.undecided.len(),
            "same_for_all_weights": merged,
            "same_for_all_weights_example": self.pair(example),
            "impossible": self.agreement.map(|a| a.impossible.len()),
            "kappa": tight.found.projection.kappa,
            "w_o": tight.map.w[tight.map.w.len() - 1],
            "ranks": self.ranks,
            "candidates": tight.found.candidates,
            "search_seconds": tight.search_time.as_secs_f64(),
            "certificate_seconds": tight.certificate_time.as_secs_f64(),
        })
    }

    /// Two tokens and their sentences.
    pub fn pair(&self, tokens: Option<(usize, usize)>) -> Value {
        let side = |t: usize| {
            let place = self.data.location(t);
            json!({
                "sequence": place.sequence,
                "token": place.token,
                "line": place.line,
                "text": self.data.token_text(t),
                "label": self.agreement.map(|_| self.data.label_text(t)),
                "sentence": self.sentence(t),
            })
        };
        json!(tokens.map(|(a, b)| [side(a), side(b)]))
    }

    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}", self.data.name, self.facts());
        text += &self.weights();
        text += &self.verdict();
        text += &self.theorem();
        text + &self.findings()
    }

    /// Definition 1 and the sizes that Theorem 2 speaks of.
    pub fn facts(&self) -> String {
        let separation = &self.tight.separation;
        let Separation { r_min, r_max, epsilon } = separation.constants;
        let row = |name: &str, value: String, note: &str| vec![name.to_owned(), value, note.to_owned()];
        let what = match (self.view.vectors.positions.is_some(), self.data.word(0).is_some()) {
            (true, true) => "different token vectors: words at their places",
            (false, true) => "different token vectors: words",
            (true, false) => "different token vectors, places added",
            (false, false) => "different token vectors",
        };
        let apart = if separation.vocabulary == 1 { "-".to_owned() } else { format!("{epsilon:.6}") };
        table(
            &[
                row("sequences", count(self.data.sequences()), ""),
                row("n", count(self.data.longest()), "tokens in the longest sequence"),
                row("d", count(self.view.vectors.d()), "dimension"),
                row("|V|", count(separation.vocabulary), what),
                row("contexts", count(self.view.contexts.count), "a token and the multiset of tokens it sees"),
                row("r_min", format!("{r_min:.6}"), "the shortest token"),
                row("r_max", format!("{r_max:.6}"), "the longest"),
                row("epsilon", apart, "the distance of the closest two"),
            ],
            &[2],
        )
    }

    fn weights(&self) -> String {
        let tight = self.tight;
        let [q, k, v, o] = self.ranks;
        format!(
            "weights: kappa {:.6e}, |W_O| {:.6e}; ranks of W_Q, W_K, W_V, W_O: {q}, {k}, {v}, {o} (exact)\n\
             search: {} candidates in {:.1} s; proof: {:.1} s, at most {} bits\n",
            tight.found.projection.kappa,
            tight.map.w[tight.map.w.len() - 1].abs(),
            count(tight.found.candidates),
            tight.search_time.as_secs_f64(),
            tight.certificate_time.as_secs_f64(),
            count(self.certificate().bits),
        )
    }

    /// Whether it is a contextual map, and its gaps.
    fn verdict(&self) -> String {
        let certificate = self.certificate();
        let mut text = match certificate.log2_delta() {
            Some(log2) if log2.is_finite() => format!(
                "a contextual map, proved: any two ids are at least {} apart and shorter than r = {:.6}\n",
                power_of_two(log2),
                certificate.r
            ),
            Some(_) => "a contextual map: there is one context only, nothing to tell apart\n".to_owned(),
            None if certificate.coinciding.is_empty() => "NOT proved to be a contextual map\n".to_owned(),
            None => "NOT a contextual map, proved\n".to_owned(),
        };
        if !certificate.coinciding.is_empty() {
            let _ = writeln!(text, "{} share an id with another:", plural(certificate.coinciding.len(), "context"));
            for &(a, b, reason) in certificate.coinciding.iter().take(SHOWN) {
                let _ = writeln!(text, "{}  {}", self.sentences(a, b), explained(reason));
            }
        }
        if !certificate.undecided.is_empty() {
            let pairs = plural(certificate.undecided.len(), "pair");
            let _ = writeln!(
                text,
                "{pairs} of contexts differ by too little to be told apart at {} bits:",
                certificate.bits
            );
            let (a, b) = certificate.undecided[0];
            text += &self.sentences(a, b);
        }
        if certificate.other_token == 0.0 {
            text +=
                "W_O is so large that ids of different tokens may meet: choose a smaller one, or leave it to eq. 32\n";
        }
        let distances =
            [("any two contexts", Some(&certificate.same_token)), ("different labels", certificate.labelled.as_ref())];
        for (name, distance) in distances {
            let Some((distance, tokens)) = distance.and_then(|d| Some((d, d.tokens?))) else { continue };
            // Equal ids were shown above.
            if distance.log2 == f64::NEG_INFINITY {
                continue;
            }
            let _ = writeln!(
                text,
                "closest ids of one token, {name}: g differs by {} of its standard deviation, ids by {}",
                power_of_two(distance.log2_g - self.tight.deviation.log2()),
                power_of_two(distance.log2),
            );
            text += &self.sentences(tokens.0, tokens.1);
        }
        text
    }

    /// What Theorem 2's own weights would have given.
    fn theorem(&self) -> String {
        let separation = &self.tight.separation;
        let Some(guarantee) = self.guarantee() else {
            return if separation.vocabulary == 1 {
                "Theorem 2 has nothing to say: all tokens are equal\n".to_owned()
            } else {
                "Theorem 2 does not apply: it asks for r_min > 0, and there is a zero token\n".to_owned()
            };
        };
        match guarantee.bits() {
            Some(bits) => format!(
                "Theorem 2's own weights: delta = 2^{:.4e}, r = {:.6}; one number that holds such a gap takes {:.1e} bits, {}\n",
                guarantee.log2_delta,
                guarantee.r,
                bits,
                bytes(bits / 8.0)
            ),
            None => {
                "Theorem 2's formula gives delta = 0 for n = 1, where ids are more than epsilon / 2 apart\n".to_owned()
            }
        }
    }

    /// What no weights can change.
    pub fn findings(&self) -> String {
        let mut text = String::new();
        let (merged, example) = self.merged();
        if let Some((a, b)) = example {
            let _ = write!(
                text,
                "{} as one normalized multiset of different sizes, like (x, y) and (x, y, x, y): one id for all weights\n{}",
                plural_verb(merged, "context", "appears", "appear"),
                self.sentences(a, b)
            );
        }
        if self.tight.separation.constants.r_min == 0.0
            && let Some(t) = (0..self.view.token_ids.len()).find(|&t| is_zero(self.view, t))
        {
            let _ = writeln!(
                text,
                "the zero token ({}) has the query 0 for all weights and sees only the mean of its sequence",
                self.data.location(t)
            );
        }
        text
    }

    /// Contexts that occur with different numbers of visible tokens: how many, and two tokens of one.
    pub fn merged(&self) -> (usize, Option<(usize, usize)>) {
        let mut first: Vec<Option<usize>> = vec![None; self.view.contexts.count];
        let mut seen = vec![false; self.view.contexts.count];
        let mut example = None;
        for (t, &context) in self.view.contexts.of_token.iter().enumerate() {
            let context = context as usize;
            let a = *first[context].get_or_insert(t);
            if self.view.seen(a).0.count() != self.view.seen(t).0.count() {
                seen[context] = true;
                example = example.or(Some((a, t)));
            }
        }
        (seen.iter().filter(|&&s| s).count(), example)
    }

    pub fn sentences(&self, a: usize, b: usize) -> String {
        let line = |t: usize| {
            let label = self.agreement.map_or(String::new(), |_| format!(" {}", self.data.label_text(t)));
            let place = self.data.location(t);
            let at = place
                .line
                .map_or_else(|| format!("sequence {}", place.sequence.unwrap_or(0)), |line| format!("line {line}"));
            vec![at, format!("{}{label}", self.sentence(t))]
        };
        table(&[line(a), line(b)], &[1])
    }

    /// What token `t` sees, with the token marked.
    fn sentence(&self, t: usize) -> String {
        let mark = |i: usize| {
            let text = self.data.token_text(i);
            if i == t { format!("[{text}]") } else { text }
        };
        self.view.visible(t).map(mark).collect::<Vec<_>>().join(" ")
    }
}

fn explained(reason: Reason) -> &'static str {
    match reason {
        Reason::ZeroToken => {
            "the token is 0, so its query is 0 and it sees the mean only, which is the same: no weights tell them apart"
        }
        Reason::EqualMeans => {
            "the query is 0 and the means of the projected tokens agree: choose a kappa other than 0, or another seed"
        }
        Reason::EqualProjections => "v sends both to the same numbers: choose another seed, or more candidates",
        Reason::NoOutput => "W_O is 0: nothing of the context gets into the id",
    }
}

pub fn plural(n: usize, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
}

fn plural_verb(n: usize, what: &str, one: &str, many: &str) -> String {
    format!("{} {}", plural(n, what), if n == 1 { one } else { many })
}

/// A number given by its binary logarithm.
pub fn power_of_two(log2: f64) -> String {
    match log2 {
        _ if log2 > -1000.0 => format!("{:.3e} (2^{log2:.2})", log2.exp2()),
        _ if log2 > -1e6 => format!("2^{log2:.1}"),
        _ => format!("2^{log2:.4e}"),
    }
}

/// A number of bytes for people.
pub fn bytes(n: f64) -> String {
    const UNITS: [&str; 11] = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB", "RB", "QB"];
    let unit = ((n.log10() / 3.0).floor().max(0.0) as usize).min(UNITS.len() - 1);
    if n <= 1.0 {
        return "1 byte".to_owned();
    }
    let digits = if unit == 0 { 0 } else { 3 };
    format!("{:.digits$} {}", n / 1000_f64.powi(unit as i32), UNITS[unit])
}
