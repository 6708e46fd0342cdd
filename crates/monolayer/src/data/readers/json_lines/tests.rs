use super::*;

fn words(data: &Dataset) -> Vec<Vec<&str>> {
    data.ranges().map(|range| range.map(|t| data.word(t).unwrap()).collect()).collect()
}

fn labels(data: &Dataset) -> Vec<&str> {
    (0..data.tokens()).map(|t| data.label(t).unwrap()).collect()
}

#[test]
fn words_with_classes() {
    let text = "\u{feff}{\"tokens\": [\"a\", \"b c\"], \"labels\": [\"X\", \"Y\"]}\r\n \n\n\
                    {\"labels\":[\"Y\"],\"tok\\u0065ns\":[\"\\u00e9\"]}";
    let data = read("f", text.as_bytes()).unwrap();
    assert_eq!(words(&data), [vec!["a", "b c"], vec!["é"]]);
    assert_eq!(labels(&data), ["X", "Y", "Y"]);
    assert_eq!(data.lines, [1, 1, 4]);
    assert_eq!(data.location(2).to_string(), "f:4 (sequence 2, token 1)");
}

#[test]
fn words_without_labels() {
    let data = read("f", b"{\"tokens\": [\"\"]}\n{\"tokens\": [\"a\"]}\n".as_slice()).unwrap();
    assert_eq!(words(&data), [[""], ["a"]]);
    assert_eq!(data.labels, Labels::None);
}

#[test]
fn integers_are_words() {
    let data = read("f", b"{\"tokens\": [7, -7]}\n".as_slice()).unwrap();
    assert_eq!(words(&data), [["7", "-7"]]);
}

#[test]
fn vectors_with_integer_classes() {
    let text = b"{\"tokens\": [[0.1, -2], [1e-3, 4]], \"labels\": [18446744073709551615, -7]}\n";
    let data = read("f", text.as_slice()).unwrap();
    assert_eq!(data.tokens, Tokens::Vectors { d: 2, data: vec![0.1, -2.0, 1e-3, 4.0] });
    assert_eq!(labels(&data), ["18446744073709551615", "-7"]);
}

#[test]
fn outputs_are_vectors() {
    let data = read("f", b"{\"labels\": [[1], [2]], \"tokens\": [[0], [-0.0]]}\n".as_slice()).unwrap();
    assert_eq!(data.labels, Labels::Vectors { d: 1, data: vec![1.0, 2.0] });
    let data = read("f", b"{\"labels\": [[1, 2, 3]], \"tokens\": [\"a\"]}\n".as_slice()).unwrap();
    assert_eq!(data.labels, Labels::Vectors { d: 3, data: vec![1.0, 2.0, 3.0] });
}

#[test]
fn numbers_are_the_nearest_doubles() {
    let hard = "0.17860292823313628,7.2057594037927933e16,2.2250738585072011e-308,1.00000000000000011102230246251565";
    let data = read("f", format!("{{\"tokens\":[[{hard}]]}}").as_bytes()).unwrap();
    let exact: Vec<f64> = hard.split(',').map(|x| x.parse().unwrap()).collect();
    assert_eq!(data.tokens, Tokens::Vectors { d: 4, data: exact });
}

/// Each case: the line before, if any; the line at fault; how the error starts.
fn check(cases: &[(&str, &str, &str)]) {
    for (before, line, expected) in cases {
        let text = if before.is_empty() { (*line).to_owned() } else { format!("{before}\n{line}") };
        let error = read("f", text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{line}\nexpected {expected}\ngot {error}");
    }
}

#[test]
fn errors_of_a_line_say_where_and_what_would_help() {
    let first = r#"{"tokens": ["a", "b"], "labels": ["X", "Y"]}"#;
    let bare = r#"{"tokens": ["a"]}"#;
    check(&[
        ("", "", "f: an empty file: it has no sequences; write one object per line"),
        ("", "\n \n", "f: an empty file: it has no sequences; "),
        ("", "[1]", "f:1 (sequence 1): invalid type: sequence, expected an object; write one object per line"),
        ("", "a X", "f:1:1 (sequence 1): expected value; write one object per line"),
        ("", r#"{"tokens": ["a"#, "f:1:14 (sequence 1, token 1): EOF while parsing a string; "),
        ("", r#"{"tokens": ["a"]} x"#, "f:1:19 (sequence 1): trailing characters; "),
        ("", r#"{"tokens": ["a", "b" "c"]}"#, "f:1:22 (sequence 1, token 3): expected `,` or `]`; "),
        ("", r#"{"tokens": "a"}"#, "f:1:14 (sequence 1): invalid type: string \"a\", expected a list; "),
        ("", r#"{"tokens": null}"#, "f:1:15 (sequence 1): invalid type: null, expected a list; "),
        ("", r#"{"labels": ["X"]}"#, "f:1 (sequence 1): no field \"tokens\"; write one object per line"),
        ("", "{}", "f:1 (sequence 1): no field \"tokens\"; "),
        ("", r#"{"tokens": []}"#, "f:1 (sequence 1): a sequence without tokens; leave the line out"),
        (first, r#"{"tokens": [], "labels": []}"#, "f:2 (sequence 2): a sequence without tokens; "),
        (first, r#"{"tokens": ["a"], "tags": ["X"]}"#, "f:2:24 (sequence 2): unknown field \"tags\"; "),
        (first, r#"{"tokens": ["a"], "tokens": ["a"]}"#, "f:2:26 (sequence 2): the field \"tokens\" a second time; "),
        (first, r#"{"tokens": ["a"], "labels": ["X", "Y"]}"#, "f:2 (sequence 2, token 2): 2 labels for 1 token; "),
        (first, r#"{"tokens": ["a", "b", "c"], "labels": ["X"]}"#, "f:2 (sequence 2, token 2): 1 label for 3 tokens; "),
        (first, r#"{"tokens": ["a"], "labels": []}"#, "f:2 (sequence 2, token 1): 0 labels for 1 token; "),
        (first, bare, "f:2 (sequence 2): no labels where line 1 has labels; give labels on every line or on none"),
        (bare, first, "f:2 (sequence 2): labels where line 1 has no labels; give labels on every line or on none"),
    ]);
}

#[test]
fn mixed_kinds_are_errors() {
    let first = r#"{"tokens": ["a", "b"], "labels": ["X", "Y"]}"#;
    let vectors = r#"{"tokens": [[1, 2]], "labels": [[3, 4]]}"#;
    let integers = r#"{"tokens": [[1, 2]], "labels": [3]}"#;
    check(&[
        (first, vectors, "f:2:13 (sequence 2, token 1): a vector where the first of the file is a string; use one"),
        (vectors, first, "f:2:15 (sequence 2, token 1): a string where the first of the file is a vector; use one"),
        ("", r#"{"tokens": ["a", [1]]}"#, "f:1:18 (sequence 1, token 2): a vector where the first"),
        (
            integers,
            r#"{"tokens": [[1, 2], [1, 2]], "labels": [3, "3"]}"#,
            "f:2:46 (sequence 2, token 2): a string where the first of the file is an integer; ",
        ),
        (
            first,
            r#"{"tokens": ["a", "b"], "labels": ["X", 1]}"#,
            "f:2:40 (sequence 2, token 2): an integer where the first of the file is a string; ",
        ),
        (vectors, integers, "f:2:33 (sequence 2, token 1): an integer where the first of the file is a vector; "),
    ]);
}

#[test]
fn errors_of_a_value_say_where_and_what_would_help() {
    let vectors = r#"{"tokens": [[1, 2]], "labels": [[3, 4]]}"#;
    check(&[
        (
            "",
            r#"{"tokens": [1.5]}"#,
            "f:1:15 (sequence 1, token 1): the number 1.5 as a token; tokens are strings, integers of 64 bits or vectors",
        ),
        ("", r#"{"tokens": ["a"], "labels": [1.5]}"#, "f:1:32 (sequence 1, token 1): the number 1.5 as a label; "),
        ("", r#"{"tokens": ["a"], "labels": [18446744073709551616]}"#, "f:1:49 (sequence 1, token 1): the number 1.8"),
        (
            "",
            r#"{"tokens": ["a"], "labels": [true]}"#,
            "f:1:33 (sequence 1, token 1): invalid type: boolean `true`, expected a string, an integer or a vector; ",
        ),
        (
            "",
            r#"{"tokens": [null]}"#,
            "f:1:16 (sequence 1, token 1): invalid type: null, expected a string, an integer or a vector; ",
        ),
        ("", r#"{"tokens": [[1], []]}"#, "f:1:19 (sequence 1, token 2): a vector without entries; "),
        (
            vectors,
            r#"{"tokens": [[1, 2], [1]], "labels": [[3, 4], [3, 4]]}"#,
            "f:2:23 (sequence 2, token 2): a vector of length 1 where the first of the file has length 2; ",
        ),
        (
            vectors,
            r#"{"tokens": [[1, 2]], "labels": [[3, 4, 5]]}"#,
            "f:2:41 (sequence 2, token 1): a vector of length 3",
        ),
        ("", r#"{"tokens": [[1, "2"]]}"#, "f:1:19 (sequence 1, token 1): invalid type: string \"2\", expected f64; "),
        ("", r#"{"tokens": [[1, [2]]]}"#, "f:1:16 (sequence 1, token 1): invalid type: sequence, expected f64; "),
        (
            "",
            r#"{"tokens": [[1], [NaN]]}"#,
            "f:1:19 (sequence 1, token 2): a number that is not finite; remove or replace it",
        ),
        ("", r#"{"tokens": [[Infinity]]}"#, "f:1:14 (sequence 1, token 1): a number that is not finite; "),
        ("", r#"{"tokens": [[-Infinity]]}"#, "f:1:15 (sequence 1, token 1): a number that is not finite; "),
        ("", r#"{"tokens": [[1e999]]}"#, "f:1:18 (sequence 1, token 1): number out of range; "),
        ("", r#"{"tokens": ["\ud800"]}"#, "f:1:20 (sequence 1, token 1): "),
    ]);
}

#[test]
fn bytes_must_be_utf8() {
    let error = read("f", b"{\"tokens\": [\"\xE9\"]}\n".as_slice()).unwrap_err().to_string();
    assert!(error.starts_with("f:1:14 (sequence 1): bytes that are not UTF-8; JSON is UTF-8"), "{error}");
}
