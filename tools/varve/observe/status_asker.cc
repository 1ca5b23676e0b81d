#include "varve/observe/status_asker.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "base/errc.h"
#include "base/mutex.h"
#include "control/patience.h"
#include "control/place.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

std::atomic<unsigned> waiting = 0;  // threads

}  // namespace

bool StatusAsker::waits() { return waiting.load() != 0; }

class StatusAsker::Question {
 public:
  static std::shared_ptr<Question> begin(const std::string& place) {
    auto question = std::make_shared<Question>();
    waiting.fetch_add(1);
    std::thread([question, place] {  // waits in the kernel for as long as the daemon is stopped
      control::Patience::keep_silent();
      question->set(look(place));
      waiting.fetch_sub(1);
    }).detach();
    return question;
  }

  // None: not by then.
  std::optional<Result<Json>> wait_until(std::chrono::steady_clock::time_point end) {
    Lock lock(mutex_);
    const auto is_there = [this]() REQUIRES(mutex_) { return answer_.has_value(); };
    if (!answered_.wait_for(lock, end - std::chrono::steady_clock::now(), is_there)) return {};
    return std::exchange(answer_, {});
  }

 private:
  static Result<Json> look(const std::string& place) { return mount_status(TRY(control::find_mounted(place))); }

  void set(Result<Json> answer) {
    const Lock lock(mutex_);
    answer_.emplace(std::move(answer));
    answered_.notify_all();
  }

  Mutex mutex_;
  Condition answered_;
  std::optional<Result<Json>> answer_ GUARDED_BY(mutex_);
};

std::vector<Result<Json>> StatusAsker::ask(const std::vector<std::string>& places) {
  const auto end = std::chrono::steady_clock::now() + patience_;
  for (const std::string& place : places)
    if (auto& question = open_[place]; !question) question = Question::begin(place);
  std::vector<Result<Json>> answers;
  for (const std::string& place : places) {
    const auto question = open_.find(place);
    if (question == open_.end()) {  // named twice
      answers.push_back(Error(Errc::invalid, fmt::format("{}: named twice", place)));
      continue;
    }
    auto answer = question->second->wait_until(end);
    if (answer) open_.erase(question);
    answers.push_back(answer ? std::move(*answer) : Error(Errc::busy, fmt::format("{}: its daemon does not answer", place)));
  }
  return answers;
}

}  // namespace varve::tool
