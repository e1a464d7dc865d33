#include "lnorm/report/table.hpp"

#include <algorithm>
#include <utility>

#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::string_view kGap = "...";
constexpr std::size_t kMin = kGap.size() + 2;

// Where a character begins, or the text ends.
std::size_t place_of(std::string_view text, std::size_t character) {
  std::size_t place = 0;
  while (place < text.size() && (begins_character(text[place]) ? character-- : 1) > 0) ++place;
  return place;
}

std::string without_middle(std::string_view text, std::size_t most) {
  const std::size_t count = character_count(text);
  if (count <= most) return std::string(text);
  const std::size_t kept = most - kGap.size();
  const std::size_t last = kept / 2;
  return concat(text.substr(0, place_of(text, kept - last)), kGap,
                text.substr(place_of(text, count - last)));
}

bool is_number(const std::string& cell) {
  return !cell.empty() && cell.back() >= '0' && cell.back() <= '9';
}

std::size_t point_of(const std::string& number) {
  return std::min(number.find_first_of(".e"), number.size());
}

std::string without_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Adds blanks, and text as wide as that. after: how many blanks follow it at most.
void add_aligned(std::string& line, std::size_t gap, std::string_view text, std::size_t width,
                 std::size_t after) {
  const std::size_t rest = width - std::min(width, character_count(text));
  after = std::min(after, rest);
  line.append(gap + rest - after, ' ').append(text).append(after, ' ');
}

// How many blanks follow an entry that has no point; all where entries stand at the left.
std::size_t after_text(Align align) {
  return align == Align::left ? std::numeric_limits<std::size_t>::max() : 0;
}

}  // namespace

std::string padded(std::string text, std::size_t width) {
  text.append(width - std::min(width, character_count(text)), ' ');
  return text;
}

std::string abbreviated(std::string_view name, std::size_t most) {
  std::size_t count = character_count(name);
  if (count <= most) return std::string(name);
  if (count > 4 * most) return without_middle(name, most);
  // Parts, each with the dot or slash before it.
  std::vector<std::string> parts;
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of("./", 1), rest.size());
    parts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  while (count > most) {
    const auto longest = std::ranges::max_element(parts, {}, character_count);
    const std::size_t length = character_count(*longest);
    if (length <= kMin + 1) return without_middle(name, most);
    const std::size_t shorter = std::max(kMin + 1, length - std::min(length, count - most));
    *longest = without_middle(*longest, shorter);
    count -= length - shorter;
  }
  return joined(parts, "");
}

EachLine each_of(const std::vector<TableLine>& lines) {
  return [&lines](const auto& see) { std::ranges::for_each(lines, see); };
}

Table::Table(TableColumn label, std::vector<TableColumn> columns, EachLine lines)
    : label_(label),
      columns_(std::move(columns)),
      lines_(std::move(lines)),
      label_width_(label.name.size()),
      widths_(columns_.size()) {
  for (std::size_t i = 0; i < columns_.size(); ++i)
    widths_[i].all = character_count(columns_[i].name);
  lines_([&](const TableLine& line) { measure(line); });
}

void Table::measure(const TableLine& line) {
  label_width_ = std::max(label_width_, std::min(label_.most, character_count(line.label)));
  for (std::size_t i = 0; i < line.cells.size(); ++i) {
    const std::string& cell = line.cells[i];
    Width& width = widths_[i];
    if (columns_[i].align == Align::points && is_number(cell)) {
      width.before = std::max(width.before, point_of(cell));
      width.after = std::max(width.after, cell.size() - point_of(cell));
    }
    const std::size_t own = std::min(columns_[i].most, character_count(cell));
    width.all = std::max({width.all, width.before + width.after, own});
  }
  if (line.cells.size() == columns_.size() && !line.remark.empty()) {
    remark_width_ = std::max(remark_width_, line.remark.size() + 2);
  }
}

void Table::shorten_labels(std::size_t most) {
  label_width_ = std::min(label_width_, most);
  shortens_labels_ = true;
}

std::string Table::labeled(const std::string& label) const {
  std::string text;
  add_aligned(text, 0, shortens_labels_ ? abbreviated(label, label_width_) : label, label_width_,
              after_text(label_.align));
  return text;
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

std::size_t Table::width() const { return width({0, columns_.size()}) + remark_width_; }

// Groups stay together where one of them fits.
std::vector<Table::Block> Table::blocks(std::size_t most) const {
  std::vector<Block> result;
  for (std::size_t begin = 0; begin < columns_.size();) {
    std::size_t end = begin + 1;
    while (end < columns_.size() && width({begin, end + 1}) <= most) ++end;
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

// The names of the columns, over them those of their groups if there are any.
std::vector<std::string> Table::head(Block block) const {
  std::string groups(label_width_, ' ');
  std::string names = labeled(std::string(label_.name));
  std::string_view group;
  for (std::size_t i = block.begin; i < block.end; ++i) {
    const TableColumn& column = columns_[i];
    groups.resize(std::max(groups.size(), character_count(names)), ' ');
    if (column.group != group) groups.append(gap(i, block), ' ').append(column.group);
    group = column.group;
    add_aligned(names, gap(i, block), column.name, widths_[i].all, after_text(column.align));
  }
  std::vector<std::string> lines;
  for (const std::string& line : {without_end(groups), without_end(names)}) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string Table::text(const TableLine& line, Block block) const {
  std::string text = labeled(line.label);
  for (std::size_t i = block.begin; i < std::min(block.end, line.cells.size()); ++i) {
    const std::string& cell = line.cells[i];
    const Align align = columns_[i].align;
    const bool has_point = align == Align::points && is_number(cell);
    add_aligned(text, gap(i, block), cell, widths_[i].all,
                has_point ? widths_[i].after - (cell.size() - point_of(cell)) : after_text(align));
  }
  if (!line.remark.empty()) text += "  " + line.remark;
  return without_end(text);
}

void Table::write(TextWriter& text, int width, std::string_view between) const {
  const Style& style = text.style();
  for (const Block block : blocks(static_cast<std::size_t>(std::max(width, 0)))) {
    if (block.begin > 0) text.raw(between);
    for (const std::string& line : head(block)) text.line(style.heading(line));
    lines_([&](const TableLine& line) {
      const std::string own = this->text(line, block);
      text.raw((line.is_bad ? style.bad(own) : own) + '\n');
    });
  }
}

}  // namespace lnorm
