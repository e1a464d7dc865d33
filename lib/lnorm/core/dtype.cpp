#include "lnorm/core/dtype.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::string_view first = words.substr(0, words.find(' '));
    if (first == word) return true;
    words.remove_prefix(std::min(first.size() + 1, words.size()));
  }
  return false;
}

// Integers of a kind are named by the first and the last.
std::string list(const std::vector<DTypeRow>& rows, std::string_view DTypeRow::*names) {
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
  for (const DTypeRow& row : kDTypes) {
    // No file has a pair.
    if (row.dtype == DType::float64_pair) continue;
    if (row.name == name || has_word(row.synonyms, name)) return row.dtype;
  }
  return std::nullopt;
}

std::string dtype_list(std::string_view DTypeRow::*names) {
  std::vector<DTypeRow> rows;
  std::copy_if(kDTypes.begin(), kDTypes.end(), std::back_inserter(rows),
               [&](const DTypeRow& row) { return !(row.*names).empty(); });
  return list(rows, names);
}

std::string dtype_list(bool (*is_one)(DType)) {
  std::vector<DTypeRow> rows;
  std::copy_if(kDTypes.begin(), kDTypes.end(), std::back_inserter(rows),
               [&](const DTypeRow& row) { return is_one(row.dtype); });
  return list(rows, &DTypeRow::name);
}

std::size_t item_size(DType dtype) { return dtype_row(dtype).size; }

bool is_floating(DType dtype) { return dtype_row(dtype).kind == DTypeKind::floating; }

bool is_larger_float(DType dtype) { return is_floating(dtype) && item_size(dtype) > 1; }

bool is_float8(DType dtype) { return is_floating(dtype) && item_size(dtype) == 1; }

}  // namespace lnorm
