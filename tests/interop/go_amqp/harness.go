// Package main does to the broker what a Go program does with Azure's go-amqp.
// This file is what the cases are written with.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
)

const soon = 20 * time.Second // long enough for a loaded machine

type testCase struct {
	name string
	body func(*scene)
}

var cases []testCase

// shows is one case: its name, the requirements that it proves, and what is done.
func shows(name, _ string, body func(*scene)) bool {
	cases = append(cases, testCase{name, body})
	return true
}

// scene is what one case has: an address of its own, time, and connections that end with it.
type scene struct {
	context.Context
	address string
	endings []func()
}

var notLetters = regexp.MustCompile(`[^a-z]+`)

func newScene(name string) *scene {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	suffix := make([]byte, 4)
	_, err := rand.Read(suffix)
	check(err)
	address := "go-" + notLetters.ReplaceAllString(name, "-") + "-" + hex.EncodeToString(suffix)
	return &scene{Context: ctx, address: address, endings: []func(){cancel}}
}

func (s *scene) end() {
	for i := len(s.endings) - 1; i >= 0; i-- {
		s.endings[i]()
	}
}

// check ends the case where there is an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// must is what a call returned, where it went well.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// same ends the case where what was found is not what was expected.
func same(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("found %#v, expected %#v", found, expected))
	}
}

// condition is the error condition that the broker ended something with.
func condition(err error) string {
	var told *amqp.Error
	if errors.As(err, &told) {
		return string(told.Condition)
	}
	return fmt.Sprintf("no condition: %v", err)
}

func (s *scene) host(variable string) string {
	return must(url.Parse(os.Getenv(variable))).Host
}

func (s *scene) dial(host string, options *amqp.ConnOptions) *amqp.Conn {
	connection := must(amqp.Dial(s, "amqp://"+host, options))
	s.endings = append(s.endings, func() { _ = connection.Close() })
	return connection
}

func (s *scene) strictOptions() *amqp.ConnOptions {
	sasl := amqp.SASLTypePlain(os.Getenv("BROKER_USER"), os.Getenv("BROKER_PASSWORD"))
	return &amqp.ConnOptions{SASLType: sasl}
}

func (s *scene) session() *amqp.Session {
	return must(s.dial(s.host("BROKER_URL"), nil).NewSession(s, nil))
}

func (s *scene) strictSession() *amqp.Session {
	return must(s.dial(s.host("BROKER_STRICT_URL"), s.strictOptions()).NewSession(s, nil))
}

func text(value string) *amqp.Message { return &amqp.Message{Value: value} }

// fill sends texts, one after another; all are accepted.
func (s *scene) fill(session *amqp.Session, texts ...string) {
	sender := must(session.NewSender(s, s.address, nil))
	for _, one := range texts {
		check(sender.Send(s, text(one), nil))
	}
	check(sender.Close(s))
}

// receiver is one whose credit the case gives itself.
func (s *scene) receiver(session *amqp.Session, credit uint32) *amqp.Receiver {
	receiver := must(session.NewReceiver(s, s.address, &amqp.ReceiverOptions{Credit: -1}))
	if credit > 0 {
		check(receiver.IssueCredit(credit))
	}
	return receiver
}

func (s *scene) next(receiver *amqp.Receiver) *amqp.Message {
	return must(receiver.Receive(s, nil))
}

// values are those of the next messages, which are accepted.
func (s *scene) values(receiver *amqp.Receiver, count int) []any {
	found := []any{}
	for len(found) < count {
		message := s.next(receiver)
		check(receiver.AcceptMessage(s, message))
		found = append(found, message.Value)
	}
	return found
}

const lastOne = "the last one"

// rest takes everything that is left at the scene's address: what comes before a last message.
func (s *scene) rest(session *amqp.Session) []any {
	s.fill(session, lastOne)
	receiver := must(session.NewReceiver(s, s.address, &amqp.ReceiverOptions{Credit: 10}))
	found := []any{}
	for value := s.values(receiver, 1)[0]; value != lastOne; value = s.values(receiver, 1)[0] {
		found = append(found, value)
	}
	check(receiver.Close(s))
	return found
}

// browser sees what lies at an address, and takes nothing.
func (s *scene) browser(session *amqp.Session, address string) *amqp.Receiver {
	return must(session.NewReceiver(s, address, &amqp.ReceiverOptions{
		Credit:                 100,
		SourceDistributionMode: amqp.SourceDistributionModeCopy,
	}))
}

// relay passes everything on to the broker. `cut` breaks its connections.
func (s *scene) relay() (host string, cut func()) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	s.endings = append(s.endings, func() { _ = listener.Close() })
	var mutex sync.Mutex
	var open []net.Conn
	broker := s.host("BROKER_URL")
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server := must(net.Dial("tcp", broker))
			mutex.Lock()
			open = append(open, client, server)
			mutex.Unlock()
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
		}
	}()
	return listener.Addr().String(), func() {
		mutex.Lock()
		defer mutex.Unlock()
		for _, connection := range open {
			_ = connection.Close()
		}
		open = nil
	}
}

// problem is what is wrong with the broker in this case, or nil.
func problem(one testCase) (found *string) {
	scene := newScene(one.name)
	defer scene.end()
	defer func() {
		if wrong := recover(); wrong != nil {
			said := fmt.Sprintf("%v\n%s", wrong, debug.Stack())
			found = &said
		}
	}()
	one.body(scene)
	return nil
}

// main runs the cases with the names that are its arguments, side by side.
func main() {
	wanted := "\x00" + strings.Join(os.Args[1:], "\x00") + "\x00"
	var running sync.WaitGroup
	var printing sync.Mutex
	for _, one := range cases {
		if !strings.Contains(wanted, "\x00"+one.name+"\x00") {
			continue
		}
		running.Add(1)
		go func(one testCase) {
			defer running.Done()
			line := must(json.Marshal(map[string]any{"case": one.name, "problem": problem(one)}))
			printing.Lock()
			defer printing.Unlock()
			fmt.Println(string(line))
		}(one)
	}
	running.Wait()
}
