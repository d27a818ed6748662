//! Attention.

use crate::layers::Dense;
use crate::ops::known_dims;
use crate::output::Output;
use crate::variable_scope::Reuse;
use ferroflow_core::ensure;

/// Scaled dot-product attention over [.., time, width]. `mask` is true where a query may
/// attend.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::layers::attention;
/// let x = g.placeholder::<f32>("x", [2, 5, 8]);
/// let y = attention(&x, &x, &x, None);
/// assert_eq!(y.shape().to_string(), "[2,5,8]");
/// ```
#[track_caller]
pub fn attention(
    queries: &Output,
    keys: &Output,
    values: &Output,
    mask: Option<&Output>,
) -> Output {
    let g = queries.graph();
    g.name_scope("attention", |_| {
        let products = queries.matmul_with(keys, false, true);
        let known = queries.shape().dims().and_then(|d| d.last().copied().flatten());
        let mut scores = match known {
            Some(width) => products * (1.0 / (width.max(1) as f32).sqrt()),
            None => products * queries.shape_op().at(-1).cast(queries.dtype()).rsqrt(),
        };
        if let Some(mask) = mask {
            scores = mask.select(&scores, scores.zeros_like() - 1e9);
        }
        scores.softmax().matmul(values)
    })
}

/// Attention in `heads` parts of the width of `x`, [batch, time, width] (Vaswani et al. 2017).
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::layers::multi_head_attention;
/// let x = g.placeholder::<f32>("x", [2, 5, 8]);
/// let y = multi_head_attention("attention", &x, 4, None);
/// assert!(g.check().is_ok());
/// ```
#[track_caller]
pub fn multi_head_attention(name: &str, x: &Output, heads: usize, mask: Option<&Output>) -> Output {
    let g = x.graph();
    let split = known_dims(x).or_else(|_| match x.shape().dims() {
        Some([_, None, Some(width)]) => Ok(vec![usize::MAX, *width]),
        _ => known_dims(x),
    });
    let width = split.and_then(|dims| {
        let width = dims.last().copied().unwrap_or(0);
        ensure!(
            dims.len() == 2 && heads > 0 && width % heads == 0,
            InvalidArgument,
            "a width of {width} does not make {heads} heads"
        );
        Ok(width)
    });
    let Some(width) = g.or_fail(width) else { return Output::new(g, None) };
    g.variable_scope(name, Reuse::No, || {
        let (heads_n, each) = (heads as i32, (width / heads) as i32);
        let time = x.dim(1);
        let shape =
            g.pack(&[g.constant(-1), time.clone(), g.constant(heads_n), g.constant(each)], 0);
        let project = |part: &str| {
            let y = Dense::new(part, width).apply(x);
            y.reshape(&shape).transpose(&[0, 2, 1, 3])
        };
        let (q, k, v) = (project("query"), project("key"), project("value"));
        let y = attention(&q, &k, &v, mask).transpose(&[0, 2, 1, 3]);
        let y = y.reshape(g.pack(&[g.constant(-1), time, g.constant(width as i32)], 0));
        y.set_shape(x.shape());
        Dense::new("output", width).apply(&y)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{floats, graph, session};
    use ferroflow_core::{DType, PartialShape, Tensor};

    #[test]
    fn scores_are_scaled_by_a_width_that_only_the_step_knows() {
        let g = graph();
        let known = g.placeholder::<f32>("known", [1, 2, 4]);
        let unknown = g.placeholder_of(DType::Float, "unknown", PartialShape::of_rank(3));
        let outputs = [&known, &unknown].map(|x| attention(x, x, x, None));
        let s = session(&g).unwrap();
        let x = Tensor::from_slice([1, 2, 4], &[1f32, 2., 0., 1., 3., 0., 1., 0.]).unwrap();
        let values = s.run_fed([(&known, &x), (&unknown, &x)], &outputs).unwrap();
        let (a, b) = (floats(&values[0]), floats(&values[1]));
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6), "{a:?} {b:?}");
        // The first row looks at itself with weight 1 / (1 + exp((3 - 6) / 2)).
        let weight = 1.0 / (1.0 + (-1.5f32).exp());
        assert!((a[1] - 2.0 * weight).abs() < 1e-6, "{a:?}");
    }
}
