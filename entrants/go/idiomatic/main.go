// Command idiomatic streams through a pipe in idiomatic Go: os/exec and io.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"time"

	"pipemark/entrant/stream"
)

func addWordSums(checksum uint64, block []byte) uint64 {
	var a, b uint32
	for len(block) >= 4 {
		a += binary.LittleEndian.Uint32(block)
		b += a
		block = block[4:]
	}
	if len(block) > 0 {
		var word [4]byte
		copy(word[:], block)
		a += binary.LittleEndian.Uint32(word[:])
		b += a
	}
	return checksum*stream.Factor + (uint64(b)<<32 | uint64(a))
}

func addByteXor(checksum uint64, block []byte) uint64 {
	var x byte
	for _, b := range block {
		x ^= b
	}
	return checksum ^ uint64(x)
}

func child(options *stream.Options) error {
	add, checksum := addWordSums, uint64(1)
	if options.Document {
		add, checksum = addByteXor, 0
	}
	var bytes int64
	block := make([]byte, options.Block)
	fmt.Println("ready")
	for {
		n, err := io.ReadFull(os.Stdin, block)
		if n > 0 {
			checksum = add(checksum, block[:n])
			bytes += int64(n)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(stream.NewAnswer(bytes, checksum))
}

func parent(options *stream.Options) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(executable, append([]string{"--child"}, os.Args[1:]...)...)
	command.Stderr = os.Stderr
	data, err := command.StdinPipe()
	if err != nil {
		return err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	back := bufio.NewReader(output)
	blocks := stream.NewBlocks(options)
	if ready, err := back.ReadString('\n'); err != nil || ready != "ready\n" {
		return errors.New("the child ended before it was ready")
	}

	start := time.Now()
	err = blocks.Send(func(block []byte) error {
		_, err := data.Write(block)
		return err
	})
	if err != nil {
		return err
	}
	if err := data.Close(); err != nil {
		return err
	}
	line, err := back.ReadBytes('\n')
	took := time.Since(start)
	if err != nil {
		return errors.New("the child ended without an answer")
	}

	var answer stream.Answer
	if err := json.Unmarshal(line, &answer); err != nil {
		return err
	}
	if err := command.Wait(); err != nil {
		return err
	}
	return stream.Report(answer, took)
}

func main() {
	log.SetFlags(0)
	options := stream.Parse()
	run := parent
	if options.Child {
		run = child
	}
	if err := run(options); err != nil {
		log.Fatal(err)
	}
}
