//! Sets of nodes that share a device.

use crate::graph::NodeId;

/// The devices of a group, as numbers of device names.
#[derive(Clone, Copy, Default)]
pub(super) struct ColocationGroup {
    /// The device that its members request.
    pub requested: u32,
    /// The device that its resources request. It has priority.
    pub resource: u32,
    /// The full name of its device, once it is placed.
    pub assigned: u32,
    /// A member has no kernel for GPUs.
    pub needs_cpu: bool,
}

impl ColocationGroup {
    /// Whether no device is requested.
    pub fn is_open(&self) -> bool {
        [self.requested, self.resource, self.assigned] == [super::specs::OPEN; 3]
    }
}

/// A disjoint-set forest over the nodes of a graph.
pub(super) struct ColocationGroups {
    parent: Vec<u32>,
    /// The group and the size of each set, at its root.
    groups: Vec<(ColocationGroup, u32)>,
}

impl ColocationGroups {
    /// Each node in a set of its own.
    pub fn new(nodes: usize) -> ColocationGroups {
        ColocationGroups {
            parent: (0..nodes as u32).collect(),
            groups: vec![(ColocationGroup::default(), 1); nodes],
        }
    }

    /// The root of the set of a node.
    pub fn root(&mut self, id: NodeId) -> u32 {
        let mut at = id.0;
        while self.parent[at as usize] != at {
            let above = self.parent[self.parent[at as usize] as usize];
            self.parent[at as usize] = above;
            at = above;
        }
        at
    }

    /// The roots of two nodes, if they are in different sets.
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

    /// Whether a node is alone in its set.
    pub fn is_alone(&mut self, id: NodeId) -> bool {
        let root = self.root(id);
        self.groups[root as usize].1 == 1
    }

    /// Merges two sets, given by their roots.
    pub fn unite(&mut self, a: u32, b: u32, merged: ColocationGroup) {
        let (sa, sb) = (self.groups[a as usize].1, self.groups[b as usize].1);
        let (root, child) = if sa >= sb { (a, b) } else { (b, a) };
        self.parent[child as usize] = root;
        self.groups[root as usize] = (merged, sa + sb);
    }
}
