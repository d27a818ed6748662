//! CropAndResize and its gradients: cut boxes out of images and resize them.

use super::pixels::{FromF32, Images, floats};
use crate::prelude::*;
use ferroflow_op_kit::parallel::for_rows;

#[derive(Clone, Copy, PartialEq)]
enum Method {
    Bilinear,
    Nearest,
}

impl Method {
    fn new(init: &KernelInit<'_>) -> Result<Method> {
        match init.string("method")?.as_str() {
            "bilinear" => Ok(Method::Bilinear),
            "nearest" => Ok(Method::Nearest),
            other => bail!(InvalidArgument, "method must be 'bilinear' or 'nearest'{other}"),
        }
    }
}

/// One dimension of a box, and its mapping to the image.
#[derive(Clone, Copy)]
struct Side {
    from: f32,
    to: f32,
    /// Pixels of the image and of the crop.
    image: usize,
    crop: usize,
}

impl Side {
    /// The position of pixel `i` in the image, if it is inside.
    fn place(&self, i: usize) -> Option<f32> {
        let last = (self.image - 1) as f32;
        let place = match self.crop > 1 {
            true => {
                let step = (self.to - self.from) * last / (self.crop - 1) as f32;
                self.from * last + i as f32 * step
            }
            false => (0.5 * f64::from(self.from + self.to) * f64::from(last)) as f32,
        };
        (0.0..=last).contains(&place).then_some(place)
    }

    /// The two pixels around a position inside the image, and the weight of the second.
    fn around(place: f32) -> (usize, usize, f32) {
        let floor = place.floor();
        (floor as usize, place.ceil() as usize, place - floor)
    }

    /// The derivatives of the position of pixel `i` for the two ends of the box.
    fn slopes(&self, i: usize) -> (f32, f32) {
        let last = (self.image - 1) as f32;
        match self.crop > 1 {
            true => {
                let ratio = last / (self.crop - 1) as f32;
                (last - i as f32 * ratio, i as f32 * ratio)
            }
            false => (0.5 * last, 0.5 * last),
        }
    }
}

/// The boxes, and the image that each is cut from.
struct Boxes<'a> {
    corners: &'a [f32],
    images: &'a [i32],
}

impl<'a> Boxes<'a> {
    fn new(boxes: &'a Tensor, index: &'a Tensor) -> Result<Boxes<'a>> {
        let none = boxes.elements() == 0 && index.elements() == 0;
        ensure!(boxes.rank() == 2, InvalidArgument, "boxes must be 2-D, got: {}", boxes.shape());
        ensure!(
            index.rank() == 1,
            InvalidArgument,
            "box_indices must be rank 1 but is shape {}",
            index.shape()
        );
        if !none {
            ensure!(boxes.shape()[1] == 4, InvalidArgument, "boxes must have 4 columns");
            ensure!(
                index.elements() == boxes.shape()[0],
                InvalidArgument,
                "box_index has incompatible shape"
            );
        }
        Ok(Boxes { corners: boxes.as_slice()?, images: index.as_slice()? })
    }

    fn check(&self, batch: usize) -> Result<()> {
        let inside = |&i: &i32| usize::try_from(i).is_ok_and(|i| i < batch);
        ensure!(
            self.images.iter().all(inside),
            OutOfRange,
            "box_index has values outside [0, batch_size)"
        );
        Ok(())
    }

    fn len(&self) -> usize {
        self.images.len()
    }

    /// The rows and columns of box `i`, and its image.
    fn sides(&self, i: usize, image: &Images, crop: &Images) -> (Side, Side, usize) {
        let b = &self.corners[4 * i..][..4];
        let rows = Side { from: b[0], to: b[2], image: image.height, crop: crop.height };
        let cols = Side { from: b[1], to: b[3], image: image.width, crop: crop.width };
        (rows, cols, self.images[i] as usize)
    }
}

fn image_sizes(shape: &Shape) -> Result<Images> {
    let image = Images::of(shape, || err!(InvalidArgument, "input image must be 4-D{shape}"))?;
    ensure!(
        image.height > 0 && image.width > 0,
        InvalidArgument,
        "image dimensions must be positive"
    );
    Ok(image)
}

fn grad_sizes(shape: &Shape) -> Result<Images> {
    let grads = Images::of(shape, || err!(InvalidArgument, "grads image must be 4-D{shape}"))?;
    ensure!(
        grads.height > 0 && grads.width > 0,
        InvalidArgument,
        "grads dimensions must be positive"
    );
    Ok(grads)
}

struct CropAndResize {
    method: Method,
    outside: f32,
}

impl Kernel for CropAndResize {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let image = image_sizes(ctx.input(0)?.shape())?;
        let boxes = Boxes::new(ctx.input(1)?, ctx.input(2)?)?;
        let size = ctx.input(3)?;
        ensure!(size.rank() == 1, InvalidArgument, "crop_size must be 1-D{}", size.shape());
        let &[height, width] = size.as_slice::<i32>()? else {
            bail!(InvalidArgument, "crop_size must have two elements{}", size.shape());
        };
        ensure!(height > 0 && width > 0, InvalidArgument, "crop dimensions must be positive");
        let (height, width) = (height as usize, width as usize);
        let crop = Images { batch: boxes.len(), height, width, channels: image.channels };
        let mut crops = ctx.alloc(DType::Float, crop.shape()?)?;
        boxes.check(image.batch)?;
        ensure!(
            boxes.corners.iter().all(|x| x.is_finite()),
            InvalidArgument,
            "Boxes contains at least one element that is not finite"
        );
        let x = floats(ctx.input(0)?)?;
        let c = image.channels;
        for_rows(crops.as_mut_slice::<f32>()?, crop.row(), crop.row() * 2, |range, out| {
            for (at, out) in range.zip(out.chunks_exact_mut(crop.row())) {
                let (rows, cols, i) = boxes.sides(at / crop.height, &image, &crop);
                let Some(y) = rows.place(at % crop.height) else {
                    out.fill(self.outside);
                    continue;
                };
                let x = &x[i * image.image()..][..image.image()];
                let (top, bottom, down) = Side::around(y);
                for (j, out) in out.chunks_exact_mut(c).enumerate() {
                    let Some(place) = cols.place(j) else {
                        out.fill(self.outside);
                        continue;
                    };
                    let pixel = |y: usize, j: usize| &x[y * image.row() + j * c..][..c];
                    if self.method == Method::Nearest {
                        let nearest = pixel(y.round() as usize, place.round() as usize);
                        out.copy_from_slice(nearest);
                        continue;
                    }
                    let (left, right, along) = Side::around(place);
                    let (tl, tr) = (pixel(top, left), pixel(top, right));
                    let (bl, br) = (pixel(bottom, left), pixel(bottom, right));
                    for (k, out) in out.iter_mut().enumerate() {
                        let t = tl[k] + (tr[k] - tl[k]) * along;
                        let b = bl[k] + (br[k] - bl[k]) * along;
                        *out = t + (b - t) * down;
                    }
                }
            }
        });
        ctx.set(0, crops)
    }
}

struct GradImage<T>(Method, std::marker::PhantomData<T>);

impl<T: FromF32> Kernel for GradImage<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let grads = ctx.input(0)?;
        let crop = grad_sizes(grads.shape())?;
        let boxes = Boxes::new(ctx.input(1)?, ctx.input(2)?)?;
        ensure!(
            crop.batch == boxes.len(),
            InvalidArgument,
            "boxes and grads have incompatible shape"
        );
        let size = ctx.input(3)?;
        ensure!(size.rank() == 1, InvalidArgument, "image_size must be 1-D{}", size.shape());
        ensure!(
            size.elements() == 4,
            InvalidArgument,
            "image_size must have 4 elements{}",
            size.shape()
        );
        let image = Images::of(&size.to_shape()?, || err!(Internal, "four elements"))?;
        ensure!(
            image.height > 0 && image.width > 0,
            InvalidArgument,
            "image dimensions must be positive"
        );
        ensure!(
            image.channels == crop.channels,
            InvalidArgument,
            "image_size and grads are incompatible"
        );
        let mut dx = Tensor::zeros(T::DTYPE, image.shape()?)?;
        boxes.check(image.batch)?;
        let c = image.channels;
        let out = dx.as_mut_slice::<T>()?;
        let dy = grads.as_slice::<f32>()?;
        for (at, dy) in dy.chunks_exact(crop.row().max(1)).enumerate() {
            let (rows, cols, i) = boxes.sides(at / crop.height, &image, &crop);
            let Some(y) = rows.place(at % crop.height) else { continue };
            let out = &mut out[i * image.image()..][..image.image()];
            for (j, dy) in dy.chunks_exact(c).enumerate() {
                let Some(place) = cols.place(j) else { continue };
                let mut add = |y: usize, x: usize, weight: f32| {
                    let out = &mut out[y * image.row() + x * c..][..c];
                    out.iter_mut().zip(dy).for_each(|(o, dy)| *o = o.add(T::of(weight * dy)));
                };
                if self.0 == Method::Nearest {
                    add(y.round() as usize, place.round() as usize, 1.0);
                    continue;
                }
                let ((top, bottom, down), (left, right, along)) =
                    (Side::around(y), Side::around(place));
                add(top, left, (1.0 - along) * (1.0 - down));
                add(top, right, along * (1.0 - down));
                add(bottom, left, (1.0 - along) * down);
                add(bottom, right, along * down);
            }
        }
        ctx.set(0, dx)
    }
}

fn grad_boxes(ctx: &mut Ctx<'_>) -> Result<()> {
    let grads = ctx.input(0)?;
    let crop = grad_sizes(grads.shape())?;
    let image = image_sizes(ctx.input(1)?.shape())?;
    ensure!(image.channels == crop.channels, InvalidArgument, "image, grads depth differ");
    let boxes = Boxes::new(ctx.input(2)?, ctx.input(3)?)?;
    ensure!(crop.batch == boxes.len(), InvalidArgument, "boxes and grads have incompatible shape");
    let mut out = Tensor::zeros(DType::Float, [boxes.len(), 4])?;
    boxes.check(image.batch)?;
    let x = floats(ctx.input(1)?)?;
    let dy = grads.as_slice::<f32>()?;
    let (c, sums) = (image.channels, out.as_mut_slice::<f32>()?);
    for (at, dy) in dy.chunks_exact(crop.row().max(1)).enumerate() {
        let (rows, cols, i) = boxes.sides(at / crop.height, &image, &crop);
        let Some(y) = rows.place(at % crop.height) else { continue };
        let x = &x[i * image.image()..][..image.image()];
        let (top, bottom, down) = Side::around(y);
        let sums = &mut sums[at / crop.height * 4..][..4];
        let (y1, y2) = rows.slopes(at % crop.height);
        for (j, dy) in dy.chunks_exact(c).enumerate() {
            let Some(place) = cols.place(j) else { continue };
            let (left, right, along) = Side::around(place);
            let pixel = |y: usize, j: usize| &x[y * image.row() + j * c..][..c];
            let (tl, tr) = (pixel(top, left), pixel(top, right));
            let (bl, br) = (pixel(bottom, left), pixel(bottom, right));
            let (x1, x2) = cols.slopes(j);
            for (k, dy) in dy.iter().enumerate() {
                let slope_y = (1.0 - along) * (bl[k] - tl[k]) + along * (br[k] - tr[k]);
                let slope_x = (1.0 - down) * (tr[k] - tl[k]) + down * (br[k] - bl[k]);
                sums[0] += slope_y * dy * y1;
                sums[2] += slope_y * dy * y2;
                sums[1] += slope_x * dy * x1;
                sums[3] += slope_x * dy * x2;
            }
        }
    }
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("CropAndResize")
        .doc("Boxes of images, resized to one size.")
        .input("image: T")
        .input("boxes: float")
        .input("box_ind: int32")
        .input("crop_size: int32")
        .output("crops: float")
        .attr("T: {uint8, uint16, int8, int16, int32, int64, half, float, double}")
        .attr("method: {'bilinear', 'nearest'} = 'bilinear'")
        .attr("extrapolation_value: float = 0.0")
        .expensive()
        .shape(|c| {
            let image = c.input(0).merge(&PartialShape::of_rank(4))?;
            let size = c.shape_from(3).merge(&PartialShape::of_rank(2))?;
            let count = c.input(1).dim(0).filter(|_| c.input(1).dim(1) == Some(4));
            Ok(vec![PartialShape::new([count, size.dim(0), size.dim(1), image.dim(3)])])
        })
        .cpu(|init| {
            let outside = init.float("extrapolation_value")?;
            Ok(KernelBox::new(CropAndResize { method: Method::new(init)?, outside }))
        });
    c.op("CropAndResizeGradImage")
        .doc("Gradient of CropAndResize for the images.")
        .input("grads: float")
        .input("boxes: float")
        .input("box_ind: int32")
        .input("image_size: int32")
        .output("output: T")
        .attr("T: {float, half, double}")
        .attr("method: {'bilinear', 'nearest'} = 'bilinear'")
        .expensive()
        .shape(|c| Ok(vec![c.shape_from(3).merge(&PartialShape::of_rank(4))?]))
        .cpu(per_dtype!([Float f32, Half f16, Double f64], init, T => {
            GradImage::<T>(Method::new(init)?, std::marker::PhantomData)
        }));
    c.op("CropAndResizeGradBoxes")
        .doc("Gradient of CropAndResize for the boxes.")
        .input("grads: float")
        .input("image: T")
        .input("boxes: float")
        .input("box_ind: int32")
        .output("output: float")
        .attr("T: {uint8, uint16, int8, int16, int32, int64, half, float, double}")
        .attr("method: {'bilinear'} = 'bilinear'")
        .expensive()
        .shape(|c| Ok(vec![PartialShape::new([c.input(2).dim(0), Some(4)])]))
        .cpu_fn(grad_boxes);
    c.gradient("CropAndResize", |g, dy| {
        let (image, boxes, which) = (g.input(0), g.input(1), g.input(2));
        let of_image = match image.dtype() {
            DType::Half | DType::Float | DType::Double => {
                let attrs = g.same_attrs(&["T", "method"]);
                let inputs = [dy[0], boxes, which, image.shape()];
                g.call_with("CropAndResizeGradImage", &inputs, attrs)
            }
            _ => g.none(),
        };
        let of_boxes = g.call("CropAndResizeGradBoxes", &[dy[0], image, boxes, which]);
        Ok(vec![of_image, of_boxes, g.none(), g.none()])
    });
}
