//! No page recommends a command that blocks a server with many keys or entries.

use std::fs;
use std::path::{Path, PathBuf};

use super::architecture::files_of;

/// All texts for users.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["docs", "examples"].map(|folder| root.join(folder));
    let mut pages: Vec<_> = folders.iter().flat_map(|folder| files_of(folder, "md")).collect();
    pages.extend(["README.md", "SECURITY.md", "CHANGELOG.md"].map(|name| root.join(name)));
    pages
}

/// The commands of a page: its blocks of code, and code within a line.
fn commands(page: &str) -> Vec<String> {
    let (mut commands, mut block) = (Vec::new(), None::<String>);
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            match block.take() {
                Some(block) => commands.push(block),
                None => block = Some(String::new()),
            }
        } else if let Some(block) = &mut block {
            block.push_str(line);
            block.push('\n');
        } else {
            commands.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    commands
}

/// What is without a bound in a command of `redis-cli`.
fn unbounded(command: &str) -> Vec<&'static str> {
    let text = command.to_uppercase().replace(['\'', '"', ','], " ");
    let words: Vec<_> = text.split_whitespace().collect();
    let mut found = Vec::new();
    for name in ["KEYS", "SMEMBERS", "HGETALL", "HKEYS", "HVALS", "MONITOR", "SORT", "FLUSHALL", "FLUSHDB"] {
        let is_called =
            |pair: &[&str]| pair[1] == name && (pair[0].ends_with("REDIS-CLI") || pair[0].ends_with("CALL("));
        if words.windows(2).any(is_called) {
            found.push(name);
        }
    }
    for name in ["LRANGE", "ZRANGE"] {
        let is_whole =
            |range: &[&str]| range[0] == name && range[2] == "0" && range[3].trim_end_matches(')') == "-1";
        if words.windows(4).any(is_whole) {
            found.push(name);
        }
    }
    if words.windows(2).any(|pair| pair[0] == "SAMPLES" && pair[1].starts_with('0')) {
        found.push("SAMPLES 0");
    }
    found
}

#[test]
fn no_page_recommends_what_blocks_the_server() {
    let mut wrong = Vec::new();
    for page in pages() {
        for command in commands(&fs::read_to_string(&page).expect("a page")) {
            wrong.extend(
                unbounded(&command).into_iter().map(|what| format!("{}: {what}: {command}", page.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_check_finds_what_blocks() {
    for (command, what) in [
        ("redis-cli MEMORY USAGE <key> SAMPLES 0", "SAMPLES 0"),
        ("redis-cli KEYS 'redelay:*'", "KEYS"),
        ("redis-cli LRANGE 'redelay:quarantine:{orders}' 0 -1", "LRANGE"),
        ("for _, e in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do", "LRANGE"),
        ("local all = redis.call('HGETALL', KEYS[1])", "HGETALL"),
        ("redis-cli monitor", "MONITOR"),
    ] {
        assert_eq!(unbounded(command), [what], "{command}");
    }
    assert!(unbounded("redis-cli LRANGE orders 0 99; redis-cli ZRANGE orders 0 0 WITHSCORES").is_empty());
}
