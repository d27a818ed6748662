//! Names of nodes and scopes, made unique as TensorFlow does: case is ignored, and each name has
//! one counter.

use std::collections::HashMap;

#[derive(Default)]
pub struct UniqueNames {
    used: HashMap<String, u32>,
}

impl UniqueNames {
    /// A name that is not in use: `name` itself or `name_1`, `name_2`, ….
    pub fn unique(&mut self, name: &str, mark: bool) -> String {
        let mut key = name.to_lowercase();
        let mut i = self.used.get(&key).copied().unwrap_or(0);
        if mark {
            self.used.insert(key.clone(), i + 1);
        }
        if i == 0 {
            return name.to_string();
        }
        let base = key.clone();
        while self.used.contains_key(&key) {
            key = format!("{base}_{i}");
            i += 1;
        }
        if mark {
            self.used.insert(key, 1);
        }
        format!("{name}_{}", i - 1)
    }

    /// Marks a name as used.
    pub fn mark(&mut self, name: &str) {
        let key = name.to_lowercase();
        self.used.entry(key).or_insert(1);
    }
}
