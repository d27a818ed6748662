//! Gradients of the ops on compressed sparse matrices. The gradient of a sparse matrix has entries
//! only where the matrix has them.

use crate::prelude::*;

/// How a factor enters a product.
#[derive(Clone, Copy, PartialEq)]
enum Turned {
    No,
    Transposed,
    Adjoint,
    Conjugated,
}
use Turned::{Adjoint, Conjugated, No, Transposed};

impl Turned {
    /// How the factor `a` or `b` of the node enters.
    fn of(g: &GradientScope<'_>, factor: char) -> Result<Turned> {
        let is = |what: &str| g.attrs().bool(&format!("{what}_{factor}"));
        Ok(match (is("transpose")?, is("adjoint")?) {
            (_, true) => Adjoint,
            (true, false) => Transposed,
            (false, false) => No,
        })
    }

    fn adjoint(self) -> Turned {
        match self {
            No => Adjoint,
            Transposed => Conjugated,
            Adjoint => No,
            Conjugated => Transposed,
        }
    }

    fn conjugated(self) -> Turned {
        match self {
            No => Conjugated,
            Transposed => Adjoint,
            Adjoint => Transposed,
            Conjugated => No,
        }
    }
}

/// The places, values and shape of a sparse matrix.
fn entries<'g>(g: &GradientScope<'g>, matrix: Term<'g>, dtype: DType) -> Vec<Term<'g>> {
    g.calls_with("CSRSparseMatrixToSparseTensor", &[matrix], Attrs::new().with("type", dtype))
}

fn matrix_of<'g>(g: &GradientScope<'g>, [at, values, shape]: [Term<'g>; 3]) -> Term<'g> {
    g.call("SparseTensorToCSRSparseMatrix", &[at, values, shape])
}

/// Columns `from..to` of places; `to` may be counted from the end.
fn columns<'g>(g: &GradientScope<'g>, at: Term<'g>, from: i64, to: Option<i64>) -> Term<'g> {
    let attrs = Attrs::new()
        .with("begin_mask", if from == 0 { 3i64 } else { 1 })
        .with("end_mask", if to.is_none() { 3i64 } else { 1 });
    let ends = [at, g.ints(&[0, from]), g.ints(&[0, to.unwrap_or(0)]), g.ints(&[1, 1])];
    g.call_with("StridedSlice", &ends, attrs)
}

fn dense_turned<'g>(g: &GradientScope<'g>, x: Term<'g>, turned: Turned) -> Term<'g> {
    match turned {
        No => x,
        Transposed => g.matrix_transpose(x),
        Adjoint => g.adjoint(x),
        Conjugated => x.conj(),
    }
}

/// A sparse matrix times a dense one.
fn product_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (a, b, dtype) = (g.input(0), g.input(1), g.attrs().dtype("T")?);
    let (turned_a, turned_b) = (Turned::of(g, 'a')?, Turned::of(g, 'b')?);
    let dy = if g.attrs().bool("transpose_output")? { g.matrix_transpose(dy[0]) } else { dy[0] };
    let dy = if g.attrs().bool("conjugate_output")? { dy.conj() } else { dy };
    let factor = dense_turned(g, b, turned_b);
    // An entry of the sparse factor's gradient is the inner product of a row of each.
    let (left, right) = match turned_a {
        Transposed => (factor.conj(), dy),
        Adjoint => (factor, dy.conj()),
        _ => (dy, factor.conj()),
    };
    let found = entries(g, a, dtype);
    let (at, shape) = (found[0], found[2]);
    let rows = columns(g, at, 0, Some(-1));
    let batch_and_column = [columns(g, at, 0, Some(-2)), columns(g, at, -1, None)];
    let of_right = g.concat(&batch_and_column, 1);
    let pick = |from: Term<'g>, at: Term<'g>| g.call("GatherNd", &[from, at]);
    let values = (pick(left, rows) * pick(right, of_right)).sum(g.ints(&[-1]), false);
    let da = matrix_of(g, [at, values, shape]);
    // Only the sparse factor has to be conjugated: conjugate the dense one and the product instead.
    let of_a = turned_a.adjoint();
    let (dense, is_conjugated) = if of_a == Conjugated { (dy.conj(), true) } else { (dy, false) };
    let is_turned = matches!(turned_b, Transposed | Adjoint);
    let attrs = Attrs::new()
        .with("adjoint_a", of_a == Adjoint)
        .with("transpose_a", of_a == Transposed)
        .with("transpose_output", is_turned)
        .with("conjugate_output", is_conjugated != (turned_b == Adjoint));
    let db = g.call_with("SparseMatrixMatMul", &[a, dense], attrs);
    Ok(vec![da, db])
}

/// A product of two sparse matrices of `dtype`.
fn product<'g>(
    g: &GradientScope<'g>,
    (a, turned_a): (Term<'g>, Turned),
    (b, turned_b): (Term<'g>, Turned),
    dtype: DType,
) -> Term<'g> {
    let plain = |x: Term<'g>, turned: Turned| match turned {
        Conjugated => {
            let attrs = Attrs::new().with("conjugate", true).with("type", dtype);
            (g.call_with("SparseMatrixTranspose", &[x], attrs), Transposed)
        }
        other => (x, other),
    };
    let ((a, turned_a), (b, turned_b)) = (plain(a, turned_a), plain(b, turned_b));
    let attrs = Attrs::new()
        .with("type", dtype)
        .with("transpose_a", turned_a == Transposed)
        .with("adjoint_a", turned_a == Adjoint)
        .with("transpose_b", turned_b == Transposed)
        .with("adjoint_b", turned_b == Adjoint);
    g.call_with("SparseMatrixSparseMatMul", &[a, b], attrs)
}

/// The entries of `x` at the places where `pattern` has some.
fn restricted<'g>(g: &GradientScope<'g>, x: Term<'g>, pattern: Term<'g>, dtype: DType) -> Term<'g> {
    let (found, wanted) = (entries(g, x, dtype), entries(g, pattern, dtype));
    let flat = |entries: &[Term<'g>]| {
        let all = g.integers(&[-1], DType::Int64);
        let places = g.calls("SparseReshape", &[entries[0], entries[2], all])[0];
        g.call("Reshape", &[places, g.ints(&[-1])])
    };
    let (places, wanted_places) = (flat(&found), flat(&wanted));
    // A sentinel that equals no place follows the last one, so that each search finds an end.
    let none = g.integers(&[i64::MAX], DType::Int64);
    let places = g.concat(&[places, none], 0);
    let row = |x: Term<'g>| g.call("ExpandDims", &[x, g.int(0)]);
    let nearest = g.call("LowerBound", &[row(places), row(wanted_places)]);
    let nearest = g.call("Reshape", &[nearest, g.ints(&[-1])]);
    let pick = |from: Term<'g>, at: Term<'g>| g.call("GatherV2", &[from, at, g.int(0)]);
    let equal = g.call("Equal", &[pick(places, nearest), wanted_places]);
    let kept = g.call("Reshape", &[g.call("Where", &[equal]), g.ints(&[-1])]);
    let values = pick(found[1], pick(nearest, kept));
    matrix_of(g, [pick(wanted[0], kept), values, wanted[2]])
}

fn sparse_product_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (a, b, dy, dtype) = (g.input(0), g.input(1), dy[0], g.attrs().dtype("type")?);
    let (turned_a, turned_b) = (Turned::of(g, 'a')?, Turned::of(g, 'b')?);
    let da = match turned_a {
        Transposed => product(g, (b, turned_b.conjugated()), (dy, Transposed), dtype),
        Adjoint => product(g, (b, turned_b), (dy, Adjoint), dtype),
        _ => product(g, (dy, No), (b, turned_b.adjoint()), dtype),
    };
    let db = match turned_b {
        Transposed => product(g, (dy, Transposed), (a, turned_a.conjugated()), dtype),
        Adjoint => product(g, (dy, Adjoint), (a, turned_a), dtype),
        _ => product(g, (a, turned_a.adjoint()), (dy, No), dtype),
    };
    Ok(vec![restricted(g, da, a, dtype), restricted(g, db, b, dtype)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.gradient("DenseToCSRSparseMatrix", |g, dy| {
        let attrs = Attrs::new().with("type", g.attrs().dtype("T")?);
        Ok(g.only(g.call_with("CSRSparseMatrixToDense", &[dy[0]], attrs)))
    });
    c.gradient("CSRSparseMatrixToDense", |g, dy| {
        let found = entries(g, g.input(0), g.attrs().dtype("type")?);
        let values = g.call("GatherNd", &[dy[0], found[0]]);
        Ok(vec![matrix_of(g, [found[0], values, found[2]])])
    });
    c.gradient("SparseTensorToCSRSparseMatrix", |g, dy| {
        Ok(g.at(1, entries(g, dy[0], g.attrs().dtype("T")?)[1]))
    });
    c.gradient("CSRSparseMatrixToSparseTensor", |g, dy| {
        Ok(vec![matrix_of(g, [g.output(0), dy[1], g.output(2)])])
    });
    c.gradient("SparseMatrixTranspose", |g, dy| {
        let attrs = g.same_attrs(&["conjugate", "type"]);
        Ok(vec![g.call_with("SparseMatrixTranspose", &[dy[0]], attrs)])
    });
    c.gradient("SparseMatrixMatMul", product_gradient);
    c.gradient("SparseMatrixSparseMatMul", sparse_product_gradient);
    c.no_gradient(&["SparseMatrixNNZ"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::catalog;
    use ferroflow_core::{Complex32, PartialShape};
    use ferroflow_graph::{Endpoint, EndpointGradient, GradientOptions, GraphIr, gradients};
    use ferroflow_testing::evaluate;

    /// A graph and the values of its placeholders.
    struct Model {
        graph: GraphIr,
        feeds: Vec<(Endpoint, Tensor)>,
        dtype: DType,
    }

    impl Model {
        fn new(dtype: DType) -> Model {
            Model { graph: GraphIr::default(), feeds: Vec::new(), dtype }
        }

        fn op(&mut self, op: &str, inputs: &[Endpoint], mut attrs: Attrs) -> Endpoint {
            let def = catalog().get(op).unwrap().clone();
            let types: Vec<DType> = inputs.iter().map(|&e| self.graph.type_of(e).dtype).collect();
            def.attrs_from_inputs(&types, &mut attrs);
            let name = format!("n{}", self.graph.len());
            Endpoint::new(self.graph.add(name, def, attrs, inputs.to_vec(), vec![]).unwrap(), 0)
        }

        fn placeholder(&mut self, value: &Tensor) -> Endpoint {
            let shape = PartialShape::from(value.shape());
            let attrs = Attrs::new().with("dtype", value.dtype()).with("shape", shape);
            let e = self.op("Placeholder", &[], attrs);
            self.feeds.push((e, value.clone()));
            e
        }

        fn constant(&mut self, value: Tensor) -> Endpoint {
            let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
            self.op("Const", &[], attrs)
        }

        fn turned(&mut self, x: Endpoint, turned: Turned, rank: usize) -> Endpoint {
            let mut x = x;
            if matches!(turned, Transposed | Adjoint) {
                let order: &[i32] = if rank == 2 { &[1, 0] } else { &[0, 2, 1] };
                let order = self.constant(Tensor::vector(order));
                x = self.op("Transpose", &[x, order], Attrs::new());
            }
            let is_real = self.dtype == DType::Float;
            match turned {
                Adjoint | Conjugated if !is_real => self.op("Conj", &[x], Attrs::new()),
                _ => x,
            }
        }

        /// The sparse matrix with the entries of `x` that are not zero.
        fn sparse(&mut self, x: Endpoint, places: &Tensor) -> Endpoint {
            let places = self.constant(places.clone());
            self.op("DenseToCSRSparseMatrix", &[x, places], Attrs::new())
        }

        /// The gradients of `y` by `xs`, for the gradient `dy` of `y`.
        fn gradients(&mut self, y: Endpoint, xs: &[Endpoint], dy: &Tensor) -> Vec<Tensor> {
            let dy = self.placeholder(dy);
            let options = GradientOptions { grad_ys: vec![Some(dy)], ..GradientOptions::default() };
            let found = gradients(&mut self.graph, catalog(), &[y], xs, &options).unwrap();
            let found: Vec<Endpoint> =
                found.into_iter().map(|g| g.and_then(EndpointGradient::tensor).unwrap()).collect();
            evaluate(&self.graph, &self.feeds, &found).unwrap()
        }
    }

    fn flags(turned: Turned, factor: char) -> [(String, bool); 2] {
        [
            (format!("transpose_{factor}"), turned == Transposed),
            (format!("adjoint_{factor}"), turned == Adjoint),
        ]
    }

    /// Numbers that repeat for a seed; about a third are zero.
    fn numbers(dtype: DType, dims: &[usize], seed: u64) -> Tensor {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) % 19) as f32 / 4.0 - 2.25
        };
        let count = dims.iter().product();
        let values: Vec<Complex32> = (0..count)
            .map(|_| match next() {
                x if x < -1.0 => Complex32::new(0.0, 0.0),
                x => Complex32::new(x, next()),
            })
            .collect();
        match dtype {
            DType::Float => {
                let real: Vec<f32> = values.iter().map(|z| z.re).collect();
                Tensor::from_slice(dims.to_vec(), &real).unwrap()
            }
            _ => Tensor::from_slice(dims.to_vec(), &values).unwrap(),
        }
    }

    fn values(x: &Tensor) -> Vec<Complex32> {
        match x.dtype() {
            DType::Float => {
                x.as_slice::<f32>().unwrap().iter().map(|&x| Complex32::new(x, 0.0)).collect()
            }
            _ => x.as_slice::<Complex32>().unwrap().to_vec(),
        }
    }

    /// The places of the entries that are not zero.
    fn places(x: &Tensor) -> Tensor {
        let dims = x.shape().dims().to_vec();
        let mut all: Vec<i64> = Vec::new();
        for (i, _) in values(x).iter().enumerate().filter(|(_, z)| z.norm_sqr() != 0.0) {
            let mut left = i;
            let mut place: Vec<i64> = dims
                .iter()
                .rev()
                .map(|d| {
                    let at = left % d;
                    left /= d;
                    at as i64
                })
                .collect();
            place.reverse();
            all.extend(place);
        }
        Tensor::from_slice([all.len() / dims.len(), dims.len()], &all).unwrap()
    }

    /// `got` is `dense` where `x` has an entry, and zero elsewhere.
    #[track_caller]
    fn assert_restricted(got: &Tensor, dense: &Tensor, x: &Tensor, what: &str) {
        assert_eq!(got.shape(), dense.shape(), "{what}");
        for (i, z) in values(x).iter().enumerate() {
            let is_there = z.norm_sqr() != 0.0;
            let want = if is_there { values(dense)[i] } else { Complex32::new(0.0, 0.0) };
            let off = (values(got)[i] - want).norm();
            assert!(off < 1e-4, "{what}: {} is not {want} at {i}", values(got)[i]);
        }
    }

    const TURNS: [Turned; 3] = [No, Transposed, Adjoint];

    /// The sizes of the stored factor. After transposition it is `rows` by `columns`.
    fn stored(turned: Turned, rank: usize, rows: usize, columns: usize) -> Vec<usize> {
        let mut dims = vec![2; rank - 2];
        dims.extend(if turned == No { [rows, columns] } else { [columns, rows] });
        dims
    }

    fn each(mut check: impl FnMut(DType, usize, Turned, Turned)) {
        for dtype in [DType::Float, DType::Complex64] {
            for rank in [2, 3] {
                for a in TURNS {
                    for b in TURNS {
                        check(dtype, rank, a, b);
                    }
                }
            }
        }
    }

    #[test]
    fn gradients_of_products_with_dense_matrices_are_those_of_dense_products() {
        let mut cases = 0;
        each(|dtype, rank, turned_a, turned_b| {
            for of_output in [No, Transposed, Conjugated, Adjoint] {
                cases += 1;
                let a = numbers(dtype, &stored(turned_a, rank, 3, 4), cases);
                let b = numbers(dtype, &stored(turned_b, rank, 4, 5), cases + 1000);
                let is_turned = matches!(of_output, Transposed | Adjoint);
                let (rows, columns) = if is_turned { (5, 3) } else { (3, 5) };
                let dy = numbers(dtype, &stored(No, rank, rows, columns), cases + 2000);

                let mut m = Model::new(dtype);
                let (x, y) = (m.placeholder(&a), m.placeholder(&b));
                let sparse = m.sparse(x, &places(&a));
                let mut attrs = Attrs::new()
                    .with("T", dtype)
                    .with("transpose_output", is_turned)
                    .with("conjugate_output", matches!(of_output, Conjugated | Adjoint));
                for (name, is_set) in [flags(turned_a, 'a'), flags(turned_b, 'b')].concat() {
                    attrs.set(name, is_set);
                }
                let product = m.op("SparseMatrixMatMul", &[sparse, y], attrs);
                let value = evaluate(&m.graph, &m.feeds, &[product]).unwrap().remove(0);
                let got = m.gradients(product, &[x, y], &dy);

                let mut m = Model::new(dtype);
                let (x, y) = (m.placeholder(&a), m.placeholder(&b));
                let (l, r) = (m.turned(x, turned_a, rank), m.turned(y, turned_b, rank));
                let product = m.op("BatchMatMulV2", &[l, r], Attrs::new());
                let product = m.turned(product, of_output, rank);
                let dense_value = evaluate(&m.graph, &m.feeds, &[product]).unwrap().remove(0);
                let want = m.gradients(product, &[x, y], &dy);

                let what = format!("case {cases}, {dtype}, rank {rank}");
                let all = numbers(DType::Float, dense_value.shape().dims(), 1);
                let ones = vec![1f32; all.elements()];
                let all = Tensor::from_slice(all.shape().clone(), &ones).unwrap();
                assert_restricted(&value, &dense_value, &all, &what);
                assert_restricted(&got[0], &want[0], &a, &format!("{what}, the sparse factor"));
                let ones = Tensor::from_slice(b.shape().clone(), &vec![1f32; b.elements()]);
                let what = format!("{what}, the dense factor");
                assert_restricted(&got[1], &want[1], &ones.unwrap(), &what);
            }
        });
        assert_eq!(cases, 144);
    }

    #[test]
    fn gradients_of_sparse_products_are_those_of_dense_products() {
        let mut cases = 0;
        each(|dtype, rank, turned_a, turned_b| {
            cases += 1;
            let a = numbers(dtype, &stored(turned_a, rank, 3, 4), cases);
            let b = numbers(dtype, &stored(turned_b, rank, 4, 5), cases + 1000);
            let dy = numbers(dtype, &stored(No, rank, 3, 5), cases + 2000);

            let mut m = Model::new(dtype);
            let (x, y) = (m.placeholder(&a), m.placeholder(&b));
            let factors = [m.sparse(x, &places(&a)), m.sparse(y, &places(&b))];
            let mut attrs = Attrs::new().with("type", dtype);
            for (name, is_set) in [flags(turned_a, 'a'), flags(turned_b, 'b')].concat() {
                attrs.set(name, is_set);
            }
            let product = m.op("SparseMatrixSparseMatMul", &factors, attrs);
            let attrs = Attrs::new().with("type", dtype);
            let product = m.op("CSRSparseMatrixToDense", &[product], attrs);
            let got = m.gradients(product, &[x, y], &dy);

            let mut m = Model::new(dtype);
            let (x, y) = (m.placeholder(&a), m.placeholder(&b));
            let (l, r) = (m.turned(x, turned_a, rank), m.turned(y, turned_b, rank));
            let product = m.op("BatchMatMulV2", &[l, r], Attrs::new());
            let want = m.gradients(product, &[x, y], &dy);

            let what = format!("case {cases}, {dtype}, rank {rank}");
            assert_restricted(&got[0], &want[0], &a, &format!("{what}, factor a"));
            assert_restricted(&got[1], &want[1], &b, &format!("{what}, factor b"));
        });
        assert_eq!(cases, 36);
    }

    #[test]
    fn the_gradient_of_a_transpose_is_turned_back() {
        for dtype in [DType::Float, DType::Complex64] {
            for (conjugate, turned) in [(false, Transposed), (true, Adjoint)] {
                let a = numbers(dtype, &[3, 4], 5);
                let dy = numbers(dtype, &[4, 3], 6);
                let mut m = Model::new(dtype);
                let x = m.placeholder(&a);
                let sparse = m.sparse(x, &places(&a));
                let attrs = Attrs::new().with("conjugate", conjugate).with("type", dtype);
                let y = m.op("SparseMatrixTranspose", &[sparse], attrs);
                let y = m.op("CSRSparseMatrixToDense", &[y], Attrs::new().with("type", dtype));
                let got = m.gradients(y, &[x], &dy);
                let mut m = Model::new(dtype);
                let x = m.placeholder(&a);
                let y = m.turned(x, turned, 2);
                let want = m.gradients(y, &[x], &dy);
                assert_restricted(&got[0], &want[0], &a, &format!("{dtype}, {conjugate}"));
            }
        }
    }
}
