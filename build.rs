//! Two things that a manifest cannot say:
//!
//! * `cfg(guide)`: the API documentation has the guides of `docs` as modules. Their links are rewritten, so
//!   that they lead from module to module. In the workspace only if asked for, or a change of a guide would
//!   build everything again.
//! * `cfg(workspace)`: the packages are here that some unit tests need, which are not published.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(guide, workspace)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=REDELAY_GUIDE");
    let is_workspace = Path::new("tests/fixture/Cargo.toml").exists();
    if is_workspace {
        println!("cargo::rustc-cfg=workspace");
    }
    if !is_workspace || env::var_os("REDELAY_GUIDE").is_some() {
        println!("cargo::rustc-cfg=guide");
        println!("cargo::rerun-if-changed=docs");
        let out = env::var("OUT_DIR").expect("a folder");
        for guide in guides(Path::new("docs")) {
            let text = fs::read_to_string(format!("docs/{guide}.md")).expect("a guide");
            let text = rewrite(&text, in_rustdoc);
            fs::write(format!("{out}/{guide}.md"), text).expect("the folder can be written");
        }
    }
}

/// The names of the guides in a folder.
pub(crate) fn guides(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("the guides").map(|file| file.expect("a file").file_name());
    let names = files.filter_map(|name| Some(name.to_str()?.strip_suffix(".md")?.to_owned()));
    names.collect()
}

/// Where a link of a guide leads in the API documentation: to a module, or nowhere.
fn in_rustdoc(link: &str) -> Option<String> {
    if is_complete(link) {
        return Some(link.to_owned());
    }
    let (file, heading) = parts(link);
    let guide = file.strip_suffix(".md").filter(|guide| !guide.contains('/'))?;
    Some(format!("crate::guide::{}{heading}", guide.replace('-', "_")))
}

/// Whether a link does not depend on where the file is.
pub(crate) fn is_complete(link: &str) -> bool {
    link.starts_with('#') || link.contains("://")
}

/// The path of a link, and its heading with the `#`.
pub(crate) fn parts(link: &str) -> (&str, &str) {
    link.split_at(link.find('#').unwrap_or(link.len()))
}

/// Markdown with other links. A link that leads nowhere becomes its text, and such a picture is left out.
pub(crate) fn rewrite(text: &str, to: impl Fn(&str) -> Option<String>) -> String {
    let (mut rewritten, mut prose, mut is_code) = (String::new(), String::new(), false);
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if is_code || is_fence {
            rewritten += &rewrite_prose(&prose, &to);
            prose.clear();
            rewritten += line;
            is_code ^= is_fence;
        } else {
            prose += line;
        }
    }
    rewritten + &rewrite_prose(&prose, &to)
}

fn rewrite_prose(prose: &str, to: &impl Fn(&str) -> Option<String>) -> String {
    let (mut rewritten, mut rest) = (String::new(), prose);
    while let Some(middle) = rest.find("](") {
        let end = middle + rest[middle..].find(')').expect("the end of a link");
        // The text may have brackets, too.
        let mut depth = 0;
        let begin = rest[..=middle].char_indices().rev().find_map(|(at, letter)| {
            depth += i32::from(letter == ']') - i32::from(letter == '[');
            (depth == 0).then_some(at)
        });
        let begin = begin.expect("the begin of a link");
        let (before, text, link) = (&rest[..begin], &rest[begin + 1..middle], &rest[middle + 2..end]);
        match (to(link), before.strip_suffix('!')) {
            (Some(link), _) => rewritten += &format!("{before}[{text}]({link})"),
            (None, None) => rewritten += &format!("{before}{text}"),
            (None, Some(before)) => rewritten += before,
        }
        rest = &rest[end + 1..];
    }
    rewritten + rest
}
