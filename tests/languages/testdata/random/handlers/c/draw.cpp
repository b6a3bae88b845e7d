// Draws from each random source of C++.
#include "runner.hpp"

#include <algorithm>
#include <numeric>
#include <random>

RUNNER_HANDLER(drawCpp) {
  std::random_device device;
  std::mt19937_64 twister((std::uint64_t(device()) << 32) | device());
  std::vector<int> numbers(40);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::shuffle(numbers.begin(), numbers.end(), twister);
  std::string shuffled;
  for (int n : numbers) shuffled += std::to_string(n) + " ";
  std::string engines; // each has 31 bits
  for (int i = 0; i < 3; i++) engines += std::to_string(std::default_random_engine(device())()) + " ";
  auto two = [](auto &source) { return std::to_string(source()) + " " + std::to_string(source()); };
  return runner::ok(runner::object({
      {"random_device", two(device)},
      {"default_random_engine", engines},
      {"mt19937_64", two(twister)},
      {"shuffle", shuffled},
      {"std::rand", std::to_string(std::rand()) + " " + std::to_string(std::rand()) + " " + std::to_string(std::rand())},
  }));
}
