//! Tables that are looked into several times a step: std's, with a hasher that takes a tenth of the time. It has
//! a seed of its own in every process, so that nobody outside knows which keys collide.

pub type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
pub type HashSet<K> = std::collections::HashSet<K, foldhash::fast::RandomState>;
