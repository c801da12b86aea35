// Command tuned is the fastest Go that still writes, reads and checks every
// byte: a blocking pipe of 1 MiB outside the runtime's poller, calls that bypass
// the runtime's scheduler, and comparison of blocks with the expected ones.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"pipemark/entrant/stream"
)

const capacity = 1 << 20

const (
	fSetPipeSize = 1031 // F_SETPIPE_SZ
	fGetPipeSize = 1032 // F_GETPIPE_SZ
)

// The child's descriptors, in the order of command.ExtraFiles.
const (
	childData = 3
	childBack = 4
)

// checksum sums the blocks that the child receives. A comparison is vectorised and
// a loop over words is not, so each block is compared, byte for byte, with the
// expected one. If they are equal, their sums are too, and the sums of any block
// follow from those of block 0. A block that differs is summed word by word. So
// the checksum depends only on the bytes received.
type checksum struct {
	document bool
	expected *stream.Blocks
	words    uint32 // in a whole block
	a, b     uint32 // sums of block 0
	xor      byte   // of a whole block
	number   uint64
	value    uint64
}

func newChecksum(options *stream.Options) *checksum {
	c := &checksum{document: options.Document, expected: stream.NewBlocks(options)}
	if c.document {
		c.xor = xor(c.expected.Expect(0))
		return c
	}
	c.value = 1
	c.words = uint32((options.Block + 3) / 4)
	c.a, c.b = sums(c.expected.Expect(0))
	return c
}

func (c *checksum) add(block []byte) {
	number := c.number
	c.number++
	equal := bytes.Equal(block, c.expected.Expect(number))
	if c.document {
		x := c.xor
		if !equal {
			x = xor(block)
		}
		c.value ^= uint64(x)
		return
	}
	var a, b uint32
	if equal && len(block) >= 8 {
		low, high := uint32(number), uint32(number>>32)
		a = c.a + low + high
		b = c.b + c.words*low + (c.words-1)*high
	} else {
		a, b = sums(block)
	}
	c.value = c.value*stream.Factor + (uint64(b)<<32 | uint64(a))
}

func sums(block []byte) (a, b uint32) {
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
	return a, b
}

func xor(block []byte) (x byte) {
	for _, b := range block {
		x ^= b
	}
	return x
}

func fcntl(fd, command, argument int) (int, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), uintptr(command), uintptr(argument))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// transfer reads or writes a block that is not empty, with read(2) or write(2),
// without telling the scheduler. If the scheduler knew of a long call, it would
// wake another thread, which would find nothing to do. A raw call keeps its
// processor and delays the garbage collector. That is harmless here, because no
// other goroutine needs the processor and there is no garbage.
func transfer(call uintptr, fd int, block []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&block[0])), uintptr(len(block)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

func writeAll(fd int, block []byte) error {
	for len(block) > 0 {
		n, err := transfer(syscall.SYS_WRITE, fd, block)
		if err != nil {
			return os.NewSyscallError("write", err)
		}
		block = block[n:]
	}
	return nil
}

// fill reads until the block is full or the stream ends.
func fill(fd int, block []byte) (have int, err error) {
	for have < len(block) {
		n, err := transfer(syscall.SYS_READ, fd, block[have:])
		if err != nil {
			return have, os.NewSyscallError("read", err)
		}
		if n == 0 {
			break
		}
		have += n
	}
	return have, nil
}

func child(options *stream.Options) error {
	// If 1 MiB exceeds the user's limit, the pipe keeps its capacity, which is read back.
	_, _ = fcntl(childData, fSetPipeSize, capacity)
	size, err := fcntl(childData, fGetPipeSize, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	sum := newChecksum(options)
	block := make([]byte, options.Block)
	if err := writeAll(childBack, []byte("r")); err != nil {
		return err
	}
	var count int64
	for {
		n, err := fill(childData, block)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		sum.add(block[:n])
		count += int64(n)
	}
	answer := stream.NewAnswer(count, sum.value)
	answer.Capacity = &size
	line, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return writeAll(childBack, line)
}

func parent(options *stream.Options) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	var data, back [2]int
	if err := errors.Join(syscall.Pipe2(data[:], syscall.O_CLOEXEC), syscall.Pipe2(back[:], syscall.O_CLOEXEC)); err != nil {
		return err
	}
	command := exec.Command(executable, append([]string{"--child"}, os.Args[1:]...)...)
	command.Stderr = os.Stderr
	dataIn, backOut := os.NewFile(uintptr(data[0]), "data"), os.NewFile(uintptr(back[1]), "back")
	command.ExtraFiles = []*os.File{dataIn, backOut}
	if err := command.Start(); err != nil {
		return err
	}
	if err := errors.Join(dataIn.Close(), backOut.Close()); err != nil {
		return err
	}
	blocks := stream.NewBlocks(options)
	line := make([]byte, 256)
	if n, err := fill(back[0], line[:1]); n != 1 {
		return errors.Join(errors.New("the child ended before it was ready"), err)
	}

	start := time.Now()
	if err := blocks.Send(func(block []byte) error { return writeAll(data[1], block) }); err != nil {
		return err
	}
	if err := syscall.Close(data[1]); err != nil {
		return err
	}
	n, err := fill(back[0], line)
	took := time.Since(start)
	if err != nil {
		return err
	}

	if err := command.Wait(); err != nil {
		return err
	}
	var answer stream.Answer
	if err := json.Unmarshal(line[:n], &answer); err != nil {
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
