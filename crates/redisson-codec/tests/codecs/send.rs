//! Every public type can be shared by threads: a codec by the tasks of a client, a value by a handler that
//! waits. A break is a compile error here.

use redisson_codec::classes::{Classes, Differences};
use redisson_codec::detect::{Candidate, Description, Detector, Format, Kind, Reason, Verdict};
use redisson_codec::java::{
    Array, BigDecimal, BigInteger, ClassName, Classed, Collection, Constant, ConversionError, Date, Duration,
    Enum, EnumSet, Instant, LocalDate, LocalDateTime, LocalTime, Map, Object, Opaque, OptionalDouble,
    OptionalInt, OptionalLong, ParseError, Pattern, Serialized, Text, Uuid, Value,
};
use redisson_codec::{
    AnyClass, Bytes, CborJackson, CodecError, Double, Int, Json, JsonJackson, Kryo5, Limited, Long, Lz4V2,
    Mapper, MsgPack, MsgPackJackson, SnappyV2, String, WithClasses, WithMapper, ZStd,
};

fn is_shared<T: Send + Sync + 'static>() {}

#[test]
fn types_are_shared_by_threads() {
    is_shared::<(Bytes, Double, Int, Json, Kryo5, Long, MsgPack, String, WithClasses)>();
    is_shared::<(CborJackson, JsonJackson, Mapper, MsgPackJackson, WithMapper<JsonJackson>)>();
    is_shared::<(AnyClass<Kryo5>, Limited<Lz4V2<Long>>, SnappyV2<Long>, ZStd<Long>)>();
    is_shared::<(CodecError, ConversionError, ParseError, Classes, Differences)>();
    is_shared::<(Candidate, Description, Detector, Format, Kind, Reason, Verdict)>();
    is_shared::<(Array, Classed, ClassName, Collection, Constant, Enum, EnumSet, Map, Object, Opaque)>();
    is_shared::<(Serialized, Text, Value, BigDecimal, BigInteger, Pattern, Uuid)>();
    is_shared::<(Date, Duration, Instant, LocalDate, LocalDateTime, LocalTime)>();
    is_shared::<(OptionalDouble, OptionalInt, OptionalLong)>();
}
