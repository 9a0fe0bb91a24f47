//! `docs/java-classes.md` shows the Java classes, the Rust types and the payloads of the tests of the codecs.

use redelay_compat_values::vectors::rows;

const PAGE: &str = include_str!("../../docs/java-classes.md");

/// The blocks of a language, each with the text in front of it.
fn blocks(language: &str) -> Vec<(&'static str, &'static str)> {
    let fence = format!("\n```{language}\n");
    let starts = PAGE.match_indices(&fence).map(|(at, _)| at);
    starts
        .map(|at| {
            let block = PAGE[at + fence.len()..].split("\n```").next().expect("its end");
            (&PAGE[..at], block)
        })
        .collect()
}

#[test]
fn the_java_classes_are_those_that_redisson_writes() {
    let source = include_str!("../../compat/java/src/main/java/com/example/shop/Shapes.java");
    let shown = blocks("java");
    for part in shown.iter().flat_map(|(_, block)| block.split("\n\n")) {
        let fields = part.strip_suffix("\n    // …\n}").unwrap_or(part);
        assert!(source.contains(fields), "Shapes.java has not:\n{part}");
    }
    assert!(shown.len() > 15, "{} blocks", shown.len());
}

#[test]
fn the_structs_are_those_that_read_the_payloads() {
    let source = include_str!("../../compat/values/src/shop.rs").replace("pub ", "");
    let shown = blocks("rust,ignore");
    for (_, block) in &shown {
        for part in block.split("\n\n") {
            assert!(source.contains(part), "shop.rs has not:\n{part}");
        }
    }
    assert!(shown.len() > 15, "{} blocks", shown.len());
}

/// In front of each is the name of the shape, and that of the codec. Long ones are broken into lines.
#[test]
fn the_payloads_are_those_of_redisson() {
    let shown = blocks("json");
    for (before, block) in &shown {
        let label = before.trim_end().lines().last().expect("a label");
        let names: Vec<_> = label.split('`').skip(1).step_by(2).take(2).collect();
        let [shape, codec] = names[..] else { panic!("no shape and codec: {label}") };
        let row = rows(&format!("shapes-{codec}")).into_iter().find(|row| row.name == shape);
        let payload = row.unwrap_or_else(|| panic!("no {shape} in {codec}")).payload;
        let lines: String = block.lines().map(str::trim_start).collect();
        assert_eq!(lines, String::from_utf8_lossy(&payload), "{label}");
    }
    assert!(shown.len() > 20, "{} blocks", shown.len());
}

/// Shapes 05 to 25: of each there is a payload, unless Jackson does not write it.
#[test]
fn each_shape_is_on_the_page() {
    let shapes: Vec<_> = rows("shapes-json-jackson-jsr310").into_iter().map(|row| row.name).collect();
    for shape in shapes.iter().filter(|shape| ("05".."26").contains(&&shape[..2])) {
        let is_shown = PAGE.contains(&format!("Payload `{shape}` of "));
        assert!(is_shown || shape.starts_with("22-list-"), "{shape}");
    }
}
