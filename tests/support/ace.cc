#include "support/ace.h"

namespace varve::test {

namespace {

constexpr std::string_view kSetup = R"(
  mkdir /A 0755
  mkdir /B 0755
  mkdir /A/C 0755
  create /foo 0644
  write /foo 0 10000 1
  create /A/bar 0644
  write /A/bar 0 4096 2
  create /A/C/deep 0600
  symlink /sym foo
  setxattr /foo user.old 10 3 set
)";

constexpr std::string_view kAlphabet = R"(
  create /new 0644
  create /A/new 0644
  mknod /fifo 010600 0
  mkdir /D 0755
  mkdir /A/D 0755
  symlink /A/sym ../foo
  link /foo /A/hard
  link /A/bar /hard
  unlink /foo
  unlink /A/bar
  unlink /sym
  unlink /A/C/deep
  rmdir /B
  rename /foo /moved move
  rename /foo /A/moved noreplace
  rename /foo /A/bar move
  rename /A/bar /foo move
  rename /A/bar /sym move
  rename /B /A/D move
  rename /A /D move
  rename /A/C /B move
  rename /A/C /C move
  rename /foo /A/bar exchange
  rename /A /B exchange
  rename /A/C /B exchange
  rename /A/bar /B exchange
  append /foo 100 11
  append /foo 8192 12
  append /A/bar 4096 13
  write /foo 0 4096 14
  write /foo 4000 300 15
  write /foo 9000 5000 16
  write /foo 20000 4096 17
  write /foo 1048576 100 18
  write /A/bar 0 65536 19
  truncate /foo 0
  truncate /foo 5000
  truncate /foo 8192
  truncate /foo 12000
  truncate /A/bar 100
  truncate /A/bar 40960
  fallocate /foo allocate 8192 16384
  fallocate /foo keep 8192 16384
  fallocate /foo punch 4096 4096
  fallocate /foo punch 1000 7000
  fallocate /foo zero 2000 4000
  fallocate /foo zero 4096 65536
  fallocate /foo zero-keep 0 16384
  setxattr /foo user.new 20 21 create
  setxattr /foo user.old 5000 22 replace
  setxattr /A user.dir 30 23 set
  removexattr /foo user.old
  chmod /foo 0600
  chmod /A 0700
  chown /A/bar 500 500
  utimes /foo 1000000001 -5
)";

bool succeeds(ModelFs& state, const Step& step) {
  if (!apply(state, step, Timestamp{}).ok()) return false;
  return true;
}

ModelFs setup_state() {
  ModelFs state;
  for (const Step& step : ace_setup()) (void)apply(state, step, Timestamp{});
  return state;
}

Step ending(std::size_t number) {
  constexpr std::string_view kEndings[] = {"fsync /A", "sync", "fsync /"};
  return *parse_step(kEndings[number % std::size(kEndings)]);
}

void add_sequence(const Script& operations, std::vector<Script>& out) {
  Script plain = operations;
  plain.push_back(ending(out.size()));
  if (operations.size() > 1) {
    Script synced;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      synced.push_back(operations[i]);
      synced.push_back(ending(i + 1 < operations.size() ? 1 : out.size()));
    }
    out.push_back(std::move(synced));
  }
  out.push_back(std::move(plain));
}

}  // namespace

Script ace_setup() { return script(kSetup); }

std::vector<Step> ace_alphabet() {
  const ModelFs start = setup_state();
  std::vector<Step> alphabet;
  for (const Step& step : script(kAlphabet)) {
    ModelFs state = start;
    if (succeeds(state, step)) alphabet.push_back(step);
  }
  return alphabet;
}

std::vector<Script> ace_sequences(unsigned length) {
  const ModelFs start = setup_state();
  std::vector<Script> sequences;
  for (const Step& first : script(kAlphabet)) {
    ModelFs after_first = start;
    if (!succeeds(after_first, first)) continue;
    if (length == 1) {
      add_sequence({first}, sequences);
      continue;
    }
    for (const Step& second : script(kAlphabet)) {
      ModelFs state = after_first;
      if (succeeds(state, second)) add_sequence({first, second}, sequences);
    }
  }
  return sequences;
}

}  // namespace varve::test
