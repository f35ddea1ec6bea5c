// Reads a dashboard of Grafana from stdin, and prints each error by Grafana's own schema.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	plugins.RegisterDefaultPlugins()
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = new(dashboard.Dashboard).UnmarshalJSONStrict(text)
	}
	if err == nil {
		return
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		// Grafana fills in what is missing.
		if !strings.HasSuffix(line, "required field is missing from input") {
			fmt.Println(line)
		}
	}
}
