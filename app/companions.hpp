#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "each_tensor.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/layout/mask.hpp"
#include "lnorm/pipeline/gradient_rows.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm::app {

// A tensor beside each input: a file or a member of one; for several inputs with {}, {1} in its name.
class Companion {
 public:
  // position: among the inputs that --from, --as and --offset tell of, if its role has one.
  Companion(const RoleRow& role, std::string word, const InputArguments& input,
            std::size_t position);

  // What there is for an input. What was found for the last one stays if it is the same. Throws Error.
  void find(const InputName& name);

  // Describes what was found. Its name begins with the option.
  const TensorInfo& info() const noexcept { return info_; }

  // Opens what was found; again, if it is for several inputs. Throws Error.
  std::unique_ptr<TensorSource> open();

  // Follows the last element of what was opened.
  void finish();

  // All numbers of what was found, once. plus_one: see AffineTerm.
  const AffineTerm& term(bool plus_one = false);
  bool has_term() const noexcept { return term_.has_value(); }
  const std::shared_ptr<const Mask>& mask();

  // Throws Error if several inputs want what can be read once: standard input.
  void check_several(const InputName& name) const;

  void set_word(std::string word) { word_ = std::move(word); }
  bool is_read_once() const noexcept;
  bool has_dtype(DType dtype) const { return latest_ && info_.dtype == dtype; }

 private:
  const RoleRow& role_;
  std::string option_;
  std::string word_;
  TensorFinder finder_;
  // What the word stood for the last time, and what was found.
  std::string latest_word_;
  std::optional<Selected> latest_;
  TensorInfo info_;
  bool was_opened_ = false;
  bool is_open_ = false;
  std::optional<AffineTerm> term_;
  std::shared_ptr<const Mask> mask_;
};

// What a backward pass reads beside x.
struct BackwardCompanions {
  std::unique_ptr<TensorSource> dy;
  std::unique_ptr<TensorSource> mean;
  std::unique_ptr<TensorSource> rstd;
  bool are_constants;

  GradSources with(TensorSource& x) const {
    return {x, *dy, mean.get(), rstd.get(), are_constants};
  }
};

// All tensors that the arguments name beside the inputs. Of an input they are found and checked first, then opened.
class Companions {
 public:
  using Roles = std::initializer_list<TensorRole>;
  static constexpr Roles kGiven{TensorRole::mean, TensorRole::rstd, TensorRole::variance};

  explicit Companions(const Arguments& arguments);

  bool has(TensorRole role) const noexcept { return at(role).has_value(); }
  Companion& operator[](TensorRole role) { return *at(role); }
  // Null if it is not given.
  const TensorInfo* info(TensorRole role) const { return has(role) ? &at(role)->info() : nullptr; }

  // These throw Error. Of several inputs it names the one that they do not fit, unless a message of shapes does.
  // find: there is one for x. check: and it has the shape and dtype of its role. plan: of x, for the shapes that follow
  // its axes.
  void find(Roles roles, const TensorInfo& x, const InputName& name, bool each_once = false);
  void check(Roles roles, const TensorInfo& x, const InputName& name, const Plan* plan = nullptr);
  void check_shapes(Roles roles, const TensorInfo& x, const Plan* plan = nullptr) const;
  // Weight and bias; and --as is for x or for one of what was found.
  void check_affine(const Plan& plan, const TensorInfo& x, const InputName& name);
  void check_as(const TensorInfo& x) const;

  // What is normalized, where results have a dtype: x, or its sum with the residual, of a slice that of the whole tensor.
  TensorInfo sum(const TensorInfo& x, DType out, const InputName& name);
  // Opens it with its elements.
  std::unique_ptr<TensorSource> add_residual(std::unique_ptr<TensorSource> x, DType out,
                                             int threads);
  // The residual with random access; null where it cannot be read again, or the sum is not rounded.
  std::unique_ptr<TensorSource> residual_again(const TensorInfo& x);

  // What multiplies a plan's rows, and what is added. Both as they were read, but in the order of the plan's layout.
  const Affine& affine(const Plan& plan);
  const AffineTerm& weight() const noexcept { return weight_; }
  const AffineTerm& bias() const noexcept { return bias_; }

  // Statistics of a plan's rows that are not computed; null if there are none. Throws Error for a variance below 0.
  bool are_given() const noexcept { return has(TensorRole::rstd) || has(TensorRole::variance); }
  const GivenStatistics* given(const Plan& plan);

  // After its check; null if there is none.
  std::shared_ptr<const Mask> mask(const TensorInfo& x, const InputName& name);
  // The same as the rows of x along axes have it.
  std::optional<RowMask> row_mask(const TensorInfo& x, const Axes& axes, const InputName& name);

  // The rows of x of one that was found, if it is given. at_random: with random access, by way of a temporary file if need be.
  std::unique_ptr<TensorSource> open(TensorRole role, const TensorInfo& x, bool at_random = false);

  // dy, and the mean and rstd or variance, that have been found.
  GradientInputs gradient_inputs(const TensorInfo& x, DType out, const InputName& name);
  BackwardCompanions open_backward(const TensorInfo& x, bool at_random = false);

  // Follows the last element of all that is open.
  void finish();

 private:
  std::optional<Companion>& at(TensorRole role) { return all_[static_cast<std::size_t>(role)]; }
  const std::optional<Companion>& at(TensorRole role) const {
    return all_[static_cast<std::size_t>(role)];
  }
  TensorRole spread() const {
    return has(TensorRole::rstd) ? TensorRole::rstd : TensorRole::variance;
  }
  std::optional<DType> rounded_to(DType out) const;
  void check_gradient_shape(const TensorInfo& info, const Plan& plan) const;

  const Arguments& arguments_;
  std::array<std::optional<Companion>, kRoles.size()> all_;
  std::optional<AffineLayout> layout_;  // of these
  AffineTerm weight_;
  AffineTerm bias_;
  Affine affine_;
  GivenStatistics given_;
};

// The source itself, or what it has in a temporary file.
std::unique_ptr<TensorSource> with_random_access(std::unique_ptr<TensorSource> source);

// Throws Error for standard input, or a FIFO, that is named more than once, since a second reader would wait for ever; and for what is
// no file, of which several ranks could not read parts.
void check_streams(const Arguments& arguments);

// Does so, then opens the inputs.
Inputs open_inputs(const Arguments& arguments);

}  // namespace lnorm::app
