//! Einsum over one or two operands: each is brought to `[batch, free, contracted]`, which leaves a
//! batched matrix product.

use super::gemm::{Mat, Product, ProductThreads, product};
use crate::prelude::*;
use std::collections::BTreeMap;

/// A dimension's name: a letter, or a position within an ellipsis counted from its right end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Label {
    Ellipsis(usize),
    Named(char),
}

/// One side's subscripts: those before an ellipsis, and those after it if there is one.
#[derive(Clone, Debug, Default)]
struct Subscripts {
    before: Vec<char>,
    after: Option<Vec<char>>,
}

impl Subscripts {
    fn parse(text: &str) -> Result<Subscripts> {
        let mut parts = text.split("...");
        let chars = |part: &str| part.chars().filter(|c| !c.is_whitespace()).collect();
        let before: Vec<char> = chars(parts.next().unwrap_or(""));
        let after: Option<Vec<char>> = parts.next().map(chars);
        let stray = before.iter().chain(after.iter().flatten()).any(|&c| c == '.');
        ensure!(
            parts.next().is_none() && !stray,
            InvalidArgument,
            "Periods found outside of ellipsis in subscript: {text}"
        );
        Ok(Subscripts { before, after })
    }

    /// How many dimensions the ellipsis means in an operand of this rank.
    fn ellipsis_rank(&self, rank: usize) -> Option<usize> {
        match &self.after {
            None => (self.before.len() == rank).then_some(0),
            Some(after) => rank.checked_sub(self.before.len() + after.len()),
        }
    }

    fn labels(&self, ellipsis_rank: usize) -> Vec<Label> {
        let ellipsis = (0..ellipsis_rank).rev().map(Label::Ellipsis);
        let before = self.before.iter().copied().map(Label::Named);
        match &self.after {
            None => before.collect(),
            Some(after) => {
                before.chain(ellipsis).chain(after.iter().copied().map(Label::Named)).collect()
            }
        }
    }
}

struct Equation {
    text: String,
    inputs: Vec<Subscripts>,
    output: Subscripts,
}

impl Equation {
    fn parse(text: &str) -> Result<Equation> {
        let sides: Vec<&str> = text.split("->").collect();
        let [inputs, output] = sides.as_slice() else {
            bail!(InvalidArgument, "Expecting exactly one '->' in einsum equation: {text}");
        };
        let inputs = inputs.split(',').map(Subscripts::parse).collect::<Result<Vec<_>>>()?;
        ensure!(
            inputs.len() <= 2,
            InvalidArgument,
            "Expecting 1 or 2 input subscripts in equation '{text}' but got: {}",
            inputs.len()
        );
        Ok(Equation { text: text.to_string(), inputs, output: Subscripts::parse(output)? })
    }

    /// The labels of each operand's dimensions, and the number of dimensions of the output's
    /// ellipsis.
    fn labels(&self, ranks: &[usize]) -> Result<(Vec<Vec<Label>>, usize)> {
        ensure!(
            ranks.len() == self.inputs.len(),
            InvalidArgument,
            "Expecting {} inputs for equation '{}' but got: {}",
            self.inputs.len(),
            self.text,
            ranks.len()
        );
        let mut labels = Vec::new();
        let mut broadcast = 0;
        for (i, (subscripts, &rank)) in self.inputs.iter().zip(ranks).enumerate() {
            let named = subscripts.before.len() + subscripts.after.as_ref().map_or(0, Vec::len);
            let least = if subscripts.after.is_some() { "at least " } else { "" };
            let Some(ellipsis_rank) = subscripts.ellipsis_rank(rank) else {
                bail!(
                    InvalidArgument,
                    "Expected input {i} to have rank {least}{named} but got: {rank}"
                );
            };
            broadcast = Ord::max(broadcast, ellipsis_rank);
            labels.push(subscripts.labels(ellipsis_rank));
        }
        ensure!(
            broadcast == 0 || self.output.after.is_some(),
            InvalidArgument,
            "Output contains {broadcast} broadcasting dimension(s) but no ellipsis (...) was found \
             in the output subscripts."
        );
        Ok((labels, broadcast))
    }
}

/// The sizes of all labels. Operands that contradict each other are an error.
fn sizes(labels: &[Vec<Label>], shapes: &[&Shape]) -> Result<BTreeMap<Label, usize>> {
    let mut sizes: BTreeMap<Label, usize> = BTreeMap::new();
    for (labels, shape) in labels.iter().zip(shapes) {
        for (axis, (&label, &dim)) in labels.iter().zip(shape.iter()).enumerate() {
            let size = sizes.entry(label).or_insert(dim);
            let broadcast = matches!(label, Label::Ellipsis(_));
            match (*size, dim) {
                (a, b) if a == b => {}
                (1, dim) if broadcast => *size = dim,
                (_, 1) if broadcast => {}
                (size, dim) => bail!(
                    InvalidArgument,
                    "Expected dimension {size} at axis {axis} of the input shaped {shape} but got \
                     dimension {dim}"
                ),
            }
        }
    }
    Ok(sizes)
}

/// An operand: its elements, and a stride for every label it has.
struct Operand {
    tensor: Tensor,
    strides: BTreeMap<Label, usize>,
}

impl Operand {
    /// Repeated labels step along the diagonal. A dimension of size one that broadcasts does not
    /// step.
    fn new(t: &Tensor, labels: &[Label], sizes: &BTreeMap<Label, usize>) -> Operand {
        let mut strides = BTreeMap::new();
        for ((label, &dim), stride) in labels.iter().zip(t.shape().iter()).zip(t.shape().strides())
        {
            let walks = dim == sizes[label];
            *strides.entry(*label).or_insert(0) += if walks { stride } else { 0 };
        }
        Operand { tensor: t.clone(), strides }
    }

    fn has(&self, label: &Label) -> bool {
        self.strides.contains_key(label)
    }

    /// Its elements in the order of `labels`, all of which it has. Makes no copy if they are in
    /// that order already.
    fn ordered<T: Product>(
        &self,
        labels: &[Label],
        sizes: &BTreeMap<Label, usize>,
    ) -> Result<Tensor> {
        if self.is_ordered(labels, sizes) {
            return Ok(self.tensor.clone());
        }
        let dims: Shape = labels.iter().map(|l| sizes[l]).collect();
        let strides: Vec<usize> = labels.iter().map(|l| self.strides[l]).collect();
        let mut out = Tensor::alloc(T::DTYPE, dims.clone())?;
        gather(self.tensor.as_slice::<T>()?, &dims, &strides, out.as_mut_slice()?);
        Ok(out)
    }

    fn is_ordered(&self, labels: &[Label], sizes: &BTreeMap<Label, usize>) -> bool {
        let dims: Shape = labels.iter().map(|l| sizes[l]).collect();
        let strides = labels.iter().map(|l| self.strides[l]);
        let dense = dims.iter().zip(dims.strides()).zip(strides);
        dims.elements() == self.tensor.elements()
            && dense.into_iter().all(|((&dim, want), is)| dim == 1 || want == is)
    }
}

/// Writes the elements that `strides` reach, row by row.
fn gather<T: Copy>(data: &[T], dims: &[usize], strides: &[usize], out: &mut [T]) {
    let Some((&last, outer)) = dims.split_last() else {
        out[0] = data[0];
        return;
    };
    if out.is_empty() {
        return;
    }
    let step = strides[outer.len()];
    let mut index = vec![0; outer.len()];
    let mut at = 0;
    for row in out.chunks_exact_mut(last) {
        for (i, out) in row.iter_mut().enumerate() {
            *out = data[at + i * step];
        }
        for d in (0..outer.len()).rev() {
            index[d] += 1;
            at += strides[d];
            if index[d] < outer[d] {
                break;
            }
            at -= strides[d] * outer[d];
            index[d] = 0;
        }
    }
}

/// Sums rows of `n`.
fn summed<T: Product>(x: Tensor, rows: usize, n: usize) -> Result<Tensor> {
    if n == 1 {
        return Ok(x);
    }
    let mut out = Tensor::zeros(T::DTYPE, [rows])?;
    if rows == 0 || n == 0 {
        return Ok(out);
    }
    // Sums through a product with ones, because halves must be summed in single precision.
    let ones = vec![T::ONE; n];
    let x = Mat::new(x.as_slice::<T>()?, rows, n);
    product(x, Mat::new(&ones, n, 1), out.as_mut_slice()?, ProductThreads::All);
    Ok(out)
}

struct Einsum<T> {
    equation: Equation,
    marker: std::marker::PhantomData<T>,
}

/// Products and sums of one or two tensors of type `T`.
pub(crate) fn einsum<T: Product>(equation: &str, inputs: &[&Tensor]) -> Result<Tensor> {
    let equation = Equation::parse(equation)?;
    Einsum::<T> { equation, marker: std::marker::PhantomData }.run(inputs)
}

impl<T: Product> Einsum<T> {
    fn new(init: &KernelInit<'_>) -> Result<Self> {
        let equation = Equation::parse(&init.string("equation")?)?;
        Ok(Einsum { equation, marker: std::marker::PhantomData })
    }
}

impl<T: Product> Einsum<T> {
    fn run(&self, inputs: &[&Tensor]) -> Result<Tensor> {
        let ranks: Vec<usize> = inputs.iter().map(|t| t.rank()).collect();
        let (labels, broadcast) = self.equation.labels(&ranks)?;
        let shapes: Vec<&Shape> = inputs.iter().map(|t| t.shape()).collect();
        let sizes = sizes(&labels, &shapes)?;
        // Labels of the output that no operand has are ignored.
        let mut output = self.equation.output.labels(broadcast);
        output.retain(|label| sizes.contains_key(label));
        let operands: Vec<Operand> =
            inputs.iter().zip(&labels).map(|(t, l)| Operand::new(t, l, &sizes)).collect();
        // The result's dimensions: every label of the output once.
        let mut order: Vec<Label> = Vec::new();
        for label in &output {
            if !order.contains(label) {
                order.push(*label);
            }
        }
        let result = match operands.as_slice() {
            [x] => contract_one::<T>(x, &order, &sizes)?,
            [x, y] => contract_two::<T>(x, y, &mut order, &sizes)?,
            _ => bail!(Internal, "an equation has one or two operands"),
        };
        arranged::<T>(result, &order, &output, &sizes)
    }
}

impl<T: Product> Kernel for Einsum<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let y = self.run(&ctx.inputs(0..ctx.num_inputs())?)?;
        ctx.set(0, y)
    }
}

/// Sums the labels that are not in `order`.
fn contract_one<T: Product>(
    x: &Operand,
    order: &[Label],
    sizes: &BTreeMap<Label, usize>,
) -> Result<Tensor> {
    let gone: Vec<Label> = x.strides.keys().filter(|l| !order.contains(l)).copied().collect();
    let rows = order.iter().map(|l| sizes[l]).product();
    let n = gone.iter().map(|l| sizes[l]).product();
    let all: Vec<Label> = order.iter().chain(&gone).copied().collect();
    summed::<T>(x.ordered::<T>(&all, sizes)?, rows, n)
}

/// Multiplies, and sums the labels that are not in `order`, which becomes the result's order.
fn contract_two<T: Product>(
    x: &Operand,
    y: &Operand,
    order: &mut Vec<Label>,
    sizes: &BTreeMap<Label, usize>,
) -> Result<Tensor> {
    let chosen = |which: &dyn Fn(&Label) -> bool| -> Vec<Label> {
        order.iter().filter(|l| which(l)).copied().collect()
    };
    let batch = chosen(&|l| x.has(l) && y.has(l));
    let free_x = chosen(&|l| x.has(l) && !y.has(l));
    let free_y = chosen(&|l| !x.has(l) && y.has(l));
    let contracted: Vec<Label> =
        x.strides.keys().filter(|l| y.has(l) && !order.contains(l)).copied().collect();
    let size = |labels: &[Label]| labels.iter().map(|l| sizes[l]).product::<usize>();
    let (m, n, k) = (size(&free_x), size(&free_y), size(&contracted));
    // Brings an operand to `[batch, free, contracted]` and sums the labels that only it has.
    let prepared = |operand: &Operand, free: &[Label]| -> Result<Tensor> {
        let mut order: Vec<Label> = [&batch, free, &contracted].concat();
        let rows = Shape::from_iter(order.iter().map(|l| sizes[l])).checked_elements()?;
        let gone: Vec<Label> =
            operand.strides.keys().filter(|l| !order.contains(l)).copied().collect();
        order.extend(&gone);
        summed::<T>(operand.ordered::<T>(&order, sizes)?, rows, size(&gone))
    };
    let left = prepared(x, &free_x)?;
    // Uses the right operand without a copy if its memory is `[batch, contracted, free]` already.
    let as_is: Vec<Label> = [batch.as_slice(), &contracted, &free_y].concat();
    let straight = y.strides.len() == as_is.len() && y.is_ordered(&as_is, sizes);
    let right = if straight { y.tensor.clone() } else { prepared(y, &free_y)? };
    *order = [batch.as_slice(), &free_x, &free_y].concat();
    let mut out = Tensor::alloc(T::DTYPE, order.iter().map(|l| sizes[l]).collect::<Shape>())?;
    let (left, right) = (left.as_slice::<T>()?, right.as_slice::<T>()?);
    let data = out.as_mut_slice::<T>()?;
    if !data.is_empty() {
        for (i, out) in data.chunks_exact_mut(m * n).enumerate() {
            let a = Mat::new(&left[i * m * k..(i + 1) * m * k], m, k);
            let data = &right[i * n * k..(i + 1) * n * k];
            let b = match straight {
                true => Mat::new(data, k, n),
                false => Mat::new(data, n, k).transposed(),
            };
            product(a, b, out, ProductThreads::All);
        }
    }
    Ok(out)
}

/// Brings a result whose dimensions are `order` to `output`; a label that `output` repeats fills
/// a diagonal.
fn arranged<T: Product>(
    result: Tensor,
    order: &[Label],
    output: &[Label],
    sizes: &BTreeMap<Label, usize>,
) -> Result<Tensor> {
    let shape: Shape = output.iter().map(|l| sizes[l]).collect();
    if output == order {
        return result.into_shape(shape);
    }
    let from: Shape = order.iter().map(|l| sizes[l]).collect();
    let x = result.as_slice::<T>()?;
    let mut y = Tensor::zeros(T::DTYPE, shape.clone())?;
    let data = y.as_mut_slice::<T>()?;
    if output.len() == order.len() {
        // A plain permutation: read where the output goes.
        let strides = from.strides();
        let position = |l: &Label| order.iter().position(|o| o == l).expect("same labels");
        let reads: Vec<usize> = output.iter().map(|l| strides[position(l)]).collect();
        gather(x, &shape, &reads, data);
        return Ok(y);
    }
    let mut strides: BTreeMap<Label, usize> = BTreeMap::new();
    for (label, stride) in output.iter().zip(shape.strides()) {
        *strides.entry(*label).or_insert(0) += stride;
    }
    let source = from.strides();
    for (i, x) in x.iter().enumerate() {
        let at = |d: usize| i / source[d] % from[d] * strides[&order[d]];
        data[(0..from.rank()).map(at).sum::<usize>()] = *x;
    }
    Ok(y)
}

pub(crate) fn einsum_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let equation = Equation::parse(&c.attrs.string("equation")?)?;
    let ranks: Option<Vec<usize>> = c.inputs.iter().map(|s| s.rank()).collect();
    let Some(ranks) = ranks else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let (labels, broadcast) = equation.labels(&ranks)?;
    let mut sizes: BTreeMap<Label, Option<usize>> = BTreeMap::new();
    for (labels, shape) in labels.iter().zip(c.inputs) {
        for (&label, &dim) in labels.iter().zip(shape.dims().unwrap_or_default()) {
            let size = sizes.entry(label).or_insert(dim);
            *size = match (*size, dim) {
                (Some(1), d) | (d, Some(1)) if matches!(label, Label::Ellipsis(_)) => d,
                (a, b) => a.or(b),
            };
        }
    }
    let output = equation.output.labels(broadcast);
    Ok(vec![PartialShape::new(output.iter().filter_map(|l| sizes.get(l).copied()))])
}

pub(crate) fn einsum_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let equation = g.attrs().string("equation")?;
    let Some((inputs, output)) = equation.split_once("->") else {
        bail!(InvalidArgument, "equation '{equation}' has no '->'");
    };
    let dy = dy[0];
    let Some((x_labels, y_labels)) = inputs.split_once(',') else {
        return Ok(vec![operand_gradient(g, dy, None, g.input(0), inputs, output)]);
    };
    // Broadcast dimensions belong to both operands.
    let with_rest = |labels: &str| match output.contains("...") && !labels.contains("...") {
        true => format!("{labels}..."),
        false => labels.to_string(),
    };
    let (x_labels, y_labels) = (with_rest(x_labels), with_rest(y_labels));
    let (x, y) = (g.input(0), g.input(1));
    let dx = operand_gradient(g, dy, Some((y.conj(), &y_labels)), x, &x_labels, output);
    let d_other = operand_gradient(g, dy, Some((x.conj(), &x_labels)), y, &y_labels, output);
    if !output.contains("...") {
        return Ok(vec![dx, d_other]);
    }
    let middle = |t: Term<'g>, labels: &str| {
        let (before, after) = labels.split_once("...").unwrap_or((labels, ""));
        let (first, last) = (before.len() as i64, -(after.len() as i64));
        let attrs = Attrs::new().with("end_mask", i64::from(last == 0));
        let ends = [t.shape(), g.ints(&[first]), g.ints(&[last]), g.ints(&[1])];
        (first, g.call_with("StridedSlice", &ends, attrs))
    };
    let ((x_first, x_rest), (y_first, y_rest)) = (middle(x, &x_labels), middle(y, &y_labels));
    let axes = g.calls("BroadcastGradientArgs", &[x_rest, y_rest]);
    let of = |d: Term<'g>, axes: Term<'g>, first: i64, like: Term<'g>| {
        d.sum(axes + first as f64, false).reshape(like.shape())
    };
    Ok(vec![of(dx, axes[0], x_first, x), of(d_other, axes[1], y_first, y)])
}

/// The gradient of one operand: the product of the output's gradient and the other operand,
/// repeated along the labels that were summed.
fn operand_gradient<'g>(
    g: &GradientScope<'g>,
    dy: Term<'g>,
    other: Option<(Term<'g>, &str)>,
    x: Term<'g>,
    labels: &str,
    output: &str,
) -> Term<'g> {
    let others = other.map_or("", |(_, labels)| labels);
    let is_lost = |c: char| c != '.' && !output.contains(c) && !others.contains(c);
    let kept: String = labels.chars().filter(|&c| !is_lost(c)).collect();
    let einsum = |inputs: &[Term<'g>], equation: String| {
        g.call_with("Einsum", inputs, Attrs::new().with("equation", equation.as_str()))
    };
    let (product, have) = match other {
        Some((y, others)) => {
            // A label that occurs twice in the operand means its diagonal; the gradient is put
            // there below.
            let mut once = String::new();
            for c in kept.chars() {
                if c == '.' || !once.contains(c) {
                    once.push(c);
                }
            }
            (einsum(&[dy, y], format!("{output},{others}->{once}")), once)
        }
        None => (dy, output.to_string()),
    };
    let mut lost = String::new();
    labels.chars().filter(|&c| is_lost(c)).for_each(|c| {
        if !lost.contains(c) {
            lost.push(c);
        }
    });
    if lost.is_empty() {
        return match have == labels {
            true => product,
            false => einsum(&[product], format!("{have}->{labels}")),
        };
    }
    let (before, after) = labels.split_once("...").unwrap_or((labels, ""));
    let rank = x.rank_term();
    let lengths: Vec<Term<'g>> = lost
        .chars()
        .map(|c| match before.find(c) {
            Some(axis) => g.call("GatherV2", &[x.shape(), g.ints(&[axis as i64]), g.int(0)]),
            None => {
                let axis = after.find(c).unwrap_or(0) as f64 - after.len() as f64;
                g.call("GatherV2", &[x.shape(), (rank + axis).expand_dims(0), g.int(0)])
            }
        })
        .collect();
    let ones = g.ints(&vec![1; lost.len()]);
    let mut wide = lengths;
    wide.push(product.shape());
    let repeated = g.call(
        "BroadcastTo",
        &[product.reshape(g.concat(&[ones, product.shape()], 0)), g.concat(&wide, 0)],
    );
    einsum(&[repeated], format!("{lost}{have}->{labels}"))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Einsum")
        .work(work::any)
        .doc("Products and sums over the dimensions that an equation names.")
        .input("inputs: N * T")
        .output("output: T")
        .attr("equation: string")
        .attr("N: int >= 1")
        .attr("T: type")
        .expensive()
        .shape(einsum_shape)
        .cpu(per_dtype!(
            [Half f16, BFloat16 bf16, Float f32, Double f64, Int32 i32, Int64 i64,
             Complex64 Complex32, Complex128 Complex64],
            init, T => Einsum::<T>::new(init)?
        ));
    c.gradient("Einsum", einsum_gradient);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn counted(dims: &[usize]) -> Tensor {
        let n: usize = dims.iter().product();
        let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
        Tensor::from_slice(dims, &values).unwrap()
    }

    fn einsum(equation: &str, inputs: &[Tensor]) -> Check<'static> {
        let check = check("Einsum").attr("equation", equation);
        inputs.iter().fold(check, |check, t| check.input(t.clone()))
    }

    fn t<const N: usize>(dims: &[usize], values: [f32; N]) -> Tensor {
        Tensor::from_slice(dims, &values).unwrap()
    }

    #[test]
    fn one_operand_is_summed_transposed_and_traced() {
        let x = [counted(&[2, 3])];
        einsum("ij->ji", &x).gives(t(&[3, 2], [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
        einsum("ij->j", &x).gives(t(&[3], [3.0, 5.0, 7.0]));
        einsum("ij->", &x).gives(t(&[], [15.0]));
        einsum("...i->...", &x).gives(t(&[2], [3.0, 12.0]));
        einsum("ij->k", &x).gives(t(&[], [15.0]));
        let square = [counted(&[2, 2])];
        einsum("ii->i", &square).gives(t(&[2], [0.0, 3.0]));
        einsum("ii->", &square).gives(t(&[], [3.0]));
        einsum("i->ii", &[t(&[2], [1.0, 2.0])]).gives(t(&[2, 2], [1.0, 0.0, 0.0, 2.0]));
        einsum("->", &[Tensor::scalar(2f32)]).gives(Tensor::scalar(2f32));
    }

    #[test]
    fn two_operands_are_multiplied() {
        let (a, b) = (counted(&[2, 3]), counted(&[3, 2]));
        let ab = [10.0, 13.0, 28.0, 40.0];
        einsum("ij,jk->ik", &[a.clone(), b.clone()]).gives(t(&[2, 2], ab));
        einsum("jk,ij->ik", &[b.clone(), a.clone()]).gives(t(&[2, 2], ab));
        einsum("ij,jk->ki", &[a, b]).gives(t(&[2, 2], [10.0, 28.0, 13.0, 40.0]));
        let (v, w) = (t(&[2], [1.0, 2.0]), t(&[2], [3.0, 4.0]));
        einsum("i,j->", &[v.clone(), w.clone()]).gives(t(&[], [21.0]));
        einsum("i,i->i", &[v.clone(), w.clone()]).gives(t(&[2], [3.0, 8.0]));
        einsum("i,j->ij", &[v, w]).gives(t(&[2, 2], [3.0, 4.0, 6.0, 8.0]));
        let two = [Tensor::scalar(2f32), Tensor::scalar(3f32)];
        einsum(",->", &two).gives(Tensor::scalar(6f32));
        let (p, q) = (counted(&[2, 2, 3]), counted(&[3, 2, 2]));
        einsum("iij,jkk->ik", &[p, q]).gives(t(&[2, 2], [20.0, 29.0, 128.0, 218.0]));
    }

    #[test]
    fn ellipses_broadcast() {
        let (x, y) = (counted(&[2, 1, 1, 2]), counted(&[3, 2, 1]));
        let want = t(&[2, 3, 1, 1], [1.0, 3.0, 5.0, 3.0, 13.0, 23.0]);
        einsum("...ij,...jk->...ik", &[x, y]).gives(want);
        let (x, y) = (counted(&[2, 3]), counted(&[3, 1]));
        let want = t(&[3, 2, 1], [0.0, 0.0, 1.0, 4.0, 4.0, 10.0]);
        einsum("i...,...j->...ij", &[x, y]).gives(want);
    }

    #[test]
    fn wrong_equations_are_refused() {
        let a = || counted(&[2, 3]);
        let fails = |equation: &str, inputs: &[Tensor], text: &str| {
            einsum(equation, inputs).fails(Code::InvalidArgument, text)
        };
        fails("ij", &[a()], "Expecting exactly one '->' in einsum equation: ij");
        let text = "Expecting 1 or 2 input subscripts in equation 'i,j,k->' but got: 3";
        fails("i,j,k->", &[a()], text);
        fails("i->i", &[a()], "Expected input 0 to have rank 1 but got: 2");
        let text = "Output contains 1 broadcasting dimension(s) but no ellipsis (...) was found";
        fails("...i->i", &[a()], text);
        let text = "Expected dimension 3 at axis 0 of the input shaped [4,2] but got dimension 4";
        fails("ij,jk->ik", &[a(), counted(&[4, 2])], text);
        fails("i.j->", &[a()], "Periods found outside of ellipsis");
    }
}
