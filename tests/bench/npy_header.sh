# Sourced by the others. Prints the header of an .npy file: dtype, shape, whether it is in Fortran order.
npy_header() {
  local dict="{'descr': '$1', 'fortran_order': ${3:-False}, 'shape': $2, }"
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$dict"
}
