//! Labels that may be anything: they ask for nothing, and what others ask for stays.

use monolayer::data::context::Contexts;
use monolayer::{Compiled, Dataset, Labels, Mask, Memorizer, Method, Precision};
use proptest::prelude::*;

/// Sequences of a few words, with a class for each or none.
type Rows = Vec<Vec<(u8, Option<u8>)>>;

fn rows() -> impl Strategy<Value = Rows> {
    let token = (0..4_u8, prop::option::weighted(0.7, 0..3_u8));
    prop::collection::vec(prop::collection::vec(token, 1..5), 1..7)
}

fn dataset(rows: &Rows) -> Dataset {
    let words: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|(word, _)| format!("w{word}")).collect()).collect();
    let label = |&(_, label): &(u8, Option<u8>)| label.map(|label| format!("y{label}"));
    let labels: Vec<Vec<Option<String>>> = rows.iter().map(|row| row.iter().map(label).collect()).collect();
    Dataset::from_sequences(&words, &labels).unwrap()
}

fn memorizer(method: Method) -> Memorizer<'static> {
    Memorizer::new().method(method).candidates(8)
}

fn compile(data: &Dataset, method: Method) -> Compiled {
    memorizer(method).compile(data).unwrap()
}

/// What must hold of every model: all tokens but the impossible and the free are proved, and come out right.
fn check(data: &Dataset, compiled: &Compiled) {
    let what = format!("{:?} {:?}", compiled.method(), data.labels);
    assert_eq!(compiled.free().len(), data.free(), "{what}");
    assert_eq!(compiled.possible() + compiled.impossible().len() + compiled.free().len(), data.tokens());
    assert!(compiled.free().iter().all(|&t| data.is_free(t) && !compiled.proved()[t]), "{what}");
    assert!(compiled.is_proved() && compiled.unproved().next().is_none(), "{what}");
    assert_eq!(compiled.right(), compiled.possible(), "{what}");
    if compiled.method() != Method::Paper {
        assert_eq!(compiled.model().right(data).unwrap(), Some(compiled.possible()), "{what}");
        let predicted = compiled.model().predict(data).unwrap();
        let sequences = predicted.sequences_right(data, compiled.model().label_names());
        assert_eq!(sequences, Some(compiled.sequences_right()), "{what}");
    }
}

fn hinges(compiled: &Compiled) -> usize {
    compiled.model().config().layers[0].hidden - compiled.spare()
}

proptest! {
    /// A label that is made free leaves other contexts as they are, and adds no conflict to its own.
    #[test]
    fn a_free_label_changes_nothing_for_others(rows in rows(), which in any::<prop::sample::Index>(), positions: bool) {
        let data = dataset(&rows);
        let labels = data.label_ids().unwrap();
        let contexts = Contexts::new(&data.token_ids(), &data.offsets, &Mask::None, positions);
        let t = which.index(labels.len());
        let mut freer = labels.clone();
        freer[t] = None;
        let (before, after) = (contexts.agree(&labels), contexts.agree(&freer));
        let own = contexts.of_token[t] as usize;
        for context in (0..contexts.count).filter(|&context| context != own) {
            prop_assert_eq!(before.label[context], after.label[context]);
        }
        let elsewhere = |list: &[usize]| -> Vec<usize> {
            list.iter().copied().filter(|&t| contexts.of_token[t] as usize != own).collect()
        };
        prop_assert_eq!(elsewhere(&before.impossible), elsewhere(&after.impossible));
        prop_assert!(after.impossible.len() <= before.impossible.len());
        let same = |&u: &usize| contexts.of_token[u] as usize == own;
        prop_assert_eq!(after.label[own].is_none(), (0..labels.len()).filter(same).all(|u| freer[u].is_none()));
        prop_assert!(after.free.binary_search(&t).is_ok() && after.impossible.binary_search(&t).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is free, everything else is memorized and proved, by every method.
    #[test]
    fn everything_else_is_memorized(rows in rows()) {
        let data = dataset(&rows);
        check(&data, &compile(&data, Method::Gated));
        check(&data, &compile(&data, Method::Plateau));
        check(&data, &compile(&data, Method::Interpolate));
        check(&data, &memorizer(Method::Gated).precision(Precision::F64).free(true).compile(&data).unwrap());
        check(&data, &memorizer(Method::Gated).mask(Mask::Causal).compile(&data).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn in_exact_arithmetic_too(rows in rows()) {
        let data = dataset(&rows);
        check(&data, &compile(&data, Method::Deep));
        check(&data, &memorizer(Method::Plateau).precision(Precision::Exact).compile(&data).unwrap());
    }
}

/// The constants of the paper are for data without repeated words.
#[test]
fn by_the_papers_own_constants() {
    let (words, labels) = ([["a", "b"], ["b", "c"]], [[Some("X"), None], [Some("Y"), None]]);
    let data = Dataset::from_sequences(&words, &labels).unwrap();
    let vectors = [[vec![1.0, 0.5], vec![0.25, 1.0]], [vec![0.25, 1.0], vec![1.0, -1.0]]];
    let toy = Dataset::from_vectors_with_classes(&vectors, &labels).unwrap();
    assert_eq!((toy.free(), data.free()), (2, 2));
    let all = Dataset::from_vectors_with_classes(&vectors, &[["X", "X"], ["Y", "X"]]).unwrap();
    let units = |data: &Dataset| {
        let compiled = compile(data, Method::Paper);
        check(data, &compiled);
        compiled.paper().unwrap().block.b1.len()
    };
    // A curve through two ids, and through four.
    assert_eq!((units(&toy), units(&all)), (1, 3));
}

#[test]
fn all_free() {
    let words = [vec!["a", "b", "a"], vec!["b"]];
    let data = Dataset::from_sequences(&words, &[vec![None::<&str>; 3], vec![None]]).unwrap();
    for method in [Method::Gated, Method::Plateau, Method::Interpolate, Method::Deep] {
        let compiled = compile(&data, method);
        check(&data, &compiled);
        assert_eq!((compiled.possible(), compiled.right(), compiled.sequences_right()), (0, 0, 2));
        assert_eq!(compiled.model().label_names(), Some(&["_".to_owned()][..]), "{method:?}");
    }
    let predicted = compile(&data, Method::Gated).model().predict(&data).unwrap();
    assert_eq!(predicted.accuracy(&data, Some(&["_".to_owned()])), None);
    // A word for which any label will do needs no unit.
    assert_eq!(hinges(&compile(&data, Method::Gated)), 0);
}

#[test]
fn free_in_one_copy_and_given_in_another() {
    let words = [["a", "b"], ["a", "b"], ["b", "b"]];
    let labels = [[Some("X"), None], [None, Some("Y")], [Some("X"), None]];
    let data = Dataset::from_sequences(&words, &labels).unwrap();
    for method in [Method::Gated, Method::Plateau, Method::Interpolate, Method::Deep] {
        let compiled = compile(&data, method);
        check(&data, &compiled);
        assert!(compiled.impossible().is_empty());
        // Equal contexts get equal labels: that of the copy that has one.
        let monolayer::Predictions::Labels(found) = compiled.model().predict(&data).unwrap() else { panic!("labels") };
        assert_eq!((found[1], found[2]), (found[3], found[0]), "{method:?}");
    }
}

/// So many that a halfspace over words, places and ids does not tell all their labels apart.
const CONTEXTS: usize = 32;

/// One word, in as many contexts as there are others, with labels in turn.
fn alternating(free: impl Fn(usize) -> bool) -> Dataset {
    let words: Vec<[String; 2]> = (0..CONTEXTS).map(|i| ["May".to_owned(), format!("w{i}")]).collect();
    let label = |i: usize| if free(i) { None } else { Some(["PER", "DATE"][i % 2]) };
    let labels: Vec<[Option<&str>; 2]> = (0..CONTEXTS).map(|i| [label(i), Some("O")]).collect();
    Dataset::from_sequences(&words, &labels).unwrap()
}

#[test]
fn free_labels_save_units() {
    for method in [Method::Gated, Method::Plateau, Method::Interpolate] {
        let units = |data: &Dataset| {
            let compiled = compile(data, method);
            check(data, &compiled);
            hinges(&compiled)
        };
        let (all, half) = (units(&alternating(|_| false)), units(&alternating(|i| i % 2 == 1)));
        let (few, none) = (units(&alternating(|i| i > 1)), units(&alternating(|_| true)));
        println!("{method:?}: {all}, {half}, {few}, {none}");
        assert!(none <= few && few < all && none <= half && half < all, "{method:?}: {all}, {half}, {few}, {none}");
    }
    // Nothing but "O" is left.
    assert_eq!(hinges(&compile(&alternating(|_| true), Method::Gated)), 0);
}

#[test]
fn one_label_per_sequence() {
    use monolayer::data::LabelAt;
    let data = Dataset::open("task:parity:alphabet=2,length=4").unwrap();
    let classes: Vec<String> = data.ranges().map(|range| data.label(range.start).unwrap().to_owned()).collect();
    for (at, free) in [(LabelAt::All, 0), (LabelAt::First, 48), (LabelAt::Last, 48)] {
        let data = data.clone().with_sequence_labels(&classes, at).unwrap();
        let compiled = compile(&data, Method::Gated);
        check(&data, &compiled);
        assert_eq!((compiled.free().len(), compiled.sequences_right()), (free, data.sequences()));
        assert!(matches!(&data.labels, Labels::Classes { names, .. } if names.len() == 2));
    }
}
