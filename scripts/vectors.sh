#!/bin/sh
# Writes those vectors of crates/redisson-codec/tests/vectors that are made from Samples.java, Classes.java, Mappers.java,
# Serialized.java and Shapes.java, with Redisson 4.7.0. A codec that cannot write a sample is reported on stderr, and has no row
# for it. And the class files of crates/redisson-codec/tests/classes, with the vectors of Generic.java there.
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
for mapper in numbers text wrapper patterns typed-numbers typed-text property abstract abstract-property everything everything-property; do
    write mapper "mapper-$mapper" "mapper-$mapper"
done
write serialized kryo5 kryo5-serialized
write serialized java-serialization java-serialization
# The name of a class, not a variable.
# shellcheck disable=SC2016
write write 'typed-json:com.acme.Zoo$Amounts' typed-json-amounts

classes=$root/crates/redisson-codec/tests/classes
compiled=$(mktemp -d)
trap 'rm -rf "$compiled"' EXIT
javac -nowarn -cp "$build/classes:$build/lib/*" -d "$compiled" "$classes/Generic.java"
java -cp "$compiled:$build/classes:$build/lib/*" com.acme.Generic >"$classes/generic.tsv"
mkdir -p "$compiled/com/acme" "$compiled/com/example/shop" "$compiled/lab"
cp "$build/classes/com/example/shop/"*.class "$compiled/com/example/shop/"
for class in Zoo Tasks Clock Annotated; do
    cp "$build/classes/com/acme/$class"*.class "$compiled/com/acme/"
done
cp "$build/classes/lab/Small.class" "$compiled/lab/"
# Those that hold others have no objects.
rm "$compiled/com/acme/Generic.class" "$compiled/com/acme/Zoo.class" "$compiled/com/acme/Tasks.class" \
    "$compiled/com/acme/Annotated.class" "$compiled/com/example/shop/Shapes.class" "$compiled/com/example/shop/Shapes\$1.class"
rm -f "$classes"/*.class
(cd "$compiled" && find . -name '*.class') | while IFS= read -r file; do
    cp "$compiled/$file" "$classes/$(printf %s "${file#./}" | tr / .)"
done
