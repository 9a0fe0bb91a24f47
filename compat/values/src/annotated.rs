//! The classes of `compat/java/src/main/java/com/acme/Annotated.java`.

use std::collections::HashMap;

use redisson_codec::java::{self, Value};
use serde::{Deserialize, Serialize};

use crate::zoo::Entries;

/// `@JsonPropertyOrder({"c", "b"})`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "order(c, b) com.acme.Annotated$Ordered")]
pub struct Ordered {
    pub a: i32,
    pub b: Option<String>,
    pub c: Option<i64>,
    pub d: Option<Box<Ordered>>,
}

/// `@JsonCreator Created(@JsonProperty("c") Long c, @JsonProperty("b") String b)`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "order(b, c) com.acme.Annotated$Created")]
pub struct Created {
    pub a: i32,
    pub b: Option<String>,
    pub c: Option<i64>,
    pub d: Option<i32>,
}

/// `@JsonInclude(ALWAYS)`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "nulls com.acme.Annotated$Always")]
pub struct Always {
    pub a: Option<i32>,
    pub b: Option<String>,
    pub c: Option<Vec<String>>,
    pub d: Option<HashMap<String, Option<i32>>>,
    pub e: Option<Box<Always>>,
}

/// `@JsonInclude(ALWAYS) String b`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "nulls(b) com.acme.Annotated$Sometimes")]
pub struct Sometimes {
    pub a: Option<i32>,
    pub b: Option<String>,
    pub c: Option<String>,
}

/// `@JsonAnyGetter @JsonAnySetter Map<String, Object> more`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "any(more) com.acme.Annotated$Extra")]
pub struct Extra {
    pub b: Option<String>,
    #[serde(with = "java::linked_hash_map")]
    pub more: Entries<String, Value>,
    pub z: Option<String>,
}
