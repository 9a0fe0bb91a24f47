//! What breaks if a struct is not as its class is: the table of `docs/java-classes.md`.

use std::collections::HashMap;

use codec::java;
use codec::{JsonJackson, Kryo5};
use redelay_compat_values::shop::{CartItem, Channel, RefundStatus, TimeUnit};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::*;

/// What becomes of a payload of Java: why it is refused, or what it is read as. `exact` is written as it was.
fn fate<T: Debug + Serialize + DeserializeOwned + 'static>(
    file: &str,
    shape: &str,
    by: &impl Codec<T>,
) -> String {
    let row = rows(file).into_iter().find(|row| row.name == shape).unwrap();
    let read = by.decode(&row.payload).and_then(|value| Ok((by.encode(&value)?, value)));
    match read {
        Err(error) => format!("refused: {error}"),
        Ok((written, value)) if written == row.payload => format!("exact: {value:?}"),
        Ok((_, value)) => format!("other bytes: {value:?}"),
    }
}

/// A struct as Java's class, but for one thing, and what is said of it with Kryo and with JSON, in part.
macro_rules! wrong {
    ($test:ident $shape:literal, kryo: $kryo:literal $(, json: $json:literal)?, $(#[$outer:meta])* {
        $($(#[$inner:meta])* $field:ident: $type:ty),* $(,)?
    }) => {
        #[test]
        fn $test() {
            #[derive(Debug, Serialize, Deserialize)]
            $(#[$outer])*
            #[serde(rename_all = "camelCase")]
            #[allow(dead_code, reason = "printed")]
            struct Wrong { $($(#[$inner])* $field: $type),* }

            let found = fate::<Wrong>("shapes-kryo5", $shape, &Kryo5);
            assert!(found.contains($kryo), "{found}");
            $(
                let found = fate::<Wrong>("shapes-json-jackson", $shape, &JsonJackson);
                assert!(found.contains($json), "{found}");
            )?
        }
    };
}

wrong! { null_without_an_option "05-pojo-boxed",
    kryo: "exact: Wrong { order_no: Some(\"SO-1001\"), user_id: Some(77), activity_id: 0,",
    json: "missing field `activityId`",
    #[serde(rename = "com.example.shop.OrderTimeoutMessage")] {
        order_no: Option<String>, user_id: Option<i64>, activity_id: i64, quantity: Option<i32>,
        message_create_time: Option<i64>,
    }
}

wrong! { boxed_as_a_primitive "05-pojo-boxed",
    kryo: "refused:",
    json: "other bytes: ",
    #[serde(rename = "com.example.shop.OrderTimeoutMessage")] {
        order_no: Option<String>, user_id: i64, activity_id: Option<i64>, quantity: Option<i32>,
        message_create_time: Option<i64>,
    }
}

wrong! { integer_as_a_long "05-pojo-boxed",
    kryo: "exact: ",
    json: "other bytes: ",
    #[serde(rename = "com.example.shop.OrderTimeoutMessage")] {
        order_no: Option<String>, user_id: Option<i64>, activity_id: Option<i64>, quantity: Option<i64>,
        message_create_time: Option<i64>,
    }
}

wrong! { a_missing_field "05-pojo-boxed",
    kryo: "refused: ",
    json: "other bytes: ",
    #[serde(rename = "com.example.shop.OrderTimeoutMessage")] {
        order_no: Option<String>, user_id: Option<i64>, activity_id: Option<i64>, message_create_time: Option<i64>,
    }
}

wrong! { another_class "05-pojo-boxed",
    kryo: "found `com.example.shop.OrderTimeoutMessage`",
    json: "found `com.example.shop.OrderTimeoutMessage`",
    #[serde(rename = "com.example.shop.OrderTimeout")] {
        order_no: Option<String>, user_id: Option<i64>, activity_id: Option<i64>, quantity: Option<i32>,
        message_create_time: Option<i64>,
    }
}

wrong! { a_misspelt_field "07-pojo-two-longs",
    kryo: "exact: Wrong { a_sku: Some(100301), activity_id: Some(9011) }",
    json: "other bytes: Wrong { a_sku: None, activity_id: Some(100301) }",
    #[serde(rename = "com.example.shop.SkuStockKey")] {
        a_sku: Option<i64>, activity_id: Option<i64>,
    }
}

wrong! { primitive_as_boxed "09-pojo-bigdecimal-enum",
    kryo: "refused: ",
    json: "other bytes: ",
    #[serde(rename = "com.example.shop.RefundTask")] {
        id: Option<i64>, amount: Option<java::BigDecimal>, status: Option<RefundStatus>, urgent: bool, retry: i32,
    }
}

wrong! { decimal_as_a_double "09-pojo-bigdecimal-enum",
    kryo: "refused: ",
    json: "expected the class `java.lang.Double`, found `java.math.BigDecimal`",
    #[serde(rename = "com.example.shop.RefundTask")] {
        id: i64, amount: Option<f64>, status: Option<RefundStatus>, urgent: bool, retry: i32,
    }
}

wrong! { enum_as_a_text "09-pojo-bigdecimal-enum",
    kryo: "refused: ",
    json: "exact: ",
    #[serde(rename = "com.example.shop.RefundTask")] {
        id: i64, amount: Option<java::BigDecimal>, status: Option<String>, urgent: bool, retry: i32,
    }
}

wrong! { type_variable_without_object "10-generic-string",
    kryo: "data: Some(\"\\u{3}SO-1001\")",
    json: "exact: ",
    #[serde(rename = "com.example.shop.DelayMessage")] {
        topic: Option<String>, data: Option<String>, delay: Option<i64>, add_time: Option<java::Date>,
        time_unit: Option<TimeUnit>, retry_count: i32,
    }
}

wrong! { date_as_a_number "10-generic-string",
    kryo: "refused: ",
    json: "expected the class `java.lang.Long`, found `java.util.Date`",
    #[serde(rename = "com.example.shop.DelayMessage")] {
        topic: Option<String>, #[serde(with = "java::object")] data: Option<String>, delay: Option<i64>, add_time: Option<i64>,
        time_unit: Option<TimeUnit>, retry_count: i32,
    }
}

wrong! { object_without_object "19-object-long",
    kryo: "refused: ",
    json: "exact: ",
    #[serde(rename = "com.example.shop.ObjEnvelope")] {
        r#type: Option<String>, payload: Option<i64>,
    }
}

wrong! { set_as_a_list "21-nested-lists",
    kryo: "other bytes: ",
    json: "other bytes: ",
    #[serde(rename = "com.example.shop.Cart")] {
        user_id: Option<i64>, items: Option<Vec<CartItem>>, coupons: Option<Vec<String>>,
        ext: Option<HashMap<String, String>>, ids: Option<Vec<i64>>,
    }
}

wrong! { list_as_an_array "21-nested-lists",
    kryo: "refused: ",
    json: "expected the class `[J`, found `java.util.ArrayList`",
    #[serde(rename = "com.example.shop.Cart")] {
        user_id: Option<i64>, items: Option<Vec<CartItem>>, #[serde(with = "java::hash_set")] coupons: Option<Vec<String>>,
        ext: Option<HashMap<String, String>>, #[serde(with = "java::array")] ids: Option<Vec<i64>>,
    }
}

wrong! { long_elements_as_integers "21-nested-lists",
    kryo: "exact: ",
    json: "expected the class `java.lang.Integer`, found `java.lang.Long`",
    #[serde(rename = "com.example.shop.Cart")] {
        user_id: Option<i64>, items: Option<Vec<CartItem>>, #[serde(with = "java::hash_set")] coupons: Option<Vec<String>>,
        ext: Option<HashMap<String, String>>, ids: Option<Vec<i32>>,
    }
}

wrong! { another_map "21-nested-lists",
    kryo: "other bytes: ",
    json: "other bytes: ",
    #[serde(rename = "com.example.shop.Cart")] {
        user_id: Option<i64>, items: Option<Vec<CartItem>>, #[serde(with = "java::hash_set")] coupons: Option<Vec<String>>,
        #[serde(with = "java::linked_hash_map")] ext: Option<HashMap<String, String>>, ids: Option<Vec<i64>>,
    }
}

wrong! { record_without_its_word "20-record",
    kryo: "exact: ",
    json: "other bytes: ",
    #[serde(rename = "com.example.shop.OrderExpired")] {
        order_id: Option<i64>, reason: Option<String>, attempt: i32,
    }
}

wrong! { a_transient_field "23-delayed-final-fields",
    kryo: "refused: ",
    json: "refused: ",
    #[serde(rename = "com.example.shop.DelayedOrder")] {
        order_id: Option<String>, expire: i64, tries: i32,
    }
}

wrong! { optional_without_its_attribute "25-enum-bodies-array",
    kryo: "refused: ",
    #[serde(rename = "com.example.shop.PayQuery")] {
        pay_no: Option<String>, channel: Option<Channel>, note: Option<String>,
        #[serde(with = "java::array")] delays: Option<Vec<i32>>,
    }
}

wrong! { array_as_a_list "25-enum-bodies-array",
    kryo: "refused: ",
    #[serde(rename = "com.example.shop.PayQuery")] {
        pay_no: Option<String>, channel: Option<Channel>, #[serde(with = "java::optional")] note: Option<String>,
        delays: Option<Vec<i32>>,
    }
}

wrong! { raw_map_without_object "14-map-and-class",
    kryo: "job_params: Some({\"\\u{3}orderId\": Integer(1001)})",
    json: "exact: ",
    #[serde(rename = "com.example.shop.DelayJob")] {
        job_params: Option<HashMap<String, java::Value>>, #[serde(with = "java::class_name")] a_class: Option<String>,
    }
}

wrong! { class_as_a_text "14-map-and-class",
    kryo: "refused: ",
    json: "exact: ",
    #[serde(rename = "com.example.shop.DelayJob")] {
        #[serde(with = "java::object")] job_params: Option<HashMap<String, java::Value>>, a_class: Option<String>,
    }
}

/// The constants that have bodies are others.
#[test]
fn enum_with_other_bodies() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "abstract(BANK) com.example.shop.Channel", rename_all = "UPPERCASE")]
    enum Wrong {
        Wx,
        Ali,
        Bank,
    }

    let found = fate::<Wrong>("shapes-kryo5", "31-enum-body", &Kryo5);
    assert!(found.contains("has the class `com.example.shop.Channel$2`"), "{found}");
    assert!(fate::<Wrong>("shapes-json-jackson", "31-enum-body", &JsonJackson).contains("exact: Bank"));
}

/// A constant is missing in front of it.
#[test]
fn enum_with_other_constants() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "com.example.shop.RefundStatus", rename_all = "UPPERCASE")]
    enum Wrong {
        Created,
        Paid,
        Closed,
    }

    assert_eq!(fate::<Wrong>("shapes-kryo5", "31-enum-root", &Kryo5), "exact: Closed");
    assert_eq!(fate::<Wrong>("shapes-json-jackson", "31-enum-root", &JsonJackson), "exact: Paid");
}
