#include "lnorm/io/torch/torch.hpp"

#include <algorithm>
#include <numeric>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/zip/npz.hpp"
#include "lnorm/layout/reorder.hpp"
#include "support/commands.hpp"
#include "support/elements.hpp"
#include "support/pickle.hpp"
#include "support/sets.hpp"
#include "support/zip.hpp"

namespace {

using namespace support;
using lnorm::DType;
using lnorm::MemoryOrder;
using lnorm::Shape;

std::unique_ptr<lnorm::TensorSet> open_set(const std::string& path) {
  return lnorm::open_torch(std::make_shared<const lnorm::ZipArchive>(lnorm::open_file(path)));
}

// The elements in C order, as this machine has them.
std::vector<std::byte> elements_of(std::unique_ptr<lnorm::TensorSource> source) {
  source = lnorm::gathered(std::move(source));
  std::vector<std::byte> bytes = lnorm::read_all(*source);
  lnorm::make_native(bytes, source->info().dtype, source->info().byte_order);
  return bytes;
}

void check_same(const lnorm::TensorSet& actual, std::size_t index,
                std::unique_ptr<lnorm::TensorSource> expected) {
  const lnorm::TensorInfo info = actual.info(index);
  CHECK(lnorm::name(info.dtype) == lnorm::name(expected->info().dtype));
  CHECK(info.shape == expected->info().shape);
  CHECK(actual.open(index)->has_random_access());
  CHECK(elements_of(actual.open(index)) == elements_of(std::move(expected)));
  const auto whole = lnorm::read_all(*actual.open(index));
  const auto anywhere = actual.open(index);
  for (const std::size_t piece : {1U, 3U, 7U, 8U, 20U, 1000U}) {
    CAPTURE(piece);
    CHECK(read_in_pieces(*anywhere, whole.size(), piece) == whole);
  }
}

// A .pt on disk.
class TorchFile {
 public:
  explicit TorchFile(const std::string& bytes) { write_file(path_, bytes); }

  std::unique_ptr<lnorm::TensorSet> set() const { return open_set(path_); }

  // Without the folder.
  std::string error() const {
    const std::string error = error_of(
        [&] {
          const auto tensors = set();
          for (std::size_t i = 0; i < tensors->size(); ++i) lnorm::read_all(*tensors->open(i));
        },
        at_.path().string() + "/");
    CHECK((error == "no error" || error.starts_with("x.pt")));
    CHECK(!contains(error, "\n"));
    return error;
  }

 private:
  TempDir at_;
  std::string path_ = at_ / "x.pt";
};

// Of a file that has six floats in a storage, and this value.
std::string pickle_error(const std::string& value) {
  return TorchFile(torch_file(pickle_of(value), {std::string(24, '\0')})).error();
}

std::string tensor(std::int64_t offset, const std::vector<std::int64_t>& shape,
                   const std::vector<std::int64_t>& strides) {
  return pickled_tensor(pickled_storage("0", 6), offset, shape, strides);
}

}  // namespace

TEST_CASE("files of PyTorch have the elements that PyTorch has", "[torch]") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_file("torch"))) {
    if (entry.path().extension() != ".npz") continue;
    CAPTURE(entry.path().string());
    ++files;
    const auto as = lnorm::parse_dtype(entry.path().stem().string()).value_or(DType::bfloat16);
    const auto expected = lnorm::open_npz(
        std::make_shared<const lnorm::ZipArchive>(lnorm::open_file(entry.path().string())), as);
    const auto actual =
        open_set(std::filesystem::path(entry.path()).replace_extension(".pt").string());
    std::size_t found = 0;
    for (std::size_t i = 0; i < actual->size(); ++i) {
      CAPTURE(actual->tensor_name(i));
      // foreign.pt: what NumPy has no dtype for is told by hand, below.
      if (!actual->describe(i).shape || actual->tensor_name(i) == "float8") continue;
      REQUIRE(found < expected->size());
      const std::string name = actual->tensor_name(i);
      CHECK((name.empty() ? "alone" : name) == expected->tensor_name(found));
      check_same(*actual, i, expected->open(found++));
    }
    CHECK(found == expected->size());
  }
  CHECK(files == 18);
}

TEST_CASE("the dump of a model is the same in a .pt as in an .npz", "[torch]") {
  const auto expected = lnorm::open_npz(
      std::make_shared<const lnorm::ZipArchive>(lnorm::open_file(data_file("gpt2/dump.npz"))), {});
  const auto actual = open_set(data_file("gpt2/dump.pt"));
  REQUIRE(actual->size() == 48);
  REQUIRE(expected->size() == 48);
  for (std::size_t i = 0; i < 48; ++i) {
    CHECK(actual->tensor_name(i) == expected->tensor_name(i));
    check_same(*actual, i, expected->open(i));
  }
}

TEST_CASE("a transposed view is a tensor in Fortran order, and other views in C order", "[torch]") {
  const auto set = open_set(data_file("torch/transposed.pt"));
  std::vector<MemoryOrder> orders;
  for (std::size_t i = 0; i < set->size(); ++i) orders.push_back(set->info(i).order);
  using enum MemoryOrder;
  CHECK(orders == std::vector{fortran, fortran, c, c, c});
}

TEST_CASE("tensors that lnorm does not read are named, and leave the others readable", "[torch]") {
  const auto set = open_set(data_file("torch/foreign.pt"));
  const auto listed = [&](std::size_t index) {
    const auto member = set->describe(index);
    return member.name + ": " + member.dtype;
  };
  REQUIRE(set->size() == 8);
  CHECK(listed(1) == "negated: negated");
  CHECK(listed(2) == "complex: complex64");
  CHECK(listed(3) == "float8: float8_e4m3fnuz");
  CHECK(listed(4) == "sparse: sparse");
  CHECK(listed(5) == "csr: sparse");
  CHECK(listed(6) == "quantized: quantized");
  const auto error = [&](std::size_t index) {
    try {
      set->open(index);
    } catch (const lnorm::UnsupportedDType& foreign) {
      return std::string(foreign.what()).substr(data_file("torch/").size()) + "\n" + foreign.hint();
    }
    return std::string("no error");
  };
  const std::string dtypes =
      ", expected bool, int8 to int64, uint8 to uint64, float8_e4m3fn, float8_e5m2, "
      "float8_e4m3fnuz, float8_e8m0fnu, float16, bfloat16, float32 or float64\n";
  CHECK(error(1) ==
        "foreign.pt:negated: is a view that PyTorch changes as it reads it\n"
        "in Python, save x.resolve_conj().resolve_neg().clone() in its place");
  CHECK(error(2) == "foreign.pt:complex: dtype complex64" + dtypes +
                        "in Python, save torch.view_as_real(x) in its place");
  // 1, 0, 0 and 2.
  CHECK(lnorm::read_all(*set->open(3)) ==
        std::vector<std::byte>{std::byte{64}, std::byte{0}, std::byte{0}, std::byte{72}});
  CHECK(error(4) ==
        "foreign.pt:sparse: is a sparse tensor, expected one of elements\n"
        "in Python, save x.to_dense() in its place");
  CHECK(error(6) ==
        "foreign.pt:quantized: is a quantized tensor, expected one of elements\n"
        "in Python, save x.dequantize() in its place");
}

TEST_CASE("a TorchScript archive is refused by name", "[torch]") {
  CHECK_THROWS_WITH(
      open_set(data_file("torch/script.pt")),
      data_file("torch/script.pt") + ": is a TorchScript archive, expected tensors of torch.save");
}

TEST_CASE("an .npz is no file of PyTorch", "[torch]") {
  const auto is_torch = [](const std::string& file) {
    return lnorm::is_torch(lnorm::ZipArchive(lnorm::open_file(data_file(file))));
  };
  CHECK(is_torch("gpt2/dump.pt"));
  CHECK(is_torch("torch/script.pt"));
  CHECK(!is_torch("gpt2/dump.npz"));
}

TEST_CASE("nothing in a pickle is run", "[torch]") {
  const std::string hostile = pickled_global("posix", "system") + pickled("touch pwned") + "\x85R";
  CHECK(pickle_error(hostile) ==
        "x.pt: is an object of posix.system, expected tensors: nothing is imported or called");
  CHECK(pickle_error(pickled_dict(pickled("a"), pickled_global("__main__", "Net"))) == "no error");
  CHECK(pickle_error(pickled("os") + pickled("system") + "\x93)R")
            .starts_with("x.pt: is an object of os.system, expected tensors"));
  CHECK(pickle_error("ctorch\n" + std::string(1000, 'x') + "\n)R").size() < 300);
  CHECK(pickle_error(pickled_global("torch", "float32") + ")R") == "no error");
  CHECK(pickle_error(pickled("x") + ")R") == "x.pt: pickle, byte 9: calls what is not a global");
  // INST, OBJ, NEWOBJ_EX, EXT1, PERSID, REDUCE of an OrderedDict.
  for (const char opcode : {'i', 'o', '\x92', '\x82', 'P'}) {
    CHECK(contains(pickle_error(std::string(1, opcode)), "which no tensor needs"));
  }
  CHECK(pickle_error(pickled_global("collections", "OrderedDict") + "]\x85R") ==
        "x.pt: pickle, byte 29: makes an OrderedDict of something");
}

TEST_CASE("objects beside tensors are listed, and leave the tensors readable", "[torch]") {
  // args=argparse.Namespace(lr=1), a tensor, and collections of classes.
  const std::string args = pickled_global("argparse", "Namespace") + ")\x81" +
                           pickled_dict(pickled("lr"), pickled(1)) + "b";
  const std::string counts = pickled_global("collections", "defaultdict") + ")R" + pickled("a") +
                             pickled(1) + "s(" + pickled("b") + pickled(2) + "u";
  const std::string rows =
      pickled_global("collections", "deque") + ")R" + pickled(1) + "a(" + pickled(2) + "e";
  const TorchFile file(
      torch_file(pickle_of("}(" + pickled("args") + args + pickled("w") + tensor(0, {2}, {1}) +
                           pickled("counts") + counts + pickled("rows") + rows + "N" + args + "u"),
                 {std::string(24, '\0')}));
  const auto set = file.set();
  std::string listed;
  for (std::size_t i = 0; i < set->size(); ++i) {
    const lnorm::Member member = set->describe(i);
    listed += member.name + ": " + member.dtype + "\n";
  }
  CHECK(listed ==
        "args: argparse.Namespace\nw: float32\ncounts: collections.defaultdict\n"
        "rows: collections.deque\n");
  CHECK(lnorm::read_all(*set->open(1)).size() == 8);
  CHECK(file.error() == "x.pt:args: is an object of argparse.Namespace, expected a tensor");
}

TEST_CASE("a tensor that does not lie within its storage is refused", "[torch]") {
  CHECK(pickle_error(tensor(0, {2, 3}, {3, 1})) == "no error");
  CHECK(pickle_error(tensor(1, {2, 3}, {3, 1})) ==
        "x.pt: shape (2, 3) with strides (3, 1) from element 1 on goes beyond its storage of 6 "
        "elements");
  CHECK(contains(pickle_error(tensor(0, {2, 3}, {4, 1})), "goes beyond"));
  CHECK(pickle_error(tensor(6, {0}, {1})) == "no error");
  CHECK(pickle_error(tensor(7, {0}, {1})) == "no error");
  CHECK(contains(pickle_error(tensor(6, {}, {})), "goes beyond"));
  constexpr std::int64_t kMax = INT64_MAX;
  for (const auto& [offset, shape, strides] :
       std::vector<std::tuple<std::int64_t, Shape, Shape>>{{kMax, {1}, {1}},
                                                           {0, {kMax}, {kMax}},
                                                           {0, {kMax, 2}, {1, kMax}},
                                                           {kMax - 1, {2, 2}, {1, 1}}}) {
    CHECK(contains(pickle_error(tensor(offset, shape, strides)), "goes beyond"));
  }
  CHECK(
      pickle_error(tensor(0, {kMax, kMax}, {0, 0})) ==
      "x.pt: shape (9223372036854775807, 9223372036854775807) of float32 needs more than 2^63 - 1 "
      "bytes");
  CHECK(pickle_error(tensor(0, {kMax, kMax, 0}, {1, kMax, 1})) == "no error");
  // Reading it would take forever.
  CHECK(pickle_error(tensor(0, {std::int64_t{1} << 40, 4}, {0, 1})) ==
        "x.pt: shape (1099511627776, 4) is expanded from a storage of 6 elements, expected at most "
        "2^32 elements");
  CHECK(pickle_error(tensor(-1, {2}, {1})) == "x.pt: the offset is -1, expected 0 or more");
  CHECK(pickle_error(tensor(0, {-2}, {1})) == "x.pt: an extent is -2, expected 0 or more");
  CHECK(pickle_error(tensor(5, {2}, {-1})) == "x.pt: a stride is -1, expected 0 or more");
  CHECK(pickle_error(tensor(0, {2, 3}, {1})) == "x.pt: shape (2, 3) has strides (1)");
  const Shape many(65, 1);
  CHECK(pickle_error(tensor(0, many, many)) ==
        "x.pt: the shape has 65 dimensions, expected at most 64");
}

TEST_CASE("a storage that is not the one that the pickle says is refused", "[torch]") {
  const auto of = [](const std::string& storage) {
    return pickle_error(pickled_dict(pickled("w"), pickled_tensor(storage, 0, {2}, {1})));
  };
  CHECK(of(pickled_storage("1", 6)) == "x.pt:w: there is no storage '1' in the file");
  CHECK(of(pickled_storage("../data.pkl", 6)) ==
        "x.pt:w: there is no storage '../data.pkl' in the file");
  CHECK(of(pickled_storage("0", 7)) == "x.pt:w: its storage '0' needs 28 bytes, found 24");
  CHECK(of(pickled_storage("0", INT64_MAX)) ==
        "x.pt:w: the storage is said to have 9223372036854775807 elements");
  CHECK(of(pickled_storage("0", -1)) ==
        "x.pt:w: the length of the storage is -1, expected 0 or more");
  CHECK(of("N") == "x.pt:w: is of no storage");
  CHECK(of("NQ") == "x.pt:w: is of no known storage");
  CHECK(of(pickled_storage("0", 6, "float32")) == "x.pt:w: is of no known dtype");
  const auto deflated = zip(
      {{"x/data.pkl", pickle_of(tensor(0, {6}, {1}))}, {"x/data/0", std::string(24, '\0'), true}});
  CHECK(TorchFile(deflated).error() == "x.pt: its storage is deflated, expected a stored one");
}

TEST_CASE("values that hold themselves, or each other many times, are refused at once", "[torch]") {
  // A list that holds itself.
  CHECK(pickle_error("]q\1h\1a") ==
        "x.pt: values nest deeper than 64 levels, or a list holds itself");
  // Lists that hold the one before twice.
  std::string doubling = "]q\1";
  for (int i = 0; i < 60; ++i) doubling += "](h\1h\1eq\1";
  CHECK(pickle_error("(" + doubling + "t") == "x.pt: the pickle names more than 1000000 values");
  // One long key on every level.
  std::string named = tensor(0, {1}, {1}) + "q\1" + pickled(std::string(100'000, 'k')) + "q\2(";
  for (int i = 0; i < 200; ++i) named += "}h\2h\1s";
  CHECK(pickle_error("(" + named + "tt") ==
        "x.pt: the names of the tensors take more than 16777216 bytes");
  CHECK(pickle_error(std::string(100'000, ']') + std::string(99'999, 'a')) ==
        "x.pt: values nest deeper than 64 levels, or a list holds itself");
  std::string parameters = tensor(0, {1}, {1});
  for (int i = 0; i < 1000; ++i) {
    parameters = pickled_global("torch._utils", "_rebuild_parameter") + "(" + parameters + "tR";
  }
  CHECK(contains(pickle_error(parameters), "is made by torch._utils._rebuild_parameter"));
}

TEST_CASE("a pickle that is longer than tensors need is refused", "[torch]") {
  const std::string a_million(1'000'000, ']');
  CHECK(pickle_error(a_million) == "x.pt: pickle, byte 1000001: goes on after 1000000 opcodes");
  std::string claimed = torch_file(pickle_of("N"), {});
  // Of the sizes, in the local header and in the directory.
  for (const std::size_t at : {std::size_t{18}, claimed.rfind("PK\1\2") + 20}) {
    claimed.replace(at, 8, std::string("\0\0\0\x40\0\0\0\x40", 8));
  }
  CHECK(TorchFile(claimed).error().starts_with("x.pt: "));
  const auto deflated =
      zip({{.name = "x/data.pkl", .bytes = pickle_of("N"), .deflated = true, .size = 1 << 30}});
  CHECK(TorchFile(deflated).error() ==
        "x.pt: data.pkl has 1073741824 bytes, expected at most 16777216");
}

TEST_CASE("a pickle that is not well formed is refused with the place", "[torch]") {
  const auto starts = [](const std::string& value, const std::string& start) {
    const std::string error = pickle_error(value);
    CAPTURE(error, start);
    CHECK(error.starts_with("x.pt: pickle, byte " + start));
  };
  starts("", "2: ends in the middle of a value");
  starts("NN", "4: ends in the middle of a value");
  starts("(N", "4: ends in the middle of a value");
  starts("N.", "3: goes on after its end");
  starts("X\xff\xff\xff\xffx", "2: is cut off");
  starts("\x8d\xff\xff\xff\xff\xff\xff\xff\xffx", "2: is cut off");
  starts("ctorch", "2: is cut off");
  starts("a", "2: takes a value that is not there");
  starts("]a", "3: takes a value that is not there");
  starts("](Na", "5: takes a value that is not there");
  starts("t", "2: takes a mark that is not there");
  starts("NNa", "4: adds to what is not a list");
  starts("]NNs", "5: adds to what is not a dict");
  starts("}(Nu", "5: adds a key without a value");
  starts("Nb", "3: takes a value that is not there");
  starts("]Nb", "4: adds to what is not an OrderedDict");
  starts("q\1", "2: takes a value that is not there");
  starts("Nr\xff\xff\xff\xff", "3: keeps a value under the number 4294967295");
  starts("h\1", "2: takes value 1, which has not been kept");
  starts("NN\x93", "4: names a global by what is not a string");
  starts(pickled_global("torch", "Size") + "NR", "15: calls with what is not a tuple");
  CHECK(TorchFile(torch_file("\x80\1N.", {})).error() ==
        "x.pt: pickle, byte 0: protocol 1, expected 2 to 5");
  const std::string whole = pickle_of(pickled_dict(pickled("w"), tensor(0, {2, 3}, {3, 1})));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string error = TorchFile(torch_file(whole.substr(0, size), {})).error();
    if (!error.starts_with("x.pt: pickle, byte ")) FAIL(size << ": " << error);
  }
}

TEST_CASE("names are keys and numbers, and stand for one tensor each", "[torch]") {
  const std::string x = tensor(0, {1}, {1});
  const auto in = [&](const std::string& key) { return pickled_dict(key, x); };
  CHECK(pickle_error(in("N")) ==
        "x.pt: a tensor stands under a key that is neither a string nor an integer");
  CHECK(pickle_error(pickled_dict("N", pickled("no tensor"))) == "no error");
  CHECK(pickle_error("}(" + pickled("a.b") + x + pickled("a") + in(pickled("b")) + "u") ==
        "x.pt: two tensors are called 'a.b'");
  CHECK(pickle_error("}(" + pickled("w") + x + pickled("w") + x + "u") ==
        "x.pt: two tensors are called 'w'");
  const TorchFile file(
      torch_file(pickle_of("}(" + pickled(-3) + x + pickled("l") + "](" + x + "N" + x + "e" + "u"),
                 {std::string(24, '\0')}));
  const auto set = file.set();
  REQUIRE(set->size() == 3);
  CHECK(set->tensor_name(0) == "-3");
  CHECK(set->tensor_name(1) == "l.0");
  CHECK(set->tensor_name(2) == "l.2");
  CHECK(set->info(2).name.ends_with("x.pt:l.2"));
}

TEST_CASE("the byte order is little or big", "[torch]") {
  const auto error = [](const std::string& order) {
    return TorchFile(zip({{"x/data.pkl", pickle_of(tensor(0, {6}, {1}))},
                          {"x/data/0", std::string(24, '\0')},
                          {"x/byteorder", order}}))
        .error();
  };
  CHECK(error("little") == "no error");
  CHECK(error("big") == "no error");
  CHECK(error("pdp") == "x.pt: byteorder is 'pdp', expected little or big");
  CHECK(error(std::string(17, 'x')) == "x.pt: byteorder has 17 bytes, expected at most 16");
}

TEST_CASE("the CRC-32 of a storage is checked where a tensor is all of it", "[torch]") {
  const auto error = [](const std::string& value, std::uint32_t crc) {
    return TorchFile(zip({{"x/data.pkl", pickle_of(value)},
                          {.name = "x/data/0", .bytes = std::string(24, '\1'), .crc = crc}}))
        .error();
  };
  const std::string damaged =
      "x.pt: is damaged: the CRC-32 of the data is not what the zip directory says";
  CHECK(error(tensor(0, {2, 3}, {3, 1}), 1) == damaged);
  CHECK(error(tensor(0, {2, 3}, {1, 2}), 1) == damaged);
  CHECK(error(tensor(0, {2, 3}, {3, 1}), crc32(std::string(24, '\1'))) == "no error");
  CHECK(error(tensor(0, {2, 3}, {3, 1}), 0) == "no error");
  CHECK(error(tensor(1, {5}, {1}), 1) == "no error");
  CHECK(error(tensor(0, {3}, {2}), 1) == "no error");
}

TEST_CASE("views of large storages come piece by piece", "[torch]") {
  // 64 x 64 x 64, permuted in every way, sliced and with steps: pieces of 128 KiB end within axes.
  constexpr std::int64_t kSize = std::int64_t{64} * 64 * 64;
  std::vector<std::int32_t> storage(kSize);
  std::iota(storage.begin(), storage.end(), 0);
  struct View {
    std::int64_t offset;
    Shape shape, strides;
  };
  const std::vector<View> views{
      {0, {64, 64, 64}, {4096, 1, 64}}, {0, {64, 64, 64}, {64, 4096, 1}},
      {0, {64, 64, 64}, {1, 4096, 64}}, {0, {64, 64, 64}, {64, 1, 4096}},
      {5, {64, 64, 19}, {4096, 64, 3}}, {4101, {21, 64, 2}, {12288, 64, 50}},
      {7, {64, 3}, {4096, 0}},          {1, {3, 1000, 5}, {0, 200, 2}},
      {0, {4095, 64}, {64, 1}},         {9, {300, 700}, {1, 1}},
  };
  for (const View& view : views) {
    CAPTURE(view.offset, view.shape, view.strides);
    const TorchFile file(
        torch_file(pickle_of(pickled_tensor(pickled_storage("0", kSize, "IntStorage"), view.offset,
                                            view.shape, view.strides)),
                   {bytes_of(storage)}));
    std::vector<std::int32_t> expected(static_cast<std::size_t>(lnorm::element_count(view.shape)));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Shape index = lnorm::index_of(static_cast<std::int64_t>(i), view.shape);
      expected[i] = static_cast<std::int32_t>(
          std::inner_product(index.begin(), index.end(), view.strides.begin(), view.offset));
    }
    const auto source = file.set()->open(0);
    const auto bytes = std::as_bytes(std::span(expected));
    for (const std::size_t piece : {expected.size() * 4, std::size_t{100'004}}) {
      const auto read = read_in_pieces(*source, bytes.size(), piece);
      CHECK(std::equal(read.begin(), read.end(), bytes.begin(), bytes.end()));
    }
    // The same number of elements, as they follow each other in the storage.
    const std::vector<std::int32_t> as_they_are = expected;
    for (const bool from_storage : {false, true}) {
      const std::int64_t first = from_storage ? 0 : view.offset;
      std::iota(expected.begin(), expected.end(), static_cast<std::int32_t>(first));
      const bool is_other = from_storage ? view.offset > 0 : expected != as_they_are;
      const auto without = source->without_strides(from_storage);
      REQUIRE((without != nullptr) == (is_other && first + std::ssize(expected) <= kSize));
      if (without == nullptr) continue;
      const auto read = read_in_pieces(*without, bytes.size(), bytes.size());
      CHECK(std::equal(read.begin(), read.end(), bytes.begin(), bytes.end()));
    }
  }
}
