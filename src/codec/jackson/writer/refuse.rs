//! What elements of bytes and keys of maps cannot be.

macro_rules! refuse {
    ($self:ident $why:expr; $($method:ident($($kind:ty),*) -> $ok:ty;)*) => {$(
        fn $method($self, $(_: $kind),*) -> Result<$ok, Failure> {
            Err($why)
        }
    )*};
}

macro_rules! refuse_compounds {
    ($ok:ty, $why:expr) => {
        type Ok = $ok;
        type Error = Failure;
        type SerializeSeq = Impossible<$ok, Failure>;
        type SerializeTuple = Impossible<$ok, Failure>;
        type SerializeTupleStruct = Impossible<$ok, Failure>;
        type SerializeTupleVariant = Impossible<$ok, Failure>;
        type SerializeMap = Impossible<$ok, Failure>;
        type SerializeStruct = Impossible<$ok, Failure>;
        type SerializeStructVariant = Impossible<$ok, Failure>;

        refuse! { self $why;
            serialize_u32(u32) -> $ok;
            serialize_u64(u64) -> $ok;
            serialize_bytes(&[u8]) -> $ok;
            serialize_none() -> $ok;
            serialize_unit() -> $ok;
            serialize_unit_struct(&'static str) -> $ok;
            serialize_seq(Option<usize>) -> Self::SerializeSeq;
            serialize_tuple(usize) -> Self::SerializeTuple;
            serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
            serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
            serialize_map(Option<usize>) -> Self::SerializeMap;
            serialize_struct(&'static str, usize) -> Self::SerializeStruct;
            serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
        }

        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<$ok, Failure> {
            Err($why)
        }
    };
}

pub(super) use {refuse, refuse_compounds};
