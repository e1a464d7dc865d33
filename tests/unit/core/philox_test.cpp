#include "lnorm/core/philox.hpp"

#include "support/catch.hpp"

using lnorm::Philox;

TEST_CASE("Philox gives the known answers of Random123", "[philox]") {
  // kat_vectors of Random123: philox4x32, 10 rounds.
  CHECK(Philox::block_of({0, 0, 0, 0}, 0, 0) ==
        Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(
      Philox::block_of({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff) ==
      Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(
      Philox::block_of({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
      Philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("its normal numbers have mean 0 and deviation 1, and streams differ", "[philox]") {
  const Philox random(3, 0);
  double sum = 0;
  double squares = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    const double value = random.normal(static_cast<std::uint64_t>(i));
    sum += value;
    squares += value * value;
  }
  CHECK(std::abs(sum / kCount) < 0.03);
  CHECK(std::abs(squares / kCount - 1) < 0.03);
  CHECK(random.normal(5) != Philox(3, 1).normal(5));
  CHECK(random.normal(5) != Philox(4, 0).normal(5));
  CHECK(random.normal(5) == Philox(3, 0).normal(5));
}
