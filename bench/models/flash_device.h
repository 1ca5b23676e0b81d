// The time that a flash device takes, above the mapping that decides what it programs.
#pragma once

#include <array>
#include <memory>

#include "models/ftl.h"
#include "models/model.h"

namespace varve::bench {

struct FlashTiming {
  double read_request = 0, write_request = 0;      // seconds for each request, besides its bytes
  double scattered_read = 0, scattered_write = 0;  // more for one that goes on behind none of the last ones
  double flush = 0;                                // if anything was written since the last one
  double read_rate = 0, program_rate = 0;          // bytes a second
  double cache_rate = 0;                           // bytes a second into single-level cells, where it has a cache of these
  double copy_rate = 0;                            // bytes a second that the device reads and programs for itself
  double erase = 0;                                // seconds
  double tidy_after = 1;                           // seconds without a request, before it does what it has put off
  unsigned at_once = 1;                            // requests
  double read_watts = 0, program_watts = 0;        // above idling
};

class FlashDevice : public DeviceModel {
 public:
  FlashDevice(Facts facts, const FlashTiming& timing, std::unique_ptr<Ftl> ftl)
      : DeviceModel(std::move(facts), timing.at_once), timing_(timing), ftl_(std::move(ftl)) {}

  std::uint64_t most_erases() const override { return ftl_->most_erases_of_a_block(); }

 protected:
  Duration seconds_for(const Request& request) override;
  double idle(double seconds) override;

 private:
  // The ends of the last runs of one kind, to tell what goes on.
  class Runs {
   public:
    bool goes_on(const Request& request);

   private:
    std::array<std::uint64_t, 8> ends_{};
    std::size_t next_ = 0;
  };

  Duration read(const Request& request);
  Duration write(const Request& request);
  Duration flush();
  double account(const FlashWork& work);  // seconds

  const FlashTiming timing_;
  const std::unique_ptr<Ftl> ftl_;
  Runs reads_, writes_;
  bool dirty_ = false;
};

}  // namespace varve::bench
