//! Attention.

use crate::layers::Dense;
use crate::ops::known_dims;
use crate::output::Output;
use crate::variable_scope::Reuse;
use ferroflow_core::ensure;

/// Scaled dot-product attention over [.., time, width]. `mask`, where given, is true where a query
/// may look.
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// # let g = ferroflow_train::Graph::new(catalog.into());
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
        let width = queries.shape().dims().and_then(|d| d.last().copied().flatten()).unwrap_or(1);
        let scale = 1.0 / (width.max(1) as f32).sqrt();
        let mut scores = queries.matmul_with(keys, false, true) * scale;
        if let Some(mask) = mask {
            scores = mask.select(&scores, scores.zeros_like() - 1e9);
        }
        scores.softmax().matmul(values)
    })
}

/// Attention in `heads` parts of the width of `x`, [batch, time, width] (Vaswani et al. 2017).
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// # let g = ferroflow_train::Graph::new(catalog.into());
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
