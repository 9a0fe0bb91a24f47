//! Descriptions of Java classes, from files of three kinds: `.class`, `.jar`, and text.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rawzip::{CompressionMethod, ZipArchive};
use redelay::codec::classes::Classes;

use crate::failure::Failure;

/// The most bytes of a file, and of all that is unpacked of a jar.
const LONGEST: u64 = 1 << 30;
/// The most bytes of a class. A larger one is left out.
const LONGEST_CLASS: usize = 4 << 20;
/// The most bytes of a jar in a jar. Those of Spring Boot have the libraries in them.
const LONGEST_JAR: usize = 64 << 20;
/// The most classes of a jar.
const MOST: usize = 200_000;

/// Reads the files; `None` if there is no file.
pub(crate) fn load(files: &[PathBuf]) -> Result<Option<Arc<Classes>>, Failure> {
    let mut classes = Classes::new();
    for file in files {
        let wrong = |why: String| Failure::Usage(format!("the classes in {} {why}", file.display()));
        let bytes = read(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        add(&mut classes, &bytes).map_err(wrong)?;
    }
    Ok((!files.is_empty()).then(|| Arc::new(classes)))
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    match std::fs::metadata(file)?.len() {
        0..=LONGEST => std::fs::read(file),
        length => Err(std::io::Error::other(format!("{length} bytes are too many"))),
    }
}

fn add(classes: &mut Classes, bytes: &[u8]) -> Result<(), String> {
    let expected = "are not described: expected a .class file, a .jar, or a text";
    if bytes.starts_with(b"\xca\xfe\xba\xbe") {
        classes.add_class_file(bytes).map(drop).map_err(|error| format!("are not described: {error}"))
    } else if bytes.starts_with(b"PK") {
        let mut jar = Jar { classes, left: LONGEST, found: 0, error: None };
        jar.add(bytes, true)?;
        match (jar.found, jar.error) {
            (0, Some(error)) => Err(format!("are not described: {error}")),
            (0, None) => Err("are not described: the jar has no class".into()),
            _ => Ok(()),
        }
    } else {
        let text = str::from_utf8(bytes).map_err(|_| expected)?;
        classes.add_text(text).map_err(|error| format!("{expected}; {error}"))
    }
}

struct Jar<'a> {
    classes: &'a mut Classes,
    /// How many more bytes may be unpacked.
    left: u64,
    found: usize,
    /// Why the last one of those that are left out is.
    error: Option<String>,
}

impl Jar<'_> {
    /// Adds its classes, and those of the jars in it. What cannot be read is left out.
    fn add(&mut self, bytes: &[u8], is_outer: bool) -> Result<(), String> {
        let broken = |error: rawzip::Error| format!("are in a broken jar: {error}");
        let archive = ZipArchive::from_slice(bytes).map_err(broken)?;
        let mut entries = archive.entries();
        while let Some(entry) = entries.next_entry().map_err(broken)? {
            let path = entry.file_path();
            let path: &[u8] = path.as_ref();
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            let is_class =
                name.ends_with(b".class") && name != b"module-info.class" && name != b"package-info.class";
            // Those of a newer Java have the same fields.
            let is_version = path.starts_with(b"META-INF/");
            let is_jar = is_outer && name.ends_with(b".jar");
            if is_version || !is_class && !is_jar {
                continue;
            }
            let most = if is_jar { LONGEST_JAR } else { LONGEST_CLASS };
            let found = archive.get_entry(entry.wayfinder()).map_err(broken)?;
            let unpacked = match unpacked(entry.compression_method(), found.data(), most) {
                Ok(unpacked) => unpacked,
                Err(why) => {
                    self.error = Some(format!("{} {why}", String::from_utf8_lossy(name)));
                    continue;
                }
            };
            self.left =
                self.left.checked_sub(unpacked.len() as u64).ok_or("are in a jar that is too large")?;
            if is_jar {
                // It may be something else of this name.
                let _ = self.add(&unpacked, false);
                continue;
            }
            match self.classes.add_class_file(&unpacked) {
                Ok(_) => self.found += 1,
                Err(error) => self.error = Some(error.to_string()),
            }
            if self.found > MOST {
                return Err(format!("are more than {MOST}"));
            }
        }
        Ok(())
    }
}

fn unpacked(method: CompressionMethod, bytes: &[u8], most: usize) -> Result<Vec<u8>, String> {
    match method {
        CompressionMethod::STORE if bytes.len() > most => Err("is too large".into()),
        CompressionMethod::STORE => Ok(bytes.to_vec()),
        CompressionMethod::DEFLATE => miniz_oxide::inflate::decompress_to_vec_with_limit(bytes, most)
            .map_err(|_| "cannot be unpacked".into()),
        _ => Err("is compressed in an unusual way".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../redisson-codec/tests/classes");

    fn class(name: &str) -> Vec<u8> {
        std::fs::read(format!("{FOLDER}/{name}.class")).unwrap()
    }

    /// A jar of these entries, every other one deflated.
    fn jar(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
        for (at, (name, content)) in entries.iter().enumerate() {
            let method = if at % 2 == 0 { CompressionMethod::STORE } else { CompressionMethod::DEFLATE };
            let (mut entry, config) = archive.new_file(name).compression_method(method).start().unwrap();
            let packed = miniz_oxide::deflate::compress_to_vec(content, 6);
            let mut writer = config.wrap(Vec::new());
            writer.write_all(content).unwrap();
            let (plain, descriptor) = writer.finish().unwrap();
            entry.write_all(if at % 2 == 0 { &plain } else { &packed }).unwrap();
            entry.finish(descriptor).unwrap();
        }
        archive.finish().unwrap();
        bytes
    }

    fn loaded(bytes: &[u8]) -> Result<Vec<String>, String> {
        let mut classes = Classes::new();
        add(&mut classes, bytes)?;
        Ok(classes.names().map(str::to_owned).collect())
    }

    #[test]
    fn files_of_each_kind() {
        let (cart, item) = (class("com.example.shop.Cart"), class("com.example.shop.CartItem"));
        assert_eq!(loaded(&cart).unwrap(), ["com.example.shop.Cart"]);
        assert_eq!(loaded(b"// ours\nclass a.B { }").unwrap(), ["a.B"]);
        let inner = jar(&[("com/example/shop/CartItem.class", &item), ("x.class", b"junk")]);
        let outer = [
            ("META-INF/MANIFEST.MF", &b"Manifest-Version: 1.0"[..]),
            ("BOOT-INF/classes/com/example/shop/Cart.class", &cart),
            ("BOOT-INF/lib/shop.jar", &inner),
            ("module-info.class", b"junk"),
            ("BOOT-INF/lib/no.jar", b"PK junk"),
        ];
        assert_eq!(loaded(&jar(&outer)).unwrap(), ["com.example.shop.Cart", "com.example.shop.CartItem"]);
    }

    #[test]
    fn what_is_none_of_them() {
        for (bytes, why) in [
            (&b""[..], ""),
            (b"\xca\xfe\xba\xbe", "it ends at offset 4"),
            (b"PK\x03\x04", "are in a broken jar"),
            (b"\xff", "expected a .class file, a .jar, or a text"),
            (b"class a.B { int; }", "or a text; expected the name of a field at line 1"),
        ] {
            let error = loaded(bytes).err().unwrap_or_default();
            assert!(error.contains(why), "{error}");
        }
        assert!(loaded(&jar(&[("a.txt", b"a")])).unwrap_err().contains("the jar has no class"));
        assert!(loaded(&jar(&[("a.class", b"a")])).unwrap_err().contains("expected a class file"));
        let missing = load(&["/no/such.jar".into()]).unwrap_err().to_string();
        assert!(missing.starts_with("the classes in /no/such.jar cannot be read"), "{missing}");
        assert!(load(&[]).unwrap().is_none());
    }

    /// Fixed seeds.
    #[test]
    fn damaged_jars() {
        let (cart, item) = (class("com.example.shop.Cart"), class("com.example.shop.CartItem"));
        let whole = jar(&[("a/Cart.class", &cart), ("a/CartItem.class", &item), ("a.jar", &cart)]);
        let mut seed = 7u64;
        let mut next = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize
        };
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + next() % 4 {
                let at = next() % bytes.len();
                match next() % 3 {
                    0 => bytes[at] = next() as u8,
                    1 => bytes[at] ^= 1 << (next() % 8),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            let _ = loaded(&bytes);
        }
    }
}
