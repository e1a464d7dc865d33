#include "lnorm/diagnosis/check.hpp"

#include <cstddef>

namespace lnorm {

std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"correctly rounded", "within rounding", "not judged",
                                         "differs"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Verdict verdict_of(const JudgedRows& judged) {
  if (judged.beyond > 0 || judged.scaled_rows > 0) return Verdict::differs;
  if (judged.elements == 0 || judged.unjudged_rows == judged.rows) return Verdict::not_judged;
  return judged.correctly_rounded == judged.elements ? Verdict::correctly_rounded
                                                     : Verdict::within_rounding;
}

}  // namespace lnorm
