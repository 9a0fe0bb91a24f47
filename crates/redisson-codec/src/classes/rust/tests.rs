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
    let mut text = "// REDELAY_BLESS=1 writes this file: what `Classes::rust` prints.\n".to_owned();
    for (module, class) in PRINTED {
        let rust = classes.rust(class).unwrap_or_else(|error| panic!("{class}: {error}"));
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
