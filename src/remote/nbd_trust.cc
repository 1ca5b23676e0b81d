#include "remote/nbd_trust.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <vector>

#include "remote/network_name.h"

namespace varve::remote {

namespace {

// "a%20b" is "a b".
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string digits(text.substr(at, 3));
    char* end = nullptr;
    const long code = digits.size() == 3 && digits[0] == '%' ? std::strtol(digits.c_str() + 1, &end, 16) : 0;
    const bool is_escape = end == digits.c_str() + 3;
    plain += is_escape ? static_cast<char>(code) : text[at];
    if (is_escape) at += 2;
  }
  return plain;
}

std::optional<std::string> parameter(std::string_view uri, std::string_view key) {
  const auto written = parameter_of(uri, key);
  return written ? std::optional(without_escapes(*written)) : std::nullopt;
}

bool has_authority(const std::string& folder) { return ::access((folder + "/ca-cert.pem").c_str(), R_OK) == 0; }

std::vector<std::string> usual_folders() {
  std::vector<std::string> folders = {"/etc/pki/libnbd"};
  if (const char* home = std::getenv("HOME"); home && ::geteuid() != 0)
    folders = {std::string(home) + "/.pki/libnbd", std::string(home) + "/.config/pki/libnbd"};
  return folders;
}

}  // namespace

Status check_trust(const std::string& uri) {
  if (!uri.starts_with("nbds")) return {};
  if (const auto keys = parameter(uri, "tls-psk-file")) {
    if (::access(keys->c_str(), R_OK) == 0) return {};
    return Error(Errc::invalid, fmt::format("{}: {}: {}: this file of keys is what tls-psk-file= names", uri, *keys, errno_text()));
  }
  const auto given = parameter(uri, "tls-certificates");
  const std::vector<std::string> folders = given ? std::vector{*given} : usual_folders();
  for (const std::string& folder : folders)
    if (has_authority(folder)) return {};
  return Error(Errc::invalid, fmt::format("{}: nothing here tells this server from another: there is no file ca-cert.pem in {}: name the "
                                          "folder that has the certificate of the server's CA (?tls-certificates=FOLDER), or a file "
                                          "of keys (?tls-psk-file=FILE)", uri, fmt::join(folders, " or ")));
}

std::string_view remedy_for(std::string_view error) {
  struct Remedy {
    std::string_view sign, what;
  };
  constexpr std::array<Remedy, 6> kRemedies = {{
      {"getlogin", "write the key's user in front of the host: nbds://USER@HOST/..."},
      {"requires TLS", "the server takes only encrypted connections: write nbds:// instead of nbd://"},
      {"refused TLS", "the server has no encryption: set it up there, or write nbd:// if nobody can listen on the way"},
      {"certificate verification", "the server's certificate is not from the CA in tls-certificates=, or is for another host, or too old"},
      {"PSK file", "check the user's name in front of the host, and the file behind tls-psk-file="},
      {"gnutls", "certificates or keys of client and server do not fit: see its log, tls-certificates= and tls-psk-file="},
  }};
  for (const Remedy& remedy : kRemedies)
    if (error.find(remedy.sign) != std::string_view::npos) return remedy.what;
  return "check that the server runs, and that it has an export of this name";
}

}  // namespace varve::remote
