//! Pruning: keeps the part of a graph that the feeds, fetches and targets of a step need.

use super::idle::silence;
use crate::attr::Attrs;
use crate::catalog::Catalog;
use crate::function::FunctionGraph;
use crate::graph::{Endpoint, GraphIr, Node, NodeId, split_tensor_name};
use crate::op_def::{OpDef, OpRole};
use ferroflow_core::{Result, bail, ensure, err};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The graph of one step. All its nodes run.
#[derive(Clone)]
pub struct Pruned {
    /// The nodes.
    pub graph: GraphIr,
    /// The `_Arg` node of each feed, in order.
    pub args: Vec<NodeId>,
    /// The `_Retval` node of each fetch, in order.
    pub rets: Vec<NodeId>,
}

/// Keeps the ancestors of fetches and targets, up to the feeds.
///
/// Feed `i` becomes an `_Arg` node with `index` `i`, fetch `i` a `_Retval` node. A feed replaces
/// the data edges from its output. The feed of a placeholder also takes over the placeholder's
/// control edges. Nodes keep their names and their order. A pure node that only control edges leave
/// becomes a `NoOp`, unless it is a target.
pub fn prune<S: AsRef<str>>(
    graph: &GraphIr,
    feeds: &[S],
    fetches: &[S],
    targets: &[S],
    catalog: &Catalog,
) -> Result<Pruned> {
    ensure!(
        !fetches.is_empty() || !targets.is_empty(),
        InvalidArgument,
        "Must specify at least one target to fetch or execute."
    );
    check_endpoints(feeds, fetches)?;
    let feeds = feeds.iter().map(|f| feed_endpoint(graph, f.as_ref()));
    let feeds: Vec<Endpoint> = feeds.collect::<Result<_>>()?;
    let fetches = fetches.iter().map(|f| fetch_endpoint(graph, f.as_ref()));
    let fetches: Vec<Endpoint> = fetches.collect::<Result<_>>()?;
    let targets = target_nodes(graph, targets)?;

    let cut = Cut::new(graph, &feeds);
    let keep = cut.ancestors(fetches.iter().map(|e| e.node).chain(targets.iter().copied()));
    let mut pruned = Pruned {
        graph: GraphIr::new(graph.library.clone()),
        args: Vec::with_capacity(feeds.len()),
        rets: Vec::with_capacity(fetches.len()),
    };
    pruned.graph.versions = graph.versions.clone();
    let size = feeds.len() + keep.iter().filter(|&&k| k).count() + fetches.len();
    pruned.graph.nodes.reserve(size);
    pruned.graph.names.reserve(size);

    // Kept nodes come after the arguments, so their ids are known before they are added.
    let mut ids = vec![None; graph.len()];
    for (new, id) in (feeds.len() as u32..).zip(graph.ids().filter(|id| keep[id.index()])) {
        ids[id.index()] = Some(NodeId(new));
    }
    let arg = op(catalog, "_Arg")?;
    for (i, &e) in feeds.iter().enumerate() {
        let base = format!("_arg_{}_{}_{i}", graph.node(e.node).name, e.slot);
        let attrs = port_attrs(graph, e, i);
        let name = free_name(graph, &pruned.graph, base);
        pruned.args.push(pruned.graph.add(name, arg.clone(), attrs, vec![], vec![])?);
    }
    for (id, node) in graph.iter().filter(|(id, _)| keep[id.index()]) {
        pruned.graph.push(cut.rewired(id, node, &ids)?)?;
    }
    check_ref_edges(&pruned.graph, &pruned.args)?;
    let retval = op(catalog, "_Retval")?;
    for (i, &e) in fetches.iter().enumerate() {
        let base = format!("_retval_{}_{}_{i}", graph.node(e.node).name, e.slot);
        let attrs = port_attrs(graph, e, i);
        let name = free_name(graph, &pruned.graph, base);
        let node = ids[e.node.index()].ok_or_else(|| err!(Internal, "a fetch was pruned"))?;
        let from = Endpoint { node, slot: e.slot };
        pruned.rets.push(pruned.graph.add(name, retval.clone(), attrs, vec![from], vec![])?);
    }
    if let Some(no_op) = catalog.get("NoOp") {
        let targets: Vec<NodeId> = targets.iter().filter_map(|t| ids[t.index()]).collect();
        silence(&mut pruned.graph, &targets, no_op);
    }
    Ok(pruned)
}

impl Pruned {
    /// The part of a function's body that its results and effects need.
    pub fn from_function(function: FunctionGraph) -> Pruned {
        let FunctionGraph { graph, args, rets, targets, .. } = function;
        let cut = Cut::new(&graph, &[]);
        let keep = cut.ancestors(args.iter().chain(&rets).chain(&targets).copied());
        let mut pruned = Pruned { graph, args, rets };
        pruned.retain(&keep);
        pruned
    }

    /// Removes the nodes that `keep` does not mark. The remaining nodes must not refer to them.
    /// Arguments and results stay.
    pub fn retain(&mut self, keep: &[bool]) {
        if keep.iter().all(|&k| k) {
            return;
        }
        let old = std::mem::take(&mut self.graph);
        let mut ids = vec![NodeId(u32::MAX); old.nodes.len()];
        let mut next = 0;
        for (i, _) in keep.iter().enumerate().filter(|(_, k)| **k) {
            ids[i] = NodeId(next);
            next += 1;
        }
        let mut graph = GraphIr { versions: old.versions, ..GraphIr::new(old.library) };
        graph.nodes.reserve(next as usize);
        graph.names = old.names;
        graph.names.retain(|_, id| {
            *id = ids[id.index()];
            id.0 != u32::MAX
        });
        for (mut node, _) in old.nodes.into_iter().zip(keep).filter(|(_, k)| **k) {
            node.inputs.iter_mut().for_each(|e| e.node = ids[e.node.index()]);
            node.controls.iter_mut().for_each(|c| *c = ids[c.index()]);
            graph.nodes.push(node);
        }
        self.graph = graph;
        for id in self.args.iter_mut().chain(&mut self.rets) {
            *id = ids[id.index()];
        }
    }
}

/// A graph with the edges that feeds replace.
struct Cut<'g> {
    graph: &'g GraphIr,
    /// Endpoint to the feed that replaces it.
    fed: HashMap<Endpoint, usize>,
    /// Placeholder to the feed that takes over its control edges.
    controls: HashMap<NodeId, usize>,
    /// Whether one of the maps has a node.
    touched: Vec<bool>,
}

impl<'g> Cut<'g> {
    fn new(graph: &'g GraphIr, feeds: &[Endpoint]) -> Cut<'g> {
        let mut touched = vec![false; graph.len()];
        let (mut fed, mut controls) = (HashMap::new(), HashMap::new());
        for (i, &e) in feeds.iter().enumerate() {
            touched[e.node.index()] = true;
            // `x` and `x:0` are two feeds of one endpoint: the first one counts.
            fed.entry(e).or_insert(i);
            if graph.node(e.node).op.role == OpRole::Placeholder {
                controls.entry(e.node).or_insert(i);
            }
        }
        Cut { graph, fed, controls, touched }
    }

    fn feed(&self, e: Endpoint) -> Option<usize> {
        if self.touched[e.node.index()] { self.fed.get(&e).copied() } else { None }
    }

    fn control_feed(&self, id: NodeId) -> Option<usize> {
        if self.touched[id.index()] { self.controls.get(&id).copied() } else { None }
    }

    fn ancestors(&self, roots: impl Iterator<Item = NodeId>) -> Vec<bool> {
        let mut keep = vec![false; self.graph.len()];
        let mut stack: Vec<NodeId> = roots.collect();
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut keep[id.index()], true) {
                continue;
            }
            let node = self.graph.node(id);
            stack.extend(node.inputs.iter().filter(|e| self.feed(**e).is_none()).map(|e| e.node));
            stack.extend(node.controls.iter().filter(|c| self.control_feed(**c).is_none()));
        }
        keep
    }

    /// A kept node with the new ids.
    fn rewired(&self, id: NodeId, node: &Node, ids: &[Option<NodeId>]) -> Result<Node> {
        let lost = || err!(Internal, "an input of node {id:?} was pruned");
        let mut node = node.clone();
        for e in &mut node.inputs {
            *e = match self.feed(*e) {
                Some(i) => Endpoint::new(NodeId(i as u32), 0),
                None => Endpoint { node: ids[e.node.index()].ok_or_else(lost)?, slot: e.slot },
            };
        }
        for c in &mut node.controls {
            *c = match self.control_feed(*c) {
                Some(i) => NodeId(i as u32),
                None => ids[c.index()].ok_or_else(lost)?,
            };
        }
        Ok(node)
    }
}

/// Names are compared as text: `x` and `x:0` are different endpoints.
fn check_endpoints<S: AsRef<str>>(feeds: &[S], fetches: &[S]) -> Result<()> {
    let mut seen = HashSet::with_capacity(feeds.len());
    for feed in feeds {
        let feed = feed.as_ref();
        ensure!(seen.insert(feed), InvalidArgument, "Endpoint \"{feed}\" fed more than once.");
    }
    for fetch in fetches {
        let fetch = fetch.as_ref();
        ensure!(!seen.contains(fetch), InvalidArgument, "{fetch} is both fed and fetched.");
    }
    Ok(())
}

fn feed_endpoint(graph: &GraphIr, name: &str) -> Result<Endpoint> {
    let (node, slot) = split_tensor_name(name);
    let Some(id) = graph.find(node) else {
        bail!(NotFound, "FeedInputs: unable to find feed output {name}");
    };
    let outputs = graph.node(id).output_types.len();
    ensure!(
        (slot as usize) < outputs,
        InvalidArgument,
        "FeedInputs: {name} should have output index < {outputs}"
    );
    Ok(Endpoint { node: id, slot })
}

fn fetch_endpoint(graph: &GraphIr, name: &str) -> Result<Endpoint> {
    let (node, slot) = split_tensor_name(name);
    let Some(id) = graph.find(node) else {
        bail!(NotFound, "FetchOutputs node {name}: not found");
    };
    let outputs = graph.node(id).output_types.len();
    ensure!(
        outputs > 0,
        InvalidArgument,
        "Tried to fetch data for '{name}', which produces no output.  To run to a node but not fetch \
         any data, pass '{name}' as an argument to the 'target_node_names' argument of the \
         Session::Run API."
    );
    ensure!(
        (slot as usize) < outputs,
        InvalidArgument,
        "FetchOutputs {name}: output index too large, must be < {outputs}"
    );
    Ok(Endpoint { node: id, slot })
}

fn target_nodes<S: AsRef<str>>(graph: &GraphIr, targets: &[S]) -> Result<Vec<NodeId>> {
    let (mut found, mut missing) = (Vec::with_capacity(targets.len()), String::new());
    for target in targets {
        let target = target.as_ref();
        match graph.find(target.strip_prefix('^').unwrap_or(target)) {
            Some(id) => found.push(id),
            None => {
                missing.push_str(target);
                missing.push(' ');
            }
        }
    }
    ensure!(
        missing.is_empty(),
        NotFound,
        "PruneForTargets: Some target nodes not found: {missing}"
    );
    Ok(found)
}

/// A fed value is not a variable, so a node that takes a reference cannot take it.
fn check_ref_edges(graph: &GraphIr, args: &[NodeId]) -> Result<()> {
    for (_, node) in graph.iter() {
        for (i, e) in node.inputs.iter().enumerate() {
            if node.input_types[i].is_ref && e.node.index() < args.len() {
                graph.check_edge(node, i, *e)?;
            }
        }
    }
    Ok(())
}

fn op(catalog: &Catalog, name: &str) -> Result<Arc<OpDef>> {
    let op = catalog.get(name).cloned();
    op.ok_or_else(|| err!(Internal, "the catalog lacks {name}, which feeds and fetches need"))
}

fn port_attrs(graph: &GraphIr, e: Endpoint, index: usize) -> Attrs {
    Attrs::new().with("T", graph.type_of(e).dtype).with("index", index as i64)
}

/// A name that is free in both graphs: nodes keep their names in the new graph.
fn free_name(old: &GraphIr, new: &GraphIr, base: String) -> String {
    let mut name = base;
    while old.find(&name).is_some() || new.find(&name).is_some() {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::def::{GraphDef, NodeDef};
    use crate::op_def::ControlFlow;
    use ferroflow_core::{Code, DType};

    fn catalog() -> Catalog {
        let mut c = Catalog::new();
        c.op("_Arg").output("output: T").attr("T: type").attr("index: int").role(OpRole::Argument);
        c.op("_Retval").input("input: T").attr("T: type").attr("index: int").role(OpRole::Return);
        c.op("Placeholder").output("y: T").attr("T: type = DT_FLOAT").role(OpRole::Placeholder);
        c.op("Source").output("a: float").output("b: float").stateful();
        c.op("Variable").output("ref: Ref(float)").stateful();
        c.op("Assign")
            .input("ref: Ref(float)")
            .input("v: float")
            .output("o: Ref(float)")
            .stateful();
        c.op("Neg").input("x: float").output("y: float");
        c.op("Add").input("x: float").input("y: float").output("z: float");
        c.op("NoOp").role(OpRole::NoOp);
        c.op("Merge")
            .input("x: N * float")
            .output("y: float")
            .attr("N: int >= 1")
            .control_flow(ControlFlow::Merge);
        c.op("NextIteration")
            .input("x: float")
            .output("y: float")
            .control_flow(ControlFlow::NextIteration);
        c
    }

    type Nodes<'a> = [(&'a str, &'a str, &'a [&'a str])];

    fn graph(nodes: &Nodes) -> GraphIr {
        graph_of(nodes, &catalog())
    }

    fn graph_of(nodes: &Nodes, catalog: &Catalog) -> GraphIr {
        let nodes = nodes.iter().map(|(name, op, inputs)| NodeDef {
            name: name.to_string(),
            op: op.to_string(),
            inputs: inputs.iter().map(|s| s.to_string()).collect(),
            attrs: match *op {
                "Merge" => Attrs::new().with("N", inputs.len() as i64),
                _ => Attrs::new(),
            },
            ..NodeDef::default()
        });
        let def = GraphDef { nodes: nodes.collect(), ..Default::default() };
        GraphIr::from_def(&def, catalog).unwrap()
    }

    fn sample() -> GraphIr {
        graph(&[
            ("x", "Placeholder", &[]),
            ("s", "Source", &["^x"]),
            ("n", "Neg", &["s:1"]),
            ("a", "Add", &["x", "n"]),
            ("other", "Neg", &["a"]),
            ("go", "NoOp", &["^s", "^x"]),
        ])
    }

    fn run(g: &GraphIr, feeds: &[&str], fetches: &[&str], targets: &[&str]) -> Result<Pruned> {
        prune(g, feeds, fetches, targets, &catalog())
    }

    fn names(p: &Pruned) -> Vec<&str> {
        p.graph.iter().map(|(_, n)| n.name.as_str()).collect()
    }

    fn inputs(p: &Pruned, name: &str) -> Vec<String> {
        let def = p.graph.to_def();
        def.nodes.iter().find(|n| n.name == name).unwrap().inputs.clone()
    }

    #[test]
    fn only_ancestors_of_fetches_stay() {
        let p = run(&sample(), &[], &["n"], &[]).unwrap();
        assert_eq!(names(&p), ["x", "s", "n", "_retval_n_0_0"]);
        assert_eq!(inputs(&p, "_retval_n_0_0"), ["n"]);
        let p = run(&sample(), &[], &[], &["^go"]).unwrap();
        assert_eq!(names(&p), ["x", "s", "go"]);
    }

    /// The gradient of a layer's input, say, which is made along with that of its weights.
    #[test]
    fn nodes_that_are_only_waited_for_become_no_ops() {
        let g = graph(&[
            ("x", "Placeholder", &[]),
            ("s", "Source", &[]),
            ("a", "Neg", &["s"]),
            ("b", "Add", &["a", "x"]),
            ("both", "NoOp", &["^b", "^s"]),
            ("n", "Neg", &["x", "^both"]),
        ]);
        let ops =
            |p: &Pruned, name: &str| p.graph.node(p.graph.find(name).unwrap()).op.name.clone();
        let p = run(&g, &["x"], &["n:0"], &[]).unwrap();
        assert_eq!([ops(&p, "a"), ops(&p, "b")], ["NoOp", "NoOp"]);
        assert_eq!(inputs(&p, "b"), ["^_arg_x_0_0", "^a"]);
        assert_eq!(inputs(&p, "a"), ["^s"]);
        assert_eq!(inputs(&p, "n"), ["_arg_x_0_0", "^both"]);
        // Named as a target, or fetched.
        let p = run(&g, &["x"], &["n:0"], &["b"]).unwrap();
        assert_eq!([ops(&p, "a"), ops(&p, "b")], ["Neg", "Add"]);
        let p = run(&g, &["x"], &["n:0", "a:0"], &[]).unwrap();
        assert_eq!([ops(&p, "a"), ops(&p, "b")], ["Neg", "NoOp"]);
    }

    #[test]
    fn nodes_behind_a_switch_stay() {
        let mut c = catalog();
        c.op("Switch")
            .input("x: float")
            .input("p: float")
            .output("f: float")
            .output("t: float")
            .control_flow(ControlFlow::Switch);
        let nodes: &Nodes = &[
            ("s", "Source", &[]),
            ("switch", "Switch", &["s", "s:1"]),
            ("pivot", "Neg", &["switch:1"]),
            ("after", "Neg", &["pivot"]),
            ("n", "Neg", &["s", "^after"]),
        ];
        let g = graph_of(nodes, &c);
        let p = prune(&g, &[], &["n:0"], &[], &c).unwrap();
        let op = |name: &str| p.graph.node(p.graph.find(name).unwrap()).op.name.clone();
        assert_eq!([op("pivot"), op("after")], ["Neg", "NoOp"]);
    }

    /// TensorFlow does not call the writes of TensorArrayV2, whose handles are strings, stateful.
    #[test]
    fn nodes_with_a_handle_stay() {
        let mut c = catalog();
        c.op("Handle").output("handle: string");
        c.op("Write").input("handle: string").input("x: float").output("flow: float");
        let nodes: &Nodes = &[
            ("s", "Source", &[]),
            ("h", "Handle", &[]),
            ("w", "Write", &["h", "s"]),
            ("n", "Neg", &["s", "^w"]),
        ];
        let g = graph_of(nodes, &c);
        let p = prune(&g, &[], &["n:0"], &[], &c).unwrap();
        assert_eq!(p.graph.node(p.graph.find("w").unwrap()).op.name, "Write");
    }

    #[test]
    fn the_feed_of_a_placeholder_takes_over_its_control_edges() {
        let p = run(&sample(), &["x:0"], &["a:0"], &["go"]).unwrap();
        assert_eq!(names(&p), ["_arg_x_0_0", "s", "n", "a", "go", "_retval_a_0_0"]);
        assert_eq!(inputs(&p, "s"), ["^_arg_x_0_0"]);
        assert_eq!(inputs(&p, "go"), ["^s", "^_arg_x_0_0"]);
        assert_eq!(inputs(&p, "a"), ["_arg_x_0_0", "n"]);
        assert_eq!(p.graph.node(p.args[0]).attrs.dtype("T").unwrap(), DType::Float);
        assert_eq!(p.graph.node(p.rets[0]).attrs.int("index").unwrap(), 0);
    }

    #[test]
    fn another_fed_node_still_runs_for_its_control_edges() {
        let p = run(&sample(), &["s:1"], &["n"], &[]).unwrap();
        assert_eq!(names(&p), ["_arg_s_1_0", "n", "_retval_n_0_0"]);
        let p = run(&sample(), &["s:1"], &["n"], &["go"]).unwrap();
        assert_eq!(names(&p), ["_arg_s_1_0", "x", "s", "n", "go", "_retval_n_0_0"]);
    }

    #[test]
    fn loops_are_kept_whole() {
        let g = graph(&[
            ("x", "Placeholder", &[]),
            ("m", "Merge", &["x", "next"]),
            ("n", "Neg", &["m"]),
            ("next", "NextIteration", &["n"]),
        ]);
        let p = run(&g, &["x"], &["m"], &[]).unwrap();
        assert_eq!(inputs(&p, "m"), ["_arg_x_0_0", "next"]);
        assert_eq!(p.graph.len(), 5);
    }

    #[test]
    fn wrong_names_are_reported_as_tensorflow_does() {
        use Code::*;
        let none = "Tried to fetch data for 'go', which produces no output.  To run to a node but \
                    not fetch any data, pass 'go' as an argument to the 'target_node_names' argument \
                    of the Session::Run API.";
        let cases: &[(&[&str], &[&str], &[&str], Code, &str)] = &[
            (&["q:0"], &["n"], &[], NotFound, "FeedInputs: unable to find feed output q:0"),
            (
                &["s:2"],
                &["n"],
                &[],
                InvalidArgument,
                "FeedInputs: s:2 should have output index < 2",
            ),
            (&[], &["q:1"], &[], NotFound, "FetchOutputs node q:1: not found"),
            (
                &[],
                &["s:2"],
                &[],
                InvalidArgument,
                "FetchOutputs s:2: output index too large, must be < 2",
            ),
            (&[], &["go"], &[], InvalidArgument, none),
            (
                &[],
                &[],
                &["q", "go", "r"],
                NotFound,
                "PruneForTargets: Some target nodes not found: q r ",
            ),
            (&["x", "x"], &["n"], &[], InvalidArgument, "Endpoint \"x\" fed more than once."),
            (&["n:0"], &["n:0"], &[], InvalidArgument, "n:0 is both fed and fetched."),
            (
                &["x"],
                &[],
                &[],
                InvalidArgument,
                "Must specify at least one target to fetch or execute.",
            ),
        ];
        for (feeds, fetches, targets, code, message) in cases {
            let e = run(&sample(), feeds, fetches, targets).err().unwrap();
            assert_eq!((e.code(), e.message()), (*code, *message));
        }
    }

    #[test]
    fn a_fed_variable_cannot_be_assigned_to() {
        let g = graph(&[
            ("v", "Variable", &[]),
            ("x", "Placeholder", &[]),
            ("set", "Assign", &["v", "x"]),
            ("n", "Neg", &["v"]),
        ]);
        assert!(run(&g, &["v:0"], &["n:0"], &[]).is_ok());
        assert_eq!(run(&g, &["v:0"], &["set:0"], &[]).err().unwrap().code(), Code::InvalidArgument);
    }

    #[test]
    fn a_long_chain_is_pruned_in_linear_time() {
        let c = catalog();
        let (mut g, neg) = (GraphIr::default(), c.get("Neg").unwrap().clone());
        let x = c.get("Placeholder").unwrap().clone();
        let mut last = g.add("x", x, Attrs::new(), vec![], vec![]).unwrap();
        for i in 0..200_000 {
            let from = vec![Endpoint::new(last, 0)];
            last = g.add(format!("n{i}"), neg.clone(), Attrs::new(), from, vec![]).unwrap();
        }
        let p = run(&g, &["x:0"], &["n199999:0"], &[]).unwrap();
        assert_eq!(p.graph.len(), 200_002);
    }
}
