//! RandomIndexShuffle: the position of an index in a pseudorandom permutation, computed without the
//! permutation. A small Simon cipher is applied until its value is in range.

use crate::prelude::*;

/// A Simon cipher on blocks of two words of `bits` bits each.
struct Simon {
    bits: u32,
    keys: Vec<u64>,
}

impl Simon {
    fn new(bits: u32, key: [u32; 3], rounds: usize) -> Simon {
        let mut simon = Simon { bits, keys: Vec::new() };
        let mask = simon.mask();
        simon.keys = key.iter().map(|&k| u64::from(k) & mask).collect();
        let mut z = 0x7369_f885_192c_0ef5u64 & mask;
        for i in 3..rounds {
            let last = simon.keys[i - 1];
            let next = (0xffff_fffc & mask)
                ^ (z & 1)
                ^ simon.keys[i - 3]
                ^ simon.rotate_right(last, 3)
                ^ simon.rotate_right(last, 4);
            simon.keys.push(next);
            z >>= 1;
        }
        simon
    }

    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    fn rotate_left(&self, x: u64, by: u32) -> u64 {
        ((x << by) | (x >> (self.bits - by))) & self.mask()
    }

    fn rotate_right(&self, x: u64, by: u32) -> u64 {
        self.rotate_left(x, self.bits - by)
    }

    /// `bits` is at least 8; a rotation by 8 of 8 bits is none.
    fn mix(&self, x: u64) -> u64 {
        let by8 = if self.bits == 8 { x } else { self.rotate_left(x, 8) };
        (self.rotate_left(x, 1) & by8) ^ self.rotate_left(x, 2)
    }

    fn encrypt(&self, value: u64) -> u64 {
        let (mut left, mut right) = ((value >> self.bits) & self.mask(), value & self.mask());
        for pair in self.keys.chunks_exact(2) {
            left ^= self.mix(right) ^ pair[0];
            right ^= self.mix(left) ^ pair[1];
        }
        (left << self.bits) | right
    }
}

/// The position of `index` in the permutation of `0..=max` that `key` selects.
fn shuffled(index: u64, key: [u32; 3], max: u64, rounds: usize) -> Result<u64> {
    if max == 0 {
        return Ok(0);
    }
    let bits = (max as f64).log2().ceil() as u32;
    let block = (bits + bits % 2).clamp(16, 64);
    let simon = Simon::new(block / 2, key, rounds);
    let mut at = index;
    loop {
        at = simon.encrypt(at);
        if at <= max {
            return Ok(at);
        }
        // Repeated application follows a cycle of a permutation. From outside the range it might
        // never reach the inside.
        ensure!(at != index, InvalidArgument, "index {index} is beyond max_index {max}");
    }
}

fn unsigned(t: &Tensor) -> Result<Vec<u64>> {
    match t.dtype() {
        DType::UInt64 => Ok(t.as_slice::<u64>()?.to_vec()),
        _ => Ok(t.to_indices()?.into_iter().map(|x| x as u64).collect()),
    }
}

fn compute(ctx: &mut Ctx<'_>, rounds: usize) -> Result<()> {
    let (index, seed, max) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    ensure!(index.rank() <= 1, InvalidArgument, "Index must be a scalar or vector.");
    ensure!(
        (1..=2).contains(&seed.rank()) && seed.shape().last() == Some(&3),
        InvalidArgument,
        "Seed must be a vector of size three or a matrix with three columns."
    );
    ensure!(max.rank() <= 1, InvalidArgument, "Max index must be a scalar or vector.");
    let (indices, seeds, maxima) = (unsigned(index)?, unsigned(seed)?, unsigned(max)?);
    let lengths = [
        (index.rank() == 1).then_some(indices.len()),
        (seed.rank() == 2).then_some(seeds.len() / 3),
        (max.rank() == 1).then_some(maxima.len()),
    ];
    let n = lengths.iter().flatten().copied().find(|&n| n != 1);
    let n = n.or(lengths.iter().flatten().copied().next());
    for (len, what) in lengths.iter().zip(["Index", "Seed", "Max index"]) {
        ensure!(
            len.is_none_or(|len| len == 1 || Some(len) == n),
            InvalidArgument,
            "{what} dimensions must match."
        );
    }
    let pick = |v: &[u64], i: usize| if v.len() == 1 { v[0] } else { v[i] };
    let shape = n.map_or(Shape::scalar(), Shape::vector);
    let count = shape.elements();
    let mut moved = Vec::with_capacity(count);
    for i in 0..count {
        let (index, max) = (pick(&indices, i), pick(&maxima, i));
        let seed = &seeds[if seeds.len() == 3 { 0 } else { i * 3 }..][..3];
        let key = [seed[0] as u32, seed[1] as u32, seed[2] as u32];
        moved.push(shuffled(index, key, max, rounds)?);
    }
    let mut out = ctx.alloc(index.dtype(), shape)?;
    match index.dtype().size() {
        Some(4) => u32::of_mut(&mut out)?.iter_mut().zip(moved).for_each(|(o, x)| *o = x as u32),
        _ => u64::of_mut(&mut out)?.iter_mut().zip(moved).for_each(|(o, x)| *o = x),
    }
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("RandomIndexShuffle")
        .work(work::any)
        .doc("Where `index` goes in a pseudorandom permutation of 0..=max_index.")
        .input("index: dtype")
        .input("seed: Tseed")
        .input("max_index: dtype")
        .output("output: dtype")
        .attr("rounds: int = 4")
        .attr("dtype: {int32, uint32, int64, uint64}")
        .attr("Tseed: {int32, uint32, int64, uint64}")
        .shape(|c| {
            let vectors: Vec<PartialShape> = [(0, 1), (1, 2), (2, 1)]
                .iter()
                .map(|&(i, rank)| match c.input(i).rank() {
                    Some(r) if r < rank => PartialShape::scalar(),
                    Some(_) => PartialShape::new([c.input(i).dim(0)]),
                    None => PartialShape::unknown(),
                })
                .collect();
            let both = shape::broadcast_shapes(&vectors[0], &vectors[1])?;
            Ok(vec![shape::broadcast_shapes(&both, &vectors[2])?])
        })
        .cpu(|init| {
            let rounds = init.int("rounds")?;
            ensure!(
                (4..=1 << 10).contains(&rounds),
                InvalidArgument,
                "rounds must be at least 4, got {rounds}"
            );
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| compute(ctx, rounds as usize)))
        });
    c.no_gradient(&["RandomIndexShuffle"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn indices_go_where_tensorflow_puts_them() {
        check("RandomIndexShuffle")
            .input(Tensor::vector(&[0i32, 1, 2, 3]))
            .input(Tensor::vector(&[1i32, 2, 3]))
            .input(Tensor::scalar(3i32))
            .gives(Tensor::vector(&[2i32, 0, 3, 1]));
        let seeds = [1i32, 2, 3, 1, 2, 4, 1, 2, 5, 1, 2, 6];
        check("RandomIndexShuffle")
            .input(Tensor::vector(&[0i32, 1, 2, 3]))
            .input(Tensor::from_slice([4, 3], &seeds).unwrap())
            .input(Tensor::scalar(1_000_000i32))
            .gives(Tensor::vector(&[27350i32, 91549, 160330, 225041]));
    }
}
