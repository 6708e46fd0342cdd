//! Small alphabets: the compiler chooses what attention sees, and few units do.

use monolayer::memorize::alphabet::Choice;
use monolayer::memorize::alphabet::architecture::{Architecture, Gates, Reads};
use monolayer::memorize::alphabet::context_table::{ContextTable, Sequences};
use monolayer::{Claim, Compiled, Dataset, Mask, Memorizer};
use proptest::prelude::*;

/// A dataset with one word and one label per token.
fn dataset(sequences: &[Vec<(u8, u8)>]) -> Dataset {
    let column = |pick: fn(&(u8, u8)) -> u8, from: u8| -> Vec<Vec<String>> {
        let name = |token: &(u8, u8)| char::from(from + pick(token)).to_string();
        sequences.iter().map(|sequence| sequence.iter().map(name).collect()).collect()
    };
    Dataset::from_sequences(&column(|t| t.0, b'a'), &column(|t| t.1, b'A')).unwrap()
}

fn units(task: &str, memorizer: &Memorizer) -> (usize, Choice) {
    let data = Dataset::open(task).unwrap();
    let compiled = memorizer.compile(&data).unwrap();
    assert!(compiled.is_proved() && compiled.impossible().is_empty(), "{task}");
    assert_eq!(compiled.model().right(&data).unwrap(), Some(data.tokens()), "{task}");
    let choice = compiled.gated().unwrap().choice.clone().expect("a small alphabet");
    (compiled.model().config().layers[0].hidden - compiled.spare(), choice)
}

#[test]
fn tasks_need_few_units() {
    for (task, most, reads) in [
        ("task:parity:alphabet=3,length=1..5", 12, Reads::Words),
        ("task:majority:alphabet=3,length=1..5", 30, Reads::OwnPlace),
        ("task:histogram:alphabet=3,length=1..5", 70, Reads::OwnPlace),
        ("task:sort:alphabet=3,length=1..4", 40, Reads::OwnPlace),
        ("task:shift:alphabet=3,length=1..4", 30, Reads::Places),
    ] {
        let (units, choice) = units(task, &Memorizer::new().candidates(64));
        assert!(units <= most, "{task}: {units}");
        assert!(choice.architecture.reads <= reads, "{task}: {}", choice.architecture);
        assert_eq!(Some(units), choice.alternatives[0].units, "{task}");
        assert!(choice.least_units <= units, "{task}");
    }
}

#[test]
fn choices_can_be_forced() {
    let task = "task:parity:alphabet=2,length=1..4";
    let memorizer = || Memorizer::new().candidates(32);
    let (_, choice) = units(task, &memorizer().start(true).reads(Reads::Words).mask(Mask::None).gates(Gates::Word));
    let forced = Architecture { mask: Mask::None, start: true, reads: Reads::Words, gates: Gates::Word };
    assert_eq!(choice.architecture, forced);
    assert_eq!(choice.alternatives.len(), 1);
    let (_, choice) = units(task, &memorizer().start(false).reads(Reads::Places));
    assert!(!choice.architecture.start && choice.architecture.reads == Reads::Places);
    // What is for small alphabets is not ignored elsewhere.
    let data = Dataset::open(task).unwrap();
    let error = memorizer().gates(Gates::Word).embedding("sign:16".parse().unwrap()).compile(&data).unwrap_err();
    assert!(error.to_string().contains("`gates`"), "{error}");
}

#[test]
fn the_bound_is_reached_where_labels_are_a_line_of_counts() {
    // One letter behind a start token: its share grows with the length, so that parity changes at every step.
    let (units, choice) =
        units("task:parity:alphabet=2,length=1..5", &Memorizer::new().candidates(64).start(true).reads(Reads::Words));
    assert!(choice.least_units >= 3 && units >= choice.least_units, "{units} {}", choice.least_units);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the data, every possible token is proved right, and no fewer units than the bound are used.
    #[test]
    fn random_data_is_memorized(
        sequences in prop::collection::vec(prop::collection::vec((0_u8..3, 0_u8..3), 1..5), 1..12),
        seed in 0_u64..4,
    ) {
        let data = dataset(&sequences);
        let compiled = Memorizer::new().seed(seed).candidates(16).compile(&data).unwrap();
        prop_assert!(compiled.is_proved());
        prop_assert_eq!(compiled.model().right(&data).unwrap(), Some(compiled.possible()));
        if let Some(choice) = &compiled.gated().unwrap().choice {
            prop_assert!(choice.least_units <= compiled.model().config().layers[0].hidden - compiled.spare());
            prop_assert_eq!(choice.alternatives[0].impossible, compiled.impossible().len());
        }
    }

    /// The table counts the impossible tokens of the contexts that a model of the architecture has.
    #[test]
    fn tables_agree_with_contexts(
        sequences in prop::collection::vec(prop::collection::vec((0_u8..3, 0_u8..2), 1..6), 1..12),
        causal in any::<bool>(),
        start in any::<bool>(),
        places in any::<bool>(),
    ) {
        use monolayer::data::context::{Contexts, START};

        let data = dataset(&sequences);
        let mask = if causal { Mask::Causal } else { Mask::None };
        let labels = data.label_ids().unwrap();
        let ids = data.token_ids();
        let contexts = Contexts::with_start(start.then_some(START), &ids, &data.offsets, &mask, places);
        let (words, longest) = (ids.iter().max().unwrap() + 1, data.longest());
        let rows = Sequences { word_ids: &ids, offsets: &data.offsets, labels: &labels, words: words as usize, longest };
        let reads = if places { Reads::Places } else { Reads::Words };
        let table = ContextTable::new(rows, &Architecture { mask, start, reads, gates: Gates::Shared });
        prop_assert_eq!(table.impossible, contexts.agree(&labels).impossible.len());
        prop_assert_eq!(table.contexts(), contexts.count);
    }
}

/// How many sequences, and whether they are all of some lengths.
type Claimed<'a> = (Option<&'a str>, Option<(usize, usize)>);

/// What the certificate of a model claims of other orders.
fn orderings(compiled: &Compiled) -> Option<Claimed<'_>> {
    compiled.claims().iter().find_map(|claim| match claim {
        Claim::Orderings { sequences, all_lengths, .. } => Some((sequences.as_deref(), *all_lengths)),
        _ => None,
    })
}

#[test]
fn sorted_sequences_stand_for_all_orderings() {
    let data = Dataset::open("task:histogram:alphabet=3,length=1..5,order=sorted").unwrap();
    let memorizer = || Memorizer::new().candidates(32);
    let compiled = memorizer().compile(&data).unwrap();
    let choice = compiled.gated().unwrap().choice.as_ref().unwrap();
    assert!(choice.alternatives.iter().all(|a| a.architecture.mask == Mask::None));
    assert!(choice.alternatives.iter().all(|a| a.architecture.reads == Reads::Words));
    assert_eq!(orderings(&compiled), Some((Some("363"), Some((1, 5)))));
    for asked in [
        memorizer().mask(Mask::Causal),
        memorizer().mask(Mask::Band(9, 9)),
        memorizer().positions("sign:8".parse().unwrap()),
        memorizer().reads(Reads::OwnPlace),
        memorizer().gates(Gates::Place),
    ] {
        let error = asked.compile(&data).unwrap_err().to_string();
        assert!(error.contains("stand for all their orderings"), "{error}");
    }
    let every = Dataset::open("task:histogram:alphabet=3,length=1..5").unwrap();
    assert_eq!(compiled.model().right(&every).unwrap(), Some(every.tokens()));
}

#[test]
fn orderings_are_claimed_only_where_they_are_proved() {
    let compile = |memorizer: Memorizer, data: &Dataset| memorizer.candidates(16).compile(data).unwrap();
    let shift = Dataset::open("task:shift:alphabet=2,length=1..3").unwrap();
    assert_eq!(orderings(&compile(Memorizer::new(), &shift)), None);
    // One order of each, which stands for itself alone: the labels are what the order says, and still no others are possible.
    let words = dataset(&[vec![(0, 0), (1, 1)], vec![(1, 1), (0, 0), (0, 0)]]);
    let blind = || Memorizer::new().mask(Mask::None).reads(Reads::Words);
    assert_eq!(orderings(&compile(blind(), &words)), Some((Some("5"), None)));
    assert_eq!(orderings(&compile(Memorizer::new().mask(Mask::Causal), &words)), None);
    // A token that is impossible, and two orders of one multiset with different labels.
    let conflict = dataset(&[vec![(0, 0), (1, 1)], vec![(1, 0), (0, 0)]]);
    let compiled = compile(blind(), &conflict);
    assert!(!compiled.impossible().is_empty() && orderings(&compiled).is_none());
}
