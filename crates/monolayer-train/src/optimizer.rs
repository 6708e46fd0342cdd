//! Adam, AdamW and SGD with momentum, as PyTorch defines them.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use monolayer::arithmetic::kernels::Real;
use serde::{Deserialize, Serialize};

use crate::loss::negligible;

/// How parameters follow their gradients g. With momentum m and mean square v, both 0 at first, at step t:
///
/// - Adam: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, p -= rate m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon);
/// - AdamW: the same after p *= 1 - rate decay;
/// - SGD: m = momentum m + g, p -= rate m.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Optimizer {
    /// Adam, and AdamW where `weight_decay` is not 0.
    Adam {
        /// How much of the momentum a step keeps.
        beta1: f64,
        /// How much of the mean square a step keeps.
        beta2: f64,
        /// Added to the root of the mean square; positive.
        epsilon: f64,
        /// What a step takes off every parameter, times the rate.
        weight_decay: f64,
    },
    /// SGD with momentum.
    Sgd {
        /// How much of the momentum a step keeps.
        momentum: f64,
    },
}

impl Default for Optimizer {
    fn default() -> Self {
        Self::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }
    }
}

/// The numbers of one step, the same for all parameters: p = keep p - size m / (root sqrt(v) + epsilon).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update<R> {
    keep: R,
    size: R,
    beta1: R,
    rest1: R,
    beta2: R,
    rest2: R,
    root: R,
    epsilon: R,
    adam: bool,
}

impl Optimizer {
    /// Whether a mean square is kept beside the momentum.
    pub(crate) fn has_second(&self) -> bool {
        matches!(self, Self::Adam { .. })
    }

    /// What a step, counted from 1, does.
    pub(crate) fn update<R: Real>(&self, step: u64, rate: f64) -> Update<R> {
        let number = R::from_f64;
        match *self {
            Self::Adam { beta1, beta2, epsilon, weight_decay } => Update {
                keep: number(1.0 - rate * weight_decay),
                size: number(rate / (1.0 - beta1.powf(step as f64))),
                beta1: number(beta1),
                rest1: number(1.0 - beta1),
                beta2: number(beta2),
                rest2: number(1.0 - beta2),
                root: number(1.0 / (1.0 - beta2.powf(step as f64)).sqrt()),
                epsilon: number(epsilon),
                adam: true,
            },
            Self::Sgd { momentum } => Update {
                keep: R::ONE,
                size: number(rate),
                beta1: number(momentum),
                rest1: R::ONE,
                beta2: R::ZERO,
                rest2: R::ZERO,
                root: R::ZERO,
                epsilon: R::ONE,
                adam: false,
            },
        }
    }
}

impl<R: Real> Update<R> {
    /// One step of some parameters; gradients are multiplied by `scale` first. `second` is empty for SGD. To be inlined into a
    /// vectorized loop.
    #[inline(always)]
    pub(crate) fn apply(&self, scale: R, parameters: &mut [R], first: &mut [R], second: &mut [R], gradient: &[R]) {
        let u = *self;
        if !u.adam {
            for ((p, m), &g) in parameters.iter_mut().zip(first).zip(gradient) {
                *m = u.beta1 * *m + g * scale;
                *p = *p - u.size * *m;
            }
            return;
        }
        // Squares below the smallest normal number would be slow, and change nothing beside epsilon.
        let least = negligible::<R>();
        for (((p, m), v), &g) in parameters.iter_mut().zip(first).zip(second).zip(gradient) {
            let g = g * scale;
            let g = if g < least && g > R::ZERO - least { R::ZERO } else { g };
            *m = flush(u.beta1 * *m + u.rest1 * g, least);
            *v = flush(u.beta2 * *v + u.rest2 * g * g, least * least);
            *p = *p * u.keep - u.size * *m / (v.square_root() * u.root + u.epsilon);
        }
    }
}

/// 0 for what is smaller than `least`.
#[inline(always)]
pub(crate) fn flush<R: Real>(x: R, least: R) -> R {
    if x < least && x > R::ZERO - least { R::ZERO } else { x }
}
