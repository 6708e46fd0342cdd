//! Datasets small enough for the direct way.

use crate::data::{Dataset, Format};

/// Four vectors in the plane, all pairs.
pub fn four() -> Dataset {
    dataset("4 vectors, all pairs", &NINE[..4], &subsets(4, 2))
}

/// Five vectors in the plane, all triples.
pub fn five() -> Dataset {
    dataset("5 vectors, all triples", &NINE[..5], &subsets(5, 3))
}

/// Nine vectors in the plane, twenty of the triples.
pub fn nine() -> Dataset {
    // A step without a common divisor with 84 reaches all vectors.
    let all = subsets(9, 3);
    let some: Vec<Vec<usize>> = (0..20).map(|i| all[i * 25 % all.len()].clone()).collect();
    dataset("9 vectors, 20 triples", &NINE, &some)
}

/// The first four are those of the smallest toy.
const NINE: [[f64; 2]; 9] = [
    [0.9, 0.4],
    [-0.7, 0.8],
    [0.2, -1.1],
    [1.3, -0.5],
    [-1.2, -0.6],
    [0.1, 1.4],
    [-1.5, 0.3],
    [1.1, 1.2],
    [-0.4, -1.6],
];

/// All sets of `k` numbers below `n`.
fn subsets(n: usize, k: usize) -> Vec<Vec<usize>> {
    let members = |set: u32| (0..n).filter(|i| set >> i & 1 == 1).collect::<Vec<_>>();
    (0..1_u32 << n).filter(|set| set.count_ones() as usize == k).map(members).collect()
}

fn dataset(name: &str, vectors: &[[f64; 2]], sequences: &[Vec<usize>]) -> Dataset {
    let line = |s: &Vec<usize>| {
        let tokens: Vec<[f64; 2]> = s.iter().map(|&i| vectors[i]).collect();
        serde_json::json!({ "tokens": tokens }).to_string()
    };
    let lines: Vec<String> = sequences.iter().map(line).collect();
    Dataset::read(name, Format::JsonLines, lines.join("\n").as_bytes()).expect("a dataset that is always the same")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Tokens;
    use crate::data::context::distinct_rows;

    #[test]
    fn sizes() {
        for (data, sequences, vocabulary) in [(four(), 6, 4), (five(), 10, 5), (nine(), 20, 9)] {
            let Tokens::Vectors { d, data: rows } = &data.tokens else { panic!("words") };
            assert_eq!((data.sequences(), distinct_rows(*d, rows).1.len()), (sequences, vocabulary));
        }
    }
}
