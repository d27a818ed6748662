//! The operations of XLA, TensorFlow's compiler, as ops. Programs that JAX exports to TensorFlow
//! consist of them. The ones that call functions are in `ferroflow-ops-state`.

pub mod convolution;
mod dot;
mod gather;
mod identities;
mod numbers;
mod pad;
mod slice;
mod sort;

use crate::prelude::*;
use ferroflow_op_kit::protobuf::fields;

pub(crate) fn register(c: &mut Catalog) {
    convolution::register(c);
    dot::register(c);
    gather::register(c);
    identities::register(c);
    numbers::register(c);
    pad::register(c);
    slice::register(c);
    sort::register(c);
}

/// The numbers in a message of dimension numbers: `lists[i]` are those of field `i`. A message
/// that is malformed, or whose numbers are no dimensions, is an error.
fn dimension_numbers<const N: usize>(attrs: &Attrs) -> Result<[Vec<usize>; N]> {
    let message = attrs.bytes("dimension_numbers")?;
    let malformed = || err!(InvalidArgument, "dimension_numbers is not a valid message");
    let mut lists = [const { Vec::new() }; N];
    for (field, value) in fields(&message).ok_or_else(malformed)? {
        if let Some(list) = lists.get_mut(field as usize) {
            // The rank of a tensor is at most 254.
            value.varints(|x| list.push(Ord::min(x, 255) as usize)).ok_or_else(malformed)?;
        }
    }
    Ok(lists)
}

/// Checks that dimensions exist and occur once.
fn check_dimensions(name: &str, dims: &[usize], rank: usize) -> Result<()> {
    for (i, &d) in dims.iter().enumerate() {
        ensure!(d < rank, InvalidArgument, "{name}: there is no dimension {d} of {rank}");
        ensure!(!dims[..i].contains(&d), InvalidArgument, "{name}: dimension {d} occurs twice");
    }
    Ok(())
}

/// Input `i`, a vector of `len` integers.
fn integers(ctx: &Ctx<'_>, i: usize, name: &str, len: usize) -> Result<Vec<i64>> {
    let t = ctx.input(i)?;
    ensure!(
        t.rank() == 1 && t.elements() == len,
        InvalidArgument,
        "{name} must be a vector of {len} elements, got shape {}",
        t.shape()
    );
    t.to_indices()
}

/// Calls `each` with the index of every element of a tensor of these dimensions, in order.
fn for_each_index(dims: &[usize], mut each: impl FnMut(&[usize])) {
    if dims.contains(&0) {
        return;
    }
    let mut index = vec![0; dims.len()];
    loop {
        each(&index);
        let mut d = dims.len();
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            index[d] += 1;
            if index[d] < dims[d] {
                break;
            }
            index[d] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check_recorded;

    #[test]
    fn recorded_calls_come_out_as_tensorflow_has_them() {
        check_recorded(include_str!("../tests/data/recorded/xla.txt"));
    }
}
