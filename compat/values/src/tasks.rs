//! The classes of `compat/java/src/main/java/com/acme/Tasks.java`: several in one place, which are enums with
//! data.

use redisson_codec::java::{self, BigDecimal, Date};
use serde::{Deserialize, Serialize};

use crate::zoo::Entries;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Email")]
pub struct Email {
    pub id: Option<String>,
    pub to: Option<String>,
    pub next: Option<Box<Task>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "final com.acme.Tasks$Sms")]
pub struct Sms {
    pub id: Option<String>,
    pub template: Option<i32>,
    pub cost: Option<BigDecimal>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Letter")]
pub struct Letter {
    pub id: Option<String>,
    pub millis: i64,
    pub lines: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Slow")]
pub enum Slow {
    Letter(Letter),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Task")]
pub enum Task {
    Email(Email),
    Sms(Sms),
    Slow(Slow),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.acme.Tasks$Wait")]
pub struct Wait {
    pub millis: i64,
    pub why: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Stop", rename_all = "UPPERCASE")]
pub enum Stop {
    Now,
    Later,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "abstract(OFTEN) com.acme.Tasks$Retry", rename_all = "UPPERCASE")]
pub enum Retry {
    Once,
    Often,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Go")]
pub struct Go {
    pub speed: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Step")]
pub enum Step {
    Wait(Wait),
    Stop(Stop),
    Retry(Retry),
    Go(Go),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "java.lang.Object")]
pub enum Any {
    Task(Task),
    Step(Step),
    Text(String),
    Integer(i32),
    Long(i64),
    Double(f64),
    Boolean(bool),
    Character(char),
    Date(Date),
    Decimal(BigDecimal),
    List(Vec<Any>),
    Map(Entries<String, Any>),
    Bytes(Vec<u8>),
    Tasks(java::array::Of<Vec<Task>>),
    Integers(java::array::Of<Vec<i32>>),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Job", rename_all = "camelCase")]
pub struct Job {
    pub task: Option<Task>,
    pub tasks: Option<Vec<Option<Task>>>,
    pub by_name: Option<Entries<String, Task>>,
    #[serde(with = "java::array")]
    pub array: Option<Vec<Option<Task>>>,
    pub step: Option<Step>,
    pub steps: Option<Vec<Option<Step>>>,
    #[serde(with = "java::array")]
    pub step_array: Option<Vec<Option<Step>>>,
    pub any: Option<Any>,
    pub anys: Option<Vec<Option<Any>>>,
    #[serde(with = "java::linked_hash_map")]
    pub props: Option<Entries<String, Any>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "record com.acme.Tasks$Batch", rename_all = "camelCase")]
pub struct Batch {
    pub tasks: Option<Vec<Option<Task>>>,
    pub by_name: Option<Entries<String, Task>>,
    #[serde(with = "java::array")]
    pub array: Option<Vec<Task>>,
}

/// `@JsonTypeInfo(use = Id.NAME, property = "type")`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "tag(type) com.acme.Tasks$Payment", rename_all = "lowercase")]
pub enum Payment {
    Card(Card),
    Cash(Cash),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Card")]
pub struct Card {
    pub amount: Option<BigDecimal>,
    pub number: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "final com.acme.Tasks$Cash")]
pub struct Cash {
    pub amount: Option<BigDecimal>,
    pub coins: Option<i64>,
}

/// `@JsonTypeInfo(use = Id.NAME, include = As.WRAPPER_OBJECT)`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "wrapper-object com.acme.Tasks$Shape", rename_all = "lowercase")]
pub enum Shape {
    Circle(Circle),
    Dot(Dot),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Circle")]
pub struct Circle {
    pub radius: Option<BigDecimal>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Dot")]
pub struct Dot {}

/// `@JsonTypeInfo(use = Id.NAME, include = As.WRAPPER_ARRAY)`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "wrapper-array com.acme.Tasks$Move", rename_all = "lowercase")]
pub enum Move {
    Up(Up),
    Down(Down),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Up")]
pub struct Up {
    pub by: Option<BigDecimal>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Tasks$Down")]
pub struct Down {
    pub to: Option<Vec<i64>>,
}

macro_rules! tagged {
    ($($name:ident $class:literal $element:ident)*) => {$(
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename = $class)]
        pub struct $name {
            pub one: Option<$element>,
            pub list: Option<Vec<Option<$element>>>,
            pub map: Option<Entries<String, $element>>,
            #[serde(with = "java::array")]
            pub array: Option<Vec<$element>>,
            #[serde(with = "java::object")]
            pub open: Option<$element>,
        }
    )*};
}

tagged! {
    Payments "com.acme.Tasks$Payments" Payment
    Shapes "com.acme.Tasks$Shapes" Shape
    Moves "com.acme.Tasks$Moves" Move
}
