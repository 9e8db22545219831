/* Local transactions of the load client: one after the other on a connection, each with so many messages. */
#ifndef BENCH_TRANSACTION_H
#define BENCH_TRANSACTION_H

#include <proton/delivery.h>
#include <proton/link.h>
#include <proton/session.h>
#include <stdbool.h>

enum { TXN_ID_BYTES = 64 };

/* `every` is 0 where nothing is transacted, and all below is idle then. */
struct transaction {
  long every, used; /* messages of one transaction; those in the one that is open */
  pn_link_t *coordinator;
  char id[TXN_ID_BYTES];
  size_t id_bytes;
  unsigned long commands; /* their delivery-tags */
  int unanswered;
  bool open, failed;
};

/* Attaches to the coordinator. */
void transaction_attach(struct transaction *transaction, pn_session_t *session);

/* The coordinator gave credit: declares the first transaction. */
void transaction_credit(struct transaction *transaction);

/* Puts the delivery, which is sent or (`accepting`) accepted now, into the open transaction. */
void transaction_add(struct transaction *transaction, pn_delivery_t *delivery, bool accepting);

/* After each message: commits where the transaction is full or `last`, and declares the next one behind it. */
void transaction_count(struct transaction *transaction, bool last);

/* Whether the peer took the message into its transaction as accepted. */
bool transaction_accepted(pn_delivery_t *delivery);

/* An answer to a command; sets `failed` where it is another one than it should be. */
void transaction_answer(struct transaction *transaction, pn_delivery_t *delivery);

/* Whether a message may be added now. */
static inline bool transaction_ready(const struct transaction *transaction) {
  return !transaction->every || transaction->open;
}

/* Whether everything is committed. */
static inline bool transaction_over(const struct transaction *transaction) {
  return !transaction->every || !transaction->unanswered;
}

#endif
