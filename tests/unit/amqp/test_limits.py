"""Every limit on peers has a test that reaches it: the table below names the test.

A limit that is not in the table fails this module, and so does a line whose test is gone. Limits
that no other test reaches, or only together with others, are reached here.
"""

import ast
from typing import Final

import pytest

from broker.amqp.limits import (
    BYTES_PER_TRANSFER,
    DELIVERY_TAG_SIZE_MAX,
    FRAME_SIZE_MIN,
    TRANSFERS_PER_DELIVERY_MIN,
    Limits,
)
from broker.amqp.performatives import Detach, Flow
from broker.http_settings import HttpSettings
from broker.settings import Settings, SettingsError, load_settings
from tests.support.broker import Broker
from tests.support.frames import Disposition, Header, Transfer, body_of, message, opening
from tests.support.tidy import ROOT

HERE: Final = "amqp/test_limits.py"

HITS: Final = {
    # fixed limits of the AMQP engine
    "DEPTH_MAX": "amqp/test_decode.py::test_depth_is_bounded",
    "FIELD_VALUES_MAX": "amqp/test_composite.py::test_a_field_holds_only_so_many_values",
    "BODY_VALUES_MAX": "jms/test_bodies.py::test_only_so_many_values_are_made_of_a_body",
    "SECTIONS_MAX": "amqp/test_sections.py::test_the_body_has_no_more_sections_than_its_limit",
    "SECTIONS_BEFORE_BODY_MAX": "amqp/test_sections.py"
    "::test_what_routing_reads_lies_within_so_many_bytes_of_the_start",
    "STREAMED_FROM": "links/test_large.py"
    "::test_a_large_message_takes_no_room_for_unfinished_deliveries",
    "UNSAVED_BYTES_MAX": "links/test_large.py"
    "::test_a_sender_that_is_faster_than_the_disk_is_not_read_from",
    "USER_ID_SIZE_MAX": "links/test_access_user_id.py::test_a_user_id_has_a_size_limit",
    "DELIVERY_TAG_SIZE_MAX": f"{HERE}::test_a_delivery_tag_is_short",
    "FRAME_SIZE_MIN": f"{HERE}::test_a_peer_takes_frames_of_some_size",
    "FRAME_BEFORE_OPEN": "amqp/test_connection.py::test_a_frame_before_open_is_small",
    "FRAME_OF_TOKEN_LOGIN": "amqp/test_sasl.py"
    "::test_frames_of_a_login_are_larger_where_tokens_log_in",
    "login_frame_max": "amqp/test_sasl.py::test_frames_of_a_login_are_larger_where_tokens_log_in",
    "BUFFER_BEFORE_OPEN": "amqp/test_sasl.py"
    "::test_little_is_kept_of_a_peer_that_is_not_authenticated",
    "SASL_CHALLENGES_MAX": "amqp/test_sasl_server.py"
    "::test_an_exchange_has_a_limited_number_of_challenges",
    "SASL_CHALLENGE_SIZE_MAX": "amqp/test_sasl_server.py"
    "::test_a_larger_challenge_ends_the_exchange",
    "ECHO_INTERVAL_MS": "amqp/test_echoes.py"
    "::test_echoes_are_answered_every_ten_milliseconds_at_most",
    "UNSETTLED_IN_MAX": "amqp/test_session_dispositions.py"
    "::test_a_sender_may_not_leave_everything_unsettled",
    "UNSETTLED_MAP_MAX": "amqp/test_unsettled_map.py::test_a_map_has_only_so_many_tags",
    "BYTES_PER_TRANSFER": f"{HERE}::test_a_delivery_has_only_so_many_frames",
    "TRANSFERS_PER_DELIVERY_MIN": f"{HERE}::test_a_delivery_has_only_so_many_frames",
    "CONTROLS_AT_ONCE": "links/test_peer.py"
    "::test_links_that_come_and_go_without_end_leave_turns_to_other_clients",
    # settings for connections
    "max_frame_size": "amqp/test_connection.py"
    "::test_an_impossible_frame_header_closes_the_connection",
    "channel_max": "amqp/test_channels.py"
    "::test_a_begin_above_our_channel_max_closes_the_connection",
    "handle_max": "amqp/test_session.py::test_a_handle_above_ours_closes_the_connection",
    "incoming_window": "amqp/test_session_flow.py"
    "::test_the_window_is_opened_again_when_half_is_used_up",
    "max_message_size": "amqp/test_incoming_link.py::test_a_message_has_a_largest_size",
    "partial_bytes_max": f"{HERE}::test_large_messages_in_pieces",
    "memory_max": "links/test_memory_guard.py"
    "::test_above_the_budget_the_connection_that_holds_most_is_closed",
    "handshake_timeout_ms": "amqp/test_deadlines.py::test_a_peer_that_does_not_begin_is_left",
    "idle_time_out_ms": "amqp/test_deadlines.py::test_an_idle_peer_is_told_and_left",
    "stall_timeout_ms": "net/test_socket_protocol.py"
    "::test_a_stalled_reader_is_cut_off_and_takes_no_message_along",
    "connections_max": "net/test_connection_admission.py"
    "::test_above_the_number_of_connections_only_those_without_a_login_give_way",
    "unauthenticated_max": "net/test_connection_admission.py"
    "::test_silent_connections_do_not_keep_a_healthy_client_out",
    "unauthenticated_source_max": "net/test_connection_admission.py"
    "::test_a_source_has_only_so_many_connections_without_a_login",
    "transactions_max": "links/test_transactions.py"
    "::test_a_connection_has_only_so_many_transactions",
    "transaction_operations_max": "links/test_transactions.py"
    "::test_a_transaction_has_only_so_many_operations",
    "transaction_bytes_max": "links/test_transactions.py"
    "::test_a_transaction_holds_only_so_many_bytes",
    "transaction_timeout_ms": "links/test_coordinator.py"
    "::test_the_time_runs_from_the_first_operation",
    "resume_max_s": "links/test_kept_source.py"
    "::test_the_source_of_a_queue_gets_terms_of_a_bounded_time",
    # settings for producers and addresses
    "credit": "links/test_incoming.py::test_more_messages_than_credit_detach",
    "pacing_backlog": f"{HERE}::test_producers_wait_beyond_the_pacing_backlog",
    "max_messages": "routing/queues/test_queue.py"
    "::test_a_queue_takes_no_more_messages_than_its_limit",
    "max_bytes": "routing/queues/test_queue.py::test_a_queue_takes_no_more_bytes_than_its_limit",
    "duplicate_window": "routing/queues/test_duplicates.py::test_the_window_holds_the_latest_ids",
    "duplicate_window_ms": "routing/queues/test_duplicates.py"
    "::test_an_id_is_forgotten_when_it_is_old",
    "event_log_max_events": "routing/queues/test_message_events.py"
    "::test_with_every_thousand_rows_some_go",
    "event_log_max_age_ms": "routing/queues/test_message_events.py"
    "::test_old_rows_go_while_nothing_comes",
    "stage_retention_s": "routing/batches/test_staging_area.py"
    "::test_what_nobody_commits_goes_when_it_is_old",
    "max_delivery_count": "links/test_outcome.py::test_a_message_that_fails_too_often_is_taken_out",
    # settings for HTTP clients
    "http.streams_max": "http/test_arrow_streams.py::test_only_so_many_streams_are_under_way",
    "http.head_bytes_max": "http/test_connection.py::test_the_head_of_a_request_is_short",
    "http.silence_max_ms": "http/test_connection.py::test_a_peer_that_says_nothing_is_dropped",
    "auto_create_max": "routing/test_population.py::test_clients_make_so_many_nodes_and_no_more",
    # fixed limits for HTTP clients
    "CONNECTIONS_MAX": "http/test_connection.py::test_only_so_many_peers_are_connected",
    "CONNECTIONS_PER_SOURCE_MAX": "http/test_connection.py"
    "::test_half_requests_do_not_close_the_port",
    "LOOPBACK_RESERVE": "http/test_admission.py::test_a_newcomer",
    "API_BODY_BYTES_MAX": "http/api/test_application.py::test_a_body_without_a_length_is_limited",
    "API_BODY_MAX_S": "http/api/test_application.py::test_a_body_has_little_time",
    "API_REQUESTS_MAX": "http/api/test_slots.py::test_all_users_together_have_a_limit",
    "API_REQUESTS_PER_USER_MAX": "http/api/test_slots.py::test_one_user_leaves_room_for_another",
    "HEAD_MAX_MS": "http/test_connection.py"
    "::test_a_head_has_little_time_whatever_silence_is_allowed",
    "JMS_PROPERTIES_MAX": "http/test_jms_fields.py::test_a_message_has_only_so_many_properties",
    "JMS_FIELDS_BYTES_MAX": "http/test_jms_fields.py"
    "::test_the_fields_of_a_message_have_only_so_many_bytes",
    "JMS_BODY_BYTES_MAX": "http/test_jms_waiting.py::test_a_body_has_a_largest_size",
    "JMS_BODY_MAX_MS": "http/test_jms_waiting.py::test_a_body_must_arrive_in_time",
    "JMS_WAIT_MAX_S": "http/test_jms_waiting.py::test_a_time_that_is_not_allowed",
    "JMS_WAITING_MAX": "http/test_jms_waiting.py"
    "::test_all_users_have_only_so_many_waiting_requests",
    "JMS_WAITING_PER_USER_MAX": "http/test_jms_waiting.py"
    "::test_a_user_has_only_so_many_waiting_requests",
    "JMS_RECEIPTS_PER_USER_MAX": "http/test_jms_receiving.py"
    "::test_a_user_has_only_so_many_receipts",
    "JMS_LOCK_MS": "http/test_jms_receiving.py"
    "::test_a_renewed_receipt_holds_longer_and_an_expired_one_no_more",
    "JMS_BROWSED_MAX": "http/test_jms_browsing.py::test_what_is_refused",
    "JMS_DECODED_BYTES_MAX": "http/test_jms_message.py::test_only_a_small_body_is_decoded",
    "JMS_SHOWN_BYTES_MAX": "http/test_jms_message.py::test_a_large_body_is_left_out",
    "XML_BYTES_MAX": "http/test_soap_jms.py::test_only_the_namespace_of_the_root_is_read",
    "EVENT_STREAMS_MAX": "http/test_open_streams.py::test_there_are_only_so_many_streams",
    "EVENT_STREAMS_PER_USER_MAX": (
        "http/test_open_streams.py::test_one_user_leaves_room_for_another"
    ),
    "AUDIT_REPORT_BYTES_MAX": "http/console/test_pipeline_audit.py::test_files_that_are_no_report",
    "SNAPSHOT_BYTES_MAX": (
        "http/api/test_event_stream.py::test_a_snapshot_that_is_too_large_is_left_out"
    ),
    "CONSOLE_SESSIONS_MAX": "http/console/test_sessions.py::test_all_users_have_a_limited_number",
    "CONSOLE_SESSIONS_PER_USER_MAX": "http/console/test_sessions.py"
    "::test_a_user_has_a_limited_number",
    "CONSOLE_IDLE_MS": "http/console/test_sessions.py::test_a_session_ends_when_it_is_not_used",
    "CONSOLE_SESSION_MAX_MS": "http/console/test_sessions.py"
    "::test_a_session_ends_however_much_it_is_used",
    "CONSOLE_FORM_BYTES_MAX": "http/console/test_application.py::test_a_form_has_a_limit",
    "CONSOLE_FORM_FIELDS_MAX": "http/console/test_application.py::test_a_form_has_a_limit",
    "CONSOLE_FORM_MAX_S": "http/console/test_application.py::test_a_form_has_little_time",
}

NO_LIMITS: Final = {
    *(
        "bind",
        "port",
        "store",
        "users_file",
        "http",
        "http.api",
        "http.arrow",
        "http.audit_report",
        "http.console",
        "http.host",
        "http.port",
        "http.tls",
        "http.metrics",
        "http.jms",
        "allow_anonymous",
        "authenticator",
        "user",
        "password",
    ),
    *(
        "password_file",
        "default_kind",
        "auto_create",
        "dead_letter",
        "expiry",
        "log",
        "address",
        *("listener", "tls", "plain", "oauth", "acl_file", "ownership", "limit_loopback", "audit"),
        "drain",
        "ha",
        "bridge",
        "shard",
    ),
    *("redelivery_delay_ms", "redelivery_backoff", "redelivery_delay_max_ms", "disk_free_min"),
    *("exclusive", "full", "queue", "topic", "connection_loss_grace_ms", "hold_ms"),
    *(
        "address_prefixes",
        "disk_ballast",
        "dead_letter_properties",
        "auto_delete_after_ms",
        "deliver_before_commit",
        "tracing",
        "paging_window",
        "store_loss_grace_ms",
        "event_log",
    ),
}
"""Settings that do not limit a peer."""


def declared() -> set[str]:
    """Return the names of the constants of broker/amqp/limits.py and the arguments of `Limits`."""
    names = set[str]()
    for node in ast.walk(ast.parse((ROOT / "broker/amqp/limits.py").read_text())):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            names.update(argument.arg for argument in node.args.kwonlyargs)
    return names


def of_http() -> set[str]:
    """Return the names of all HTTP settings and all constants of broker/http/limits.py."""
    tree = ast.parse((ROOT / "broker/http/limits.py").read_text())
    fixed = {
        node.target.id
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return fixed | {f"http.{name}" for name in HttpSettings.model_fields}


def test_every_limit_is_in_the_table() -> None:
    known = declared() | of_http() | set(Settings.model_fields)
    assert set(HITS) == known - NO_LIMITS


@pytest.mark.parametrize(("name", "test"), HITS.items(), ids=HITS.keys())
def test_the_test_that_hits_a_limit_is_there(name: str, test: str) -> None:
    file, _, function = test.partition("::")
    text = (ROOT / "tests" / "unit" / file).read_text()
    tests = {
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert function in tests
    assert name.rpartition(".")[2] in text


# -- limits that are reached here


@pytest.mark.parametrize(
    ("size", "taken"),
    [
        pytest.param(DELIVERY_TAG_SIZE_MAX, True, id="the longest"),
        pytest.param(DELIVERY_TAG_SIZE_MAX + 1, False, id="too long"),
    ],
)
def test_a_delivery_tag_is_short(size: int, taken: bool) -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender()
    client.transfer(tag=b"t" * size)
    if taken:
        client.expect_last(Disposition)
    else:
        client.expect_close("amqp:invalid-field")
    assert broker.queue().backlogs.waiting == taken


@pytest.mark.parametrize(
    ("size", "taken"),
    [
        pytest.param(FRAME_SIZE_MIN, True, id="the least"),
        pytest.param(FRAME_SIZE_MIN - 1, False, id="too little"),
    ],
)
def test_a_peer_takes_frames_of_some_size(size: int, taken: bool) -> None:
    broker = Broker()
    client = broker.dial()
    client.send_bytes(opening(max_frame_size=size))
    client.expect(Header)
    assert broker.container.peer_count() == taken


@pytest.mark.parametrize(
    ("max_message_size", "transfers"),
    [
        pytest.param(1000, TRANSFERS_PER_DELIVERY_MIN, id="small messages get the least number"),
        pytest.param(256 * 1024, 1024, id="the border"),
        pytest.param(257 * 1024, 1028, id="beyond the border"),
        pytest.param(128 * 1024 * 1024, 512 * 1024, id="one for 256 bytes of the largest message"),
    ],
)
def test_how_many_frames_a_delivery_may_take(max_message_size: int, transfers: int) -> None:
    assert Limits(max_message_size=max_message_size).transfers_per_delivery() == transfers


@pytest.mark.parametrize(
    ("max_message_size", "transfers"),
    [
        pytest.param(1000, TRANSFERS_PER_DELIVERY_MIN, id="the least number"),
        pytest.param(1100 * BYTES_PER_TRANSFER, 1100, id="by the size of messages"),
    ],
)
def test_a_delivery_has_only_so_many_frames(max_message_size: int, transfers: int) -> None:
    client = Broker(limits=Limits(max_message_size=max_message_size)).session()
    client.attach_sender()
    empty = Transfer(delivery_id=None, tag=None, more=True)
    client.send(Transfer(more=True), *[empty] * (transfers - 1))
    assert not [body for body in client.bodies() if isinstance(body, Detach)]
    client.send(empty)
    client.expect_detach("amqp:resource-limit-exceeded")


def test_producers_wait_beyond_the_pacing_backlog() -> None:
    """`App` passes the setting `pacing_backlog` as the mark of broker/routing/credit/pacing.py."""
    broker = Broker(credit=2, pacing_mark=3)
    broker.session("reader").attach_receiver()
    client = broker.session()
    client.attach_sender()
    for number in range(3):
        client.transfer(number, settled=True)
        assert client.bodies(), "credit anew"
    client.transfer(3, settled=True)
    client.expect_nothing()


# A thousandth of the defaults: 100 KiB in frames of 1 KiB stand for 100 MiB in frames of 1 MiB.
SCALE: Final = 1024
SMALL: Final = Limits(
    max_frame_size=Settings().max_frame_size // SCALE,
    max_message_size=Settings().max_message_size // SCALE,
    partial_bytes_max=Settings().partial_bytes_max // SCALE,
)


def in_pieces(body: bytes, handle: int) -> list[Transfer]:
    """Return the transfers of a message in frames of nearly the largest size."""
    payload = message(body)
    step = int(SMALL.max_frame_size) - 64
    pieces = [payload[at : at + step] for at in range(0, len(payload), step)]
    return [
        Transfer(
            handle=handle,
            delivery_id=handle if number == 0 else None,
            tag=b"%d" % handle if number == 0 else None,
            more=number < len(pieces) - 1,
            payload=piece,
        )
        for number, piece in enumerate(pieces)
    ]


@pytest.mark.parametrize(
    ("kib", "count", "taken"),
    [
        pytest.param(50, 1, True, id="50 MiB"),
        pytest.param(127, 1, True, id="nearly the largest"),
        pytest.param(50, 5, True, id="five of 50 MiB at once"),
        pytest.param(127, 2, True, id="two of nearly the largest at once"),
        pytest.param(50, 6, False, id="six of 50 MiB at once"),
        pytest.param(127, 3, False, id="three of nearly the largest at once"),
    ],
)
def test_large_messages_in_pieces(kib: int, count: int, taken: bool) -> None:
    """Messages on `count` links, a frame of each in turn, share the limit `partial_bytes_max`."""
    broker = Broker(limits=SMALL)
    client = broker.session()
    bodies = [bytes([65 + handle]) * (kib * 1024) for handle in range(count)]
    for handle in range(count):
        client.attach_sender(name=f"link-{handle}", handle=handle)
    turns = zip(*[in_pieces(body, handle) for handle, body in enumerate(bodies)], strict=True)
    for turn in turns:
        client.send(*turn)
    if not taken:
        client.expect_close("amqp:resource-limit-exceeded")
        assert broker.queue().backlogs.waiting == 0
        return
    answers = [body for body in client.bodies() if not isinstance(body, Flow)]
    assert answers
    assert all(isinstance(body, Disposition) for body in answers)
    reader = broker.session("reader")
    reader.attach_receiver(credit=count)
    assert [
        body_of(each.payload) for each in reader.bodies() if isinstance(each, Transfer)
    ] == bodies


# -- the defaults


def test_the_defaults_are_those_of_the_configuration() -> None:
    limits, settings = Limits(), Settings()
    assert limits.max_frame_size == settings.max_frame_size == 1024 * 1024
    assert limits.channel_max == settings.channel_max == 1023
    assert limits.handle_max == settings.handle_max == 4095
    assert limits.incoming_window == settings.incoming_window == 2048
    assert limits.max_message_size == settings.max_message_size == 128 * 1024 * 1024
    assert limits.partial_bytes_max == settings.partial_bytes_max == 256 * 1024 * 1024
    assert limits.handshake_timeout_ms == settings.handshake_timeout_ms
    assert limits.idle_time_out_ms == settings.idle_time_out_ms
    assert limits.transactions_max == settings.transactions_max == 1024
    assert limits.transaction_operations_max == settings.transaction_operations_max == 100_000
    assert limits.transaction_bytes_max == settings.transaction_bytes_max == 64 * 1024 * 1024
    assert limits.transaction_timeout_ms == settings.transaction_timeout_ms == 300_000
    assert limits.resume_max_s == settings.resume_max_s == 300


@pytest.mark.parametrize(
    ("max_message_size", "partial_bytes_max", "told"),
    [
        pytest.param(1000, 2000, "", id="twice"),
        pytest.param(1000, 1999, "at least twice max_message_size", id="less than twice"),
        pytest.param(2**30, None, "at least twice max_message_size", id="messages above default"),
        pytest.param(1000, None, "", id="small messages"),
    ],
)
def test_two_of_the_largest_messages_may_be_unfinished(
    max_message_size: int, partial_bytes_max: int | None, told: str
) -> None:
    if not told:
        load_settings(max_message_size=max_message_size, partial_bytes_max=partial_bytes_max)
        return
    with pytest.raises(SettingsError, match=told):
        load_settings(max_message_size=max_message_size, partial_bytes_max=partial_bytes_max)
