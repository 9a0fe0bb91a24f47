//! Descriptions of Java classes, from files of three kinds: `.class`, `.jar`, and text.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miniz_oxide::inflate::TINFLStatus;
use rawzip::{CompressionMethod, ZipArchive};
use redelay::codec::classes::Classes;

use crate::failure::Failure;
use crate::human;
use crate::out::Out;

/// The most bytes of a file, and of all that is unpacked of jars.
const LONGEST: u64 = 1 << 30;
/// The most bytes of a class.
const LONGEST_CLASS: usize = 4 << 20;
/// The most bytes of a jar in a jar. Those of Spring Boot have the libraries in them.
const LONGEST_JAR: usize = 64 << 20;

/// Reads the files; `None` if there is no file. Says how much in them is left out, and why.
pub(crate) fn load(files: &[PathBuf], out: &Out) -> Result<Option<Arc<Classes>>, Failure> {
    let mut reading = Reading::default();
    for file in files {
        let wrong = |why: String| Failure::Usage(format!("the classes in {} {why}", file.display()));
        let bytes = read(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        reading.add(&bytes).map_err(wrong)?;
        if let Some(left_out) = reading.left_out.take() {
            out.note(&format!("{} is not read in full: {left_out}", file.display()));
        }
    }
    Ok((!files.is_empty()).then(|| Arc::new(reading.classes)))
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    match std::fs::metadata(file)?.len() {
        0..=LONGEST => std::fs::read(file),
        length => Err(std::io::Error::other(format!("{length} bytes are too many"))),
    }
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    classes: Classes,
    /// How many bytes were unpacked.
    unpacked: u64,
    /// How many classes are in the last file.
    found: usize,
    /// What of the last file is left out.
    left_out: Option<LeftOut>,
}

struct LeftOut {
    count: usize,
    /// The first one, and why.
    first: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first)?;
        match self.count {
            1 => Ok(()),
            count => write!(f, "; and {} more", human::count(count as u64 - 1)),
        }
    }
}

impl Reading {
    fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        let expected = "are not described: expected a .class file, a .jar, or a text";
        let not_described = |why: &dyn fmt::Display| format!("are not described: {why}");
        if bytes.starts_with(b"\xca\xfe\xba\xbe") {
            self.classes.add_class_file(bytes).map(drop).map_err(|error| not_described(&error))
        } else if bytes.starts_with(b"PK") {
            self.found = 0;
            self.jar(bytes, None).map_err(|error| format!("are in a broken jar: {error}"))?;
            match (self.found, &self.left_out) {
                (0, Some(left_out)) => Err(not_described(left_out)),
                (0, None) => Err(not_described(&"the jar has no class")),
                _ => Ok(()),
            }
        } else {
            let text = str::from_utf8(bytes).map_err(|_| expected)?;
            self.classes.add_text(text).map_err(|error| format!("{expected}; {error}"))
        }
    }

    /// Adds the classes of a jar, and those of the jars in it. What cannot be read is left out.
    fn jar(&mut self, bytes: &[u8], outer: Option<&str>) -> Result<(), rawzip::Error> {
        let archive = ZipArchive::from_slice(bytes)?;
        let mut entries = archive.entries();
        while let Some(entry) = entries.next_entry()? {
            let path = entry.file_path();
            let path: &[u8] = path.as_ref();
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            let is_class =
                name.ends_with(b".class") && name != b"module-info.class" && name != b"package-info.class";
            // Those of a newer Java have the same fields.
            let is_version = path.starts_with(b"META-INF/");
            let is_jar = name.ends_with(b".jar");
            if is_version || !is_class && !is_jar {
                continue;
            }
            let found = archive.get_entry(entry.wayfinder())?;
            let name = String::from_utf8_lossy(name);
            if let Err(why) = self.entry(&name, entry.compression_method(), found.data(), outer) {
                self.leave_out(&name, outer, &why);
            }
        }
        Ok(())
    }

    /// Adds a class, or what is in a jar.
    fn entry(
        &mut self,
        name: &str,
        method: CompressionMethod,
        bytes: &[u8],
        outer: Option<&str>,
    ) -> Result<(), String> {
        let is_jar = name.ends_with(".jar");
        if is_jar && outer.is_some() {
            return Err("is in a jar in a jar".into());
        }
        let unpacked = unpacked(method, bytes, if is_jar { LONGEST_JAR } else { LONGEST_CLASS })?;
        self.unpacked += unpacked.len() as u64;
        if self.unpacked > LONGEST {
            return Err(format!("is behind the first {} MiB", LONGEST >> 20));
        }
        if is_jar {
            return self.jar(&unpacked, Some(name)).map_err(|error| format!("is a broken jar: {error}"));
        }
        self.classes.add_class_file(&unpacked).map_err(|error| format!("is not described: {error}"))?;
        self.found += 1;
        Ok(())
    }

    fn leave_out(&mut self, name: &str, outer: Option<&str>, why: &str) {
        let first = || match outer {
            Some(outer) => format!("{name} in {outer} {why}"),
            None => format!("{name} {why}"),
        };
        self.left_out.get_or_insert_with(|| LeftOut { count: 0, first: first() }).count += 1;
    }
}

fn unpacked(method: CompressionMethod, bytes: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let too_large = || format!("is larger than {} MiB", most >> 20);
    match method {
        CompressionMethod::STORE if bytes.len() > most => Err(too_large()),
        CompressionMethod::STORE => Ok(bytes.to_vec()),
        CompressionMethod::DEFLATE => miniz_oxide::inflate::decompress_to_vec_with_limit(bytes, most)
            .map_err(|error| match error.status {
                TINFLStatus::HasMoreOutput => too_large(),
                _ => "cannot be unpacked".into(),
            }),
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

    /// The names of the classes, and what is left out.
    fn read_in_part(bytes: &[u8]) -> Result<(Vec<String>, String), String> {
        let mut reading = Reading::default();
        reading.add(bytes)?;
        let left_out = reading.left_out.map(|left_out| left_out.to_string());
        Ok((reading.classes.names().map(str::to_owned).collect(), left_out.unwrap_or_default()))
    }

    fn loaded(bytes: &[u8]) -> Result<Vec<String>, String> {
        Ok(read_in_part(bytes)?.0)
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
    fn what_is_left_out_is_said() {
        let item = class("com.example.shop.CartItem");
        let inner = jar(&[("a/b/x.class", b"junk"), ("CartItem.class", &item), ("more.jar", b"")]);
        let outer =
            [("lib/no.jar", &b"PK junk"[..]), ("lib/a.jar", &inner), ("y.class", &[0; LONGEST_CLASS + 1])];
        let (names, left_out) = read_in_part(&jar(&outer)).unwrap();
        assert_eq!(names, ["com.example.shop.CartItem"]);
        assert!(left_out.starts_with("no.jar is a broken jar: "), "{left_out}");
        assert!(left_out.ends_with("; and 3 more"), "{left_out}");
        for (outer, why) in [
            (
                outer[1],
                "x.class in a.jar is not described: expected a class file: no ca fe ba be at offset 0; and 1 more",
            ),
            (outer[2], "y.class is larger than 4 MiB"),
            (("z.jar", &jar(&[("more.jar", b"")])), "more.jar in z.jar is in a jar in a jar"),
        ] {
            assert_eq!(read_in_part(&jar(&[("CartItem.class", &item), outer])).unwrap().1, why);
        }
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
        let out = Out::new(false);
        let missing = load(&["/no/such.jar".into()], &out).unwrap_err().to_string();
        assert!(missing.starts_with("the classes in /no/such.jar cannot be read"), "{missing}");
        assert!(load(&[], &out).unwrap().is_none());
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
