package velodrome.interop;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.codec.spdy.DefaultSpdyDataFrame;
import io.netty.handler.codec.spdy.DefaultSpdyRstStreamFrame;
import io.netty.handler.codec.spdy.DefaultSpdySynReplyFrame;
import io.netty.handler.codec.spdy.DefaultSpdySynStreamFrame;
import io.netty.handler.codec.spdy.SpdyDataFrame;
import io.netty.handler.codec.spdy.SpdyFrame;
import io.netty.handler.codec.spdy.SpdyFrameCodec;
import io.netty.handler.codec.spdy.SpdyGoAwayFrame;
import io.netty.handler.codec.spdy.SpdyHeaders;
import io.netty.handler.codec.spdy.SpdyHeadersFrame;
import io.netty.handler.codec.spdy.SpdyRstStreamFrame;
import io.netty.handler.codec.spdy.SpdySessionHandler;
import io.netty.handler.codec.spdy.SpdyStreamStatus;
import io.netty.handler.codec.spdy.SpdySynReplyFrame;
import io.netty.handler.codec.spdy.SpdySynStreamFrame;
import io.netty.handler.codec.spdy.SpdyVersion;
import io.netty.handler.ssl.SslHandler;
import io.netty.util.concurrent.Future;
import java.io.ByteArrayOutputStream;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;

/** Netty 4.1: its frame codec and session handler, which keep the windows and the streams' states; server and client. */
public final class NettyPeer {
    /** Bytes of a DATA frame. */
    private static final int FRAME = 16_384;

    private NettyPeer() {}

    public static void main(String[] arguments) throws Exception {
        Options options = Options.parse(arguments, Set.of("3.1"));
        if (options.verb.equals("serve")) serve(options);
        else Client.fetch(options.scenario, () -> connect(options));
    }

    private static void serve(Options options) throws Exception {
        SSLContext tls = options.tls ? Tls.server(options.cert, options.key) : null;
        Channel channel = new ServerBootstrap()
            .group(new NioEventLoopGroup(1))
            .channel(NioServerSocketChannel.class)
            .childOption(ChannelOption.TCP_NODELAY, true)
            .childHandler(new ChannelInitializer<Channel>() {
                @Override protected void initChannel(Channel child) {
                    pipeline(child.pipeline(), tls, false, options).addLast(new ServerHandler());
                }
            })
            .bind("127.0.0.1", 0).sync().channel();
        Contract.announce(((InetSocketAddress) channel.localAddress()).getPort());
    }

    private static Client connect(Options options) throws Exception {
        SSLContext tls = options.tls ? Tls.client() : null;
        ClientHandler handler = new ClientHandler();
        Channel channel = new Bootstrap()
            .group(new NioEventLoopGroup(1))
            .channel(NioSocketChannel.class)
            .option(ChannelOption.TCP_NODELAY, true)
            .handler(new ChannelInitializer<Channel>() {
                @Override protected void initChannel(Channel child) {
                    pipeline(child.pipeline(), tls, true, options).addLast(handler);
                }
            })
            .connect("127.0.0.1", options.port).sync().channel();
        if (options.tls) {
            SslHandler handshake = channel.pipeline().get(SslHandler.class);
            handshake.handshakeFuture().sync();
            Tls.require(handshake.engine().getApplicationProtocol(), options.protocol());
        }
        return new NettyClient(channel, handler);
    }

    private static ChannelPipeline pipeline(ChannelPipeline line, SSLContext tls, boolean client, Options options) {
        if (tls != null) line.addLast(new SslHandler(Tls.engine(tls, client, options.protocol())));
        return line.addLast(new SpdyFrameCodec(SpdyVersion.SPDY_3_1))
            .addLast(new SpdySessionHandler(SpdyVersion.SPDY_3_1, !client));
    }

    /** Writes a body in frames; the last has FIN. The session handler keeps what the windows do not allow yet. */
    private static void writeBody(ChannelHandlerContext context, int id, byte[] body) {
        int at = 0;
        do {
            int length = Math.min(FRAME, body.length - at);
            DefaultSpdyDataFrame frame = new DefaultSpdyDataFrame(id, Unpooled.wrappedBuffer(body, at, length));
            at += length;
            frame.setLast(at == body.length);
            context.write(frame);
        } while (at < body.length);
        context.flush();
    }

    private static String header(SpdyHeaders headers, CharSequence name) {
        return headers.getAsString(name);
    }

    private static final class ServerHandler extends SimpleChannelInboundHandler<SpdyFrame> {
        /** A request that is still being read. */
        private record Request(SpdyHeaders headers, ByteArrayOutputStream body) {
            String path() {
                return header(headers, SpdyHeaders.HttpNames.PATH);
            }
        }

        private final Map<Integer, Request> requests = new HashMap<>();
        private int endless = -1;
        private int nextPush = 2;

        @Override protected void channelRead0(ChannelHandlerContext context, SpdyFrame frame) {
            if (frame instanceof SpdySynStreamFrame syn) {
                Request request = new Request(syn.headers(), new ByteArrayOutputStream());
                if (syn.isLast()) answer(context, syn.streamId(), request);
                else requests.put(syn.streamId(), request);
            } else if (frame instanceof SpdyDataFrame data) {
                Request request = requests.get(data.streamId());
                if (request == null) return;
                request.body.writeBytes(ByteBufUtil.getBytes(data.content()));
                if (data.isLast()) answer(context, data.streamId(), requests.remove(data.streamId()));
            } else if (frame instanceof SpdyRstStreamFrame reset) {
                requests.remove(reset.streamId());
                if (reset.streamId() != endless) return;
                endless = -1;
                Contract.cancelled();
            }
        }

        private void answer(ChannelHandlerContext context, int id, Request request) {
            switch (request.path()) {
                case "/endless" -> {
                    endless = id;
                    reply(context, id, "200 OK", -1);
                    endless(context, id, 0);
                }
                case "/goaway" -> {
                    // Closing is Netty's GOAWAY: the session handler waits for what is open.
                    context.close();
                    reply(context, id, "200 OK", Contract.LARGE);
                    slowly(context, id, 0);
                }
                default -> {
                    if (request.path().equals("/push")) push(context, id, request.headers);
                    byte[] body = Contract.resource(request.path(), request.body.toByteArray());
                    reply(context, id, body == null ? "404 Not Found" : "200 OK", body == null ? 0 : body.length);
                    writeBody(context, id, body == null ? new byte[0] : body);
                }
            }
        }

        private void reply(ChannelHandlerContext context, int id, String status, int length) {
            SpdySynReplyFrame reply = new DefaultSpdySynReplyFrame(id);
            reply.headers().set(SpdyHeaders.HttpNames.STATUS, status).set(SpdyHeaders.HttpNames.VERSION, "HTTP/1.1");
            if (length >= 0) reply.headers().set("content-length", Integer.toString(length));
            context.writeAndFlush(reply);
        }

        /** Pushes from the origin that was asked: a client may refuse another. */
        private void push(ChannelHandlerContext context, int parent, SpdyHeaders asked) {
            int id = nextPush;
            nextPush += 2;
            SpdySynStreamFrame syn = new DefaultSpdySynStreamFrame(id, parent, (byte) 0);
            syn.setUnidirectional(true);
            syn.headers()
                .set(SpdyHeaders.HttpNames.METHOD, "GET")
                .set(SpdyHeaders.HttpNames.SCHEME, header(asked, SpdyHeaders.HttpNames.SCHEME))
                .set(SpdyHeaders.HttpNames.HOST, header(asked, SpdyHeaders.HttpNames.HOST))
                .set(SpdyHeaders.HttpNames.PATH, "/pushed")
                .set(SpdyHeaders.HttpNames.STATUS, "200 OK")
                .set(SpdyHeaders.HttpNames.VERSION, "HTTP/1.1");
            context.write(syn);
            writeBody(context, id, Contract.resource("/pushed", null));
        }

        private void slowly(ChannelHandlerContext context, int id, int at) {
            DefaultSpdyDataFrame frame =
                new DefaultSpdyDataFrame(id, Unpooled.wrappedBuffer(Contract.pattern(at, Contract.STEP)));
            int next = at + Contract.STEP;
            frame.setLast(next == Contract.LARGE);
            context.writeAndFlush(frame);
            if (next == Contract.LARGE) return;
            context.executor().schedule(() -> slowly(context, id, next), Contract.STEP_MS, TimeUnit.MILLISECONDS);
        }

        private void endless(ChannelHandlerContext context, int id, int at) {
            if (at >= Contract.ENDLESS_MAX) return;
            ByteBuf bytes = Unpooled.wrappedBuffer(Contract.pattern(at, Contract.STEP));
            context.writeAndFlush(new DefaultSpdyDataFrame(id, bytes)).addListener(written -> {
                if (written.isSuccess()) endless(context, id, at + Contract.STEP);
            });
        }

        @Override public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            context.channel().unsafe().closeForcibly();
        }
    }

    private static final class ClientHandler extends SimpleChannelInboundHandler<SpdyFrame> {
        final Map<Integer, Exchange> exchanges = new HashMap<>();
        volatile boolean goneAway;
        NettyClient client;

        @Override protected void channelRead0(ChannelHandlerContext context, SpdyFrame frame) {
            if (frame instanceof SpdySynReplyFrame reply) {
                Exchange exchange = exchanges.get(reply.streamId());
                if (exchange == null) return;
                exchange.head(header(reply.headers(), SpdyHeaders.HttpNames.STATUS));
                if (reply.isLast()) exchange.end();
            } else if (frame instanceof SpdySynStreamFrame push) {
                Exchange exchange = client.push(header(push.headers(), SpdyHeaders.HttpNames.PATH));
                if (exchange == null) return;
                exchanges.put(push.streamId(), exchange);
                String status = header(push.headers(), SpdyHeaders.HttpNames.STATUS);
                if (status != null) exchange.head(status);
            } else if (frame instanceof SpdyHeadersFrame late) {
                // A push may say its status here. (SYN_STREAM and SYN_REPLY are kinds of this frame too.)
                Exchange exchange = exchanges.get(late.streamId());
                String status = header(late.headers(), SpdyHeaders.HttpNames.STATUS);
                if (exchange != null && status != null) exchange.head(status);
            } else if (frame instanceof SpdyDataFrame data) {
                Exchange exchange = exchanges.get(data.streamId());
                if (exchange == null) return;
                byte[] bytes = ByteBufUtil.getBytes(data.content());
                exchange.data(bytes, bytes.length);
                if (data.isLast()) exchange.end();
            } else if (frame instanceof SpdyRstStreamFrame reset) {
                Exchange exchange = exchanges.get(reset.streamId());
                if (exchange != null) exchange.fail("reset with " + reset.status());
            } else if (frame instanceof SpdyGoAwayFrame) {
                goneAway = true;
            }
        }

        @Override public void channelInactive(ChannelHandlerContext context) {
            exchanges.values().forEach(exchange -> exchange.fail("the connection was closed"));
        }

        @Override public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            exchanges.values().forEach(exchange -> exchange.fail(cause.toString()));
        }
    }

    private static final class NettyClient extends Client {
        private final Channel channel;
        private final ChannelHandlerContext context;
        private final ClientHandler handler;
        private int nextId = 1;

        NettyClient(Channel channel, ClientHandler handler) {
            this.channel = channel;
            this.handler = handler;
            this.context = channel.pipeline().context(handler);
            handler.client = this;
        }

        @Override void open(Exchange exchange) throws Exception {
            int id = nextId;
            nextId += 2;
            exchange.handle = id;
            // The event loop alone knows the handler's map and the order of the streams.
            channel.eventLoop().submit(() -> {
                handler.exchanges.put(id, exchange);
                request(id, exchange).addListener(sent -> {
                    if (!sent.isSuccess()) exchange.fail("not sent: " + sent.cause());
                });
                if (exchange.body != null) writeBody(context, id, exchange.body);
            }).sync();
        }

        private ChannelFuture request(int id, Exchange exchange) {
            SpdySynStreamFrame syn = new DefaultSpdySynStreamFrame(id, 0, (byte) 0);
            syn.setLast(exchange.body == null);
            syn.headers()
                .set(SpdyHeaders.HttpNames.METHOD, exchange.method)
                .set(SpdyHeaders.HttpNames.SCHEME, "http")
                .set(SpdyHeaders.HttpNames.HOST, "127.0.0.1")
                .set(SpdyHeaders.HttpNames.PATH, exchange.path)
                .set(SpdyHeaders.HttpNames.VERSION, "HTTP/1.1");
            return context.writeAndFlush(syn);
        }

        @Override void cancel(Exchange exchange) {
            context.writeAndFlush(new DefaultSpdyRstStreamFrame((int) exchange.handle, SpdyStreamStatus.CANCEL));
        }

        @Override void goAway() {
            channel.close();
        }

        @Override boolean refuses() throws Exception {
            if (!handler.goneAway) return false;
            int id = nextId;
            nextId += 2;
            Future<?> sent = request(id, Exchange.get("/small", Contract.SMALL)).await();
            if (sent.isSuccess()) throw new IllegalStateException("the library opened a stream after GOAWAY");
            return true;
        }
    }
}
