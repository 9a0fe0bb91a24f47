//! `redelay java-struct`.

use std::path::PathBuf;

use redelay::codec::classes::Classes;

use crate::failure::Failure;
use crate::out::Out;

/// What helps, most likely.
const NEXT: &str = "give its .class file, or the jar with it, as another --classes FILE";

pub(crate) fn run(class: &str, files: &[PathBuf], out: &Out) -> Result<(), Failure> {
    let Some(classes) = crate::classes::load(files, out)? else {
        return Err(Failure::Usage("say with --classes FILE where the class is described".into()));
    };
    let class = find(&classes, class)?;
    let rust = classes.to_rust(class).map_err(|error| Failure::Negative(format!("{error}; {NEXT}")))?;
    // As users of redelay name it.
    let rust = rust.replace("use redisson_codec::java;", "use redelay::codec::java;");
    out.raw(rust.as_bytes())
}

/// The class of this name, or the only one that has it behind its package.
fn find<'a>(classes: &'a Classes, class: &str) -> Result<&'a str, Failure> {
    const MOST: usize = 5;
    if let Some(found) = classes.names().find(|name| *name == class) {
        return Ok(found);
    }
    let is_it = |name: &&str| name.rsplit(['.', '$']).next() == Some(class);
    let found: Vec<_> = classes.names().filter(is_it).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(Failure::Negative(format!(
            "the class `{class}` is not among the {} that are described; {NEXT}",
            classes.names().count()
        ))),
        _ => Err(Failure::Usage(format!(
            "name one of them with its package: {}{}",
            found.iter().take(MOST).copied().collect::<Vec<_>>().join(", "),
            if found.len() > MOST { ", …" } else { "" }
        ))),
    }
}
