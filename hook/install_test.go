package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInstall(t *testing.T) {
	at := t.TempDir()
	for range 2 {
		if code := install([]string{at}); code != 0 {
			t.Fatal(code)
		}
	}
	files, err := os.ReadDir(at)
	if err != nil || len(files) != 1 || files[0].Name() != "apisix-drain-hook" {
		t.Fatal(files, err)
	}
	info, err := os.Stat(filepath.Join(at, "apisix-drain-hook"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Error(info.Mode(), err)
	}
}

func TestInstallWrongly(t *testing.T) {
	for _, args := range [][]string{nil, {""}, {"--help"}, {"/a", "/b"}} {
		if code := install(args); code != exitUsage {
			t.Errorf("%q: %d", args, code)
		}
	}
	if code := install([]string{filepath.Join(t.TempDir(), "missing")}); code != 1 {
		t.Error(code)
	}
}
