//! Contexts for which any label will do, along a line of ids.

use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::sorting;

/// A label for every context: free ones take that of a neighbor along a coordinate, so that they add no change of label.
/// Between two neighbors with different labels the change is put where there is most room for it.
pub(in crate::memorize) fn filled(rows: &Matrix<f64>, coordinate: usize, label: &[Option<u32>]) -> Vec<u32> {
    let at = |id: usize| rows.row(id)[coordinate];
    let order = sorting::order_by_key(rows.rows, at);
    let mut filled: Vec<u32> = label.iter().map(|label| label.unwrap_or(0)).collect();
    let mut fill = |places: std::ops::Range<usize>, label: u32| order[places].iter().for_each(|&id| filled[id] = label);
    let mut last: Option<(usize, u32)> = None;
    for (i, &id) in order.iter().enumerate() {
        let Some(label) = label[id] else { continue };
        let cut = last.map_or(0, |(j, _)| {
            let step = |&k: &usize| at(order[k]) - at(order[k - 1]);
            (j + 1..=i).max_by(|a, b| step(a).total_cmp(&step(b))).unwrap_or(i)
        });
        if let Some((j, before)) = last {
            fill(j + 1..cut, before);
        }
        fill(cut..i, label);
        last = Some((i, label));
    }
    if let Some((j, label)) = last {
        fill(j + 1..order.len(), label);
    }
    filled
}

/// The contexts that have a label; where there is none, one of those that do not.
pub(in crate::memorize) fn with_label(label: &[Option<u32>]) -> Vec<usize> {
    let some: Vec<usize> = (0..label.len()).filter(|&context| label[context].is_some()).collect();
    if some.is_empty() { vec![0] } else { some }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn changes(ids: &[f64], label: &[u32]) -> usize {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by(|&a, &b| ids[a].total_cmp(&ids[b]));
        order.windows(2).filter(|pair| label[pair[0]] != label[pair[1]]).count()
    }

    #[test]
    fn the_change_is_where_there_is_most_room() {
        let rows = Matrix::new(6, 1, vec![0.0, 1.0, 5.0, 6.0, 7.0, -3.0]);
        let label = [Some(4), None, None, Some(2), None, None];
        assert_eq!(filled(&rows, 0, &label), [4, 4, 2, 2, 2, 4]);
        assert_eq!(filled(&rows, 0, &[None; 6]), [0; 6]);
        assert_eq!((with_label(&label), with_label(&[None; 6])), (vec![0, 3], vec![0]));
    }

    proptest! {
        /// Labels that are given stay, and a label that is made free adds no change.
        #[test]
        fn free_contexts_change_nothing_for_others(
            ids in prop::collection::vec(-100_i32..100, 1..12),
            labels in prop::collection::vec(prop::option::of(0_u32..3), 12),
            freed in 0..12_usize,
        ) {
            let ids: Vec<f64> = ids.into_iter().map(f64::from).collect();
            let rows = Matrix::new(ids.len(), 1, ids.clone());
            let label = &labels[..ids.len()];
            let before = filled(&rows, 0, label);
            prop_assert!(label.iter().zip(&before).all(|(asked, given)| asked.is_none_or(|asked| asked == *given)));
            let mut freer = label.to_vec();
            freer[freed % ids.len()] = None;
            prop_assert!(changes(&ids, &filled(&rows, 0, &freer)) <= changes(&ids, &before));
        }
    }
}
