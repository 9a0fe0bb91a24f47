#!/bin/sh
# Turns the test vectors into a seed corpus: fuzz/corpus/<target>/<vector>.
set -eu

cd "$(dirname "$0")"

add() {
    mkdir -p "corpus/$1"
    grep -v '^#' "../tests/vectors/$2.tsv" | while IFS="$(printf '\t')" read -r name _ _ hex; do
        printf '%s' "$hex" | xxd -r -p >"corpus/$1/$2.$name"
    done
}

add kryo kryo5
add kryo kryo5-serialized
add json_jackson json-jackson
add cbor_jackson cbor-jackson
add msgpack_jackson msgpack-jackson
add kryo kryo5-classes
add json_jackson json-jackson-classes
add cbor_jackson cbor-jackson-classes
add msgpack_jackson msgpack-jackson-classes
for around in lz4v2 snappyv2 zstd; do
    add compressed "$around-string"
    add compressed "$around-kryo5"
done
