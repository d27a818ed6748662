//! XlaSort, XlaKeyValueSort: rows in rising order.

use crate::prelude::*;
use ferroflow_op_kit::parallel::for_rows;
use std::cmp::Ordering;

/// XLA's order of all numbers: minus zero comes before zero, NaN with its sign at either end.
fn total_order<T: Real>(a: &T, b: &T) -> Ordering {
    match a.partial_cmp(b) {
        Some(order) if order != Ordering::Equal => order,
        _ => a.to_f64().total_cmp(&b.to_f64()),
    }
}

/// The length of the rows that are sorted.
fn row_length(t: &Tensor) -> Result<usize> {
    ensure!(t.rank() > 0, InvalidArgument, "a scalar cannot be sorted");
    Ok(t.shape()[t.rank() - 1])
}

fn sort<T: Real>(ctx: &mut Ctx<'_>) -> Result<()> {
    let mut x = ctx.take_or_copy(0)?;
    let len = row_length(&x)?;
    if x.elements() > 0 {
        for_rows(x.as_mut_slice::<T>()?, len, len * 16, |_, rows| {
            rows.chunks_exact_mut(len).for_each(|row| row.sort_by(total_order));
        });
    }
    ctx.set(0, x)
}

/// The elements of a tensor in another order.
fn moved<W: Movable>(t: &Tensor, order: &[usize]) -> Result<Tensor> {
    let mut out = Tensor::zeros(t.dtype(), t.shape().clone())?;
    let from = W::of(t)?;
    W::of_mut(&mut out)?.iter_mut().zip(order).for_each(|(to, &at)| to.clone_from(&from[at]));
    Ok(out)
}

/// Sorts keys, and values of any dtype along with them.
struct KeyValueSort<K> {
    move_values: fn(&Tensor, &[usize]) -> Result<Tensor>,
    marker: std::marker::PhantomData<K>,
}

impl<K: Real> KeyValueSort<K> {
    fn new(init: &KernelInit<'_>) -> Result<KeyValueSort<K>> {
        let dtype = init.dtype("V")?;
        let move_values = match dtype.size() {
            Some(1) => moved::<u8>,
            Some(2) => moved::<u16>,
            Some(4) => moved::<u32>,
            Some(8) => moved::<u64>,
            Some(16) => moved::<[u64; 2]>,
            _ => return Err(unsupported(init, "V", dtype)),
        };
        Ok(KeyValueSort { move_values, marker: std::marker::PhantomData })
    }
}

impl<K: Real> Kernel for KeyValueSort<K> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (keys, values) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            keys.shape() == values.shape(),
            InvalidArgument,
            "keys and values must have the same shape, got {} and {}",
            keys.shape(),
            values.shape()
        );
        let (len, data) = (row_length(keys)?, keys.as_slice::<K>()?);
        let mut order: Vec<usize> = (0..data.len()).collect();
        for_rows(&mut order, len, len * 32, |_, rows| {
            let compare = |a: &usize, b: &usize| total_order(&data[*a], &data[*b]);
            rows.chunks_exact_mut(len).for_each(|row| row.sort_by(compare));
        });
        let mut sorted = Tensor::zeros(keys.dtype(), keys.shape().clone())?;
        let to = sorted.as_mut_slice::<K>()?;
        to.iter_mut().zip(&order).for_each(|(to, &at)| *to = data[at]);
        let values = (self.move_values)(values, &order)?;
        ctx.set(0, sorted)?;
        ctx.set(1, values)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaSort")
        .work(work::any)
        .doc("Rows in rising order.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .expensive()
        .shape(shape::same_as_input)
        .cpu(per_dtype!(REAL, T => sort::<T>));
    c.op("XlaKeyValueSort")
        .doc("Rows of keys in rising order, and values moved along with them.")
        .input("keys: K")
        .input("values: V")
        .output("sorted_keys: K")
        .output("sorted_values: V")
        .attr("K: realnumbertype")
        .attr("V: type")
        .expensive()
        .shape(shape::like_inputs)
        .cpu(per_dtype!(REAL, "K", init, K => KeyValueSort::<K>::new(init)?));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn every_number_has_its_place() {
        let got = check("XlaSort")
            .input(Tensor::vector(&[f32::NAN, 0.0, f32::NEG_INFINITY, -0.0, 2.0, -f32::NAN]))
            .run()
            .unwrap();
        let got = got[0].as_slice::<f32>().unwrap();
        assert!(got[0].is_nan() && got[5].is_nan());
        assert_eq!(got[1], f32::NEG_INFINITY);
        assert_eq!(got[2..5].iter().map(|x| x.to_bits()).collect::<Vec<_>>(), {
            [-0f32, 0.0, 2.0].map(f32::to_bits)
        });
        check("XlaSort").input(Tensor::scalar(1f32)).fails(Code::InvalidArgument, "a scalar");
    }

    #[test]
    fn values_move_with_their_keys() {
        let got = check("XlaKeyValueSort")
            .input(Tensor::from_slice([2, 3], &[3i32, 1, 2, -5, 9, -5]).unwrap())
            .input(Tensor::from_slice([2, 3], &[0.5f64, 1.5, 2.5, 3.5, 4.5, 5.5]).unwrap())
            .run()
            .unwrap();
        assert_eq!(got[0].as_slice::<i32>().unwrap(), [1, 2, 3, -5, -5, 9]);
        assert_eq!(got[1].as_slice::<f64>().unwrap(), [1.5, 2.5, 0.5, 3.5, 5.5, 4.5]);
    }
}
