//! Models of large vocabularies, compiled in stages: the checker, which knows nothing of codes with a guaranteed distance, verifies
//! every claim that the compiler proved from it.

use monolayer::data::{Labels, ambiguous_corpus};
use monolayer::memorize::{Effort, MEMORY};
use monolayer::{Mask, Memorizer, Positions, Precision};
use monolayer_check::{Options, Verdict, verify};

#[test]
fn claims_of_staged_models_are_verified() {
    let dir = tempfile::tempdir().unwrap();
    let fast = || Memorizer::new().effort(Effort::Fast).memory(MEMORY).candidates(16);
    let settings = [
        fast(),
        fast().precision(Precision::F64).free(true),
        fast().start(true).unknown(true).seed(3),
        fast().mask(Mask::Causal),
        fast().mask(Mask::Band(1, 0)).positions(Positions::None),
    ];
    for (i, memorizer) in settings.into_iter().enumerate() {
        let mut data = ambiguous_corpus(2500, i as u64);
        let Labels::Classes { label_ids, .. } = &mut data.labels else { panic!("classes") };
        // Some labels are free, and some are noise.
        label_ids.iter_mut().step_by(7).for_each(|label| *label = None);
        label_ids.iter_mut().skip(3).step_by(11).for_each(|label| *label = label.map(|l| (l + 1) % 8));
        let (out, file) = (dir.path().join("model"), dir.path().join("data.jsonl"));
        let mut bytes = Vec::new();
        data.write_canonical(&mut bytes).unwrap();
        std::fs::write(&file, bytes).unwrap();
        let compiled = memorizer.compile(&data).unwrap();
        compiled.save(&out).unwrap();
        let report = verify(&out, file.to_str(), &Options::default());
        assert_eq!(report.verdict, Verdict::Verified, "{i}: {}", report.text());
        assert_eq!((report.verified, report.impossible), (compiled.possible(), compiled.impossible().len()), "{i}");
        assert!(report.claims.iter().all(|claim| claim.verdict == Verdict::Verified), "{i}: {}", report.text());
    }
}
