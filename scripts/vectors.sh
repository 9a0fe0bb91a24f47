#!/bin/sh
# Writes those vectors of crates/redisson-codec/tests/vectors that are made from Samples.java, Classes.java, Mappers.java
# and Shapes.java, with Redisson 4.7.0. A codec that cannot write a sample is reported on stderr, and has no row for it.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$here")
"$here/java.sh" 4.7.0

build=$root/compat/java/target/4.7.0
# write SAMPLES CODEC FILE
write() {
    java -cp "$build/classes:$build/lib/*" redelay.compat.Vectors "$1" "$2" >"$root/crates/redisson-codec/tests/vectors/$3.tsv"
}

for codec in kryo5 json-jackson cbor-jackson msgpack-jackson; do
    write write "$codec" "$codec-places"
    write classes "$codec" "$codec-classes"
done
for codec in kryo5 json-jackson cbor-jackson msgpack-jackson json-jackson-jsr310 json-jackson-iso wrapper-array typed-json; do
    write shapes "$codec" "shapes-$codec"
done
for mapper in numbers text wrapper patterns; do
    write mapper "mapper-$mapper" "mapper-$mapper"
done
# The name of a class, not a variable.
# shellcheck disable=SC2016
write write 'typed-json:com.acme.Zoo$Amounts' typed-json-amounts
