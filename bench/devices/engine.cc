// Overwrites by the engine on a modelled device, in one process: what they cost the device, how long they wait.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/types.h"
#include "engine_run.h"
#include "models/catalogue.h"

namespace {

using varve::bench::EnginePart;
using varve::bench::EngineSetup;

struct Overwrites {
  double full, exponent;
  bool synced;
};

const std::map<std::string, Overwrites> kWorkloads = {
    {"zipf80", {0.80, 1, false}},    {"zipf90", {0.90, 1, false}},    {"uniform70", {0.70, 0, false}},    {"uniform80", {0.80, 0, false}},
    {"uniform85", {0.85, 0, false}}, {"uniform90", {0.90, 0, false}}, {"uniform85sync", {0.85, 0, true}}, {"zipf80sync", {0.80, 1, true}},
};

// Many small files, lines at the end of one, and a large one in a row (workloads.py).
const std::vector<std::string> kFileWorkloads = {"untar", "postmark", "lines", "stream"};

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

void print(const std::string& model, const std::string& workload, const EnginePart& part) {
  const double operations = static_cast<double>(std::max<std::uint64_t>(part.operations, 1));
  const auto each = [&](std::uint64_t count) { return static_cast<double>(count) / operations; };
  const auto each_byte = [&](std::uint64_t bytes) { return each(bytes) / 4096; };
  std::cout << fmt::format("{:10} {:13} {:5} {:7} ops {:8.3f} ms/op,", model, workload, part.name, part.operations,
                           1e3 * part.seconds / operations)
            << fmt::format(" programmed {:6.2f}, written {:.2f}, discarded {:.2f};", each_byte(part.programmed), each_byte(part.written),
                           each_byte(part.discarded))
            << fmt::format(" chunks {}, headers {:.2f}, payload {:.2f};", part.chunks, each(part.headers), each(part.payload))
            << fmt::format(" moved {:.2f}, holes {:.2f}, nodes {:.2f}, {} segments, {} checkpoints;", each(part.moved), each(part.in_holes),
                           each(part.nodes), part.segments, part.checkpoints)
            << fmt::format(" waits: 99.9 % {:.2f} s, longest {:.2f} s; {}\n", part.wait_999, part.longest_wait, part.explanation)
            << std::flush;
}

nlohmann::ordered_json json_of(const std::string& model, const std::string& workload, const EnginePart& part) {
  return {{"model", model},         {"workload", workload},       {"part", part.name},        {"operations", part.operations},
          {"seconds", part.seconds}, {"programmed", part.programmed}, {"erases", part.erases}, {"written", part.written},
          {"read", part.read},      {"discarded", part.discarded}, {"moved", part.moved},      {"in_holes", part.in_holes},
          {"chunks", part.chunks},  {"headers", part.headers},   {"payload", part.payload},
          {"nodes", part.nodes},    {"wait_999", part.wait_999}, {"longest_wait", part.longest_wait}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs overwrites by the engine on modelled devices, without a kernel; times are the device's.", "bench_device_engine");
  EngineSetup setup;
  std::string models = "sd-cheap", workloads = "zipf80,uniform85", json;
  bool watch = false, log = false;
  app.add_option("--models", models, "by comma; bench_device --help lists them")->capture_default_str();
  app.add_option("--workloads", workloads,
                 "by comma: zipf80, zipf90, uniform70, 80, 85, 90, and with sync zipf80sync, uniform85sync; untar, postmark, lines, stream")
      ->capture_default_str();
  app.add_option("--size", setup.size, "bytes of the device (suffixes as 1G)")->transform(CLI::AsSizeValue(false));
  app.add_option("--turns", setup.turns, "overwrites, as a share of the device")->capture_default_str();
  app.add_option("--scale", setup.scale, "times as much work with files")->capture_default_str();
  app.add_option("--budget", setup.budget_seconds, "seconds of the device after which a part ends");
  app.add_option("--speed", setup.speed, "times as fast as the real device: 1 to feel it; 0: as fast as it computes")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--remount-after", setup.remount_after, "overwrites after which it is mounted anew, once in each part");
  app.add_option("--segment", setup.segment_blocks, "blocks; 0: as mkfs.varve chooses");
  app.add_option("--streams", setup.streams, "as the mount option; 0: not known");
  app.add_option("--strategy", setup.strategy)->capture_default_str();
  app.add_option("--victims", setup.victims)->capture_default_str();
  app.add_option("--placement", setup.placement)->capture_default_str();
  app.add_option("--seed", setup.seed)->capture_default_str();
  app.add_flag("--discard", setup.discard, "as the mount option");
  app.add_flag("--watch", watch, "a line every 8192 overwrites, and on what each of more than two seconds was spent");
  app.add_flag("--log", log, "what the filesystem logs");
  app.add_option("--json", json, "file for the figures");
  CLI11_PARSE(app, argc, argv);
  if (!log) spdlog::set_level(spdlog::level::off);
  const std::function<void(const std::string&)> told = [watch](const std::string& line) {
    if (watch) std::cout << line << '\n' << std::flush;
  };
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  try {
    for (const std::string& model : words_of(models)) {
      for (const std::string& workload : words_of(workloads)) {
        setup.model = model;
        if (std::ranges::find(kFileWorkloads, workload) != kFileWorkloads.end()) {
          setup.files = workload;
          for (const EnginePart& part : varve::bench::run_files(setup)) {
            print(model, workload, part);
            rows.push_back(json_of(model, workload, part));
          }
          continue;
        }
        const auto found = kWorkloads.find(workload);
        if (found == kWorkloads.end()) throw std::runtime_error("no such workload: " + workload);
        setup.full = found->second.full;
        setup.exponent = found->second.exponent;
        setup.synced = found->second.synced;
        for (const EnginePart& part : varve::bench::run_on_model(setup, told)) {
          print(model, workload, part);
          rows.push_back(json_of(model, workload, part));
        }
      }
    }
  } catch (const std::exception& what) {
    std::cerr << "bench_device_engine: " << what.what() << '\n';
    return 1;
  }
  if (json.empty()) return 0;
  std::FILE* const out = std::fopen(json.c_str(), "w");
  if (!out || std::fputs((rows.dump(1) + "\n").c_str(), out) < 0 || std::fclose(out) != 0) {
    std::perror(json.c_str());
    return 1;
  }
  return 0;
}
