#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lnorm/core/shape.hpp"
#include "lnorm/diagnosis/variant.hpp"

// The one table of what kernels do wrong.
namespace lnorm {

// Which part of the formula is wrong. At most one of each part goes into a combination, in this order. elements: those that
// statistics are made of. sums are those over rows, of the backward pass; own_sums are those of a row, and explain alone.
enum class KernelPart {
  eps_place,
  eps_value,
  ddof,
  mean_or_division,
  elements,
  rounding,
  weight,
  bias,
  alone,
  sums,
  own_sums
};

// Whose formulas a row of the table changes.
enum class Pass { forward, backward, both };

// In the order in which a row of the table is read.
struct WrongKernel {  // NOLINT(clang-analyzer-optin.performance.Padding)
  // P in the id and in the words stands for a padded length, K for the length of a block: the change has it as its parameter.
  std::string_view id;
  std::string_view words;    // follows "the kernel: "
  std::string_view options;  // of lnorm that give the same; empty if there are none
  KernelPart part;
  // Makes the variant so. False where that is what was asked for, or cannot be.
  bool (*change)(Variant& variant, const KernelContext& context, double parameter);
  double parameter = 0;  // of K: the greatest
  Pass pass = Pass::forward;

  char letter() const noexcept;  // P or K in the id; or else 0
  // The text with a number in place of the letter. before: what stands before it there.
  std::string with_length(std::string_view text, char before, std::int64_t length) const;

  bool is_forward() const noexcept { return pass != Pass::backward; }
  bool is_backward() const noexcept { return pass != Pass::forward; }
  bool is_of(Quantity quantity) const noexcept {
    return quantity < Quantity::dx ? is_forward() : is_backward();
  }
};

std::span<const WrongKernel> wrong_kernels() noexcept;

// What the ids of a row are whose letter stands for some usual length; its id where it has no letter.
std::vector<std::string> usual_ids(const WrongKernel& kernel);

// Which statistics it changes. own: the mean alone, and the variance stays about the row's own mean.
enum class Side { both, mean, own, variance };

// A row of the table for rows of some length: one for each that a kernel may pad them to.
struct NamedKernel {
  std::string id;
  std::string words;
  std::string options;
  const WrongKernel* row = nullptr;
  double parameter = 0;
  Side side = Side::both;

  // As WrongKernel::change, but for the statistics of the other side.
  bool change(Variant& variant, const KernelContext& context) const;
};

// Whether a row of the table is to be tried.
class ChooseKernel {
 public:
  ChooseKernel() = default;  // empty
  template <class Chooses,
            class = std::enable_if_t<std::is_invocable_r_v<bool, const Chooses&, std::string_view>>>
  ChooseKernel(Chooses chooses)  // NOLINT(google-explicit-constructor)
      : chooses_(std::move(chooses)), kept_(std::make_shared<Kept>()) {}

  explicit operator bool() const noexcept { return chooses_ != nullptr; }
  bool operator()(std::string_view id) const { return chooses_(id); }

  // named_kernels of rows of this shape; the choice must not be empty. A kernel of y that takes other elements for mean and
  // variance is followed by those that do so for one of them. The last list is kept, and shared by copies: many tensors have rows of
  // one shape.
  std::shared_ptr<const std::vector<NamedKernel>> kernels(Quantity of,
                                                          const Shape& normalized_shape) const;

 private:
  struct Kept {
    std::mutex mutex;
    std::map<Quantity, std::pair<Shape, std::shared_ptr<const std::vector<NamedKernel>>>> last;
  };

  std::function<bool(std::string_view)> chooses_;
  std::shared_ptr<Kept> kept_;
};

// Those that are chosen, by their ids or by what 0.8.0 called them (padded-8 for padded-P, P the next multiple of 8, and
// padded-pow2). normalized_shape: of the row. choose: empty for all.
std::vector<NamedKernel> named_kernels(Quantity of, const Shape& normalized_shape,
                                       const ChooseKernel& choose);

// Those of that padded length, and those that have it in one statistic alone.
std::vector<NamedKernel> padded_kernels(std::int64_t length);

// The options of lnorm that give the same. context: what the kernel was asked for.
std::string option_of(const NamedKernel& kernel, const KernelContext& context);

// The option of lnorm that gives an eps that is in no row.
std::string eps_option(const std::string& eps);

// What is said of an output that is float64, and no nearer than one of float32 would be.
std::string_view float32_advice() noexcept;

// The option that gives other axes.
std::string axes_option(const std::string& axes, const std::string& affine_axes = {});

std::string groups_option(std::int64_t groups);

// The ids of what is found on other rows, or from the output itself, as patterns.
inline constexpr std::string_view kAxesIds = "axes-*";
inline constexpr std::string_view kOrderId = "memory-order";
inline constexpr std::string_view kStorageId = "storage-start";
inline constexpr std::string_view kExchangedId = "exchanged";
inline constexpr std::string_view kRowsId = "other-rows";
inline constexpr std::string_view kAffineId = "other-affine";
inline constexpr std::array<std::string_view, 18> kFoundIds{
    kAxesIds,           "eps=*",         "divisor=*",
    "factor=*",         "mean-factor=*", "variance-factor=*",
    "saved-*",          "dx-*",          "dweight-negated",
    "dweight-factor=*", "dbias-negated", "dbias-factor=*",
    kOrderId,           "groups-*",      kStorageId,
    kExchangedId,       kRowsId,         kAffineId};
inline constexpr std::size_t kWrittenIds = 1;  // the first of them, which have no need of an output

// What a kernel that quantizes may do in place of what it should; {} stands for a number or a dtype.
struct QuantizedKernel {
  std::string_view id;
  std::string_view words;
  std::string_view options = {};  // of lnorm that give the same
};
std::span<const QuantizedKernel> quantized_kernels();

inline constexpr std::string_view kAxesWords = "normalized over other axes";

}  // namespace lnorm
