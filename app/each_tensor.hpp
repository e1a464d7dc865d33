#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "arguments.hpp"
#include "chosen_rows.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/work_distribution.hpp"
#include "outputs.hpp"

// The loop over tensors, of every command: plan all, open the outputs, work on one after another, commit.
namespace lnorm::app {

// A tensor among those that a command works on.
struct InputName {
  std::string name;   // in its set
  std::string title;  // for a report (Selected)
  Captures captures;
  bool several = false;  // there are others
};

struct Work {
  // Decides, before an element is read, what becomes of a tensor: returns what each output gets of it. Throws
  // Error if it cannot be done.
  std::function<std::vector<TensorInfo>(const TensorInfo& x, const InputName& name)> plan;
  // Does it, with these ranks. The outputs have begun the tensor.
  std::function<void(OpenedTensor& input, const InputName& name, Outputs& outputs, Ranks& ranks)>
      run;
  bool keep_going = false;  // a tensor that cannot be done is told of, and the others are done
  ChooseRows rows = {};     // plan and run see these as the tensor
  Ranks* ranks = &sole_rank();
  Deal deal = Deal::together;  // if the outputs let them
};

using Inputs = std::variant<Selection, TensorLines>;

// Returns the exit status. Throws Error.
int for_each_tensor(const Inputs& inputs, Outputs& outputs, const Work& work);

// Throws Error, which says how to name one or all, for a file of several tensors of which none is named.
void check_named(const Inputs& inputs);

// What an .npy has in the place of a dtype that --as tells.
std::string_view as_code(DType as);

// Throws Error if --as is given, but x has another dtype.
void check_as(std::optional<DType> as, const TensorInfo& x);

// Throws Error if rows of no elements, which cost the input nothing, are too many to say something of each. what: is
// said of them, for the message.
void check_empty_rows(const Plan& plan, const std::string& name, std::string_view what);

}  // namespace lnorm::app
