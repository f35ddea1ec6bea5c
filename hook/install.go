package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const fileName = "apisix-drain-hook"

// install copies this program into a folder, for an init container whose image has no cp.
func install(args []string) int {
	if len(args) != 1 || args[0] == "" || args[0][0] == '-' {
		fmt.Fprintln(os.Stderr, "usage: apisix-drain-hook install <folder>")
		return exitUsage
	}
	path := filepath.Join(args[0], fileName)
	if err := copySelf(args[0], path); err != nil {
		fmt.Fprintf(os.Stderr, "apisix-drain-hook: install: %v\n", err)
		return 1
	}
	fmt.Printf("installed %s %s\n", path, version)
	return exitDone
}

// copySelf writes to a temporary file and then renames it, so that an init container never leaves half a program,
// even if it is stopped and runs again.
func copySelf(folder, path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	source, err := os.Open(self)
	if err != nil {
		return err
	}
	defer source.Close()
	copied, err := os.CreateTemp(folder, ".apisix-drain-hook-*")
	if err != nil {
		return err
	}
	defer os.Remove(copied.Name())
	_, err = io.Copy(copied, source)
	if err == nil {
		// The containers of the pod may run as any user.
		err = copied.Chmod(0o755)
	}
	if closed := copied.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(copied.Name(), path)
}
