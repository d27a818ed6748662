//! Why some of TensorFlow's ops have no kernel here.

/// One line for each op or prefix of ops (`_Mkl*`), and the reason.
const TABLE: &str = include_str!("../data/unsupported-ops.tsv");

/// Why an op of TensorFlow is not supported, if the list gives a reason.
pub fn unsupported_reason(op: &str) -> Option<&'static str> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let mut rows = lines.filter_map(|line| line.split_once('\t'));
    let found = rows.find(|(pattern, _)| match pattern.strip_suffix('*') {
        Some(prefix) => op.starts_with(prefix),
        None => op == *pattern,
    });
    found.map(|(_, reason)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_found_by_name_and_by_prefix() {
        let python = unsupported_reason("PyFunc").unwrap();
        assert!(python.contains("Python"), "{python}");
        assert!(unsupported_reason("_MklConv2D").unwrap().contains("oneDNN"));
        assert_eq!(unsupported_reason("MatMul"), None);
    }
}
