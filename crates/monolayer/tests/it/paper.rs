//! Corollary 1 with the paper's constants, on toys.

use monolayer::data::Format;
use monolayer::data::embedding::Embedding;
use monolayer::{Compiled, Dataset, Memorizer, Method};

const MOST_BITS: usize = 1 << 15;

fn memorize(lines: &str, max_bits: usize) -> monolayer::Result<Compiled> {
    let data = Dataset::read("toy", Format::JsonLines, lines.as_bytes()).unwrap();
    Memorizer::new().method(Method::Paper).embedding(Embedding::Sign(8)).max_bits(max_bits).compile(&data)
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
    let memo = memorize(PAIRS.trim(), MOST_BITS).unwrap();
    assert_eq!((memo.context_ids(), memo.certified()), (12, 12));
    let memo = memo.paper().unwrap();
    // No float tells these ids apart, and yet they are as far apart as Theorem 2 says and farther.
    assert!(memo.log2_gap < -1100.0, "{}", memo.log2_gap);
    assert!(memo.log2_gap > memo.log2_delta, "{} {}", memo.log2_gap, memo.log2_delta);
    assert!(memo.log2_error <= -64.0);
}

#[test]
fn one_token_and_classes() {
    let memo = memorize(r#"{"tokens": [[2.0]], "labels": ["a"]}"#, MOST_BITS).unwrap();
    assert_eq!((memo.context_ids(), memo.paper().unwrap().log2_gap), (1, f64::INFINITY));
    let memo = memorize(
        "{\"tokens\": [[2.0], [-3.0]], \"labels\": [0, 1]}\n{\"tokens\": [[2.0]], \"labels\": [1]}",
        MOST_BITS,
    )
    .unwrap();
    assert_eq!(memo.context_ids(), 3);
}

#[test]
fn what_the_theorem_does_not_cover() {
    let says = |lines: &str, what: &str| {
        let error = memorize(lines, MOST_BITS).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    says(r#"{"tokens": [[2.0], [0.0]], "labels": [0, 1]}"#, "zero vector");
    says(r#"{"tokens": [[2.0], [2.0]], "labels": [0, 0]}"#, "twice");
    says("{\"tokens\": [[2.0]], \"labels\": [0]}\n{\"tokens\": [[2.0]], \"labels\": [1]}", "another label");
    let error = memorize(PAIRS.trim(), 512).unwrap_err().to_string();
    assert!(error.contains("512 bits do not tell the ids apart"), "{error}");
}
