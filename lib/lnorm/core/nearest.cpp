#include "lnorm/core/nearest.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kLongest = 100;  // what is longer is not misspelled, but copied
constexpr std::size_t kMaxEdits = 6;

// How many characters must be inserted, left out, changed or swapped with their neighbors; limit if it is not less.
// The word has at most kLongest characters, the limit is at most kMaxEdits + 1.
std::size_t edit_distance(std::string_view word, std::string_view other, std::size_t limit) {
  const std::size_t longer = std::max(word.size(), other.size());
  if (longer - std::min(word.size(), other.size()) >= limit) return limit;
  using Row = std::array<std::size_t, kLongest + kMaxEdits + 2>;
  std::array<Row, 3> rows{};
  for (std::size_t i = 0; i <= word.size(); ++i) {
    Row& row = rows[i % 3];
    const Row& above = rows[(i + 2) % 3];
    std::size_t least = row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      row[j] = row[j - 1] + 1;
      if (i > 0) {
        const std::size_t change = word[i - 1] == other[j - 1] ? 0 : 1;
        row[j] = std::min({row[j], above[j] + 1, above[j - 1] + change});
        if (i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1]) {
          row[j] = std::min(row[j], rows[(i + 1) % 3][j - 2] + 1);
        }
      }
      least = std::min(least, row[j]);
    }
    if (least >= limit) return limit;
  }
  return std::min(rows[word.size() % 3][other.size()], limit);
}

// "sqnr" of "min-sqnr", "weight" of "h.0.weight".
bool is_last_part(std::string_view word, std::string_view candidate) {
  if (word.size() >= candidate.size() || !candidate.ends_with(word)) return false;
  return std::isalnum(static_cast<unsigned char>(candidate[candidate.size() - word.size() - 1])) ==
         0;
}

// How many characters of a word may be wrong.
std::size_t most_edits(std::size_t size, Nearness nearness) {
  if (size < 3) return 0;
  const std::size_t most =
      nearness == Nearness::strict ? size / 5 : std::max<std::size_t>(1, size / 3);
  return std::min(most, kMaxEdits);
}

}  // namespace

std::string nearest(const std::string& word, std::size_t size,
                    const std::function<std::string(std::size_t)>& candidate, Nearness nearness) {
  if (word.size() < (nearness == Nearness::strict ? 4 : 2) || word.size() > kLongest) return "";
  const std::string lower_word = lower_case(word);
  std::string beginning;
  std::string ending;
  std::string misspelling;
  std::size_t limit = most_edits(word.size(), nearness) + 1;
  for (std::size_t i = 0; i < size; ++i) {
    std::string other = candidate(i);
    const auto take = [&](std::string& found) {
      if (found.empty() || other.size() < found.size()) found = other;
    };
    if (lower_case(other) == lower_word) return other;
    if (other.starts_with(word)) take(beginning);
    if (is_last_part(word, other)) take(ending);
    const std::size_t distance = edit_distance(word, other, limit);
    if (distance >= limit) continue;
    limit = distance;
    misspelling = other;
  }
  return !beginning.empty() ? beginning : !ending.empty() ? ending : misspelling;
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates,
                    Nearness nearness) {
  return nearest(
      word, candidates.size(), [&](std::size_t i) { return candidates[i]; }, nearness);
}

}  // namespace lnorm
