//! Corollary 1 with the paper's constants, on toys.

use monolayer::Dataset;
use monolayer::data::Format;
use monolayer::data::embedding::Embedding;
use monolayer::memorize::paper::{PaperMemo, memorize_paper};

const MOST_BITS: usize = 1 << 15;

fn memorize(lines: &str) -> monolayer::Result<PaperMemo> {
    let data = Dataset::read("toy", Format::JsonLines, lines.as_bytes()).unwrap();
    memorize_paper(&data, &Embedding::Sign(8), 0, MOST_BITS)
}

/// Four vectors in the plane, all six pairs.
const PAIRS: &str = r#"
{"tokens": [[1.0, 0.0], [0.0, 1.0]], "labels": [[0.5, 1.0], [2.0, 0.0]]}
{"tokens": [[1.0, 0.0], [-1.0, 0.0]], "labels": [[1.5, 1.0], [2.0, -3.0]]}
{"tokens": [[1.0, 0.0], [0.0, -1.0]], "labels": [[0.5, 1.0], [2.0, 0.25]]}
{"tokens": [[0.0, 1.0], [-1.0, 0.0]], "labels": [[0.5, 1.0], [0.5, 1.0]]}
{"tokens": [[0.0, 1.0], [0.0, -1.0]], "labels": [[7.0, 1.0], [2.0, 0.0]]}
{"tokens": [[-1.0, 0.0], [0.0, -1.0]], "labels": [[0.0, 0.0], [2.0, 1.0]]}
"#;

#[test]
fn pairs_of_four_vectors() {
    let memo = memorize(PAIRS.trim()).unwrap();
    assert_eq!(memo.distinct, 12);
    // No float tells these ids apart, and yet they are as far apart as Theorem 2 says and farther.
    assert!(memo.log2_gap < -1100.0, "{}", memo.log2_gap);
    assert!(memo.log2_gap > memo.log2_delta, "{} {}", memo.log2_gap, memo.log2_delta);
    assert!(memo.log2_error <= -64.0);
}

#[test]
fn one_token_and_classes() {
    let memo = memorize(r#"{"tokens": [[2.0]], "labels": ["a"]}"#).unwrap();
    assert_eq!((memo.distinct, memo.log2_gap), (1, f64::INFINITY));
    let memo =
        memorize("{\"tokens\": [[2.0], [-3.0]], \"labels\": [0, 1]}\n{\"tokens\": [[2.0]], \"labels\": [1]}").unwrap();
    assert_eq!(memo.distinct, 3);
}

#[test]
fn what_the_theorem_does_not_cover() {
    let says = |lines: &str, what: &str| {
        let error = memorize(lines).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    says(r#"{"tokens": [[2.0], [0.0]], "labels": [0, 1]}"#, "zero vector");
    says(r#"{"tokens": [[2.0], [2.0]], "labels": [0, 0]}"#, "twice");
    says("{\"tokens\": [[2.0]], \"labels\": [0]}\n{\"tokens\": [[2.0]], \"labels\": [1]}", "another label");
    let data = Dataset::read("toy", Format::JsonLines, PAIRS.trim().as_bytes()).unwrap();
    let error = memorize_paper(&data, &Embedding::Sign(8), 0, 512).unwrap_err().to_string();
    assert!(error.contains("512 bits do not tell the ids apart"), "{error}");
}
