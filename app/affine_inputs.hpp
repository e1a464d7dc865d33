#pragma once

#include <optional>
#include <string>

#include "arguments.hpp"
#include "each_tensor.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm::app {

// Throws Error if standard input is named for more than one of the tensors.
void check_inputs(const InputArguments& input, const NormalizationArguments& arguments);

// --weight or --bias: a file, a member of one, JSON, or a number; for several inputs with {}, {1} in its name.
class AffineInput {
 public:
  // word: nothing if it is not given. as: for a file whose dtype it can be. plus_one: as of AffineTerm.
  AffineInput(std::string option, std::optional<std::string> word, std::optional<DType> as,
              bool plus_one)
      : option_(std::move(option)),
        word_(std::move(word)),
        plus_one_(plus_one),
        finder_({.from = {}, .as = as}) {}

  // Throws Error unless there is one for this input, of the plan's normalized shape.
  void check(const Plan& plan, const InputName& name);

  // Whether what was checked last is to be read: the first time, and where it is not what was read last.
  bool is_unread() const noexcept { return word_ && !is_read_; }
  AffineTerm read();

  bool has_dtype(DType dtype) const { return latest_ && info_.dtype == dtype; }

 private:
  void find(const InputName& name);

  std::string option_;
  std::optional<std::string> word_;
  bool plus_one_;
  TensorFinder finder_;
  // What the word stood for the last time, and what was found.
  std::string latest_word_;
  std::optional<Selected> latest_;
  TensorInfo info_;
  bool is_read_ = false;
};

// Both of them.
class AffineInputs {
 public:
  // scale: of the results.
  AffineInputs(const NormalizationArguments& arguments, std::optional<DType> as, double scale = 1);

  // Throws Error unless they are there for this input, of the plan's normalized shape; or if --as is given, but
  // is neither for the input nor for them.
  void check(const Plan& plan, const TensorInfo& x, const InputName& name);

  // What multiplies a plan's rows, and what is added, after the same checks. What was read for the last input is
  // not read again if it is the same.
  const Affine& of(const Plan& plan, const TensorInfo& x, const InputName& name);

 private:
  std::optional<DType> as_;
  AffineInput weight_;
  AffineInput bias_;
  Affine affine_;
};

}  // namespace lnorm::app
