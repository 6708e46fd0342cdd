//! One way to memorize: every method, its claims, its source and its directory.

use std::sync::atomic::{AtomicUsize, Ordering};

use monolayer::{AnyModel, Claim, Dataset, Embedding, Error, Memorizer, Method, Precision, Source};
use serde_json::Value;

/// Two words in both orders, labeled by their order: without duplicates, for the paper's method.
fn words() -> Dataset {
    Dataset::from_sequences(&[["a", "b"], ["c", "a"]], &[["X", "Y"], ["Y", "Z"]]).unwrap()
}

#[test]
fn every_method_gives_the_same_kind_of_result() {
    let data = words();
    let room = tempfile::tempdir().unwrap();
    for method in Method::ALL {
        let memorizer = Memorizer::new().method(method).seed(3).candidates(16).embedding(Embedding::Sign(8));
        let compiled = memorizer.compile(&data).unwrap();
        assert_eq!((compiled.method(), compiled.certified(), compiled.right()), (method, 4, 4), "{method:?}");
        assert!(compiled.is_proved() && compiled.impossible().is_empty() && compiled.unproved().next().is_none());
        assert_eq!(compiled.context_ids(), 4);
        assert_eq!(compiled.source().data_hash(), Some(data.hash().as_str()));
        assert!(matches!(compiled.source(), Source::Memorize { method: made, seed: 3, .. } if *made == method));
        // Only the paper's numbers are proved here alone.
        assert_eq!(compiled.claims().is_empty(), method == Method::Paper);
        let dir = room.path().join(method.name());
        compiled.save(&dir).unwrap();
        assert_eq!(&AnyModel::open(&dir).unwrap(), compiled.model(), "{method:?}");
        let certificate: Value = serde_json::from_slice(&std::fs::read(dir.join("certificate.json")).unwrap()).unwrap();
        assert_eq!(certificate["claims"].as_array().map(Vec::len), Some(compiled.claims().len()));
        assert_eq!((&certificate["data"]["hash"], &certificate["data"]["tokens"]), (&data.hash().into(), &4.into()));
        if method != Method::Paper {
            assert_eq!(compiled.model().right(&data).unwrap(), Some(4), "{method:?}");
        }
    }
}

#[test]
fn claims_say_in_which_arithmetic() {
    let arithmetic = |method: Method, precision: Precision| -> Vec<String> {
        let compiled = Memorizer::new().method(method).precision(precision).candidates(8).compile(&words()).unwrap();
        let of = |claim: &Claim| match claim {
            Claim::Labels { arithmetic, .. } => Some(arithmetic.clone()),
            _ => None,
        };
        compiled.claims().iter().filter_map(of).collect()
    };
    assert_eq!(arithmetic(Method::Gated, Precision::Auto), ["f32", "f64"]);
    assert_eq!(arithmetic(Method::Gated, Precision::F64), ["f64"]);
    assert_eq!(arithmetic(Method::Plateau, Precision::Auto), ["f64"]);
    assert_eq!(arithmetic(Method::Plateau, Precision::Exact), ["real"]);
    assert_eq!(arithmetic(Method::Deep, Precision::Auto), ["real"]);
    let vectors = Dataset::from_vectors(&[[[0.5], [2.0]]], &[[[1.0], [-1.0]]]).unwrap();
    let compiled = Memorizer::new().compile(&vectors).unwrap();
    assert_eq!(compiled.method(), Method::Plateau);
    let outputs = compiled.claims().iter().filter(|claim| matches!(claim, Claim::Outputs { .. })).count();
    assert_eq!(outputs, 2);
}

#[test]
fn settings_that_mean_nothing_to_a_method_are_refused() {
    let data = words();
    let refused = |memorizer: Memorizer| matches!(memorizer.compile(&data), Err(Error::Mismatch { .. }));
    for method in [Method::Plateau, Method::Interpolate, Method::Deep, Method::Paper] {
        let memorizer = || Memorizer::new().method(method);
        assert!(refused(memorizer().unknown(true)) && refused(memorizer().free(true)), "{method:?}");
        assert!(refused(memorizer().precision(Precision::F32)), "{method:?}");
    }
    for method in [Method::Gated, Method::Interpolate] {
        assert!(refused(Memorizer::new().method(method).precision(Precision::Exact)), "{method:?}");
    }
    let vectors = Dataset::from_vectors_with_classes(&[[[0.5], [2.0]]], &[["X", "Y"]]).unwrap();
    let gated = Memorizer::new().method(Method::Gated).compile(&vectors);
    assert!(matches!(gated, Err(Error::Mismatch { .. })));
    assert!(matches!("magic".parse::<Method>(), Err(Error::Setting { .. })));
    assert_eq!("deep".parse::<Method>().unwrap(), Method::Deep);
}

#[test]
fn progress_is_heard_and_changes_nothing() {
    let data = words();
    for method in [Method::Gated, Method::Plateau, Method::Deep] {
        let tried = AtomicUsize::new(0);
        let memorizer = Memorizer::new().method(method).candidates(20);
        let silent = memorizer.compile(&data).unwrap();
        let heard = memorizer.on_progress(|more, _gap| {
            tried.fetch_add(more, Ordering::Relaxed);
        });
        assert_eq!(heard.compile(&data).unwrap().model(), silent.model());
        // However many projections a method tries for each of those asked for, what is heard adds up to those.
        assert_eq!(tried.load(Ordering::Relaxed), 20, "{method:?}");
    }
}
