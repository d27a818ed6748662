//! Sets of nodes that share a device.

use crate::graph::NodeId;

/// What is known of where a group goes: numbers of device names.
#[derive(Clone, Copy, Default)]
pub(super) struct ColocationGroup {
    /// What its members ask for.
    pub requested: u32,
    /// Where its resources are asked for; nobody overrides that.
    pub resource: u32,
    /// Where it is, a full name, once it is decided.
    pub assigned: u32,
}

impl ColocationGroup {
    /// Whether it may be anywhere.
    pub fn is_open(&self) -> bool {
        [self.requested, self.resource, self.assigned] == [super::specs::OPEN; 3]
    }
}

/// A disjoint-set forest over the nodes of a graph.
pub(super) struct ColocationGroups {
    parent: Vec<u32>,
    /// At the root of each set; a set's size is kept there too.
    groups: Vec<(ColocationGroup, u32)>,
}

impl ColocationGroups {
    /// Every node on its own.
    pub fn new(nodes: usize) -> ColocationGroups {
        ColocationGroups {
            parent: (0..nodes as u32).collect(),
            groups: vec![(ColocationGroup::default(), 1); nodes],
        }
    }

    fn root(&mut self, id: NodeId) -> u32 {
        let mut at = id.0;
        while self.parent[at as usize] != at {
            let above = self.parent[self.parent[at as usize] as usize];
            self.parent[at as usize] = above;
            at = above;
        }
        at
    }

    /// The roots of two nodes, unless it is one.
    pub fn roots(&mut self, a: NodeId, b: NodeId) -> Option<(u32, u32)> {
        let (x, y) = (self.root(a), self.root(b));
        (x != y).then_some((x, y))
    }

    pub fn at(&self, root: u32) -> ColocationGroup {
        self.groups[root as usize].0
    }

    pub fn of(&mut self, id: NodeId) -> ColocationGroup {
        let root = self.root(id);
        self.at(root)
    }

    pub fn of_mut(&mut self, id: NodeId) -> &mut ColocationGroup {
        let root = self.root(id);
        &mut self.groups[root as usize].0
    }

    /// Whether a node's set holds nothing else.
    pub fn is_alone(&mut self, id: NodeId) -> bool {
        let root = self.root(id);
        self.groups[root as usize].1 == 1
    }

    /// Makes one set of two, given by their roots.
    pub fn unite(&mut self, a: u32, b: u32, merged: ColocationGroup) {
        let (sa, sb) = (self.groups[a as usize].1, self.groups[b as usize].1);
        let (root, child) = if sa >= sb { (a, b) } else { (b, a) };
        self.parent[child as usize] = root;
        self.groups[root as usize] = (merged, sa + sb);
    }
}
