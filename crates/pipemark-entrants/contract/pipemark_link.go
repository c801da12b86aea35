// Package pipemark is one end of a link that pipemark measures. docs/outside-links.md describes the contract, version 1.
//
// Put this file into a directory pipemark of your module, with pipemark_link.c and pipemark_link.h.
package pipemark

// #cgo CFLAGS: -O3
// #include <stdlib.h>
// #include "pipemark_link.h"
import "C"

import "unsafe"

// Link is one end of a link.
type Link struct {
	link       *C.struct_pm_link
	Block      int
	Sender     bool
	RoundTrips bool
	Index      int
	Senders    int
	Receivers  int
	Wait       string
	Directory  string // for files and sockets
	Name       string // for objects with names elsewhere
}

// Start reads the assignment. The role names the end in a program that is both ends, such as "receiver0"; otherwise it
// is empty.
func Start(role string) *Link {
	var text *C.char
	if role != "" {
		text = C.CString(role)
		defer C.free(unsafe.Pointer(text))
	}
	l := C.pm_new(text)
	return &Link{
		link:       l,
		Block:      int(l.block),
		Sender:     bool(l.sender),
		RoundTrips: bool(l.round_trips),
		Index:      int(l.index),
		Senders:    int(l.senders),
		Receivers:  int(l.receivers),
		Wait:       C.GoString(&l.wait[0]),
		Directory:  C.GoString(&l.directory[0]),
		Name:       C.GoString(&l.name[0]),
	}
}

// Option returns the value of an option of the link, or otherwise.
func (l *Link) Option(name, otherwise string) string {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if value := C.pm_option(l.link, text, nil); value != nil {
		return C.GoString(value)
	}
	return otherwise
}

// Bound says that this end exists, so that the other may connect to it.
func (l *Link) Bound() { C.pm_bound(l.link) }

// Ready says that this end is connected, and waits until all ends are.
func (l *Link) Ready() { C.pm_ready(l.link) }

// Last returns whether Next has returned the end of the stream, which gets no reply.
func (l *Link) Last() bool { return bool(l.link.last) }

// Next returns the next block to send or to return, valid until the next call; nil once all have been sent.
func (l *Link) Next() []byte {
	block := C.pm_next_block(l.link, nil)
	if block == nil {
		return nil
	}
	return unsafe.Slice((*byte)(block), l.Block)
}

// Received checks and counts a message, or any piece of a byte stream. It returns false at the end of a stream of
// messages.
func (l *Link) Received(data []byte) bool {
	return bool(C.pm_check(l.link, unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data))))
}

// Done reports the results, and waits until all ends have. The sender of a byte stream closes its end before.
func (l *Link) Done() { C.pm_done(l.link) }
