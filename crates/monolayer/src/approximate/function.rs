//! Functions to approximate (Proposition 1): what is known of a map from sequences to sequences on the unit cube.

use crate::arithmetic::{Interval, rounding};

/// A map f from sequences of n tokens in `[0, 1]^d` to n vectors of d entries, for fixed n and d.
///
/// Sequences and outputs are row-major `[n, d]`.
///
/// ```
/// use monolayer::{Expression, Function};
///
/// let f = Expression::parse("x1; x2", 2)?.at_length(3)?;
/// assert_eq!((f.dim(), f.length(), f.is_equivariant()), (2, 3, true));
/// # Ok::<(), monolayer::Error>(())
/// ```
pub trait Function: Sync {
    /// Coordinates of a token, and of an output: d.
    fn dim(&self) -> usize;

    /// Tokens of a sequence: n.
    fn length(&self) -> usize;

    /// Whether permuting the tokens permutes the outputs.
    fn is_equivariant(&self) -> bool;

    /// The outputs of all tokens, in floating-point arithmetic.
    fn values(&self, sequence: &[f64], outputs: &mut [f64]);

    /// What one output coordinate of one token is over a box of sequences, where the function is defined.
    fn enclose(&self, sequence: &[Interval], token: usize, output: usize) -> Enclosure;

    /// Several enclosures, in the order they are asked for: one call for all, where a call is what costs.
    fn enclose_all(&self, asked: &[Asked]) -> Vec<Enclosure> {
        asked.iter().map(|asked| self.enclose(asked.sides, asked.token, asked.output)).collect()
    }

    /// How many cells are looked at together, so that [`Self::enclose_all`] is asked for many boxes at once. Results do not
    /// depend on it.
    fn together(&self) -> usize {
        1
    }

    /// What a certificate calls it: an expression that a checker can read, or words for people.
    fn description(&self) -> String;

    /// What the enclosures take for granted, for the certificate: nothing unless a user vouches for it.
    fn assumption(&self) -> Option<String> {
        None
    }
}

/// A box of sequences, and the output token and coordinate that are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The box, row-major `[n, d]`.
    pub sides: &'a [Interval],
    /// The output token.
    pub token: usize,
    /// Its coordinate.
    pub output: usize,
}

/// One output over a box: its range, and how it changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Enclosure {
    /// Contains every value in the box.
    pub range: Interval,
    /// Contains the value at the center of the box.
    pub center: Interval,
    /// For each entry of the sequence, slopes s with f(x) in f(c) + sum of s_i (x_i - c_i) for all x of the box, c its
    /// center; the whole line where the function may jump.
    pub slopes: Vec<Interval>,
    /// A constant with |f(x) - f(c)| <= constant * max |x_i - c_i|, where that says more than the slopes.
    pub lipschitz: Option<f64>,
}

impl Enclosure {
    /// From the value at the center of a box, as far as a Lipschitz constant in the sup norm allows.
    pub fn lipschitz(sides: &[Interval], at_center: f64, constant: f64) -> Self {
        let radius = |x: &Interval| (*x - Interval::point(x.center())).magnitude();
        let farthest = sides.iter().map(radius).fold(0.0, f64::max);
        let change = rounding::mul_up(constant, farthest);
        let center = Interval::point(at_center);
        Self {
            range: center + Interval::new(-change, change),
            center,
            slopes: vec![Interval::WHOLE; sides.len()],
            lipschitz: Some(constant),
        }
    }
}

/// The values of a [`Lipschitz`] function: a closure from a sequence to the outputs of all tokens, or what takes many
/// sequences in one call.
pub trait Values: Sync {
    /// The outputs of all tokens of a sequence, or of several one after another where [`Self::together`] is above 1.
    fn values(&self, sequences: &[f64], outputs: &mut [f64]);

    /// [`Function::together`].
    fn together(&self) -> usize {
        1
    }
}

impl<F: Fn(&[f64], &mut [f64]) + Sync> Values for F {
    fn values(&self, sequence: &[f64], outputs: &mut [f64]) {
        self(sequence, outputs);
    }
}

/// A closure with a Lipschitz constant that its author vouches for.
///
/// ```
/// use monolayer::{Approximator, Lipschitz};
///
/// let smallest = |x: &[f64], y: &mut [f64]| y.fill(x.iter().copied().fold(1.0, f64::min));
/// let f = Lipschitz { name: "the smallest".into(), dim: 1, length: 2, equivariant: true, constant: 1.0, f: smallest };
/// assert!(Approximator::new().compile(&f, 8)?.certified() < 0.2);
/// # Ok::<(), monolayer::Error>(())
/// ```
pub struct Lipschitz<F> {
    /// What a certificate calls it.
    pub name: String,
    /// Coordinates of a token.
    pub dim: usize,
    /// Tokens of a sequence.
    pub length: usize,
    /// Whether permuting the tokens permutes the outputs.
    pub equivariant: bool,
    /// |f(x) - f(y)| <= constant * |x - y|, both in the sup norm over all entries.
    pub constant: f64,
    /// From a sequence to the outputs of all tokens.
    pub f: F,
}

impl<F: Values> Function for Lipschitz<F> {
    fn description(&self) -> String {
        self.name.clone()
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn length(&self) -> usize {
        self.length
    }

    fn is_equivariant(&self) -> bool {
        self.equivariant
    }

    fn values(&self, sequence: &[f64], outputs: &mut [f64]) {
        self.f.values(sequence, outputs);
    }

    fn enclose(&self, sequence: &[Interval], token: usize, output: usize) -> Enclosure {
        self.enclose_all(&[Asked { sides: sequence, token, output }]).remove(0)
    }

    fn enclose_all(&self, asked: &[Asked]) -> Vec<Enclosure> {
        let size = self.dim * self.length;
        let centers: Vec<f64> = asked.iter().flat_map(|asked| asked.sides.iter().map(|side| side.center())).collect();
        let mut outputs = vec![0.0; centers.len()];
        let at_once = if self.together() > 1 { centers.len() } else { size };
        if at_once > 0 {
            let calls = centers.chunks(at_once).zip(outputs.chunks_mut(at_once));
            calls.for_each(|(centers, outputs)| self.f.values(centers, outputs));
        }
        let enclose = |(asked, outputs): (&Asked, &[f64])| {
            Enclosure::lipschitz(asked.sides, outputs[asked.token * self.dim + asked.output], self.constant)
        };
        asked.iter().zip(outputs.chunks_exact(size.max(1))).map(enclose).collect()
    }

    fn together(&self) -> usize {
        self.f.together()
    }

    fn assumption(&self) -> Option<String> {
        let equivariant = if self.equivariant { ", it is equivariant" } else { "" };
        Some(format!(
            "the function is Lipschitz with constant {} in the sup norm{equivariant}, and its values are exact",
            self.constant
        ))
    }
}
