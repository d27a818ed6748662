//! The gradient of a loop made of functions: a backward loop. The forward loop gets additional
//! lists that keep the tensors of each iteration that the backward loop needs.

use super::context::ROOT;
use super::function::{DifferentiatedBody, function_def};
use super::scope::GradientScope;
use super::tape::Tape;
use super::term::Term;
use super::{GradientOptions, is_differentiable};
use crate::attr::{AttrList, AttrValue, Attrs, FuncRef};
use crate::def::FunctionDef;
use crate::function::FunctionGraph;
use crate::graph::{Endpoint, GraphIr, NodeId};
use ferroflow_core::{DType, PartialShape, Result, Tensor, ensure};

impl<'g> GradientScope<'g> {
    /// The gradient of a node that applies function `body` to all its inputs while function `cond`
    /// is true. `ops` are the stateful and the stateless op.
    pub fn while_gradient(
        &self,
        cond: &str,
        body: &str,
        ops: (&str, &str),
        dy: &[Term<'g>],
    ) -> Result<Vec<Term<'g>>> {
        ensure!(
            self.tape.state.borrow().places[self.node.index()] == ROOT,
            Unimplemented,
            "gradients of a loop of functions inside a v1 while loop are not defined"
        );
        let (cond_func, body_func) = (self.attrs().func(cond)?, self.attrs().func(body)?);
        let inputs = self.inputs();
        let count = inputs.len();
        let stated = self.attrs().shapes("output_shapes").unwrap_or_default();
        let active = self.active(&body_func, dy)?;
        if active.is_empty() {
            return Ok(vec![self.none(); count]);
        }
        // The initial gradients, with the shapes of the results.
        let mut start = Vec::new();
        for &k in &active {
            start.push(match inputs[k].dtype() {
                DType::Resource if dy[k].is_zero() => {
                    let zeros = self.tape.zeros_of(inputs[k].endpoint()?)?;
                    self.tape.term(zeros)
                }
                _ => dy[k].dense(),
            });
        }
        let live: Vec<(usize, DType)> =
            active.iter().zip(&start).map(|(&k, d)| (k, d.dtype())).collect();
        let mut body = self.differentiated(&body_func, &live, &stated)?;
        let mut returned = Vec::new();
        for (i, &k) in active.iter().enumerate() {
            returned.push(match body.dxs[k] {
                Some(e) => e,
                None => {
                    let dy = body.dys[i];
                    body.on_the_way_back(|tape| {
                        tape.op("ZerosLike", &[tape.term(dy)], Attrs::new())
                    })?
                }
            });
        }
        let crossing = body.crossing(&returned);
        let unchanged: Vec<Option<usize>> = crossing.iter().map(|e| unchanged(&body, *e)).collect();
        let kept: Vec<Endpoint> =
            crossing.iter().zip(&unchanged).filter(|(_, u)| u.is_none()).map(|(e, _)| *e).collect();

        // Forward: the same with a counter, and a list for each tensor that is kept. Made first,
        // because nodes that are added later belong to the backward function.
        let name = |base: &str| self.tape.function_name(&format!("{base}_{}", body_func.name));
        let (forward_name, backward_name) = (name("forward"), name("backward"));
        let (test_name, back_test_name) = (name("test"), name("backward_test"));
        let forward = keep_in_lists(&body, forward_name.clone(), &kept)?;
        let test = self.wider_test(&cond_func, test_name.clone(), kept.len())?;

        // Backward: takes the counter, the gradients, the lists and the values that do not change.
        let back =
            self.back_body(&mut body, backward_name.clone(), &crossing, &unchanged, &returned)?;
        let back_types: Vec<DType> = back.signature.inputs.iter().map(arg_type).collect();
        let back_test = back_condition(self.tape, back_test_name.clone(), &back_types)?;
        let stateful = body.is_stateful();
        self.tape.add_functions(body.library(), vec![forward, test, back, back_test])?;

        let zero = self.int(0).endpoint()?;
        let mut more = vec![zero];
        for &e in &kept {
            let attrs = Attrs::new().with("element_dtype", body.tape.type_of(e));
            let list = self.call_with("EmptyTensorList", &[self.int(-1), self.int(-1)], attrs);
            more.push(list.endpoint()?);
        }
        let named = |name: String| FuncRef { name, attrs: Attrs::new() };
        let mut attrs = self.attrs().clone();
        let mut types = attrs.dtypes("T")?;
        types.push(DType::Int32);
        types.resize(count + 1 + kept.len(), DType::Variant);
        attrs.set("T", types);
        attrs.set("cond", named(test_name));
        attrs.set("body", named(forward_name));
        attrs.remove("_output_shapes");
        attrs.remove("_num_original_outputs");
        if !stated.is_empty() {
            let mut shapes = stated;
            shapes.resize(count + 1 + kept.len(), PartialShape::scalar());
            attrs.set("output_shapes", shapes);
        }
        self.tape.replace(self.node, None, attrs, more)?;

        let out = |i: usize| self.tape.term(Endpoint::new(self.node, i));
        let mut back_inputs = vec![out(count)];
        back_inputs.extend(&start);
        back_inputs.extend((0..kept.len()).map(|i| out(count + 1 + i)));
        back_inputs.extend(unchanged.iter().flatten().map(|&k| inputs[k]));
        let attrs = Attrs::new()
            .with("cond", named(back_test_name))
            .with("body", named(backward_name))
            .with("output_shapes", AttrValue::List(AttrList::Empty));
        let op = if stateful { ops.0 } else { ops.1 };
        let found = self.calls_with(op, &back_inputs, attrs);
        let mut all = vec![self.none(); count];
        for (i, &k) in active.iter().enumerate() {
            all[k] = found.get(1 + i).copied().unwrap_or(self.none());
        }
        Ok(all)
    }

    /// The loop variables whose gradient may not be zero: those with a gradient, and those from
    /// which the body computes them.
    fn active(&self, body: &FuncRef, dy: &[Term<'g>]) -> Result<Vec<usize>> {
        let (library, catalog) = {
            let state = self.tape.state.borrow();
            (state.graph.library.clone(), state.catalog.clone())
        };
        let of = FunctionGraph::instantiate(body, &library, &catalog)?;
        let mut is_active: Vec<bool> = dy.iter().map(|d| !d.is_zero()).collect();
        let mut seen = vec![false; of.graph.len()];
        let roots = |k: usize| of.rets.get(k).copied();
        let mut queue: Vec<NodeId> =
            (0..dy.len()).filter(|&k| is_active[k]).filter_map(roots).collect();
        while let Some(id) = queue.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            if let Some(k) = of.args.iter().position(|&a| a == id)
                && let Some(active) = is_active.get_mut(k)
                && !*active
            {
                *active = true;
                queue.extend(roots(k));
            }
            queue.extend(of.graph.node(id).inputs.iter().map(|e| e.node));
        }
        let inputs = self.inputs();
        Ok((0..dy.len())
            .filter(|&k| is_active[k] && is_differentiable(inputs[k].dtype()))
            .collect())
    }

    /// The condition for a loop with a counter and `lists` additional lists.
    fn wider_test(&self, cond: &FuncRef, name: String, lists: usize) -> Result<FunctionDef> {
        let (library, catalog) = {
            let state = self.tape.state.borrow();
            (state.graph.library.clone(), state.catalog.clone())
        };
        let of = FunctionGraph::instantiate(cond, &library, &catalog)?;
        let args: Vec<Endpoint> = of.args.iter().map(|&n| Endpoint::new(n, 0)).collect();
        let results: Vec<Endpoint> = of.rets.iter().map(|&n| of.graph.node(n).inputs[0]).collect();
        let tape = Tape::new(of.graph, &catalog, &GradientOptions::default());
        let mut all = args.clone();
        all.push(argument(&tape, DType::Int32, args.len())?);
        for i in 0..lists {
            all.push(argument(&tape, DType::Variant, args.len() + 1 + i)?);
        }
        Ok(function_def(name, &tape.graph(), |_| true, &all, &results))
    }

    fn back_body(
        &self,
        body: &mut DifferentiatedBody,
        name: String,
        crossing: &[Endpoint],
        unchanged: &[Option<usize>],
        returned: &[Endpoint],
    ) -> Result<FunctionDef> {
        let dys = body.dys.clone();
        let mut args = Vec::new();
        let mut results = Vec::new();
        // The backward function reads forward tensors; now pops return them.
        let mut popped: Vec<(Endpoint, Endpoint)> = Vec::new();
        let (counter, next) = body.on_the_way_back(|tape| {
            let counter = argument(tape, DType::Int32, 1000)?;
            let one = tape.term(tape.number(1.0, DType::Int32)?);
            Ok((counter, (tape.term(counter) - tape.term(one.endpoint()?)).endpoint()?))
        })?;
        args.push(counter);
        results.push(next);
        args.extend(&dys);
        results.extend(returned);
        for (&e, _) in crossing.iter().zip(unchanged).filter(|(_, u)| u.is_none()) {
            let (list, rest, item) = body.on_the_way_back(|tape| {
                let list = argument(tape, DType::Variant, 2000)?;
                let any = tape.term(tape.number(-1.0, DType::Int32)?);
                let attrs = Attrs::new().with("element_dtype", tape.type_of(e));
                let node = tape.ops("TensorListPopBack", &[tape.term(list), any], attrs)?;
                Ok((list, Endpoint::new(node, 0), Endpoint::new(node, 1)))
            })?;
            args.push(list);
            results.push(rest);
            popped.push((e, item));
        }
        for (&e, _) in crossing.iter().zip(unchanged).filter(|(_, u)| u.is_some()) {
            args.push(e);
            results.push(e);
        }
        body.rewire(&popped);
        let swap = |e: Endpoint| popped.iter().find(|p| p.0 == e).map_or(e, |p| p.1);
        let results: Vec<Endpoint> = results.into_iter().map(swap).collect();
        Ok(body.backward(name, &args, &results))
    }
}

/// The argument that the body returns unchanged as this tensor, if it is one.
fn unchanged(body: &DifferentiatedBody, e: Endpoint) -> Option<usize> {
    let k = body.args.iter().position(|&a| a == e)?;
    let graph = body.tape.graph();
    let mut result = *body.results.get(k)?;
    loop {
        if result == e {
            return Some(k);
        }
        let node = graph.node(result.node);
        if node.op.role != crate::op_def::OpRole::Identity {
            return None;
        }
        result = *node.inputs.first()?;
    }
}

/// The body with a counter and a push onto a list for each tensor to keep.
fn keep_in_lists(
    body: &DifferentiatedBody,
    name: String,
    kept: &[Endpoint],
) -> Result<FunctionDef> {
    let tape = &body.tape;
    let counter = argument(tape, DType::Int32, body.args.len())?;
    let mut args = body.args.clone();
    args.push(counter);
    let mut results = body.results.clone();
    results.push((tape.term(counter) + 1.0).endpoint()?);
    for &e in kept {
        let list = argument(tape, DType::Variant, args.len())?;
        let inputs = [tape.term(list), tape.term(e)];
        results.push(tape.op("TensorListPushBack", &inputs, Attrs::new())?);
        args.push(list);
    }
    Ok(body.forward_of(&name, &args, &results))
}

fn argument(tape: &Tape, dtype: DType, index: usize) -> Result<Endpoint> {
    tape.op("_Arg", &[], Attrs::new().with("T", dtype).with("index", index as i64))
}

fn arg_type(arg: &crate::op_def::ArgDef) -> DType {
    match &arg.types {
        crate::op_def::ArgTypes::One(crate::op_def::TypeSource::Fixed(dtype)) => *dtype,
        _ => DType::Variant,
    }
}

/// Whether the counter, the first of the arguments, is above zero.
fn back_condition(outer: &Tape, name: String, types: &[DType]) -> Result<FunctionDef> {
    let catalog = outer.state.borrow().catalog.clone();
    let tape = Tape::new(GraphIr::default(), &catalog, &GradientOptions::default());
    let mut args = Vec::new();
    for (i, &dtype) in types.iter().enumerate() {
        args.push(argument(&tape, dtype, i)?);
    }
    let zero = tape.constant(Tensor::scalar(0i32))?;
    let more = tape.op("Greater", &[tape.term(args[0]), tape.term(zero)], Attrs::new())?;
    Ok(function_def(name, &tape.graph(), |_| true, &args, &[more]))
}
