#pragma once

#include <initializer_list>
#include <map>
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
#include "lnorm/pipeline/summed_source.hpp"

namespace lnorm::app {

class Companion;  // companions.cpp

// Of a plan whose rows go past observers.
inline constexpr RowNeeds kWholeRows{.whole = true, .ordered = true};

// All tensors that the arguments name beside the inputs. Of an input they are found and checked first, then opened.
class Companions {
 public:
  using Roles = std::initializer_list<TensorRole>;
  static constexpr Roles kGiven{TensorRole::mean, TensorRole::rstd, TensorRole::variance};

  // output: its word, if there is one.
  explicit Companions(const Arguments& arguments, const std::string& output = "");
  ~Companions();

  bool has(TensorRole role) const { return all_.contains(role); }
  // What was found; null if it is not given.
  const TensorInfo* info(TensorRole role) const;

  // These throw Error. Of several inputs it names the one that they do not fit, unless a message of shapes does.
  // find: there is one for x. check: and it has the shape and dtype of its role. plan: of x, for the shapes that follow
  // its axes.
  void find(Roles roles, const TensorInfo& x, const InputName& name, bool each_once = false);
  void check(Roles roles, const TensorInfo& x, const InputName& name, const Plan* plan = nullptr);
  void check_shapes(Roles roles, const TensorInfo& x, const Plan* plan = nullptr) const;
  // Weight and bias; and --as is for x or for one of what was found.
  void check_affine(const Plan& plan, const TensorInfo& x, const InputName& name);

  // The plan of x, or of its sum with the residual. out: the dtype of results, if no option says it.
  Plan plan(const TensorInfo& x, const InputName& name, const RowNeeds& needs = kWholeRows,
            std::optional<DType> out = {});
  // Opens that sum.
  std::unique_ptr<TensorSource> add_residual(std::unique_ptr<TensorSource> x, DType out,
                                             int threads, SumRounding rounding = SumRounding::once);
  // Whether a kernel that adds in float32 may have another sum, and all tensors can be read again.
  bool may_have_other_sum(const TensorInfo& x, DType out) const;
  // The residual with random access; null where it cannot be read again, or the sum is not rounded.
  TensorSource* residual_again(const TensorInfo& x);

  // What multiplies a plan's rows, and what is added. Both as they were read, but in the order of the plan's layout.
  const Affine& affine(const Plan& plan);
  const AffineTerm& weight() const noexcept { return weight_; }
  const AffineTerm& bias() const noexcept { return bias_; }

  // Scales of quantized results that are not computed, in the order of the plan's layout; null if there are none. Throws Error unless
  // they are positive and finite.
  const AffineTerm* given_scale(const Plan& plan);

  // Statistics of a plan's rows that are not computed; null if there are none. Throws Error for a variance below 0.
  bool are_given() const { return has(TensorRole::rstd) || has(TensorRole::variance); }
  const GivenStatistics* given(const Plan& plan);

  // After its check; null if there is none.
  std::shared_ptr<const Mask> mask(const TensorInfo& x, const InputName& name);
  // The same as the rows of x along axes have it.
  std::optional<RowMask> row_mask(const TensorInfo& x, const Axes& axes, const InputName& name);

  // Opens the rows of x of one that was found, until finish; null if it is not given. at_random: with random access, by way of a
  // temporary file if need be.
  TensorSource* open(TensorRole role, const TensorInfo& x, bool at_random = false);

  // x, or the sum, with dy, mean and rstd or variance, which are found. each_once: several inputs cannot share a pipe.
  GradientInputs gradient_inputs(const TensorInfo& x, const InputName& name, bool each_once);
  // Opens what goes beside x, whose source may be a sum.
  GradSources open_backward(TensorSource& source, const TensorInfo& x, bool at_random = false);

  // Follows the last element of all that is open.
  void finish();

 private:
  TensorInfo sum(const TensorInfo& x, DType out, const InputName& name);
  AffineTerm term(TensorRole role);
  TensorRole spread() const {
    return has(TensorRole::rstd) ? TensorRole::rstd : TensorRole::variance;
  }
  std::optional<DType> rounded_to(DType out) const;
  void check_scale_shape(const TensorInfo& info, const Plan& plan) const;
  void check_gradient_shape(const TensorInfo& info, const Plan& plan) const;

  const Arguments& arguments_;
  std::map<TensorRole, std::unique_ptr<Companion>> all_;
  std::optional<AffineLayout> layout_;  // of these, if they are of what was found last
  AffineTerm weight_;
  AffineTerm bias_;
  AffineTerm given_scale_;
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
