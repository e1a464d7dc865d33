#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "arguments.hpp"
#include "array.hpp"
#include "check_given.hpp"
#include "commands.hpp"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/interruption.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/os.hpp"
#include "lnorm/kernel/softmax.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/grad.hpp"
#include "lnorm/pipeline/inputs.hpp"
#include "lnorm/pipeline/long_rows.hpp"
#include "lnorm/pipeline/row_writer.hpp"
#include "lnorm/pipeline/run.hpp"
#include "lnorm/pipeline/summed_source.hpp"
#include "lnorm/report/style.hpp"
#include "options.hpp"
#include "print_error.hpp"
#include "program.hpp"

// lnorm._lnorm: what the Python files of the package do not do themselves. They have the documentation.
namespace lnorm::python {

namespace {

// An option of the program by its name in Python: "--eps-on" is eps_on.
std::string python_words(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_option = text.compare(i, 2, "--") == 0 && i + 2 < text.size() &&
                           std::isalpha(static_cast<unsigned char>(text[i + 2])) != 0;
    if (!is_option) {
      result += text[i];
      continue;
    }
    std::string name;
    for (i += 2; i < text.size() &&
                 (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '-');
         ++i) {
      name += text[i] == '-' ? '_' : text[i];
    }
    // The tensor that the option names is called as the option is.
    if (text.compare(i, name.size() + 1, ' ' + name) == 0) i += name.size() + 1;
    result += name;
    --i;
  }
  return result;
}

std::string message_of(const Error& error) {
  const std::string hint = app::hint_of(error);
  const bool is_of_program = hint.empty() || hint.find("lnorm ") != hint.npos;
  return python_words(
      concat(error.what(), is_of_program ? "" : "\nhint: ", is_of_program ? "" : hint));
}

std::vector<std::int64_t> integers(const py::object& object) {
  if (PyIndex_Check(object.ptr()) != 0) return {object.cast<std::int64_t>()};
  return object.cast<std::vector<std::int64_t>>();
}

// What all norms take beside x, as the Python files hand it on.
struct Given {
  LayerNormOptions options;
  bool round_sum = false;
  std::optional<DType> dtype;
  int threads = 0;
};

NormalizedAxes axes_of(const py::object& axes, const py::object& normalized_shape,
                       const std::optional<std::int64_t>& groups, std::int64_t channel_axis) {
  std::vector<std::string> found;
  if (!axes.is_none()) found.emplace_back("axes");
  if (!normalized_shape.is_none()) found.emplace_back("normalized_shape");
  if (groups) found.emplace_back("groups");
  if (found.size() > 1) {
    throw Error(concat("found both ", found[0], " and ", found[1], ", expected one of them"));
  }
  if (!axes.is_none()) return AxisList{integers(axes)};
  if (!normalized_shape.is_none()) return NormalizedShape{integers(normalized_shape)};
  if (groups) return Groups{*groups, channel_axis};
  return FirstAxis{};
}

std::optional<DType> dtype_of(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  const auto dtype = parse_dtype(*name);
  if (dtype && is_floating(*dtype)) return dtype;
  throw Error(concat("dtype: '", printable(*name), "' is not ", dtype_list(is_floating)));
}

Given given(const py::object& axes, const py::object& normalized_shape,
            const std::optional<std::int64_t>& groups, std::int64_t channel_axis,
            const py::object& affine_axes, double eps, std::string_view eps_on, std::int64_t ddof,
            bool rms, bool zero_centered_weight, const std::vector<std::string>& round,
            const std::optional<std::string>& dtype, int threads) {
  Given result;
  result.options.axes = axes_of(axes, normalized_shape, groups, channel_axis);
  if (!affine_axes.is_none()) {
    if (groups) throw Error("affine_axes has no effect beside groups");
    result.options.affine_axes = AxisList{integers(affine_axes)};
  }
  if (eps_on != "variance" && eps_on != "std") {
    throw Error(concat("eps_on: '", printable(eps_on), "' is not variance or std"));
  }
  result.options.formula = {eps, eps_on == "std" ? EpsOn::std : EpsOn::variance, ddof, rms};
  result.options.zero_centered_weight = zero_centered_weight;
  for (const std::string& step : round) {
    bool& rounds =
        step == "sum"    ? result.round_sum
        : step == "xhat" ? result.options.rounding.xhat
        : step == "product"
            ? result.options.rounding.product
            : throw Error(concat("round: '", printable(step), "' is not sum, xhat or product"));
    rounds = true;
  }
  result.dtype = dtype_of(dtype);
  result.threads = threads;
  return result;
}

std::optional<Array> optional_array(const py::object& object, const char* name) {
  if (object.is_none()) return std::nullopt;
  return array_of(object, name);
}

// A tensor whose rows are normalized. Groups split an axis, which only an array in C order has twice: others are read element by
// element.
Array tensor_of(const py::object& object, const char* name, const Given& given) {
  Array array = array_of(object, name);
  if (std::holds_alternative<Groups>(given.options.axes)) array.memory.info.order = MemoryOrder::c;
  return array;
}
std::optional<Array> optional_tensor(const py::object& object, const char* name,
                                     const Given& given) {
  if (object.is_none()) return std::nullopt;
  return tensor_of(object, name, given);
}

// A rounding of what is not there does nothing.
void check_rounding(const Given& given, bool has_weight, bool has_bias, bool has_residual,
                    DType out) {
  const Rounding& rounding = given.options.rounding;
  const auto check = [&](const char* step, bool rounds, bool has_effect, const char* needed) {
    if (!rounds) return;
    if (!has_effect) throw Error(concat("round ", step, " has no effect without ", needed));
    if (!is_float8(out)) return;
    throw Error(concat("round is to the output dtype, found ", name(out), ", expected ",
                       dtype_list(is_larger_float)));
  };
  check("sum", given.round_sum, has_residual, "residual");
  check("xhat", rounding.xhat, has_weight || has_bias, "weight or bias");
  check("product", rounding.product, has_weight && has_bias, "weight and bias");
}

// In C order: these are small.
AffineTerm term_of(const std::optional<Array>& array, bool plus_one) {
  if (!array) return {};
  Memory memory = array->memory;
  memory.info.order = MemoryOrder::c;
  MemorySource source(memory);
  return {memory.info, read_all(source), plus_one};
}

// mean, and rstd or variance, of which one may be there.
struct GivenArrays {
  GivenArrays(const py::object& mean_object, const py::object& rstd_object,
              const py::object& variance_object, bool rms)
      : mean(optional_array(mean_object, "mean")),
        is_rstd(!rstd_object.is_none()),
        spread(is_rstd ? optional_array(rstd_object, "rstd")
                       : optional_array(variance_object, "variance")) {
    if (is_rstd && !variance_object.is_none()) {
      throw Error("found both rstd and variance, expected one of them");
    }
    if (mean && rms) throw Error("mean has no effect beside rms");
    if (mean && !spread) throw Error("mean has no effect without rstd or variance");
    if (spread && !mean && !rms) {
      throw Error(
          concat(is_rstd ? "rstd" : "variance", " needs mean, but for rms, which has none"));
    }
  }

  GivenStatistics statistics(const TensorInfo& x, const NormalizedAxes& axes,
                             const Plan& plan) const {
    const TensorInfo rows = grouped(x, axes);
    for (const auto* const one : {&mean, &spread}) {
      if (!*one || (*one)->memory.info.shape.empty()) continue;
      check_saved((*one)->memory.info, rows, resolve_axes(rows, axes));
    }
    return given_statistics(term_of(mean, false), term_of(spread, false), spread->memory.info,
                            is_rstd, plan);
  }

  std::optional<Array> mean;
  bool is_rstd;
  std::optional<Array> spread;
};

// What has another value than the usual one, and does nothing.
void check_effects(const Given& given, bool has_weight, const GivenArrays& arrays) {
  if (given.options.zero_centered_weight && !has_weight) {
    throw Error("zero_centered_weight has no effect without weight");
  }
  const Formula& formula = given.options.formula;
  if (!arrays.is_rstd) return;
  if (formula.eps != Formula{}.eps) throw Error("eps has no effect beside rstd");
  if (formula.eps_on != Formula{}.eps_on) throw Error("eps_on has no effect beside rstd");
}

// x, or its sum with a residual, as it is read.
class Input {
 public:
  Input(const Array& x, const std::optional<Array>& residual, const Given& given, DType out)
      : x_(x), residual_(residual), threads_(given.threads) {
    if (given.round_sum) rounded_to_ = out;
  }

  TensorInfo info() const {
    return residual_ ? sum_info(x_.memory.info, residual_->memory.info, rounded_to_)
                     : x_.memory.info;
  }
  std::unique_ptr<TensorSource> open() const {
    auto x = std::make_unique<MemorySource>(x_.memory);
    if (!residual_) return x;
    return summed(std::move(x), std::make_unique<MemorySource>(residual_->memory), rounded_to_,
                  threads_);
  }

 private:
  const Array& x_;
  const std::optional<Array>& residual_;
  std::optional<DType> rounded_to_;
  int threads_;
};

AffineTerm affine_term(const std::optional<Array>& array, const Plan& plan, bool plus_one) {
  if (array) check_affine_shape(array->memory.info, plan);
  return term_of(array, plus_one).laid_out(plan.affine);
}

// Where a result goes: a new array, or one that is given, by way of a new one where an input lies there.
class Output {
 public:
  // argument: what it is called.
  Output(const py::object& out, const char* argument, const TensorInfo& result, const Array& like,
         std::initializer_list<const std::optional<Array>*> inputs)
      : object_(out) {
    if (!out.is_none()) {
      given_ = array_of(out, argument);
      check(argument, result);
    }
    bool overlaps = given_ && overlap(given_->memory, like.memory);
    for (const auto* const input : inputs) {
      overlaps = overlaps || (given_ && *input && overlap(given_->memory, (*input)->memory));
    }
    if (given_ && !overlaps) {
      target_ = *given_;
      // Of a new tensor no page has been touched. NumPy asks the same for its arrays.
      constexpr std::ptrdiff_t kLarge = std::ptrdiff_t{4} << 20;
      const auto [first, last] = extent_of(target_.memory);
      if (last - first >= kLarge) os::prefer_large_pages({first, last});
    } else if (given_) {
      const Shape& shape = result.shape;
      bytes_.resize(static_cast<std::size_t>(element_count(shape)) * item_size(result.dtype));
      target_.memory.info = result;
      target_.memory.data = bytes_.data();
      for (const std::int64_t stride : strides(shape, MemoryOrder::c)) {
        target_.memory.strides.push_back(stride *
                                         static_cast<std::int64_t>(item_size(result.dtype)));
      }
    } else {
      target_ = new_array(result.shape, result.dtype, &like);
      object_ = target_.owner;
    }
    target_.memory.info.order = MemoryOrder::c;
  }

  MemorySink sink() const { return MemorySink(target_.memory); }

  // After the work.
  void finish() const {
    if (bytes_.empty()) return;
    Memory memory = given_->memory;
    memory.info.order = MemoryOrder::c;
    MemorySink(memory).write_at(0, bytes_);
  }

  const py::object& object() const { return object_; }

  bool overlaps(const Output& other) const {
    return given_ && other.given_ && overlap(given_->memory, other.given_->memory);
  }

 private:
  void check(const char* argument, const TensorInfo& result) const {
    const TensorInfo& info = given_->memory.info;
    if (!given_->is_writable) {
      throw Error(concat(argument, ": is read-only, expected an array to write to"));
    }
    if (has_overlaps(given_->memory)) {
      throw Error(
          concat(argument, ": has elements that share memory, expected a place for each of them"));
    }
    if (info.byte_order != std::endian::native) {
      throw Error(
          concat(argument, ": is not in the machine's byte order, expected an array that is"));
    }
    if (info.shape != result.shape || info.dtype != result.dtype) {
      throw Error(concat(argument, ": is ", name(info.dtype), " of shape ", to_string(info.shape),
                         ", expected ", name(result.dtype), " of shape ", to_string(result.shape)));
    }
  }

  py::object object_;
  std::optional<Array> given_;
  Array target_;
  std::vector<std::byte> bytes_;
};

// The dtype of a result, if one is given or an array for the result is.
std::optional<DType> chosen_dtype(const std::optional<DType>& dtype, const py::object& out,
                                  const char* argument) {
  if (dtype || out.is_none()) return dtype;
  const DType found = array_of(out, argument).memory.info.dtype;
  if (is_floating(found)) return found;
  throw Error(concat(argument, ": is ", name(found), ", expected ", dtype_list(is_floating)));
}

struct Columns {
  Array mean;
  Array rstd;
};

// The loop as lnorm apply runs it.
void normalize(TensorSource& source, const Plan& plan, const Affine& affine,
               const GivenStatistics* known, TensorSink& sink, const Columns* columns,
               int threads) {
  const Backend& backend = backends().front();
  std::vector<std::unique_ptr<MemorySink>> sinks;
  std::vector<std::unique_ptr<RowWriter>> writers;
  std::vector<RowObserver*> observers;
  const auto write = [&](const Array& array, std::span<const double> RowBlock::*column) {
    sinks.push_back(std::make_unique<MemorySink>(array.memory));
    writers.push_back(std::make_unique<RowWriter>(*sinks.back(), plan, column));
    observers.push_back(writers.back().get());
  };
  if (columns != nullptr) {
    if (plan.formula.has_mean()) write(columns->mean, &RowBlock::mean);
    write(columns->rstd, &RowBlock::rstd);
  }
  const RunOptions options{.threads = threads};
  if (plan.route.in_parts) {
    run_long_rows(source, plan, backend, affine, observers, sink, options);
    return;
  }
  run(source, plan, normalization(backend, known, affine, plan.formula), observers, &sink, options);
}

py::object layer_norm(const py::object& x_object, const py::object& weight_object,
                      const py::object& bias_object, const py::object& residual_object,
                      const py::object& mean, const py::object& rstd, const py::object& variance,
                      const py::object& out, bool with_stats, const Given& given) {
  const Array x = tensor_of(x_object, "x", given);
  const auto weight = optional_array(weight_object, "weight");
  const auto bias = optional_array(bias_object, "bias");
  const auto residual = optional_tensor(residual_object, "residual", given);
  const DType dtype = output_dtype(x.memory.info.dtype, chosen_dtype(given.dtype, out, "out"));
  check_rounding(given, weight.has_value(), bias.has_value(), residual.has_value(), dtype);
  const GivenArrays arrays(mean, rstd, variance, given.options.formula.rms);
  const Input input(x, residual, given, dtype);
  const bool is_given = arrays.spread.has_value();
  check_effects(given, weight.has_value(), arrays);
  if (is_given && given.options.formula.ddof != 0) {
    throw Error(concat("ddof has no effect beside ", arrays.is_rstd ? "rstd" : "variance"));
  }
  Plan plan = make_plan(input.info(), given.options, dtype,
                        {.whole = is_given, .in_tiles = true, .given = is_given});
  plan.wants_mean_and_rstd = with_stats;
  const AffineTerm weight_term = affine_term(weight, plan, given.options.zero_centered_weight);
  const AffineTerm bias_term = affine_term(bias, plan, false);
  Affine affine{weight_term, bias_term, given.options.rounding};
  if (!weight_term.is_uniform() || !bias_term.is_uniform()) affine.set_layout(plan.affine);
  std::optional<GivenStatistics> known;
  if (is_given) known = arrays.statistics(input.info(), given.options.axes, plan);
  Output output(out, "out", plan.result(), x,
                {&weight, &bias, &residual, &arrays.mean, &arrays.spread});
  Columns columns;
  if (with_stats) {
    columns.mean = new_array(plan.row_shape(true), DType::float64, nullptr);
    columns.rstd = new_array(plan.row_shape(true), DType::float64, nullptr);
  }
  {
    const py::gil_scoped_release released;
    const auto source = input.open();
    MemorySink sink = output.sink();
    normalize(*source, plan, affine, known ? &*known : nullptr, sink,
              with_stats ? &columns : nullptr, given.threads);
    output.finish();
  }
  if (!with_stats) return output.object();
  return py::make_tuple(output.object(),
                        given.options.formula.has_mean() ? columns.mean.owner : py::none(),
                        columns.rstd.owner);
}

py::object softmax(const py::object& x_object, const py::object& axes,
                   const std::optional<std::string>& dtype_name, const py::object& out,
                   int threads) {
  const Array x = array_of(x_object, "x");
  const DType dtype =
      output_dtype(x.memory.info.dtype, chosen_dtype(dtype_of(dtype_name), out, "out"));
  const LayerNormOptions options{.axes = AxisList{integers(axes)}, .formula = {}};
  const Plan plan = make_plan(x.memory.info, options, dtype, {.whole = true, .in_tiles = true});
  Output output(out, "out", plan.result(), x, {});
  {
    const py::gil_scoped_release released;
    MemorySource source(x.memory);
    MemorySink sink = output.sink();
    run(source, plan,
        [](const RowsIn& rows, const RowsOut& y, const MeanAndRstd&) { lnorm::softmax(rows, y); },
        {}, &sink, {.threads = threads});
    output.finish();
  }
  return output.object();
}

py::object layer_norm_backward(const py::object& dy_object, const py::object& x_object,
                               const py::object& weight_object, const py::object& residual_object,
                               const py::object& mean_object, const py::object& rstd_object,
                               const py::object& variance_object,
                               const std::array<py::object, 3>& out, const Given& given) {
  const Array x = tensor_of(x_object, "x", given);
  const std::optional<Array> dy(tensor_of(dy_object, "dy", given));
  const auto weight = optional_array(weight_object, "weight");
  const auto residual = optional_tensor(residual_object, "residual", given);
  const GivenArrays saved(mean_object, rstd_object, variance_object, given.options.formula.rms);
  check_effects(given, weight.has_value(), saved);
  if (saved.spread && !saved.is_rstd && given.options.formula.ddof != 0) {
    throw Error("ddof has no effect beside variance");
  }
  const Rounding& rounding = given.options.rounding;
  if (rounding.xhat || rounding.product) {
    throw Error(concat("round ", rounding.xhat ? "xhat" : "product",
                       " has no part in the gradient, expected sum"));
  }
  const DType dtype =
      output_dtype(x.memory.info.dtype, chosen_dtype(given.dtype, out[0], "out[0]"));
  check_rounding(given, weight.has_value(), false, residual.has_value(), dtype);
  const Input input(x, residual, given, dtype);
  GradientInputs infos{input.info(), dy->memory.info};
  if (saved.mean) infos.mean = saved.mean->memory.info;
  if (saved.spread) infos.rstd = saved.spread->memory.info;
  const GradPlan plan = make_grad_plan(infos, given.options, dtype);
  const AffineTerm term = affine_term(weight, plan.rows, given.options.zero_centered_weight);
  const TensorInfo parameters = parameter_gradient(
      plan.rows, weight ? &weight->memory.info : nullptr,
      chosen_dtype(chosen_dtype(given.dtype, out[1], "out[1]"), out[2], "out[2]"));
  const auto output = [&](std::size_t i, const char* argument, const TensorInfo& result,
                          const Array& like) {
    return Output(out[i], argument, result, like,
                  {&dy, &weight, &residual, &saved.mean, &saved.spread});
  };
  const Output dx = output(0, "out[0]", plan.rows.result(), x);
  const Output dweight = output(1, "out[1]", parameters, weight ? *weight : x);
  const Output dbias = output(2, "out[2]", parameters, weight ? *weight : x);
  if (dx.overlaps(dweight) || dx.overlaps(dbias) || dweight.overlaps(dbias)) {
    throw Error("out: the arrays lie among each other, expected one apart for each gradient");
  }
  {
    const py::gil_scoped_release released;
    const auto source = input.open();
    MemorySource dy_source(dy->memory);
    std::optional<MemorySource> mean;
    std::optional<MemorySource> spread;
    if (saved.mean) mean.emplace(saved.mean->memory);
    if (saved.spread) spread.emplace(saved.spread->memory);
    MemorySink dx_sink = dx.sink();
    MemorySink dweight_sink = dweight.sink();
    MemorySink dbias_sink = dbias.sink();
    run_grad({*source, dy_source, mean ? &*mean : nullptr, spread ? &*spread : nullptr,
              saved.spread && !saved.is_rstd},
             plan, backends().front(), term, parameters, {&dx_sink, &dweight_sink, &dbias_sink},
             {.threads = given.threads});
    for (const Output* const one : {&dx, &dweight, &dbias}) one->finish();
  }
  return py::make_tuple(dx.object(), dweight.object(), dbias.object());
}

app::Arguments arguments_of(const std::vector<std::string>& words) {
  std::vector<const char*> argv{"lnorm"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  auto parsed = app::parse_arguments(static_cast<int>(argv.size()), argv.data(), app::kLnorm);
  return std::get<app::Arguments>(std::move(parsed));
}

bool has_option(const std::string& command, const std::string& option) {
  return app::find_option(app::find_command(command)->command, option) != nullptr;
}

// Throws Error, with a hint, if the command has no such option.
void check_option(const std::string& command, const std::string& option) {
  if (!has_option(command, option)) app::fail_option(app::find_command(command)->command, option);
}

// The inputs of a command line: a tuple a case, as the Python files name them; ids that are alive, and equivalent.
py::tuple make_inputs(const std::vector<std::string>& words) {
  MadeInputs made;
  {
    const py::gil_scoped_release released;
    made = lnorm::make_inputs(app::inputs_options(arguments_of(words)));
  }
  const auto array = [](const MadeTensor& tensor) {
    Array result = new_array(tensor.info.shape, tensor.info.dtype, nullptr);
    MemorySink(result.memory).write_at(0, tensor.elements);
    return result.owner;
  };
  py::list cases;
  for (const MadeCase& one : made.cases) {
    const py::object dy = one.dy ? array(*one.dy) : py::none();
    cases.append(py::make_tuple(one.name, array(one.x), array(one.weight), array(one.bias), dy,
                                one.purpose, py::cast(one.kills)));
  }
  return py::make_tuple(cases, py::cast(made.alive), py::cast(made.equivalent));
}

// The tensors that a command line names.
using Sets = std::vector<std::pair<std::string, std::shared_ptr<const TensorSet>>>;

// An array, or several by their names.
std::shared_ptr<const TensorSet> set_of(const std::string& name, const py::object& object,
                                        std::vector<Array>& keep) {
  std::vector<std::pair<std::string, Memory>> tensors;
  const auto add = [&](const std::string& tensor, const std::string& title, const py::handle& one) {
    keep.push_back(array_of(one, title.c_str()));
    tensors.emplace_back(tensor, keep.back().memory);
  };
  if (py::isinstance<py::dict>(object)) {
    for (const auto& [key, value] : object.cast<py::dict>()) {
      const auto tensor = py::str(key).cast<std::string>();
      add(tensor, concat(name, ':', tensor), value);
    }
  } else {
    add("", name, object);
  }
  return std::make_shared<MemorySet>(name, std::move(tensors));
}

// Runs a command of the program on tensors in memory. Gives its exit status, its report, and that in JSON.
std::tuple<int, std::string, std::string> run_command(const std::vector<std::string>& words,
                                                      const py::dict& named) {
  std::vector<Array> keep;
  Sets sets;
  for (const auto& [name, object] : named) {
    const auto word = name.cast<std::string>();
    sets.emplace_back(word, set_of(word, py::reinterpret_borrow<py::object>(object), keep));
  }
  const py::gil_scoped_release released;
  app::Arguments arguments = arguments_of(words);
  for (const auto& [word, set] : sets) {
    arguments.input.options.files->insert_or_assign(word, OpenSet{set, Format::npy});
  }
  arguments.color = app::When::never;
  arguments.work.progress = app::When::never;
  if (!arguments.linewidth) arguments.linewidth = Style::kAnyWidth;
  const std::string json = "(json)";
  arguments.save_json = json;  // compare has JSON in place of text alone
  const auto run = [&](app::Report report) {
    arguments.report = report;
    const CapturedOutputs outputs({"-", json});
    const int status = app::command_row(arguments.command).run(arguments);
    return std::tuple{status, outputs.at("-"), outputs.at(json)};
  };
  auto found = run(app::Report::text);
  if (std::get<2>(found).empty()) std::get<2>(found) = std::get<1>(run(app::Report::json));
  return found;
}

int main_program(const std::vector<std::string>& words) {
  app::set_up_process();
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  const py::gil_scoped_release released;
  return app::run_program(static_cast<int>(argv.size()), argv.data());
}

// Ctrl-C ends the work of the thread that sees signals.
const std::thread::id kMainThread = std::this_thread::get_id();

void check_signals() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point next;
  if (std::this_thread::get_id() != kMainThread || Clock::now() < next) return;
  next = Clock::now() + std::chrono::milliseconds(50);
  const py::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace

PYBIND11_MODULE(_lnorm, module) {
  check_interrupted = check_signals;
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const SystemError& error) {
      PyErr_SetString(PyExc_OSError, message_of(error).c_str());
    } catch (const Error& error) {
      PyErr_SetString(PyExc_ValueError, message_of(error).c_str());
    }
  });
  module.attr("__version__") = LNORM_VERSION;
  py::class_<Given>(module, "Given").def(py::init(&given));
  module.def("layer_norm", &layer_norm);
  module.def("softmax", &softmax);
  module.def("layer_norm_backward", &layer_norm_backward);
  module.def("make_inputs", &make_inputs);
  module.def("has_option", &has_option);
  module.def("check_option", &check_option);
  module.def("run_command", &run_command);
  module.def("main", &main_program);
}

}  // namespace lnorm::python
