//! The orders of modules that CONTRIBUTING.md prints, the dependencies that docs/design explains, those of
//! the codec crate, and the features that the front page lists, compared with the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::crate_page::build::guides;

/// A package whose modules have an order.
pub(super) struct Package {
    /// Its folder in the repository.
    folder: &'static str,
    /// The first row of its table in CONTRIBUTING.md.
    table: &'static str,
    /// The least number of uses between its modules. If fewer are found, this test no longer reads the
    /// sources.
    uses: usize,
}

pub(super) const REDELAY: Package = Package { folder: "", table: "| module | owns |", uses: 100 };
pub(super) const CODEC: Package =
    Package { folder: "crates/redisson-codec", table: "| module of `redisson-codec` | owns |", uses: 20 };

/// These have no order of modules.
pub(super) const CLI: Package = Package { folder: "crates/redelay-cli", table: "", uses: 0 };
pub(super) const TESTING: Package = Package { folder: "crates/redelay-testing", table: "", uses: 0 };
pub(super) const METRICS: Package = Package { folder: "crates/redelay-metrics", table: "", uses: 0 };
pub(super) const APALIS: Package = Package { folder: "crates/redelay-apalis", table: "", uses: 0 };
pub(super) const BESIDE: Package = Package { folder: "benches/beside", table: "", uses: 0 };

/// The rank of each module, by the table in CONTRIBUTING.md. The top row has the highest.
fn ranks(package: &Package) -> BTreeMap<String, usize> {
    let text = include_str!("../../CONTRIBUTING.md");
    let table = text.split(package.table).nth(1).expect("the table of modules");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells: Vec<&str> = rows.map(|row| row.split('|').nth(1).expect("a cell")).collect();
    let mut ranks = BTreeMap::new();
    for (row, cell) in cells.iter().rev().enumerate() {
        for name in cell.split('`').skip(1).step_by(2).filter(|name| !name.contains('/')) {
            assert!(ranks.insert(name.to_owned(), row).is_none(), "`{name}` is in two rows");
        }
    }
    ranks
}

pub(super) fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    into.extend(files_of(folder, "rs"));
}

/// The files in a folder, and in those within it, whose names have this extension.
pub(super) fn files_of(folder: &Path, extension: &str) -> impl Iterator<Item = PathBuf> {
    files(folder).into_iter().filter(move |file| file.extension().is_some_and(|end| end == extension))
}

/// The files in a folder, and in those within it.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|entry| if entry.is_dir() { files(&entry) } else { vec![entry] }).collect()
}

/// The module of a file, and its code without comments and without its unit tests.
pub(super) fn production_code(package: &Package) -> Vec<(String, PathBuf, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join(package.folder).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let is_test =
        |file: &Path| file.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"));
    let files = files.into_iter().map(|file| file.strip_prefix(&src).expect("in src").to_path_buf());
    files
        .filter(|file| file != Path::new("lib.rs") && !is_test(file))
        .map(|file| {
            let first = file.components().next().expect("a name").as_os_str().to_string_lossy();
            let module = first.trim_end_matches(".rs").to_owned();
            let text = fs::read_to_string(src.join(&file)).expect("a source");
            let code = text.split("\nmod tests {").next().expect("a part");
            let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            (module, file, code.join("\n"))
        })
        .collect()
}

/// The root of a library. Empty for a program.
pub(super) fn root(package: &Package) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(package.folder).join("src/lib.rs");
    fs::read_to_string(root).unwrap_or_default()
}

#[test]
fn a_module_uses_only_modules_of_lower_rows() {
    is_in_order(&REDELAY);
    is_in_order(&CODEC);
}

/// The paths that begin here: `a::b` and `a::c` for `a::{b, c}`. A path ends with its last name, or with the
/// name that `as` gives it. Returns what follows them, too.
pub(super) fn paths(text: &str) -> (Vec<Vec<&str>>, &str) {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        let mut all = Vec::new();
        loop {
            let (paths, after) = paths(rest);
            all.extend(paths);
            match after.trim_start().strip_prefix(',') {
                Some(next) => rest = next,
                None => return (all, after.trim_start().trim_start_matches('}')),
            }
        }
    }
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        return (if rest.starts_with('}') { vec![] } else { vec![vec![]] }, rest.trim_start_matches('*'));
    }
    if let Some(inside) = rest.strip_prefix("::") {
        let (mut paths, rest) = paths(inside);
        paths.iter_mut().for_each(|path| path.insert(0, name));
        return (paths, rest);
    }
    match rest.strip_prefix(" as ") {
        Some(alias) => paths(alias),
        None => (vec![vec![name]], rest),
    }
}

/// What the root of a crate re-exports, and from which module.
fn reexported(root: &str) -> BTreeMap<&str, &str> {
    let uses = ["\npub use ", "\npub(crate) use "].into_iter().flat_map(|word| root.split(word).skip(1));
    let paths = uses.flat_map(|tree| paths(tree).0);
    paths.filter_map(|path| Some((*path.last()?, *path.first()?))).collect()
}

/// The names in the root of the crate that a file uses, by `crate::` or by enough of `super::`. `depth` is
/// that of its module: 1 for `a`, 2 for `a::b`.
fn names_in_root(code: &str, depth: usize) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = code;
    while let Some(at) = ["crate::", "super::"].iter().filter_map(|word| rest.find(word)).min() {
        let is_word = !rest[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        rest = &rest[at..];
        let mut supers = 0;
        while let Some(above) = rest.strip_prefix("super::") {
            (rest, supers) = (above, supers + 1);
        }
        let from_root = rest.strip_prefix("crate::");
        rest = from_root.unwrap_or(rest);
        if is_word && (from_root.is_some() || supers >= depth) {
            names.extend(paths(rest).0.iter().filter_map(|path| path.first()));
        }
    }
    names
}

#[test]
fn every_form_of_a_path_into_another_module_is_seen() {
    let seen = |code, depth| names_in_root(code, depth).join(" ");
    assert_eq!(seen("use crate::a;", 1), "a");
    assert_eq!(seen("use crate::{a::{b, c}, d, e::{f::{g}, self}};", 1), "a a d e e");
    assert_eq!(seen("use crate::{\n    a::b as c,\n    d::*,\n};\nuse x::y;", 1), "a d");
    assert_eq!(seen("let a = crate::b::C::<crate::d::E>::new();", 1), "b d");
    assert_eq!(seen("use super::a; use super::super::b;", 1), "a b");
    assert_eq!(seen("use super::a; use super::super::{b::{c}, d}; use super::super::super::e;", 2), "b d e");
    assert_eq!(seen("use my_crate::a;", 1), "");
    let root = "\npub use a::{B, c::{D as E}};\npub(crate) use f::G;\npub use h::I;";
    let expected = [("B", "a"), ("E", "a"), ("G", "f"), ("I", "h")];
    assert_eq!(reexported(root), BTreeMap::from(expected));
}

fn is_in_order(package: &Package) {
    let ranks = ranks(package);
    let root = root(package);
    let reexported = reexported(&root);
    let defines = |name: &str| {
        ["struct", "enum", "trait", "type"].iter().any(|what| root.contains(&format!("\npub {what} {name}")))
    };
    let mut wrong = Vec::new();
    let mut uses = 0;
    for (module, file, code) in production_code(package) {
        let Some(own) = ranks.get(&module) else {
            wrong.push(format!("{}: CONTRIBUTING.md does not list `{module}`", file.display()));
            continue;
        };
        for name in names_in_root(&code, file.components().count()) {
            let used = *reexported.get(name).unwrap_or(&name);
            uses += 1;
            match ranks.get(used) {
                _ if used == module || used == "codec" || defines(used) => {}
                Some(rank) if rank < own => {}
                Some(_) => wrong.push(format!("{} uses `{used}`, which is not below it", file.display())),
                None => wrong.push(format!("{} uses `crate::{used}`, which is no module", file.display())),
            }
        }
    }
    assert!(uses >= package.uses, "{}: only {uses} uses were found", package.folder);
    assert!(wrong.is_empty(), "{}: {}", package.folder, wrong.join("\n"));
}

/// Each module is in the table of the tests that guard it, and these exist.
#[test]
fn every_module_has_tests_that_guard_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = include_str!("../../CONTRIBUTING.md");
    let table = text.split("| change in | guarded by |").nth(1).expect("the table");
    let mut listed = BTreeSet::new();
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').collect();
        let in_quotes = |cell: &'static str| cell.split('`').skip(1).step_by(2);
        listed.extend(in_quotes(cells[1]).map(str::to_owned));
        for tests in in_quotes(cells[2]) {
            let (program, filter) = tests.split_once(' ').unwrap_or((tests, "main"));
            let folders = match program {
                "lib" => vec![root.join("src")],
                _ => vec![root.join("tests").join(program), root.join("tests/model/tests").join(program)],
            };
            let path = filter.replace("::", "/");
            let file = folders.iter().map(|folder| folder.join(&path).with_extension("rs"));
            assert!(file.into_iter().any(|file| file.is_file()), "there is no `{tests}`");
        }
    }
    assert_eq!(listed, ranks(&REDELAY).into_keys().collect());
}

/// What a worker does, a program of yours can do, too. `lib.rs` exports types only, so a path that begins
/// with a small letter is a module of the crate.
#[test]
fn a_worker_uses_only_the_public_api() {
    let mut files = 0;
    let root = include_str!("../../src/lib.rs");
    let public: BTreeSet<_> =
        root.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    for (module, file, code) in production_code(&REDELAY) {
        if module != "worker" {
            continue;
        }
        files += 1;
        for name in names_in_root(&code, file.components().count()) {
            let is_public = name.starts_with(|letter: char| letter.is_uppercase()) || public.contains(name);
            assert!(is_public, "{} uses the module `{name}`", file.display());
        }
        assert!(!code.contains("pub(crate)"), "{} has something for other modules", file.display());
    }
    assert!(files > 3, "only {files} files");
}

/// What has to change if the client library does.
#[test]
fn five_files_of_conn_name_the_client_library() {
    let naming: BTreeSet<PathBuf> = production_code(&REDELAY)
        .into_iter()
        .filter(|(_, _, code)| code.contains("fred::"))
        .map(|(_, file, _)| file)
        .collect();
    let five = ["client", "establish", "library_error", "reply", "url"];
    assert_eq!(naming, five.map(|name| Path::new("conn").join(name).with_extension("rs")).into());
}

/// A file that calls itself pure gets the time from its caller.
#[test]
fn what_is_pure_reads_no_clock() {
    let mut pure = 0;
    for package in [REDELAY, CLI] {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join(package.folder).join("src");
        for (_, file, code) in production_code(&package) {
            let text = fs::read_to_string(src.join(&file)).expect("a source");
            let head: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
            if head.contains(" Pure") {
                pure += 1;
                let reads = code.contains("::now()") || code.contains(".elapsed()");
                assert!(!reads, "{} is not pure", file.display());
            }
        }
    }
    assert!(pure > 30, "only {pure} pure files");
}

/// The codecs serve any program, whichever Redis client and runtime it has.
#[test]
fn the_codec_crate_depends_on_serde_and_the_formats_only() {
    let found = dependencies(include_str!("../../crates/redisson-codec/Cargo.toml"));
    let formats = [
        "base64",
        "bytes",
        "lz4_flex",
        "minicbor",
        "rmp",
        "rmp-serde",
        "ruzstd",
        "serde",
        "serde_json",
        "snap",
    ];
    let conversions = ["bigdecimal", "jiff", "num-bigint", "uuid"];
    assert_eq!(found, formats.into_iter().chain(conversions).collect());
}

/// The names of the dependencies in a manifest, with those of one kind of system.
fn dependencies(manifest: &str) -> BTreeSet<&str> {
    let sections = manifest.split("\n[").filter_map(|section| section.split_once("]\n"));
    let is_of_users = |name: &str| name == "dependencies" || name.starts_with("target.");
    let lines = sections.filter(|(name, _)| is_of_users(name)).flat_map(|(_, lines)| lines.lines());
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect()
}

#[test]
fn the_design_gives_a_reason_for_every_dependency() {
    let text = include_str!("../../docs/design/dependencies.md");
    let mut trees = text.split("```").nth(1).expect("the trees").split("\n\n");
    let manifests = [
        include_str!("../../Cargo.toml"),
        include_str!("../../crates/redisson-codec/Cargo.toml"),
        include_str!("../../crates/redelay-apalis/Cargo.toml"),
        include_str!("../../crates/redelay-cli/Cargo.toml"),
        include_str!("../../crates/redelay-metrics/Cargo.toml"),
        include_str!("../../crates/redelay-testing/Cargo.toml"),
    ];
    for manifest in manifests {
        let lines = trees.next().expect("a tree").lines().filter(|line| line.contains("── "));
        let listed: BTreeSet<&str> = lines.filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(listed, dependencies(manifest));
    }
}

#[test]
fn the_front_page_lists_every_feature() {
    let manifest = include_str!("../../Cargo.toml");
    let section =
        manifest.split("[features]").nth(1).and_then(|rest| rest.split("\n[").next()).expect("features");
    let mut features: Vec<(&str, &str)> = section
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" = "))
        .collect();
    let default = features.iter().find(|(name, _)| *name == "default").expect("a default").1.to_owned();
    features.retain(|(name, _)| *name != "default");

    let page = include_str!("../../src/lib.rs");
    let table = page.split("//! | feature |").nth(1).expect("a table of features");
    let mut listed = BTreeMap::new();
    for row in table.lines().skip(2).take_while(|line| line.starts_with("//! |")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for name in cells[1].split('`').skip(1).step_by(2) {
            listed.insert(name, cells[2] == "yes");
        }
    }
    for (name, _) in &features {
        let is_default = default.contains(&format!("\"{name}\""));
        assert_eq!(listed.get(name), Some(&is_default), "`{name}` on the front page");
    }
    assert_eq!(listed.len(), features.len(), "the front page lists a feature that does not exist");
}

/// The README links to each guide, the front page names it, and its examples are compiled.
#[test]
fn every_guide_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [readme, page] =
        ["README.md", "src/lib.rs"].map(|file| fs::read_to_string(root.join(file)).expect("text"));
    let guides = guides(&root.join("docs"));
    for name in &guides {
        let guide = format!("docs/{name}.md");
        assert!(readme.contains(&format!("]({guide})")), "the README does not link to {guide}");
        assert!(page.contains(&format!("//! | [`{guide}`](guide/")), "the front page does not name {guide}");
        assert!(page.contains(&format!(" \"{guide}\"\n")), "the examples of {guide} are not compiled");
        assert!(page.contains(&format!(" \"{name}.md\"\n")), "{guide} is no module of `guide`");
    }
    assert!(guides.len() > 5, "only {} guides", guides.len());
}

/// `tests/queues/send.rs` has each public type, and each public function that is `async`. Functions that
/// return a future otherwise are few, and are left to the reader.
#[test]
fn send_rs_has_the_whole_interface() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let send = fs::read_to_string(root.join("tests/queues/send.rs")).expect("a source");
    let has = |word: &str| send.split(|c: char| !c.is_alphanumeric() && c != '_').any(|other| other == word);
    let (mut functions, mut types) = (0, 0);
    for (module, file, code) in production_code(&REDELAY) {
        let names = code.match_indices("pub async fn ").map(|(at, start)| {
            let end = code[at + start.len()..].find(['(', '<']).expect("arguments");
            &code[at + start.len()..][..end]
        });
        for name in names.filter(|_| module != "worker" || !file.ends_with("handler.rs")) {
            functions += 1;
            assert!(has(name), "send.rs lacks `{name}` of {}", file.display());
        }
        let is_public = [
            "admin",
            "blocking_queue",
            "client",
            "delayed_queue",
            "inspector",
            "receiver",
            "stats",
            "worker",
        ]
        .iter()
        .any(|public| file == Path::new(&format!("{public}.rs")));
        // Traits of arguments.
        let is_trait = |name: &&str| ["AsValue", "Handler", "IntoOutcome"].contains(name);
        for name in used_types(&code).into_iter().filter(|name| is_public && !is_trait(name)) {
            types += 1;
            assert!(has(name), "send.rs lacks `{name}` of {}", file.display());
        }
    }
    assert!(
        functions > 80 && types > 50,
        "{functions} functions, {types} types: this test no longer reads them"
    );
}

/// The same of the codecs.
#[test]
fn send_rs_of_the_codecs_has_every_type() {
    let send = include_str!("../../crates/redisson-codec/tests/codecs/send.rs");
    let has = |word: &str| send.split(|c: char| !c.is_alphanumeric()).any(|other| other == word);
    let public = ["classes", "detect", "java"].map(|module| PathBuf::from(format!("{module}.rs")));
    let modules = production_code(&CODEC).into_iter().filter(|(_, file, _)| public.contains(file));
    let sources: Vec<_> = modules.map(|(_, _, code)| code).chain([root(&CODEC)]).collect();
    let types: Vec<_> = sources.iter().flat_map(|code| used_types(code)).collect();
    assert!(types.len() > 50, "only {} types: this test no longer reads them", types.len());
    for name in types {
        assert!(has(name), "send.rs of the codecs lacks `{name}`");
    }
}

/// The types and traits that a module has from its parts (`pub use`).
fn used_types(code: &str) -> Vec<&str> {
    let used = code.split("pub use ").skip(1).map(|used| used.split(';').next().unwrap_or(used));
    let names = used.flat_map(|used| used.split(|c: char| !c.is_alphanumeric() && c != '_'));
    names.filter(|name| name.starts_with(char::is_uppercase)).collect()
}
