//! Circles between the files of one module, and between modules: none of them can be read, tested or replaced
//! alone.

use std::collections::{BTreeMap, BTreeSet};

use super::architecture::{BESIDE, CLI, CODEC, Package, REDELAY, TESTING, paths, production_code, root};

/// The modules of each package in which files do form circles: the recursion of nested values.
const WITH_CIRCLES: [(&Package, &[&str]); 5] = [
    (&REDELAY, &[]),
    (&CODEC, &["jackson", "java", "java_serialization", "kryo"]),
    (&CLI, &[]),
    (&TESTING, &[]),
    (&BESIDE, &[]),
];

/// A file, as the path of its module: `["a", "b"]` for `a/b.rs`, and an empty one for `lib.rs`.
type File = Vec<String>;

/// The code of each file. It begins with a new line, as each `use` in it does.
type Files = BTreeMap<File, String>;

/// The file that a path from here leads to: names of modules, and then what one of them defines or has from
/// another one.
fn leads_to(files: &Files, here: &[String], path: &[&str]) -> Option<File> {
    let mut file = here.to_vec();
    let mut rest = path;
    while let [name, after @ ..] = rest {
        file.push((*name).to_owned());
        if !files.contains_key(&file) {
            file.pop();
            break;
        }
        rest = after;
    }
    let Some(name) = rest.first() else { return Some(file) };
    let Some(code) = files.get(&file) else { return Some(file) };
    let uses = ["\nuse ", "\npub use ", "\npub(crate) use ", "\npub(super) use "];
    let mut used = uses.into_iter().flat_map(|word| code.split(word).skip(1)).flat_map(|tree| paths(tree).0);
    match used.find(|path| path.len() > 1 && path.last() == Some(name)) {
        Some(path) if path[0] == "crate" => leads_to(files, &[], &path[1..]),
        Some(path) if path[0] == "super" => leads_to(files, &file[..file.len() - 1], &path[1..]),
        Some(path) if files.contains_key(&[&file[..], &[path[0].to_owned()]].concat()) => {
            leads_to(files, &file, &path)
        }
        // It has it from another crate.
        Some(_) => None,
        None => Some(file),
    }
}

/// The files that a file uses, by `crate::`, `super::`, `self::`, or by the names of modules in it.
fn uses(files: &Files, file: &File, code: &str) -> BTreeSet<File> {
    let mut found = BTreeSet::new();
    let is_word = |at: usize| !code[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
    let mut add = |here: &[String], tree: &str| {
        found.extend(paths(tree).0.iter().filter_map(|path| leads_to(files, here, path)));
    };
    for (at, word) in code.match_indices("crate::").chain(code.match_indices("self::")) {
        // `pub(in …)` says who sees a name.
        if is_word(at) && !code[..at].ends_with("(in ") {
            add(if word == "self::" { file } else { &[] }, &code[at + word.len()..]);
        }
    }
    for (at, _) in code.match_indices("super::") {
        if is_word(at) && !code[..at].ends_with("super::") {
            let (mut here, mut rest) = (&file[..], &code[at..]);
            while let (Some(above), [outer @ .., _]) = (rest.strip_prefix("super::"), here) {
                (rest, here) = (above, outer);
            }
            add(here, rest);
        }
    }
    // By the name of a module in it: in a `use`, or in the code. What it passes on, it does not use.
    let is_passed_on = |at: usize| {
        let line = code[..at].rsplit('\n').next().unwrap_or_default();
        line.starts_with("pub") && line.contains("use ")
    };
    let children = files.keys().filter(|child| child.len() == file.len() + 1 && child.starts_with(file));
    for name in children.filter_map(|child| child.last()) {
        for (at, _) in code.match_indices(&format!("{name}::")) {
            if is_word(at) && !code[..at].ends_with("::") && !is_passed_on(at) {
                add(file, &code[at..]);
            }
        }
    }
    found.remove(file);
    found
}

/// The files that can be reached from here, by one arrow or more.
fn reached<'a>(arrows: &'a BTreeMap<File, BTreeSet<File>>, from: &File) -> BTreeSet<&'a File> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&File> = arrows[from].iter().collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(arrows.get(file).into_iter().flatten());
        }
    }
    reached
}

/// The files that reach themselves within their module, and the modules that do, by module.
fn circles(files: &Files) -> BTreeMap<String, Vec<String>> {
    let (mut within, mut between) = (BTreeMap::new(), BTreeMap::new());
    for (file, code) in files {
        // `lib.rs` only names what the modules have.
        let Some(module) = file.first() else { continue };
        let used = uses(files, file, code).into_iter().filter(|used| !used.is_empty());
        let (own, others): (BTreeSet<_>, BTreeSet<_>) = used.partition(|used| used[0] == *module);
        within.insert(file.clone(), own);
        let modules = others.into_iter().map(|used| used[..1].to_vec());
        between.entry(vec![module.clone()]).or_insert_with(BTreeSet::new).extend(modules);
    }
    let mut circles = BTreeMap::new();
    for arrows in [within, between] {
        for file in arrows.keys().filter(|file| reached(&arrows, file).contains(file)) {
            circles.entry(file[0].clone()).or_insert_with(Vec::new).push(file.join("/"));
        }
    }
    circles
}

fn files(sources: impl IntoIterator<Item = (String, String)>) -> Files {
    let path = |file: &str| match file {
        "lib.rs" => File::new(),
        _ => file.trim_end_matches(".rs").split('/').map(str::to_owned).collect(),
    };
    sources.into_iter().map(|(file, code)| (path(&file), format!("\n{code}"))).collect()
}

#[test]
fn neither_files_nor_modules_form_a_circle() {
    for (package, with_circles) in WITH_CIRCLES {
        let sources = production_code(package).into_iter();
        let sources =
            sources.map(|(_, file, code)| (file.to_str().expect("a name").replace('\\', "/"), code));
        let circles = circles(&files(sources.chain([("lib.rs".to_owned(), root(package))])));
        let new = circles.iter().filter(|(module, _)| !with_circles.contains(&&***module));
        let new: Vec<_> = new.map(|(module, files)| format!("`{module}`: {}", files.join(", "))).collect();
        assert!(new.is_empty(), "files of a module, or modules, use each other: {}", new.join("; "));
        for module in with_circles {
            assert!(
                circles.contains_key(*module),
                "no circle is left in `{module}`: remove it from the list"
            );
        }
    }
}

#[test]
fn every_form_of_a_circle_is_found() {
    let circles_of = |sources: &[(&str, &str)]| {
        let sources = sources.iter().map(|(file, code)| ((*file).to_owned(), (*code).to_owned()));
        circles(&files(sources)).into_values().flatten().collect::<Vec<_>>().join(" ")
    };
    let root = ("a.rs", "pub(crate) use b::{B, b};\nuse c::C;\nstruct A;");
    assert_eq!(circles_of(&[root, ("a/b.rs", "use crate::d::D;"), ("a/c.rs", "use super::B;")]), "");
    // By names, by what the root has from another file, and by paths in the code.
    for (b, c) in [
        ("use super::c::C;", "use super::b::B;"),
        ("use super::C;", "use super::{B, b};"),
        ("fn f() { super::c::f() }", "fn f() { crate::a::b::f() }"),
    ] {
        assert_eq!(circles_of(&[root, ("a/b.rs", b), ("a/c.rs", c)]), "a/b a/c");
    }
    // A file and the root of its module.
    assert_eq!(circles_of(&[root, ("a/b.rs", ""), ("a/c.rs", "use super::A;")]), "a a/c");
    // By the bare name of a module in the code.
    let calls = ("a.rs", "struct A;\nfn f() { b::f() }");
    assert_eq!(circles_of(&[calls, ("a/b.rs", "use super::A;")]), "a a/b");
    assert_eq!(circles_of(&[("a.rs", "pub use b::f;\nstruct A;"), ("a/b.rs", "use super::A;")]), "");
    // A file in a folder, and one beside the folder.
    let deep = [("a/b/e.rs", "use super::super::c::C;"), ("a/c.rs", "use super::b::e::E;")];
    assert_eq!(circles_of(&[root, ("a/b.rs", ""), deep[0], deep[1]]), "a/b/e a/c");
    // Modules whose files form none, and modules by what `lib.rs` has from them.
    let modules = [("a.rs", ""), ("a/b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::A;")];
    assert_eq!(circles_of(&modules), "a c");
    let lib = ("lib.rs", "mod a;\npub use {a::A, c::C};");
    assert_eq!(circles_of(&[lib, ("a.rs", "use crate::C;"), ("c.rs", "use crate::A;")]), "a c");
    assert_eq!(circles_of(&[lib, ("a.rs", "use crate::C;"), ("c.rs", "")]), "");
}
