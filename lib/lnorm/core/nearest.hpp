#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace lnorm {

// likely: words that were meant to be one of the candidates. strict: those that may mean something else, of which
// short ones are near nothing.
enum class Nearness { likely, strict };

// The candidate that is the word but for upper case, that the word begins, of which it is the last part, or of which it
// is a misspelling; empty if none is near.
std::string nearest(const std::string& word, std::size_t size,
                    const std::function<std::string(std::size_t)>& candidate,
                    Nearness nearness = Nearness::likely);
std::string nearest(const std::string& word, const std::vector<std::string>& candidates,
                    Nearness nearness = Nearness::likely);

}  // namespace lnorm
