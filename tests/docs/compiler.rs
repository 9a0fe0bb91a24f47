//! What the compiler says of a mistake: the reason, and where it is.

use std::path::PathBuf;
use std::process::Command;

/// The newest library before this program, which was built with it, and the folder of what it needs.
fn library() -> (PathBuf, PathBuf) {
    let program = std::env::current_exe().expect("the path of this program");
    let folder = program.parent().expect("a folder").to_owned();
    let files = folder.read_dir().expect("the folder is there").map(|file| file.expect("a file").path());
    let is_library = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libredelay-") && name.ends_with(".rlib")
    };
    let built = |file: &PathBuf| file.metadata().and_then(|file| file.modified()).expect("its time");
    let is_older = |file: &PathBuf| built(file) <= built(&program);
    (files.filter(is_library).filter(is_older).max_by_key(built).expect("a library"), folder)
}

/// The errors of a function that has a queue `orders`.
fn errors(body: &str) -> String {
    let (library, folder) = library();
    let output = tempfile::tempdir().expect("a folder");
    let source = output.path().join("mistake.rs");
    let code = format!(
        "use redelay::{{BlockingQueue, Worker}};\n\
         pub async fn example(orders: BlockingQueue<i64>) {{\n{body}\n}}\n"
    );
    std::fs::write(&source, code).expect("it is written");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled = Command::new(compiler)
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--color=never", "--extern"])
        .arg(format!("redelay={}", library.display()))
        .arg(format!("-Ldependency={}", folder.display()))
        .arg("--out-dir")
        .args([output.path(), &source])
        .output()
        .expect("a compiler");
    assert!(!compiled.status.success(), "it compiles");
    String::from_utf8(compiled.stderr).expect("UTF-8")
}

#[track_caller]
fn has(errors: &str, words: &[&str]) {
    for word in words {
        assert!(errors.contains(word), "no `{word}`: {errors}");
    }
}

#[test]
fn a_handler_that_is_not_send_names_what_it_holds_across_an_await() {
    let errors = errors(
        "let handler = |order: i64| async move {
             let kept = std::rc::Rc::new(order);
             std::future::ready(()).await;
             println!(\"{kept}\");
         };
         let _ = Worker::new(&orders).run(handler).await;",
    );
    has(&errors, &["is not `Send`", "has type `Rc<i64>`", "with `kept` maybe used later"]);
    assert!(!errors.contains("is no handler"), "{errors}");
}

#[test]
fn a_handler_of_another_type_is_none() {
    let errors =
        errors("let _ = Worker::new(&orders).run(|order: String| async move { drop(order) }).await;");
    has(
        &errors,
        &["is no handler of messages of the type `i64`", "a handler is an async function or closure"],
    );
}
