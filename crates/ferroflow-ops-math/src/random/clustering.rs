//! Ops of k-means: NearestNeighbors, KmeansPlusPlusInitialization, KMC2ChainInitialization.

use crate::prelude::*;
use ferroflow_core::Reservation;
use ferroflow_op_kit::parallel::for_rows2;
use ferroflow_op_kit::philox::{Philox, Singles};

fn matrix<'a>(ctx: &'a Ctx<'_>, i: usize, name: &str) -> Result<(&'a [f32], usize, usize)> {
    let t = ctx.input(i)?;
    let &[rows, columns] = t.shape().dims() else {
        bail!(InvalidArgument, "Input {name} should be a matrix.");
    };
    Ok((t.as_slice()?, rows, columns))
}

fn scalar(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<i64> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 0, InvalidArgument, "Input {name} should be a scalar.");
    t.scalar_index()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn half_squares(rows: &[f32], columns: usize) -> Vec<f32> {
    rows.chunks_exact(columns.max(1)).map(|row| 0.5 * dot(row, row)).collect()
}

fn nearest_neighbors(ctx: &mut Ctx<'_>) -> Result<()> {
    let (points, n, width) = matrix(ctx, 0, "points")?;
    let (centers, count, center_width) = matrix(ctx, 1, "centers")?;
    ensure!(
        width == center_width,
        InvalidArgument,
        "Expected points and centers to have the same number of columns, got {width} and \
         {center_width}."
    );
    ensure!(n > 0, InvalidArgument, "Expected points.rows() > 0.");
    let k = scalar(ctx, 2, "k")?;
    ensure!(k >= 0, InvalidArgument, "Expected k >= 0.");
    let k = std::cmp::min(k as usize, count);
    if k == 0 {
        ctx.set(0, Tensor::zeros(DType::Int64, [n, 0])?)?;
        return ctx.set(1, Tensor::zeros(DType::Float, [n, 0])?);
    }
    let mut places = Tensor::zeros(DType::Int64, [n, k])?;
    let mut distances = Tensor::zeros(DType::Float, [n, k])?;
    let halves = half_squares(centers, width);
    let cost = count * width + count * 4;
    let (to_places, to_distances) = (places.as_mut_slice()?, distances.as_mut_slice()?);
    for_rows2(to_places, k, to_distances, k, cost, |range, places: &mut [i64], distances| {
        let mut order: Vec<(f32, usize)> = Vec::with_capacity(count);
        for ((i, places), distances) in
            range.zip(places.chunks_exact_mut(k)).zip(distances.chunks_exact_mut(k))
        {
            let point = &points[i * width..][..width];
            order.clear();
            order.extend(
                (0..count).map(|c| (halves[c] - dot(point, &centers[c * width..][..width]), c)),
            );
            let by_distance =
                |a: &(f32, usize), b: &(f32, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
            if k < count {
                order.select_nth_unstable_by(k - 1, by_distance);
                order.truncate(k);
            }
            order.sort_unstable_by(by_distance);
            let half = 0.5 * dot(point, point);
            for ((place, distance), (d, c)) in places.iter_mut().zip(distances).zip(&order) {
                *place = *c as i64;
                *distance = (2.0 * (half + d)).max(0.0);
            }
        }
    });
    ctx.set(0, places)?;
    ctx.set(1, distances)
}

/// Draws by distance before a candidate is drawn uniformly: rounding can leave only rows that were
/// picked before with a distance above zero.
const MOST_DRAWS: usize = 10_000;

/// Picks rows that are far from each other: each with a probability that grows with the square of
/// its distance from those picked before. Of several candidates the best one is taken.
fn plus_plus(ctx: &mut Ctx<'_>) -> Result<()> {
    let (points, n, width) = matrix(ctx, 0, "points")?;
    let wanted = scalar(ctx, 1, "num_to_sample")?;
    let seed = scalar(ctx, 2, "seed")?;
    let retries = scalar(ctx, 3, "num_retries_per_sample")?;
    ensure!(n > 0, InvalidArgument, "Expected points.rows() > 0.");
    ensure!(wanted > 0, InvalidArgument, "Expected num_to_sample > 0.");
    ensure!(wanted as u64 <= n as u64, InvalidArgument, "Expected num_to_sample <= points.rows().");
    let wanted = wanted as usize;
    let tries = match retries {
        0.. => 1 + retries,
        _ => 1 + 2 + (wanted as f64).ln() as i64,
    };
    let mut random = Singles::new(Philox::seeded(seed, 0));
    let halves = half_squares(points, width);
    let row = |i: usize| &points[i * width..][..width];
    // Four lists of a number for each point, and the rows that are picked.
    let counted = n.saturating_mul(4 * size_of::<f32>());
    let counted = counted.saturating_add(wanted.saturating_mul(size_of::<usize>()));
    let _counted = Reservation::new(counted)?;
    // Half the square of each point's distance from the nearest picked one.
    let mut nearest = vec![f32::INFINITY; n];
    let mut picked: Vec<usize> = Vec::with_capacity(wanted);
    while picked.len() < wanted {
        let mut sums = Vec::with_capacity(n);
        let mut sum = 0f32;
        for near in &nearest {
            sum += near;
            sums.push(sum);
        }
        let mut best: Option<(f32, usize, Vec<f32>)> = None;
        for _ in 0..tries {
            ctx.step().cancel.check()?;
            // The random numbers are used as TensorFlow's kernel uses them.
            let mut draws = 0;
            let candidate = loop {
                draws += 1;
                let drawn = match !picked.is_empty() && sum > 0.0 && draws < MOST_DRAWS {
                    false => random.below_u64(n as u64) as usize,
                    true => {
                        let at = random.next_f32() * sum;
                        sums.partition_point(|s| *s <= at).min(n - 1)
                    }
                };
                if !picked.contains(&drawn) {
                    break drawn;
                }
            };
            let next: Vec<f32> = (0..n)
                .map(|i| {
                    let half = halves[i] - dot(row(i), row(candidate)) + halves[candidate];
                    nearest[i].min(half)
                })
                .collect();
            let total: f32 = next.iter().sum();
            if best.as_ref().is_none_or(|best| total < best.0) {
                best = Some((total, candidate, next));
            }
        }
        let Some((_, candidate, next)) = best else { break };
        picked.push(candidate);
        nearest = next;
    }
    let samples: Vec<f32> = picked.iter().flat_map(|i| row(*i).iter().copied()).collect();
    ctx.set(0, Tensor::from_slice([wanted, width], &samples)?)
}

/// The end of a random walk that prefers large distances.
fn chain(ctx: &mut Ctx<'_>) -> Result<()> {
    let distances = ctx.input(0)?;
    ensure!(
        distances.rank() == 1,
        InvalidArgument,
        "Input distances should be a vector, got shape {}",
        distances.shape()
    );
    let seed = scalar(ctx, 1, "seed")?;
    let mut random = Singles::new(Philox::seeded(seed, 0));
    let distances = distances.as_slice::<f32>()?;
    let Some(&first) = distances.first() else {
        bail!(InvalidArgument, "Expected distances_tensor.size() > 0.");
    };
    let (mut at, mut distance) = (0, first);
    for (i, &candidate) in distances.iter().enumerate().skip(1) {
        if candidate > random.next_f32() * distance {
            (at, distance) = (i as i64, candidate);
        }
    }
    ctx.set(0, Tensor::scalar(at))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("NearestNeighbors")
        .work(work::any)
        .doc("The nearest centers of each point, and the squares of their distances.")
        .input("points: float")
        .input("centers: float")
        .input("k: int64")
        .output("nearest_center_indices: int64")
        .output("nearest_center_distances: float")
        .expensive()
        .shape(|c| Ok(vec![PartialShape::new([c.input(0).dim(0), None]); 2]))
        .cpu_fn(nearest_neighbors);
    c.op("KmeansPlusPlusInitialization")
        .work(work::any)
        .doc("Rows that are far from each other, picked by the k-means++ rule.")
        .input("points: float")
        .input("num_to_sample: int64")
        .input("seed: int64")
        .input("num_retries_per_sample: int64")
        .output("samples: float")
        .expensive()
        .shape(|c| Ok(vec![PartialShape::new([None, c.input(0).dim(1)])]))
        .cpu_fn(plus_plus);
    c.op("KMC2ChainInitialization")
        .work(work::any)
        .doc("An index, picked by a Markov chain that prefers large distances.")
        .input("distances: float")
        .input("seed: int64")
        .output("index: int64")
        .shape(shape::scalar)
        .cpu_fn(chain);
    c.no_gradient(&["NearestNeighbors", "KmeansPlusPlusInitialization", "KMC2ChainInitialization"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn neighbours_come_in_order_of_distance() {
        let points = Tensor::from_slice([2, 2], &[0f32, 0., 10., 1.]).unwrap();
        let centers = Tensor::from_slice([3, 2], &[1f32, 0., 9., 0., 0., 3.]).unwrap();
        let near =
            check("NearestNeighbors").input(points).input(centers).input(Tensor::scalar(2i64));
        let out = near.run().unwrap();
        assert_eq!(out[0], Tensor::from_slice([2, 2], &[0i64, 2, 1, 0]).unwrap());
        assert_eq!(out[1], Tensor::from_slice([2, 2], &[1f32, 9., 2., 82.]).unwrap());
    }

    #[test]
    fn far_points_are_picked() {
        let points: Vec<f32> = (0..40).map(|i| if i < 20 { 0.0 } else { 1000.0 }).collect();
        for seed in 0..5i64 {
            let picked = check("KmeansPlusPlusInitialization")
                .input(Tensor::from_slice([40, 1], &points).unwrap())
                .input(Tensor::scalar(2i64))
                .input(Tensor::scalar(seed))
                .input(Tensor::scalar(-1i64));
            let out = picked.run().unwrap();
            let mut found = out[0].as_slice::<f32>().unwrap().to_vec();
            found.sort_by(f32::total_cmp);
            assert_eq!(found, [0.0, 1000.0]);
        }
        check("KmeansPlusPlusInitialization")
            .input(Tensor::from_slice([40, 1], &points).unwrap())
            .input(Tensor::scalar(41i64))
            .input(Tensor::scalar(1i64))
            .input(Tensor::scalar(-1i64))
            .fails(Code::InvalidArgument, "Expected num_to_sample <= points.rows().");
    }

    #[test]
    fn a_chain_leaves_points_without_distance() {
        check("KMC2ChainInitialization")
            .input(Tensor::vector(&[0f32, 5., 0., 0.]))
            .input(Tensor::scalar(3i64))
            .gives(Tensor::scalar(1i64));
    }
}
