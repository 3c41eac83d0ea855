#!/bin/bash -eu
# Builds a fuzzer and a seed corpus for each target; called by OSS-Fuzz with $OUT and $SRC
cd "$SRC/nsysmap"
for target in tests/fuzz/corpus/*/; do
  target=$(basename "$target")
  cat > "$SRC/fuzz_$target.py" <<PYTHON
import sys, atheris
with atheris.instrument_imports(include=["nsysmap"]):
    from tests.fuzz.targets import TARGETS
atheris.Setup(sys.argv, TARGETS["$target"])
atheris.Fuzz()
PYTHON
  compile_python_fuzzer "$SRC/fuzz_$target.py" --paths "$SRC/nsysmap" --collect-data nsysmap
  (cd "tests/fuzz/corpus/$target" && zip -q "$OUT/fuzz_${target}_seed_corpus.zip" ./*)
done
