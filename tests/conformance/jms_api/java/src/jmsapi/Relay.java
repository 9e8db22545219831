package jmsapi;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.util.Collections;
import java.util.ArrayList;
import java.util.List;

/** A relay of TCP between a client and the broker, which can be cut like a cable. */
final class Relay implements AutoCloseable {
    private final ServerSocket listening = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
    private final URI broker;
    private final List<Socket> sockets = Collections.synchronizedList(new ArrayList<>());

    /** Start it; the test does not apply if the URL has TLS or WebSocket, whose hosts are checked. */
    Relay() throws IOException {
        broker = URI.create(Settings.URL);
        if (!broker.getScheme().equals("amqp")) {
            listening.close();
            throw new NotApplicable(NotApplicable.Kind.OPTION_MISSING, "needs a URL amqp://HOST:PORT");
        }
        daemon(this::accept);
    }

    /** Return the address at which a client reaches the broker through it. */
    String url() {
        return "amqp://127.0.0.1:" + listening.getLocalPort();
    }

    /** Close all sockets at once, without a word of AMQP. */
    void cut() throws IOException {
        synchronized (sockets) {
            for (Socket socket : sockets) {
                if (!socket.isClosed()) {
                    socket.setSoLinger(true, 0);
                    socket.close();
                }
            }
            sockets.clear();
        }
    }

    @Override
    public void close() throws IOException {
        listening.close();
        cut();
    }

    private void accept() {
        while (!listening.isClosed()) {
            try {
                Socket client = listening.accept();
                Socket server = new Socket(broker.getHost(), broker.getPort());
                sockets.add(client);
                sockets.add(server);
                daemon(() -> copy(client, server));
                daemon(() -> copy(server, client));
            } catch (IOException closed) {
                FrameLog.add("relay: " + closed.getMessage());
            }
        }
    }

    private static void copy(Socket from, Socket to) {
        try {
            InputStream input = from.getInputStream();
            OutputStream output = to.getOutputStream();
            input.transferTo(output);
            to.shutdownOutput();
        } catch (IOException closed) {
            FrameLog.add("relay: " + closed.getMessage());
        }
    }

    private static void daemon(Runnable action) {
        Thread thread = new Thread(action, "relay");
        thread.setDaemon(true);
        thread.start();
    }
}
