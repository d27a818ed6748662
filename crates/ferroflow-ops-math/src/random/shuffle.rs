//! RandomShuffle, StatelessShuffle, RandomCrop: moving elements to random places.

use super::stateless::stream_of_key;
use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, SharedPhilox, Singles};

/// Rows of `value` in the order that `stream` gives.
fn shuffle<W: Movable>(value: &Tensor, stream: impl FnOnce(u64) -> Philox) -> Result<Tensor> {
    let rows = value.shape().first().copied().unwrap_or(0);
    if value.elements() <= 1 || rows <= 1 {
        return Ok(value.clone());
    }
    let mut words = Singles::new(stream(rows as u64 - 1));
    let mut order: Vec<usize> = (0..rows).collect();
    for i in 0..rows - 1 {
        // One word selects among the remaining rows, even if there are more rows than values of a
        // word.
        let left = (rows - i) as u32;
        order.swap(i, i + words.next_u32().checked_rem(left).unwrap_or(0) as usize);
    }
    let row = value.elements() / rows;
    let mut out = Tensor::alloc(value.dtype(), value.shape().clone())?;
    let from = W::of(value)?;
    for (to, &i) in W::of_mut(&mut out)?.chunks_mut(row).zip(&order) {
        to.clone_from_slice(&from[i * row..(i + 1) * row]);
    }
    Ok(out)
}

struct RandomShuffle {
    stream: SharedPhilox,
    shuffle: fn(&Tensor, Philox) -> Result<Tensor>,
}

impl Kernel for RandomShuffle {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let value = ctx.input(0)?;
        let rows = value.shape().first().copied().unwrap_or(0);
        // A value that needs no shuffling takes no words from the stream.
        let words = if value.elements() <= 1 { 0 } else { rows.saturating_sub(1) as u64 };
        let out = (self.shuffle)(value, self.stream.reserve_words(words))?;
        ctx.set(0, out)
    }
}

fn with_stream<W: Movable>(value: &Tensor, stream: Philox) -> Result<Tensor> {
    shuffle::<W>(value, |_| stream)
}

fn stateless<W: Movable>(ctx: &mut Ctx<'_>) -> Result<()> {
    let stream = stream_of_key(ctx, 1)?;
    let out = with_stream::<W>(ctx.input(0)?, stream)?;
    ctx.set(0, out)
}

struct RandomCrop {
    stream: SharedPhilox,
}

impl Kernel for RandomCrop {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (image, size) = (ctx.input(0)?, ctx.input(1)?);
        let &[height, width, channels] = image.shape().dims() else {
            bail!(InvalidArgument, "input must be 3-dimensional{}", image.shape());
        };
        ensure!(size.rank() == 1, InvalidArgument, "shape_t must be 1-dimensional{}", size.shape());
        ensure!(
            size.elements() == 2,
            InvalidArgument,
            "shape_t must have two elements{}",
            size.shape()
        );
        let wanted = size.to_indices()?;
        let shape = Shape::from_dims(&[wanted[0], wanted[1], channels as i64])?;
        let (high, wide) = (shape[0], shape[1]);
        ensure!(
            width >= wide,
            FailedPrecondition,
            "width must be >= target_width: width = {width}, target_width = {wide}"
        );
        ensure!(
            height >= high,
            FailedPrecondition,
            "height must be >= target_height: height = {height}, target_height = {high}"
        );
        let mut words = Singles::new(self.stream.reserve_words(2));
        let mut offset = |spare: usize| match spare {
            0 => 0,
            n => words.next_u32() as usize % (n + 1),
        };
        let (left, top) = (offset(width - wide), offset(height - high));
        let item = image.dtype().size().unwrap_or(1) * channels;
        let mut out = ctx.alloc(image.dtype(), shape)?;
        let from = image.bytes()?;
        if wide * item > 0 {
            for (y, to) in out.bytes_mut()?.chunks_mut(wide * item).enumerate() {
                let start = ((top + y) * width + left) * item;
                to.copy_from_slice(&from[start..start + wide * item]);
            }
        }
        ctx.set(0, out)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("RandomShuffle")
        .doc("Rows in random order.")
        .input("value: T")
        .output("output: T")
        .attr("seed: int = 0")
        .attr("seed2: int = 0")
        .attr("T: type")
        .stateful()
        .shape(shape::same_as_input)
        .cpu(per_width!(init, W => RandomShuffle {
            stream: SharedPhilox::from_attrs(init)?,
            shuffle: with_stream::<W>,
        }));
    c.op("StatelessShuffle")
        .doc("Rows in an order that a key and counter determine.")
        .input("value: T")
        .input("key: uint64")
        .input("counter: uint64")
        .input("alg: int32")
        .output("output: T")
        .attr("T: type")
        .shape(shape::same_as_input)
        .cpu(per_width!(W => stateless::<W>));
    c.op("RandomCrop")
        .doc("A part of an image, of the size asked for, from a random place.")
        .input("image: T")
        .input("size: int64")
        .output("output: T")
        .attr("T: {uint8, int8, int16, int32, int64, float, double}")
        .attr("seed: int = 0")
        .attr("seed2: int = 0")
        .stateful()
        .shape(|c| {
            let size = c.constant_ints(1).unwrap_or_default();
            let dim = |i: usize| size.get(i).and_then(|&d| usize::try_from(d).ok());
            Ok(vec![PartialShape::new([dim(0), dim(1), c.input(0).dim(2)])])
        })
        .cpu(|init| Ok(KernelBox::new(RandomCrop { stream: SharedPhilox::from_attrs(init)? })));
    c.no_gradient(&["RandomCrop", "RandomShuffle"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn seeds_give_the_order_of_tensorflow() {
        let shuffle = |t| check("RandomShuffle").attr("seed", 5i64).attr("seed2", 6i64).input(t);
        let ten: [i32; 10] = std::array::from_fn(|i| i as i32);
        shuffle(Tensor::vector(&ten)).gives(Tensor::vector(&[3, 5, 7, 2, 1, 8, 0, 4, 9, 6]));
        shuffle(Tensor::from_slice([4, 2], &ten[..8]).unwrap())
            .gives(Tensor::from_slice([4, 2], &[6, 7, 4, 5, 0, 1, 2, 3]).unwrap());
        shuffle(Tensor::scalar(7i32)).gives(Tensor::scalar(7i32));
    }

    #[test]
    fn a_crop_is_a_part() {
        let image: Vec<u8> = (0..60).collect();
        let crop = |size: [i64; 2]| {
            let image = Tensor::from_slice([4, 5, 3], &image).unwrap();
            check("RandomCrop").input(image).input(Tensor::vector(&size))
        };
        let part = crop([2, 3]).run().unwrap().remove(0);
        let part = part.as_slice::<u8>().unwrap();
        assert!(part.windows(2).take(8).all(|w| w[1] == w[0] + 1));
        assert_eq!(part[9], part[0] + 15);
        crop([5, 5]).fails(Code::FailedPrecondition, "height must be >= target_height");
    }
}
