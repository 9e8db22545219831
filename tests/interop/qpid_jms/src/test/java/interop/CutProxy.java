package interop;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;

/** A TCP proxy on loopback before the broker whose connections a test can cut, as a broken network would. */
final class CutProxy implements AutoCloseable {
    private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final String scheme;
    private final InetSocketAddress broker;
    private final List<Socket> sockets = new ArrayList<>();
    private long allowed = Long.MAX_VALUE;

    CutProxy(String brokerUrl) throws IOException {
        URI uri = URI.create(brokerUrl);
        scheme = uri.getScheme();
        broker = new InetSocketAddress(uri.getHost(), uri.getPort());
        daemon(this::accept);
    }

    String url() {
        return scheme + "://127.0.0.1:" + listener.getLocalPort();
    }

    /** Reset every connection, on both sides, without a word of AMQP; new ones are still accepted. */
    synchronized void cut() throws IOException {
        for (Socket socket : sockets) {
            if (!socket.isClosed()) {
                socket.setSoLinger(true, 0);
                socket.close();
            }
        }
        sockets.clear();
    }

    /** End every connection with a TCP FIN, on both sides, without a word of AMQP. */
    synchronized void hangUp() throws IOException {
        for (Socket socket : sockets) {
            finish(socket);
        }
        sockets.clear();
    }

    /** Send a FIN over `socket`, unless the other direction's end has done so. */
    private synchronized void finish(Socket socket) throws IOException {
        if (!socket.isClosed() && !socket.isOutputShutdown()) {
            socket.shutdownOutput();
        }
    }

    /** Pass on at most `bytes` from now on, both ways together: whatever is more stays here. */
    synchronized void allow(long bytes) {
        allowed = bytes;
    }

    /** Return once more has come than was allowed. */
    synchronized void awaitMore() throws InterruptedException {
        while (allowed >= 0) {
            wait();
        }
    }

    private synchronized boolean mayPass(int bytes) {
        allowed -= bytes;
        notifyAll();
        return allowed >= 0;
    }

    @Override
    public void close() throws IOException {
        listener.close();
        cut();
    }

    private void accept() {
        try {
            while (true) {
                join(listener.accept());
            }
        } catch (IOException closed) {
            // the test is over
        }
    }

    private synchronized void join(Socket client) throws IOException {
        Socket server = new Socket();
        server.connect(broker);
        sockets.add(client);
        sockets.add(server);
        daemon(() -> copy(client, server));
        daemon(() -> copy(server, client));
    }

    private void copy(Socket from, Socket to) {
        byte[] buffer = new byte[65536];
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                if (!mayPass(n)) {
                    return;
                }
                out.write(buffer, 0, n);
            }
            finish(to);
        } catch (IOException gone) {
            // cut, or closed by one side: the other direction ends by itself
        }
    }

    private static void daemon(Runnable work) {
        Thread thread = new Thread(work, "cut-proxy");
        thread.setDaemon(true);
        thread.start();
    }
}
