#include "lnorm/report/table.hpp"

#include <algorithm>
#include <utility>

#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

bool is_number(const std::string& cell) {
  return !cell.empty() && cell.back() >= '0' && cell.back() <= '9';
}

std::size_t point_of(const std::string& number) {
  return std::min(number.find_first_of(".e"), number.size());
}

std::string blanks(std::size_t count) { return std::string().append(count, ' '); }

std::string without_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

Table::Table(std::string label, std::vector<TableColumn> columns, bool labels_are_text)
    : label_(std::move(label)),
      columns_(std::move(columns)),
      labels_are_text_(labels_are_text),
      label_width_(label_.size()),
      widths_(columns_.size()) {
  for (std::size_t i = 0; i < columns_.size(); ++i)
    widths_[i].all = character_count(columns_[i].name);
}

void Table::measure(const TableLine& line) {
  label_width_ = std::max(label_width_, character_count(line.label));
  for (std::size_t i = 0; i < line.cells.size(); ++i) {
    const std::string& cell = line.cells[i];
    Width& width = widths_[i];
    if (!columns_[i].is_text && is_number(cell)) {
      width.before = std::max(width.before, point_of(cell));
      width.after = std::max(width.after, cell.size() - point_of(cell));
    }
    width.all = std::max({width.all, width.before + width.after, character_count(cell)});
  }
}

std::string Table::labeled(const std::string& label) const {
  const std::string rest = blanks(label_width_ - character_count(label));
  return labels_are_text_ ? label + rest : rest + label;
}

// Before a column: three blanks where a group begins.
std::size_t Table::gap(std::size_t column, Block block) const {
  const bool begins = column == block.begin || columns_[column].group != columns_[column - 1].group;
  return begins && !columns_[column].group.empty() ? 3 : 2;
}

std::size_t Table::width(Block block) const {
  std::size_t result = label_width_;
  for (std::size_t i = block.begin; i < block.end; ++i) result += gap(i, block) + widths_[i].all;
  return result;
}

std::vector<Table::Block> Table::blocks(int width) const {
  const auto most = static_cast<std::size_t>(std::max(width, 0));
  const auto fits = [&](std::size_t begin, std::size_t end) {
    return this->width({begin, end}) <= most;
  };
  std::vector<Block> result;
  for (std::size_t begin = 0; begin < columns_.size();) {
    std::size_t end = begin + 1;
    while (end < columns_.size() && fits(begin, end + 1)) ++end;
    // Back to where a group ends, if one does.
    std::size_t border = end;
    while (border > begin && border < columns_.size() &&
           columns_[border].group == columns_[border - 1].group) {
      --border;
    }
    if (border > begin) end = border;
    result.push_back({begin, end});
    begin = end;
  }
  return result;
}

std::vector<std::string> Table::head(Block block) const {
  std::string groups = blanks(label_width_);
  std::string names = labeled(label_);
  std::string_view group;
  for (std::size_t i = block.begin; i < block.end; ++i) {
    const TableColumn& column = columns_[i];
    groups.resize(std::max(groups.size(), character_count(names)), ' ');
    if (column.group != group) groups.append(blanks(gap(i, block))).append(column.group);
    group = column.group;
    const std::string rest = blanks(widths_[i].all - character_count(column.name));
    names += blanks(gap(i, block));
    names.append(column.is_text ? "" : rest).append(column.name).append(column.is_text ? rest : "");
  }
  std::vector<std::string> lines;
  groups = without_end(groups);
  if (!groups.empty()) lines.push_back(groups);
  lines.push_back(without_end(names));
  return lines;
}

std::string Table::text(const TableLine& line, Block block) const {
  std::string text = labeled(line.label);
  for (std::size_t i = block.begin; i < std::min(block.end, line.cells.size()); ++i) {
    const std::string& cell = line.cells[i];
    const Width& width = widths_[i];
    const std::size_t rest = width.all - character_count(cell);
    const std::size_t after = columns_[i].is_text ? rest
                              : is_number(cell)   ? width.after - (cell.size() - point_of(cell))
                                                  : std::size_t{0};
    text += blanks(gap(i, block) + rest - after) + cell + blanks(after);
  }
  return without_end(text);
}

}  // namespace lnorm
