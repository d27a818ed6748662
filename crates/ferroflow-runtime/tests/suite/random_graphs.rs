//! Random graphs with branches and loops, run by many threads at once, and compared with an
//! evaluator that shares no code with the executor.

use crate::common::*;
use ferroflow_core::{Code, Tensor};
use ferroflow_graph::GraphDef;
use ferroflow_runtime::{SessionOptions, TaskSession};
use ferroflow_testing::{GraphBuilder, graph, mix};
use proptest::prelude::*;

/// A piece of a graph. Its numbers select earlier values, modulo their count.
#[derive(Clone, Debug)]
enum Piece {
    /// A node with these inputs, which also waits for other nodes.
    Mix { inputs: Vec<usize>, controls: Vec<usize>, dear: bool },
    /// An async node.
    Pass { input: usize, later: bool },
    /// `if a < b { mix(data, more) } else { mix(data) }`; also returns the outputs of the Switch.
    Cond { a: usize, b: usize, data: usize, more: usize },
    /// `vars` values go round `times` times. Each iteration mixes them with an invariant.
    Loop { inits: Vec<usize>, invariant: usize, times: i32, parallel: i64, later: bool },
}

fn piece() -> impl Strategy<Value = Piece> {
    let some = || any::<usize>();
    let list = |least| prop::collection::vec(any::<usize>(), least..4);
    prop_oneof![
        4 => (list(0), prop::collection::vec(some(), 0..2), any::<bool>())
            .prop_map(|(inputs, controls, dear)| Piece::Mix { inputs, controls, dear }),
        1 => (some(), any::<bool>()).prop_map(|(input, later)| Piece::Pass { input, later }),
        2 => (some(), some(), some(), some())
            .prop_map(|(a, b, data, more)| Piece::Cond { a, b, data, more }),
        1 => (list(1), some(), 0..5i32, 1..4i64, any::<bool>()).prop_map(
            |(inits, invariant, times, parallel, later)| Piece::Loop {
                inits, invariant, times, parallel, later
            }
        ),
    ]
}

/// The values so far: tensor names, and their values (`None`: dead).
#[derive(Default)]
struct Values {
    names: Vec<String>,
    values: Vec<Option<i32>>,
}

impl Values {
    fn put(&mut self, name: impl Into<String>, value: Option<i32>) {
        self.names.push(name.into());
        self.values.push(value);
    }

    fn pick(&self, i: usize) -> (&str, Option<i32>) {
        let i = i % self.names.len();
        (&self.names[i], self.values[i])
    }
}

/// `mix` of values, some of which may be dead.
fn live_mix(salt: i64, inputs: &[Option<i32>]) -> Option<(i32, i32)> {
    let live: Option<Vec<i32>> = inputs.iter().copied().collect();
    live.map(|live| mix(salt, &live))
}

/// Writes the pieces as a graph, and computes every value on the way.
fn build(pieces: &[Piece], x: i32) -> (GraphDef, Values) {
    let mut known = Values::default();
    known.put("x", Some(x));
    known.put("seven", Some(7));
    let mut g = graph().placeholder("x").constant("seven", 7);
    for (k, piece) in pieces.iter().enumerate() {
        g = match piece {
            Piece::Mix { inputs, controls, dear } => {
                add_mix(g, &mut known, k, (inputs, controls), *dear)
            }
            Piece::Pass { input, later } => {
                let (name, value) = known.pick(*input);
                let op = if *later { "TestLater" } else { "TestAtOnce" };
                let g = g.op(format!("p{k}"), op, &[name]);
                known.put(format!("p{k}"), value);
                g
            }
            Piece::Cond { a, b, data, more } => add_cond(g, &mut known, k, [*a, *b, *data, *more]),
            Piece::Loop { inits, invariant, times, parallel, later } => {
                add_loop(g, &mut known, k, (inits, *invariant), (*times, *parallel, *later))
            }
        };
    }
    (g.build(), known)
}

fn add_mix(
    g: GraphBuilder,
    known: &mut Values,
    k: usize,
    (inputs, controls): (&[usize], &[usize]),
    dear: bool,
) -> GraphBuilder {
    let data: Vec<_> = inputs.iter().map(|&i| known.pick(i)).collect();
    let waits: Vec<_> = controls.iter().map(|&i| known.pick(i)).collect();
    let mut names: Vec<String> = data.iter().map(|d| d.0.to_string()).collect();
    // A control edge comes from a node, and one dead output does not make the node dead. So only
    // nodes that are dead or alive as a whole get control edges.
    let nodes = waits.iter().filter(|w| !w.0.contains('s'));
    let (mut alive, mut live) = (true, Vec::new());
    for w in nodes {
        names.push(format!("^{}", w.0.split(':').next().unwrap()));
        alive &= w.1.is_some();
    }
    live.extend(data.iter().map(|d| d.1));
    let value = if alive { live_mix(k as i64, &live) } else { None };
    let refs: Vec<&str> = names.iter().map(String::as_str).collect();
    let op = if dear { "TestDearMix" } else { "TestMix" };
    let g = g.op(format!("m{k}"), op, &refs).attr("N", inputs.len() as i64).attr("salt", k as i64);
    known.put(format!("m{k}"), value.map(|v| v.0));
    known.put(format!("m{k}:1"), value.map(|v| v.1));
    g
}

fn add_cond(g: GraphBuilder, known: &mut Values, k: usize, picks: [usize; 4]) -> GraphBuilder {
    let [a, b, data, more] = picks.map(|i| known.pick(i));
    let n = |part: &str| format!("{part}{k}");
    let g = g
        .op(n("q"), "TestLess", &[a.0, b.0])
        .switch(&n("s"), data.0, &n("q"))
        .op(n("t"), "TestMix", &[&format!("s{k}:1"), more.0])
        .attr("N", 2i64)
        .op(n("f"), "TestMix", &[&n("s")])
        .attr("N", 1i64)
        .merge(&n("c"), &[&n("f"), &n("t")]);
    let (on_true, on_false) = match (a.1, b.1) {
        (Some(a), Some(b)) if a < b => (data.1, None),
        (Some(_), Some(_)) => (None, data.1),
        _ => (None, None),
    };
    let (t, f) = (live_mix(0, &[on_true, more.1]), live_mix(0, &[on_false]));
    let merged = f.map(|f| (f.0, 0)).or(t.map(|t| (t.0, 1)));
    known.put(n("s"), on_false);
    known.put(format!("s{k}:1"), on_true);
    known.put(n("t"), t.map(|t| t.0));
    known.put(n("c"), merged.map(|m| m.0));
    known.put(format!("c{k}:1"), merged.map(|m| m.1));
    g
}

fn add_loop(
    mut g: GraphBuilder,
    known: &mut Values,
    k: usize,
    (inits, invariant): (&[usize], usize),
    (times, parallel, later): (i32, i64, bool),
) -> GraphBuilder {
    // Every entering value depends on all of them: a loop is entered dead or alive as a whole.
    let all: Vec<_> = inits.iter().chain([&invariant]).map(|&i| known.pick(i)).collect();
    let names: Vec<&str> = all.iter().map(|a| a.0).collect();
    let values: Vec<Option<i32>> = all.iter().map(|a| a.1).collect();
    let frame = format!("L{k}");
    let n = |part: &str, v: usize| format!("L{k}/{part}{v}");
    let vars = inits.len();
    for v in 0..=vars {
        g = g
            .op(n("init", v), "TestMix", &names)
            .attr("N", names.len() as i64)
            .attr("salt", v as i64);
    }
    let after = format!("^{}", n("init", 0));
    let i = |part: &str| n(part, 99);
    g = g
        .constant_after(&i("zero"), &after, 0)
        .constant_after(&i("times"), &after, times)
        .enter(&i("e"), &i("zero"), &frame, parallel)
        .enter_constant(&i("limit"), &i("times"), &frame, parallel)
        .enter_constant(&i("inv"), &n("init", vars), &frame, parallel)
        .merge(&i("m"), &[&i("e"), &i("next")])
        .op(i("less"), "TestLess", &[&i("m"), &i("limit")])
        .op(i("cond"), "LoopCond", &[&i("less")])
        .switch(&i("s"), &i("m"), &i("cond"))
        .constant_after(&i("one"), &format!("^{}", i("body")), 1)
        .op(i("body"), "Identity", &[&format!("{}:1", i("s"))])
        .t()
        .op(i("add"), "TestAdd", &[&i("body"), &i("one")])
        .next_iteration(&i("next"), &i("add"))
        .exit(&i("x"), &i("s"));
    for v in 0..vars {
        let other = format!("{}:1", n("s", (v + 1) % vars));
        g = g
            .enter(&n("e", v), &n("init", v), &frame, parallel)
            .merge(&n("m", v), &[&n("e", v), &n("next", v)])
            .switch(&n("s", v), &n("m", v), &i("cond"))
            .op(n("mix", v), "TestMix", &[&format!("{}:1", n("s", v)), &other, &i("inv")])
            .attr("N", 3i64)
            .attr("salt", v as i64);
        let mixed = if later && v == 0 {
            g = g.op(n("later", v), "TestLater", &[&n("mix", v)]);
            n("later", v)
        } else {
            n("mix", v)
        };
        g = g.next_iteration(&n("next", v), &mixed).exit(&n("x", v), &n("s", v));
    }
    let live: Option<Vec<i32>> = values.iter().copied().collect();
    let results = live.map(|live| {
        let mut round: Vec<i32> = (0..vars).map(|v| mix(v as i64, &live).0).collect();
        let inv = mix(vars as i64, &live).0;
        for _ in 0..times {
            round = (0..vars)
                .map(|v| mix(v as i64, &[round[v], round[(v + 1) % vars], inv]).0)
                .collect();
        }
        round
    });
    for v in 0..vars {
        known.put(n("x", v), results.as_ref().map(|r| r[v]));
    }
    known.put(i("x"), results.map(|_| times));
    g
}

/// Runs the graph from several threads at once, and compares all live values.
fn agrees(pieces: &[Piece], optimized: bool) {
    let (def, _) = build(pieces, 0);
    let options = SessionOptions { disable_optimizer: !optimized, ..SessionOptions::default() };
    let s = TaskSession::new(TASK.clone(), &def, options).unwrap();
    std::thread::scope(|scope| {
        for t in 0..3 {
            let s = &s;
            scope.spawn(move || {
                for x in [t, -t, 100 + t] {
                    compare(s, pieces, x);
                }
            });
        }
    });
}

fn compare(s: &TaskSession, pieces: &[Piece], x: i32) {
    let (_, known) = build(pieces, x);
    let all = || known.names.iter().zip(&known.values).filter(|(name, _)| *name != "x");
    let (names, want): (Vec<&str>, Vec<i32>) =
        all().filter_map(|(name, value)| Some((name.as_str(), (*value)?))).unzip();
    let got = ints(s, &[("x", x)], &names).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(got, want, "fetched {names:?}");
    if let Some((dead, _)) = all().find(|(_, value)| value.is_none()) {
        let e = error_of(s.run_blocking(request(&[("x", Tensor::scalar(x))], &[dead], &[])));
        assert_eq!(e.code(), Code::Internal, "fetching the dead {dead}: {e}");
    }
}

/// Threads are started once: a task for each of a thousand graphs would only test the system.
static TASK: std::sync::LazyLock<std::sync::Arc<ferroflow_runtime::Task>> =
    std::sync::LazyLock::new(task);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn graphs_as_written_agree(pieces in prop::collection::vec(piece(), 1..25)) {
        agrees(&pieces, false);
    }

    #[test]
    fn optimized_graphs_agree(pieces in prop::collection::vec(piece(), 1..25)) {
        agrees(&pieces, true);
    }
}
