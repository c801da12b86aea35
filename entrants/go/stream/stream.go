// Package stream is shared by both programs: the options, the bytes to send, and
// the result line. Each program moves and sums bytes in its own way. See
// ../../README.md.
package stream

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Factor multiplies the checksum before each block's sums are added to it.
const Factor = 0x9E3779B97F4A7C15

// Options are the command line.
type Options struct {
	Child    bool
	Bytes    int64
	Block    int
	Document bool
	Seed     uint32
	Flip     int64 // offset of the byte to invert; negative for none
}

// Parse reads the command line, and ends the process if the command line is invalid.
func Parse() *Options {
	child := flag.Bool("child", false, "be the child that reads standard input")
	bytes := flag.Int64("bytes", -1, "how many bytes to send")
	block := flag.Int("block", 0, "bytes per read and write")
	pattern := flag.String("pattern", "position", "position or document")
	seed := flag.Uint("seed", 0, "start of the noise")
	flip := flag.Int64("flip", -1, "offset of a byte to invert")
	flag.Parse()
	if *bytes < 0 || *block < 1 || (*pattern != "position" && *pattern != "document") {
		fmt.Fprintln(os.Stderr, "--bytes, a --block of at least 1 and a --pattern of position or document are needed")
		os.Exit(2)
	}
	return &Options{*child, *bytes, *block, *pattern == "document", uint32(*seed), *flip}
}

// Blocks is the stream. All blocks use one buffer in turn.
type Blocks struct {
	options *Options
	buffer  []byte
}

// NewBlocks makes block 0.
func NewBlocks(options *Options) *Blocks {
	buffer := make([]byte, options.Block)
	x := options.Seed
	for i := range buffer {
		x = x*1664525 + 1013904223
		if options.Document {
			buffer[i] = byte(i)
		} else {
			buffer[i] = byte(x >> 24)
		}
	}
	blocks := &Blocks{options, buffer}
	blocks.Expect(0)
	return blocks
}

// Expect returns the whole block with this number, valid until the next call.
func (b *Blocks) Expect(number uint64) []byte {
	if !b.options.Document {
		var stamp [8]byte
		binary.LittleEndian.PutUint64(stamp[:], number)
		copy(b.buffer, stamp[:])
	}
	return b.buffer
}

// Send passes each block to write, until the last block or an error.
func (b *Blocks) Send(write func([]byte) error) error {
	block := int64(b.options.Block)
	for offset := int64(0); offset < b.options.Bytes; offset += block {
		bytes := b.Expect(uint64(offset / block))[:min(block, b.options.Bytes-offset)]
		flip := b.options.Flip - offset
		flipped := flip >= 0 && flip < int64(len(bytes))
		if flipped {
			bytes[flip] ^= 0xff
		}
		if err := write(bytes); err != nil {
			return err
		}
		if flipped {
			bytes[flip] ^= 0xff
		}
	}
	return nil
}

// Answer is the child's result.
type Answer struct {
	Bytes    int64  `json:"bytes"`
	Checksum string `json:"checksum"`
	Capacity *int   `json:"capacity"` // in bytes; nil if unknown
}

// NewAnswer returns an answer whose capacity is unknown.
func NewAnswer(bytes int64, checksum uint64) Answer {
	return Answer{Bytes: bytes, Checksum: fmt.Sprintf("%016x", checksum)}
}

// Report prints the result line that the contract requires.
func Report(answer Answer, took time.Duration) error {
	return json.NewEncoder(os.Stdout).Encode(struct {
		Language string `json:"language"`
		Runtime  string `json:"runtime"`
		Ns       int64  `json:"ns"`
		Answer
	}{"Go", runtime.Version(), took.Nanoseconds(), answer})
}
