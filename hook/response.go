package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	// largestHead bounds the head of a response in bytes, and likewise the lines around a chunk.
	largestHead = 16 << 10
	// largestBody is far above what an answer about hundreds of gateways needs.
	largestBody = 1 << 20
)

var errCut = errors.New("the answer was cut off")

// head holds the needed parts of a response before its body.
type head struct {
	status  int
	chunked bool
	// length is -1 if the head does not give it.
	length int64
}

// readResponse reads one HTTP/1.x response (RFC 9112). It returns errCut if the response is cut off. A body without
// length and chunks ends with the connection: the caller then detects a cut, because the body is not JSON.
func readResponse(from *bufio.Reader) (status int, body []byte, err error) {
	for {
		head, err := readHead(from)
		if err != nil {
			return 0, nil, cut(err)
		}
		if head.status >= 100 && head.status < 200 && head.status != 101 {
			continue
		}
		body, err := readBody(from, head)
		return head.status, body, cut(err)
	}
}

func readHead(from *bufio.Reader) (head, error) {
	left := largestHead
	line, err := readLine(from, &left)
	if err != nil {
		return head{}, err
	}
	protocol, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || len(code) != 3 || status < 100 || !strings.HasPrefix(protocol, "HTTP/1.") {
		return head{}, fmt.Errorf("%.40q is no HTTP answer", line)
	}
	result := head{status: status, length: -1}
	for {
		line, err := readLine(from, &left)
		if err != nil || line == "" {
			return result, err
		}
		name, value, found := strings.Cut(line, ":")
		if !found || name == "" || strings.ContainsAny(name, " \t") {
			return head{}, fmt.Errorf("%.40q is no HTTP header", line)
		}
		if err := result.header(strings.ToLower(name), strings.Trim(value, " \t")); err != nil {
			return head{}, err
		}
	}
}

func (h *head) header(name, value string) error {
	switch name {
	case "transfer-encoding":
		if h.chunked || !strings.EqualFold(value, "chunked") {
			return fmt.Errorf("transfer-encoding %.40q is not understood", value)
		}
		h.chunked = true
	case "content-length":
		length, err := strconv.ParseUint(value, 10, 62)
		if err != nil || h.length >= 0 && h.length != int64(length) {
			return fmt.Errorf("content-length %.40q is wrong", value)
		}
		h.length = int64(length)
	}
	return nil
}

func readBody(from *bufio.Reader, head head) ([]byte, error) {
	switch {
	case head.status == 101 || head.status == 204 || head.status == 304:
		return nil, nil
	case head.chunked:
		return readChunks(from)
	case head.length > largestBody:
		return nil, fmt.Errorf("the answer is larger than %d bytes", largestBody)
	case head.length >= 0:
		body := make([]byte, head.length)
		_, err := io.ReadFull(from, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(from, largestBody+1))
	if err == nil && len(body) > largestBody {
		err = fmt.Errorf("the answer is larger than %d bytes", largestBody)
	}
	return body, err
}

func readChunks(from *bufio.Reader) ([]byte, error) {
	var body []byte
	for {
		left := largestHead
		line, err := readLine(from, &left)
		if err != nil {
			return nil, err
		}
		digits, _, _ := strings.Cut(line, ";")
		size, err := strconv.ParseUint(strings.TrimRight(digits, " \t"), 16, 62)
		if err != nil {
			return nil, fmt.Errorf("%.40q is no chunk size", line)
		}
		if size == 0 {
			return body, skipTrailers(from)
		}
		if uint64(len(body))+size > largestBody {
			return nil, fmt.Errorf("the answer is larger than %d bytes", largestBody)
		}
		chunk := make([]byte, size)
		if _, err := io.ReadFull(from, chunk); err != nil {
			return nil, err
		}
		body = append(body, chunk...)
		if end, err := readLine(from, &left); err != nil {
			return nil, err
		} else if end != "" {
			return nil, errors.New("a chunk is longer than it said")
		}
	}
}

func skipTrailers(from *bufio.Reader) error {
	left := largestHead
	for {
		if line, err := readLine(from, &left); err != nil || line == "" {
			return err
		}
	}
}

// readLine strips the line end, and subtracts the line's length from the remaining limit.
func readLine(from *bufio.Reader, left *int) (string, error) {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		*left -= len(part)
		if *left < 0 {
			return "", errors.New("the head of the answer is too large")
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"), err
	}
}

// cut returns errCut if the connection ended in the middle of an answer, and every other error unchanged.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}
