//! DataFormatDimMap and DataFormatVecPermute: map dimensions of one image layout to another.

use crate::prelude::*;

/// Two names of layouts with the same letters.
struct Formats {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Formats {
    fn new(init: &KernelInit<'_>, rows: bool) -> Result<Formats> {
        let read = |attr: &str, what: &str| -> Result<Vec<u8>> {
            let format = init.string(attr)?;
            ensure!(
                matches!(format.len(), 4 | 5) || (rows && format.len() == 3),
                InvalidArgument,
                "{what} format must be of length 4 or 5, received {attr} = {format}"
            );
            Ok(format.into_bytes())
        };
        let (from, to) = (read("src_format", "Source")?, read("dst_format", "Destination")?);
        let mut letters = (from.clone(), to.clone());
        letters.0.sort_unstable();
        letters.1.sort_unstable();
        letters.0.dedup();
        ensure!(
            letters.0 == letters.1 && letters.0.len() == from.len(),
            InvalidArgument,
            "Destination and source format must determine a permutation, got {} and {}",
            String::from_utf8_lossy(&from),
            String::from_utf8_lossy(&to)
        );
        Ok(Formats { from, to })
    }

    /// For each letter of the second name, its position in the first.
    fn sources(from: &[u8], to: &[u8]) -> Vec<usize> {
        to.iter().filter_map(|letter| from.iter().position(|l| l == letter)).collect()
    }
}

fn dim_map<T: Real + Into<i64>>(formats: Formats) -> impl Kernel {
    let targets: Vec<T> = Formats::sources(&formats.to, &formats.from)
        .into_iter()
        .map(|at| T::from_i64(at as i64))
        .collect();
    move |ctx: &mut Ctx<'_>| {
        let mut out = ctx.take_or_copy(0)?;
        for x in out.as_mut_slice::<T>()? {
            let dim: i64 = (*x).into();
            *x = targets[dim.rem_euclid(targets.len() as i64) as usize];
        }
        ctx.set(0, out)
    }
}

fn permute<T: Element>(formats: Formats) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        ensure!(
            matches!(x.rank(), 1 | 2),
            InvalidArgument,
            "input must be a vector or 2D tensor, but got shape {}",
            x.shape()
        );
        let (all, rows) = (formats.from.len(), x.shape()[0]);
        let width = if x.rank() == 2 { x.shape()[1] } else { 1 };
        ensure!(
            rows == all || rows + 2 == all,
            InvalidArgument,
            "{} input must be of size {} or {all}, but got shape {}",
            if x.rank() == 1 { "1D" } else { "First dimension of 2D" },
            all - 2,
            x.shape()
        );
        ensure!(
            x.rank() == 1 || width == 2,
            InvalidArgument,
            "Second dimension of 2D input must be of size 2, but got shape {}",
            x.shape()
        );
        // Two entries fewer: only the spatial dimensions.
        let spatial = |format: &[u8]| -> Vec<u8> {
            format.iter().copied().filter(|letter| !b"NC".contains(letter)).collect()
        };
        let sources = match rows == all {
            true => Formats::sources(&formats.from, &formats.to),
            false => Formats::sources(&spatial(&formats.from), &spatial(&formats.to)),
        };
        ensure!(
            sources.len() == rows,
            InvalidArgument,
            "the formats have no {rows} spatial dimensions"
        );
        let data = x.as_slice::<T>()?;
        let moved: Vec<T> = sources
            .iter()
            .flat_map(|&at| data[at * width..(at + 1) * width].iter().copied())
            .collect();
        let out = Tensor::from_slice(x.shape().clone(), &moved)?;
        ctx.set(0, out)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    let ops: [(_, _, fn(&KernelInit<'_>) -> Result<KernelBox>); 2] = [
        (
            "DataFormatDimMap",
            "Where dimensions of one layout of images are in another.",
            per_dtype!(INDEX, init, T => dim_map::<T>(Formats::new(init, true)?)),
        ),
        (
            "DataFormatVecPermute",
            "A value for each dimension of one layout of images, in the order of another.",
            per_dtype!(INDEX, init, T => permute::<T>(Formats::new(init, true)?)),
        ),
    ];
    for (op, doc, kernel) in ops {
        c.op(op)
            .doc(doc)
            .input("x: T")
            .output("y: T")
            .attr("T: {int32, int64} = DT_INT32")
            .attr("src_format: string = 'NHWC'")
            .attr("dst_format: string = 'NCHW'")
            .shape(shape::same_as_input)
            .cpu(kernel);
    }
}
