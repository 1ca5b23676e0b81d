#include "varve/observe/metrics_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/errc.h"
#include "shared/interruptible.h"

namespace varve::tool {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Protocol = asio::generic::stream_protocol;

constexpr auto kPatience = std::chrono::seconds(10);  // for a client that says nothing

// One client; lives in its callbacks.
class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(Protocol::socket socket, const MakePage& make)
      : timer_(socket.get_executor()), socket_(std::move(socket)), make_(make) {}

  void start() {
    timer_.expires_after(kPatience);
    timer_.async_wait([self = shared_from_this()](beast::error_code error) {
      if (!error) self->socket_.close(error);
    });
    http::async_read(socket_, buffer_, request_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (error) return self->end();
      self->answer();
    });
  }

 private:
  void answer() {
    const bool is_known = request_.target() == "/metrics" || request_.target() == "/";
    const bool is_get = request_.method() == http::verb::get;
    response_.result(!is_get    ? http::status::method_not_allowed
                     : is_known ? http::status::ok
                                : http::status::not_found);
    response_.version(request_.version());
    response_.keep_alive(false);
    Page page{"text/plain", is_get ? "only /metrics\n" : "only GET\n"};
    if (is_get && is_known) page = make_(accepted());
    response_.set(http::field::content_type, page.type);
    response_.body() = std::move(page.text);
    response_.prepare_payload();
    http::async_write(socket_, response_, [self = shared_from_this()](beast::error_code, std::size_t) { self->end(); });
  }
  std::string_view accepted() const {
    const auto accept = request_[http::field::accept];
    return {accept.data(), accept.size()};
  }
  void end() {
    beast::error_code ignored;
    socket_.shutdown(Protocol::socket::shutdown_both, ignored);
    timer_.cancel();
  }

  asio::steady_timer timer_;
  Protocol::socket socket_;
  const MakePage& make_;
  beast::flat_buffer buffer_{8192};
  http::request<http::empty_body> request_;
  http::response<http::string_body> response_;
};

void accept_next(asio::basic_socket_acceptor<Protocol>& acceptor, const MakePage& make) {
  acceptor.async_accept([&](beast::error_code error, Protocol::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) std::make_shared<Client>(std::move(socket), make)->start();
    accept_next(acceptor, make);
  });
}

// A socket that is left of a server which has ended: nobody listens there any more.
bool is_abandoned(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  asio::io_context context(1);
  asio::local::stream_protocol::socket socket(context);
  beast::error_code error;
  socket.connect(asio::local::stream_protocol::endpoint(path), error);
  return error == asio::error::connection_refused;
}

// The socket that a server has made; goes with it, unless another one stands there by then.
class SocketFile {
 public:
  explicit SocketFile(std::string path) : path_(std::move(path)) { is_there_ = ::lstat(path_.c_str(), &made_) == 0; }
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  ~SocketFile() {
    struct stat now {};
    if (is_there_ && ::lstat(path_.c_str(), &now) == 0 && now.st_dev == made_.st_dev && now.st_ino == made_.st_ino) ::unlink(path_.c_str());
  }

 private:
  const std::string path_;
  struct stat made_ {};
  bool is_there_ = false;
};

Result<Protocol::endpoint> endpoint_of(const std::string& place) {
  if (place.starts_with("unix:")) {
    const std::string path = place.substr(5);
    if (path.empty() || path.size() > 107)
      return Error(Errc::invalid, fmt::format("--listen {}: a path of 1 to 107 bytes follows unix:", place));
    if (is_abandoned(path)) ::unlink(path.c_str());
    return Protocol::endpoint(asio::local::stream_protocol::endpoint(path));
  }
  const auto colon = place.rfind(':');
  beast::error_code error;
  const auto address = asio::ip::make_address(place.substr(0, colon == std::string::npos ? 0 : colon), error);
  const std::string digits = colon == std::string::npos ? "" : place.substr(colon + 1);
  const bool is_number =
      !digits.empty() && digits.size() < 6 && digits.find_first_not_of("0123456789") == std::string::npos;
  if (error || !address.is_loopback() || !is_number || std::stoul(digits) > 65535)
    return Error(
        Errc::invalid,
        fmt::format("--listen {}: must be unix:PATH, or an address of this machine's loopback, as 127.0.0.1:9811",
                    place));
  return Protocol::endpoint(asio::ip::tcp::endpoint(address, static_cast<std::uint16_t>(std::stoul(digits))));
}

}  // namespace

Status serve_text(const std::string& place, const MakePage& make) {
  const Protocol::endpoint endpoint = TRY(endpoint_of(place));
  asio::io_context context(1);
  asio::basic_socket_acceptor<Protocol> acceptor(context);
  beast::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error && endpoint.protocol().family() != AF_UNIX)
    acceptor.set_option(asio::socket_base::reuse_address(true), error);
  const mode_t mask = ::umask(0177);  // a socket is for its owner
  if (!error) acceptor.bind(endpoint, error);
  ::umask(mask);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return Error(errc_from_errno(error.value()), fmt::format("--listen {}: {}", place, error.message()));
  std::optional<SocketFile> file;
  if (place.starts_with("unix:")) file.emplace(place.substr(5));
  asio::signal_set signals(context);
  for (const int signal : kInterruptions)
    if (!is_ignored(signal)) signals.add(signal);
  signals.async_wait([&](beast::error_code, int) { context.stop(); });
  accept_next(acceptor, make);
  context.run();
  return {};
}

}  // namespace varve::tool
