#include "companions.hpp"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/pattern.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_number.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/os.hpp"
#include "lnorm/layout/reorder.hpp"
#include "lnorm/layout/row_slice.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "options.hpp"

namespace lnorm::app {

namespace {

// What may stand in the place of a file's name: a number, or JSON. Null if it is neither. Throws Error.
std::unique_ptr<TensorSource> parse_literal(const std::string& option, const std::string& text) {
  const std::string_view content = trimmed_json(text);
  double number = 0;
  if (parse_real(content, number)) {
    if (std::isinf(number)) {
      throw Error(concat(option, ": '", content, "' is not in the range of float64"));
    }
    char buffer[kJsonNumberRoom];
    return parse_json(option, std::string(json_number(number, buffer)));
  }
  const std::string word = lower_case(content);
  if (word == "nan") return parse_json(option, "NaN");
  if (word == "inf" || word == "+inf" || word == "infinity") return parse_json(option, "Infinity");
  if (word == "-inf" || word == "-infinity") return parse_json(option, "-Infinity");
  if (names_member_of_literal(content)) return nullptr;
  try {
    return is_json_literal(text) || content == "null" ? parse_json(option, text) : nullptr;
  } catch (const Error& error) {
    throw Error(error.what());  // hints are for files
  }
}

// Calls check. Of many tensors it is this one that companions do not fit: what is thrown names it then.
template <class Check>
void check_beside(const TensorInfo& x, const InputName& name, Check check) {
  try {
    check();
  } catch (const SystemError&) {
    throw;
  } catch (const Error& error) {
    if (!name.several) throw;
    throw Error(concat(printable(x.name), ": ", error.what()), error);
  }
}

// The axes of a tensor beside the whole one: a number for each row may lack the normalized ones.
Axes axes_beside(const RowSlice& slice, const TensorInfo& other) {
  return other.shape.size() == slice.shape.size() ? slice.axes : Axes{};
}

TensorInfo info_beside(const RowSlice& slice, const TensorInfo& other) {
  return slice_info(other, axes_beside(slice, other), slice.first, slice.count);
}

// Those rows of a tensor that goes beside x, element by element or with a number for each row; all of it where x is no
// slice. row_numbers_beside throws Error unless it has that shape.
TensorInfo elements_beside(const TensorInfo& x, const TensorInfo& other) {
  if (!x.slice && !x.split) return other;
  const TensorInfo seen = grouped_as(other, x);
  return x.slice ? info_beside(*x.slice, seen) : seen;
}

void check_row_numbers(const TensorInfo& numbers, const TensorInfo& x, const NormalizedAxes& axes) {
  check_saved(numbers, whole_of(x), x.slice ? x.slice->axes : resolve_axes(x, axes));
}

TensorInfo row_numbers_beside(const TensorInfo& x, const TensorInfo& other) {
  if (!x.slice || other.shape.empty()) return other;
  check_saved(other, whole_of(x), x.slice->axes);
  return info_beside(*x.slice, other);
}

std::unique_ptr<TensorSource> rows_beside(const TensorInfo& x,
                                          std::unique_ptr<TensorSource> other) {
  if (other->info().shape.empty()) return other;
  if (x.split) other = grouped_as(std::move(other), x);
  if (!x.slice) return other;
  const Axes axes = axes_beside(*x.slice, other->info());
  return rows_of(std::move(other), axes, x.slice->first, x.slice->count);
}

// No layer rounds to a float8 on its way.
void check_rounding_dtype(DType out) {
  if (!is_float8(out)) return;
  throw Error(concat("--round is to the output dtype, found ", name(out), ", expected ",
                     dtype_list(is_larger_float)));
}

}  // namespace

// A tensor beside each input: a file or a member of one; for several inputs with {}, {1} in its name.
class Companion {
 public:
  // position: among the inputs that --from, --as and --offset tell of, if its role has one.
  Companion(const TensorRoleRow& role, std::string word, const Arguments& arguments,
            std::size_t position)
      : role_(role),
        option_(role.option),
        word_(std::move(word)),
        stands_for_names_(has_placeholder(word_) && !os::status(word_)),
        finder_(role.naming == Naming::position
                    ? TensorFinder(reading(role, word_, arguments, position), Role::input)
                    : TensorFinder({.from = {},
                                    .as = arguments.input.options.as,
                                    .files = arguments.input.options.files})) {}

  // What there is for an input. Returns whether it is another one than the last time. Throws Error.
  bool find(const InputName& name) {
    std::string word = word_;
    if (stands_for_names_) word = substitute(word, name.name, name.captures, option_);
    if (word.empty()) throw Error(concat(option_, ": '' is not the name of a file"));
    if (latest_ && word == latest_word_) return false;
    latest_.reset();
    was_opened_ = false;
    term_.reset();
    mask_.reset();
    std::unique_ptr<TensorSource> literal;
    // What stands for names is a tensor's, and no number.
    if (role_.naming == Naming::literal && !stands_for_names_ && !os::status(word))
      literal = parse_literal(option_, word);
    if (literal) {
      latest_ = Selected{set_of(std::move(literal), ""), 0, Format::json, "", "", {}};
    } else {
      try {
        latest_ = finder_.find(word);
      } catch (const MissingTensor& error) {
        // A name in place of {} would be that of every input.
        const std::string message = concat(option_, ' ', error.what());
        std::string partner = word_;
        const std::size_t star = partner.find('*');
        if (!name.captures.empty() && star != partner.npos) {
          throw Error(message, concat("what the * of INPUT stands for is {1} here: ",
                                      shell_word(partner.replace(star, 1, "{1}"))));
        }
        throw has_placeholder(word_) ? Error(message) : Error(message, error);
      } catch (const SystemError& error) {
        throw SystemError(concat(option_, ' ', error.what()), error);
      } catch (const SeveralTensors& error) {
        const std::string message = concat(option_, ' ', error.what());
        if (!name.several) throw Error(message, error);
        throw Error(message, concat("one for each: ", shell_word(word + ":{}")));
      } catch (const Error& error) {
        throw Error(concat(option_, ' ', error.what()), error);
      }
    }
    latest_word_ = word;
    info_ = latest_->set->info(latest_->index);
    if (info_.name != option_) info_.name = concat(option_, ' ', word);  // not of a literal
    return true;
  }

  // Describes what was found. Its name begins with the option.
  const TensorInfo& info() const noexcept { return info_; }

  // Opens what was found; again, if it is for several inputs. keep: until finish. Throws Error.
  std::unique_ptr<TensorSource> open() {
    // A file of one tensor gives it once.
    if (std::exchange(was_opened_, true) && latest_->set->is_pipe()) {
      latest_ = finder_.find(latest_word_);
    }
    is_open_ = true;
    return latest_->set->open(latest_->index);
  }

  TensorSource* keep(std::unique_ptr<TensorSource> source) {
    kept_ = std::move(source);
    return kept_.get();
  }

  // Follows the last element of what was opened.
  void finish() {
    // The rest of a pipe is for the next one, if the word stands for several.
    if (std::exchange(is_open_, false) && !has_placeholder(word_)) latest_->set->finish();
    kept_.reset();
  }

  // All numbers of what was found, once. plus_one: see AffineTerm.
  const AffineTerm& term(bool plus_one = false) {
    if (!term_) {
      const auto source = gathered(open());
      term_.emplace(source->info(), read_all(*source), plus_one);
      finish();
    }
    return *term_;
  }

  const std::shared_ptr<const Mask>& mask() {
    if (!mask_) {
      const auto source = gathered(open());
      mask_ = std::make_shared<const Mask>(*source);
      source->finish();
      finish();
    }
    return mask_;
  }

  // Throws Error if several inputs want what can be read once: standard input.
  void check_several(const InputName& name) const {
    if (!name.several || !is_read_once()) return;
    throw Error(concat(info_.name, " can be read for one input alone, found several"));
  }

  bool is_read_once() const noexcept { return is_standard_input(word_) && !has_placeholder(word_); }

  bool has_dtype(DType dtype) const { return latest_ && info_.dtype == dtype; }

 private:
  // An .npy of bytes does not tell its dtype. That of scales is what --scale-dtype says.
  static ReadOptions reading(const TensorRoleRow& role, std::string_view word,
                             const Arguments& arguments, std::size_t position) {
    ReadOptions options = arguments.input.reading(position);
    const bool is_of_bytes = role.role == TensorRole::actual_scale && word.ends_with(".npy");
    const DType dtype = arguments.quantization.scale_dtype;
    if (is_of_bytes && !options.as && dtype != DType::float32) options.as = dtype;
    return options;
  }

  const TensorRoleRow& role_;
  std::string option_;
  std::string word_;
  bool stands_for_names_;  // {} in it does, unless a file is called so
  TensorFinder finder_;
  // What the word stood for the last time, and what was found.
  std::string latest_word_;
  std::optional<Selected> latest_;
  TensorInfo info_;
  bool was_opened_ = false;
  bool is_open_ = false;
  std::unique_ptr<TensorSource> kept_;
  std::optional<AffineTerm> term_;
  std::shared_ptr<const Mask> mask_;
};

Companions::Companions(const Arguments& arguments, const std::string& output)
    : arguments_(arguments) {
  std::size_t position = 0;
  for (const auto& [role, word] : arguments.tensors) {
    const TensorRoleRow& row = role_row(role);
    if (row.naming == Naming::position) ++position;
    all_.emplace(role, std::make_unique<Companion>(row, role == TensorRole::output ? output : word,
                                                   arguments, position));
  }
}

Companions::~Companions() = default;

const TensorInfo* Companions::info(TensorRole role) const {
  return has(role) ? &all_.at(role)->info() : nullptr;
}

void Companions::find(Roles roles, const TensorInfo& x, const InputName& name, bool each_once) {
  check_beside(x, name, [&] {
    for (const TensorRole role : roles) {
      if (!has(role)) continue;
      if (all_.at(role)->find(name)) layout_.reset();
      if (each_once) all_.at(role)->check_several(name);
    }
  });
}

void Companions::check(Roles roles, const TensorInfo& x, const InputName& name, const Plan* plan) {
  for (const TensorRole role : roles) {
    find({role}, x, name);
    check_beside(x, name, [&] { check_shapes({role}, x, plan); });
  }
}

void Companions::check_shapes(Roles roles, const TensorInfo& x, const Plan* plan) const {
  for (const TensorRole role : roles) {
    if (!has(role)) continue;
    const TensorRoleRow& row = role_row(role);
    const TensorInfo& found = *info(role);
    const bool is_quantized = arguments_.quantization && found.dtype == DType::int8;
    if (row.dtype == DTypeRule::floating && !is_result(found.dtype) && !is_quantized) {
      throw Error(concat(printable(found.name), ": is ", name(found.dtype), ", expected ",
                         dtype_list(is_result), ": nothing says the scale of integers"),
                  role == TensorRole::output && found.dtype == DType::int8 ? "--quantize row" : "");
    }
    switch (row.shape) {
      case ShapeRule::sum:
        break;
      case ShapeRule::input:
        check_same_shape(elements_beside(x, found), x);
        break;
      case ShapeRule::broadcast:
        check_mask(found, x);
        break;
      case ShapeRule::one_or_affine:
        if (element_count(found.shape) == 1) break;
        [[fallthrough]];
      case ShapeRule::affine:
        assert(plan != nullptr);
        check_affine_shape(found, *plan);
        break;
      case ShapeRule::gradient:
        assert(plan != nullptr);
        check_gradient_shape(found, *plan);
        break;
      case ShapeRule::scales:
        assert(plan != nullptr);
        check_scale_shape(found, *plan);
        break;
      case ShapeRule::rows:
        if (row.naming == Naming::literal && found.shape.empty()) break;
        check_row_numbers(found, x, arguments_.normalization.options.axes);
        break;
    }
  }
}

void Companions::check_scale_shape(const TensorInfo& info, const Plan& plan) const {
  const bool is_one = plan.shared_scales == 1;
  if (is_one ? element_count(info.shape) == 1
             : info.shape == plan.scale_shape(true) || info.shape == plan.scale_shape(false)) {
    return;
  }
  const bool is_transposed = arguments_.quantization.is_transposed;
  const Shape expected = plan.scale_shape(true);
  if (is_transposed && element_count(info.shape) == element_count(expected)) return;
  throw Error(concat(printable(info.name), " has shape ", to_string(info.shape), ", expected ",
                     to_string(expected), is_transposed ? ", the groups first" : ""));
}

void Companions::check_gradient_shape(const TensorInfo& info, const Plan& plan) const {
  const TensorInfo* const weight = this->info(TensorRole::weight);
  const bool is_number = weight != nullptr && weight->shape.empty();
  const Shape expected = is_number ? Shape() : plan.affine_shape();
  if (info.shape == expected) return;
  throw Error(concat(printable(info.name), " has shape ", to_string(info.shape), ", expected ",
                     to_string(expected),
                     is_number         ? ", that of the weight"
                     : plan.has_groups ? ", that of the channels"
                     : arguments_.normalization.options.affine_axes
                         ? ", that of the affine axes"
                         : ", that of the normalized axes"));
}

void Companions::check_affine(const Plan& plan, const TensorInfo& x, const InputName& name) {
  const Rounding& rounding = arguments_.normalization.options.rounding;
  if (rounding.xhat || rounding.product) check_rounding_dtype(plan.rounding);
  check({TensorRole::weight, TensorRole::bias, TensorRole::given_scale}, x, name, &plan);
  const std::optional<DType> as = arguments_.input.options.as;
  const bool is_used = as && std::any_of(all_.begin(), all_.end(), [&](const auto& companion) {
                         return companion.second->has_dtype(*as);
                       });
  if (!is_used) check_as(as, x);
}

std::optional<DType> Companions::rounded_to(DType out) const {
  return arguments_.normalization.round_sum ? std::optional(out) : std::nullopt;
}

TensorInfo Companions::sum(const TensorInfo& x, DType out, const InputName& name) {
  if (!has(TensorRole::residual)) return x;
  if (rounded_to(out)) check_rounding_dtype(out);
  find({TensorRole::residual}, x, name);
  all_.at(TensorRole::residual)->check_several(name);
  return sum_info(x, elements_beside(x, *info(TensorRole::residual)), rounded_to(out));
}

Plan Companions::plan(const TensorInfo& x, const InputName& name, const RowNeeds& needs,
                      std::optional<DType> out) {
  const DType dtype = out.value_or(output_dtype(x.dtype, arguments_.output.dtype));
  const DType rounding = arguments_.quantization ? output_dtype(x.dtype, {}) : dtype;
  Plan plan = make_plan(sum(x, rounding, name), arguments_.normalization.options, dtype, needs);
  plan.rounding = rounding;
  return plan;
}

std::unique_ptr<TensorSource> Companions::add_residual(std::unique_ptr<TensorSource> x, DType out,
                                                       int threads, SumRounding rounding) {
  if (!has(TensorRole::residual)) return x;
  auto residual = rows_beside(x->info(), all_.at(TensorRole::residual)->open());
  return summed(std::move(x), std::move(residual), rounded_to(out), threads, rounding);
}

bool Companions::may_have_other_sum(const TensorInfo& x, DType out) const {
  return rounded_to(out) && may_round_twice(x.dtype, info(TensorRole::residual)->dtype, out) &&
         std::ranges::none_of(all_, [](const auto& one) { return one.second->is_read_once(); });
}

TensorSource* Companions::residual_again(const TensorInfo& x) {
  if (!has(TensorRole::residual) || !arguments_.normalization.round_sum ||
      all_.at(TensorRole::residual)->is_read_once()) {
    return nullptr;
  }
  TensorSource* const residual = open(TensorRole::residual, x);
  return residual->has_random_access() ? residual : nullptr;
}

const Affine& Companions::affine(const Plan& plan) {
  if (layout_ == plan.affine) return affine_;
  layout_ = plan.affine;
  const AffineTerm weight = term(TensorRole::weight);
  const AffineTerm bias = term(TensorRole::bias);
  weight_ = weight.laid_out(*layout_);
  bias_ = bias.laid_out(*layout_);
  const double scale = arguments_.output.scale.value_or(1);
  const Rounding& rounding = arguments_.normalization.options.rounding;
  affine_ = scale != 1 ? Affine(weight_, bias_, scale) : Affine(weight_, bias_, rounding);
  if (!weight.is_uniform() || !bias.is_uniform()) affine_.set_layout(*layout_);
  return affine_;
}

AffineTerm Companions::term(TensorRole role) {
  const bool plus_one =
      role == TensorRole::weight && arguments_.normalization.options.zero_centered_weight;
  return has(role) ? all_.at(role)->term(plus_one) : AffineTerm();
}

const AffineTerm* Companions::given_scale(const Plan& plan) {
  if (!has(TensorRole::given_scale)) return nullptr;
  const std::vector<double> numbers = term(TensorRole::given_scale).numbers();
  for (const double number : numbers) {
    if (number > 0 && std::isfinite(number)) continue;
    throw Error(concat(printable(info(TensorRole::given_scale)->name), ": is ", number,
                       ", expected a scale, positive and finite"));
  }
  given_scale_ = term(TensorRole::given_scale).laid_out(plan.affine);
  return &given_scale_;
}

const GivenStatistics* Companions::given(const Plan& plan) {
  if (!are_given()) return nullptr;
  given_ = given_statistics(term(TensorRole::mean), term(spread()), *info(spread()),
                            has(TensorRole::rstd), plan);
  return &given_;
}

std::shared_ptr<const Mask> Companions::mask(const TensorInfo& x, const InputName& name) {
  check({TensorRole::mask}, x, name);
  return has(TensorRole::mask) ? all_.at(TensorRole::mask)->mask() : nullptr;
}

std::optional<RowMask> Companions::row_mask(const TensorInfo& x, const Axes& axes,
                                            const InputName& name) {
  auto found = mask(x, name);
  return found ? std::optional<RowMask>(std::in_place, std::move(found), x, axes) : std::nullopt;
}

TensorSource* Companions::open(TensorRole role, const TensorInfo& x, bool at_random) {
  if (!has(role)) return nullptr;
  auto source = all_.at(role)->open();
  if (at_random) source = with_random_access(std::move(source));
  const ShapeRule shape = role_row(role).shape;
  if (shape != ShapeRule::gradient && shape != ShapeRule::scales) {
    source = rows_beside(x, std::move(source));
  }
  return all_.at(role)->keep(std::move(source));
}

GradientInputs Companions::gradient_inputs(const TensorInfo& x, const InputName& name,
                                           bool each_once) {
  find({TensorRole::dy, TensorRole::mean, TensorRole::rstd, TensorRole::variance}, x, name,
       each_once);
  GradientInputs inputs{sum(x, output_dtype(x.dtype, arguments_.output.dtype), name),
                        elements_beside(x, *info(TensorRole::dy))};
  if (has(TensorRole::mean)) inputs.mean = row_numbers_beside(x, *info(TensorRole::mean));
  if (are_given()) inputs.rstd = row_numbers_beside(x, *info(spread()));
  return inputs;
}

GradSources Companions::open_backward(TensorSource& source, const TensorInfo& x, bool at_random) {
  return {source, *open(TensorRole::dy, x, at_random), open(TensorRole::mean, x, at_random),
          open(spread(), x, at_random), has(TensorRole::variance)};
}

void Companions::finish() {
  for (auto& [role, companion] : all_) companion->finish();
}

std::unique_ptr<TensorSource> with_random_access(std::unique_ptr<TensorSource> source) {
  return source->has_random_access() ? std::move(source) : spooled(*source);
}

void check_streams(const Arguments& arguments) {
  std::vector<std::string> names = arguments.input.names;
  for (const auto& [role, word] : arguments.tensors) names.push_back(word);
  std::set<std::pair<dev_t, ino_t>> pipes;
  bool has_standard_input = false;
  for (const std::string& name : names) {
    if (is_standard_input(name) && std::exchange(has_standard_input, true)) {
      throw Error("standard input is named for two inputs, expected one");
    }
    auto found = is_standard_input(name)
                     ? os::status(os::FileDescriptor(STDIN_FILENO, false), "standard input")
                     : os::status(name);
    if (arguments.work.ranks->count() > 1 &&
        (is_standard_input(name) ||
         (found && !S_ISREG(found->st_mode) && !S_ISDIR(found->st_mode)))) {
      throw Error(concat(name == "-" ? "standard input" : printable(name),
                         ": ranks read at positions, expected a file"));
    }
    if (!found) found = os::status(name.substr(0, name.rfind(':')));
    if (found && S_ISFIFO(found->st_mode) && !pipes.emplace(found->st_dev, found->st_ino).second) {
      throw Error(
          concat(printable(name), ": is a pipe that is named for two inputs, expected one"));
    }
  }
}

Inputs open_inputs(const Arguments& arguments) {
  check_streams(arguments);
  return lnorm::open_inputs(arguments.input.names, arguments.input.options);
}

}  // namespace lnorm::app
