//! Gradients of nodes that call a function, or one of several.

use super::function::DifferentiatedBody;
use super::is_differentiable;
use super::scope::GradientScope;
use super::tape::{CallGradients, Flow};
use super::term::Term;
use crate::attr::{AttrList, AttrValue, Attrs, FuncRef};
use crate::function::SYMBOLIC_GRADIENT;
use crate::graph::Endpoint;
use ferroflow_core::{DType, PartialShape, Result, ensure};
use std::collections::HashMap;

impl<'g> GradientScope<'g> {
    /// Which outputs have gradients, and of what types.
    pub(super) fn live(&self, dy: &[Term<'g>]) -> Vec<(usize, DType)> {
        let is_live = |d: &Term<'g>| matches!(d.flow, Flow::Tensor(_) | Flow::Slices(_));
        (0..dy.len()).filter(|&i| is_live(&dy[i])).map(|i| (i, dy[i].dtype())).collect()
    }

    pub(super) fn differentiated(
        &self,
        func: &FuncRef,
        live: &[(usize, DType)],
        shapes: &[PartialShape],
    ) -> Result<DifferentiatedBody> {
        let (library, catalog, depth, calls) = {
            let state = self.tape.state.borrow();
            (state.graph.library.clone(), state.catalog.clone(), state.depth + 1, state.calls)
        };
        DifferentiatedBody::differentiate(func, &library, &catalog, live, shapes, depth, calls)
            .map_err(|e| e.context(format!("function {}", func.name)))
    }

    /// The gradient of a node that calls `func` with all its inputs. The node is changed to call a
    /// function that returns more; if `attr` is `None`, the node's op is that function. If the
    /// library has a gradient for the function, that one is called instead.
    pub fn call_gradient(
        &self,
        func: FuncRef,
        attr: Option<&str>,
        dy: &[Term<'g>],
    ) -> Result<Vec<Term<'g>>> {
        let own = self.tape.graph().library.gradients().get(&func.name).cloned();
        if let Some(own) = own {
            let mut inputs = self.inputs();
            inputs.extend(dy.iter().map(|d| d.dense()));
            let mut all = self.calls_with(&own, &inputs, Attrs::new());
            all.resize(self.num_inputs(), self.none());
            return Ok(all);
        }
        if self.tape.state.borrow().calls == CallGradients::Again {
            return self.symbolic_gradient(func, dy);
        }
        let live = self.live(dy);
        let shapes: Vec<PartialShape> = self.inputs().iter().map(|t| t.static_shape()).collect();
        let body = self.differentiated(&func, &live, &shapes)?;
        let returned: Vec<Endpoint> = body.dxs.iter().flatten().copied().collect();
        if returned.is_empty() {
            return Ok(vec![self.none(); self.num_inputs()]);
        }
        let crossing = body.crossing(&returned);
        let more: Vec<Endpoint> =
            crossing.iter().copied().filter(|e| !body.args.contains(e)).collect();
        let forward_name = self.tape.function_name(&format!("forward_{}", func.name));
        let backward_name = self.tape.function_name(&format!("backward_{}", func.name));
        let mut args = crossing.clone();
        args.extend(&body.dys);
        let forward = body.forward(forward_name.clone(), &more);
        let backward = body.backward(backward_name.clone(), &args, &returned);
        let types_of = |ends: &[Endpoint]| -> Vec<DType> {
            ends.iter().map(|&e| body.tape.type_of(e)).collect()
        };
        let results: Vec<Endpoint> = body.results.iter().chain(&more).copied().collect();
        self.tape.add_functions(body.library(), vec![forward, backward])?;
        let forward = FuncRef { name: forward_name, attrs: Attrs::new() };
        match attr {
            Some(attr) => {
                let mut attrs = self.attrs().clone();
                attrs.set("Tout", types_of(&results));
                attrs.set(attr, forward);
                attrs.remove("_output_shapes");
                self.tape.replace(self.node, None, attrs, vec![])?;
            }
            None => {
                let op = self.tape.graph().library.op(&forward.name);
                self.tape.replace(self.node, op, Attrs::new(), vec![])?;
            }
        }
        let count = body.results.len();
        let mut inputs = Vec::new();
        for e in &crossing {
            inputs.push(match body.args.iter().position(|a| a == e) {
                Some(k) => self.input(k),
                None => {
                    let k = more.iter().position(|m| m == e).expect("what crosses is returned");
                    self.tape.term(Endpoint::new(self.node, count + k))
                }
            });
        }
        inputs.extend(live.iter().map(|&(i, _)| dy[i].dense()));
        let attrs = Attrs::new()
            .with("Tout", types_of(&returned))
            .with("f", FuncRef { name: backward_name, attrs: Attrs::new() });
        let op = if body.is_stateful() { "StatefulPartitionedCall" } else { "PartitionedCall" };
        let mut found = self.calls_with(op, &inputs, attrs).into_iter();
        let mut next = |dx: &Option<Endpoint>| match dx {
            Some(_) => found.next().unwrap_or(self.none()),
            None => self.none(),
        };
        Ok(body.dxs.iter().map(&mut next).collect())
    }

    /// The gradient of a node that calls `func` with all its inputs, as a node that runs the
    /// function again.
    fn symbolic_gradient(&self, func: FuncRef, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
        let args = self.inputs();
        let types: Vec<DType> = args.iter().map(|t| t.dtype()).collect();
        let mut inputs = args;
        for (slot, d) in dy.iter().enumerate() {
            inputs.push(match d.flow {
                Flow::None => {
                    let output = Endpoint::new(self.node, slot);
                    self.tape.term(self.tape.zeros_of(output)?)
                }
                _ => d.dense(),
            });
        }
        let attrs = Attrs::new().with("Tout", types.clone()).with("f", func);
        let found = self.calls_with(SYMBOLIC_GRADIENT, &inputs, attrs);
        let of = |(dtype, term): (&DType, _)| match is_differentiable(*dtype) {
            true => term,
            false => self.none(),
        };
        Ok(types.iter().zip(found).map(of).collect())
    }

    /// The gradient of a node that calls one of `funcs`, as input 0 says, with its other inputs.
    /// `set` replaces the functions in the attributes; `ops` are the stateful and the stateless op.
    pub fn branch_gradient(
        &self,
        funcs: &[FuncRef],
        set: impl Fn(&mut Attrs, Vec<FuncRef>),
        ops: (&str, &str),
        dy: &[Term<'g>],
    ) -> Result<Vec<Term<'g>>> {
        let live = self.live(dy);
        let args = self.inputs().split_off(1);
        let shapes: Vec<PartialShape> = args.iter().map(|t| t.static_shape()).collect();
        let mut bodies = Vec::new();
        for func in funcs {
            let body = self.differentiated(func, &live, &shapes)?;
            // Keep the functions made for one branch, so that the next branch does not make them
            // again.
            self.tape.add_functions(body.library(), vec![])?;
            bodies.push(body);
        }
        ensure!(!bodies.is_empty(), InvalidArgument, "there are no branches");
        // The arguments that have a gradient in some branch, with its type.
        let wanted: Vec<(usize, DType)> = (0..args.len())
            .filter_map(|k| {
                let of = |b: &DifferentiatedBody| {
                    b.dxs.get(k).copied().flatten().map(|e| b.tape.type_of(e))
                };
                bodies.iter().find_map(of).map(|dtype| (k, dtype))
            })
            .collect();
        if wanted.is_empty() {
            return Ok(vec![self.none(); self.num_inputs()]);
        }
        let mut returned: Vec<Vec<Endpoint>> = Vec::new();
        for body in &mut bodies {
            let mut of_body = Vec::new();
            for &(k, dtype) in &wanted {
                of_body.push(match body.dxs[k] {
                    Some(e) => e,
                    None => {
                        let arg = body.args[k];
                        body.on_the_way_back(|tape| match tape.type_of(arg) {
                            DType::Resource => tape.zeros_of_variable(arg, dtype),
                            _ => tape.zeros_of(arg),
                        })?
                    }
                });
            }
            returned.push(of_body);
        }
        // The tensors that each branch passes to its backward function. The other branches return
        // placeholders for them.
        let mut more: Vec<Vec<Endpoint>> = Vec::new();
        for (body, returned) in bodies.iter().zip(&returned) {
            let crossing = body.crossing(returned);
            more.push(crossing.into_iter().filter(|e| !body.args.contains(e)).collect());
        }
        let extra: Vec<(usize, Endpoint, DType)> = more
            .iter()
            .enumerate()
            .flat_map(|(b, ends)| ends.iter().map(move |&e| (b, e)))
            .map(|(b, e)| (b, e, bodies[b].tape.type_of(e)))
            .collect();
        let (mut forwards, mut backwards, mut made) = (Vec::new(), Vec::new(), Vec::new());
        for (b, func) in funcs.iter().enumerate() {
            let mut outs = Vec::new();
            let mut given: HashMap<usize, Endpoint> = HashMap::new();
            for (i, &(of, e, dtype)) in extra.iter().enumerate() {
                outs.push(if of == b { e } else { bodies[b].tape.dummy(dtype)? });
                if of == b {
                    given.insert(i, e);
                }
            }
            let forward_name = self.tape.function_name(&format!("forward_{}_{b}", func.name));
            let backward_name = self.tape.function_name(&format!("backward_{}_{b}", func.name));
            let mut back_args = Vec::new();
            for (i, &(_, _, dtype)) in extra.iter().enumerate() {
                back_args.push(match given.get(&i) {
                    Some(&e) => e,
                    // This branch does not use the argument.
                    None => bodies[b].tape.op(
                        "_Arg",
                        &[],
                        Attrs::new().with("T", dtype).with("index", (1000 + i) as i64),
                    )?,
                });
            }
            back_args.extend(&bodies[b].args);
            back_args.extend(&bodies[b].dys);
            made.push(bodies[b].forward(forward_name.clone(), &outs));
            made.push(bodies[b].backward(backward_name.clone(), &back_args, &returned[b]));
            forwards.push(FuncRef { name: forward_name, attrs: Attrs::new() });
            backwards.push(FuncRef { name: backward_name, attrs: Attrs::new() });
        }
        let library = self.tape.graph().library.clone();
        self.tape.add_functions(library, made)?;
        let count = bodies[0].results.len();
        let mut attrs = self.attrs().clone();
        set(&mut attrs, forwards);
        let mut types = attrs.dtypes("Tout")?;
        types.extend(extra.iter().map(|x| x.2));
        attrs.set("Tout", types);
        attrs.remove("_output_shapes");
        let mut stated = attrs.shapes("output_shapes")?;
        if !stated.is_empty() {
            stated.resize(count + extra.len(), PartialShape::unknown());
            attrs.set("output_shapes", stated);
        }
        self.tape.replace(self.node, None, attrs, vec![])?;
        let mut inputs = vec![self.input(0)];
        inputs
            .extend((0..extra.len()).map(|i| self.tape.term(Endpoint::new(self.node, count + i))));
        inputs.extend(args);
        inputs.extend(live.iter().map(|&(i, _)| dy[i].dense()));
        let out: Vec<DType> = wanted.iter().map(|w| w.1).collect();
        let mut attrs = Attrs::new().with("Tout", out);
        attrs.set("output_shapes", AttrValue::List(AttrList::Empty));
        set(&mut attrs, backwards);
        let stateful = bodies.iter().any(DifferentiatedBody::is_stateful);
        let found = self.calls_with(if stateful { ops.0 } else { ops.1 }, &inputs, attrs);
        let mut all = vec![self.none(); self.num_inputs()];
        for (&(k, _), term) in wanted.iter().zip(found) {
            all[k + 1] = term;
        }
        Ok(all)
    }
}
