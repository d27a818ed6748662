//! No text contains the phrases of `crates/xtask/tidy/phrases.txt`.
//!
//! The rule compares words, so case, line breaks, comment marks and `_` do not matter. The end of a
//! sentence ends a phrase.

use super::Finding;
use super::tree::{Source, Tree};

const LIST: &str = "crates/xtask/tidy/phrases.txt";

/// Files that people read or write. Other files are data.
const ENDINGS: [&str; 10] =
    [".rs", ".md", ".py", ".toml", ".sh", ".proto", ".html", ".svg", ".yaml", ".yml"];

struct Phrase<'a> {
    words: Vec<&'a str>,
    instead: &'a str,
}

pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(list) = tree.file(LIST) else {
        return vec![Finding::new(LIST, 0, "the list of phrases is missing")];
    };
    let phrases: Vec<Phrase> = list.lines().filter_map(|(_, line)| phrase(line)).collect();
    let mut found = Vec::new();
    for file in &tree.files {
        let is_text = ENDINGS.iter().any(|ending| file.path.ends_with(ending));
        if is_text || file.path == ".ci/run" {
            find(file, &phrases, &mut found);
        }
    }
    found
}

fn phrase(line: &str) -> Option<Phrase<'_>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (words, instead) = line.split_once("->").unwrap_or((line, ""));
    Some(Phrase { words: words.split_whitespace().collect(), instead: instead.trim() })
}

fn find(file: &Source, phrases: &[Phrase], found: &mut Vec<Finding>) {
    let words = words(&file.text);
    for at in 0..words.len() {
        for phrase in phrases {
            let here = words[at..].iter().map(|(word, _)| word.as_str());
            if here.take(phrase.words.len()).eq(phrase.words.iter().copied()) {
                let (said, instead) = (phrase.words.join(" "), phrase.instead);
                let text = format!("'{said}'; write: {instead}");
                found.push(Finding::new(&file.path, words[at].1, text));
            }
        }
    }
}

/// The words of a text in lower case, with their lines. The end of a sentence is an empty word.
fn words(text: &str) -> Vec<(String, usize)> {
    let mut words = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        for part in text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '\'') {
            let (word, end) = match part.char_indices().next_back() {
                Some((at, c)) if !c.is_alphanumeric() && c != '\'' => (&part[..at], Some(c)),
                _ => (part, None),
            };
            if !word.is_empty() {
                words.push((word.to_lowercase(), line));
            }
            if end.is_some_and(|c| ".;:!?,(){}[]|=\"`".contains(c)) {
                words.push((String::new(), line));
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<usize> {
        let list = "# a comment\nfoo bar -> baz\nqux -> quux\n";
        let tree = Tree::of(&[(LIST, list), ("crates/a/src/x.rs", text)]);
        check(&tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn phrases_are_found_in_any_form() {
        assert_eq!(findings("// A Foo bar here.\n"), [1]);
        assert_eq!(findings("// It is foo\n    // bar here.\n"), [1]);
        assert_eq!(findings("fn it_foo_bar_s() {}\nfn a_qux() {}"), [1, 2]);
    }

    #[test]
    fn other_words_pass() {
        assert_eq!(findings("// foobar, Qux2 and foo. Bar\nlet foo = bar;\n"), [1; 0]);
    }

    #[test]
    fn the_list_names_a_replacement_for_each_phrase() {
        let tree = Tree::load(&crate::paths::root()).unwrap();
        let lines = tree.file(LIST).unwrap().lines();
        let mut phrases = lines.filter_map(|(_, line)| phrase(line)).peekable();
        assert!(phrases.peek().is_some());
        assert!(phrases.all(|phrase| !phrase.instead.is_empty() && !phrase.words.is_empty()));
    }
}
