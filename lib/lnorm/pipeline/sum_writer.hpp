#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lnorm/layout/row_sink.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Writes the rows that are normalized, rounded to the output dtype, as they pass.
class SumWriter final : public RowObserver {
 public:
  SumWriter(TensorSink& sink, const Plan& plan, int threads)
      : dtype_(plan.out),
        out_(sink, plan.result(), plan.out_view, plan.route.out, for_each_tile(threads)) {}

  // Buffers for a tile on its way.
  struct Buffers {
    std::vector<std::byte> rounded;
    std::vector<std::byte> packed;
    std::string text;
    std::span<const std::byte> encoded;  // which points to them, or to the rows themselves
  };

  // Takes rows, one after another. Several threads may do so at once. Then write, in order.
  void put(const Tile& tile, const RowsIn& rows, Buffers& buffer) const;
  void write(const Buffers& buffer) { out_.write(buffer.encoded); }

  BlockFindings examine(const RowBlock& block) const override;
  void see(const RowBlock&, const BlockFindings& findings) override {
    write(*std::any_cast<const std::shared_ptr<Buffers>&>(findings));
  }
  void finish() override { out_.finish(); }
  void skip() override { out_.skip(); }
  bool takes_parts() const override { return out_.has_random_access(); }

 private:
  DType dtype_;
  RowSink out_;
};

}  // namespace lnorm
