//! Slices of a tensor that tuples of indices name.

use super::scatter::{Access, position};
use crate::prelude::*;

/// Checks that tuples of `indices` and `updates` fit a tensor of `shape`. Returns how many
/// dimensions the tuples are over, and how many indices are in a tuple.
pub(crate) fn checked_tuples(
    shape: &Shape,
    indices: &Tensor,
    updates: &Tensor,
) -> Result<(usize, usize)> {
    // A vector of indices is one of 1-tuples.
    let (batch, depth) = match indices.shape().split_last() {
        Some((&last, batch)) if !batch.is_empty() => (batch, last),
        Some((_, _)) => (indices.shape().dims(), 1),
        None => bail!(InvalidArgument, "indices must have rank at least 1, got a scalar"),
    };
    let n = batch.len();
    ensure!(
        indices.elements() > 0 || updates.elements() == 0,
        InvalidArgument,
        "Indices and updates specified for empty output.  indices shape: {}",
        indices.shape()
    );
    let head = updates.shape().get(..n);
    ensure!(
        head == Some(batch),
        InvalidArgument,
        "Dimensions [0,{n}) of indices[shape={}] = {} must match dimensions [0,{n}) of \
         updates[shape={}] = {}",
        indices.shape(),
        batch.iter().product::<usize>(),
        updates.shape(),
        head.unwrap_or(&[]).iter().product::<usize>()
    );
    ensure!(
        depth <= shape.rank() && updates.shape()[n..] == shape[depth..],
        InvalidArgument,
        "Dimensions [{depth},{}) of input[shape={shape}] must match dimensions [{depth},{}) of \
         updates[shape={}]",
        shape.rank(),
        updates.rank(),
        updates.shape()
    );
    Ok((n, depth))
}

/// Combines the slices of `params` that `indices` name with those of `updates`.
pub(crate) fn scatter_nd<T: Clone>(
    params: &mut Tensor,
    indices: &Tensor,
    updates: &Tensor,
    access: &Access<T>,
) -> Result<()> {
    let shape = params.shape().clone();
    let (n, depth) = checked_tuples(&shape, indices, updates)?;
    let batch = &indices.shape()[..n];
    let slice: usize = shape[depth..].iter().product();
    // There may be any number of tuples without elements.
    if depth == 0 && slice == 0 {
        return Ok(());
    }
    let places = offsets(indices, batch, depth, &shape).map_err(|(at, tuple)| {
        err!(
            InvalidArgument,
            "indices{} = {tuple:?} does not index into shape {shape}",
            position(batch, at)
        )
    })?;
    if slice == 0 {
        return Ok(());
    }
    let updates = (access.of)(updates)?;
    let params = (access.of_mut)(params)?;
    for (from, update) in places.into_iter().zip(updates.chunks_exact(slice)) {
        (access.row)(&mut params[from..from + slice], update);
    }
    Ok(())
}

/// Where in a tensor of `shape` each tuple's slice begins; a tuple out of range, and its place, as
/// the error.
pub(crate) fn offsets(
    indices: &Tensor,
    batch: &[usize],
    depth: usize,
    shape: &Shape,
) -> Result<Vec<usize>, (usize, Vec<i64>)> {
    let tuples: usize = batch.iter().product();
    if depth == 0 {
        return Ok(vec![0; tuples]);
    }
    let (strides, dims) = (shape.strides(), &shape[..depth]);
    let all = indices.to_indices().map_err(|_| (0, vec![]))?;
    let mut places = Vec::with_capacity(tuples);
    for (at, tuple) in all.chunks_exact(depth).enumerate() {
        let mut place = 0;
        for ((&i, &d), &stride) in tuple.iter().zip(dims).zip(&strides) {
            match usize::try_from(i) {
                Ok(i) if i < d => place += i * stride,
                _ => return Err((at, tuple.to_vec())),
            }
        }
        places.push(place);
    }
    Ok(places)
}
