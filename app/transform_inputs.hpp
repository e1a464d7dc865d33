#pragma once

#include <functional>

#include "arguments.hpp"
#include "each_tensor.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm::app {

using MakePlan = std::function<Plan(const TensorInfo& x)>;

// Writes what becomes of the rows of each input to -o. Returns the exit status.
int transform_inputs(const Inputs& inputs, const Arguments& arguments, const MakePlan& make_plan,
                     const Transform& transform);

}  // namespace lnorm::app
