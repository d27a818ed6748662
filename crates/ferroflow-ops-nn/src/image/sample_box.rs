//! SampleDistortedBoundingBox and its versions: a random part of an image that shows enough of one
//! of its objects.

use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, SharedPhilox, Singles};
use ferroflow_ops_math::random::stateless::stream_of_seed;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rectangle {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

impl Rectangle {
    fn area(&self) -> f32 {
        let (width, height) =
            (i64::from(self.right - self.left), i64::from(self.bottom - self.top));
        (width * height) as f32
    }

    fn intersection(&self, other: &Rectangle) -> Rectangle {
        let r = Rectangle {
            left: Ord::max(self.left, other.left),
            top: Ord::max(self.top, other.top),
            right: Ord::min(self.right, other.right),
            bottom: Ord::min(self.bottom, other.bottom),
        };
        if r.left > r.right || r.top > r.bottom { Rectangle::default() } else { r }
    }

    /// Whether it shows at least this share of one of the objects.
    fn covers(&self, share: f32, objects: &[Rectangle]) -> bool {
        self.area() >= 1.0
            && objects.iter().any(|object| {
                let area = object.area();
                area >= 1.0 && self.intersection(object).area() / area >= share
            })
    }
}

/// The constraints on the part that is drawn.
struct Sampler {
    aspect_ratio: [f32; 2],
    area: [f32; 2],
    max_attempts: i64,
    whole_image_if_no_boxes: bool,
}

impl Sampler {
    fn new(init: &KernelInit<'_>) -> Result<Sampler> {
        let range = |name: &str, what: &str| -> Result<[f32; 2]> {
            let Ok([low, high]) = <[f32; 2]>::try_from(init.floats(name)?) else {
                bail!(InvalidArgument, "{what} range field must specify 2 dimensions");
            };
            ensure!(
                low > 0.0 && high > 0.0,
                InvalidArgument,
                "{what} range must be non-negative: [{low}, {high}]"
            );
            Ok([low, high])
        };
        let aspect_ratio = range("aspect_ratio_range", "Aspect ratio")?;
        let area = range("area_range", "Area")?;
        ensure!(
            area[0] <= 1.0 && area[1] <= 1.0,
            InvalidArgument,
            "Area range must be less then or equal to 1.0: [{}, {}]",
            area[0],
            area[1]
        );
        let max_attempts = init.int("max_attempts")?;
        ensure!(
            max_attempts > 0,
            InvalidArgument,
            "Max attempts must be non-negative: {max_attempts}"
        );
        let whole_image_if_no_boxes = init.bool("use_image_if_no_bounding_boxes")?;
        Ok(Sampler { aspect_ratio, area, max_attempts, whole_image_if_no_boxes })
    }

    /// A random rectangle of this aspect ratio with an area in range, if there is one.
    fn rectangle(
        &self,
        width: i32,
        height: i32,
        ratio: f32,
        random: &mut Singles,
    ) -> Option<Rectangle> {
        if ratio.is_nan()
            || ratio <= 0.0
            || width <= 0
            || height <= 0
            || self.area[0] > self.area[1]
        {
            return None;
        }
        let round = |x: f32| x.round_ties_even() as i32;
        let across = |rows: i32| round(rows as f32 * ratio);
        let least = self.area[0] * width as f32 * height as f32;
        let most = self.area[1] * width as f32 * height as f32;
        let mut tallest = round((most / ratio).sqrt());
        if across(tallest) > width {
            tallest = ((f64::from(width) + 0.5 - f64::from(1e-7f32)) / f64::from(ratio)) as i32;
            if across(tallest) > width {
                tallest -= 1;
            }
        }
        tallest = Ord::min(tallest, height);
        let mut rows = Ord::min(round((least / ratio).sqrt()), tallest);
        if rows < tallest {
            rows += random.below_u32((tallest - rows).wrapping_add(1) as u32) as i32;
        }
        let area = |rows: i32| (i64::from(across(rows)) * i64::from(rows)) as f32;
        // Rounding may exceed the range by one row in either direction.
        if area(rows) < least {
            rows += 1;
        }
        if area(rows) > most {
            rows -= 1;
        }
        let (cols, covered) = (across(rows), area(rows));
        if covered < least
            || covered > most
            || cols > width
            || rows > height
            || cols <= 0
            || rows <= 0
        {
            return None;
        }
        let top = if rows < height { random.below_u32((height - rows) as u32) as i32 } else { 0 };
        let left = if cols < width { random.below_u32((width - cols) as u32) as i32 } else { 0 };
        Some(Rectangle { left, top, right: left + cols, bottom: top + rows })
    }

    fn sample<T: Real>(&self, ctx: &mut Ctx<'_>, share: f32, stream: Philox) -> Result<()> {
        let (size, boxes) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            size.rank() == 1,
            InvalidArgument,
            "image_size must be 1-dimensional{}",
            size.shape()
        );
        let &[height, width, _] = size.as_slice::<T>()? else {
            bail!(InvalidArgument, "image_size must contain 3 elements{}", size.shape());
        };
        let side = |x: T, what: &str| -> Result<i32> {
            let x = x.to_f64();
            ensure!(
                (0.0..f64::from(i32::MAX)).contains(&x),
                InvalidArgument,
                "image {what} cannot be >= int32 max"
            );
            Ok(x as i32)
        };
        let (height, width) = (side(height, "height")?, side(width, "width")?);
        ensure!(
            boxes.rank() == 3,
            InvalidArgument,
            "input boxes must be 3-dimensional [batch, num_boxes, coords]: {}",
            boxes.shape()
        );
        ensure!(
            boxes.shape()[2] == 4,
            InvalidArgument,
            "bounding boxes must have shape [4] or [*, 4], got {}",
            boxes.shape()
        );
        ensure!(share >= 0.0, InvalidArgument, "Min object covered must be non-negative: {share}");
        let mut objects = Vec::new();
        for b in boxes.as_slice::<f32>()?.chunks_exact(4) {
            for x in b {
                ensure!(
                    (0.0..=1.0).contains(x),
                    InvalidArgument,
                    "All bounding box coordinates must be in [0.0, 1.0]: {x}"
                );
            }
            let across = |x: f32| (x * width as f32) as i32;
            let down = |y: f32| (y * height as f32) as i32;
            let (left, right) = (across(b[1]), across(b[3]));
            objects.push(Rectangle { left, top: down(b[0]), right, bottom: down(b[2]) });
        }
        let image = Rectangle { left: 0, top: 0, right: width, bottom: height };
        if objects.is_empty() {
            ensure!(
                self.whole_image_if_no_boxes,
                InvalidArgument,
                "No bounding boxes provided as input. One must enable \
                 use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes."
            );
            objects.push(image);
        }
        let mut random = Singles::new(stream);
        let found = (0..self.max_attempts).find_map(|_| {
            let [low, high] = self.aspect_ratio;
            let ratio = random.next_f32() * (high - low) + low;
            let r = self.rectangle(width, height, ratio, &mut random)?;
            r.covers(share, &objects).then_some(r)
        });
        let r = found.unwrap_or(image);
        let t = |x: i32| T::from_i64(i64::from(x));
        ctx.set(0, Tensor::vector(&[t(r.top), t(r.left), T::ZERO]))?;
        ctx.set(1, Tensor::vector(&[t(r.bottom - r.top), t(r.right - r.left), t(-1)]))?;
        let (h, w) = (height as f32, width as f32);
        let corners =
            [r.top as f32 / h, r.left as f32 / w, r.bottom as f32 / h, r.right as f32 / w];
        ctx.set(2, Tensor::from_slice([1, 1, 4], &corners)?)
    }
}

/// The share that input 2 holds.
fn share_in(ctx: &Ctx<'_>) -> Result<f32> {
    let t = ctx.input(2)?;
    ensure!(
        t.rank() == 0,
        InvalidArgument,
        "min_object_covered must be 0-D, got shape {}",
        t.shape()
    );
    t.scalar_value::<f32>()
}

struct Stateful<T> {
    sampler: Sampler,
    /// The minimal visible share of an object, unless an input sets it.
    share: Option<f32>,
    stream: SharedPhilox,
    marker: std::marker::PhantomData<T>,
}

impl<T: Real> Stateful<T> {
    fn new(init: &KernelInit<'_>) -> Result<Stateful<T>> {
        let share = match init.contains("min_object_covered") {
            true => Some(init.float("min_object_covered")?),
            false => None,
        };
        if let Some(share) = share {
            ensure!(
                share >= 0.0,
                InvalidArgument,
                "Min object covered must be non-negative: {share}"
            );
        }
        let (sampler, stream) = (Sampler::new(init)?, SharedPhilox::from_attrs(init)?);
        Ok(Stateful { sampler, share, stream, marker: std::marker::PhantomData })
    }
}

impl<T: Real> Kernel for Stateful<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let share = match self.share {
            Some(share) => share,
            None => share_in(ctx)?,
        };
        // Each attempt draws four numbers.
        let words = (self.sampler.max_attempts as u64).saturating_mul(4);
        self.sampler.sample::<T>(ctx, share, self.stream.reserve_words(words))
    }
}

struct Stateless<T>(Sampler, std::marker::PhantomData<T>);

impl<T: Real> Kernel for Stateless<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (share, stream) = (share_in(ctx)?, stream_of_seed(ctx.input(3)?)?);
        self.0.sample::<T>(ctx, share, stream)
    }
}

fn slice_shapes(_: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![[3].into(), [3].into(), [1, 1, 4].into()])
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, version) in [
        ("SampleDistortedBoundingBox", 1),
        ("SampleDistortedBoundingBoxV2", 2),
        ("StatelessSampleDistortedBoundingBox", 3),
    ] {
        let op = c.op(op).doc("A random part of an image that shows enough of an object in it.");
        let op = op.input("image_size: T").input("bounding_boxes: float");
        let op = if version > 1 { op.input("min_object_covered: float") } else { op };
        let op = if version == 3 { op.input("seed: Tseed") } else { op };
        let op = op
            .output("begin: T")
            .output("size: T")
            .output("bboxes: float")
            .attr("T: {uint8, int8, int16, int32, int64}");
        let op = match version {
            3 => op.attr("Tseed: {int32, int64}"),
            _ => op.attr("seed: int = 0").attr("seed2: int = 0").stateful(),
        };
        let op = match version {
            1 => op.attr("min_object_covered: float = 0.10000000149011612"),
            _ => op,
        };
        let op = op
            .attr("aspect_ratio_range: list(float) = [0.75, 1.3300000429153442]")
            .attr("area_range: list(float) = [0.05000000074505806, 1.0]")
            .attr("max_attempts: int = 100")
            .attr("use_image_if_no_bounding_boxes: bool = false")
            .shape(slice_shapes);
        if version == 3 {
            op.cpu(per_dtype!(
                [UInt8 u8, Int8 i8, Int16 i16, Int32 i32, Int64 i64],
                init,
                T => Stateless::<T>(Sampler::new(init)?, std::marker::PhantomData)
            ));
        } else {
            op.cpu(per_dtype!(
                [UInt8 u8, Int8 i8, Int16 i16, Int32 i32, Int64 i64],
                init,
                T => Stateful::<T>::new(init)?
            ));
        }
    }
    c.no_gradient(&["SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2"]);
}
