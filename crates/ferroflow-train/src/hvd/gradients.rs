//! Gradients of the communicating ops: they travel the way of the values in reverse.
//!
//! As in Horovod, the gradient of a reduction is reduced by the same operation, and those of the
//! other ops are averages over the ranks.

use super::Reduction;
use ferroflow_core::{DType, Result, bail};
use ferroflow_graph::{Attrs, GradientScope, Term};

type Gradients<'g> = Result<Vec<Term<'g>>>;

/// The op and the process set of a node.
fn reduction(g: &GradientScope<'_>) -> Result<Reduction> {
    let by = Reduction::from_number(g.attrs().int("reduce_op")?)?;
    match by {
        Reduction::Average | Reduction::Sum | Reduction::Adasum => Ok(by),
        other => {
            bail!(Unimplemented, "the gradient of {other:?} over ranks, of node {:?}", g.name())
        }
    }
}

fn reduced<'g>(g: &GradientScope<'g>, x: Term<'g>, by: Reduction) -> Term<'g> {
    let attrs = g.same_attrs(&["process_set"]).with("reduce_op", by as i64);
    g.call_with("HorovodAllreduce", &[x], attrs)
}

pub(super) fn all_reduce<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Gradients<'g> {
    reduction(g)?;
    let attrs = g.same_attrs(&["reduce_op", "process_set"]);
    Ok(vec![g.call_with("HorovodAllreduce", &[dy[0]], attrs)])
}

/// All ranks used the root's value, so the root gets the mean and the other ranks get zero.
pub(super) fn broadcast<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Gradients<'g> {
    let all = reduced(g, dy[0], Reduction::Average);
    let root = g.int(g.attrs().int("root_rank")?);
    let is_root = g.call("HorovodRank", &[]).with("Equal", root);
    Ok(vec![all * is_root.cast(all.dtype())])
}

/// Sends each rank the gradients of its rows from all ranks, and averages them.
pub(super) fn all_gather<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Gradients<'g> {
    let shape = g.input(0).shape();
    let attrs = || g.same_attrs(&["process_set"]);
    let rows = shape.element(0).expand_dims(0);
    let rows = g.call_with("HorovodAllgather", &[rows], attrs());
    let sent = g.calls_with("HorovodAlltoall", &[dy[0], rows], attrs());
    let of_ranks = sent[0].reshape(g.concat(&[rows.size().expand_dims(0), shape], 0));
    let total = of_ranks.sum(g.int(0), false);
    Ok(vec![total / rows.size().cast(total.dtype())])
}

pub(super) fn reduce_scatter<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Gradients<'g> {
    let by = reduction(g)?;
    let attrs = g.same_attrs(&["process_set"]);
    let all = g.call_with("HorovodAllgather", &[dy[0]], attrs);
    Ok(vec![match by {
        Reduction::Average => all,
        _ => {
            let ranks = reduced(g, g.number(1.0, DType::Float), Reduction::Sum);
            all * ranks.cast(all.dtype())
        }
    }])
}

/// Sends the received rows' gradients back.
pub(super) fn all_to_all<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Gradients<'g> {
    let attrs: Attrs = g.same_attrs(&["process_set"]);
    let back = g.calls_with("HorovodAlltoall", &[dy[0], g.output(1)], attrs);
    Ok(vec![back[0], g.none()])
}
