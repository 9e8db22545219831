package main

// The functions of docs/start/go.md; cases.go calls them.

// --8<-- [start:imports]
import (
	"context"

	"github.com/Azure/go-amqp"
)

// --8<-- [end:imports]

// --8<-- [start:hello]

// hello sends a message to a queue, receives it, and returns its body.
func hello(ctx context.Context, url, queue string) (any, error) {
	connection, err := amqp.Dial(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	session, err := connection.NewSession(ctx, nil)
	if err != nil {
		return nil, err
	}

	sender, err := session.NewSender(ctx, queue, nil)
	if err != nil {
		return nil, err
	}
	message := &amqp.Message{Header: &amqp.MessageHeader{Durable: true, Priority: 4}, Value: "world"}
	if err = sender.Send(ctx, message, nil); err != nil {
		return nil, err
	}

	receiver, err := session.NewReceiver(ctx, queue, nil)
	if err != nil {
		return nil, err
	}
	received, err := receiver.Receive(ctx, nil)
	if err != nil {
		return nil, err
	}
	return received.Value, receiver.AcceptMessage(ctx, received)
}

// --8<-- [end:hello]

// --8<-- [start:subscribe]

// subscribe opens the durable subscription `archive` of the client `gazette`.
func subscribe(ctx context.Context, url, topic string) (*amqp.Conn, *amqp.Receiver, error) {
	connection, err := amqp.Dial(ctx, url, &amqp.ConnOptions{ContainerID: "gazette"})
	if err != nil {
		return nil, nil, err
	}
	session, err := connection.NewSession(ctx, nil)
	if err != nil {
		return connection, nil, err
	}
	receiver, err := session.NewReceiver(ctx, topic, &amqp.ReceiverOptions{
		Name:               "archive",
		SourceCapabilities: []string{"topic"},
		SourceDurability:   amqp.DurabilityUnsettledState,
		SourceExpiryPolicy: amqp.ExpiryPolicyNever,
	})
	return connection, receiver, err
}

// --8<-- [end:subscribe]
