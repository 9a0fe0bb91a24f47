//! The rest of a `Serializer` that takes few kinds of values.

/// The methods that fail, by the kinds of values as serde's `forward_to_deserialize_any` has them:
/// `refuse! { error() => u8 unit map }`. With the types of the result in front, values with parts fail, too.
macro_rules! refuse {
    (@ bool $error:expr) => { refuse! { @ $error => serialize_bool(bool) -> Ok } };
    (@ i8 $error:expr) => { refuse! { @ $error => serialize_i8(i8) -> Ok } };
    (@ i16 $error:expr) => { refuse! { @ $error => serialize_i16(i16) -> Ok } };
    (@ i32 $error:expr) => { refuse! { @ $error => serialize_i32(i32) -> Ok } };
    (@ i64 $error:expr) => { refuse! { @ $error => serialize_i64(i64) -> Ok } };
    (@ u8 $error:expr) => { refuse! { @ $error => serialize_u8(u8) -> Ok } };
    (@ u16 $error:expr) => { refuse! { @ $error => serialize_u16(u16) -> Ok } };
    (@ u32 $error:expr) => { refuse! { @ $error => serialize_u32(u32) -> Ok } };
    (@ u64 $error:expr) => { refuse! { @ $error => serialize_u64(u64) -> Ok } };
    (@ f32 $error:expr) => { refuse! { @ $error => serialize_f32(f32) -> Ok } };
    (@ f64 $error:expr) => { refuse! { @ $error => serialize_f64(f64) -> Ok } };
    (@ char $error:expr) => { refuse! { @ $error => serialize_char(char) -> Ok } };
    (@ str $error:expr) => { refuse! { @ $error => serialize_str(&str) -> Ok } };
    (@ bytes $error:expr) => { refuse! { @ $error => serialize_bytes(&[u8]) -> Ok } };
    (@ none $error:expr) => { refuse! { @ $error => serialize_none() -> Ok } };
    (@ some $error:expr) => { refuse! { @ $error => serialize_some<T>(&T) -> Ok } };
    (@ unit $error:expr) => { refuse! { @ $error => serialize_unit() -> Ok } };
    (@ unit_struct $error:expr) => { refuse! { @ $error => serialize_unit_struct(&'static str) -> Ok } };
    (@ unit_variant $error:expr) => {
        refuse! { @ $error => serialize_unit_variant(&'static str, u32, &'static str) -> Ok }
    };
    (@ newtype_struct $error:expr) => {
        refuse! { @ $error => serialize_newtype_struct<T>(&'static str, &T) -> Ok }
    };
    (@ newtype_variant $error:expr) => {
        refuse! { @ $error => serialize_newtype_variant<T>(&'static str, u32, &'static str, &T) -> Ok }
    };
    (@ seq $error:expr) => { refuse! { @ $error => serialize_seq(Option<usize>) -> SerializeSeq } };
    (@ tuple $error:expr) => { refuse! { @ $error => serialize_tuple(usize) -> SerializeTuple } };
    (@ tuple_struct $error:expr) => {
        refuse! { @ $error => serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct }
    };
    (@ tuple_variant $error:expr) => {
        refuse! { @ $error =>
            serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant
        }
    };
    (@ map $error:expr) => { refuse! { @ $error => serialize_map(Option<usize>) -> SerializeMap } };
    (@ struct $error:expr) => {
        refuse! { @ $error => serialize_struct(&'static str, usize) -> SerializeStruct }
    };
    (@ struct_variant $error:expr) => {
        refuse! { @ $error =>
            serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant
        }
    };
    (@ $error:expr => $method:ident $(<$T:ident>)? ($($kind:ty),*) -> $ok:ident) => {
        fn $method $(<$T: serde::Serialize + ?Sized>)? (self, $(_: $kind),*) -> Result<Self::$ok, Self::Error> {
            Err($error)
        }
    };
    (type Ok = $ok:ty; type Error = $failure:ty; $error:expr => $($kind:ident)*) => {
        type Ok = $ok;
        type Error = $failure;
        type SerializeSeq = serde::ser::Impossible<$ok, $failure>;
        type SerializeTuple = serde::ser::Impossible<$ok, $failure>;
        type SerializeTupleStruct = serde::ser::Impossible<$ok, $failure>;
        type SerializeTupleVariant = serde::ser::Impossible<$ok, $failure>;
        type SerializeMap = serde::ser::Impossible<$ok, $failure>;
        type SerializeStruct = serde::ser::Impossible<$ok, $failure>;
        type SerializeStructVariant = serde::ser::Impossible<$ok, $failure>;

        refuse! { $error => $($kind)* seq tuple tuple_struct tuple_variant map struct struct_variant }
    };
    ($error:expr => $($kind:ident)*) => {
        $(refuse! { @ $kind $error })*
    };
}
pub(crate) use refuse;
