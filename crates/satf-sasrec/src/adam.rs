//! Adam.

use rayon::prelude::*;

/// Decay of the first and of the second moment, as in the authors' code.
const DECAYS: (f32, f32) = (0.9, 0.98);
/// Added to the root of the second moment.
const EPSILON: f32 = 1e-8;
/// Values of one piece of parallel work.
const VALUES: usize = 16_384;

/// Moments of the gradient, one of each for every parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adam {
    pub(crate) first: Vec<f32>,
    pub(crate) second: Vec<f32>,
    /// Steps done.
    pub(crate) steps: u64,
}

impl Adam {
    /// Before the first step.
    pub(crate) fn new(len: usize) -> Self {
        Adam { first: vec![0.0; len], second: vec![0.0; len], steps: 0 }
    }

    /// One step: with $m \leftarrow \beta_1 m + (1 - \beta_1) g$ and $v \leftarrow \beta_2 v + (1 - \beta_2) g^2$, parameters move by
    /// $-\eta\, \hat m / (\sqrt{\hat v} + \epsilon)$, where $\hat m = m / (1 - \beta_1^t)$ and $\hat v = v / (1 - \beta_2^t)$.
    ///
    /// The gradient is multiplied with `scale` first. One pass over four arrays.
    pub(crate) fn step(&mut self, parameters: &mut [f32], gradient: &[f32], scale: f32, learning_rate: f64) {
        self.steps += 1;
        let steps = i32::try_from(self.steps).unwrap_or(i32::MAX);
        let correction = |decay: f32| 1.0 - f64::from(decay).powi(steps);
        let rate = (learning_rate / correction(DECAYS.0)) as f32;
        let second_correction = (1.0 / correction(DECAYS.1)) as f32;
        let (of_first, of_second) = (1.0 - DECAYS.0, 1.0 - DECAYS.1);
        parameters
            .par_chunks_mut(VALUES)
            .zip(gradient.par_chunks(VALUES))
            .zip(self.first.par_chunks_mut(VALUES))
            .zip(self.second.par_chunks_mut(VALUES))
            .for_each(|(((parameters, gradient), first), second)| {
                pulp::Arch::new().dispatch(
                    #[inline(always)]
                    || {
                        let moments = first.iter_mut().zip(second);
                        for ((parameter, &gradient), (first, second)) in
                            parameters.iter_mut().zip(gradient).zip(moments)
                        {
                            let gradient = gradient * scale;
                            *first = DECAYS.0 * *first + of_first * gradient;
                            *second = DECAYS.1 * *second + of_second * gradient * gradient;
                            *parameter -= rate * *first / ((*second * second_correction).sqrt() + EPSILON);
                        }
                    },
                );
            });
    }
}

/// The length of a gradient, summed in double precision piece by piece.
pub(crate) fn norm(gradient: &[f32]) -> f64 {
    let pieces: Vec<f64> = gradient
        .par_chunks(VALUES)
        .map(|piece| piece.iter().map(|&value| f64::from(value) * f64::from(value)).sum())
        .collect();
    pieces.into_iter().sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_equal_those_in_double_precision_written_out() {
        let len = 3 * VALUES + 5;
        let gradient_at = |step: u64, at: usize| ((at as f64 + 1.0) * (step as f64 + 0.7)).sin();
        let mut parameters = vec![1f32; len];
        let mut adam = Adam::new(len);
        for step in 0..5 {
            let gradient: Vec<f32> = (0..len).map(|at| gradient_at(step, at) as f32).collect();
            adam.step(&mut parameters, &gradient, 0.5, 0.1);
        }
        for at in [0, 1, VALUES - 1, VALUES, len - 1] {
            let (mut x, mut m, mut v) = (1.0, 0.0, 0.0);
            for step in 0..5 {
                let g = 0.5 * gradient_at(step, at);
                m = 0.9 * m + 0.1 * g;
                v = 0.98 * v + 0.02 * g * g;
                let t = step as i32 + 1;
                x -= 0.1 * (m / (1.0 - 0.9f64.powi(t))) / ((v / (1.0 - 0.98f64.powi(t))).sqrt() + 1e-8);
            }
            assert!((f64::from(parameters[at]) - x).abs() < 1e-5, "{at}: {} is not {x}", parameters[at]);
        }
    }

    #[test]
    fn a_norm_is_a_norm() {
        let gradient = vec![0.5f32; 40_000];
        assert!((norm(&gradient) - 100.0).abs() < 1e-9);
    }
}
