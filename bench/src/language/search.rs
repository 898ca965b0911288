//! `bfs_event`, `bfs_view`: breadth-first search in one event or view.

use super::{app, input, settings, sizes};
use crate::data::{Random, SEED};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::machine::said_by;
use crate::pairs::{Contender, repeat};
use crate::{BenchError, Extent};
use engine::{App, Snapshot};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

const GRAPH: &str = include_str!("../../../apps/graph/graph.weft");
const PYTHON: &str = include_str!("search.py");
const EDGES_FROM_EACH: usize = 10;
/// Edges of one event that loads them: far from any bound of an event.
const LOADED: usize = 1_000;

const BARS: &[Bar] = &[Bar { of: "ours", against: Some("cpython"), limit: 0.15 }];

pub const BFS_EVENT: Declared =
    Declared { name: "bfs_event", unit: "ms/search", better: Better::Lower, counter: false, bars: BARS };
pub const BFS_VIEW: Declared = Declared { name: "bfs_view", ..BFS_EVENT };

/// Nodes are numbers from 0; an edge is two of them.
struct Graph {
    nodes: usize,
    edges: Vec<(u32, u32)>,
    /// The node that a search from node 0 finds last, and how far it is.
    goal: u32,
    distance: u32,
}

pub fn measure(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let contenders = |nodes: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let graph = Rc::new(Graph::new(nodes));
        let ours: Box<dyn Contender> = match declared.name {
            "bfs_event" => Box::new(EventSearch::new(&graph)?),
            _ => Box::new(ViewSearch::new(&graph)?),
        };
        Ok(vec![ours, Box::new(PythonSearch::new(&graph)?), Box::new(NativeSearch::new(&graph))])
    };
    let named = |nodes: usize| format!("{nodes} nodes, {} edges", nodes * EDGES_FROM_EACH);
    let python = said_by("python3", &["-VV"]);
    let settings = settings(&[
        ("seed", json!(SEED)),
        ("edges_from_each", json!(EDGES_FROM_EACH)),
        ("python", json!(python)),
    ]);
    super::measure(declared, &sizes(extent, 200, 100_000, &[10_000]), named, contenders, settings)
}

impl Graph {
    fn new(nodes: usize) -> Graph {
        let mut random = Random::new(1);
        let ends = (0..nodes * EDGES_FROM_EACH).map(|edge| (edge / EDGES_FROM_EACH) as u32);
        let mut edges: Vec<(u32, u32)> = ends.map(|from| (from, random.below(nodes as u64) as u32)).collect();
        random.shuffle(&mut edges);
        let mut graph = Graph { nodes, edges, goal: u32::MAX, distance: 0 };
        (graph.goal, graph.distance) = Adjacent::of(&graph).farthest();
        graph
    }

    /// Edges as JSON objects for the app's `load`, numbered from 1 in their order.
    fn load(&self, app: &mut App) -> Result<(), BenchError> {
        for (batch, edges) in self.edges.chunks(LOADED).enumerate() {
            let edge = |(at, (from, to)): (usize, &(u32, u32))| json!({ "id": batch * LOADED + at + 1, "from": from, "to": to });
            let edges: Vec<serde_json::Value> = edges.iter().enumerate().map(edge).collect();
            input(app, "load", &json!({ "nodes": self.nodes, "batch": edges }).to_string(), 1)?;
        }
        Ok(())
    }
}

/// The edges of each node side by side, in their order.
struct Adjacent {
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl Adjacent {
    fn of(graph: &Graph) -> Adjacent {
        let mut starts = vec![0; graph.nodes + 1];
        for (from, _) in &graph.edges {
            starts[*from as usize + 1] += 1;
        }
        for node in 0..graph.nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut ends = vec![0; graph.edges.len()];
        for (from, to) in &graph.edges {
            ends[next[*from as usize] as usize] = *to;
            next[*from as usize] += 1;
        }
        Adjacent { starts, ends }
    }

    /// The distance of a node from node 0, and the node found last until then, with its distance.
    fn search(&self, goal: u32) -> (Option<u32>, (u32, u32)) {
        let mut distances = vec![u32::MAX; self.starts.len() - 1];
        let mut queue = vec![0_u32];
        distances[0] = 0;
        let mut at = 0;
        while let Some(&here) = queue.get(at) {
            let distance = distances[here as usize];
            if here == goal {
                return (Some(distance), (here, distance));
            }
            let (start, end) = (self.starts[here as usize], self.starts[here as usize + 1]);
            for &to in &self.ends[start as usize..end as usize] {
                if distances[to as usize] == u32::MAX {
                    distances[to as usize] = distance + 1;
                    queue.push(to);
                }
            }
            at += 1;
        }
        let last = queue[queue.len() - 1];
        (None, (last, distances[last as usize]))
    }

    fn farthest(&self) -> (u32, u32) {
        self.search(u32::MAX).1
    }
}

struct EventSearch {
    app: App,
    graph: Rc<Graph>,
}

impl EventSearch {
    fn new(graph: &Rc<Graph>) -> Result<EventSearch, BenchError> {
        // The app's view as an event: the same text under another word. Its test reads the view.
        let text = GRAPH.split("\ntest ").next().unwrap_or(GRAPH);
        let mut app = app(&text.replace("view distance(", "on distance("), "graph.weft")?;
        graph.load(&mut app)?;
        Ok(EventSearch { app, graph: Rc::clone(graph) })
    }
}

impl Contender for EventSearch {
    fn name(&self) -> String {
        "ours".into()
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        let arguments = json!({ "start": 0, "goal": self.graph.goal }).to_string();
        milliseconds_each(|| {
            let answer = input(&mut self.app, "distance", &arguments, 1)?.unwrap_or_default();
            BenchError::unless("our event", self.graph.distance, answer)
        })
    }
}

struct ViewSearch {
    snapshot: Snapshot,
    graph: Rc<Graph>,
}

impl ViewSearch {
    fn new(graph: &Rc<Graph>) -> Result<ViewSearch, BenchError> {
        let mut app = app(GRAPH, "graph.weft")?;
        graph.load(&mut app)?;
        Ok(ViewSearch { snapshot: app.snapshot(), graph: Rc::clone(graph) })
    }
}

impl Contender for ViewSearch {
    fn name(&self) -> String {
        "ours".into()
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        let query = [("start".into(), "0".into()), ("goal".into(), self.graph.goal.to_string())];
        milliseconds_each(|| {
            let answer = self.snapshot.view("distance", &query, "local", 1)?;
            BenchError::unless("our view", self.graph.distance, answer)
        })
    }
}

struct NativeSearch {
    adjacent: Adjacent,
    graph: Rc<Graph>,
}

impl NativeSearch {
    fn new(graph: &Rc<Graph>) -> NativeSearch {
        NativeSearch { adjacent: Adjacent::of(graph), graph: Rc::clone(graph) }
    }
}

impl Contender for NativeSearch {
    fn name(&self) -> String {
        "native".into()
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        milliseconds_each(|| {
            let found = self.adjacent.search(self.graph.goal).0.unwrap_or(u32::MAX);
            BenchError::unless("native Rust", self.graph.distance, found)
        })
    }
}

fn milliseconds_each(mut search: impl FnMut() -> Result<(), BenchError>) -> Result<f64, BenchError> {
    let (times, elapsed) = repeat(|_| search())?;
    Ok(elapsed.as_secs_f64() * 1e3 / times as f64)
}

/// Python with the graph loaded, waiting for a line that asks for searches of a goal.
struct PythonSearch {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    version: String,
    graph: Rc<Graph>,
}

impl PythonSearch {
    fn new(graph: &Rc<Graph>) -> Result<PythonSearch, BenchError> {
        let mut command = Command::new("python3");
        command.args(["-I", "-c", PYTHON, &graph.nodes.to_string(), &graph.edges.len().to_string()]);
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = process.map_err(|error| failed(&format!("does not start: {error}")))?;
        let (Some(mut input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed("has no pipes"));
        };
        let bytes: Vec<u8> =
            graph.edges.iter().flat_map(|(from, to)| [*from, *to]).flat_map(u32::to_le_bytes).collect();
        input.write_all(&bytes).and_then(|()| input.flush()).map_err(|error| failed(&error.to_string()))?;
        let mut output = BufReader::new(output);
        let version = line_of(&mut output)?;
        Ok(PythonSearch { process, input, output, version, graph: Rc::clone(graph) })
    }
}

impl Contender for PythonSearch {
    fn name(&self) -> String {
        format!("cpython {}", self.version)
    }

    fn process(&self) -> Option<u32> {
        Some(self.process.id())
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        let asked = writeln!(self.input, "{}", self.graph.goal).and_then(|()| self.input.flush());
        asked.map_err(|error| failed(&error.to_string()))?;
        let line = line_of(&mut self.output)?;
        let (distance, seconds) = line.split_once(' ').unwrap_or((&line, ""));
        BenchError::unless("CPython", self.graph.distance, distance)?;
        let seconds: f64 = seconds.parse().map_err(|_| failed(&format!("said `{line}`")))?;
        Ok(seconds * 1e3)
    }
}

impl Drop for PythonSearch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn line_of(output: &mut impl BufRead) -> Result<String, BenchError> {
    let mut line = String::new();
    match output.read_line(&mut line) {
        Ok(1..) => Ok(line.trim().into()),
        Ok(0) => Err(failed("ended")),
        Err(error) => Err(failed(&error.to_string())),
    }
}

fn failed(why: &str) -> BenchError {
    BenchError::Process(format!("python3 {why}"))
}
