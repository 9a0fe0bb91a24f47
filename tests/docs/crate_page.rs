//! `CRATE.md`, which crates.io shows: the README with links that work there.

use std::fs;
use std::path::Path;

/// What rewrites the links of the guides, too.
#[expect(dead_code, reason = "the test has its own links")]
#[path = "../../build.rs"]
pub(super) mod build;

/// `repository` of the workspace: empty until there is one.
fn repository() -> &'static str {
    let manifest = include_str!("../../Cargo.toml");
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = \""));
    line.expect("a repository, or none yet").trim_end_matches('"')
}

/// Guides are modules of the API documentation. The other files are in the repository, or else in the
/// package.
fn on_crates_io(link: &str) -> Option<String> {
    if build::is_complete(link) {
        return Some(link.to_owned());
    }
    let version = env!("CARGO_PKG_VERSION");
    let (file, heading) = build::parts(link);
    let guide = file.strip_prefix("docs/").and_then(|file| file.strip_suffix(".md"));
    match (guide.filter(|guide| !guide.contains('/')), repository()) {
        (Some(guide), _) => {
            let module = guide.replace('-', "_");
            Some(format!("https://docs.rs/redelay/{version}/redelay/guide/{module}/index.html{heading}"))
        }
        (None, "")
            if ["docs/benchmarks/", "examples/demo/"].iter().any(|folder| file.starts_with(folder)) =>
        {
            None
        }
        (None, "") => Some(format!("https://docs.rs/crate/redelay/{version}/source/{file}{heading}")),
        // The picture itself, and not the page that shows it.
        (None, repository) if file.ends_with(".svg") => {
            Some(format!("{repository}/raw/v{version}/{file}?sanitize=true"))
        }
        (None, repository) => Some(format!("{repository}/blob/v{version}/{file}{heading}")),
    }
}

#[test]
fn the_crate_page_is_the_readme_with_links_that_work_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("the README");
    let page = build::rewrite(&readme, on_crates_io);
    if std::env::var_os("REDELAY_BLESS").is_some() {
        fs::write(root.join("CRATE.md"), &page).expect("it is written");
    }
    let written = fs::read_to_string(root.join("CRATE.md")).expect("the page");
    assert!(written == page, "CRATE.md is not what README.md gives: REDELAY_BLESS=1 writes it");
    assert!(!page.contains("<picture") || !repository().is_empty(), "a picture needs the repository");
}

#[test]
fn links_are_rewritten_wherever_they_are() {
    let to = |link: &str| link.strip_suffix(".md").map(|name| format!("crate::{name}"));
    for (text, expected) in [
        ("[a](b.md), [c\nd](e.md)", "[a](crate::b), [c\nd](crate::e)"),
        ("an array `[` and [`f[0]`](g.md)", "an array `[` and [`f[0]`](crate::g)"),
        ("[nowhere](x.txt) and ![a picture](p.svg)!", "nowhere and !"),
        ("```text\n[a](b.md)\n```\n[a](b.md)", "```text\n[a](b.md)\n```\n[a](crate::b)"),
    ] {
        assert_eq!(build::rewrite(text, to), expected);
    }
}
