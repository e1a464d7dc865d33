#!/usr/bin/env bash
# The program beside what a user would use instead: cat for moving the bytes, NumPy and PyTorch scripts
# where they are installed. Prints medians and ratios, each group from one run of hyperfine, and peak
# memory.
#
#   tests/bench/program.sh [LNORM]      by default build/release/lnorm
#
# Writes to a new folder in $TMPDIR or /tmp, some 1.8 GB, and takes it away at the end.
set -euo pipefail
bench=$(cd "$(dirname "$0")" && pwd)
. "$bench/npy_header.sh"
lnorm=$(realpath "${1:-$bench/../../build/release/lnorm}")
work=$(mktemp -d "${TMPDIR:-/tmp}/lnorm-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
python=$(command -v /usr/bin/python3 || command -v python3 || true)

has_module() { [ -n "$python" ] && "$python" -c "import $1" 2>/dev/null; }

# From one hyperfine run: median and ratio to the first command.
group() {
  local title=$1
  shift
  local commands=() names=()
  while [ $# -gt 0 ]; do
    names+=("$1")
    commands+=("$2")
    shift 2
  done
  hyperfine --warmup 1 --runs "${runs:-15}" --style none --ignore-failure --export-csv group.csv \
    "${commands[@]}" >/dev/null 2>&1
  echo
  echo "$title"
  local i=0 median base=""
  while read -r median; do
    base=${base:-$median}
    awk -v name="${names[$i]}" -v m="$median" -v b="$base" \
      'BEGIN { printf "  %-52s %9.2f ms  %6.2f x\n", name, 1000 * m, m / b }'
    i=$((i + 1))
  done < <(tail -n +2 group.csv | awk -F, '{ print $(NF - 4) }')
}

peak() {  # name, then a command for sh
  /usr/bin/time -f %M -o peak.txt sh -c "$2" >/dev/null
  awk -v name="$1" '{ printf "  %-52s %9.1f MiB\n", name, $1 / 1024 }' peak.txt
}

echo "lnorm beside others, $(date +%F), $(nproc) processors: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"

{ npy_header '<i4' '(87381, 768)'; head -c $((87381 * 768 * 4)) /dev/urandom; } |
  "$lnorm" --dtype float32 >x.npy  # 256 MiB
{ npy_header '<i4' '(8738, 768)'; head -c $((8738 * 768 * 4)) /dev/urandom; } |
  "$lnorm" --dtype float32 --to json >small.json
"$lnorm" x.npy -o reference.npy
echo '[[1, 2, 3, 4, 5], [2, 3, 5, 7, 11]]' >tiny.json

file=("cat x.npy > y.npy" "cat x.npy > y.npy" "lnorm x.npy -o y.npy" "$lnorm x.npy -o y.npy")
has_module numpy && file+=("NumPy" "$python $bench/numpy_npy.py x.npy y.npy")
has_module torch && file+=("PyTorch" "$python $bench/torch_npy.py x.npy y.npy")
group "float32 87381x768, 256 MiB, from file to file" "${file[@]}"
group "the same through pipes" \
  "cat x.npy | cat > y.npy" "cat x.npy | cat > y.npy" \
  "cat x.npy | lnorm > y.npy" "cat x.npy | $lnorm > y.npy"
group "the same numbers as one row" \
  "cat x.npy > y.npy" "cat x.npy > y.npy" \
  "lnorm x.npy --axis 0 -o y.npy" "$lnorm x.npy --axis 0 -o y.npy"
{ npy_header '<f4' '(87381, 768)' True; tail -c +129 x.npy; } >fortran.npy
{ npy_header '<f4' '(222, 96, 56, 56)'; head -c $((128 + 222 * 96 * 56 * 56 * 4)) x.npy | tail -c +129; } >images.npy
group "memory order and axes" \
  "lnorm x.npy -o y.npy" "$lnorm x.npy -o y.npy" \
  "lnorm fortran.npy -o y.npy" "$lnorm fortran.npy -o y.npy" \
  "lnorm x.npy --axes 0 -o y.npy" "$lnorm x.npy --axes 0 -o y.npy" \
  "lnorm images.npy --axes 1 -o y.npy, 222x96x56x56" "$lnorm images.npy --axes 1 -o y.npy" \
  "the same through pipes" "cat images.npy | $lnorm --axes 1 > y.npy"
rm fortran.npy images.npy
group "statistics" \
  "cat x.npy > /dev/null" "cat x.npy > /dev/null" \
  "lnorm stats x.npy" "$lnorm stats x.npy"
group "comparison" \
  "cat x.npy x.npy | cat > /dev/null" "cat x.npy x.npy | cat > /dev/null" \
  "lnorm compare reference.npy reference.npy" "$lnorm compare reference.npy reference.npy" \
  "lnorm compare x.npy reference.npy" "$lnorm compare x.npy reference.npy"
group "other steps" \
  "cat x.npy > y.npy" "cat x.npy > y.npy" \
  "lnorm x.npy --residual reference.npy -o y.npy" "$lnorm x.npy --residual reference.npy -o y.npy" \
  "lnorm x.npy --rms --weight 1.5 --round xhat -o y.npy" "$lnorm x.npy --rms --weight 1.5 --round xhat -o y.npy" \
  "lnorm x.npy --dtype float8_e4m3fn -o y.safetensors" "$lnorm x.npy --dtype float8_e4m3fn -o y.safetensors"
rm y.safetensors
gradients="--dy reference.npy --dx dx.npy --dweight dw.npy --dbias db.npy"
backward=("cat x.npy > dx.npy; cat dy.npy > /dev/null" "cat x.npy > dx.npy; cat reference.npy > /dev/null"
  "lnorm grad x.npy --dy dy.npy --dx ... --dweight ... --dbias ..." "$lnorm grad x.npy $gradients"
  "lnorm grad x.npy --dy dy.npy --dx ..." "$lnorm grad x.npy --dy reference.npy --dx dx.npy")
has_module torch && backward+=("PyTorch" "$python $bench/torch_backward.py x.npy reference.npy dx.npy dw.npy db.npy")
group "backward of the same" "${backward[@]}"
rm dx.npy
# The same elements as 300 tensors, and then very many small ones.
mkdir parts
head -c $((128 + 291 * 768 * 4)) x.npy | tail -c +129 >part
for i in $(seq 0 299); do { npy_header '<f4' '(291, 768)'; cat part; } >"parts/h.$i.npy"; done
"$lnorm" 'parts/:*' -o a.safetensors
cp a.safetensors b.safetensors
rm -r parts part
group "300 tensors of 291x768 float32" \
  "cat a b > /dev/null" "cat a.safetensors b.safetensors > /dev/null" \
  "lnorm compare a b" "$lnorm compare a.safetensors b.safetensors" \
  "cat a > /dev/null" "cat a.safetensors > /dev/null" \
  "lnorm stats a" "$lnorm stats a.safetensors" \
  "cat a > c" "cat a.safetensors > c.safetensors" \
  "lnorm 'a:*' -o c" "$lnorm 'a.safetensors:*' -o c.safetensors"
rm c.safetensors
mkdir parts
{ npy_header '<f4' '(8,)'; head -c 32 /dev/urandom; } >part
for i in $(seq 0 9999); do ln -s ../part "parts/h.$i.npy"; done
"$lnorm" 'parts/:*' -o many.safetensors
group "10,000 tensors of 8 float32" \
  "lnorm show many" "$lnorm show many.safetensors" \
  "lnorm show many:h.5000" "$lnorm show many.safetensors:h.5000"
rm -r parts part many.safetensors
json=("lnorm small.json -o y.json" "$lnorm small.json -o y.json")
has_module numpy && json+=("json.load, NumPy, json.dump" "$python $bench/numpy_json.py small.json y.json")
runs=3 group "JSON of 8738x768 numbers to JSON" "${json[@]}"
runs=100 group "start-up" "true" /bin/true "lnorm tiny.json" "$lnorm tiny.json"

{ npy_header '<f4' '(699050, 768)'; } >large.npy
truncate -s $((128 + 699050 * 768 * 4)) large.npy  # 2 GiB of zeros
echo
echo "peak memory"
for size in x large; do
  what=$([ $size = x ] && echo "256 MiB" || echo "2 GiB")
  peak "lnorm, $what, file" "exec $lnorm $size.npy -o /dev/null"
  peak "lnorm, $what, pipe" "cat $size.npy | $lnorm > /dev/null"
  peak "lnorm, $what, one row" "exec $lnorm $size.npy --axis 0 -o /dev/null"
  peak "lnorm stats, $what" "exec $lnorm stats $size.npy"
  peak "lnorm compare, $what" "exec $lnorm compare $size.npy $size.npy"
  peak "lnorm softmax, $what" "exec $lnorm softmax $size.npy -o /dev/null"
  peak "lnorm --axes 0, $what" "exec $lnorm $size.npy --axes 0 -o y.npy"
  peak "lnorm grad, $what" "exec $lnorm grad $size.npy --dy $size.npy --dx y.npy --dweight dw.npy --dbias db.npy"
done
peak "lnorm stats, 300 tensors" "exec $lnorm stats a.safetensors"
peak "lnorm compare, 300 tensors" "exec $lnorm compare a.safetensors b.safetensors"
