//! Writes `tests/codecs/described/printed.rs`, whose types are tested there.

use std::path::PathBuf;

use crate::classes::Classes;

/// Each class whose Rust types are tested, and a module for it.
const PRINTED: [(&str, &str); 34] = [
    ("cart", "com.example.shop.Cart"),
    ("cancel_message", "com.example.shop.CancelMessage"),
    ("delay_job", "com.example.shop.DelayJob"),
    ("delay_message", "com.example.shop.DelayMessage"),
    ("delayed_order", "com.example.shop.DelayedOrder"),
    ("base_task", "com.example.shop.BaseTask"),
    ("link_stats", "com.example.shop.LinkStats"),
    ("obj_envelope", "com.example.shop.ObjEnvelope"),
    ("order_entity", "com.example.shop.OrderEntity"),
    ("order_expired", "com.example.shop.OrderExpired"),
    ("order_expired_at", "com.example.shop.OrderExpiredAt"),
    ("order_timeout_message", "com.example.shop.OrderTimeoutMessage"),
    ("pay_query", "com.example.shop.PayQuery"),
    ("pay_timeout", "com.example.shop.PayTimeout"),
    ("refund_task", "com.example.shop.RefundTask"),
    ("inner", "com.example.shop.Shapes$Inner"),
    ("non_static", "com.example.shop.Shapes$NonStatic"),
    ("sku_stock_key", "com.example.shop.SkuStockKey"),
    ("task_envelope", "com.example.shop.TaskEnvelope"),
    ("workflow", "com.example.shop.Workflow"),
    ("order", "com.acme.Zoo$Order"),
    ("refund_event", "com.acme.Zoo$RefundEvent"),
    ("ledger", "com.acme.Zoo$Ledger"),
    ("times", "com.acme.Zoo$Times"),
    ("nested", "com.acme.Zoo$Nested"),
    ("boxes", "com.acme.Zoo$Boxes"),
    ("mixes", "com.acme.Zoo$Mixes"),
    ("job", "com.acme.Tasks$Job"),
    ("batch", "com.acme.Tasks$Batch"),
    ("clock", "com.acme.Clock"),
    ("fields", "com.acme.Generic$Fields"),
    ("bases", "com.acme.Generic$Bases"),
    ("rec", "com.acme.Generic$Rec"),
    ("holder", "com.acme.Generic$Holder"),
];

#[test]
fn the_types_of_classes_are_printed() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut classes = Classes::new();
    for file in std::fs::read_dir(root.join("classes")).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "class") {
            classes.add_class_file(&std::fs::read(&file).unwrap()).unwrap();
        }
    }
    let mut text = "// REDELAY_BLESS=1 writes this file: what `Classes::to_rust` prints.\n".to_owned();
    for (module, class) in PRINTED {
        let rust = classes.to_rust(class).unwrap_or_else(|error| panic!("{class}: {error}"));
        text += &format!("\npub(super) mod {module} {{\n{rust}}}\n");
    }
    let path = root.join("codecs/described/printed.rs");
    if std::env::var_os("REDELAY_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    for (found, expected) in text.lines().zip(std::fs::read_to_string(&path).unwrap().lines()) {
        assert_eq!(found, expected);
    }
}

/// What would otherwise be a name twice: of types, of those that Rust files import, of fields, of variants.
#[test]
fn names_are_distinct() {
    let classes: Classes = "
        class a.R {
            a.b.Line x; a.c.Line y; a.Page<a.b.Line> z; a.Page<a.c.Line> v; a.c.PageOfLine w;
            a.c.Serialize s; a.c.BTreeMap m; TreeMap<String, String> t; a.c.Deserialize d;
            int orderNo; int order_no; int OrderNo; int order_no2; int type; int Type;
            a.Way way; b.Task task;
        }
        class a.b.Line { int x; } class a.c.Line { int x; } class a.Page<T> { T x; } class a.c.PageOfLine { }
        class a.c.Serialize { int x; } class a.c.BTreeMap { int x; } class a.c.Deserialize { int x; }
        enum a.Way { V12, V1_2, v12 }
        abstract class b.Task { } class b.EmailTask extends b.Task { } class c.Email extends b.Task { }
    "
    .parse()
    .unwrap();
    let rust = classes.to_rust("a.R").unwrap();
    let mut block = Vec::new();
    let mut types = vec!["Serialize", "Deserialize", "BTreeMap", "HashMap"];
    let is_distinct = |names: &[&str]| {
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len(), "{names:?} in {rust}");
    };
    for line in rust.lines() {
        if let Some(kind) = line.strip_prefix("pub struct ").or(line.strip_prefix("pub enum ")) {
            types.push(kind.split([' ', '(']).next().unwrap());
        } else if line == "}" {
            is_distinct(&std::mem::take(&mut block));
        } else if line.starts_with("    ") && !line.trim().starts_with(['#', '/']) {
            block.push(line.trim().trim_start_matches("pub ").split([':', '(', ',']).next().unwrap());
        }
    }
    assert_eq!(types.len(), 4 + 13);
    is_distinct(&types);
    assert!(rust.contains("    #[serde(rename = \"orderNo\")]\n    pub order_no2: i32,\n"), "{rust}");
}
