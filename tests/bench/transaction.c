/* transaction: declare, transactional-state and discharge, encoded by hand where Proton's C library does not know them. */
#include "transaction.h"

#include <proton/codec.h>
#include <proton/disposition.h>
#include <proton/terminus.h>
#include <string.h>

enum { ACCEPTED = 0x24, DECLARED = 0x33, TRANSACTIONAL = 0x34 };

void transaction_attach(struct transaction *transaction, pn_session_t *session) {
  if (!transaction->every) return;
  transaction->coordinator = pn_sender(session, "coordinator");
  pn_terminus_set_type(pn_link_target(transaction->coordinator), PN_COORDINATOR);
  pn_link_open(transaction->coordinator);
}

static void command(struct transaction *transaction, const char *bytes, size_t count) {
  unsigned long tag = transaction->commands++;
  pn_delivery(transaction->coordinator, pn_dtag((const char *)&tag, sizeof tag));
  pn_link_send(transaction->coordinator, bytes, count);
  pn_link_advance(transaction->coordinator);
  transaction->unanswered++;
}

static void declare(struct transaction *transaction) {
  const char bytes[] = {0x00, 0x53, 0x77, 0x00, 0x53, 0x31, 0x45};
  command(transaction, bytes, sizeof bytes);
}

static void commit(struct transaction *transaction) {
  char id_bytes = (char)transaction->id_bytes;
  char bytes[TXN_ID_BYTES + 16] = {0x00, 0x53, 0x77, 0x00, 0x53, 0x32, (char)0xc0, (char)(id_bytes + 4), 2, (char)0xa0, id_bytes};
  memcpy(bytes + 11, transaction->id, transaction->id_bytes);
  bytes[11 + transaction->id_bytes] = 0x42; /* fail=false */
  command(transaction, bytes, 12 + transaction->id_bytes);
}

void transaction_credit(struct transaction *transaction) {
  if (!transaction->commands && pn_link_credit(transaction->coordinator) > 0) declare(transaction);
}

void transaction_add(struct transaction *transaction, pn_delivery_t *delivery, bool accepting) {
  pn_data_t *state = pn_disposition_data(pn_delivery_local(delivery));
  pn_data_clear(state);
  pn_data_put_list(state);
  pn_data_enter(state);
  pn_data_put_binary(state, pn_bytes(transaction->id_bytes, transaction->id));
  if (accepting) {
    pn_data_put_described(state);
    pn_data_enter(state);
    pn_data_put_ulong(state, ACCEPTED);
    pn_data_put_list(state);
    pn_data_exit(state);
  }
  pn_data_exit(state);
  pn_delivery_update(delivery, TRANSACTIONAL);
}

void transaction_count(struct transaction *transaction, bool last) {
  if (!transaction->every || (++transaction->used < transaction->every && !last)) return;
  transaction->used = 0;
  transaction->open = false;
  commit(transaction);
  if (!last) declare(transaction);
}

/* At the first field of the state's list, the transaction's id. */
static pn_data_t *fields_of(pn_delivery_t *delivery) {
  pn_data_t *state = pn_disposition_data(pn_delivery_remote(delivery));
  pn_data_rewind(state);
  return pn_data_next(state) && pn_data_enter(state) && pn_data_next(state) ? state : NULL;
}

bool transaction_accepted(pn_delivery_t *delivery) {
  if (pn_delivery_remote_state(delivery) != TRANSACTIONAL) return false;
  pn_data_t *state = fields_of(delivery);
  return state && pn_data_next(state) && pn_data_enter(state) && pn_data_next(state) && pn_data_get_ulong(state) == ACCEPTED;
}

void transaction_answer(struct transaction *transaction, pn_delivery_t *delivery) {
  if (!pn_delivery_updated(delivery)) return;
  uint64_t outcome = pn_delivery_remote_state(delivery);
  if (outcome == DECLARED) {
    pn_data_t *state = fields_of(delivery);
    pn_bytes_t id = state ? pn_data_get_binary(state) : pn_bytes(0, "");
    if (id.size && id.size <= TXN_ID_BYTES) {
      memcpy(transaction->id, id.start, id.size);
      transaction->id_bytes = id.size;
      transaction->open = true;
    } else {
      transaction->failed = true;
    }
  } else if (outcome != ACCEPTED) {
    transaction->failed = true;
  }
  transaction->unanswered--;
  pn_delivery_settle(delivery);
}
