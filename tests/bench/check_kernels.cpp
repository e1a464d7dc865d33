// How lnorm check judges emulated kernels, whose code is their own.
//   check_kernels right [COUNT] [SEED]   right kernels: none may differ, and no other formula may be closer
//   check_kernels wrong [ID]             wrong kernels: how often each is named, and what is answered where it is not

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/diagnosis/wrong_kernels.hpp"
#include "support/emulated_check.hpp"

namespace {

using emulated::Kernel;
using emulated::Order;
using emulated::Tensor;
using lnorm::concat;
using lnorm::DType;

constexpr std::int64_t kFewest = 32;  // elements that show it

int judge_right(long count, unsigned long seed) {
  std::mt19937_64 random(seed);
  long accused = 0;
  long unjudged = 0;
  for (long i = 0; i < count; ++i) {
    const emulated::RightCase one = emulated::right_case(random);
    const Tensor x = emulated::input(one.input, one.rows, one.n, one.x_dtype, random);
    const emulated::Affine affine = emulated::affine(one.affine, one.n, one.x_dtype, random);
    const Tensor y = emulated::run(one.kernel, x, affine.weight, affine.bias);
    const lnorm::Check found = emulated::check(x, one.x_dtype, y, one.kernel, {}, affine);
    if (found.verdict == lnorm::Verdict::not_judged) ++unjudged;
    if (found.verdict != lnorm::Verdict::differs && !found.diagnosis.hidden) continue;
    ++accused;
    std::cout << concat("accused: ", one.name, ", ", found.judged.tree.ratio,
                        " of the bound, hidden: ",
                        found.diagnosis.hidden ? found.diagnosis.hidden->id() : "none", '\n');
  }
  std::cout << concat(count, " right kernels: ", accused, " accused, ", unjudged, " not judged\n");
  return accused == 0 ? 0 : 1;
}

struct Tally {
  int told = 0;
  int named = 0;
  std::string others;  // answers in place of the name
  std::string left_out;
};

// What the kernel was asked for, so that the wrong one is another formula.
lnorm::Formula formula_for(const std::string& id) {
  lnorm::Formula formula;
  formula.rms = id == "layer-norm";
  if (id == "eps-on-variance") formula.eps_on = lnorm::EpsOn::std;
  if (id == "ddof-0") formula.ddof = 1;
  return formula;
}

bool is_answer(const lnorm::Check& found, const std::string& id) {
  if (found.diagnosis.hidden && found.diagnosis.hidden->id() == id) return true;
  if (!found.diagnosis.explains_all()) return false;
  const auto& best = found.diagnosis.explanations.front();
  // All rows together are normalized over all axes, which has an option.
  const bool is_over_all = id == "all-rows" && best.id() == "axes-0-1";
  return is_over_all || best.id() == id ||
         std::count(best.same_as.begin(), best.same_as.end(), id) > 0;
}

// Why a case cannot be told; empty if it can.
std::string untold(const std::string& id, DType dtype, const lnorm::Check& found) {
  if (id == "byte-order-x" && dtype != DType::float16) return "squares leave float32";
  const bool is_nan = found.judged.non_finite == found.judged.elements;
  if (id == "byte-order-x" && is_nan) return "every row has a NaN";
  const bool has_own_sums = id == "one-pass" || id.ends_with("-sums");
  if (has_own_sums && found.verdict != lnorm::Verdict::differs) {
    return "its sums lose no more than rounding explains";
  }
  if (dtype == DType::bfloat16 && (id == "one-pass" || id == "float16-sums")) {
    return "half an ulp of the output hides it";
  }
  return "";
}

void judge_case(const std::string& id, DType dtype, std::int64_t n, const Order& order,
                std::mt19937_64& random, Tally& tally) {
  const std::string where = concat(' ', name(dtype), " n ", n);
  const Kernel wrong{DType::float32, order, dtype, dtype, formula_for(id), id};
  Kernel right = wrong;
  right.wrong = "";
  const bool is_multiple = (id.starts_with("no-tail-") && std::stoll(id.substr(8)) >= n) ||
                           (id.starts_with("reads-on-") && std::stoll(id.substr(9)) > 2 * n);
  const int mean_of_100 = 2;
  const Tensor x = emulated::input(id == "one-pass" ? mean_of_100 : 0, 64, n, dtype, random);
  const emulated::Affine affine = emulated::affine(1, n, dtype, random);
  const Tensor y = emulated::run(wrong, x, affine.weight, affine.bias);
  const Tensor right_y = emulated::run(right, x, affine.weight, affine.bias);
  std::int64_t shown = 0;
  for (std::size_t i = 0; i < y.numbers.size(); ++i) {
    if (y.numbers[i] != right_y.numbers[i]) ++shown;
  }
  if (shown == 0 || is_multiple) return;  // equivalent here
  if (shown < kFewest) {
    tally.left_out += concat(where, ": ", shown, " elements show it;");
    return;
  }
  const lnorm::Check found = emulated::check(x, dtype, y, wrong, wrong.formula, affine);
  if (const std::string reason = untold(id, dtype, found); !reason.empty()) {
    tally.left_out += concat(where, ": ", reason, ';');
    return;
  }
  ++tally.told;
  if (is_answer(found, id)) {
    ++tally.named;
    return;
  }
  const auto& fits = found.diagnosis.explanations;
  tally.others += concat(
      where, ": ",
      found.diagnosis.explains_all() ? fits.front().id() : std::string(name(found.verdict)), ';');
}

int judge_wrong(const std::string& only) {
  static constexpr DType kOutputs[] = {DType::float16, DType::bfloat16, DType::float32};
  static constexpr std::int64_t kLengths[] = {5, 64, 200, 1025, 4096};
  static constexpr Order kOrders[] = {
      {Order::Kind::loop}, {Order::Kind::pairwise}, {Order::Kind::blocks, 32}};
  // One row of the table, and the ids that it has for a length.
  std::vector<std::pair<std::string, const lnorm::WrongKernel*>> rows{{"unwritten-rows", nullptr},
                                                                      {"unwritten-tail", nullptr}};
  for (const lnorm::WrongKernel& kernel : lnorm::wrong_kernels()) {
    const std::string id(kernel.id);
    const bool is_new =
        std::ranges::count(rows, id, [](const auto& row) { return row.first; }) == 0;
    if (kernel.is_forward() && is_new) rows.emplace_back(id, &kernel);
  }
  std::mt19937_64 random(7);
  int told = 0;
  int named = 0;
  for (const auto& [id, row] : rows) {
    if (!only.empty() && only != id) continue;
    Tally tally;
    for (const DType dtype : kOutputs) {
      if (id == "other-dtype" && dtype == DType::float32) continue;  // would be an int32
      for (const std::int64_t n : kLengths) {
        std::vector<std::string> ids{id};
        if (row != nullptr && row->letter() != 0) {
          ids.clear();
          for (const lnorm::NamedKernel& one : lnorm::named_kernels(lnorm::Quantity::y, {n}, {})) {
            if (one.row == row) ids.push_back(one.id);
          }
        }
        for (const std::string& one : ids) {
          for (const Order& order : kOrders) judge_case(one, dtype, n, order, random, tally);
        }
      }
    }
    told += tally.told;
    named += tally.named;
    std::cout << concat("| `", id, "` | ", tally.named, " / ", tally.told, " |", tally.others, " |",
                        tally.left_out, " |\n")
              << std::flush;
  }
  std::cout << concat(named, " of ", told, " that can be told are named\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "right") {
    return judge_right(words.size() > 1 ? std::stol(words[1]) : 3000,
                       words.size() > 2 ? std::stoul(words[2]) : 1);
  }
  if (!words.empty() && words[0] == "wrong") return judge_wrong(words.size() > 1 ? words[1] : "");
  std::cerr << "check_kernels right [COUNT] [SEED], or check_kernels wrong [ID]\n";
  return 2;
}
