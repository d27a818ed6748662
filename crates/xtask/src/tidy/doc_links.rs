//! Links in documents lead to files and headings that exist, and the book's summary lists every
//! page.

use super::Finding;
use super::markdown::{anchors, links};
use super::tree::{Source, Tree};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for document in tree.documents() {
        for link in links(&document.text) {
            if let Some(why) = problem(tree, document, link.text) {
                found.push(Finding::new(&document.path, link.line, why));
            }
        }
    }
    found.extend(unlisted(tree));
    found
}

/// Pages of the book that its summary does not list, which mdBook leaves out.
fn unlisted(tree: &Tree) -> Vec<Finding> {
    const SUMMARY: &str = "docs/src/SUMMARY.md";
    let Some(summary) = tree.file(SUMMARY) else { return Vec::new() };
    let listed = links(&summary.text).into_iter().map(|link| resolve(SUMMARY, link.text));
    let listed: Vec<String> = listed.chain([SUMMARY.into()]).collect();
    let pages = tree.documents().filter(|page| page.path.starts_with("docs/src/"));
    let unlisted = pages.filter(|page| !listed.contains(&page.path));
    unlisted
        .map(|page| Finding::new(&page.path, 0, format!("{SUMMARY} does not list it")))
        .collect()
}

fn problem(tree: &Tree, document: &Source, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => document.path.clone(),
        path => resolve(&document.path, path),
    };
    if !tree.has(&target) {
        return Some(format!("the link {link} leads to {target}, which does not exist"));
    }
    let page = tree.file(&target).filter(|_| target.ends_with(".md"))?;
    let is_missing = !anchor.is_empty() && !anchors(&page.text).iter().any(|a| a == anchor);
    is_missing.then(|| format!("{target} has no heading #{anchor}"))
}

/// The path of `path` as written in the document `from`.
fn resolve(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_nothing_is_found() {
        let tree = Tree::of(&[
            ("docs/a.md", "[x](gone.md)\n[y](b.md#gone)\n[z](#nor-this)\n![i](i.svg)"),
            ("docs/b.md", "# There\n"),
        ]);
        let lines: Vec<usize> = check(&tree).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 2, 3, 4]);
    }

    #[test]
    fn a_page_that_the_summary_does_not_list_is_found() {
        let tree = Tree::of(&[
            ("docs/src/SUMMARY.md", "- [a](start/a.md)\n"),
            ("docs/src/start/a.md", ""),
            ("docs/src/start/b.md", ""),
        ]);
        let found = check(&tree);
        assert_eq!(
            found,
            [Finding::new("docs/src/start/b.md", 0, "docs/src/SUMMARY.md does not list it")]
        );
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text =
            "# Own\n[a](../README.md) [b](b.md#there) [c](#own) [d](https://x.org) [e](../docs)";
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", "## There\n"), ("README.md", "")]);
        assert_eq!(check(&tree), []);
    }
}
