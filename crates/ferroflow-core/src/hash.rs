//! Hash tables for look-ups in every step. The hasher takes a tenth of the time of std's. Each
//! process has a random seed, so that outsiders cannot choose colliding keys.

/// A hash map with the fast hasher.
pub type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
/// A hash set with the fast hasher.
pub type HashSet<K> = std::collections::HashSet<K, foldhash::fast::RandomState>;
