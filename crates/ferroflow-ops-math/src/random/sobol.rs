//! SobolSample: points of Sobol's low-discrepancy sequence.

use crate::prelude::*;
use ferroflow_op_kit::parallel::for_rows;

/// The direction numbers of Joe and Kuo for all dimensions after the first, as bits, the lowest of
/// a byte first. A dimension has: the degree of its polynomial (5 bits); the inner coefficients of
/// the polynomial; and its first direction numbers, as many as the degree says. Number `k` is odd
/// and has `k + 1` bits, of which the lowest is left out.
const DIRECTIONS: &[u8] = include_bytes!("sobol.bin");

/// TensorFlow's limit.
const MOST_DIMENSIONS: usize = 10_201;

/// Reads numbers of some bits.
struct Bits {
    at: usize,
}

impl Bits {
    fn take(&mut self, bits: usize) -> u32 {
        let mut x = 0;
        for i in 0..bits {
            let byte = DIRECTIONS.get(self.at / 8).copied().unwrap_or(0);
            x |= u32::from(byte >> (self.at % 8) & 1) << i;
            self.at += 1;
        }
        x
    }
}

/// The first `digits` direction numbers of each of `dim` dimensions: number `k` has `k + 1` bits.
fn direction_numbers(dim: usize, digits: usize) -> Vec<u32> {
    let mut all = vec![1; digits];
    let mut bits = Bits { at: 0 };
    for _ in 1..dim {
        let degree = bits.take(5) as usize;
        // Bit `i` is the coefficient of the number `i + 1` places before.
        let inner = bits.take(degree - 1);
        let mut numbers = Vec::with_capacity(digits.max(degree));
        for k in 0..degree {
            numbers.push(bits.take(k) << 1 | 1);
        }
        for k in degree..digits {
            let mut next = numbers[k - degree] ^ numbers[k - degree] << degree;
            for i in 1..degree {
                if inner >> (i - 1) & 1 == 1 {
                    next ^= numbers[k - i] << i;
                }
            }
            numbers.push(next);
        }
        all.extend_from_slice(&numbers[..digits]);
    }
    all
}

/// The scalar in input `i`.
fn scalar(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<i32> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 0, InvalidArgument, "{name} must be a scalar, got shape {}", t.shape());
    t.scalar_value::<i32>()
}

fn sample<T: Float>(ctx: &mut Ctx<'_>) -> Result<()> {
    let dim = scalar(ctx, 0, "dim")?;
    let results = scalar(ctx, 1, "num_results")?;
    let skip = scalar(ctx, 2, "skip")?;
    ensure!(dim >= 1, InvalidArgument, "dim must be at least one");
    ensure!(
        dim as usize <= MOST_DIMENSIONS,
        InvalidArgument,
        "dim must be at most {MOST_DIMENSIONS}"
    );
    ensure!(results >= 1, InvalidArgument, "num_results must be at least one");
    ensure!(skip >= 0, InvalidArgument, "skip must be non-negative");
    ensure!(
        results < i32::MAX - skip,
        InvalidArgument,
        "num_results+skip must be less than {}",
        i32::MAX
    );
    let (dim, results, skip) = (dim as usize, results as usize, skip as u64);
    let digits = (u64::BITS - (skip + results as u64 + 1).leading_zeros()) as usize;
    let mut directions = direction_numbers(dim, digits);
    for numbers in directions.chunks_mut(digits) {
        for (k, number) in numbers.iter_mut().enumerate() {
            *number <<= digits - k - 1;
        }
    }
    let unit = T::from_f64(1.0 / (1u64 << digits) as f64).wide();
    let mut out = ctx.alloc(T::DTYPE, [results, dim])?;
    for_rows(out.as_mut_slice::<T>()?, dim, dim, |range, rows| {
        // The point before a row; each point differs from the one before in one direction.
        let first = skip + range.start as u64;
        let gray = first ^ first >> 1;
        let mut point: Vec<u32> = directions
            .chunks(digits)
            .map(|numbers| {
                let set = numbers.iter().enumerate().filter(|(k, _)| gray >> k & 1 == 1);
                set.fold(0, |x, (_, number)| x ^ number)
            })
            .collect();
        for (i, row) in range.zip(rows.chunks_mut(dim)) {
            let k = (skip + i as u64).trailing_ones() as usize;
            for ((x, to), numbers) in point.iter_mut().zip(row).zip(directions.chunks(digits)) {
                *x ^= numbers[k];
                *to = T::narrow(T::from_f64(f64::from(*x)).wide().mul(unit));
            }
        }
    });
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SobolSample")
        .work(work::any)
        .doc("Points of Sobol's sequence, which fill a cube evenly.")
        .input("dim: int32")
        .input("num_results: int32")
        .input("skip: int32")
        .output("samples: dtype")
        .attr("dtype: {float, double} = DT_FLOAT")
        .shape(|c| {
            let side = |i: usize| -> Result<Option<usize>> {
                c.input(i).merge(&PartialShape::scalar())?;
                let value = c.constant_ints(i).and_then(|v| v.first().copied());
                Ok(value.and_then(|v| usize::try_from(v).ok()))
            };
            side(2)?;
            Ok(vec![PartialShape::new([side(1)?, side(0)?])])
        })
        .cpu(per_dtype!([Float f32, Double f64], "dtype", T => sample::<T>));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn sobol(dim: i32, results: i32, skip: i32) -> Check<'static> {
        let op = check("SobolSample").input(Tensor::scalar(dim)).input(Tensor::scalar(results));
        op.input(Tensor::scalar(skip))
    }

    #[test]
    fn points_are_those_of_tensorflow() {
        let want = [0.5f32, 0.5, 0.75, 0.25, 0.25, 0.75];
        sobol(2, 3, 0).gives(Tensor::from_slice([3, 2], &want).unwrap());
        let want = [
            [0.625f32, 0.125, 0.875, 0.625, 0.625, 0.875, 0.125],
            [0.125, 0.625, 0.375, 0.125, 0.125, 0.375, 0.625],
            [0.1875, 0.3125, 0.9375, 0.4375, 0.5625, 0.3125, 0.4375],
            [0.6875, 0.8125, 0.4375, 0.9375, 0.0625, 0.8125, 0.9375],
        ];
        sobol(7, 4, 5).gives(Tensor::from_slice([4, 7], &want.concat()).unwrap());
        let got = sobol(10_201, 3, 1000).attr("dtype", DType::Double).run().unwrap().remove(0);
        let last = &got.as_slice::<f64>().unwrap()[3 * 10_201 - 3..];
        assert_eq!(last, [989.0 / 1024.0, 787.0 / 1024.0, 407.0 / 1024.0]);
    }

    #[test]
    fn each_dimension_is_filled_evenly() {
        // 2^10 - 1 points of the sequence, and zero before them, are all multiples of 2^-10.
        let got = sobol(10_201, 1023, 0).attr("dtype", DType::Double).run().unwrap().remove(0);
        let points = got.as_slice::<f64>().unwrap();
        for j in [0, 1, 2, 99, 5000, 10_200] {
            let mut column: Vec<f64> = (0..1023).map(|i| points[i * 10_201 + j]).collect();
            column.sort_by(f64::total_cmp);
            assert!(column.iter().enumerate().all(|(i, x)| *x == (i + 1) as f64 / 1024.0), "{j}");
        }
    }

    #[test]
    fn impossible_samples_are_refused() {
        sobol(0, 1, 0).fails(Code::InvalidArgument, "dim must be at least one");
        sobol(10_202, 1, 0).fails(Code::InvalidArgument, "dim must be at most 10201");
        sobol(1, 0, 0).fails(Code::InvalidArgument, "num_results must be at least one");
        sobol(1, 1, -1).fails(Code::InvalidArgument, "skip must be non-negative");
        sobol(1, i32::MAX, 0).fails(Code::InvalidArgument, "must be less than 2147483647");
    }
}
