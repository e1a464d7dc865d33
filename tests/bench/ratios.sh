#!/usr/bin/env bash
# How long each work takes, as a multiple of moving the same bytes, and the multiple that is aimed at. Each is the median
# of five runs, in turns with the other command, of 512 MiB unless it says otherwise.
#
#   tests/bench/ratios.sh [LNORM] [PATTERN]     by default build/release/lnorm and all; PATTERN: an extended regular expression
#
# Writes to a new folder in $TMPDIR or /tmp, some 2.2 GB, and takes it away at the end. For files in memory
# TMPDIR=/dev/shm.
set -euo pipefail
bench=$(cd "$(dirname "$0")" && pwd)
. "$bench/npy_header.sh"
lnorm=$(realpath "${1:-$bench/../../build/release/lnorm}")
pattern=${2:-.}
work=$(mktemp -d "${TMPDIR:-/tmp}/lnorm-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# Writes the elements of a file under another header: new file, old file, dtype, shape, whether in Fortran order.
again() {
  { npy_header "$3" "$4" "${5:-False}"; tail -c +129 "$2"; } >"$1"
}

milliseconds() {
  local start=$EPOCHREALTIME
  sh -c "$1" >/dev/null 2>&1 || true
  local end=$EPOCHREALTIME
  echo $(((${end/./} - ${start/./}) / 1000))
}

median() { sort -n | sed -n 3p; }

# Label, ratio that is aimed at, milliseconds, milliseconds of what stands beside it.
print_row() {
  awk -v label="$1" -v goal="$2" -v a="$3" -v b="$4" \
    'BEGIN { printf "%-44s %7d ms %7d ms %7.2f %6s %s\n", label, a, b, a / b, goal, (a / b > goal ? "above" : "") }'
}

# Label, ratio that is aimed at, command, command beside it, command before each of them, whose time does not count.
row() {
  local i ours=() theirs=()
  [[ $1 =~ $pattern ]] || return 0
  milliseconds "$3" >/dev/null
  milliseconds "$4" >/dev/null
  for i in 1 2 3 4 5; do
    ${5:-:}
    ours+=("$(milliseconds "$3")")
    ${5:-:}
    theirs+=("$(milliseconds "$4")")
  done
  print_row "$1" "$2" "$(printf '%s\n' "${ours[@]}" | median)" "$(printf '%s\n' "${theirs[@]}" | median)"
}

# The backward kernel beside oneDNN's, one thread.
kernel=$bench/../../build/release/tests/bench/lnorm_bench
if [[ "backward kernel beside oneDNN" =~ $pattern && -x $kernel ]]; then
  "$kernel" --benchmark_filter='(avx512|avx2|onednn)/backward/.*threads:1/' --benchmark_repetitions=5 \
    --benchmark_enable_random_interleaving=true --benchmark_format=csv 2>/dev/null >kernel.csv
  for width in 8 16 32 64 128 768 4096; do
    of() { grep "^\"$1/.*width:$width/.*_median" kernel.csv | cut -d , -f 3; }
    ours=$(of avx512)
    theirs=$(of onednn)
    [ -z "$theirs" ] || print_row "backward kernel, width $width, beside oneDNN" 1.0 "${ours:-$(of avx2)}" "$theirs"
  done
fi

# Label, how much is aimed at, its unit, bytes that do not count, bytes in a unit, command.
memory() {
  [[ $1 =~ $pattern ]] || return 0
  /usr/bin/time -f %M -o peak.txt sh -c "exec $6" >/dev/null
  awk -v label="$1" -v goal="$2" -v unit="$3" -v beside="$4" -v size="$5" \
    '{ found = ($1 * 1024 - beside) / size
       printf "%-44s %30.2f %6s %s %s\n", label, found, goal, unit, (found > goal ? "above" : "") }' peak.txt
}

printf '%-44s %10s %10s %7s %6s\n' "" lnorm beside ratio goal
count=$((128 << 20))
rows=$((count / 768))
{ npy_header '<i4' "($count,)"; head -c $((count * 4)) /dev/urandom; } | "$lnorm" --threads 2 --dtype float32 >x.npy

for length in 1:1.5 4:1.1 8:1.0; do
  again short.npy x.npy '<f4' "($((count / ${length%:*})), ${length%:*})"
  row "apply float32, rows of ${length%:*}" "${length#*:}" "$lnorm short.npy -o y.npy" "cat short.npy > z.npy"
done
again x768.npy x.npy '<f4' "($rows, 768)"
truncate -s $((128 + rows * 768 * 4)) x768.npy
row "apply float32, rows of 768" 1.0 "$lnorm x768.npy -o y.npy" "cat x768.npy > z.npy"
row "the same, --save-mean --save-rstd" 1.0 "$lnorm x768.npy -o y.npy --save-mean m.npy --save-rstd s.npy" \
  "cat x768.npy > z.npy"
{ npy_header '|i1' "($rows, 768)"; head -c $((rows * 768)) /dev/urandom | tr '\200-\377' '\000'; } |
  "$lnorm" convert - --dtype float32 -o zeros.npy
row "apply --rms float32, half of it zeros" 1.0 "$lnorm zeros.npy --rms -o y.npy" "cat zeros.npy > z.npy"
rm zeros.npy
row "convert float32 to bfloat16" 1.0 "$lnorm convert x768.npy --dtype bfloat16 -o y.safetensors" "cat x768.npy > z.npy"
row "softmax float32, rows of 768" 1.0 "$lnorm softmax x768.npy -o y.npy" "cat x768.npy > z.npy"
row "stats float32, rows of 768" 1.3 "$lnorm stats x768.npy" "cat x768.npy > /dev/null"
row "stats --softmax" 2.5 "$lnorm stats --softmax x768.npy" "cat x768.npy > /dev/null"
row "stats --histogram" 3 "$lnorm stats --histogram x768.npy" "cat x768.npy > /dev/null"
row "stats --csv" 2.2 "$lnorm stats --csv x768.npy" "cat x768.npy > /dev/null"
"$lnorm" x768.npy -o reference.npy
row "compare float32, all different" 0.8 "$lnorm compare x768.npy reference.npy" \
  "cat x768.npy | cat > /dev/null; cat reference.npy | cat > /dev/null"
rm reference.npy
row "apply --axes 0" 1.3 "$lnorm x768.npy --axes 0 -o y.npy" "cat x768.npy > z.npy"
again short.npy x.npy '<f4' "($((count / 64)), 64)"
row "softmax float32, rows of 64" 1.2 "$lnorm softmax short.npy -o y.npy" "cat short.npy > z.npy"
row "stats float32, rows of 64" 3 "$lnorm stats short.npy" "cat short.npy > /dev/null"
again short.npy x.npy '<f4' "($((count / 100)), 100)"
truncate -s $((128 + count / 100 * 400)) short.npy
row "stats float32, rows of 100" 3 "$lnorm stats short.npy" "cat short.npy > /dev/null"
rm short.npy

again long.npy x.npy '<f4' "($((16 << 20)),)"
truncate -s $((128 + (64 << 20))) long.npy
row "one row of 16 million" 1.15 "$lnorm long.npy -o y.npy" "cat long.npy > z.npy"
rm long.npy

half=$((rows / 2))
head -c $((128 + half * 768 * 4)) x768.npy >half.npy
again dy.npy half.npy '<f4' "($half, 768)"
{ npy_header '<f4' "($half, 768)"; tail -c +$((129 + half * 768 * 4)) x768.npy | head -c $((half * 768 * 4)); } >x.half.npy
row "grad where dy is x, beside another dy" 2.8 "$lnorm grad dy.npy --dy dy.npy --dx y.npy" "$lnorm grad dy.npy --dy x.half.npy --dx z.npy"
row "the same, --eps 0: dx is 0" 2.8 "$lnorm grad dy.npy --dy dy.npy --eps 0 --dx y.npy" "$lnorm grad dy.npy --dy x.half.npy --dx z.npy"
rm dy.npy x.half.npy
again other.npy half.npy '<f4' "($half, 768)"
"$lnorm" other.npy --dtype float64 -o f64.npy
rm half.npy other.npy
for length in 8:2 64:1.2 768:1.0; do
  again short.npy f64.npy '<f8' "($((half * 768 / ${length%:*})), ${length%:*})"
  row "apply float64, rows of ${length%:*}" "${length#*:}" "$lnorm short.npy -o y.npy" "cat short.npy > z.npy"
done
rm short.npy
row "softmax float64, rows of 768" 1.5 "$lnorm softmax f64.npy -o y.npy" "cat f64.npy > z.npy"
row "stats float64, rows of 768" 2 "$lnorm stats f64.npy" "cat f64.npy > /dev/null"
again short.npy f64.npy '<f8' "($((half * 768 / 65536)), 65536)"
truncate -s $((128 + half * 768 / 65536 * 65536 * 8)) short.npy
row "stats float64, rows of 65536" 6 "$lnorm stats short.npy" "cat short.npy > /dev/null"
rm short.npy
{ printf '[10000'; printf ',%.0s10000' $(seq 767); printf ']'; } >bias.json
"$lnorm" f64.npy --bias bias.json -o far.npy
parts="--dx y.npy --dweight w.npy --dbias b.npy"
row "grad float64 of mean 1e4, beside mean 0" 1.1 "$lnorm grad far.npy --dy f64.npy $parts" "$lnorm grad f64.npy --dy f64.npy $parts"
rm -f f64.npy far.npy bias.json w.npy b.npy

{ npy_header '<i8' "($half, 768)"; head -c $((half * 768 * 8)) /dev/urandom; } >i64.npy
row "apply int64, rows of 768" 1.2 "$lnorm i64.npy -o y.npy" "cat i64.npy > z.npy"
rm i64.npy
{ npy_header '|i1' "($rows, 768)"; head -c $((rows * 768)) /dev/urandom; } >i8.npy
row "apply int8 to float32" 1.0 "$lnorm i8.npy --dtype float32 -o y.npy" "cat x768.npy > z.npy"
rm i8.npy

"$lnorm" x768.npy --dtype float16 -o f16.npy
{ npy_header '<f2' "($((2 * rows)), 768)"; tail -c +129 f16.npy; tail -c +129 f16.npy; } >twice.npy
mv twice.npy f16.npy
row "softmax float16, rows of 768" 1.2 "$lnorm softmax f16.npy -o y.npy" "cat f16.npy > z.npy"
cp f16.npy same.npy
row "compare float16, equal" 1.1 "$lnorm compare f16.npy same.npy" "cat f16.npy same.npy > /dev/null"
"$lnorm" f16.npy -o same.npy
row "compare float16, all different" 1.1 "$lnorm compare f16.npy same.npy" "cat f16.npy same.npy > /dev/null"
rm f16.npy same.npy

again other.npy x.npy '<f4' "(16384, 8192)" True
row "Fortran order, 2-d" 1.2 "$lnorm other.npy -o y.npy" "cat other.npy > z.npy"
again other.npy x.npy '<f4' "(128, 128, 8192)" True
row "Fortran order, 3-d 128x128x8192" 1.4 "$lnorm other.npy -o y.npy" "cat other.npy > z.npy"
again other.npy x.npy '<f4' "(64, 128, 128, 128)" True
row "Fortran order, 4-d --axes 1" 3 "$lnorm other.npy --axes 1 -o y.npy" "cat other.npy > z.npy"
again other.npy x.npy '<f4' "(32, 32, 32, 64, 64)" True
row "Fortran order, 5-d --axes 1,3" 3 "$lnorm other.npy --axes 1,3 -o y.npy" "cat other.npy > z.npy"
again other.npy x.npy '<f4' "(128, 256, 64, 64)"
row "apply NCHW --axes 1" 1.2 "$lnorm other.npy --axes 1 -o y.npy" "cat other.npy > z.npy"
memory "memory of NCHW --axes 1" 48 MiB 0 $((1 << 20)) "$lnorm other.npy --axes 1 -o y.npy"
again other.npy x.npy '<f4' "(64, 256, 56, 56)"
truncate -s $((128 + 64 * 256 * 56 * 56 * 4)) other.npy
{ npy_header '<f4' "(256,)"; head -c 1152 x.npy | tail -c 1024; } >w256.npy
affine="--weight w256.npy --bias w256.npy"
row "group norm NCHW, 32 groups" 1.2 "$lnorm other.npy --groups 32 $affine -o y.npy" "cat other.npy > z.npy"
row "instance norm NCHW" 1.2 "$lnorm other.npy --axes 2,3 --affine-axes 1 $affine -o y.npy" \
  "cat other.npy > z.npy"
row "batch norm NCHW in evaluation" 1.1 \
  "$lnorm other.npy --axes 0,2,3 --affine-axes 1 $affine --mean w256.npy --variance 2 -o y.npy" "cat other.npy > z.npy"
rm other.npy w256.npy

head -c $((4 << 20)) x768.npy | tail -c +129 >part
{ npy_header '<f4' "(1365, 768)"; head -c $((1365 * 768 * 4)) part; } >small.npy
"$lnorm" small.npy --threshold 100000000 -o y.txt
row "text of every element, 4 MiB" 3.5 "$lnorm small.npy --threshold 100000000 -o y.txt" "cat y.txt > z.txt"
{ npy_header '<f4' "(8738, 768)"; head -c $((128 + 8738 * 768 * 4)) x768.npy | tail -c +129; } >small.npy
"$lnorm" small.npy -o small.json
memory "memory of text of every element, 25 MiB" 16 MiB 0 $((1 << 20)) "$lnorm small.npy --threshold 100000000 -o y.txt"
row "npy to JSON, 8738x768" 3.5 "$lnorm small.npy -o y.json" "cat small.json > z.json"
row "JSON to npy" 4 "$lnorm small.json -o y.npy" "cat small.json > z.json"
row "JSON to JSON" 6 "$lnorm small.json -o y.json" "cat small.json > z.json"
numbers=$((16 << 20))
ones() { head -c $((2 * numbers - 1)) /dev/zero | sed 's/\x00\x00/1,/g; s/\x00/1/'; }
{ printf '['; ones; printf ']'; } >small.json
memory "memory of JSON of many 1s, beyond the text" 10 "bytes a number" "$(stat -c %s small.json)" "$numbers" \
  "$lnorm small.json -o y.npy"
{ printf '{"shape": [4096, 4096], "dtype": "float32", "data": ['; ones; printf ']}'; } >small.json
memory "memory of JSON of float32, the same" 10 "bytes a number" "$(stat -c %s small.json)" "$numbers" \
  "$lnorm small.json -o y.npy"
rm -f small.npy small.json part y.json y.txt z.txt z.json

"$lnorm" x768.npy -o a.safetensors
row ".safetensors" 1.0 "$lnorm a.safetensors -o y.npy" "cat a.safetensors > z.npy"
rm a.safetensors
"$lnorm" x768.npy -o a.npz
row ".npz, stored" 1.1 "$lnorm a.npz -o y.npy" "cat a.npz > z.npy"
rm a.npz
if command -v unzip >/dev/null && command -v python3 >/dev/null; then
  python3 -m zipfile -c a.npz x768.npy
  row ".npz, deflated, beside unzip -p" 0.6 "$lnorm a.npz -o y.npy" "unzip -p a.npz > z.npy"
  rm a.npz
fi

if command -v python3 >/dev/null; then
  python3 "$bench/make_pt.py" x768.npy a.pt
  row ".pt" 1.1 "$lnorm a.pt:x -o y.npy" "cat a.pt > z.npy"
  rm a.pt
fi
rm -f y.npy z.npy x.npy y.safetensors

# A file of eight times what its group may have in memory, so that the page cache does not hold it. Writing waits for
# the disk, reading reads ahead.
group=/sys/fs/cgroup/memory/lnorm-bench-$$
limit=memory.limit_in_bytes
if [ ! -d /sys/fs/cgroup/memory ]; then
  group=/sys/fs/cgroup/lnorm-bench-$$
  limit=memory.max
fi
if mkdir "$group" 2>/dev/null && echo $((256 << 20)) 2>/dev/null >"$group/$limit"; then
  disk=$(mktemp -d "${LNORM_BENCH_DISK:-/var/tmp}/lnorm-bench-XXXXXX")
  trap 'rm -rf "$work" "$disk"; rmdir "$group"' EXIT
  cd "$disk"
  inside="echo \$\$ > $group/cgroup.procs;"
  { npy_header '<f4' "($((4 * rows)), 768)"; for i in 1 2 3 4; do tail -c +129 "$work/x768.npy"; done; } |
    sh -c "$inside cat >x.npy"  # whoever writes a file is charged for its pages
  row "apply, 2 GiB in 256 MiB of memory" 1.0 "$inside $lnorm x.npy -o y.npy" "$inside cat x.npy > z.npy"
  row "stats, 2 GiB in 256 MiB of memory" 1.3 "$inside $lnorm stats x.npy" "$inside cat x.npy > /dev/null"
  drop_caches() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
  }
  row "apply, a cold file of 2 GiB" 1.0 "$lnorm x.npy -o y.npy" "cat x.npy > z.npy" drop_caches
  row "stats, a cold file of 2 GiB" 1.0 "$lnorm stats x.npy" "cat x.npy > /dev/null" drop_caches
else
  echo "a file bigger than memory, and cold files: not measured, they need leave to make $group"
fi

# Gradients in memory beside PyTorch's, where both packages are: PYTHONPATH says where lnorm's is.
if [[ "gradients in Python, beside torch" =~ $pattern ]] && /usr/bin/python3 -c 'import lnorm, torch' 2>/dev/null; then
  /usr/bin/python3 "$bench/python_norm.py" rows | while IFS=, read -r label goal ours theirs; do
    print_row "$label" "$goal" "$ours" "$theirs"
  done
fi
