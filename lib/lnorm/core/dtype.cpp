#include "lnorm/core/dtype.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// Integers of a kind are named by the first and the last.
template <class IsListed>
std::string list(std::string_view DTypeRow::*names, IsListed is_listed) {
  std::vector<DTypeRow> rows;
  std::ranges::copy_if(kDTypes, std::back_inserter(rows), is_listed);
  std::vector<std::string> parts;
  for (auto first = rows.begin(); first != rows.end();) {
    if (first->dtype == DType::float64_pair) break;
    const auto end = std::find_if(first + 1, rows.end(), [&](const DTypeRow& row) {
      return row.kind != first->kind || row.kind == DTypeKind::floating;
    });
    const std::string_view last = end - first > 1 ? end[-1].*names : std::string_view();
    parts.push_back(concat((*first).*names, last.empty() ? "" : " to ", last));
    first = end;
  }
  return listed(parts, " or ");
}

}  // namespace

std::string_view name(DType dtype) { return dtype_row(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == DType::float64_pair) continue;  // no file has it
    if (row.name == name || std::ranges::count(row.synonyms, name) > 0) return row.dtype;
  }
  return std::nullopt;
}

std::string dtype_list(std::string_view DTypeRow::*names) {
  return list(names, [&](const DTypeRow& row) { return !(row.*names).empty(); });
}

std::string dtype_list(bool (*is_one)(DType)) {
  return list(&DTypeRow::name, [&](const DTypeRow& row) { return is_one(row.dtype); });
}

std::size_t item_size(DType dtype) { return dtype_row(dtype).size; }

bool is_floating(DType dtype) { return dtype_row(dtype).kind == DTypeKind::floating; }

bool is_larger_float(DType dtype) { return is_floating(dtype) && item_size(dtype) > 1; }

bool is_float8(DType dtype) {
  return is_floating(dtype) && item_size(dtype) == 1 && float_format(dtype).precision > 1;
}

bool is_result(DType dtype) { return is_larger_float(dtype) || is_float8(dtype); }

}  // namespace lnorm
