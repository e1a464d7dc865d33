#pragma once

#include <vector>

// Registers the benchmarks of the backward pass, with so many threads.
void add_backward(const std::vector<int>& thread_counts);
