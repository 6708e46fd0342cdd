//! Numbers of docs/errata.md: formulas of the paper that do not hold as printed, and what is easily read into the paper.

use monolayer::arithmetic::matrix::Matrix;
use monolayer::arithmetic::{Interval, Number};
use monolayer::data::context::Contexts;
use monolayer::data::separation::{Separation, separation};
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};
use monolayer::paper::boltzmann::{Boltzmann, difference};
use monolayer::paper::counterexamples::{
    equation_42, equation_47, equation_48_radius, equation_48_separation, log2_42, log2_47,
};
use monolayer::paper::feed_forward::FeedForward;
use monolayer::paper::lemmas::{lemma_1, lemma_s};
use monolayer::paper::theorem_two::Guarantee;
use proptest::prelude::*;

/// The tokens `a v` for each a, one per row.
fn multiples<N: Number>(a: &[i32], v: &[i32]) -> Matrix<N> {
    Matrix::from_fn(a.len(), v.len(), |i, j| N::from_f64(f64::from(a[i] * v[j])))
}

/// One-dimensional attention: `w_o` times the mixture of the tokens, scores `query * key`.
fn line<N: Number>(kind: AttentionKind, query: f64, w_o: f64) -> Attention<N> {
    let one = |x: f64| [N::from_f64(x)];
    let mut attention = Attention::rank_one(Mask::None, &one(1.0), &one(query), &one(w_o));
    attention.kind = kind;
    attention
}

/// Whether two enclosures have no number in common.
fn apart(a: Interval, b: Interval) -> bool {
    a.certainly_less(&b) || b.certainly_less(&a)
}

/// Attention with several heads whose weights are small integers, and a direction v: everything is exact in f64.
fn integer_attention() -> impl Strategy<Value = (Attention<f64>, Vec<i32>)> {
    (1..5_usize, 1..4_usize, 1..5_usize).prop_flat_map(|(d, s, heads)| {
        let weights = prop::collection::vec(-3..=3_i32, heads * 4 * s * d);
        (weights, prop::collection::vec(-3..=3_i32, d)).prop_map(move |(weights, v)| {
            let mut numbers = weights.into_iter().map(f64::from);
            let mut matrix = |rows, cols| Matrix::from_fn(rows, cols, |_, _| numbers.next().unwrap());
            let mut head =
                || AttentionHead { w_q: matrix(s, d), w_k: matrix(s, d), w_v: matrix(s, d), w_o: matrix(d, s) };
            let heads = (0..heads).map(|_| head()).collect();
            (Attention { kind: AttentionKind::Hardmax, mask: Mask::None, heads }, v)
        })
    })
}

/// Theorem 1's proof: its pair (a1, a2, a4), (a1, a3, a4) is told apart by mean pooling, a hardmax head whose query is 0.
#[test]
fn theorem_1_the_printed_pair_is_separated() {
    let attention = line::<Interval>(AttentionKind::Hardmax, 0.0, 1.0);
    let output = |a: &[i32]| attention.apply(&multiples(a, &[1])).unwrap().data[0];
    let (first, second) = (output(&[1, 2, 4]), output(&[1, 3, 4]));
    // 1 + 7/3 against 1 + 8/3.
    assert!(apart(first, second), "{first:?} {second:?}");
    assert!((second.center() - first.center() - 1.0 / 3.0).abs() < 1e-15);
}

/// Beside Theorem 1, three tokens: heads for the mean, the largest and the smallest token tell all sets of three apart.
#[test]
fn theorem_1_three_heads_separate_sets_of_three() {
    let unit = |c: usize| Matrix::from_fn(1, 4, |_, j| f64::from(u8::from(j == c)));
    let head = |query: f64, into: usize| AttentionHead {
        w_q: unit(0).map(|x| x * query),
        w_k: unit(0),
        w_v: unit(0),
        w_o: Matrix::from_fn(4, 1, |j, _| f64::from(u8::from(j == into))),
    };
    let attention = Attention {
        kind: AttentionKind::Hardmax,
        mask: Mask::None,
        heads: vec![head(0.0, 1), head(1.0, 2), head(-1.0, 3)],
    };
    let mut outputs = Vec::new();
    for (a, b, c) in (1..=6).flat_map(|a| (1..a).flat_map(move |b| (1..b).map(move |c| (a, b, c)))) {
        // Multiples of 3, so that the mean is an integer up to rounding.
        let out = attention.apply(&multiples(&[3 * a, 3 * b, 3 * c], &[1, 0, 0, 0])).unwrap();
        outputs.extend(out.iter_rows().map(|row| row.iter().map(|x| x.round() as i64).collect::<Vec<_>>()));
    }
    // Twenty sets, three tokens each.
    assert_eq!(outputs.len(), 60);
    outputs.sort();
    outputs.dedup();
    assert_eq!(outputs.len(), 60);
}

proptest! {
    /// Theorem 1: (1, 2, 5, 6) v and (1, 3, 4, 6) v have the same smallest token, largest token and mean, so no hardmax
    /// layer tells their ends apart, whatever its heads; tokens in common change nothing.
    #[test]
    fn theorem_1_no_hardmax_layer_separates_this_pair((attention, v) in integer_attention()) {
        for common in [&[][..], &[2, 4, 4, -7]] {
            let output = |a: &[i32]| attention.apply(&multiples(&[a, common].concat(), &v)).unwrap();
            let (first, second) = (output(&[1, 2, 5, 6]), output(&[1, 3, 4, 6]));
            prop_assert_eq!(first.row(0), second.row(0));
            prop_assert_eq!(first.row(3), second.row(3));
        }
    }

    /// Theorem 2 needs `r_min > 0`: the query of a zero token is 0, so its softmax sees the mean alone, and {0, 1, 4, 7} v and
    /// {0, 2, 3, 7} v look the same to it.
    #[test]
    fn theorem_2_a_zero_token_sees_the_mean((mut attention, v) in integer_attention()) {
        attention.kind = AttentionKind::Softmax;
        let output = |a: &[i32]| attention.apply(&multiples(a, &v)).unwrap().row(0).to_vec();
        prop_assert_eq!(output(&[0, 1, 4, 7]), output(&[0, 2, 3, 7]));
    }

    /// In place of (48): `E_k = c k e_1` with `c >= 2 r_max + epsilon` keeps the separation of the tokens.
    #[test]
    fn corollary_2_repaired_keeps_the_separation(data in prop::collection::vec(-4..=4_i32, 2..12), length in 1..6_usize) {
        let d = 2;
        let mut tokens: Vec<Vec<f64>> = data.chunks_exact(d).map(|x| x.iter().map(|&x| f64::from(x)).collect()).collect();
        tokens.sort_by(|a, b| a.partial_cmp(b).unwrap());
        tokens.dedup();
        prop_assume!(tokens.len() > 1);
        let before = separation(d, &tokens.concat());
        // A whole number: every coordinate is exact.
        let c = (2.0 * before.r_max + before.epsilon).ceil();
        let place = |k: usize| tokens.iter().flat_map(move |x| [x[0] + c * k as f64, x[1]]);
        let after = separation(d, &(1..=length).flat_map(place).collect::<Vec<f64>>());
        prop_assert!(after.epsilon >= before.epsilon, "{} {}", after.epsilon, before.epsilon);
    }
}

/// Theorem 1's pair is no obstacle to softmax: eq. 2 tells both ends apart.
#[test]
fn softmax_separates_the_pair_of_theorem_1() {
    let attention = line::<Interval>(AttentionKind::Softmax, 0.25, 1.0);
    let output = |a: &[i32]| attention.apply(&multiples(a, &[1])).unwrap().data;
    let (first, second) = (output(&[1, 2, 5, 6]), output(&[1, 3, 4, 6]));
    assert!(apart(first[0], second[0]) && apart(first[3], second[3]), "{first:?} {second:?}");
}

/// Theorem 2 needs `r_min > 0`, in three tokens: {0, 1, 4} and {0, 2, 3} have the mean 5/3. A token other than 0 would tell.
#[test]
fn theorem_2_zero_token_in_three_tokens() {
    let attention = line::<Interval>(AttentionKind::Softmax, 0.5, 1.0);
    let output = |a: &[i32]| attention.apply(&multiples(a, &[1])).unwrap().data;
    let (first, second) = (output(&[0, 1, 4, 9]), output(&[0, 2, 3, 9]));
    assert!(first[0].hull(second[0]).width() < 1e-14 && apart(first[3], second[3]));
    let (first, second) = (output(&[0, 1, 4]), output(&[0, 2, 3]));
    assert!(first[0].hull(second[0]).width() < 1e-14);
    assert!((first[0].center() - 5.0 / 3.0).abs() < 1e-15);
}

/// Beside Definition 2: softmax sees normalized multisets, not sets. (x, y) and (x, y, x, y) are the same to it, (x, y) and
/// (x, y, y) are not, although they are the same set.
#[test]
fn definition_2_multisets_not_sets() {
    let attention = line::<Interval>(AttentionKind::Softmax, 0.5, 1.0);
    let output = |a: &[i32]| attention.apply(&multiples(a, &[1])).unwrap().data[0];
    assert!(output(&[1, 3]).hull(output(&[1, 3, 1, 3])).width() < 1e-14);
    assert!(apart(output(&[1, 3]), output(&[1, 3, 3])));
}

/// The gap that Lemma 1 claims: `(log n)^2 e^(-2 r)`.
fn lemma_1_bound(n: f64, r: f64) -> f64 {
    n.ln().powi(2) * (-2.0 * r).exp()
}

/// Lemma 1 asks for a gap wherever a != b as vectors; boltz does not see the order of its arguments.
#[test]
fn lemma_1_permuted_arguments() {
    // In [-r, r] with r = 5, and 5 > 2 log 2 + 3 apart.
    let boltz = |a: &[f64]| Boltzmann::at(a).unwrap().value();
    assert_eq!(boltz(&[0.0, 5.0]), boltz(&[5.0, 0.0]));
    assert!(lemma_1_bound(2.0, 5.0) > 2.1e-5);
    assert!(lemma_1(&[0.0, 5.0], &[5.0, 0.0], 5.0).unwrap_err().to_string().contains("equal as sets"));
}

/// Beside Appendix C: Lemma 1's constant is for vectors of one length: {r} and {r, -r} are apart, but at n = 100 only by 0.576 of it.
#[test]
fn lemma_1_different_lengths() {
    let n = 100_f64;
    let r = n.ln() + 1.5 + 1e-9;
    let gap = difference(&[r], &[r, -r], 192).unwrap().to_interval().center();
    let ratio = gap / lemma_1_bound(n, r);
    assert!((ratio - 0.5757).abs() < 1e-4, "{ratio}");
    // Lemma S has no n in it, and holds.
    assert!(lemma_s(&[r], &[r, -r], 2.0 * r).unwrap().holds());
}

/// Theorem 2 for n = 1: the formula has the factor `(log n)^2 = 0`, yet ids of different tokens are apart.
#[test]
fn theorem_2_for_one_token() {
    assert_eq!(lemma_1_bound(1.0, 5.0), 0.0);
    assert!(lemma_1(&[0.0], &[5.0], 5.0).unwrap().holds());
    // The output is t + w t with |w t| <= epsilon / 4, so the gap of epsilon shrinks by half at most.
    let attention = line::<f64>(AttentionKind::Softmax, 1.0, 0.25);
    let output = |t: i32| attention.apply(&multiples(&[t], &[1])).unwrap().data[0];
    assert_eq!((output(1), output(-1)), (1.25, -1.25));
}

/// (48): with all d entries of column k equal to `2 k r_max` its norm is `2 k r_max sqrt(d)`, which leaves the claimed
/// ball of radius `(2 n + 1) r_max`.
#[test]
fn corollary_2_columns_leave_the_ball() {
    let (d, n, r_max) = (4, 2.0, 1.0);
    let norm = separation(d, &vec![2.0 * n * r_max; d]).r_max;
    assert_eq!((norm, (2.0 * n + 1.0) * r_max), (8.0, 5.0));
}

/// (48) at d = 1: tokens 1 and -1 are separated with `r_max = 1.001` and `epsilon = 1.9`, but 1 at place 1 and -1 at
/// place 2 are only 0.002 apart.
#[test]
fn corollary_2_places_undo_the_separation() {
    let (r_max, epsilon) = (1.001, 1.9);
    let tokens = separation(1, &[1.0, -1.0]);
    assert!(tokens.r_max < r_max && tokens.epsilon > epsilon);
    let places = [1.0, 2.0].map(|k| 2.0 * k * r_max);
    let with_places: Vec<f64> = places.iter().flat_map(|e| [1.0 + e, -1.0 + e]).collect();
    let gap = separation(1, &with_places).epsilon;
    assert!((gap - 0.002).abs() < 1e-12, "{gap}");
}

/// Beside Remark 2: without duplicates a vocabulary V has only |V| 2^(|V|-1) contexts.
#[test]
fn remark_2_contexts_are_few() {
    for size in 1..=6_u32 {
        let sets = (1..1_u32 << size).map(|set| (0..size).filter(|x| set >> x & 1 == 1).collect::<Vec<u32>>());
        let sequences: Vec<Vec<u32>> = sets.collect();
        let mut offsets = vec![0];
        for sequence in &sequences {
            offsets.push(offsets[offsets.len() - 1] + sequence.len());
        }
        let contexts = Contexts::new(&sequences.concat(), &offsets, &Mask::None, false);
        assert_eq!(contexts.count, (size << (size - 1)) as usize);
    }
}

/// Hidden units `w . h + b` with their weights in the one output coordinate that is not 0, the skip left out.
fn units(units: &[(&[f64], f64, f64)], h: &[f64]) -> f64 {
    let d = h.len();
    let block = FeedForward {
        w1: Matrix::new(units.len(), d, units.iter().flat_map(|u| u.0).copied().collect()),
        b1: units.iter().map(|u| u.1).collect(),
        w2: Matrix::from_fn(d, units.len(), |i, j| if i == 0 { units[j].2 } else { 0.0 }),
        b2: vec![0.0; d],
    };
    block.apply_token(h)[0] - h[0]
}

/// (67): a bump needs the factor 2 on its middle unit; without it the sum grows like its argument.
#[test]
fn equation_67_needs_a_factor_2() {
    let bump = |middle: f64, x: f64| units(&[(&[1.0], 1.0, 1.0), (&[1.0], 0.0, -middle), (&[1.0], -1.0, 1.0)], &[x]);
    assert_eq!([-1.0, 0.0, 1.0, 1000.0].map(|x| bump(2.0, x)), [0.0, 1.0, 0.0, 0.0]);
    assert_eq!([-1.0, 0.0, 1.0, 1000.0].map(|x| bump(1.0, x)), [0.0, 1.0, 1.0, 1000.0]);
}

/// (68): the sum of bumps in each coordinate is not a bump in all of them: it is 1 at (0, 1000), far from its center.
#[test]
fn a_sum_of_bumps_is_no_bump() {
    let (x, y): (&[f64], &[f64]) = (&[1.0, 0.0], &[0.0, 1.0]);
    let sum = |h: &[f64]| {
        let bump = |w| [(w, 1.0, 1.0), (w, 0.0, -2.0), (w, -1.0, 1.0)];
        units(&[bump(x), bump(y)].concat(), h)
    };
    assert_eq!([sum(&[0.0, 0.0]), sum(&[0.0, 1000.0]), sum(&[1000.0, 1000.0])], [2.0, 1.0, 0.0]);
}

/// (60) adds up a penalty over the tokens inside a feed-forward block, which sees one token at a time: what it makes of token
/// 1 does not change with token 2.
#[test]
fn equation_60_asks_for_other_tokens() {
    let block = FeedForward {
        w1: Matrix::new(2, 1, vec![1.0, -1.0]),
        b1: vec![-1.0, 0.0],
        w2: Matrix::new(1, 2, vec![-1000.0, -1000.0]),
        b2: vec![0.0],
    };
    let inside = block.apply(&Matrix::new(2, 1, vec![0.5, 0.5]));
    let outside = block.apply(&Matrix::new(2, 1, vec![0.5, 1.5]));
    assert_eq!((inside.data[0], outside.data[0], outside.data[1]), (0.5, 0.5, 1.5 - 500.0));
}

/// Beside Appendix C: a causal mask does not reveal order by itself. The last token of (1, 2, 3) and (2, 1, 3) sees the same multiset.
#[test]
fn causal_masks_hide_the_order_of_the_past() {
    let mut attention = line::<f64>(AttentionKind::Softmax, 0.5, 1.0);
    attention.mask = Mask::Causal;
    let output = |a: &[i32]| attention.apply(&multiples(a, &[1])).unwrap().data[2];
    assert_eq!(output(&[1, 2, 3]), output(&[2, 1, 3]));
}

/// (48), run: the smallest token that leaves the claimed ball has d = 2 and one place.
#[test]
fn corollary_2_smallest_token_outside_the_ball() {
    let found = equation_48_radius().unwrap();
    assert_eq!((found.token.len(), found.n), (2, 1));
    assert!(found.norm > 1.1 * found.claimed, "{found:?}");
}

/// The closest that tokens with entries -1, 0, 1 come under the printed positions: closer than epsilon up to d = 3, never at 4.
#[test]
fn corollary_2_smallest_separation_undone() {
    let share = |d: usize| equation_48_separation(d).map(|found| found.distance / found.epsilon);
    let found = equation_48_separation(1).unwrap();
    assert_eq!(found.tokens, [vec![1.0], vec![-1.0]]);
    assert!(found.distance < 0.002 && found.epsilon > 1.99, "{found:?}");
    assert!((share(2).unwrap() - (2_f64.sqrt() - 1.0)).abs() < 0.01 && share(3).unwrap() < 0.75);
    assert_eq!(share(4), None);
}

/// (42) fails for three small numbers, where (8) holds.
#[test]
fn equation_42_does_not_scale() {
    let found = equation_42();
    assert!(found.log2_ids.hi() < found.log2_42 && found.log2_ids.lo() > found.log2_8, "{found:?}");
    assert_eq!((found.tokens, found.power), ([-4, -3, 4], 433));
    assert!((found.log2_42 + 6371.6394).abs() < 1e-3 && (found.log2_8 + 7233.0544).abs() < 1e-3, "{found:?}");
    // With |u . u'| exactly as in (29): little is missing.
    assert!((found.log2_ids.center() + 6371.7653).abs() < 1e-3 && found.log2_ids.width() < 1e-6, "{found:?}");
}

/// (47) holds for those, and fails for smaller ones: for the proof's weights, then for every map.
#[test]
fn equation_47_does_not_scale() {
    assert!(equation_42().log2_ids.lo() > equation_42().log2_47);
    let [weights, maps] = equation_47();
    assert!(weights.log2_ids.hi() < weights.log2_47 && weights.log2_diameter > weights.log2_47, "{weights:?}");
    assert!(maps.log2_diameter < maps.log2_47, "{maps:?}");
    assert_eq!((weights.power, maps.power), (862, 6804));
    assert!((weights.log2_47 + 6800.5257).abs() < 1e-3, "{weights:?}");
    assert!((weights.log2_ids.center() + 6800.7653).abs() < 1e-3, "{weights:?}");
}

/// (8) is (42) times `8 epsilon r_min`, and (47) times `2 epsilon log n`.
#[test]
fn equations_42_and_47_against_8() {
    let s = Separation { r_min: 0.3, r_max: 1.7, epsilon: 0.2 };
    let log2_8 = Guarantee::new(5, 7, 3, &s).unwrap().log2_delta;
    let off = |log2: f64, factor: f64| (log2_8 - log2 - factor.log2()).abs() < 1e-9 * log2_8.abs();
    assert!(off(log2_42(5, 7, 3, &s), 8.0 * 0.2 * 0.3));
    assert!(off(log2_47(5, 7, 3, &s), 2.0 * 0.2 * 7_f64.ln()));
}
