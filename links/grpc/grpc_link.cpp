// Both ends of a gRPC link. The receiver is the server; the client's call is unary for each block, or one stream.
#include "link.grpc.pb.h"
#include "pipemark_link.hpp"

#include <future>
#include <grpcpp/grpcpp.h>
#include <iostream>

/// Shows blocks to the reference code, and makes the replies. Only one call is open at a time.
class Receiver {
  public:
    explicit Receiver(pipemark::Link &link) : link_(link) {}

    /// False at the end of the stream.
    bool take(const Block &block, Block &reply) {
        if (!link_.received(block.data().data(), block.data().size())) {
            ended_.set_value();
            return false;
        }
        if (link_.round_trips()) {
            auto next = link_.next();
            reply.set_data(next.data(), next.size());
        }
        return true;
    }

    void wait() { ended_.get_future().wait(); }

  private:
    pipemark::Link &link_;
    std::promise<void> ended_;
};

class Service final : public Link::Service {
  public:
    explicit Service(Receiver &receiver) : receiver_(receiver) {}

    grpc::Status Call(grpc::ServerContext *, const Block *block, Block *reply) override {
        receiver_.take(*block, *reply);
        return grpc::Status::OK;
    }

    grpc::Status Stream(grpc::ServerContext *, grpc::ServerReaderWriter<Block, Block> *stream) override {
        Block block, reply;
        while (stream->Read(&block) && receiver_.take(block, reply))
            if (!reply.data().empty())
                stream->Write(reply);
        return grpc::Status::OK;
    }

  private:
    Receiver &receiver_;
};

static void serve(pipemark::Link &link, const std::string &address) {
    Receiver receiver(link);
    Service service(receiver);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterService(&service);
    auto server = builder.BuildAndStart();
    if (!server)
        throw std::runtime_error("the server can't listen on " + address);
    link.bound();
    link.ready();
    receiver.wait();
    link.done();
    server->Shutdown();
}

static void call(pipemark::Link &link, const std::string &address) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10)))
        throw std::runtime_error("no connection to " + address);
    auto stub = ::Link::NewStub(channel);
    bool streams = link.option("call", "unary") == "stream";
    grpc::ClientContext context;
    auto stream = streams ? stub->Stream(&context) : nullptr;
    Block block, reply;
    link.ready();
    for (auto next = link.next(); !next.empty(); next = link.next()) {
        block.set_data(next.data(), next.size());
        bool answered = link.round_trips() && !link.last();
        if (streams) {
            if (!stream->Write(block) || (answered && !stream->Read(&reply)))
                throw std::runtime_error("the stream broke");
        } else {
            grpc::ClientContext once;
            auto status = stub->Call(&once, block, &reply);
            if (!status.ok())
                throw std::runtime_error(status.error_message());
        }
        if (answered)
            link.received(reply.data().data(), reply.data().size());
    }
    if (streams) {
        stream->WritesDone();
        stream->Finish();
    }
    link.done();
}

int main() try {
    pipemark::Link link;
    auto address = "unix:" + link.directory() + "/grpc.sock";
    link.sender() ? call(link, address) : serve(link, address);
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
