// Prometheus' own parser: reads one expression per line, and prints the error of each invalid one.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	promql := parser.NewParser(parser.Options{})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if _, err := promql.ParseExpr(lines.Text()); err != nil {
			fmt.Printf("%s: %s\n", lines.Text(), err)
		}
	}
}
