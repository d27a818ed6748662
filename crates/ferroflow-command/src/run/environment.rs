//! Environment variables that `-x` exports to every process of a job, on all hosts.

use super::hosts::invalid;
use ferroflow::Result;

/// Parses `-x NAME` and `-x NAME=VALUE`.
pub fn passed_on(words: &[String]) -> Result<Vec<(String, String)>> {
    words.iter().map(|word| variable(word)).collect()
}

fn variable(word: &str) -> Result<(String, String)> {
    let (name, given) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.to_string())),
        None => (word, None),
    };
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err(invalid(format!("-x {word}: write -x NAME or -x NAME=VALUE")));
    }
    let value = given.map_or_else(|| std::env::var(name), Ok);
    let value =
        value.map_err(|e| invalid(format!("-x {name}: {e} here; write -x {name}=VALUE")))?;
    Ok((name.to_string(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_given_or_those_of_here() {
        let words = ["A_1=b=c".to_string(), "PATH".to_string(), "EMPTY=".to_string()];
        let found = passed_on(&words).unwrap();
        let expected = [("A_1", "b=c"), ("PATH", &std::env::var("PATH").unwrap()), ("EMPTY", "")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_string(), value.to_string())));
        for odd in ["", "=x", "1A=x", "A B=x", "A;rm=x", "NO_SUCH_VARIABLE_ANYWHERE"] {
            assert!(passed_on(&[odd.to_string()]).is_err(), "{odd}");
        }
    }
}
