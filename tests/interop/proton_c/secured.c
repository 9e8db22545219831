/* secured: sends "a book" to a broker with TLS and receives it again, on Qpid Proton's proactor.
 *
 *   secured HOST PORT ADDRESS CA                     logs in as BROKER_USER with BROKER_PASSWORD, by PLAIN
 *   secured HOST PORT ADDRESS CA CERTIFICATE KEY     logs in by EXTERNAL with this certificate
 *
 * CA, CERTIFICATE and KEY are files in PEM. Exit status 1, with the reason on standard error, if it does not work. */
#include <proton/condition.h>
#include <proton/connection.h>
#include <proton/delivery.h>
#include <proton/event.h>
#include <proton/link.h>
#include <proton/message.h>
#include <proton/proactor.h>
#include <proton/sasl.h>
#include <proton/session.h>
#include <proton/ssl.h>
#include <proton/terminus.h>
#include <proton/transport.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 30000, MESSAGE_BYTES = 1024, ADDRESS_BYTES = 256 };

struct client {
  const char *address;
  bool sent, received, failed;
};

static void fail(struct client *client, const char *what, pn_condition_t *condition) {
  client->failed = true;
  if (condition && pn_condition_is_set(condition)) {
    fprintf(stderr, "%s: %s: %s\n", what, pn_condition_get_name(condition), pn_condition_get_description(condition));
  } else {
    fprintf(stderr, "%s\n", what);
  }
}

/* ---- the links */

static void open_links(const struct client *client, pn_connection_t *connection) {
  pn_connection_open(connection);
  pn_session_t *session = pn_session(connection);
  pn_session_open(session);
  pn_link_t *sender = pn_sender(session, "sender");
  pn_terminus_set_address(pn_link_target(sender), client->address);
  pn_link_open(sender);
  pn_link_t *receiver = pn_receiver(session, "receiver");
  pn_terminus_set_address(pn_link_source(receiver), client->address);
  pn_link_open(receiver);
  pn_link_flow(receiver, 1);
}

static void send_book(struct client *client, pn_link_t *sender) {
  if (client->sent || pn_link_credit(sender) <= 0) return;
  client->sent = true;
  pn_message_t *message = pn_message();
  pn_message_set_durable(message, true);
  pn_data_put_string(pn_message_body(message), pn_bytes(6, "a book"));
  pn_delivery(sender, pn_dtag("1", 1));
  if (pn_message_send(message, sender, NULL) < 0) fail(client, "the message cannot be encoded", NULL);
  pn_message_free(message);
}

static void receive_book(struct client *client, pn_link_t *receiver, pn_delivery_t *delivery) {
  if (!pn_delivery_readable(delivery) || pn_delivery_partial(delivery)) return;
  char encoded[MESSAGE_BYTES];
  ssize_t size = pn_link_recv(receiver, encoded, sizeof encoded);
  pn_message_t *message = pn_message();
  pn_data_t *body = pn_message_body(message);
  if (size > 0 && !pn_message_decode(message, encoded, (size_t)size) && pn_data_next(body)) {
    pn_bytes_t text = pn_data_get_string(body);
    printf("received %.*s\n", (int)text.size, text.start);
    client->received = true;
  }
  pn_message_free(message);
  pn_delivery_update(delivery, PN_ACCEPTED);
  pn_delivery_settle(delivery);
  pn_connection_close(pn_session_connection(pn_link_session(receiver)));
}

static void on_delivery(struct client *client, pn_link_t *link, pn_delivery_t *delivery) {
  if (pn_link_is_receiver(link)) {
    receive_book(client, link, delivery);
  } else if (pn_delivery_updated(delivery)) {
    if (pn_delivery_remote_state(delivery) != PN_ACCEPTED) fail(client, "not accepted", NULL);
    pn_delivery_settle(delivery);
  }
}

/* Returns false once the connection has ended. */
static bool handle(struct client *client, pn_event_t *event) {
  switch (pn_event_type(event)) {
  case PN_CONNECTION_INIT: open_links(client, pn_event_connection(event)); break;
  case PN_LINK_FLOW:
    if (pn_link_is_sender(pn_event_link(event))) send_book(client, pn_event_link(event));
    break;
  case PN_DELIVERY: on_delivery(client, pn_event_link(event), pn_event_delivery(event)); break;
  case PN_LINK_REMOTE_CLOSE:
    if (pn_condition_is_set(pn_link_remote_condition(pn_event_link(event)))) {
      fail(client, "the link was refused", pn_link_remote_condition(pn_event_link(event)));
      pn_connection_close(pn_event_connection(event));
    }
    break;
  case PN_TRANSPORT_CLOSED:
    if (!client->received && !client->failed) {
      fail(client, "the connection has ended", pn_transport_condition(pn_event_transport(event)));
    }
    return false;
  case PN_PROACTOR_TIMEOUT: fail(client, "not finished in time", NULL); return false;
  default: break;
  }
  return true;
}

static void run(struct client *client, pn_proactor_t *proactor) {
  for (bool goes_on = true; goes_on;) {
    pn_event_batch_t *batch = pn_proactor_wait(proactor);
    for (pn_event_t *event = pn_event_batch_next(batch); event; event = pn_event_batch_next(batch)) {
      goes_on = handle(client, event) && goes_on;
    }
    pn_proactor_done(proactor, batch);
  }
}

/* ---- TLS and the login */

static pn_ssl_domain_t *tls_domain(const char *authority, const char *certificate, const char *key) {
  pn_ssl_domain_t *domain = pn_ssl_domain(PN_SSL_MODE_CLIENT);
  if (!domain || pn_ssl_domain_set_trusted_ca_db(domain, authority)
      || pn_ssl_domain_set_peer_authentication(domain, PN_SSL_VERIFY_PEER_NAME, NULL)
      || (certificate && pn_ssl_domain_set_credentials(domain, certificate, key, NULL))) {
    fprintf(stderr, "the files for TLS cannot be used\n");
    exit(2);
  }
  return domain;
}

static pn_connection_t *login(pn_transport_t *transport, const char *host, bool has_certificate) {
  pn_connection_t *connection = pn_connection();
  pn_connection_set_container(connection, "proton-c");
  pn_connection_set_hostname(connection, host);
  if (!has_certificate) {
    pn_connection_set_user(connection, getenv("BROKER_USER"));
    pn_connection_set_password(connection, getenv("BROKER_PASSWORD"));
  }
  pn_sasl_allowed_mechs(pn_sasl(transport), has_certificate ? "EXTERNAL" : "PLAIN");
  return connection;
}

int main(int count, char **arguments) {
  if (count != 5 && count != 7) {
    fprintf(stderr, "usage: secured HOST PORT ADDRESS CA [CERTIFICATE KEY]\n");
    return 2;
  }
  bool has_certificate = count == 7;
  struct client client = {.address = arguments[3]};
  pn_ssl_domain_t *domain =
    tls_domain(arguments[4], has_certificate ? arguments[5] : NULL, has_certificate ? arguments[6] : NULL);
  pn_transport_t *transport = pn_transport();
  pn_ssl_init(pn_ssl(transport), domain, NULL);
  pn_ssl_set_peer_hostname(pn_ssl(transport), arguments[1]);
  char peer[ADDRESS_BYTES];
  pn_proactor_addr(peer, sizeof peer, arguments[1], arguments[2]);
  pn_proactor_t *proactor = pn_proactor();
  pn_proactor_set_timeout(proactor, TIMEOUT_MS);
  pn_proactor_connect2(proactor, login(transport, arguments[1], has_certificate), transport, peer);
  run(&client, proactor);
  pn_proactor_free(proactor);
  pn_ssl_domain_free(domain);
  return client.received && !client.failed ? 0 : 1;
}
