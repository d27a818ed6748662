//! The parts of a document that the rules read: links, headings and words in backquotes.

/// A place in a document.
#[derive(Debug, PartialEq)]
pub struct Span<'a> {
    pub line: usize,
    pub text: &'a str,
}

/// The lines of a document outside fenced code, with their numbers.
pub fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fence && !is_fenced
    })
}

/// The texts in backquotes.
pub fn code(text: &str) -> Vec<Span<'_>> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        let parts = text.split('`').collect::<Vec<_>>();
        // Every second part is in backquotes, if they come in pairs.
        let count = parts.len() - usize::from(parts.len() % 2 == 0);
        found.extend(parts[..count].iter().skip(1).step_by(2).map(|text| Span { line, text }));
    }
    found
}

/// The targets of `[text](target)` and `![text](target)`, and of `src="…"` and `href="…"`.
pub fn links(text: &str) -> Vec<Span<'_>> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        for (start, end) in [("](", ')'), ("src=\"", '"'), ("href=\"", '"')] {
            for (at, _) in text.match_indices(start) {
                // Text in backquotes is an example.
                if text[..at].matches('`').count() % 2 == 1 {
                    continue;
                }
                let rest = &text[at + start.len()..];
                let target = rest.split(end).next().unwrap_or_default();
                let target = target.split(' ').next().unwrap_or_default();
                found.push(Span { line, text: target });
            }
        }
    }
    found
}

/// The anchors of a document's headings, as GitHub and mdBook make them.
pub fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let anchor = anchor(title.trim());
        let earlier = found.iter().filter(|other| **other == anchor).count();
        found.push(if earlier == 0 { anchor } else { format!("{anchor}-{earlier}") });
    }
    found
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_what_stands_in_backquotes_outside_fences() {
        let text = "a `b` c `d`\n```\n`e`\n```\n`f` and one ` alone";
        let found: Vec<_> = code(text).into_iter().map(|s| (s.line, s.text)).collect();
        assert_eq!(found, [(1, "b"), (1, "d"), (5, "f")]);
    }

    #[test]
    fn links_of_both_kinds_are_found() {
        let text = "[a](b.md#c) ![d](e.svg \"title\") `[x](y)` <img src=\"f.svg\">";
        let found: Vec<_> = links(text).into_iter().map(|s| s.text).collect();
        assert_eq!(found, ["b.md#c", "e.svg", "f.svg"]);
    }

    #[test]
    fn anchors_are_those_of_headings() {
        let text = "# A `b`: c\n## Same\n```\n# no\n```\n## Same\n#not\n";
        assert_eq!(anchors(text), ["a-b-c", "same", "same-1"]);
    }
}
