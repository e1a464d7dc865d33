#pragma once

#include <functional>

#include "lnorm/pipeline/ranks.hpp"

// Runs work(ranks) on so many ranks, each of them a thread of this process. What the first rank that fails throws, but
// for RankFailure, is thrown.
void on_ranks(int count, const std::function<void(lnorm::Ranks& ranks)>& work);
