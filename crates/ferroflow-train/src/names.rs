//! Names of nodes: unique within a graph regardless of case, as in TensorFlow.

use std::collections::HashMap;

/// The used names in lower case, and how often each was requested.
#[derive(Default)]
pub(crate) struct Names {
    taken: HashMap<String, u64>,
}

impl Names {
    /// `name`, or `name_1`, `name_2`, … if it is taken.
    pub fn unique(&mut self, name: &str) -> String {
        let key = name.to_lowercase();
        let mut count = self.taken.get(&key).copied().unwrap_or(0);
        self.taken.insert(key, count + 1);
        if count == 0 {
            return name.to_string();
        }
        let mut candidate = name.to_string();
        while self.taken.contains_key(&candidate.to_lowercase()) {
            candidate = format!("{name}_{count}");
            count += 1;
        }
        self.taken.insert(candidate.to_lowercase(), 1);
        candidate
    }

    /// Marks a name as used.
    pub fn take(&mut self, name: &str) {
        *self.taken.entry(name.to_lowercase()).or_insert(0) += 1;
    }
}

/// Whether a node may have this name.
pub(crate) fn is_valid(name: &str) -> bool {
    let ok = |c: char| c.is_ascii_alphanumeric() || "_>./\\-".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.') && name.chars().all(ok)
}

/// `name` within `scope`, which may be empty.
pub(crate) fn join(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_string() } else { format!("{scope}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_regardless_of_case() {
        let mut names = Names::default();
        assert_eq!(names.unique("a"), "a");
        assert_eq!(names.unique("a"), "a_1");
        assert_eq!(names.unique("A"), "A_2");
        names.take("b_1");
        assert_eq!(names.unique("b"), "b");
        assert_eq!(names.unique("b"), "b_2");
    }
}
