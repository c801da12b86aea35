// Both ends of a named pipe, or of two for round trips. With the argument null, there is no transfer.
package main

import (
	"io"
	"os"
	"path/filepath"
	"syscall"

	"pipe/pipemark"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func withoutTransfer(link *pipemark.Link) {
	link.Ready()
	block := append([]byte(nil), link.Next()...)
	if link.Sender {
		for link.Next() != nil {
		}
	} else {
		for link.Received(block) {
		}
	}
}

func pipe(link *pipemark.Link) {
	open := func(name string, writes bool) *os.File {
		flags := os.O_RDONLY
		if writes {
			flags = os.O_WRONLY
		}
		file, err := os.OpenFile(filepath.Join(link.Directory, name), flags, 0)
		must(err)
		return file
	}
	if !link.Sender {
		must(syscall.Mkfifo(filepath.Join(link.Directory, "there"), 0o600))
		must(syscall.Mkfifo(filepath.Join(link.Directory, "back"), 0o600))
	}
	link.Bound()
	there := open("there", link.Sender)
	var back *os.File
	if link.RoundTrips {
		back = open("back", !link.Sender)
	}
	room := make([]byte, link.Block)
	link.Ready()
	if link.Sender {
		for block := link.Next(); block != nil; block = link.Next() {
			_, err := there.Write(block)
			must(err)
			if link.RoundTrips {
				_, err := io.ReadFull(back, room)
				must(err)
				link.Received(room)
			}
		}
		must(there.Close())
		return
	}
	for {
		count, err := there.Read(room)
		if link.RoundTrips && err == nil {
			_, err = io.ReadFull(there, room[count:])
			count = len(room)
		}
		if err == io.EOF {
			return
		}
		must(err)
		link.Received(room[:count])
		if link.RoundTrips {
			_, err := back.Write(link.Next())
			must(err)
		}
	}
}

func main() {
	link := pipemark.Start("")
	if len(os.Args) > 1 {
		withoutTransfer(link)
	} else {
		pipe(link)
	}
	link.Done()
}
