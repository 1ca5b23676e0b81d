#include "fuzz/structure/mutation.h"

#include <algorithm>
#include <array>

#include "fuzz/structure/base_image.h"

namespace varve::fuzz {

namespace {

constexpr std::array<const char*, kActs> kNames = {"alter field", "alter key", "remove",     "duplicate", "swap",
                                                   "copy",        "splice",    "alter header", "raw bytes", "copy block",
                                                   "one copy",    "lose",      "spoil",      "keep reference"};
// What reaches deep comes more often than what is noticed at once.
constexpr std::array<Act, 32> kOften = {
    Act::alter_field, Act::alter_field, Act::alter_field, Act::alter_field, Act::alter_field, Act::alter_field, Act::alter_field,
    Act::alter_field, Act::alter_field, Act::alter_field, Act::alter_field, Act::alter_field, Act::alter_key, Act::alter_key, Act::remove,
    Act::remove, Act::duplicate, Act::duplicate, Act::swap, Act::swap, Act::copy, Act::copy, Act::splice, Act::alter_header,
    Act::alter_header, Act::alter_header, Act::alter_header, Act::raw_bytes, Act::copy_block, Act::one_copy, Act::lose, Act::spoil};

std::uint64_t random_value(Random& random) {
  const std::uint64_t value = random.next();
  switch (random.next() % 4) {
    case 0: return value;
    case 1: return value & 0xFFFF;
    default: return value & 0xFF;
  }
}

}  // namespace

Recipe parse_recipe(Input input) {
  Source source(input);
  Recipe recipe;
  recipe.base = static_cast<std::uint8_t>(source.number(1));
  recipe.plan = static_cast<std::uint8_t>(source.number(1));
  while (!source.empty() && recipe.mutations.size() < kMostMutations) {
    Mutation& m = recipe.mutations.emplace_back();
    m.act = static_cast<Act>(source.number(1) % kActs);
    m.how = static_cast<std::uint8_t>(source.number(1));
    m.field = static_cast<std::uint8_t>(source.number(1));
    m.other = static_cast<std::uint8_t>(source.number(1));
    m.block = static_cast<std::uint16_t>(source.number(2));
    m.element = static_cast<std::uint16_t>(source.number(2));
    m.value = source.number(8);
  }
  return recipe;
}

std::vector<std::byte> bytes_of(const Recipe& recipe) {
  std::vector<std::byte> bytes{std::byte{recipe.base}, std::byte{recipe.plan}};
  const auto put = [&](std::uint64_t number, unsigned size) {
    for (unsigned i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(number >> (8 * i)));
  };
  for (const Mutation& m : recipe.mutations) {
    for (const std::uint8_t number : {static_cast<std::uint8_t>(m.act), m.how, m.field, m.other}) put(number, 1);
    put(m.block, 2);
    put(m.element, 2);
    put(m.value, 8);
  }
  return bytes;
}

const char* name_of(Act act) { return kNames.at(static_cast<unsigned>(act)); }

Mutation random_mutation(Random& random) {
  Mutation m;
  m.act = random.next() % 64 == 0 ? Act::keep_reference : kOften.at(random.next() % kOften.size());
  m.how = static_cast<std::uint8_t>(random.next());
  m.field = static_cast<std::uint8_t>(random.next());
  m.other = static_cast<std::uint8_t>(random.next());
  m.block = static_cast<std::uint16_t>(random.next());
  m.element = static_cast<std::uint16_t>(random.next());
  m.value = random_value(random);
  return m;
}

Recipe random_recipe(Random& random) {
  Recipe recipe;
  recipe.base = static_cast<std::uint8_t>(random.next() % kBaseImages);
  recipe.plan = static_cast<std::uint8_t>(random.next());
  // Most have one or two, since each more is one more that may be noticed at once.
  std::uint64_t count = 1 + random.next() % 2;
  if (random.next() % 4 == 0) count += random.next() % 5;
  for (std::uint64_t i = 0; i < count; ++i) recipe.mutations.push_back(random_mutation(random));
  return recipe;
}

namespace {

void vary_one(Mutation& m, Random& random) {
  const Mutation fresh = random_mutation(random);
  switch (random.next() % 8) {
    case 0: m.act = fresh.act; break;
    case 1: m.how = fresh.how; break;
    case 2: m.field = fresh.field; break;
    case 3: m.block = fresh.block; break;
    case 4: m.element = fresh.element; break;
    case 5: m.other = fresh.other; break;
    case 6: m.value = fresh.value; break;
    default: m.value += random.next() % 2 ? 1 : ~0ULL;
  }
}

}  // namespace

void vary(Recipe& recipe, Random& random) {
  auto& list = recipe.mutations;
  const std::size_t at = list.empty() ? 0 : random.next() % list.size();
  const auto place = list.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random.next() % 8) {
    case 0: recipe.base = static_cast<std::uint8_t>(random.next() % kBaseImages); return;
    case 1: recipe.plan = static_cast<std::uint8_t>(random.next()); return;
    case 2:
      if (list.size() > 1) list.erase(place);
      return;
    case 3:
    case 4:
      if (list.size() < kMostMutations) list.insert(place, random_mutation(random));
      return;
    default: break;
  }
  if (list.empty()) list.push_back(random_mutation(random));
  else vary_one(list[at], random);
}

}  // namespace varve::fuzz
