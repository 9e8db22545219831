package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/Azure/go-amqp"
)

func pointer[T any](value T) *T { return &value }

// ---- connections

var _ = shows("a user's name and password are taken", "", func(s *scene) {
	s.strictSession()
})

var _ = shows("a wrong password is refused", "", func(s *scene) {
	options := &amqp.ConnOptions{SASLType: amqp.SASLTypePlain("alice", "wrong")}
	_, err := amqp.Dial(s, "amqp://"+s.host("BROKER_STRICT_URL"), options)
	if err == nil || !strings.Contains(err.Error(), "SASL PLAIN auth failed") {
		panic(err)
	}
})

var _ = shows("an idle connection is kept by empty frames", "", func(s *scene) {
	options := s.strictOptions()
	options.IdleTimeout = 2 * time.Second
	session := must(s.dial(s.host("BROKER_STRICT_URL"), options).NewSession(s, nil))
	time.Sleep(4500 * time.Millisecond)
	s.fill(session, "still here")
})

// ---- messages

var _ = shows("values of every type arrive as they were sent", "PRD-05", func(s *scene) {
	session := s.session()
	values := []any{
		"grün ✓ 🐇", true, int8(-8), uint8(8), int16(-16), uint16(16), int32(-32), uint32(32),
		int64(-64), uint64(64), float32(0.5), 1.5, []byte{0, 255},
		amqp.UUID{1, 2, 3}, time.UnixMilli(1700000000000),
		[]any{int64(1), "two", []any{"three"}}, map[string]any{"one": int64(1)},
		[]int32{1, -1}, []string{"a", "b"}, []amqp.Symbol{"s"}, []bool{true, false},
	}
	sender := must(session.NewSender(s, s.address, nil))
	for _, value := range values {
		check(sender.Send(s, &amqp.Message{Value: value}, nil))
	}
	receiver := s.receiver(session, 100)
	for _, value := range values {
		same(s.values(receiver, 1)[0], value)
	}
})

var _ = shows("data and sequences may come in several sections", "PRD-05", func(s *scene) {
	session := s.session()
	sender := must(session.NewSender(s, s.address, nil))
	data := [][]byte{[]byte("one"), {0, 255}}
	sequence := [][]any{{int64(1), int64(2)}, {"three"}}
	check(sender.Send(s, &amqp.Message{Data: data}, nil))
	check(sender.Send(s, &amqp.Message{Sequence: sequence}, nil))
	receiver := s.receiver(session, 2)
	same(s.next(receiver).Data, data)
	same(s.next(receiver).Sequence, sequence)
})

var _ = shows("every section, property and annotation arrives", "PRD-05", func(s *scene) {
	session := s.session()
	sent := &amqp.Message{
		Header:      &amqp.MessageHeader{Durable: true, Priority: 7},
		Annotations: amqp.Annotations{"x-opt-own": "kept"},
		Properties: &amqp.MessageProperties{
			MessageID: uint64(9), UserID: []byte("me"), To: &s.address, Subject: pointer("a subject"),
			ReplyTo: pointer("answers"), CorrelationID: amqp.UUID{7},
			ContentType: pointer("text/plain"), ContentEncoding: pointer("gzip"),
			AbsoluteExpiryTime: pointer(time.UnixMilli(4102444800000)),
			CreationTime:       pointer(time.UnixMilli(1700000000000)),
			GroupID:            pointer("g"), GroupSequence: pointer(uint32(3)), ReplyToGroupID: pointer("h"),
		},
		ApplicationProperties: map[string]any{"text": "x", "number": int64(1), "yes": true},
		Value:                 "body",
		Footer:                amqp.Annotations{"x-sum": int64(12)},
	}
	check(must(session.NewSender(s, s.address, nil)).Send(s, sent, nil))
	found := s.next(s.receiver(session, 1))
	same(found.Header.Durable, true)
	same(found.Header.Priority, uint8(7))
	same(found.Annotations, sent.Annotations)
	same(found.Properties, sent.Properties)
	same(found.ApplicationProperties, sent.ApplicationProperties)
	same(found.Value, sent.Value)
	same(found.Footer, sent.Footer)
})

var _ = shows("a large message goes both ways in many frames", "PRD-05", func(s *scene) {
	connection := s.dial(s.host("BROKER_URL"), &amqp.ConnOptions{MaxFrameSize: 4096})
	session := must(connection.NewSession(s, nil))
	body := bytes.Repeat([]byte("abcdefgh"), 5*1024*1024/8)
	sender := must(session.NewSender(s, s.address, nil))
	check(sender.Send(s, amqp.NewMessage(body), nil))
	check(sender.Send(s, text("behind"), nil))
	receiver := s.receiver(session, 2)
	large := s.next(receiver)
	same(bytes.Equal(large.GetData(), body), true)
	check(receiver.AcceptMessage(s, large))
	same(s.values(receiver, 1), []any{"behind"})
})

var _ = shows("a message beyond the limit is not sent", "", func(s *scene) {
	session := s.strictSession()
	sender := must(session.NewSender(s, s.address, nil))
	same(sender.MaxMessageSize(), uint64(1000000))
	err := sender.Send(s, amqp.NewMessage(make([]byte, 1500000)), nil)
	same(condition(err), "amqp:link:message-size-exceeded")
	s.fill(session, "goes on")
})

var _ = shows("three thousand messages in flight keep their order", "", func(s *scene) {
	const count = 3000
	sending := s.session()
	failed := make(chan error, 1)
	go func() {
		sender, err := sending.NewSender(s, s.address, nil)
		receipts := make([]amqp.SendReceipt, 0, count)
		for i := 0; i < count && err == nil; i++ {
			var receipt amqp.SendReceipt
			receipt, err = sender.SendWithReceipt(s, &amqp.Message{Value: int64(i)}, nil)
			receipts = append(receipts, receipt)
		}
		for i := 0; i < count && err == nil; i++ {
			var state amqp.DeliveryState
			state, err = receipts[i].Wait(s)
			if _, ok := state.(*amqp.StateAccepted); !ok && err == nil {
				err = errors.New("not accepted")
			}
		}
		failed <- err
	}()
	receiver := must(s.session().NewReceiver(s, s.address, &amqp.ReceiverOptions{Credit: 50}))
	for i := 0; i < count; i++ {
		same(s.values(receiver, 1)[0], int64(i))
	}
	check(<-failed)
})

var _ = shows("messages that are sent settled arrive", "", func(s *scene) {
	session := s.session()
	for _, options := range []*amqp.SenderOptions{nil, {SettlementMode: amqp.SenderSettleModeSettled.Ptr()}} {
		sender := must(session.NewSender(s, s.address, options))
		check(sender.Send(s, text("a"), &amqp.SendOptions{Settled: true}))
	}
	same(s.values(s.receiver(session, 2), 2), []any{"a", "a"})
})

var _ = shows("a receiver may ask for settled messages", "", func(s *scene) {
	session := s.session()
	s.fill(session, "a", "b")
	receiver := must(session.NewReceiver(s, s.address, &amqp.ReceiverOptions{
		Credit:                    1,
		RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(),
	}))
	same(s.next(receiver).Value, "a")
	same(s.next(receiver).Value, "b")
	check(receiver.Close(s))
	same(s.rest(session), []any{})
})

// ---- outcomes

// two is the first two messages of three, received and not settled.
type two struct {
	session       *amqp.Session
	receiver      *amqp.Receiver
	first, second *amqp.Message
}

func (s *scene) two() two {
	session := s.session()
	s.fill(session, "a", "b", "c")
	receiver := s.receiver(session, 2)
	return two{session, receiver, s.next(receiver), s.next(receiver)}
}

// after is what is left once the receiver has gone.
func (t two) after(s *scene) []any {
	check(t.receiver.Close(s))
	return s.rest(t.session)
}

var _ = shows("accepted: the message is gone", "RCV-02", func(s *scene) {
	state := s.two()
	check(state.receiver.AcceptMessage(s, state.second))
	same(state.after(s), []any{"a", "c"})
})

var _ = shows("released: it comes again, in its place, uncounted", "RCV-01 RCV-02", func(s *scene) {
	state := s.two()
	check(state.receiver.ReleaseMessage(s, state.first))
	check(state.receiver.IssueCredit(2))
	again := s.next(state.receiver)
	same(again.Value, "a")
	same(again.Header == nil || again.Header.DeliveryCount == 0, true)
	same(s.values(state.receiver, 1), []any{"c"})
})

var _ = shows("modified as failed: it comes again, counted", "RCV-01 RCV-02", func(s *scene) {
	state := s.two()
	options := &amqp.ModifyMessageOptions{DeliveryFailed: true}
	check(state.receiver.ModifyMessage(s, state.first, options))
	check(state.receiver.IssueCredit(1))
	again := s.next(state.receiver)
	same(again.Value, "a")
	same(again.Header.DeliveryCount, uint32(1))
})

var _ = shows("modified as undeliverable here: another receiver gets it", "RCV-02", func(s *scene) {
	state := s.two()
	options := &amqp.ModifyMessageOptions{UndeliverableHere: true}
	check(state.receiver.ModifyMessage(s, state.first, options))
	check(state.receiver.IssueCredit(1))
	same(s.values(state.receiver, 1), []any{"c"})
	same(s.values(s.receiver(state.session, 1), 1), []any{"a"})
})

var _ = shows("rejected: it is found among the dead letters", "RCV-02", func(s *scene) {
	state := s.two()
	value := "rejected of " + s.address
	s.fill(state.session, value)
	check(state.receiver.IssueCredit(2))
	s.next(state.receiver)
	// go-amqp writes the keys of `Info` as strings, not as symbols (core 2.8.13)
	info := map[string]any{"order": "a"}
	why := &amqp.Error{Condition: "app:no", Description: "not wanted", Info: info}
	check(state.receiver.RejectMessage(s, s.next(state.receiver), why))
	same(state.after(s), []any{"a", "b", "c"})
	dead := s.browser(state.session, "DLQ")
	for s.next(dead).Value != value {
	}
})

var _ = shows("deliveries are settled in any order", "RCV-02", func(s *scene) {
	state := s.two()
	check(state.receiver.IssueCredit(1))
	check(state.receiver.AcceptMessage(s, s.next(state.receiver)))
	check(state.receiver.AcceptMessage(s, state.first))
	same(state.after(s), []any{"b"})
})

var _ = shows("a receiver that settles second is answered, whatever the outcome", "", func(s *scene) {
	session := s.session()
	s.fill(session, "a", "b", "c")
	receiver := must(session.NewReceiver(s, s.address, &amqp.ReceiverOptions{
		Credit:         -1,
		SettlementMode: amqp.ReceiverSettleModeSecond.Ptr(),
	}))
	check(receiver.IssueCredit(3))
	first, second, third := s.next(receiver), s.next(receiver), s.next(receiver)
	check(receiver.AcceptMessage(s, second)) // returns with the broker's answer
	check(receiver.RejectMessage(s, first, nil))
	check(receiver.ReleaseMessage(s, third))
	check(receiver.Close(s))
	same(s.rest(session), []any{"c"})
})

var _ = shows("what a receiver leaves unsettled comes again", "RCV-08", func(s *scene) {
	same(s.two().after(s), []any{"a", "b", "c"})
})

// ---- credit

var _ = shows("no more comes than there is credit", "", func(s *scene) {
	session := s.session()
	s.fill(session, "a", "b", "c")
	receiver := s.receiver(session, 1)
	same(s.values(receiver, 1), []any{"a"})
	check(receiver.IssueCredit(1))
	same(s.values(receiver, 1), []any{"b"})
	same(receiver.Prefetched() == nil, true)
})

var _ = shows("a drain takes the credit back", "", func(s *scene) {
	session := s.session()
	s.fill(session, "a", "b")
	receiver := s.receiver(session, 10)
	same(s.values(receiver, 2), []any{"a", "b"})
	check(receiver.DrainCredit(s, nil)) // go-amqp's drain says link-credit 0
	s.fill(session, "c")
	same(s.values(s.receiver(session, 1), 1), []any{"c"})
	s.fill(session, "d")
	check(receiver.IssueCredit(1))
	same(s.values(receiver, 1), []any{"d"})
})

var _ = shows("a drain of an empty queue is answered, time and again", "", func(s *scene) {
	receiver := s.receiver(s.session(), 0)
	for i := 0; i < 20; i++ {
		check(receiver.IssueCredit(5))
		check(receiver.DrainCredit(s, nil))
	}
	same(receiver.Prefetched() == nil, true)
})

// ---- addresses

var _ = shows("a missing address is refused, and the session goes on", "DST-02", func(s *scene) {
	session := s.strictSession()
	_, err := session.NewReceiver(s, "closed."+s.address, nil)
	same(condition(err), "amqp:not-found")
	_, err = session.NewSender(s, "closed."+s.address, nil)
	same(condition(err), "amqp:not-found")
	s.fill(session, "goes on")
})

var _ = shows("every subscriber of a topic gets a message", "DST-01", func(s *scene) {
	session := s.session()
	options := &amqp.ReceiverOptions{Credit: 1, SourceCapabilities: []string{"topic"}}
	first := must(session.NewReceiver(s, s.address, options))
	second := must(session.NewReceiver(s, s.address, options))
	sender := must(session.NewSender(s, s.address, &amqp.SenderOptions{TargetCapabilities: []string{"topic"}}))
	check(sender.Send(s, text("news"), nil))
	same(s.values(first, 1), []any{"news"})
	same(s.values(second, 1), []any{"news"})
})

var _ = shows("a browser takes nothing", "RCV-04", func(s *scene) {
	session := s.session()
	s.fill(session, "a", "b")
	for i := 0; i < 2; i++ {
		browser := s.browser(session, s.address)
		same([]any{s.next(browser).Value, s.next(browser).Value}, []any{"a", "b"})
		check(browser.Close(s))
	}
	same(s.rest(session), []any{"a", "b"})
})

var _ = shows("the anonymous relay sends each message where it says", "PRD-01 PRD-02", func(s *scene) {
	session := s.strictSession()
	sender := must(session.NewSender(s, "", nil))
	to := func(address, value string) error {
		properties := &amqp.MessageProperties{To: &address}
		return sender.Send(s, &amqp.Message{Properties: properties, Value: value}, nil)
	}
	check(to(s.address+"-1", "one"))
	same(condition(to("closed."+s.address, "nowhere")), "amqp:not-found")
	check(to(s.address+"-2", "two"))
	same(s.next(s.browser(session, s.address+"-1")).Value, "one")
	same(s.next(s.browser(session, s.address+"-2")).Value, "two")
})

var _ = shows("a temporary address can be asked for, and is used", "TMP-01", func(s *scene) {
	session := s.session()
	made := must(session.NewSender(s, "", &amqp.SenderOptions{
		DynamicAddress:     true,
		TargetExpiryPolicy: amqp.ExpiryPolicyLinkDetach,
		TargetCapabilities: []string{"temporary-queue"},
	}))
	receiver := must(session.NewReceiver(s, made.Address(), nil))
	check(made.Send(s, text("mine"), nil))
	same(s.values(receiver, 1), []any{"mine"})
})

// ---- lost connections

var _ = shows("what was unsettled on a lost connection comes again", "RCV-08", func(s *scene) {
	host, cut := s.relay()
	connection := s.dial(host, nil)
	session := must(connection.NewSession(s, nil))
	s.fill(session, "a", "b")
	receiver := s.receiver(session, 2)
	same([]any{s.next(receiver).Value, s.next(receiver).Value}, []any{"a", "b"})
	cut()
	_, err := receiver.Receive(s, nil)
	var lost *amqp.ConnError
	same(errors.As(err, &lost), true)
	again := must(s.dial(host, nil).NewSession(s, nil))
	same(s.values(s.receiver(again, 2), 2), []any{"a", "b"})
	s.fill(again, "c")
	same(s.rest(again), []any{"c"})
})

var _ = shows("a link that is stolen is told so", "SUB-37", func(s *scene) {
	options := &amqp.ConnOptions{ContainerID: s.address}
	link := &amqp.ReceiverOptions{Name: "link of " + s.address, Credit: 1}
	mine := must(s.dial(s.host("BROKER_URL"), options).NewSession(s, nil))
	thief := must(s.dial(s.host("BROKER_URL"), options).NewSession(s, nil))
	stolen := must(mine.NewReceiver(s, s.address, link))
	receiver := must(thief.NewReceiver(s, s.address, link))
	_, err := stolen.Receive(s, nil)
	same(condition(err), "amqp:link:stolen")
	s.fill(thief, "a")
	same(s.values(receiver, 1), []any{"a"})
})

// ---- the functions of docs/start/go.md

var _ = shows("the function that sends and receives", "", func(s *scene) {
	same(must(hello(s, os.Getenv("BROKER_URL"), s.address)), "world")
})

var _ = shows("the function with a durable subscription", "SUB-02", func(s *scene) {
	topic := &amqp.SenderOptions{TargetCapabilities: []string{"topic"}}
	sender := must(s.session().NewSender(s, s.address, topic))
	for _, value := range []string{"it rains", "it pours"} {
		connection, receiver, err := subscribe(s, os.Getenv("BROKER_URL"), s.address)
		check(err)
		if value == "it pours" {
			same(s.values(receiver, 1), []any{"it rains"})
		}
		check(connection.Close())
		check(sender.Send(s, text(value), nil))
	}
})
