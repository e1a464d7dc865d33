#include "lnorm/io/os.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "support/catch.hpp"

namespace os = lnorm::os;

namespace {

// A pipe whose ends do not block.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) == 0);
    out = os::FileDescriptor(ends[0], true);
    in = os::FileDescriptor(ends[1], true);
  }
  os::FileDescriptor out;
  os::FileDescriptor in;
};

void wait_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

}  // namespace

TEST_CASE("a pipe that does not block is waited for", "[io]") {
  Pipe pipe;
  std::vector<std::byte> sent(1 << 20);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i % 251);
  std::thread writer([&] {
    wait_a_little();  // the reader finds the pipe empty
    os::write_all(pipe.in, sent, "the pipe");
    pipe.in.close("the pipe");
  });
  std::vector<std::byte> received;
  std::vector<std::byte> some(100'000);
  while (const std::size_t got = os::read_some(pipe.out, some, "the pipe")) {
    received.insert(received.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(got));
    if (received.size() < 300'000) wait_a_little();  // the writer finds it full
  }
  writer.join();
  CHECK((received == sent));
}
