//! Labels that may be anything: compiler and checker read them alike, and the checker verifies what was compiled.

use monolayer::data::{Dataset, Format as TheirFormat, LabelAt};
use monolayer::{Memorizer, Method, Precision};
use monolayer_check::open_data;
use monolayer_check::{Format, Options, Verdict, verify};
use monolayer_core::read::Limits;

/// A dataset with every third label free, and its file.
fn freed(source: &str, dir: &std::path::Path) -> (Dataset, String) {
    let data = Dataset::open(source).unwrap();
    let mut text = String::new();
    for range in data.ranges() {
        for t in range {
            let label = if t % 3 == 1 { "_" } else { data.label(t).unwrap() };
            text += &format!("{} {label}\n", data.word(t).unwrap());
        }
        text.push('\n');
    }
    let file = dir.join("data.conll");
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (Dataset::open(&file).unwrap(), file)
}

#[test]
fn free_labels_are_read_alike() {
    let cases: [(&str, TheirFormat, Format); 12] = [
        ("a _\nb X\n\n_ _\n", TheirFormat::Conll, Format::Conll),
        ("a _\n", TheirFormat::Conll, Format::Conll),
        ("a x _\nb _ Y\n", TheirFormat::Conll, Format::Conll),
        (r#"{"tokens":["a","b"],"labels":[null,"X"]}"#, TheirFormat::JsonLines, Format::JsonLines),
        (r#"{"tokens":["a","b"],"labels":["_","-100"]}"#, TheirFormat::JsonLines, Format::JsonLines),
        (r#"{"tokens":["a","b"],"labels":[null,null]}"#, TheirFormat::JsonLines, Format::JsonLines),
        (r#"{"tokens":[[1],[2]],"labels":[-100,7]}"#, TheirFormat::JsonLines, Format::JsonLines),
        (r#"{"tokens":[1,-100],"labels":[-100,null]}"#, TheirFormat::JsonLines, Format::JsonLines),
        (r#"{"tokens":["a","b"],"labels":["X",-100]}"#, TheirFormat::JsonLines, Format::JsonLines),
        (r#"{"tokens":["a","b"],"labels":[-100,"X"]}"#, TheirFormat::JsonLines, Format::JsonLines),
        (r#"{"tokens":[null],"labels":["X"]}"#, TheirFormat::JsonLines, Format::JsonLines),
        (r#"{"tokens":["a"],"labels":null}"#, TheirFormat::JsonLines, Format::JsonLines),
    ];
    let mut read = 0;
    for (text, their_format, format) in cases {
        let theirs = Dataset::read("x", their_format, text.as_bytes());
        let ours = open_data::parse("x", text.as_bytes(), format, &Limits::default());
        assert_eq!(theirs.is_ok(), ours.is_ok(), "{text}");
        if let (Ok(theirs), Ok(ours)) = (theirs, ours) {
            assert_eq!((theirs.hash(), theirs.free()), (ours.data.hash.clone(), ours.free()), "{text}");
            let labels = theirs.label_ids().unwrap();
            assert_eq!(Some(&labels), ours.data.labels.as_ref(), "{text}");
            read += 1;
        }
    }
    assert_eq!(read, 8);
}

#[test]
fn models_of_free_labels_are_verified() {
    let dir = tempfile::tempdir().unwrap();
    for task in ["histogram:alphabet=3,length=4", "reverse:alphabet=3,length=3", "sort:alphabet=3,length=1..3"] {
        let (data, file) = freed(&format!("task:{task}"), dir.path());
        assert!(data.free() > 0);
        for (method, precision) in
            [(Method::Gated, Precision::F32), (Method::Plateau, Precision::F64), (Method::Interpolate, Precision::F64)]
        {
            let memorizer = Memorizer::new().method(method).precision(precision).candidates(8);
            let compiled = memorizer.compile(&data).unwrap();
            assert!(compiled.is_proved(), "{task} {method:?}");
            let out = dir.path().join("model");
            compiled.save(&out).unwrap();
            let report = verify(&out, Some(&file), &Options::default());
            assert_eq!(report.verdict, Verdict::Verified, "{task} {method:?}: {}", report.text());
            let counts = (report.verified, report.impossible, report.free);
            assert_eq!(counts, (compiled.possible(), compiled.impossible().len(), data.free()), "{task} {method:?}");
            // Claims about free tokens are checked as well.
            assert!(report.claims.iter().all(|claim| claim.verdict == Verdict::Verified), "{}", report.text());
        }
    }
}

#[test]
fn a_wrong_number_of_free_tokens_is_no_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = freed("task:histogram:alphabet=2,length=3", dir.path());
    let out = dir.path().join("model");
    Memorizer::new().candidates(8).compile(&data).unwrap().save(&out).unwrap();
    let path = out.join("certificate.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let right = format!("\"free\": {}", data.free());
    assert!(text.contains(&right), "{text}");
    std::fs::write(&path, text.replace(&right, &format!("\"free\": {}", data.free() + 1))).unwrap();
    assert_ne!(verify(&out, Some(&file), &Options::default()).verdict, Verdict::Verified);
}

#[test]
fn all_free_data_and_one_label_per_sequence() {
    let dir = tempfile::tempdir().unwrap();
    let data = Dataset::open("task:parity:alphabet=2,length=4").unwrap();
    let classes: Vec<Option<&str>> = data.ranges().map(|range| data.label(range.start)).collect();
    let none = vec![None::<&str>; data.sequences()];
    let cases = [
        // Of tokens that are all free nothing is asked, so nothing is verified of them.
        (data.clone().with_sequence_labels(&none, LabelAt::All).unwrap(), 0, Verdict::Unknown),
        (data.clone().with_sequence_labels(&classes, LabelAt::Last).unwrap(), data.sequences(), Verdict::Verified),
    ];
    for (data, verified, verdict) in cases {
        let (out, file) = (dir.path().join("model"), dir.path().join("data.jsonl"));
        let mut bytes = Vec::new();
        data.write_canonical(&mut bytes).unwrap();
        std::fs::write(&file, bytes).unwrap();
        let compiled = Memorizer::new().precision(Precision::F32).candidates(8).compile(&data).unwrap();
        compiled.save(&out).unwrap();
        let report = verify(&out, file.to_str(), &Options::default());
        assert_eq!((report.verified, report.free), (verified, data.tokens() - verified), "{}", report.text());
        assert_eq!(report.verdict, verdict, "{}", report.text());
        assert!(report.claims.iter().all(|claim| claim.verdict == Verdict::Verified), "{}", report.text());
    }
}
